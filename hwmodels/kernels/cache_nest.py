"""Numba: run a flattened loop nest through a set-associative cache.

Everything lies in one int64 array `m`, cut by the offsets of its header: with one array the
compiler keeps its address in a register, and indices are uint64, for a signed index costs a test
for negatives. A cache entry is line << 8 | owner << 1 | dirty, -1 when empty; under LRU the
entries of a set are kept most recent first.
"""

from typing import Any

import numba
import numpy as np

# Nothing here allocates, and counting references to an array would cost 20 ns a call.
INLINE: dict[str, Any] = {"forceinline": True, "error_model": "numpy", "_nrt": False}
PLAIN: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
CACHED: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}

# Header: the LFSR, geometry, then where each part begins.
(REGISTER, SETS, MASK, WAYS, SHIFT, POLICY, ALLOCATE, STAMP, SET_WORDS, CODE, CODE_END, WORK,
 STEPS, DEPTHS, GUARDS, GUARD_WORDS, ROWS, CURSORS, LOOPS, LISTS, ACTIVE, MISSES, LEAVING, CLASHES,
 KNOWN, SET_0, CLOCK, NOTES, DEEP) = np.arange(29, dtype=np.uint64)
"""MASK is SETS - 1 where that is a mask, else -1; STAMP counts tries, CLOCK touches."""
TREE = np.uint64(32)
"""Behind it, per way: bits of the tree a touch keeps, bits it sets."""
SWEEP, LRU, PLRU, ROUND_ROBIN, LFSR = -1, 0, 1, 2, 3
"""SWEEP: LRU for every number of ways at once, counting how deep each touch finds its line."""

# A set: what the try of stamp SEEN noted, when it was last filled, its policy's word, entries,
# times of last touch (LRU).
SEEN, LINE, KIND, PART, FLAGS, FILLED, WORD, STORER, ENTRY = np.arange(9, dtype=np.uint64)
# What a loop knows of a set: stamps of being listed, moved in and used by still blocks, and those.
LISTED, MOVED, STILL, STILL_LINE, STILL_BLOCK, KNOWN_WORDS = np.arange(6, dtype=np.uint64)
SEVERAL, TURNED, MIXED, STORES, ABSENT = 1, 2, 4, 8, 16

# A stream or block.
(ADDRESS, STEP, LOG_STEP, REACH, WRITE, MARK, OPERAND, FOLLOWS, B_KIND, B_PART, LOW, HIGH, HERE,
 FIRST_GUARD, LAST_GUARD) = np.arange(15, dtype=np.uint64)
RECORD = np.uint64(16)

# An operation, and a loop in progress.
(OPERATION, EXTENT, DEPTH, FIRST, LAST, PARTNER, FIRST_BLOCK, FIRST_STILL,
 CHUNK) = np.arange(9, dtype=np.uint64)
OPERATION_WORDS = np.uint64(9)
(TURN, STOP, SIZE, POSITION, TRIED, ALLOWED, OWN, ENTERED, CLEAN) = np.arange(9, dtype=np.uint64)
LOOP_WORDS = np.uint64(9)
LOOP, END, LEAF, PHASE, PHASE_END = 0, 1, 2, 3, 4
FULL, MIDDLE = -1, -2

HIT, BYPASS, FILL = -4, -3, -1
NEVER = 1 << 60
ANY = 1 << 30
"""Part of a block that several parts of a loop's body make up."""
SPLIT = 8
"""Iterations of a loop that are tried a quarter at a time when many lines clash."""
PATIENCE = 8
"""Tries without a clash after which twice as many iterations are tried."""
ZERO, ONE, TWO, THREE, FOUR = np.arange(5, dtype=np.uint64)


@numba.njit(**INLINE)
def set_of(m, line):
    """Set a line maps to."""
    return np.uint64(line & m[MASK] if m[MASK] >= 0 else line % m[SETS])


@numba.njit(**INLINE)
def record_of(m, index):
    """Where the record of a set begins."""
    return np.uint64(m[SET_0]) + index * np.uint64(m[SET_WORDS])


@numba.njit(**INLINE)
def find_way(m, base, line):
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


