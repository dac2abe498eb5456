"""Compiled: loops run as passes; a set that repeats a pass is not simulated again."""

import numpy as np

from hwmodels.kernels.cache_blocks import clash_of
from hwmodels.kernels.cache_lines import shift_streams
from hwmodels.kernels.cache_policies import record_of, set_of, settle
from hwmodels.kernels.cache_words import (
    ADDRESS,
    ALLOWED,
    CHANGED,
    CHUNK,
    COUNTERS,
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
    PASS_0,
    PASS_WORDS,
    PASSES_END,
    PERIOD,
    POSITION,
    REACH,
    RECORD,
    SETS,
    SHIFT,
    SINCE,
    SNAPSHOTS,
    SPARSE,
    STAMP,
    STEP,
    TAKEN,
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
def pass_of(m: Words, index: Integer) -> Integer:
    """Return what the loop of passes knows of a set."""
    return np.uint64(m[PASS_0]) + index * np.uint64(m[PASS_WORDS])


@compile_inline
def snapshot_of(m: Words, known: Integer, number: Integer) -> Integer:
    """Where a state that passes know of a set is kept, and the counters with it."""
    tally = np.uint64(m[TALLY_WORDS])
    return known + COUNTERS + tally + np.uint64(number) * (np.uint64(m[WAYS]) + ONE + tally)


@compile_part
def find_snapshot(m: Words, s: Integer, known: Integer) -> Integer:
    """How many passes ago a set was in the state it is in; zero if it is not known to have."""
    ways = np.uint64(m[WAYS])
    for age in range(1, m[known + TAKEN] + 1):
        kept = snapshot_of(m, known, m[known + TAKEN] - age)
        way = ZERO
        while way < ways and m[kept + way] == m[s + ENTRY + way]:
            way += ONE
        if way == ways and m[kept + ways] == m[s + WORD]:
            return age
    return 0


@compile_part
def take_snapshot(m: Words, s: Integer, known: Integer) -> None:
    """Keep the state of a set and its counters."""
    ways = np.uint64(m[WAYS])
    if m[known + TAKEN] == m[SNAPSHOTS]:
        m[known + TAKEN] = 0
    kept = snapshot_of(m, known, m[known + TAKEN])
    for way in range(ways):
        m[kept + way] = m[s + ENTRY + way]
    m[kept + ways] = m[s + WORD]
    kept += ways + ONE
    for word in range(np.uint64(m[LEAVING] + 2 * m[OWNERS])):
        m[kept + word] = m[known + COUNTERS + word]
    m[known + TAKEN] += 1


@compile_part
def settle_passes(m: Words, s: Integer, known: Integer, turn: Integer) -> None:
    """Count the passes a set went round its known states, and put it into the last of them."""
    ways = np.uint64(m[WAYS])
    period, passes = m[s + PERIOD], turn - m[known + SINCE]
    first = m[known + TAKEN] - period
    old = snapshot_of(m, known, first) + ways + ONE
    last = snapshot_of(m, known, first + passes % period)
    for word in range(np.uint64(m[LEAVING] + 2 * m[OWNERS])):
        at = known + COUNTERS + word
        m[at] += passes // period * (m[at] - m[old + word]) + m[last + ways + ONE + word] - m[
            old + word]
    for way in range(ways):
        entry, kept = m[s + ENTRY + way], m[last + way]
        m[s + ENTRY + way] = kept
        if entry != kept and not m[HITS_CHANGE]:
            settle(m, kept >> 8, -1, entry >> 8)
    m[s + WORD] = m[last + ways]
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
    """List every set and give it counters of its own."""
    listed = np.uint64(m[LISTS]) + depth * np.uint64(m[SETS] + 1)
    m[listed] = 0
    for index in range(np.uint64(m[SETS])):
        if m[allowed + index] == own:
            m[listed] += 1
            m[listed + np.uint64(m[listed])] = np.int64(index)
            s, known = record_of(m, index), pass_of(m, index)
            m[s + TALLY] = np.int64(known + COUNTERS)
            m[known + TAKEN] = m[s + PERIOD] = 0
            for word in range(np.uint64(m[LEAVING] + 2 * m[OWNERS])):
                m[known + COUNTERS + word] = 0


@compile_part
def finish_passes(m: Words, turn: Integer, allowed: Integer, own: Integer) -> None:
    """Settle every set and add its counters to those of the run."""
    total = np.uint64(m[MISSES])
    for index in range(np.uint64(m[SETS])):
        if m[allowed + index] == own:
            s, known = record_of(m, index), pass_of(m, index)
            if m[s + PERIOD]:
                settle_passes(m, s, known, turn)
            for word in range(np.uint64(m[LEAVING] + 2 * m[OWNERS])):
                m[total + word] += m[known + COUNTERS + word]
            m[s + TALLY] = np.int64(total)


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
        m[SPARSE] = turn < extent and FEW * chosen <= m[SETS]
        if turn >= extent:
            finish_passes(m, extent, allowed, own)
    m[loop + TURN] = turn
    m[loop + POSITION] = turn if turn < extent else 0
    if m[loop + POSITION] != position:
        shift_streams(m, m[loop + POSITION] - position, depth, m[op + FIRST], m[op + LAST])
    goes_on: bool = turn < extent
    return goes_on
