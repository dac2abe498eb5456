"""Compiled: run flattened loop nests through a set-associative cache.

Programs are explained in `cache_words`, `hwmodels.nest.flattening` makes them.
"""

import numpy as np

from hwmodels.kernels.cache_policies import meet_set, set_among
from hwmodels.kernels.cache_words import (
    ADDRESS,
    ALLOCATE,
    BACK,
    BEFORE,
    BYPASS,
    CHANGES,
    CODE,
    CODE_END,
    COUNTERS,
    DEPTH,
    DEPTHS,
    EXTENT,
    FIRST,
    FIRST_GUARD,
    FOLLOWS,
    GUARD_WORDS,
    GUARDS,
    HERE,
    HIGH,
    HIT,
    HOME,
    IN_ORDER,
    INNERMOST,
    LAST,
    LAST_GUARD,
    LEAVING,
    LOG_STEP,
    LOOP,
    LOOP_WORDS,
    LOOPS,
    LOW,
    MARK,
    MASK,
    MOST_STREAMS,
    NEVER,
    NEXTS,
    ONE,
    OPERAND,
    OPERATION_WORDS,
    PARTNER,
    POLICY,
    RECORD,
    RECORDS,
    SETS,
    SHIFT,
    SIZE,
    STATE_HEAD,
    STEP,
    STEPS,
    STILL,
    STOP,
    THREE,
    TURN,
    TWO,
    USERS,
    WAYS,
    WRITE,
    ZERO,
)
from hwmodels.kernels.compiled import (
    Integer,
    Table,
    Words,
    compile_kept,
    compile_part,
    lowest_bit,
)


@compile_part
def touch(m: Words, geometry: Words, state: Words, counters: Words, at: Integer, line: Integer,
          index: Integer, policy: Integer) -> tuple[Integer, Integer]:
    """Touch a line of a set for the stream `at`, and count; return what `meet_set` does."""
    sets, ways, write = np.uint64(geometry[SETS]), np.uint64(geometry[WAYS]), m[at + WRITE]
    found, left = meet_set(line, write, line << 8 | m[at + MARK], geometry[ALLOCATE], state,
                           STATE_HEAD + index * ways, STATE_HEAD + sets * ways + index, ZERO,
                           geometry[WAYS], policy)
    first = np.uint64(m[COUNTERS])
    counters[np.uint64(m[LEAVING]) - ONE] += 1
    if found != HIT:
        m[CHANGES] += 1
        counters[first + THREE * np.uint64(m[at + OPERAND]) + np.uint64(found) - ONE] += 1
        if left >= 0:
            place = np.uint64(m[LEAVING]) + TWO * np.uint64((left >> 1) & 127)
            counters[place] += 1
            counters[place + ONE] += left & 1
    return found, left


@compile_part
def set_ranges(m: Words, start: Integer, stop: Integer, depth: Integer, at: Integer,
               end: Integer) -> None:
    """Note in which of the iterations [start, stop) each stream of an innermost loop is made."""
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
def run_in_order(m: Words, geometry: Words, state: Words, counters: Words, turn: Integer,
                 stop: Integer, first: Integer, end: Integer, policy: Integer) -> None:
    """Make every touch of iterations [turn, stop) of an innermost loop."""
    shift, sets, mask = geometry[SHIFT], geometry[SETS], geometry[MASK]
    while turn < stop:
        at, line = first, -1
        while at < end:
            if m[at + LOW] <= turn < m[at + HIGH]:
                before, line = line, (m[at + ADDRESS] + turn * m[at + STEP]) >> shift
                if not m[at + FOLLOWS] or line != before:
                    touch(m, geometry, state, counters, at, line, set_among(sets, mask, line),
                          policy)
            at += RECORD
        turn += 1


@compile_part
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
def enter_line(m: Words, geometry: Words, at: Integer, bit: Integer, turn: Integer,
               stop: Integer) -> tuple[Integer, Integer]:
    """Note the line a stream is in at an iteration, and that its set is used.

    Returns
    -------
    users, following : int
        Who uses the set; the next iteration at which the line changes.
    """
    if turn < m[at + LOW] or turn >= m[at + HIGH]:
        m[at + HERE] = -1
        return 0, min(stop, m[at + LOW]) if turn < m[at + LOW] else stop
    shift, step = geometry[SHIFT], m[at + STEP]
    address = m[at + ADDRESS] + turn * step
    line = address >> shift
    index = set_among(geometry[SETS], geometry[MASK], line)
    m[at + HERE], m[at + HOME] = line, np.int64(index)
    users = m[np.uint64(m[USERS]) + index] | bit
    m[np.uint64(m[USERS]) + index] = users
    following = turn + line_run(address, line, shift, step, m[at + LOG_STEP])
    return users, min(following, min(stop, m[at + HIGH]))


