"""Compiled: iterations of a loop dealt with at once in all sets where order does not tell."""

import numpy as np

from hwmodels.kernels.cache_policies import (
    geometry_of,
    record_of,
    set_among,
    set_of,
    touch,
)
from hwmodels.kernels.cache_words import (
    ADDRESS,
    AHEAD,
    ALLOWED,
    ANY,
    B_KIND,
    B_PART,
    CHUNK,
    CLASHES,
    CLEAN,
    ENTERED,
    FILLED,
    FIRST,
    FIRST_BLOCK,
    FIRST_STILL,
    FLAGS,
    HIGH,
    KIND,
    KNOWN,
    KNOWN_WORDS,
    LINE,
    LISTED,
    LISTS,
    LOG_STEP,
    LOOP_WORDS,
    LOOPS,
    LOW,
    LRU,
    MIXED,
    MOST_APART,
    MOVED,
    NOTES,
    ONE,
    OWN,
    PART,
    PASS_0,
    PASS_WORDS,
    PATIENCE,
    POLICY,
    REACH,
    RECORD,
    SEEN,
    SETS,
    SEVERAL,
    SHIFT,
    SPARSE,
    STAMP,
    STEP,
    STILL,
    STILL_BLOCK,
    STILL_LINE,
    THREE,
    TURNED,
    TWO,
    WORK,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part


@compile_inline
def clash_of(m: Words, depth: Integer) -> Integer:
    """Where the stamps of the sets that the loop at a depth leaves to its body begin."""
    return np.uint64(m[CLASHES]) + (depth + ONE) * np.uint64(m[SETS])


@compile_inline
def pass_of(m: Words, index: Integer) -> Integer:
    """Return what the loop of passes knows of a set."""
    return np.uint64(m[PASS_0]) + index * np.uint64(m[PASS_WORDS])


@compile_inline
def lines_on(m: Words, index: Integer, sparse: Integer) -> Integer:
    """How many lines on from one of a set that is not looked at there may be one of another."""
    return m[pass_of(m, index) + AHEAD] if sparse else 1


@compile_inline
def divide(value: Integer, step: Integer, log_step: Integer) -> Integer:
    """Divide by a positive step, rounding down."""
    return value >> log_step if log_step >= 0 else value // step


@compile_inline
def turns_on(m: Words, at: Integer, line: Integer, last: Integer, sparse: Integer) -> Integer:
    """How many iterations on a block that reaches to a last byte may be in a line, or beyond."""
    step = m[at + STEP]
    return divide((line << m[SHIFT]) - last + step - 1, step, m[at + LOG_STEP]) if (
        sparse and step > 0) else 1


@compile_inline
def span_of(m: Words, at: Integer, start: Integer, stop: Integer,
            shift: Integer) -> tuple[Integer, Integer, Integer, Integer, Integer]:
    """Where iterations [start, stop) of a block begin: those no line lies between are one.

    Returns
    -------
    turn, final, address, reach, step : int
        Iterations [turn, final) remain, the first at an address; bytes each reaches from there.
    """
    turn, final = max(start, m[at + LOW]), min(stop, m[at + HIGH])
    step, reach = m[at + STEP], m[at + REACH]
    address = m[at + ADDRESS] + turn * step
    if turn < final and -reach - (1 << shift) <= step <= reach + (1 << shift):
        travel = step * (final - turn - 1)
        address += min(0, travel)
        reach += abs(travel)
        turn = final - 1
    return turn, final, address, reach, step


@compile_part
def note_again(m: Words, line: Integer, index: Integer, s: Integer, at: Integer,
               single: Integer, clash: Integer) -> Integer:
    """Note a further line of a set, or its line touched in another manner.

    Order does not tell in a set that sees one line only, touched in one manner or in manners
    that follow each other.

    Returns
    -------
    int
        1 where the set clashes and did not yet: it is stamped so.
    """
    stamp, flags = m[STAMP], m[s + FLAGS]
    kind, part = m[at + B_KIND], m[at + B_PART]
    if line != m[s + LINE]:
        flags |= SEVERAL
    if kind != m[s + KIND]:
        flags |= TURNED
    if flags & TURNED and not (single and (
            m[s + PART] < part < ANY or (part == m[s + PART] and kind == m[s + KIND]))):
        flags |= MIXED
    m[s + LINE], m[s + KIND], m[s + PART], m[s + FLAGS] = line, kind, max(part, m[s + PART]), flags
    if flags & (SEVERAL | MIXED) and m[clash + index] != stamp:
        m[clash + index] = stamp
        return 1
    return 0


@compile_part
def keep_listed(m: Words, last: Integer, depth: Integer) -> None:
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


@compile_part
def note_still(m: Words, at: Integer, end: Integer, entered: Integer, depth: Integer,
               allowed: Integer, own: Integer) -> None:
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


@compile_part
def settle_still(m: Words, entered: Integer, depth: Integer,
                 note: Integer) -> tuple[Integer, Integer]:
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
            line = m[known + STILL_LINE]
            if line < 0 or m[record_of(m, index) + SEEN] == stamp:
                m[clash + index] = stamp
                clashed += 1
            else:
                m[note], m[note + ONE] = line, np.int64(index)
                m[note + TWO] = m[known + STILL_BLOCK]
                note += THREE
    return clashed, note


@compile_part
def note_blocks(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer,
                allowed: Integer, own: Integer, depth: Integer) -> tuple[Integer, Integer]:
    """Note the lines that iterations [start, stop) of blocks touch in sets stamped `own`.

    Their sets are listed; those where order tells are stamped (`note_again`).

    Returns how many sets clash, and where the list of (line, set, block) noted ends.
    """
    shift, sets, mask, records, words = geometry_of(m)
    stamp, clash = m[STAMP], clash_of(m, depth)
    knowns = np.uint64(m[KNOWN]) + depth * np.uint64(sets) * KNOWN_WORDS
    listed = np.uint64(m[LISTS]) + depth * np.uint64(sets + 1)
    count = np.uint64(m[listed])
    single = stop - start == 1
    clashed, note = 0, np.uint64(m[NOTES])
    while at < end:
        turn, final, address, reach, step = span_of(m, at, start, stop, shift)
        kind, part = m[at + B_KIND], m[at + B_PART]
        while turn < final:
            line, high = address >> shift, (address + reach) >> shift
            while line <= high:
                index = set_among(sets, mask, line)
                if m[allowed + index] == own:
                    s, known = records + index * words, knowns + index * KNOWN_WORDS
                    if m[s + SEEN] != stamp:
                        m[s + SEEN], m[s + FLAGS] = stamp, 0
                        m[s + LINE], m[s + KIND], m[s + PART] = line, kind, part
                        if m[known + LISTED] != stamp:
                            count += ONE
                            m[known + LISTED], m[listed + count] = stamp, np.int64(index)
                        m[known + MOVED] = stamp
                        m[note], m[note + ONE], m[note + TWO] = line, np.int64(index), np.int64(at)
                        note += THREE
                    elif line != m[s + LINE] or kind != m[s + KIND] or part != m[s + PART]:
                        clashed += note_again(m, line, index, s, at, single, clash)
                        m[note], m[note + ONE], m[note + TWO] = line, np.int64(index), np.int64(at)
                        note += THREE
                line += 1
            address += step
            turn += 1
        at += RECORD
    m[listed] = np.int64(count)
    return clashed, note


@compile_part
def touch_notes(m: Words, end: Integer, depth: Integer) -> None:
    """Touch the lines noted in sets where order does not tell."""
    stamp, clash = m[STAMP], clash_of(m, depth)
    note = np.uint64(m[NOTES])
    while note < end:
        index, at = np.uint64(m[note + ONE]), np.uint64(m[note + TWO])
        if m[clash + index] != stamp:
            touch(m, m[note], record_of(m, index), at)
        note += THREE


@compile_part
def are_apart(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer) -> bool:
    """Whether no set sees two lines of what iterations [start, stop) of blocks touch.

    Lines between those touched count, too: it is told by the ranges, not by the lines.
    """
    sets, shift = m[SETS], m[SHIFT]
    first = np.uint64(m[NOTES])
    last = first
    while at < end:
        turn, final = max(start, m[at + LOW]), min(stop, m[at + HIGH])
        if turn < final:
            travel = m[at + STEP] * (final - turn - 1)
            low = m[at + ADDRESS] + turn * m[at + STEP] + min(0, travel)
            line = low >> shift
            size = ((low + m[at + REACH] + abs(travel)) >> shift) - line + 1
            place = np.int64(set_of(m, line))
            if size > sets:
                return False
            other = first
            while other < last:
                ahead = place - m[other]
                ahead += sets if ahead < 0 else 0
                if ahead < m[other + ONE] or sets - ahead < size:
                    return False
                other += TWO
            m[last], m[last + ONE] = place, size
            last += TWO
        at += RECORD
    return True


@compile_part
def touch_blocks(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer,
                 allowed: Integer, own: Integer) -> None:
    """Touch the lines of iterations [start, stop) of blocks, one block after the other."""
    shift, sets, mask, records, words = geometry_of(m)
    sparse = m[SPARSE]
    while at < end:
        turn, final, address, reach, step = span_of(m, at, start, stop, shift)
        while turn < final:
            line, high = address >> shift, (address + reach) >> shift
            while line <= high:
                index = set_among(sets, mask, line)
                if m[allowed + index] == own:
                    touch(m, line, records + index * words, at)
                    line += 1
                else:
                    line += lines_on(m, index, sparse)
            turns = turns_on(m, at, line, address + reach, sparse)
            address += turns * step
            turn += turns
        at += RECORD


@compile_part
def try_chunk(m: Words, op: Integer, depth: Integer, turn: Integer, extent: Integer, size: Integer,
              entered: Integer, allowed: Integer, own: Integer) -> tuple[Integer, Integer, Integer]:
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
    end = work + (still if entered else first) * RECORD
    begin = work + block * RECORD
    if m[POLICY] == LRU and still == first and first - block <= MOST_APART:
        stop = min(extent, turn + size)
        if are_apart(m, turn, stop, begin, work + first * RECORD):
            m[STAMP] += 1
            touch_blocks(m, turn, stop, begin, work + first * RECORD, allowed, own)
            m[loop + ENTERED] = m[loop + CLEAN] = 0
            return stop, 0, size
    while True:
        m[STAMP] += 1
        if entered:
            keep_listed(m, m[loop + OWN], depth)
        else:
            m[np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)] = 0
        stop = min(extent, turn + size)
        clashed, note = note_blocks(m, turn, stop, begin, end, allowed, own, depth)
        if not clashed or stop - turn == 1:
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
