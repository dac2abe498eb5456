"""Compiled: streams line by line, in program order, in the sets that are looked at."""

import numpy as np

from hwmodels.kernels.cache_policies import record_of, set_of, touch_apart
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
    MOST_ACTIVE,
    NEVER,
    NEXT,
    NEXTS,
    ONE,
    RECORD,
    SHIFT,
    STEP,
    STEPS,
    TWO,
    USERS,
    WORK,
    ZERO,
)
from hwmodels.kernels.compiled import (
    Integer,
    Words,
    compile_inline,
    compile_part,
    lowest_bit,
)


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
                    touch_apart(m, line, record_of(m, index), at)
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
def enter_line(m: Words, at: Integer, bit: Integer, turn: Integer, stop: Integer, allowed: Integer,
               own: Integer) -> Integer:
    """Note the next line of a stream and that its set is used; return who uses the set."""
    find_next(m, at, turn, stop, allowed, own)
    users = 0
    if m[at + HERE] >= 0:
        s = record_of(m, set_of(m, m[at + HERE]))
        users = m[s + USERS] | bit
        m[s + USERS] = users
    return users


@compile_inline
def leave_line(m: Words, at: Integer, bit: Integer) -> Integer:
    """Note that a stream no longer uses a set; return who still does."""
    users = 0
    if m[at + HERE] >= 0:
        s = record_of(m, set_of(m, m[at + HERE]))
        users = m[s + USERS] & ~bit
        m[s + USERS] = users
    return users


@compile_part
def list_active(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer,
                allowed: Integer, own: Integer) -> tuple[Integer, Integer]:
    """List streams that come into a set stamped `own` in iterations [start, stop).

    Returns
    -------
    count, at : int
        How many; the first stream not looked at, as the list was full.
    """
    active, nexts = np.uint64(m[ACTIVE]), np.uint64(m[NEXTS])
    count = ZERO
    while at < end and count < MOST_ACTIVE:
        enter_line(m, at, 1 << np.int64(count), start, stop, allowed, own)
        if m[at + HERE] >= 0 or m[at + NEXT] < stop:
            m[active + count], m[nexts + count] = np.int64(at), m[at + NEXT]
            count += ONE
        at += RECORD
    return count, at


@compile_inline
def move_streams(m: Words, count: Integer, turn: Integer, stop: Integer, allowed: Integer,
                 own: Integer) -> tuple[Integer, Integer]:
    """Let streams leave their lines at an iteration.

    Returns
    -------
    stirred, upcoming : int
        Those that left a line, or share a set with where they were or are; when that happens next.
    """
    active, nexts = np.uint64(m[ACTIVE]), np.uint64(m[NEXTS])
    stirred, upcoming = 0, stop
    for place in range(count):
        following = m[nexts + place]
        if following <= turn:
            at, bit = np.uint64(m[active + place]), 1 << np.int64(place)
            stirred |= leave_line(m, at, bit)
            stirred |= enter_line(m, at, bit, turn, stop, allowed, own)
            following = m[at + NEXT]
            m[nexts + place] = following
        upcoming = min(upcoming, following)
    return stirred, upcoming


@compile_inline
def touch_stirred(m: Words, stirred: Integer) -> Integer:
    """Touch the lines of active streams, in order; return those whose round is to be repeated.

    That is where a line was evicted that the round had touched.
    """
    active = np.uint64(m[ACTIVE])
    again = 0
    while stirred:
        place = lowest_bit(stirred)
        stirred &= stirred - 1
        at = np.uint64(m[active + place])
        line = m[at + HERE]
        met = line < 0
        if m[at + FOLLOWS] and place:
            before = np.uint64(m[active + place - ONE])
            met = met or (before + RECORD == at and m[before + HERE] == line)
        if not met:
            s = record_of(m, set_of(m, line))
            left = touch_apart(m, line, s, at)
            if left >= 0:
                # Most sets have one user: then nothing of the round was there to evict.
                others = m[s + USERS] & ((1 << np.int64(place)) - 1)
                while others:
                    other = np.uint64(m[active + lowest_bit(others)])
                    others &= others - 1
                    again |= m[s + USERS] if m[other + HERE] == left >> 8 else 0
    return again


@compile_part
def run_rounds(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer, allowed: Integer,
               own: Integer) -> None:
    """Run iterations [start, stop) of streams in program order, in sets stamped `own`.

    While no stream comes into such a set or leaves its line, every round touches the same lines
    in the same order; after a round that evicts none of them further ones change nothing: what a
    hit does depends on its way only. (Stores allocate here.)
    """
    nexts = np.uint64(m[NEXTS])
    count, rest = list_active(m, start, stop, at, end, allowed, own)
    if rest < end:
        clear_users(m, count)
        for turn in range(start, stop):
            run_lines(m, turn, turn + 1, at, end, allowed, own)
        return
    turn = start
    stirred = (1 << np.int64(count)) - 1
    upcoming = stop
    for place in range(count):
        upcoming = min(upcoming, m[nexts + place])
    while count and turn < stop:
        again = touch_stirred(m, stirred)
        turn = turn + 1 if again else upcoming
        if turn < stop:
            stirred, upcoming = move_streams(m, count, turn, stop, allowed, own)
            stirred |= again
    clear_users(m, count)


@compile_part
def clear_users(m: Words, count: Integer) -> None:
    """Forget who uses sets."""
    active = np.uint64(m[ACTIVE])
    for place in range(count):
        at = np.uint64(m[active + place])
        if m[at + HERE] >= 0:
            m[record_of(m, set_of(m, m[at + HERE])) + USERS] = 0


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