@numba.njit(**INLINE)
def choose_victim(m, base, word):
    """Way that gives way to a new line: the first empty one, else the policy's choice."""
    ways = np.uint64(m[WAYS])
    way = ZERO
    while way < ways and m[base + way] >= 0:
        way += ONE
    if way < ways:
        return way
    if m[POLICY] == LRU:
        way, oldest = ZERO, ONE
        while oldest < ways:
            way = oldest if m[base + ways + oldest] < m[base + ways + way] else way
            oldest += ONE
        return way
    if m[POLICY] == PLRU:
        node = 1
        while node < m[WAYS]:
            node = 2 * node + ((m[word] >> node) & 1)
        return np.uint64(node) - ways
    if m[POLICY] == ROUND_ROBIN:
        way = np.uint64(m[word])
        m[word] = np.int64(way + ONE if way + ONE < ways else ZERO)
        return way
    m[REGISTER] = (m[REGISTER] >> 1) ^ (0xB400 if m[REGISTER] & 1 else 0)
    return np.uint64(m[REGISTER]) % ways


@numba.njit(**INLINE)
def look_up(m, base, word, entry, write):
    """Look a line up and update the set: HIT, BYPASS (a store that does not allocate), FILL, or
    the entry evicted. `entry` is what a fill or a store leaves."""
    ways = np.uint64(m[WAYS])
    m[CLOCK] += 1
    way = find_way(m, base, entry >> 8)
    result = HIT
    if way < ways:
        if write:
            m[base + way] = entry
    else:
        if write and not m[ALLOCATE]:
            return BYPASS
        way = choose_victim(m, base, word)
        result = m[base + way]
        m[base + way] = entry
    if m[POLICY] == LRU:
        m[base + ways + way] = m[CLOCK]
    elif m[POLICY] == PLRU:
        m[word] = (m[word] & m[TREE + TWO * way]) | m[TREE + TWO * way + ONE]
    return result


@numba.njit(**INLINE)
def sink(m, base, entry, counts):
    """Bring a line to the front of its set and count where it was (Mattson's stack)."""
    ways = np.uint64(m[WAYS])
    at, moved = base, entry
    while at < base + ways:
        held = m[at]
        m[at] = moved
        if held >> 8 == entry >> 8:
            break
        moved = held
        at += ONE
    m[counts + at - base] += 1


@numba.njit(**INLINE)
def touch(m, line, s, at):
    """Touch a line of set `s` for the stream or block `at`, and count.

    Returns
    -------
    int
        HIT, BYPASS (a store that does not allocate), FILL, or the entry evicted.
    """
    write = m[at + WRITE]
    entry = line << 8 | m[at + MARK]
    if m[POLICY] == SWEEP:
        m[CLOCK] += 1
        sink(m, s + ENTRY, entry, np.uint64(m[DEEP]) + np.uint64(m[at + B_KIND]) * np.uint64(
            m[WAYS] + 1))
        return HIT
    left = look_up(m, s + ENTRY, s + WORD, entry, write)
    if left != HIT:
        counts = np.uint64(m[MISSES]) + THREE * np.uint64(m[at + OPERAND])
        if left == BYPASS:
            m[counts + TWO] += 1
        else:
            m[counts + np.uint64(write)] += 1
            m[s + FILLED] = m[STAMP]
        if left >= 0:
            counts = np.uint64(m[LEAVING]) + TWO * np.uint64((left >> 1) & 127)
            m[counts] += 1
            m[counts + ONE] += left & 1
    return left


@numba.njit(**PLAIN)
def set_ranges(m, start, stop, depth, at, end):
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


