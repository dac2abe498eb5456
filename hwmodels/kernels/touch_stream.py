"""Compiled: the touches of a loop nest one by one, in order, and a cache that says what each met.

Slower than `cache_nest`, which is why only what needs the order uses it. State words and policies
are those of `cache_nest`; lines are kept in order of touch under LRU.
"""

import numpy as np

from hwmodels.kernels.cache_policies import choose_among
from hwmodels.kernels.cache_words import LRU, PLRU
from hwmodels.kernels.compiled import Integer, Table, Words, compile_inline, compile_kept

LOOP, END, STREAM = 0, 1, 2
ENTRIES = 8
HIT, READ_FILL, WRITE_FILL, BYPASS = 0, 1, 2, 3
EMPTY = -1


@compile_inline
def holds(first: Integer, last: Integer, indices: Words, values: Words, limits: Words,
          guard_steps: Table) -> bool:
    """Whether all guards of a stream hold."""
    for guard in range(first, last):
        value = values[guard]
        for depth in range(len(indices)):
            value += guard_steps[guard, depth] * indices[depth]
        if value < 0 or value >= limits[guard]:
            return False
    return True


@compile_kept
def fill_touches(code: Table, streams: Table, steps: Table, values: Words, limits: Words,
                 guard_steps: Table, shift: Integer, cursor: Words, indices: Words, accesses: Words,
                 lines: Words, marks: Words) -> Integer:
    """Write touches to a buffer until it is full or the nest is over; return how many.

    Parameters
    ----------
    code : ndarray of int64, (operations, 4)
        LOOP: extent, depth, position of its END. END: extent, depth, position of its LOOP.
        STREAM: number.
    streams : ndarray of int64, (streams, 6)
        Address, operand, write, follows, first guard, guard after the last.
    steps, values, limits, guard_steps
        Address steps by depth; offset, limit and index steps of guards.
    shift : int
        Log2 of the line.
    cursor : ndarray of int64, (3,)
        Position in the code, accesses so far, line of the stream before; kept between calls.
    indices : ndarray of int64, (depths,)
        Kept between calls.
    accesses, lines, marks : ndarray of int64, (room,)
        Number of the access, its line, operand << 1 | write.
    """
    place, access, before = cursor[0], cursor[1], cursor[2]
    count = 0
    while place < len(code) and count < len(lines):
        operation = code[place, 0]
        if operation == LOOP:
            indices[code[place, 2]] = 0
            place += 1
        elif operation == END:
            depth = code[place, 2]
            indices[depth] += 1
            if indices[depth] < code[place, 1]:
                place = code[place, 3]
            else:
                indices[depth] = 0
            place += 1
        else:
            stream = code[place, 1]
            place += 1
            if holds(streams[stream, 4], streams[stream, 5], indices, values, limits,
                     guard_steps):
                address = streams[stream, 0]
                for depth in range(len(indices)):
                    address += steps[stream, depth] * indices[depth]
                line = address >> shift
                follows = streams[stream, 3]
                access += 1 - follows
                if not follows or line != before:
                    accesses[count] = access - 1
                    lines[count] = line
                    marks[count] = streams[stream, 1] << 1 | streams[stream, 2]
                    count += 1
                before = line
    cursor[0], cursor[1], cursor[2] = place, access, before
    return count


@compile_inline
def note_use(state: Words, base: Integer, way: Integer, word: Integer, ways: Integer,
             policy: Integer) -> None:
    """Move an entry to the front under LRU; point the tree away from it under pseudo-LRU."""
    if policy == LRU:
        entry = state[base + way]
        while way > 0:
            state[base + way] = state[base + way - 1]
            way -= 1
        state[base] = entry
    elif policy == PLRU:
        node, half = 1, ways >> 1
        while half:
            if way & half:
                state[word] &= ~(1 << node)
                node = 2 * node + 1
            else:
                state[word] |= 1 << node
                node = 2 * node
            half >>= 1


@compile_inline
def move_to_front(line: Integer, write: Integer, entry: Integer, state: Words, base: Integer,
                  ways: Integer) -> tuple[Integer, Integer]:
    """Look a line up under LRU, where entries lie in order of use and empty ones last."""
    carried = state[base]
    if carried >> 8 == line:
        if write:
            state[base] = entry
        return HIT, EMPTY
    for way in range(1, ways):
        held = state[base + way]
        state[base + way] = carried
        if held >> 8 == line:
            state[base] = entry if write else held
            return HIT, EMPTY
        carried = held
    state[base] = entry
    return WRITE_FILL if write else READ_FILL, carried


@compile_inline
def meet_line(line: Integer, write: Integer, owner: Integer, geometry: Words,
              state: Words) -> tuple[Integer, Integer]:
    """Look a line up; return what it met, and the entry that had to leave (EMPTY for none)."""
    sets, ways = geometry[0], geometry[1]
    index = line % sets
    return meet_set(line, write, line << 8 | owner << 1 | (write & geometry[4]), geometry[5], state,
                    ENTRIES + index * ways, ENTRIES + sets * ways + index, 0, ways, geometry[3])


@compile_inline
def meet_set(line: Integer, write: Integer, entry: Integer, allocate: Integer, state: Words,
             base: Integer, word: Integer, register: Integer, ways: Integer,
             policy: Integer) -> tuple[Integer, Integer]:
    """Look a line up in a set whose entries begin at `base`; returns what `meet_line` does.

    `entry` is what a fill or store leaves; `word` and `register` as `choose_among` takes them.
    """
    if policy == LRU and (write == 0 or allocate):
        return move_to_front(line, write, entry, state, base, ways)
    found, left, way = HIT, EMPTY, 0
    while way < ways and state[base + way] >> 8 != line:
        way += 1
    if way == ways:
        if write and not allocate:
            return BYPASS, EMPTY
        found = WRITE_FILL if write else READ_FILL
        way = 0
        while way < ways and state[base + way] >= 0:
            way += 1
        if way == ways:
            way = ways - 1 if policy == LRU else choose_among(
                state, np.uint64(word), np.uint64(register), ways, policy)
            left = state[base + way]
        state[base + way] = entry
    elif write:
        state[base + way] = entry
    note_use(state, base, np.int64(way), word, ways, policy)
    return found, left


@compile_kept
def meet_touches(count: Integer, lines: Words, marks: Words, owners: Words, geometry: Words,
                 state: Words, found: Words, left: Words) -> None:
    """Look touches up one by one.

    Parameters
    ----------
    count : int
        Touches.
    lines, marks : ndarray of int64, (count,) or longer
        Line; operand << 1 | write.
    owners : ndarray of int64, (operands,)
        Owner number of each operand; -1: not looked up.
    geometry : ndarray of int64
        Sets, ways, log2 of the line, policy, write-back, stores allocate.
    state : ndarray of int64
        Changed in place.
    found, left : ndarray of int64, (count,) or longer
        HIT, READ_FILL, WRITE_FILL or BYPASS; the entry that had to leave, -1 for none.
    """
    for touch in range(count):
        found[touch], left[touch] = HIT, EMPTY
        owner = owners[marks[touch] >> 1]
        if owner >= 0:
            found[touch], left[touch] = meet_line(lines[touch], marks[touch] & 1, owner, geometry,
                                                  state)
