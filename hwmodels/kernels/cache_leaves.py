"""Compiled: leaves under LRU, by the first and the last touch of every line.

While a set sees no more lines than it has ways, none of them leaves: what is missed follows from
the order of their first touches, what is kept from that of their last ones, whatever lies between.
"""

import numpy as np

from hwmodels.kernels.cache_blocks import (
    are_apart,
    clash_of,
    divide,
    lines_on,
    span_of,
    touch_blocks,
    turns_on,
)
from hwmodels.kernels.cache_lines import run_rounds
from hwmodels.kernels.cache_policies import (
    find_way,
    geometry_of,
    set_among,
    set_of,
    touch,
    touch_apart,
)
from hwmodels.kernels.cache_words import (
    ADDRESS,
    CHUNK,
    ENTRY,
    FEW,
    FIRST,
    FIRST_BLOCK,
    FIRST_PLACE,
    FLAGS,
    FOUR,
    HIGH,
    LAST,
    LAST_PLACE,
    LINE,
    LOG_STEP,
    LOW,
    LRU,
    MOST_APART,
    MOST_SHARERS,
    NOTES,
    ONE,
    OPERAND,
    POLICY,
    REACH,
    RECORD,
    ROOM,
    SEEN,
    SHIFT,
    SPARSE,
    STAMP,
    STEP,
    THREE,
    TWO,
    WAYS,
    WORK,
    WRITE,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part


@compile_inline
def first_touch(m: Words, at: Integer, line: Integer, start: Integer) -> Integer:
    """When from an iteration on a piece first touches a line: iteration << 20 | place."""
    turn, step, shift = max(start, m[at + LOW]), m[at + STEP], m[SHIFT]
    if step > 0:
        turn = max(turn, divide((line << shift) - m[at + ADDRESS] - m[at + REACH] + step - 1, step,
                                m[at + LOG_STEP]))
    elif step < 0:
        turn = max(turn, (m[at + ADDRESS] - ((line + 1) << shift) - step) // -step)
    return turn << 20 | m[at + FIRST_PLACE]


@compile_inline
def last_touch(m: Words, at: Integer, line: Integer, stop: Integer) -> Integer:
    """When before an iteration a piece last touches a line."""
    turn, step, shift = min(stop, m[at + HIGH]) - 1, m[at + STEP], m[SHIFT]
    if step > 0:
        turn = min(turn, divide(((line + 1) << shift) - 1 - m[at + ADDRESS], step,
                                m[at + LOG_STEP]))
    elif step < 0:
        turn = min(turn, (m[at + ADDRESS] + m[at + REACH] - (line << shift)) // -step)
    return turn << 20 | m[at + LAST_PLACE]


@compile_part
def note_pieces(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer,
                allowed: Integer, own: Integer) -> Integer:
    """Note the lines that iterations [start, stop) of pieces touch in sets stamped `own`.

    A set has a list of its notes: line, piece, the note before, the set's record.

    Returns
    -------
    int
        Where the notes end; zero when there is no room for them.
    """
    shift, sets, mask, records, words = geometry_of(m)
    stamp, sparse = m[STAMP], m[SPARSE]
    note = np.uint64(m[NOTES])
    limit = note + np.uint64(m[ROOM])
    while at < end:
        turn, final, address, reach, step = span_of(m, at, start, stop, shift)
        while turn < final:
            line, high = address >> shift, (address + reach) >> shift
            if note + FOUR * np.uint64(high - line + 1) > limit:
                return ZERO
            while line <= high:
                index = set_among(sets, mask, line)
                if m[allowed + index] == own:
                    s = records + index * words
                    m[note], m[note + ONE], m[note + THREE] = line, np.int64(at), np.int64(s)
                    if m[s + SEEN] != stamp:
                        m[s + SEEN], m[s + FLAGS] = stamp, 1
                    else:
                        m[note + TWO] = m[s + LINE]
                        m[s + FLAGS] += 1
                    m[s + LINE] = np.int64(note)
                    note += FOUR
                    line += 1
                else:
                    line += lines_on(m, index, sparse)
            turns = turns_on(m, at, line, address + reach, sparse)
            address += turns * step
            turn += turns
        at += RECORD
    return note


@compile_inline
def insert_key(m: Words, first: Integer, count: Integer, key: Integer, note: Integer) -> None:
    """Put a note into a list of (key, note) that is in order."""
    at = first + TWO * count
    while at > first and m[at - TWO] > key:
        m[at], m[at + ONE] = m[at - TWO], m[at - ONE]
        at -= TWO
    m[at], m[at + ONE] = key, np.int64(note)


@compile_part
def touch_sharers(m: Words, s: Integer, index: Integer, scratch: Integer, start: Integer,
                  stop: Integer, clash: Integer) -> Integer:
    """Touch the lines of a set that several pieces come into, or stamp it; return 1 if so."""
    count = np.uint64(m[s + FLAGS])
    distinct = absent = ZERO
    firsts, lasts = scratch, scratch + TWO * MOST_SHARERS
    note = np.uint64(m[s + LINE])
    many = count > MOST_SHARERS
    for number in range(ZERO if many else count):
        line, at = m[note], np.uint64(m[note + ONE])
        new = True
        for other in range(number):
            new = new and m[np.uint64(m[firsts + TWO * other + ONE])] != line
        distinct += ONE if new else ZERO
        if m[POLICY] != LRU:
            absent += ONE if find_way(m, s + ENTRY, line) == np.uint64(m[WAYS]) else ZERO
        insert_key(m, firsts, number, first_touch(m, at, line, start), note)
        insert_key(m, lasts, number, last_touch(m, at, line, stop), note)
        note = np.uint64(m[note + TWO])
    if many or distinct > np.uint64(m[WAYS]) or (absent and distinct > TWO):
        m[clash + index] = m[STAMP]
        return 1
    # Lines that come first in both orders stand where they are to stand.
    same, kept = distinct == count, ZERO
    for number in range(count):
        note = np.uint64(m[firsts + TWO * number + ONE])
        same = same and m[lasts + TWO * number + ONE] == np.int64(note)
        kept += ONE if same else ZERO
        touch_apart(m, m[note], s, np.uint64(m[note + ONE]))
    for number in range(kept, count):
        note = np.uint64(m[lasts + TWO * number + ONE])
        touch_apart(m, m[note], s, np.uint64(m[note + ONE]))
    return 0


@compile_part
def touch_two(m: Words, s: Integer, start: Integer, stop: Integer) -> None:
    """Touch the lines of a set that has two notes, by their first and their last touches."""
    one = np.uint64(m[s + LINE])
    two = np.uint64(m[one + TWO])
    line, other = m[one], m[two]
    at, place = np.uint64(m[one + ONE]), np.uint64(m[two + ONE])
    loads = line == other and not m[at + WRITE] and not m[place + WRITE]
    if loads and m[at + OPERAND] == m[place + OPERAND]:
        touch_apart(m, line, s, at)
        return
    order = first_touch(m, at, line, start) < first_touch(m, place, other, start)
    late = last_touch(m, at, line, stop) < last_touch(m, place, other, stop)
    if loads:
        touch_apart(m, line, s, at if order else place)
        return
    if order:
        touch_apart(m, line, s, at)
    touch_apart(m, other, s, place)
    if not order:
        touch_apart(m, line, s, at)
    # Two lines touched in the same order at last stand as they do; a line keeps its last store.
    if late and (not order or line == other):
        touch_apart(m, other, s, place)
    elif not late and (order or line == other):
        touch_apart(m, line, s, at)


@compile_part
def touch_pieces(m: Words, end: Integer, start: Integer, stop: Integer,
                 clash: Integer) -> tuple[Integer, Integer]:
    """Touch what is noted; return how many sets saw lines, and more of them than they have ways."""
    note = np.uint64(m[NOTES])
    seen = crowded = 0
    while note < end:
        line, s = m[note], np.uint64(m[note + THREE])
        if m[s + LINE] == np.int64(note):
            seen += 1
            if m[s + FLAGS] == 1:
                touch(m, line, s, np.uint64(m[note + ONE]))
            elif m[s + FLAGS] == 2 and m[WAYS] > 1:
                touch_two(m, s, start, stop)
            else:
                crowded += touch_sharers(m, s, set_of(m, line), end, start, stop, clash)
        note += FOUR
    return seen, crowded


@compile_part
def run_pieces(m: Words, op: Integer, depth: Integer, turn: Integer, extent: Integer,
               allowed: Integer, own: Integer) -> None:
    """Run a leaf by the first and last touches of its lines, some iterations at a time.

    Sets that see more lines than they have ways are simulated in program order.
    """
    work = np.uint64(m[WORK])
    first, last = np.uint64(m[op + FIRST]) * RECORD, np.uint64(m[op + LAST]) * RECORD
    block = np.uint64(m[op + FIRST_BLOCK]) * RECORD
    clash = clash_of(m, depth)
    few = first - block <= MOST_APART * RECORD
    # Where few sets are looked at, few of the lines touched are noted.
    scale = FEW if m[SPARSE] else 1
    size = min(extent, m[op + CHUNK]) * scale
    while turn < extent:
        stop = min(extent, turn + size)
        m[STAMP] += 1
        if few and are_apart(m, turn, stop, work + block, work + first):
            touch_blocks(m, turn, stop, work + block, work + first, allowed, own)
            turn = stop
            continue
        end = note_pieces(m, turn, stop, work + block, work + first, allowed, own)
        if end == ZERO:
            size = (stop - turn + 1) // 2
            m[op + CHUNK] = max(1, size // scale)
            continue
        seen, crowded = touch_pieces(m, end, turn, stop, clash)
        if crowded:
            run_rounds(m, turn, stop, work + first, work + last, clash, m[STAMP])
            if crowded * FEW > seen and stop - turn > 1:
                size = (stop - turn + 1) // 2
                m[op + CHUNK] = max(1, size // scale)
        turn = stop
