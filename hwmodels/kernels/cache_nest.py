"""Numba: run a flattened loop nest through a set-associative cache.

The state is one int64 array: the LFSR, seven words unused, `sets x ways` entries, then one word
per set (tree bits of pseudo-LRU, next victim of round robin and FIFO). An entry is
line << 8 | owner << 1 | dirty, -1 when empty; under LRU a set's entries are kept in order of
recency, most recent first. Indices are uint64: a signed index costs a test for negatives.
"""

from typing import Any

import numba
import numpy as np

# Nothing here allocates, and counting references to the arrays would cost 20 ns a call.
ENTRY: dict[str, Any] = {"cache": True, "_nrt": False}
INLINE: dict[str, Any] = {"forceinline": True, "_nrt": False}

ONE, ENTRIES = np.uint64(1), np.uint64(8)
LRU, PLRU, ROUND_ROBIN, LFSR = 0, 1, 2, 3
HIT, BYPASS, FILL = -4, -3, -1
LOOP, END, LEAF, PHASE, PHASE_END = 0, 1, 2, 3, 4
FULL, MIDDLE = -1, -2
READ_MISSES, WRITE_MISSES, BYPASSES = 0, 1, 2
NEVER = 1 << 62
CROWD = 6
"""Streams from which on a leaf is run in full rounds: finding who may be left out costs more."""

RECORD = np.uint64(16)
"""Words per stream: what the program says, and where the stream is."""
(ADDRESS, STEP, LOG_STEP, WRITE, MARK, OPERAND, FOLLOWS, LOW, HIGH, DUE, LINE, FOUND, PLACE, MOVED,
 PASSING, ACTIVE) = np.arange(16, dtype=np.uint64)
FIRST, LAST, LEAD, REACH, KIND, LOWEST, HIGHEST, MEETS = range(8)
"""Words per group."""
SPLIT = 16
"""Iterations of a leaf that are tried a quarter at a time when their streams meet."""
MANY = 12
"""Groups from which on it is not asked which of them meet."""


@numba.njit(**INLINE)
def set_of(line, sets):
    """Set a line maps to."""
    if sets & (sets - 1) == 0:
        return line & (sets - 1)
    return line % sets


@numba.njit(**INLINE)
def touch_lru(state, base, ways, entry, write, allocate):
    """Touch a line under LRU: HIT, BYPASS, or the entry that had to leave (FILL: none)."""
    line = entry >> 8
    held = state[base]
    if held >> 8 == line:
        if write:
            state[base] = entry
        return HIT
    end = base + ways
    at = base + ONE
    if write and not allocate:
        while at < end and state[at] >> 8 != line:
            at += ONE
        if at == end:
            return BYPASS
        at = base + ONE
    # Entries move down one by one until the line is found or the last has no place left.
    while at < end:
        moved = held
        held = state[at]
        state[at] = moved
        if held >> 8 == line:
            state[base] = entry if write else held
            return HIT
        at += ONE
    state[base] = entry
    return held


@numba.njit(**INLINE)
def point_away(bits, way, ways):
    """Tree bits after a touch of a way: every node above it points to its other half."""
    node = 1
    half = ways >> 1
    while half:
        if way & half:
            bits &= ~(1 << node)
            node = 2 * node + 1
        else:
            bits |= 1 << node
            node = 2 * node
        half >>= 1
    return bits


@numba.njit(**INLINE)
def choose_victim(state, word, ways, policy):
    """Way a full set gives up; steps the counter or register of round robin and LFSR."""
    if policy == PLRU:
        bits = state[word]
        node = 1
        while node < ways:
            node = 2 * node + ((bits >> node) & 1)
        return node - ways
    if policy == ROUND_ROBIN:
        victim = state[word]
        state[word] = victim + 1 if victim + 1 < ways else 0
        return victim
    register = state[0]
    register = (register >> 1) ^ (0xB400 if register & 1 else 0)
    state[0] = register
    return register % ways