@numba.njit(**INLINE)
def note_line(m, line, index, at, single, depth):
    """Note a line a block touches; list its set, and stamp its clash where order tells.

    Order does not tell in a set that sees one line only, touched in one manner or in manners
    that follow each other; nor, where hits change nothing, in one whose lines are all present.
    An LFSR couples the sets: there order tells wherever a line is absent.
    """
    s, stamp = record_of(m, index), m[STAMP]
    known = np.uint64(m[KNOWN]) + (depth * np.uint64(m[SETS]) + index) * KNOWN_WORDS
    kind, part = m[at + B_KIND], m[at + B_PART]
    flags = 0
    if m[s + SEEN] == stamp:
        flags = m[s + FLAGS]
        if line != m[s + LINE]:
            flags |= SEVERAL
        if kind != m[s + KIND]:
            flags |= TURNED
        if flags & TURNED and not (single and (
                m[s + PART] < part < ANY or (part == m[s + PART] and kind == m[s + KIND]))):
            flags |= MIXED | (STORES if kind & 1 and m[s + STORER] not in (kind, -1) else 0)
        part = max(part, m[s + PART])
    else:
        m[s + STORER] = -1
        m[s + SEEN] = stamp
        if m[known + LISTED] != stamp:
            m[known + LISTED] = stamp
            listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
            m[listed] += 1
            m[listed + np.uint64(m[listed])] = np.int64(index)
    told = flags & (SEVERAL | MIXED)
    if m[POLICY] >= ROUND_ROBIN:
        if find_way(m, s + ENTRY, line) == np.uint64(m[WAYS]):
            flags |= ABSENT
        told = flags & STORES or (flags & ABSENT and (m[POLICY] == LFSR or told))
    m[s + LINE], m[s + KIND], m[s + PART], m[s + FLAGS] = line, kind, part, flags
    if kind & 1:
        m[s + STORER] = kind
    m[known + MOVED] = stamp
    clash = clash_of(m, depth) + index
    if told and m[clash] != stamp:
        m[clash] = stamp
        return 1
    return 0


@numba.njit(**INLINE)
def clash_of(m, depth):
    """Where the stamps of the sets that the loop at a depth leaves to its body begin."""
    return np.uint64(m[CLASHES]) + (depth + ONE) * np.uint64(m[SETS])


@numba.njit(**PLAIN)
def keep_listed(m, last, depth):
    """Keep on a loop's list the sets its blocks moved in, or that were filled, since `last`."""
    listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
    count = ZERO
    for place in range(ONE, np.uint64(m[listed]) + ONE):
        index = np.uint64(m[listed + place])
        known = np.uint64(m[KNOWN]) + (depth * np.uint64(m[SETS]) + index) * KNOWN_WORDS
        if m[known + MOVED] >= last or m[record_of(m, index) + FILLED] >= last:
            count += ONE
            m[listed + count] = np.int64(index)
            m[known + LISTED] = m[STAMP]
    m[listed] = np.int64(count)


@numba.njit(**PLAIN)
def note_still(m, at, end, entered, depth, allowed, own):
    """Note, for a loop entered at a stamp, what the blocks it does not move leave in each set."""
    while at < end:
        line, high = m[at + ADDRESS] >> m[SHIFT], (m[at + ADDRESS] + m[at + REACH]) >> m[SHIFT]
        while line <= high:
            index = set_of(m, line)
            if m[allowed + index] == own:
                known = np.uint64(m[KNOWN]) + (depth * np.uint64(m[SETS]) + index) * KNOWN_WORDS
                if m[known + STILL] != entered:
                    m[known + STILL], m[known + STILL_LINE] = entered, line
                    m[known + STILL_BLOCK] = np.int64(at)
                elif m[known + STILL_LINE] != line or (
                        m[np.uint64(m[known + STILL_BLOCK]) + B_KIND] != m[at + B_KIND]):
                    m[known + STILL_LINE] = -1
            line += 1
        at += RECORD


@numba.njit(**PLAIN)
def settle_still(m, entered, depth, note):
    """Deal with the listed sets that still blocks use, too: some clash, in others a line is noted.

    In a set that no block moved in, neither now nor in the iterations before, and that was not
    filled in those, all touches were hits and are made again: they change nothing.
    """
    clashed = 0
    stamp, clash = m[STAMP], clash_of(m, depth)
    listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
    for place in range(ONE, np.uint64(m[listed]) + ONE):
        index = np.uint64(m[listed + place])
        known = np.uint64(m[KNOWN]) + (depth * np.uint64(m[SETS]) + index) * KNOWN_WORDS
        if m[known + STILL] == entered and m[clash + index] != stamp:
            line, s = m[known + STILL_LINE], record_of(m, index)
            if m[s + SEEN] == stamp or line < 0 or (
                    m[POLICY] == LFSR
                    and find_way(m, s + ENTRY, line) == np.uint64(m[WAYS])):
                m[clash + index] = stamp
                clashed += 1
            else:
                m[note], m[note + ONE], m[note + TWO] = line, np.int64(index), m[
                    known + STILL_BLOCK]
                m[s + FLAGS] = ABSENT
                note += THREE
    return clashed, note


