"""Compiled: the touches of a loop nest one by one, in order, and a cache that says what each met.

Slower than `cache_nest`, which is why only what needs the order uses it. State words and policies
are those of `cache_nest`; lines are kept in order of touch under LRU.
"""

import numpy as np

from hwmodels.kernels.cache_nest import close_loop, enter_loop, set_ranges
from hwmodels.kernels.cache_policies import meet_set, set_among
from hwmodels.kernels.cache_words import (
    ADDRESS,
    ALLOCATE,
    BACK,
    CODE,
    CODE_END,
    DEPTH,
    EMPTY,
    EXTENT,
    FIRST,
    FOLLOWS,
    HIGH,
    HIT,
    INNERMOST,
    LAST,
    LOOP,
    LOW,
    MASK,
    OPERAND,
    OPERATION_WORDS,
    PARTNER,
    POLICY,
    RECORD,
    RECORDS,
    SETS,
    STATE_HEAD,
    STEP,
    WAYS,
    WRITE,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_kept, compile_part

OPERATION, ITERATION, ACCESSES = range(3)
"""Of a cursor: the next operation, an iteration of it, and accesses so far."""


@compile_part
def fill_innermost(m: Words, op: Integer, shift: Integer, cursor: Words, count: Integer,
                   accesses: Words, lines: Words, marks: Words) -> Integer:
    """Write touches of an innermost loop, as many iterations as there is room for, behind others.

    Returns how many touches there are then; the cursor is at iteration zero of the next operation,
    or at one of this.
    """
    streams = m[op + LAST] - m[op + FIRST]
    first = np.uint64(m[RECORDS]) + np.uint64(m[op + FIRST]) * RECORD
    end = first + np.uint64(streams) * RECORD
    turn, access = cursor[ITERATION], cursor[ACCESSES]
    if m[op + PARTNER]:
        set_ranges(m, 0, m[op + EXTENT], np.uint64(m[op + DEPTH]), first, end)
    while turn < m[op + EXTENT] and count + streams <= len(lines):
        at, line = first, -1
        while at < end:
            if m[at + LOW] <= turn < m[at + HIGH]:
                before, line = line, (m[at + ADDRESS] + turn * m[at + STEP]) >> shift
                access += 1 - m[at + FOLLOWS]
                if not m[at + FOLLOWS] or line != before:
                    accesses[count], lines[count] = access - 1, line
                    marks[count] = m[at + OPERAND] << 1 | m[at + WRITE]
                    count += 1
            at += RECORD
        turn += 1
    cursor[ACCESSES] = access
    if turn < m[op + EXTENT]:
        cursor[ITERATION] = turn
    else:
        cursor[ITERATION] = 0
        cursor[OPERATION] += np.int64(OPERATION_WORDS)
    return count


@compile_kept
def fill_touches(m: Words, shift: Integer, cursor: Words, accesses: Words, lines: Words,
                 marks: Words) -> Integer:
    """Write touches to a buffer until it is full or the program is over; return how many.

    Parameters
    ----------
    m : ndarray of int64
        A program; changed.
    shift : int
        Log2 of the line.
    cursor : ndarray of int64, (3,)
        Begins with the program's `CODE` and zeros; kept between calls.
    accesses, lines, marks : ndarray of int64, (room,)
        Number of the access, its line, operand << 1 | write; room for those of any iteration.
    """
    count, stopped = 0, False
    while not stopped and cursor[OPERATION] < m[CODE_END]:
        op = np.uint64(cursor[OPERATION])
        if m[op] == INNERMOST:
            count = fill_innermost(m, op, shift, cursor, count, accesses, lines, marks)
            stopped = cursor[OPERATION] == np.int64(op)
            continue
        cursor[OPERATION] += np.int64(OPERATION_WORDS)
        if m[op] == LOOP:
            enter_loop(m, op)
        elif close_loop(m, op):
            cursor[OPERATION] = m[CODE] + (m[op + PARTNER] + 1) * np.int64(OPERATION_WORDS)
    return count


@compile_part
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
