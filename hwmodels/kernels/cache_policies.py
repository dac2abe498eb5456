"""Compiled: a touch of a line in a set, by replacement policy.

One function per policy says which way gives way, `choose_way` knows them by number; under LRU it is
the last of entries kept in order. Where hits change what leaves, `note_touch` here and `note_use`
of `touch_stream` note each touch. Everything else asks for properties of the policy (HITS_CHANGE,
COUPLED), which `hwmodels.board.policies` states.
"""

import numpy as np

from hwmodels.kernels.cache_words import (
    ALLOCATE,
    ALONE,
    ALONE_END,
    ANY,
    BYPASS,
    CLOCK,
    ENTRY,
    FILL,
    FILLED,
    FIRST_WORDS,
    FIRSTS,
    FOUR,
    GLOBAL,
    GONE,
    HIT,
    HITS_CHANGE,
    LEAVING,
    LRU,
    MARK,
    MASK,
    NEVER,
    NOBODY,
    ONE,
    OPERAND,
    PLRU,
    POLICY,
    REGISTER,
    ROUND_ROBIN,
    SET_0,
    SET_WORDS,
    SETS,
    SHIFT,
    STAMP,
    TALLY,
    THREE,
    TREE,
    TWO,
    WAYS,
    WINDOW_WORDS,
    WINDOWS,
    WINDOWS_END,
    WORD,
    WRITE,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part


@compile_inline
def geometry_of(m: Words) -> tuple[Integer, Integer, Integer, Integer, Integer]:
    """Return the shift of lines, sets, their mask, where sets begin and their words.

    Loops that write to the array read them once.
    """
    return m[SHIFT], m[SETS], m[MASK], np.uint64(m[SET_0]), np.uint64(m[SET_WORDS])


@compile_inline
def set_among(sets: Integer, mask: Integer, line: Integer) -> Integer:
    """Set a line maps to, of a geometry at hand."""
    return np.uint64(line & mask if mask >= 0 else line % sets)


@compile_inline
def set_of(m: Words, line: Integer) -> Integer:
    """Set a line maps to."""
    return set_among(m[SETS], m[MASK], line)


@compile_inline
def record_of(m: Words, index: Integer) -> Integer:
    """Where the record of a set begins."""
    return np.uint64(m[SET_0]) + index * np.uint64(m[SET_WORDS])


@compile_inline
def find_way(m: Words, base: Integer, line: Integer) -> Integer:
    """Way that holds a line; the number of ways when none does.

    Four ways are looked at without a branch: which one it is cannot be predicted.
    """
    ways = np.uint64(m[WAYS])
    if ways == FOUR:
        way = FOUR
        way = THREE if m[base + THREE] >> 8 == line else way
        way = TWO if m[base + TWO] >> 8 == line else way
        way = ONE if m[base + ONE] >> 8 == line else way
        return ZERO if m[base] >> 8 == line else way
    way = ZERO
    while way < ways and m[base + way] >> 8 != line:
        way += ONE
    return way


@compile_inline
def choose_plru(m: Words, word: Integer, ways: Integer) -> Integer:
    """Way the tree points to; node n has children 2n and 2n + 1, and a bit for the second."""
    node: Integer = 1
    while node < ways:
        node = 2 * node + ((m[word] >> node) & 1)
    return node - ways


@compile_inline
def choose_round_robin(m: Words, word: Integer, ways: Integer) -> Integer:
    """Way the counter of the set, or of all sets, is at; it goes on by one."""
    way = m[word]
    m[word] = way + 1 if way + 1 < ways else 0
    return way


@compile_inline
def choose_lfsr(m: Words, word: Integer, ways: Integer) -> Integer:
    """Way drawn by the next step of a shift register (x^16 + x^14 + x^13 + x^11 + 1)."""
    m[word] = (m[word] >> 1) ^ (0xB400 if m[word] & 1 else 0)
    if ways & (ways - 1) == 0:
        return m[word] & (ways - 1)
    return np.int64(np.uint64(m[word]) % np.uint64(ways))


@compile_inline
def choose_way(m: Words, word: Integer, ways: Integer, policy: Integer) -> Integer:
    """Way of a full set that gives way, where the order of touches is not kept (all but LRU).

    `word` is the set's, the register of all sets the first of the array.
    """
    return choose_among(m, word, REGISTER, ways, policy)


@compile_inline
def choose_among(m: Words, word: Integer, register: Integer, ways: Integer,
                 policy: Integer) -> Integer:
    """Way `choose_way` returns, of a cache that does not begin the array."""
    if policy == PLRU:
        return choose_plru(m, word, ways)
    if policy == ROUND_ROBIN:
        return choose_round_robin(m, word, ways)
    if policy == GLOBAL:
        return choose_round_robin(m, register, ways)
    return choose_lfsr(m, register, ways)


@compile_inline
def choose_victim(m: Words, base: Integer, word: Integer, policy: Integer) -> Integer:
    """Way that gives way to a new line: the first empty one, else the policy's choice.

    Ways fill from the first, so the last one tells whether there are empty ones.
    """
    ways = np.uint64(m[WAYS])
    if m[base + ways - ONE] < 0:
        way = ZERO
        while m[base + way] >= 0:
            way += ONE
        return way
    return np.uint64(choose_way(m, word, m[WAYS], policy))


@compile_inline
def note_touch(m: Words, word: Integer, way: Integer, policy: Integer) -> None:
    """Note a touch of a way where that changes what leaves next (`TOUCHED` in `cache_words`)."""
    if policy == PLRU:
        m[word] = (m[word] & m[TREE + TWO * way]) | m[TREE + TWO * way + ONE]


@compile_inline
def look_up_three(m: Words, base: Integer, line: Integer, entry: Integer,
                  write: Integer) -> Integer:
    """Look a line up in the ways behind the first of four.

    On a hit they are moved without a branch: which of them holds the line cannot be predicted.
    """
    first, a, b, c = m[base], m[base + ONE], m[base + TWO], m[base + THREE]
    in_a, in_b, in_c = a >> 8 == line, b >> 8 == line, c >> 8 == line
    if not (in_a | in_b | in_c):
        if write and not m[ALLOCATE]:
            return BYPASS
        m[base], m[base + ONE], m[base + TWO], m[base + THREE] = entry, first, a, b
        return c
    found = b if in_b else c
    found = a if in_a else found
    m[base] = entry if write else found
    m[base + ONE] = first
    m[base + TWO] = b if in_a else a
    m[base + THREE] = b if in_c else c
    return HIT


@compile_inline
def look_up_stack(m: Words, base: Integer, line: Integer, mark: Integer,
                  write: Integer) -> Integer:
    """Look a line up where the entries of a set stand in order, most recent first (LRU)."""
    first = m[base]
    if first >> 8 == line:
        if write:
            m[base] = line << 8 | mark
        return HIT
    ways = np.uint64(m[WAYS])
    entry = line << 8 | mark
    if ways == FOUR:
        return look_up_three(m, base, line, entry, write)
    way = ONE
    while way < ways and m[base + way] >> 8 != line:
        way += ONE
    left = HIT
    if way >= ways:
        if write and not m[ALLOCATE]:
            return BYPASS
        way = ways - ONE
        left = m[base + way]
    elif not write:
        entry = m[base + way]
    while way > ZERO:
        m[base + way] = m[base + way - ONE]
        way -= ONE
    m[base] = entry
    return left


@compile_inline
def look_up_ways(m: Words, base: Integer, word: Integer, line: Integer, mark: Integer,
                 write: Integer, policy: Integer) -> Integer:
    """Look a line up where every line keeps its way (all but LRU)."""
    ways = np.uint64(m[WAYS])
    way = find_way(m, base, line)
    left = HIT
    if way < ways:
        if write:
            m[base + way] = line << 8 | mark
    else:
        if write and not m[ALLOCATE]:
            return BYPASS
        way = choose_victim(m, base, word, policy)
        left = m[base + way]
        m[base + way] = line << 8 | mark
    note_touch(m, word, way, policy)
    return left


@compile_inline
def firsts_of(m: Words, line: Integer) -> Integer:
    """Where the first lines of a line's set are noted."""
    return np.uint64(m[FIRSTS]) + set_of(m, line) * (ONE + FIRST_WORDS * np.uint64(m[WAYS]))


@compile_part
def note_first(m: Words, line: Integer, s: Integer, at: Integer) -> None:
    """Note a line that fills an empty way under LRU; a load does not say whose it is."""
    firsts = firsts_of(m, line)
    place = firsts + ONE + FIRST_WORDS * np.uint64(m[firsts])
    m[firsts] += 1
    m[place], m[place + ONE] = line, m[at + OPERAND] << 2 | m[at + WRITE]
    if not m[at + WRITE]:
        m[s + ENTRY] = line << 8 | NOBODY << 1


@compile_part
def note_gone(m: Words, line: Integer) -> None:
    """Note that a first line left before it was stored to."""
    place = firsts_of(m, line) + ONE
    while m[place] != line:
        place += FIRST_WORDS
    m[place + ONE] |= GONE


@compile_part
def settle_line(m: Words, line: Integer, operand: Integer) -> None:
    """Note that a line is there, and that an operand (-1: none) has stored to it."""
    at, end = np.uint64(m[WINDOWS]), np.uint64(m[WINDOWS_END])
    number = 0
    while at < end:
        place = line - m[at]
        if (place >= 0) & (place < m[at + ONE]):
            bit = 1 << ((m[at + TWO] + line) & 31)
            m[np.uint64((m[at + TWO] + line) >> 5)] |= bit
            if operand >= 0:
                word = np.uint64((m[at + THREE] + line) >> 5)
                m[word] = m[word] | bit if number == operand else m[word] & ~bit
        number += 1
        at += WINDOW_WORDS


@compile_inline
def settle_gone(m: Words, line: Integer) -> Integer:
    """Note that a line is gone; return the operand it is of, as `operand_of` does."""
    at, end = np.uint64(m[WINDOWS]), np.uint64(m[WINDOWS_END])
    number, operand = 0, NEVER
    while at < end:
        place = line - m[at]
        if (place >= 0) & (place < m[at + ONE]):
            bit = 1 << ((m[at + TWO] + line) & 31)
            m[np.uint64((m[at + TWO] + line) >> 5)] &= ~bit
            m[np.uint64((m[at + THREE] + line) >> 5)] &= ~bit
            if (m[at + ALONE] <= line) & (line < m[at + ALONE_END]):
                return number
            operand = ANY
        number += 1
        at += WINDOW_WORDS
    return operand


@compile_inline
def settle_touch(m: Words, line: Integer, operand: Integer, write: Integer) -> None:
    """Note that an operand's line is there, and that it was stored to if it was.

    Of a line that was not there no bit is set.
    """
    at = np.uint64(m[WINDOWS]) + np.uint64(operand) * WINDOW_WORDS
    if at < np.uint64(m[WINDOWS_END]):
        if (m[at + ALONE] <= line) & (line < m[at + ALONE_END]):
            bit = 1 << ((m[at + TWO] + line) & 31)
            m[np.uint64((m[at + TWO] + line) >> 5)] |= bit
            if write:
                m[np.uint64((m[at + THREE] + line) >> 5)] |= bit
        else:
            settle_line(m, line, operand if write else -1)


@compile_inline
def count_touch(m: Words, line: Integer, s: Integer, at: Integer, left: Integer) -> None:
    """Count what a touch of a set for the stream or block `at` met, if it was no hit."""
    if left != HIT:
        write = m[at + WRITE]
        counts = np.uint64(m[s + TALLY]) + THREE * np.uint64(m[at + OPERAND])
        if left == BYPASS:
            m[counts + TWO] += 1
        else:
            m[counts + np.uint64(write)] += 1
            m[s + FILLED] = m[STAMP]
        owner = (left >> 1) & 127
        if left >= 0 and owner != NOBODY:
            counts = np.uint64(m[s + TALLY] + m[LEAVING]) + TWO * np.uint64(owner)
            m[counts] += 1
            m[counts + ONE] += left & 1
        elif left >= 0:
            note_gone(m, left >> 8)
        elif m[FIRSTS] and left == FILL:
            note_first(m, line, s, at)


@compile_inline
def touch(m: Words, line: Integer, s: Integer, at: Integer) -> Integer:
    """Touch a line of set `s` for the stream or block `at` where hits matter, and count.

    Returns
    -------
    int
        HIT, BYPASS (a store that does not allocate), FILL, or the entry evicted.
    """
    m[CLOCK] += 1
    if m[POLICY] == LRU:
        left = look_up_stack(m, s + ENTRY, line, m[at + MARK], m[at + WRITE])
    else:
        left = look_up_ways(m, s + ENTRY, s + WORD, line, m[at + MARK], m[at + WRITE], m[POLICY])
    count_touch(m, line, s, at, left)
    return left


@compile_part
def touch_settling(m: Words, line: Integer, s: Integer,
                   at: Integer) -> tuple[Integer, Integer]:
    """Touch a line as `touch` does where hits do not matter, and note what has settled.

    Returns
    -------
    left, operand : int
        As of `touch`; whose line was evicted, as of `operand_of`.
    """
    m[CLOCK] += 1
    write, operand = m[at + WRITE], m[at + OPERAND]
    base, ways = s + ENTRY, np.uint64(m[WAYS])
    way = find_way(m, base, line)
    if way < ways:
        if write:
            m[base + way] = line << 8 | m[at + MARK]
        settle_touch(m, line, operand, write)
        return HIT, NEVER
    counts = np.uint64(m[s + TALLY]) + THREE * np.uint64(operand)
    if write and not m[ALLOCATE]:
        m[counts + TWO] += 1
        return BYPASS, NEVER
    m[counts + np.uint64(write)] += 1
    m[s + FILLED] = m[STAMP]
    way = choose_victim(m, base, s + WORD, m[POLICY])
    left = m[base + way]
    m[base + way] = line << 8 | m[at + MARK]
    settle_touch(m, line, operand, write)
    if left < 0:
        return FILL, NEVER
    counts = np.uint64(m[s + TALLY] + m[LEAVING]) + TWO * np.uint64((left >> 1) & 127)
    m[counts] += 1
    m[counts + ONE] += left & 1
    return left, settle_gone(m, left >> 8)


@compile_inline
def is_settled(m: Words, line: Integer, at: Integer) -> bool:
    """Whether a touch of a stream's line is known to change nothing."""
    window = np.uint64(m[WINDOWS]) + np.uint64(m[at + OPERAND]) * WINDOW_WORDS
    if window >= np.uint64(m[WINDOWS_END]):
        return False
    place = m[window + TWO + np.uint64(m[at + WRITE])] + line
    told: bool = (m[np.uint64(place >> 5)] >> (place & 31)) & 1 != 0
    return told


@compile_part
def touch_apart(m: Words, line: Integer, s: Integer, at: Integer) -> Integer:
    """Touch a line under any policy, by a call: where that is done in several places."""
    if m[HITS_CHANGE]:
        return touch(m, line, s, at)
    if is_settled(m, line, at):
        return HIT
    left, _ = touch_settling(m, line, s, at)
    return left