@numba.njit(**PLAIN)
def run_lines(m, start, stop, at, end, allowed, own):
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


@numba.njit(**PLAIN)
def note_blocks(m, start, stop, at, end, allowed, own, depth):
    """Note the lines that iterations [start, stop) of blocks touch in sets stamped `own`.

    Returns how many sets clash, and where the list of (line, set, block) noted ends.
    """
    shift = m[SHIFT]
    single = stop - start == 1
    clashed = 0
    note = np.uint64(m[NOTES])
    while at < end:
        turn, final = max(start, m[at + LOW]), min(stop, m[at + HIGH])
        step, reach = m[at + STEP], m[at + REACH]
        address = m[at + ADDRESS] + turn * step
        if turn < final and -reach - (1 << shift) <= step <= reach + (1 << shift):
            # No line lies between the iterations: they are one.
            travel = step * (final - turn - 1)
            address += min(0, travel)
            reach += abs(travel)
            turn = final - 1
        while turn < final:
            line, high = address >> shift, (address + reach) >> shift
            while line <= high:
                index = set_of(m, line)
                if m[allowed + index] == own:
                    clashed += note_line(m, line, index, at, single, depth)
                    m[note], m[note + ONE], m[note + TWO] = line, np.int64(index), np.int64(at)
                    note += THREE
                line += 1
            address += step
            turn += 1
        at += RECORD
    return clashed, note


@numba.njit(**PLAIN)
def touch_notes(m, end, depth):
    """Touch the lines noted in sets where order does not tell."""
    stamp, clash = m[STAMP], clash_of(m, depth)
    note = np.uint64(m[NOTES])
    while note < end:
        index, at = np.uint64(m[note + ONE]), np.uint64(m[note + TWO])
        if m[clash + index] != stamp:
            s = record_of(m, index)
            # Where hits change nothing, loads of what is there need not be made.
            if m[POLICY] <= PLRU or m[at + WRITE] or m[s + FLAGS] & ABSENT:
                touch(m, m[note], s, at)
        note += THREE


@numba.njit(**PLAIN)
def choose_streams(m, start, stop, at, end, depth):
    """List the streams that come into a set whose clash is stamped; return how many."""
    shift, clash = m[SHIFT], clash_of(m, depth)
    active = np.uint64(m[ACTIVE])
    count = ZERO
    while at < end:
        turn, final = max(start, m[at + LOW]), min(stop, m[at + HIGH])
        step = m[at + STEP]
        address = m[at + ADDRESS] + turn * step
        stride = step
        if -(1 << shift) < step < 1 << shift:
            # From line to line; the last one may be looked at twice.
            stride = 1 << shift if step >= 0 else -1 << shift
            final = turn + min(final - turn, (abs(step * (final - 1 - turn)) >> shift) + 2)
        while turn < final:
            if m[clash + set_of(m, address >> shift)] == m[STAMP]:
                m[active + count] = np.int64(at)
                count += ONE
                turn = final
            address += stride
            turn += 1
        at += RECORD
    return count


@numba.njit(**INLINE)
def line_run(address, line, shift, step, log_step):
    """Iterations for which a stream stays in its line."""
    if step == 0:
        return NEVER
    if step > 0:
        room = ((line + 1) << shift) - address + step - 1
        return room >> log_step if log_step >= 0 else room // step
    return (address - (line << shift)) // -step + 1


