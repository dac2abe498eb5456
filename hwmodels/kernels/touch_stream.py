"""Compiled: the touches of a loop nest one by one, in order, and a cache that says what each met.

Slower than `cache_nest`, which is why only what needs the order uses it. State words and policies
are those of `cache_nest`; lines are kept in order of touch under LRU.
"""

import numpy as np

from hwmodels.kernels.cache_policies import meet_set, set_among
from hwmodels.kernels.cache_words import (
    ALLOCATE,
    BACK,
    EMPTY,
    HIT,
    MASK,
    POLICY,
    SETS,
    STATE_HEAD,
    WAYS,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Table, Words, compile_inline, compile_kept

LOOP, END, STREAM = 0, 1, 2


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
def meet_line(line: Integer, write: Integer, owner: Integer, geometry: Words,
              state: Words) -> tuple[Integer, Integer]:
    """Look a line up; return what `meet_set` does."""
    sets, ways = np.uint64(geometry[SETS]), np.uint64(geometry[WAYS])
    index = set_among(geometry[SETS], geometry[MASK], line)
    return meet_set(line, write, line << 8 | owner << 1 | (write & geometry[BACK]),
                    geometry[ALLOCATE], state, STATE_HEAD + index * ways,
                    STATE_HEAD + sets * ways + index, ZERO, geometry[WAYS], geometry[POLICY])


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
        Of the cache, as `cache_words` has it.
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
