"""Compiled: streams line by line, in program order, in the sets that are looked at."""

import numpy as np

from hwmodels.kernels.cache_policies import record_of, set_of, touch
from hwmodels.kernels.cache_words import (
    ACTIVE,
    ADDRESS,
    DEPTHS,
    FIRST_GUARD,
    FOLLOWS,
    GUARD_WORDS,
    GUARDS,
    HERE,
    HIGH,
    LAST_GUARD,
    LOG_STEP,
    LOW,
    NEVER,
    NEXT,
    ONE,
    RECORD,
    ROUND,
    SHIFT,
    STEP,
    STEPS,
    STIRRED,
    TWO,
    WORK,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part


@compile_part
def set_ranges(m: Words, start: Integer, stop: Integer, depth: Integer, at: Integer,
               end: Integer) -> None:
    """Note in which of the iterations [start, stop) each stream and block of a leaf is made."""
    words = np.uint64(m[GUARD_WORDS])
    while at < end:
        low, high = start, stop
        guard = np.uint64(m[GUARDS]) + np.uint64(m[at + FIRST_GUARD]) * words
        last = np.uint64(m[GUARDS]) + np.uint64(m[at + LAST_GUARD]) * words
        while guard < last:
            value, limit, step = m[guard], m[guard + ONE], m[guard + TWO + depth]
            if step == 0:
                if value < 0 or value >= limit:
                    high = low
            elif step > 0:
                low = max(low, -(value // step))
                high = min(high, -((value - limit) // step))
            else:
                low = max(low, -((value + 1 - limit) // step))
                high = min(high, value // -step + 1)
            guard += words
        m[at + LOW], m[at + HIGH] = low, high
        at += RECORD


@compile_part
def run_lines(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer, allowed: Integer,
              own: Integer) -> None:
    """Touch every line of iterations [start, stop) of streams, one stream after the other."""
    shift = m[SHIFT]
    line = -1
    while at < end:
        turn, final = max(start, m[at + LOW]), min(stop, m[at + HIGH])
        before, step = line, m[at + STEP]
        address = m[at + ADDRESS] + turn * step
        while turn < final:
            line = address >> shift
            high = line
            if turn + 1 < final and 0 <= step <= 1 << shift:
                # No line lies between the iterations: they are one.
                high = (address + step * (final - turn - 1)) >> shift
                turn = final
            if m[at + FOLLOWS] and line == before:
                line += 1
            while line <= high:
                index = set_of(m, line)
                if m[allowed + index] == own:
                    touch(m, line, record_of(m, index), at)
                line += 1
            line = high
            address += step
            turn += 1
        at += RECORD


@compile_inline
def line_run(address: Integer, line: Integer, shift: Integer, step: Integer,
             log_step: Integer) -> Integer:
    """Return the iterations for which a stream stays in its line."""
    if step == 0:
        return NEVER
    if step > 0:
        room = ((line + 1) << shift) - address + step - 1
        return room >> log_step if log_step >= 0 else room // step
    return (address - (line << shift)) // -step + 1


@compile_part
def find_next(m: Words, at: Integer, turn: Integer, stop: Integer, allowed: Integer,
              own: Integer) -> None:
    """Note the line a stream is in at an iteration, and the next at which that changes.

    Only lines in sets stamped `own` are noted.
    """
    here, following = -1, stop
    if turn < m[at + LOW]:
        following = min(stop, m[at + LOW])
    elif turn < m[at + HIGH]:
        shift, step = m[SHIFT], m[at + STEP]
        final = min(stop, m[at + HIGH])
        address = m[at + ADDRESS] + turn * step
        line = address >> shift
        if m[allowed + set_of(m, line)] == own:
            here = line
            following = min(final, turn + line_run(address, line, shift, step, m[at + LOG_STEP]))
        elif -(1 << shift) < step < 1 << shift:
            while turn < final and m[allowed + set_of(m, line)] != own:
                turn += line_run(address, line, shift, step, m[at + LOG_STEP])
                address = m[at + ADDRESS] + turn * step
                line = address >> shift
            following = turn if turn < final else stop
        else:
            turn += 1
            address += step
            while turn < final and m[allowed + set_of(m, address >> shift)] != own:
                turn += 1
                address += step
            following = turn if turn < final else stop
    m[at + HERE], m[at + NEXT] = here, following


@compile_inline
def list_active(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer,
                allowed: Integer, own: Integer) -> Integer:
    """List the streams that come into a set stamped `own` in iterations [start, stop)."""
    active = np.uint64(m[ACTIVE])
    count = ZERO
    while at < end:
        find_next(m, at, start, stop, allowed, own)
        if m[at + HERE] >= 0 or m[at + NEXT] < stop:
            m[active + count] = np.int64(at)
            count += ONE
        at += RECORD
    return count


@compile_inline
def stir_sets(m: Words, count: Integer, turn: Integer, start: Integer, stop: Integer,
              allowed: Integer, own: Integer) -> Integer:
    """Mark the sets that streams leave or come into; return when that happens next."""
    active = np.uint64(m[ACTIVE])
    upcoming = stop
    for place in range(count):
        at = np.uint64(m[active + place])
        if m[at + NEXT] <= turn or turn == start:
            for _ in range(2):
                if m[at + HERE] >= 0:
                    m[record_of(m, set_of(m, m[at + HERE])) + STIRRED] = m[ROUND]
                if m[at + NEXT] <= turn:
                    find_next(m, at, turn, stop, allowed, own)
        upcoming = min(upcoming, m[at + NEXT])
    return upcoming


@compile_inline
def is_met(m: Words, line: Integer, place: Integer) -> bool:
    """Whether an active stream before a place is in a line."""
    active = np.uint64(m[ACTIVE])
    met = False
    other = ZERO
    while other < place and not met:
        met = m[np.uint64(m[active + other]) + HERE] == line
        other += ONE
    return met


@compile_part
def run_rounds(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer, allowed: Integer,
               own: Integer) -> None:
    """Run iterations [start, stop) of streams in program order, in sets stamped `own`.

    While no stream comes into such a set or leaves its line, every round touches the same lines
    in the same order; after a round that evicts none of them further ones change nothing: what a
    hit does depends on its way only. (Stores allocate here.)
    """
    active = np.uint64(m[ACTIVE])
    count = list_active(m, start, stop, at, end, allowed, own)
    turn = start
    everything = False
    while count and turn < stop:
        m[ROUND] += 1
        upcoming = stir_sets(m, count, turn, start, stop, allowed, own)
        again = False
        before, line = ZERO, np.int64(-1)
        for place in range(count):
            at = np.uint64(m[active + place])
            last, line = line if before + RECORD == at else -1, m[at + HERE]
            before = at
            if line < 0 or (m[at + FOLLOWS] and line == last):
                continue
            s = record_of(m, set_of(m, line))
            if m[s + STIRRED] != m[ROUND] and not everything:
                continue
            left = touch(m, line, s, at)
            if left >= 0 and not again and is_met(m, left >> 8, place):
                again = True
        everything = again
        turn = turn + 1 if again else upcoming


@compile_part
def shift_streams(m: Words, amount: Integer, depth: Integer, first: Integer, last: Integer) -> None:
    """Move streams and their guards by a number of iterations of the loop at a depth."""
    depths = np.uint64(m[DEPTHS])
    step = np.uint64(m[STEPS]) + np.uint64(first) * depths + depth
    at = np.uint64(m[WORK]) + np.uint64(first) * RECORD
    end = np.uint64(m[WORK]) + np.uint64(last) * RECORD
    words = np.uint64(m[GUARD_WORDS])
    guard = np.uint64(m[GUARDS]) + np.uint64(m[at + FIRST_GUARD]) * words
    while at < end:
        m[at] += amount * m[step]
        at += RECORD
        step += depths
    last_guard = np.uint64(m[GUARDS]) + np.uint64(m[end - RECORD + LAST_GUARD]) * words
    while guard < last_guard:
        m[guard] += amount * m[guard + TWO + depth]
        guard += words
