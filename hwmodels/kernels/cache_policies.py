"""Compiled: a touch of a line in a set, by replacement policy.

One function per policy says which way gives way, `choose_way` knows them by number; under LRU it is
the last of entries kept in order. Where hits change what leaves, `note_use` notes each touch.
Everything else asks for properties of the policy, which `hwmodels.board.policies` states.
"""

import numpy as np

from hwmodels.kernels.cache_words import (
    ASK,
    BYPASS,
    EMPTY,
    FIRST_ADDRESS,
    FOUR,
    GLOBAL,
    HIT,
    LRU,
    ONE,
    PLRU,
    READ_FILL,
    ROUND_ROBIN,
    THREE,
    TWO,
    WRITE_FILL,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_part
from hwmodels.kernels.native import call_native


@compile_part
def set_among(sets: Integer, mask: Integer, line: Integer) -> Integer:
    """Set a line maps to."""
    return np.uint64(line & mask if mask >= 0 else line % sets)


@compile_part
def choose_plru(state: Words, word: Integer, ways: Integer) -> Integer:
    """Way the tree points to; node n has children 2n and 2n + 1, and a bit for the second."""
    node: Integer = 1
    while node < ways:
        node = 2 * node + ((state[word] >> node) & 1)
    return node - ways


@compile_part
def choose_round_robin(state: Words, word: Integer, ways: Integer) -> Integer:
    """Way the counter of the set, or of all sets, is at; it goes on by one."""
    way = state[word]
    state[word] = way + 1 if way + 1 < ways else 0
    return way


@compile_part
def choose_lfsr(state: Words, word: Integer, ways: Integer) -> Integer:
    """Way drawn by the next step of a shift register (x^16 + x^14 + x^13 + x^11 + 1)."""
    state[word] = (state[word] >> 1) ^ (0xB400 if state[word] & 1 else 0)
    if ways & (ways - 1) == 0:
        return state[word] & (ways - 1)
    return np.int64(np.uint64(state[word]) % np.uint64(ways))


@compile_part
def choose_way(state: Words, word: Integer, register: Integer, ways: Integer,
               policy: Integer) -> Integer:
    """Way of a full set that gives way, where the order of touches is not kept (all but LRU).

    `word` is the set's, `register` that of all sets.
    """
    if policy == PLRU:
        return choose_plru(state, word, ways)
    if policy == ROUND_ROBIN:
        return choose_round_robin(state, word, ways)
    if policy == GLOBAL:
        return choose_round_robin(state, register, ways)
    if policy >= FIRST_ADDRESS:
        return np.int64(np.uint64(call_native(policy, state[word], ASK, ways)) % np.uint64(ways))
    return choose_lfsr(state, register, ways)


@compile_part
def note_use(state: Words, word: Integer, way: Integer, found: Integer, ways: Integer,
             policy: Integer) -> None:
    """Note a touch of a way where that changes what leaves next (LRU moves entries)."""
    if policy >= FIRST_ADDRESS:
        filled = 0 if found == HIT else 1
        state[word] = call_native(policy, state[word], np.int64(way) << 1 | filled, ways)
    if policy == PLRU:
        # The nodes above a way, from its own on: each turns away from the half it lies in.
        node, tree = np.int64(way) + ways, state[word]
        while node > 1:
            bit = 1 << (node >> 1)
            tree = tree & ~bit if node & 1 else tree | bit
            node >>= 1
        state[word] = tree


@compile_part
def move_to_front(line: Integer, write: Integer, entry: Integer, allocate: Integer, state: Words,
                  base: Integer, ways: Integer) -> tuple[Integer, Integer]:
    """Look a line up under LRU, where entries lie in order of use, behind the first of them."""
    way, last = ONE, np.uint64(ways)
    while way < last and state[base + way] >> 8 != line:
        way += ONE
    found, left = HIT, EMPTY
    if way == last:
        if write and not allocate:
            return BYPASS, EMPTY
        found = WRITE_FILL if write else READ_FILL
        way = last - ONE
        left = state[base + way]
    elif not write:
        entry = state[base + way]
    while way > ZERO:
        state[base + way] = state[base + way - ONE]
        way -= ONE
    state[base] = entry
    return found, left


@compile_part
def find_way(state: Words, base: Integer, line: Integer, ways: Integer) -> Integer:
    """Way that holds a line; the number of ways when none does.

    Four ways are looked at without a branch: which one it is cannot be predicted.
    """
    if ways == FOUR:
        way = FOUR
        way = THREE if state[base + THREE] >> 8 == line else way
        way = TWO if state[base + TWO] >> 8 == line else way
        way = ONE if state[base + ONE] >> 8 == line else way
        return ZERO if state[base] >> 8 == line else way
    way = ZERO
    while way < ways and state[base + way] >> 8 != line:
        way += ONE
    return way


@compile_part
def find_or_fill(line: Integer, write: Integer, entry: Integer, allocate: Integer, state: Words,
                 base: Integer, word: Integer, register: Integer, ways: Integer,
                 policy: Integer) -> tuple[Integer, Integer]:
    """Look a line up where every line keeps its way (all but LRU)."""
    last = np.uint64(ways)
    way = find_way(state, base, line, last)
    found, left = HIT, EMPTY
    if way == last:
        if write and not allocate:
            return BYPASS, EMPTY
        found = WRITE_FILL if write else READ_FILL
        if state[base + last - ONE] < 0:  # Ways fill from the first.
            way = ZERO
            while state[base + way] >= 0:
                way += ONE
        else:
            way = np.uint64(choose_way(state, word, register, ways, policy))
            left = state[base + way]
        state[base + way] = entry
    elif write:
        state[base + way] = entry
    note_use(state, word, way, found, ways, policy)
    return found, left


@compile_part
def meet_set(line: Integer, write: Integer, entry: Integer, allocate: Integer, state: Words,
             base: Integer, word: Integer, register: Integer, ways: Integer,
             policy: Integer) -> tuple[Integer, Integer]:
    """Look a line up in a set whose entries begin at `base`.

    `entry` is what a fill or store leaves; `word` and `register` as `choose_way` takes them.

    Returns
    -------
    found, left : int
        HIT, READ_FILL, WRITE_FILL or BYPASS; the entry that had to leave, EMPTY for none.
    """
    base = np.uint64(base)
    if policy != LRU:
        return find_or_fill(line, write, entry, allocate, state, base, np.uint64(word),
                            np.uint64(register), ways, policy)
    if state[base] >> 8 != line:
        return move_to_front(line, write, entry, allocate, state, base, ways)
    if write:
        state[base] = entry
    return HIT, EMPTY
