"""Compiled: loops run as passes; a set that repeats a pass is not simulated again."""

import numpy as np

from hwmodels.kernels.cache_blocks import clash_of, pass_of
from hwmodels.kernels.cache_lines import shift_streams
from hwmodels.kernels.cache_policies import record_of, set_of, settle_gone, settle_line
from hwmodels.kernels.cache_words import (
    ADDRESS,
    AHEAD,
    ALLOWED,
    CHANGED,
    CHUNK,
    ENTRY,
    FEW,
    FILLED,
    FIRST,
    FIRST_BLOCK,
    FIRST_INNER,
    FIRST_STILL,
    HITS_CHANGE,
    INNER,
    LAST,
    LEAVING,
    LISTS,
    LOOP_WORDS,
    LOOPS,
    MISSES,
    ONE,
    OWN,
    OWNER_ROOM,
    OWNERS,
    PASSES_END,
    PERIOD,
    POSITION,
    REACH,
    RECORD,
    SEEN_AT,
    SEEN_WORD,
    SETS,
    SHIFT,
    SINCE,
    SNAPSHOT,
    SNAPSHOTS,
    SPARSE,
    STAMP,
    STEP,
    TAKEN,
    TALLIED,
    TALLY,
    TALLY_WORDS,
    THREE,
    TURN,
    TWO,
    UNIT,
    WAYS,
    WORD,
    WORK,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part


@compile_inline
def snapshot_of(m: Words, known: Integer, number: Integer) -> Integer:
    """Where a state that passes know of a set is kept, and what the passes from it on counted."""
    words = TALLIED + np.uint64(m[WAYS]) + np.uint64(m[TALLY_WORDS])
    return known + SNAPSHOT + np.uint64(number) * words


@compile_inline
def tally_of(m: Words, kept: Integer) -> Integer:
    """Where the counters kept with a state begin."""
    return kept + TALLIED + np.uint64(m[WAYS])


@compile_part
def count_passes(m: Words, s: Integer, kept: Integer, passes: Integer) -> None:
    """Add what the pass from a state on counted, as often as told."""
    if m[s + FILLED] < m[kept + SEEN_AT]:
        return  # Nothing came in since.
    total, own = np.uint64(m[MISSES]), tally_of(m, kept)
    for word in range(np.uint64(m[LEAVING] + 2 * m[OWNERS])):
        m[total + word] += passes * m[own + word]


@compile_part
def clear_passes(m: Words, s: Integer, kept: Integer) -> None:
    """Add what the pass from a state on counted, and set its counters to zero."""
    if m[s + FILLED] < m[kept + SEEN_AT]:
        return  # They are.
    count_passes(m, s, kept, 1)
    own = tally_of(m, kept)
    for word in range(np.uint64(m[LEAVING] + 2 * m[OWNERS])):
        m[own + word] = 0


@compile_part
def find_snapshot(m: Words, s: Integer, known: Integer) -> Integer:
    """How many passes ago a set was in a state like its own; zero if it is not known to have been.

    Two are alike where passes from them on do the same. Where nothing came in since, all was there:
    touching it again, in the same order, brings the set into the state it is in.
    """
    ways = np.uint64(m[WAYS])
    for age in range(1, m[known + TAKEN] + 1):
        kept = snapshot_of(m, known, m[known + TAKEN] - age)
        if m[s + FILLED] < m[kept + SEEN_AT]:
            return age
        way = ZERO
        while way < ways and m[kept + TALLIED + way] == m[s + ENTRY + way]:
            way += ONE
        if way == ways and m[kept + SEEN_WORD] == m[s + WORD]:
            return age
    return 0


@compile_part
def take_snapshot(m: Words, s: Integer, known: Integer) -> None:
    """Keep the state of a set; what it meets from now on is counted there."""
    if m[known + TAKEN] == m[SNAPSHOTS]:
        m[known + TAKEN] = 0
    kept = snapshot_of(m, known, m[known + TAKEN])
    clear_passes(m, s, kept)
    for way in range(np.uint64(m[WAYS])):
        m[kept + TALLIED + way] = m[s + ENTRY + way]
    m[kept + SEEN_AT], m[kept + SEEN_WORD] = m[STAMP], m[s + WORD]
    m[s + TALLY] = np.int64(tally_of(m, kept))
    m[known + TAKEN] += 1


@compile_part
def settle_passes(m: Words, s: Integer, known: Integer, turn: Integer) -> None:
    """Count the passes a set went round its known states, and put it into the last of them."""
    period, passes = m[s + PERIOD], turn - m[known + SINCE]
    first, rest = m[known + TAKEN] - period, passes % period
    for place in range(period):
        rounds = passes // period + (1 if place < rest else 0)
        count_passes(m, s, snapshot_of(m, known, first + place), rounds)
    if rest:
        last = snapshot_of(m, known, first + rest)
        for way in range(np.uint64(m[WAYS])):
            entry, kept = m[s + ENTRY + way], m[last + TALLIED + way]
            m[s + ENTRY + way] = kept
            if entry != kept and not m[HITS_CHANGE]:
                settle_gone(m, entry >> 8)
                settle_line(m, kept >> 8, -1)
        m[s + WORD] = m[last + SEEN_WORD]
        m[s + FILLED] = m[STAMP]
    m[s + PERIOD] = m[known + TAKEN] = 0


@compile_inline
def note_change(m: Words, turn: Integer, line: Integer, depth: Integer, allowed: Integer,
                own: Integer) -> None:
    """Note that a pass sees the set of a line differently than the pass before."""
    index = set_of(m, line)
    known = pass_of(m, index)
    if m[known + CHANGED] != m[STAMP] and m[allowed + index] == own:
        s = record_of(m, index)
        m[known + CHANGED] = m[STAMP]
        if m[s + PERIOD]:
            settle_passes(m, s, known, turn)
            listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
            m[listed] += 1
            m[listed + np.uint64(m[listed])] = np.int64(index)
        m[known + TAKEN] = 0


@compile_part
def note_moves(m: Words, turn: Integer, at: Integer, end: Integer, depth: Integer, allowed: Integer,
               own: Integer) -> None:
    """Note the sets in which a pass does not touch the lines of the pass before."""
    shift = m[SHIFT]
    while at < end:
        step, reach, unit = m[at + STEP], m[at + REACH], m[at + UNIT]
        start = m[at + ADDRESS] + (turn - 1) * step
        inner = np.uint64(m[INNER]) + TWO * np.uint64(m[at + FIRST_INNER])
        # Within a unit nothing comes into another line.
        outer = m[inner] if not unit or not 0 <= (start & (unit - 1)) + step < unit else 0
        for _ in range(outer):
            address = start
            for _ in range(m[inner + TWO]):
                if reach or address >> shift != (address + step) >> shift:
                    for first in (address, address + step):
                        for line in range(first >> shift, ((first + reach) >> shift) + 1):
                            note_change(m, turn, line, depth, allowed, own)
                address += m[inner + THREE]
            start += m[inner + ONE]
        at += RECORD


@compile_part
def start_passes(m: Words, depth: Integer, allowed: Integer, own: Integer) -> None:
    """List every set; nothing is known of them yet."""
    listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
    m[listed] = 0
    for index in range(np.uint64(m[SETS])):
        if m[allowed + index] == own:
            m[listed] += 1
            m[listed + np.uint64(m[listed])] = np.int64(index)
            m[pass_of(m, index) + TAKEN] = m[record_of(m, index) + PERIOD] = 0


@compile_part
def finish_passes(m: Words, turn: Integer, allowed: Integer, own: Integer) -> None:
    """Settle every set, and count for the run again."""
    for index in range(np.uint64(m[SETS])):
        if m[allowed + index] == own:
            s, known = record_of(m, index), pass_of(m, index)
            if m[s + PERIOD]:
                settle_passes(m, s, known, turn)
            for number in range(m[SNAPSHOTS]):
                clear_passes(m, s, snapshot_of(m, known, number))
            m[s + TALLY] = m[MISSES]


@compile_part
def look_ahead(m: Words, listed: Integer, chosen: Integer, clash: Integer) -> None:
    """Note, by set, how many sets on the next one is of the few that are chosen."""
    ahead = m[SETS]
    for place in range(ONE, chosen + ONE):
        ahead = min(ahead, m[listed + place])
    for back in range(ONE, np.uint64(m[SETS]) + ONE):
        index = np.uint64(m[SETS]) - back
        ahead += 1
        m[pass_of(m, index) + AHEAD] = ahead
        ahead = 0 if m[clash + index] == m[STAMP] else ahead


@compile_part
def choose_sets(m: Words, turn: Integer, at: Integer, end: Integer, depth: Integer,
                allowed: Integer, own: Integer) -> Integer:
    """Stamp the sets that a pass does not repeat for the loop's body; return how many."""
    m[STAMP] += 1
    clash = clash_of(m, depth)
    if turn:
        note_moves(m, turn, at, end, depth, allowed, own)
    listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
    chosen = ZERO
    for place in range(ONE, np.uint64(m[listed]) + ONE):
        index = np.uint64(m[listed + place])
        s, known = record_of(m, index), pass_of(m, index)
        m[s + PERIOD], m[known + SINCE] = find_snapshot(m, s, known), turn
        if not m[s + PERIOD]:
            take_snapshot(m, s, known)
            m[clash + index] = m[STAMP]
            chosen += ONE
            m[listed + chosen] = np.int64(index)
    m[listed] = np.int64(chosen)
    m[SPARSE] = FEW * np.int64(chosen) <= m[SETS]
    if m[SPARSE]:
        look_ahead(m, listed, chosen, clash)
    return np.int64(chosen)


@compile_part
def run_passes(m: Words, op: Integer, depth: Integer, turn: Integer, extent: Integer,
               allowed: Integer, own: Integer) -> bool:
    """Enter or go on with a loop of passes; return whether its body is to be run."""
    loop = np.uint64(m[LOOPS]) + (depth + ONE) * LOOP_WORDS
    at = np.uint64(m[WORK]) + np.uint64(m[op + FIRST_BLOCK]) * RECORD
    end = np.uint64(m[WORK]) + np.uint64(m[op + FIRST_STILL]) * RECORD
    position = np.int64(0)
    if m[op] == PASSES_END:
        turn, position = m[loop + TURN] + 1, m[loop + POSITION]
    elif m[OWNERS] <= OWNER_ROOM:
        start_passes(m, depth, allowed, own)
    if m[OWNERS] > OWNER_ROOM:
        m[loop + ALLOWED], m[loop + OWN] = np.int64(allowed), own
    else:
        chosen, left_out = 0, 1
        while turn < extent and left_out:
            chosen = choose_sets(m, turn, at, end, depth, allowed, own)
            left_out = 0 if chosen or m[op + CHUNK] else 1
            turn += left_out
        m[loop + ALLOWED], m[loop + OWN] = np.int64(clash_of(m, depth)), m[STAMP]
        if turn >= extent:
            m[SPARSE] = 0
            finish_passes(m, extent, allowed, own)
    m[loop + TURN] = turn
    m[loop + POSITION] = turn if turn < extent else 0
    if m[loop + POSITION] != position:
        shift_streams(m, m[loop + POSITION] - position, depth, m[op + FIRST], m[op + LAST])
    goes_on: bool = turn < extent
    return goes_on