@numba.njit(**INLINE)
def touch_placed(state, base, word, ways, entry, write, allocate, policy):
    """Touch a line under a policy that leaves lines in their ways; results as `touch_lru`."""
    line = entry >> 8
    at = base
    end = base + np.uint64(ways)
    while at < end and state[at] >> 8 != line:
        at += ONE
    result = HIT
    if at < end:
        if write:
            state[at] = entry
    else:
        if write and not allocate:
            return BYPASS
        at = base
        while at < end and state[at] >= 0:
            at += ONE
        if at == end:
            at = base + np.uint64(choose_victim(state, word, ways, policy))
        result = state[at]
        state[at] = entry
    if policy == PLRU:
        state[word] = point_away(state[word], np.int64(at - base), ways)
    return result


@numba.njit(**INLINE)
def touch(state, sets, ways, policy, allocate, entry, write):
    """Look a line up and update the cache: HIT, BYPASS (a store that does not allocate), FILL,
    or the entry evicted. `entry` is what a fill or store leaves."""
    index = np.uint64(set_of(entry >> 8, sets))
    base = ENTRIES + index * np.uint64(ways)
    if policy == LRU:
        return touch_lru(state, base, np.uint64(ways), entry, write, allocate)
    word = ENTRIES + np.uint64(sets) * np.uint64(ways) + index
    return touch_placed(state, base, word, ways, entry, write, allocate, policy)


@numba.njit(**INLINE)
def count_miss(misses, leaving, operand, write, left):
    """Count a fill and the line that left for it."""
    misses[operand, WRITE_MISSES if write else READ_MISSES] += 1
    if left >= 0:
        leaving[(left >> 1) & 127, 0] += 1
        leaving[(left >> 1) & 127, 1] += left & 1