@compile_part
def leave_line(m: Words, at: Integer, bit: Integer) -> Integer:
    """Note that a stream no longer uses a set; return who still does."""
    if m[at + HERE] < 0:
        return 0
    place = np.uint64(m[USERS] + m[at + HOME])
    m[place] &= ~bit
    return m[place]


@compile_part
def touch_stirred(m: Words, geometry: Words, state: Words, counters: Words, first: Integer,
                  stirred: Integer, policy: Integer) -> Integer:
    """Touch the lines of streams, in order; return those whose round is to be repeated.

    That is where a line was evicted that the round had touched, and for stores that bypass.
    """
    again = 0
    while stirred:
        place = lowest_bit(stirred)
        stirred &= stirred - 1
        at = first + place * RECORD
        line = m[at + HERE]
        if line >= 0 and not (m[at + FOLLOWS] and m[at - RECORD + HERE] == line):
            index = np.uint64(m[at + HOME])
            found, left = touch(m, geometry, state, counters, at, line, index, policy)
            users = m[np.uint64(m[USERS]) + index]
            if left >= 0:
                # Most sets have one user: then nothing of the round was there to evict.
                others = users & ((1 << np.int64(place)) - 1)
                while others:
                    other = first + lowest_bit(others) * RECORD
                    others &= others - 1
                    again |= users if m[other + HERE] == left >> 8 else 0
            elif found == BYPASS:
                again |= users
    return again


@compile_part
def run_rounds(m: Words, geometry: Words, states: Table, counters: Table, turn: Integer,
               stop: Integer, first: Integer, end: Integer) -> None:
    """Run iterations [turn, stop) of an innermost loop, those that change nothing at once.

    While no stream leaves its line, every round touches the same lines in the same order; after a
    round that evicts none of them further ones change nothing: what a hit does depends on its way
    only. Where a stream comes or goes, only the sets it leaves and enters can change.
    """
    nexts, at, bit, upcoming = np.uint64(m[NEXTS]), first, 1, stop
    while at < end:
        _, following = enter_line(m, geometry, at, bit, turn, stop)
        m[nexts], upcoming = following, min(upcoming, following)
        nexts += ONE
        bit <<= 1
        at += RECORD
    stirred = bit - 1
    while True:
        again = 0
        for policy in range(len(states)):
            again |= touch_stirred(m, geometry, states[policy], counters[policy], first, stirred,
                                   geometry[POLICY + policy])
        turn = turn + 1 if again else upcoming
        if turn >= stop:
            break
        stirred = again
        nexts, at, bit, upcoming = np.uint64(m[NEXTS]), first, 1, stop
        while at < end:
            following = m[nexts]
            if following <= turn:
                stirred |= leave_line(m, at, bit)
                users, following = enter_line(m, geometry, at, bit, turn, stop)
                stirred |= users
                m[nexts] = following
            upcoming = min(upcoming, following)
            nexts += ONE
            bit <<= 1
            at += RECORD
    at = first
    while at < end:
        if m[at + HERE] >= 0:
            m[np.uint64(m[USERS] + m[at + HOME])] = 0
        at += RECORD


@compile_part
def shift_streams(m: Words, amount: Integer, depth: Integer, first: Integer, last: Integer) -> None:
    """Move streams and their guards by a number of iterations of the loop at a depth."""
    depths = np.uint64(m[DEPTHS])
    step = np.uint64(m[STEPS]) + first * depths + depth
    at, end = np.uint64(m[RECORDS]) + first * RECORD, np.uint64(m[RECORDS]) + last * RECORD
    words = np.uint64(m[GUARD_WORDS])
    guard = np.uint64(m[GUARDS]) + np.uint64(m[at + FIRST_GUARD]) * words
    while at < end:
        m[at + ADDRESS] += amount * m[step]
        at += RECORD
        step += depths
    last_guard = np.uint64(m[GUARDS]) + np.uint64(m[end - RECORD + LAST_GUARD]) * words
    while guard < last_guard:
        m[guard] += amount * m[guard + TWO + depth]
        guard += words