@numba.njit(**PLAIN)
def run_rounds(m, start, stop, count, depth):
    """Run iterations [start, stop) of the active streams in program order, in clashing sets.

    While no stream enters another line, every round touches the same lines in the same order;
    after a round that evicts none of them further ones change nothing: what a hit does depends
    on its way only. (Stores allocate here.)
    """
    shift, clash = m[SHIFT], clash_of(m, depth)
    active = np.uint64(m[ACTIVE])
    turn = start
    while turn < stop:
        upcoming = stop
        again = m[POLICY] == SWEEP
        line = -1
        at = ZERO
        for place in range(count):
            before = line if np.uint64(m[active + place]) == at + RECORD else -1
            at = np.uint64(m[active + place])
            line = -1
            if turn < m[at + LOW]:
                upcoming = min(upcoming, m[at + LOW])
            elif turn < m[at + HIGH]:
                address = m[at + ADDRESS] + turn * m[at + STEP]
                line = address >> shift
                upcoming = min(upcoming, m[at + HIGH], turn + line_run(
                    address, line, shift, m[at + STEP], m[at + LOG_STEP]))
            m[at + HERE] = line
            if line < 0 or (m[at + FOLLOWS] and line == before):
                continue
            index = set_of(m, line)
            if m[clash + index] == m[STAMP]:
                left = touch(m, line, record_of(m, index), at)
                other = ZERO
                while left >= 0 and other < place and not again:
                    again = m[np.uint64(m[active + other]) + HERE] == left >> 8
                    other += ONE
        turn = turn + 1 if again else upcoming


@numba.njit(**PLAIN)
def shift_streams(m, amount, depth, first, last):
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


@numba.njit(**PLAIN)
def run_leaf(m, op, depth, turn, extent, allowed, own):
    """Run a loop that holds nothing but streams."""
    work = np.uint64(m[WORK])
    first, last = np.uint64(m[op + FIRST]) * RECORD, np.uint64(m[op + LAST]) * RECORD
    block = np.uint64(m[op + FIRST_BLOCK]) * RECORD
    chunk = m[op + CHUNK]
    if m[op + PARTNER]:
        set_ranges(m, turn, extent, depth, work + block, work + last)
    if block == first:
        while turn < extent:
            m[STAMP] += 1
            run_lines(m, turn, min(extent, turn + chunk), work + first, work + last, allowed, own)
            turn += chunk
        return
    size, entered = chunk, np.int64(0)
    while turn < extent:
        stop, clashed, size = try_chunk(m, op, depth, turn, extent, size, entered, allowed, own)
        if clashed:
            count = choose_streams(m, turn, stop, work + first, work + last, depth)
            run_rounds(m, turn, stop, count, depth)
        entered = m[np.uint64(m[LOOPS]) + (depth + ONE) * LOOP_WORDS + ENTERED]
        turn = stop


@numba.njit(**PLAIN)
def try_chunk(m, op, depth, turn, extent, size, entered, allowed, own):
    """Deal with iterations of a loop in all sets where order does not tell.

    Returns
    -------
    stop, clashed, size : int
        Iterations [turn, stop) are dealt with but for `clashed` sets, stamped CLASH; the size to
        try next.
    """
    work = np.uint64(m[WORK])
    first, block = np.uint64(m[op + FIRST]), np.uint64(m[op + FIRST_BLOCK])
    still = np.uint64(m[op + FIRST_STILL])
    loop = np.uint64(m[LOOPS]) + (depth + ONE) * LOOP_WORDS
    if m[POLICY] == SWEEP:
        # What is a hit in many ways is none in few: nothing may be taken to stay.
        entered = 0
    end = work + (still if entered else first) * RECORD
    begin = work + block * RECORD
    while True:
        m[STAMP] += 1
        if entered:
            keep_listed(m, m[loop + OWN], depth)
        else:
            m[np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)] = 0
        stop = min(extent, turn + size)
        clashed, note = note_blocks(m, turn, stop, begin, end, allowed, own, depth)
        if not clashed or stop - turn == 1 or (m[op] == LEAF and (
                clashed * 8 <= m[SETS] or stop - turn < SPLIT)):
            break
        # Too many sets see several lines: fewer iterations reach fewer.
        size = (stop - turn + 3) // 4
        m[loop + CLEAN] = 0
    if entered:
        further, note = settle_still(m, entered, depth, note)
        clashed += further
    touch_notes(m, note, depth)
    m[loop + OWN], m[loop + ALLOWED] = m[STAMP], np.int64(clash_of(m, depth))
    if not entered:
        m[loop + ENTERED] = m[STAMP]
        note_still(m, work + still * RECORD, work + first * RECORD, m[STAMP], depth, allowed, own)
    m[loop + CLEAN] = 0 if clashed or stop - turn < size else m[loop + CLEAN] + 1
    if m[loop + CLEAN] == PATIENCE:
        size, m[loop + CLEAN] = min(m[op + CHUNK], 2 * size), 0
    return stop, clashed, size