@numba.njit(**INLINE)
def guarded_range(extent, depth, first, last, values, limits, guard_steps):
    """Iterations [low, high) of a loop in which all guards of a stream hold."""
    low, high = 0, extent
    for guard in range(first, last):
        step = guard_steps[guard, depth]
        value = values[guard]
        limit = limits[guard]
        if step == 0:
            if value < 0 or value >= limit:
                high = low
        elif step == 1:
            low, high = max(low, -value), min(high, limit - value)
        elif step > 0:
            low = max(low, -(value // step))
            high = min(high, -((value - limit) // step))
        else:
            low = max(low, -((value + 1 - limit) // step))
            high = min(high, value // -step + 1)
    return low, high


@numba.njit(**INLINE)
def line_run(address, line, shift, step, log_step):
    """Iterations for which a stream stays in its line."""
    if step == 0:
        return NEVER
    if step > 0:
        room = ((line + 1) << shift) - address + step - 1
        return room >> log_step if log_step >= 0 else room // step
    return (address - (line << shift)) // -step + 1


@numba.njit(**INLINE)
def run_lines(start, stop, first, last, grouped, order, work, sets, ways, shift, policy, allocate,
              state, misses, leaving):
    """Run iterations [start, stop) of streams, one stream after the other, line by line.

    Grouped, streams come from `order`, and lines a group has touched are not touched again.
    """
    covered = line = -1
    for position in range(first, last):
        at = np.uint64(order[position] if grouped else position) * RECORD
        turn, final = max(start, work[at + LOW]), min(stop, work[at + HIGH])
        if turn < final:
            before = line
            step = work[at + STEP]
            address = work[at + ADDRESS] + turn * step
            line = address >> shift
            further = final - turn - 1
            stride = 0
            if -(1 << shift) <= step <= 1 << shift:
                further = ((address + further * step) >> shift) - line
                stride = 1
                if grouped:
                    high = line + max(0, further)
                    line = max(line + min(0, further), covered + 1)
                    further = high - line
                    covered = max(covered, high)
                elif further < 0:
                    stride, further = -1, -further
            if work[at + FOLLOWS] and line == before and further == 0 and not grouped:
                further = -1
            write, mark = work[at + WRITE], work[at + MARK]
            while further >= 0:
                left = touch(state, sets, ways, policy, allocate, line << 8 | mark, write)
                if left == BYPASS:
                    misses[work[at + OPERAND], BYPASSES] += 1
                elif left != HIT:
                    count_miss(misses, leaving, work[at + OPERAND], write, left)
                further -= 1
                if further >= 0:
                    address += step
                    line = line + stride if stride else address >> shift


@numba.njit(**INLINE)
def find_ranges(start, stop, first, last, groups, work, shift):
    """Note the lowest and highest line each group may touch in iterations [start, stop)."""
    for group in range(first, last):
        lead = np.uint64(groups[group, LEAD]) * RECORD
        address = work[lead + ADDRESS]
        from_, to = start * work[lead + STEP], (stop - 1) * work[lead + STEP]
        groups[group, LOWEST] = (address + min(from_, to)) >> shift
        groups[group, HIGHEST] = (address + groups[group, REACH] + max(from_, to)) >> shift
        groups[group, MEETS] = 0


@numba.njit(**INLINE)
def find_meetings(first, last, groups, sets, allocate, policy):
    """Mark groups that share a set with another one but for lines touched in one manner.

    Streams of unmarked groups may run one after the other: a set then sees the same touches in
    the same order, but for touches in a row of one line. An LFSR couples all sets: all groups
    are marked, and so they are when asking costs too much. Returns whether any is marked.
    """
    marked = policy == LFSR or last - first > MANY
    if marked:
        for group in range(first, last):
            groups[group, MEETS] = 1
        return True
    for group in range(first, last):
        low, high = groups[group, LOWEST], groups[group, HIGHEST]
        if high - low >= sets or (groups[group, KIND] & 1 and not allocate):
            groups[group, MEETS] = 1
        for other in range(first, group):
            before, after = groups[other, LOWEST], groups[other, HIGHEST]
            if (set_of(low - before, sets) <= after - before
                    or set_of(before - low, sets) <= high - low) and (
                    groups[group, KIND] != groups[other, KIND]
                    or max(high, after) - min(low, before) >= sets):
                groups[group, MEETS] = groups[other, MEETS] = 1
        marked |= groups[group, MEETS] == 1
    return marked


@numba.njit(**INLINE)
def are_present(first, last, groups, state, sets, ways):
    """Whether all lines of all groups are in the cache, and no two store groups share one."""
    for group in range(first, last):
        low, high = groups[group, LOWEST], groups[group, HIGHEST]
        for other in range(first, group):
            if (groups[group, KIND] & groups[other, KIND] & 1
                    and max(low, groups[other, LOWEST]) <= min(high, groups[other, HIGHEST])):
                return False
        for line in range(low, high + 1):
            at = ENTRIES + np.uint64(set_of(line, sets)) * np.uint64(ways)
            end = at + np.uint64(ways)
            while at < end and state[at] >> 8 != line:
                at += ONE
            if at == end:
                return False
    return True


@numba.njit(**INLINE)
def enter_lines(turn, stop, begin, end, work, sets, shift, recency):
    """Move the streams that are due to their next line; return the iteration of the next event.

    `FOUND` is the line a stream touches from now on, -1 for none; `PLACE` what two touches that
    do not commute share: the set under recency policies, else the line.
    """
    upcoming = stop
    line = -1
    at = begin
    while at < end:
        before = line
        if work[at + DUE] == turn:
            if turn == work[at + HIGH]:
                work[at + LINE] = -1
                work[at + DUE] = NEVER
            else:
                step = work[at + STEP]
                address = work[at + ADDRESS] + turn * step
                work[at + LINE] = address >> shift
                work[at + DUE] = min(work[at + HIGH], turn + line_run(
                    address, address >> shift, shift, step, work[at + LOG_STEP]))
        upcoming = min(upcoming, work[at + DUE])
        line = work[at + LINE]
        now = -1 if work[at + FOLLOWS] and line == before else line
        work[at + MOVED] = now != work[at + FOUND]
        if now != work[at + FOUND]:
            work[at + FOUND] = now
            work[at + PLACE] = set_of(now, sets) if recency and now >= 0 else now
            work[at + PASSING] = 0
        at += RECORD
    return upcoming


@numba.njit(**INLINE)
def any_clash(every, begin, end, work):
    """Whether a stream that moved (or any) shares its place with another one."""
    at = begin
    while at < end:
        if (every or work[at + MOVED]) and work[at + FOUND] >= 0:
            place = work[at + PLACE]
            other = begin
            while other < end:
                if work[other + PLACE] == place and other != at:
                    return True
                other += RECORD
        at += RECORD
    return False


@numba.njit(**INLINE)
def run_events(start, stop, begin, end, work, sets, ways, shift, policy, allocate, state, misses,
               leaving):
    """Run iterations [start, stop) of a leaf's active streams from event to event.

    `run_program` says why that is exact.
    """
    recency = policy in (LRU, PLRU)
    active = 0
    turn = stop
    at = begin
    while at < end:
        work[at + LINE] = work[at + FOUND] = work[at + PLACE] = -1
        work[at + PASSING] = 0
        work[at + DUE] = NEVER
        due = max(start, work[at + LOW])
        if work[at + ACTIVE] and due < min(stop, work[at + HIGH]):
            work[at + DUE] = due
            turn = min(turn, due)
            active += 1
        at += RECORD
    full, again, bypassed = False, False, False
    while turn < stop:
        upcoming = enter_lines(turn, stop, begin, end, work, sets, shift, recency)
        settle = full or again
        full = active > CROWD or any_clash(settle, begin, end, work)
        everyone = full or settle or bypassed
        while True:
            again, filled, bypassed = False, False, False
            at = begin
            while at < end:
                if work[at + FOUND] >= 0 and (everyone or work[at + MOVED]):
                    write = work[at + WRITE]
                    left = touch(state, sets, ways, policy, allocate,
                                 work[at + FOUND] << 8 | work[at + MARK], write)
                    work[at + PASSING] = left == BYPASS
                    if left == BYPASS:
                        misses[work[at + OPERAND], BYPASSES] += 1
                        bypassed = True
                    elif left != HIT:
                        filled = True
                        count_miss(misses, leaving, work[at + OPERAND], write, left)
                        other = begin
                        while left >= 0 and other < end and not again:
                            again = work[other + FOUND] == left >> 8
                            other += RECORD
                        everyone |= again
                at += RECORD
            turn += 1
            if turn >= upcoming or not (again or (filled and bypassed)):
                break
            everyone = True
        if bypassed:
            at = begin
            while at < end:
                misses[work[at + OPERAND], BYPASSES] += work[at + PASSING] * (upcoming - turn)
                at += RECORD
        turn = upcoming


@numba.njit(**INLINE)
def run_leaf(extent, chunk, begin, end, first, last, first_group, last_group, groups, order, work,
             sets, ways, shift, policy, allocate, state, misses, leaving):
    """Run a leaf, `chunk` iterations at a time, each the fastest way that is exact."""
    single = last - first == 1 and (allocate or not work[begin + WRITE])
    placed = policy in (ROUND_ROBIN, LFSR)
    start, size = 0, chunk
    while start < extent:
        stop = extent if single else min(extent, start + size)
        grouped = stop - start > 1 and not single
        idle, marked = False, False
        if grouped:
            find_ranges(start, stop, first_group, last_group, groups, work, shift)
            idle = placed and are_present(first_group, last_group, groups, state, sets, ways)
            marked = not idle and find_meetings(first_group, last_group, groups, sets, allocate,
                                                policy)
            if marked and stop - start >= SPLIT:
                # Fewer iterations reach fewer sets.
                size = (stop - start) // 4
                continue
        # All streams in program order, or each group that meets no other.
        group = first_group
        while group < last_group:
            position, position_end = first, last
            if grouped:
                position, position_end = groups[group, FIRST], groups[group, LAST]
                if marked:
                    for place in range(position, position_end):
                        work[np.uint64(order[place]) * RECORD + ACTIVE] = groups[group, MEETS]
                if groups[group, MEETS] or (idle and not groups[group, KIND] & 1):
                    position_end = position
            run_lines(start, stop, position, position_end, grouped, order, work, sets, ways,
                      shift, policy, allocate, state, misses, leaving)
            group = group + 1 if grouped else last_group
        if marked:
            run_events(start, stop, begin, end, work, sets, ways, shift, policy, allocate, state,
                       misses, leaving)
        start = stop
        size = min(chunk, 2 * size)


@numba.njit(**INLINE)
def shift_streams(amount, depth, first, last, work, steps, values, guard_steps, guard_ranges):
    """Move streams and their guards by a number of iterations of the loop at a depth."""
    at = np.uint64(first) * RECORD
    for stream in range(first, last):
        work[at] += amount * steps[stream, depth]
        at += RECORD
    for guard in range(guard_ranges[first, 0], guard_ranges[last - 1, 1]):
        values[guard] += amount * guard_steps[guard, depth]


@numba.njit(**ENTRY)
def run_program(code, work, steps, values, limits, guard_steps, guard_ranges, groups, order, rows,
                cursors, loops, owners, geometry, by_access, state, misses, leaving):
    """Run a program through a cache.

    Parameters
    ----------
    code, work, steps, values, limits, guard_steps, guard_ranges, groups, order, rows, cursors
        A `Program`, its records flat; `work`, `values`, `groups` and `cursors` are changed.
    loops : ndarray of int64, (depths, 3)
        Room for index, start and count of each loop.
    owners : ndarray of int64, (operands,)
        Owner number of each operand.
    geometry : ndarray of int64
        Sets, ways, log2 of the line, policy, write-back, stores allocate.
    by_access : bool
        Look every access up, instead of every run of accesses in the same lines.
    state : ndarray of int64
        Changed in place.
    misses : ndarray of int64, (operands, 3)
        Added to: read misses, write misses that allocate, stores that bypass.
    leaving : ndarray of int64, (owners, 2)
        Added to: evictions, write-backs.

    Notes
    -----
    A leaf is run from event to event: an event is an iteration where a stream enters another
    line. Between events every round of the leaf touches the same lines in the same order, so
    once a round evicts none of them, further rounds change nothing (any policy here: what a hit
    does depends on its way only). At an event only the streams that moved are touched when the
    touches of the others would change nothing: under recency policies when no two streams of
    the round share a set, else when none of their lines was evicted.
    """
    sets, ways, shift = geometry[0], geometry[1], geometry[2]
    policy, back, allocate = geometry[3], geometry[4], geometry[5]
    for stream in range(len(steps)):
        at = np.uint64(stream) * RECORD
        work[at + MARK] = owners[work[at + OPERAND]] << 1 | (work[at + WRITE] & back)
    place, row = 0, 0
    while place < len(code):
        operation, extent, depth = code[place, 0], code[place, 1], code[place, 2]
        first, last, partner = code[place, 3], code[place, 4], code[place, 5]
        start = 0
        if extent == FULL:
            start, extent = rows[row, 0], 1
        elif extent == MIDDLE:
            start, extent = rows[row, 1], rows[row, 2]
        if operation == LEAF:
            if start:
                shift_streams(start, depth, first, last, work, steps, values, guard_steps,
                              guard_ranges)
            begin, end = np.uint64(first) * RECORD, np.uint64(last) * RECORD
            at = begin
            for stream in range(first, last):
                work[at + LOW], work[at + HIGH] = 0, extent
                if partner:
                    work[at + LOW], work[at + HIGH] = guarded_range(
                        extent, depth, guard_ranges[stream, 0], guard_ranges[stream, 1], values,
                        limits, guard_steps)
                at += RECORD
            run_leaf(extent, 1 if by_access else code[place, 8], begin, end, first, last,
                     code[place, 6], code[place, 7], groups, order, work, sets, ways, shift,
                     policy, allocate, state, misses, leaving)
            if start:
                shift_streams(-start, depth, first, last, work, steps, values, guard_steps,
                              guard_ranges)
        elif operation == LOOP:
            loops[depth, 0], loops[depth, 1], loops[depth, 2] = 0, start, extent
            if extent == 0:
                place = partner
            elif start:
                shift_streams(start, depth, first, last, work, steps, values, guard_steps,
                              guard_ranges)
        elif operation == END:
            loops[depth, 0] += 1
            again = loops[depth, 0] < loops[depth, 2]
            shift_streams(1 if again else 1 - loops[depth, 2] - loops[depth, 1], depth, first,
                          last, work, steps, values, guard_steps, guard_ranges)
            if again:
                place = partner
        elif operation == PHASE:
            row = cursors[depth]
            cursors[depth] += 1
        elif not rows[row, 3]:
            place = partner - 1
        place += 1