@compile_part
def run_innermost(m: Words, geometry: Words, states: Table, counters: Table, op: Integer) -> None:
    """Run a loop that holds nothing but streams."""
    extent = m[op + EXTENT]
    first, last = np.uint64(m[op + FIRST]), np.uint64(m[op + LAST])
    at, end = np.uint64(m[RECORDS]) + first * RECORD, np.uint64(m[RECORDS]) + last * RECORD
    if m[op + PARTNER]:
        set_ranges(m, 0, extent, np.uint64(m[op + DEPTH]), at, end)
    if extent == 1 or m[IN_ORDER] or last - first > MOST_STREAMS:
        for policy in range(len(states)):
            run_in_order(m, geometry, states[policy], counters[policy], 0, extent, at, end,
                         geometry[POLICY + policy])
    else:
        run_rounds(m, geometry, states, counters, 0, extent, at, end)


@compile_part
def enter_loop(m: Words, op: Integer) -> None:
    """Enter a loop."""
    depth = np.uint64(m[op + DEPTH])
    loop = np.uint64(m[LOOPS]) + depth * LOOP_WORDS
    m[loop + TURN], m[loop + STOP], m[loop + BEFORE] = 0, m[op + EXTENT], m[CHANGES]


@compile_part
def close_loop(m: Words, op: Integer) -> bool:
    """Go on with a loop; return whether its body is to be run again.

    Where an iteration only hit, and all others are as it is, they change nothing.
    """
    depth = np.uint64(m[op + DEPTH])
    loop = np.uint64(m[LOOPS]) + depth * LOOP_WORDS
    turn, before = m[loop + TURN] + 1, m[loop + BEFORE]
    m[loop + TURN], m[loop + BEFORE] = turn, m[CHANGES]
    again: bool = turn < m[loop + STOP] and not (m[op + STILL] and m[CHANGES] == before)
    shift_streams(m, 1 if again else 1 - turn, depth, np.uint64(m[op + FIRST]),
                  np.uint64(m[op + LAST]))
    return again


@compile_part
def run_program(m: Words, geometry: Words, states: Table, counters: Table) -> None:
    """Run a program."""
    code: Integer = np.uint64(m[CODE])
    op = code
    while op < np.uint64(m[CODE_END]):
        operation, following = m[op], op + OPERATION_WORDS
        if operation == INNERMOST:
            run_innermost(m, geometry, states, counters, op)
        elif operation == LOOP:
            enter_loop(m, op)
        elif close_loop(m, op):
            following = code + np.uint64(m[op + PARTNER] + 1) * OPERATION_WORDS
        op = following


@compile_part
def mark_streams(m: Words, geometry: Words, owners: Words) -> None:
    """Mark the streams of a program with the owners of their operands."""
    at, end = np.uint64(m[RECORDS]), np.uint64(m[STEPS])
    while at < end:
        owner = owners[np.uint64(m[at + OPERAND])]
        m[at + MARK] = owner << 1 | (m[at + WRITE] & geometry[BACK])
        at += RECORD


@compile_kept
def run_programs(starts: Words, m: Words, owners: Words, geometry: Words, states: Table,
                 counters: Table) -> None:
    """Run programs through a cache, one behind the other.

    Parameters
    ----------
    starts : ndarray of int64, (programs + 1,)
        First operand of each.
    m : ndarray of int64
        The programs; changed.
    owners : ndarray of int64, (operands,)
        Number of each operand's owner.
    geometry : ndarray of int64
        Of the cache, as `cache_words` has it.
    state : ndarray of int64
        Of the cache, as `cache_words` has it; changed.
    counters : ndarray of int64
        Of each program fills for loads and for stores and bypasses by operand; touches; lines that
        left and those written back by owner; added to.
    """
    at, programs = ZERO, len(starts) - 1
    shared = (counters.shape[1] - 3 * starts[programs]) // programs
    for program in range(programs):
        first, last = starts[program], starts[program + 1]
        words = m[at:]
        words[COUNTERS] = 3 * first + program * shared
        words[LEAVING] = words[COUNTERS] + 3 * (last - first) + 1
        mark_streams(words, geometry, owners[first:])
        run_program(words, geometry, states, counters)
        at += np.uint64(words[SIZE])
