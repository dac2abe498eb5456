"""Compiled: iterations of a loop dealt with at once in all sets where order does not tell."""

import numpy as np

from hwmodels.kernels.cache_policies import (
    find_way,
    geometry_of,
    record_of,
    set_among,
    set_of,
    touch,
)
from hwmodels.kernels.cache_words import (
    ABSENT,
    ADDRESS,
    ALLOWED,
    ANY,
    B_KIND,
    B_PART,
    CHUNK,
    CLASHES,
    CLEAN,
    COUPLED,
    ENTERED,
    ENTRY,
    FILLED,
    FIRST,
    FIRST_BLOCK,
    FIRST_STILL,
    FLAGS,
    HIGH,
    HITS_CHANGE,
    KIND,
    KNOWN,
    KNOWN_WORDS,
    LEAF,
    LINE,
    LISTED,
    LISTS,
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
    PATIENCE,
    POLICY,
    REACH,
    RECORD,
    SEEN,
    SETS,
    SEVERAL,
    SHIFT,
    SPLIT,
    STAMP,
    STEP,
    STILL,
    STILL_BLOCK,
    STILL_LINE,
    STORER,
    STORES,
    THREE,
    TURNED,
    TWO,
    WAYS,
    WORK,
    WRITE,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part


@compile_inline
def clash_of(m: Words, depth: Integer) -> Integer:
    """Where the stamps of the sets that the loop at a depth leaves to its body begin."""
    return np.uint64(m[CLASHES]) + (depth + ONE) * np.uint64(m[SETS])


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


@compile_inline
def draws(m: Words, s: Integer) -> bool:
    """Whether what a set evicts next hangs on the others: it is full, and the sets are coupled.

    A line that fills an empty way draws nothing from a state all sets share.
    """
    drawn: bool = m[COUPLED] != 0 and m[s + ENTRY + np.uint64(m[WAYS]) - ONE] >= 0
    return drawn


@compile_part
def note_again(m: Words, line: Integer, index: Integer, s: Integer, at: Integer,
               single: Integer, clash: Integer) -> Integer:
    """Note a further line of a set, or its line touched in another manner.

    Order does not tell in a set that sees one line only, touched in one manner or in manners
    that follow each other; nor, where hits change nothing, in one whose lines are all present.
    An LFSR or a counter of all couples the sets: there order tells wherever a line is absent
    and the set is full.

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
        flags |= MIXED | (STORES if kind & 1 and m[s + STORER] not in (kind, -1) else 0)
    told = flags & (SEVERAL | MIXED)
    if not m[HITS_CHANGE]:
        if find_way(m, s + ENTRY, line) == np.uint64(m[WAYS]):
            flags |= ABSENT
        told = flags & STORES or (flags & ABSENT and (told or draws(m, s)))
    m[s + LINE], m[s + KIND], m[s + PART], m[s + FLAGS] = line, kind, max(part, m[s + PART]), flags
    if kind & 1:
        m[s + STORER] = kind
    if told and m[clash + index] != stamp:
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
    filled in those, all touches were hits and are made again: they change nothing. So are all
    where hits change nothing and all lines are there, moved or not.
    """
    clashed = 0
    stamp, clash = m[STAMP], clash_of(m, depth)
    listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
    for place in range(ONE, np.uint64(m[listed]) + ONE):
        index = np.uint64(m[listed + place])
        known = np.uint64(m[KNOWN]) + (depth * np.uint64(m[SETS]) + index) * KNOWN_WORDS
        if m[known + STILL] == entered and m[clash + index] != stamp:
            line, s, at = m[known + STILL_LINE], record_of(m, index), m[known + STILL_BLOCK]
            seen, kind = m[s + SEEN] == stamp, m[np.uint64(at) + B_KIND]
            absent = m[HITS_CHANGE] or find_way(m, s + ENTRY, line) == np.uint64(m[WAYS])
            if line < 0 or (absent and draws(m, s)) or (seen and (
                    absent or m[s + FLAGS] & ABSENT
                    or (kind & 1 and m[s + STORER] not in (kind, -1)))):
                m[clash + index] = stamp
                clashed += 1
            elif absent or kind & 1:
                m[note], m[note + ONE], m[note + TWO] = line, np.int64(index), at
                m[s + FLAGS] = ABSENT
                note += THREE
    return clashed, note


@compile_part
def find_alone(m: Words, end: Integer, depth: Integer, entered: Integer) -> Integer:
    """Return the one set that clashes, plus one, if it sees one line alone; else zero.

    Where what sets evict hangs on the others, one eviction is in order with itself.
    """
    clash, note = clash_of(m, depth), np.uint64(m[NOTES])
    while note < end:
        index = np.uint64(m[note + ONE])
        if m[clash + index] == m[STAMP]:
            known = np.uint64(m[KNOWN]) + (depth * np.uint64(m[SETS]) + index) * KNOWN_WORDS
            told = m[record_of(m, index) + FLAGS] & (SEVERAL | MIXED | STORES)
            still = entered and m[known + STILL] == entered
            return ZERO if told or still else index + ONE
        note += THREE
    return ZERO


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
    count, ways = np.uint64(m[listed]), np.uint64(m[WAYS])
    busy = m[HITS_CHANGE] != 0
    single = stop - start == 1
    clashed, note = 0, np.uint64(m[NOTES])
    while at < end:
        turn, final, address, reach, step = span_of(m, at, start, stop, shift)
        kind, part = m[at + B_KIND], m[at + B_PART]
        storer, writes = kind if kind & 1 else -1, m[at + WRITE] != 0
        while turn < final:
            line, high = address >> shift, (address + reach) >> shift
            while line <= high:
                index = set_among(sets, mask, line)
                if m[allowed + index] == own:
                    s, known = records + index * words, knowns + index * KNOWN_WORDS
                    if m[s + SEEN] != stamp:
                        m[s + SEEN], m[s + STORER], m[s + FLAGS] = stamp, storer, 0
                        m[s + LINE], m[s + KIND], m[s + PART] = line, kind, part
                        if m[known + LISTED] != stamp:
                            count += ONE
                            m[known + LISTED], m[listed + count] = stamp, np.int64(index)
                        m[known + MOVED] = stamp
                        told = busy
                        if not busy:
                            # Loads of what is there change nothing.
                            absent = find_way(m, s + ENTRY, line) == ways
                            m[s + FLAGS] = ABSENT if absent else 0
                            told = absent or writes
                            drawn = absent and draws(m, s)
                            m[clash + index] = stamp if drawn else m[clash + index]
                            clashed += 1 if drawn else 0
                        m[note], m[note + ONE], m[note + TWO] = line, np.int64(index), np.int64(at)
                        note += THREE if told else ZERO
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
            s = record_of(m, index)
            # Where hits change nothing, loads of what is there need not be made.
            if m[HITS_CHANGE] or m[at + WRITE] or m[s + FLAGS] & ABSENT:
                touch(m, m[note], s, at)
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
    while at < end:
        turn, final, address, reach, step = span_of(m, at, start, stop, shift)
        while turn < final:
            line, high = address >> shift, (address + reach) >> shift
            while line <= high:
                index = set_among(sets, mask, line)
                if m[allowed + index] == own:
                    touch(m, line, records + index * words, at)
                line += 1
            address += step
            turn += 1
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
        alone = find_alone(m, note, depth, entered) if clashed == 1 and m[COUPLED] else ZERO
        if not clashed or alone or stop - turn == 1 or (m[op] == LEAF and (
                clashed * 8 <= m[SETS] or stop - turn < SPLIT)):
            break
        # Too many sets see several lines: fewer iterations reach fewer.
        size = (stop - turn + 3) // 4
        m[loop + CLEAN] = 0
    if entered:
        further, note = settle_still(m, entered, depth, note)
        clashed += further
    if alone and clashed == 1:
        m[clash_of(m, depth) + alone - ONE] = 0
        clashed = 0
    touch_notes(m, note, depth)
    m[loop + OWN], m[loop + ALLOWED] = m[STAMP], np.int64(clash_of(m, depth))
    if not entered:
        m[loop + ENTERED] = m[STAMP]
        note_still(m, work + still * RECORD, work + first * RECORD, m[STAMP], depth, allowed, own)
    m[loop + CLEAN] = 0 if clashed or stop - turn < size else m[loop + CLEAN] + 1
    if m[loop + CLEAN] == PATIENCE:
        size, m[loop + CLEAN] = min(m[op + CHUNK], 2 * size), 0
    return stop, clashed, size