@numba.njit(**PLAIN)
def run_loop(m, op, depth, turn, extent, allowed, own):
    """Enter or go on with a loop; return whether its body is to be run."""
    loop = np.uint64(m[LOOPS]) + (depth + ONE) * LOOP_WORDS
    position, tried, size, entered = np.int64(0), turn, m[op + CHUNK], np.int64(0)
    if m[op] == END:
        turn, extent = m[loop + TURN] + 1, m[loop + STOP]
        position, tried = m[loop + POSITION], m[loop + TRIED]
        size, entered = m[loop + SIZE], m[loop + ENTERED]
    if m[op + FIRST_BLOCK] == m[op + FIRST]:
        # Nothing is known of the loop: its body sees what the loop sees.
        tried = extent
        m[loop + OWN], m[loop + ALLOWED] = own, np.int64(allowed)
    while turn < extent and turn == tried:
        tried, clashed, size = try_chunk(m, op, depth, turn, extent, size, entered, allowed, own)
        entered = m[loop + ENTERED]
        if not clashed:
            turn = tried
    m[loop + TURN], m[loop + STOP], m[loop + SIZE], m[loop + TRIED] = turn, extent, size, tried
    m[loop + POSITION] = turn if turn < extent else 0
    if m[loop + POSITION] != position:
        shift_streams(m, m[loop + POSITION] - position, depth, m[op + FIRST], m[op + LAST])
    return turn < extent


@numba.njit(**PLAIN)
def order_ways(m):
    """Order the entries of each set by time of touch, most recent first (LRU)."""
    ways = np.uint64(m[WAYS])
    base = np.uint64(m[SET_0]) + ENTRY
    for _ in range(m[SETS]):
        for way in range(ONE, ways):
            entry, time = m[base + way], m[base + ways + way]
            at = base + way
            while at > base and m[at + ways - ONE] < time:
                m[at], m[at + ways] = m[at - ONE], m[at + ways - ONE]
                at -= ONE
            m[at], m[at + ways] = entry, time
        base += np.uint64(m[SET_WORDS])


@numba.njit(**CACHED)
def run_program(m):
    """Run a program through a cache.

    Parameters
    ----------
    m : ndarray of int64
        Header, sets, program and counters, as `hwmodels.nest.program.lay_out` lays them out; sets
        and counters are changed.

    Notes
    -----
    Every loop is tried some iterations at a time. In the sets where order does not tell
    (`note_line`) each line is touched once, and not again while the loop goes on and nothing
    else comes into the set (`settle_still`). The other sets alone are simulated by the loop's
    body, whose inner loops are tried in turn, and in a leaf by its accesses in program order.
    """
    code = np.uint64(m[CODE])
    op = code
    row = ZERO
    while op < np.uint64(m[CODE_END]):
        operation, extent, depth = m[op], m[op + EXTENT], np.uint64(m[op + DEPTH])
        following = op + OPERATION_WORDS
        partner = code + np.uint64(m[op + PARTNER]) * OPERATION_WORDS
        if operation == PHASE:
            cursor = np.uint64(m[CURSORS]) + depth
            row = np.uint64(m[ROWS]) + np.uint64(m[cursor]) * FOUR
            m[cursor] += 1
        elif operation == PHASE_END:
            if not m[row + THREE]:
                following = partner
        else:
            # Sets to look at: those the loop around left to its body.
            outer = np.uint64(m[LOOPS]) + depth * LOOP_WORDS
            allowed, own = np.uint64(m[outer + ALLOWED]), m[outer + OWN]
            turn = 0
            if extent == FULL:
                turn, extent = m[row], 1
            elif extent == MIDDLE:
                turn, extent = m[row + ONE], m[row + TWO]
            if operation == LEAF:
                run_leaf(m, op, depth, turn, turn + extent, allowed, own)
            elif run_loop(m, op, depth, turn, turn + extent, allowed, own):
                if operation == END:
                    following = partner + OPERATION_WORDS
            elif operation == LOOP:
                following = partner + OPERATION_WORDS
        op = following
    if m[POLICY] == LRU:
        order_ways(m)
