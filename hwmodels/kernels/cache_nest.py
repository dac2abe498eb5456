"""Compiled: run a flattened loop nest through a set-associative cache.

The array all of it works in is explained in `cache_words`.
"""


import numpy as np

from hwmodels.kernels.cache_blocks import try_chunk
from hwmodels.kernels.cache_events import run_settled, try_events
from hwmodels.kernels.cache_leaves import run_pieces
from hwmodels.kernels.cache_lines import run_lines, run_rounds, set_ranges, shift_streams
from hwmodels.kernels.cache_passes import run_passes
from hwmodels.kernels.cache_policies import record_of
from hwmodels.kernels.cache_settled import try_settled
from hwmodels.kernels.cache_words import (
    ALLOWED,
    CHUNK,
    CLOCK,
    CODE,
    CODE_END,
    COUPLED,
    CURSORS,
    DEPTH,
    END,
    ENTERED,
    ENTRY,
    EXTENT,
    FIRST,
    FIRST_BLOCK,
    FOUR,
    FULL,
    HITS_CHANGE,
    LAST,
    LEAF,
    LEAVING,
    LOOP_WORDS,
    LOOPS,
    LRU,
    MIDDLE,
    MISSES,
    ONE,
    OPERATION_WORDS,
    OWN,
    OWNERS,
    PARTNER,
    PASSES,
    PASSES_END,
    PHASE,
    PHASE_END,
    PLAIN,
    POLICY,
    POSITION,
    RECORD,
    REGISTER,
    ROWS,
    SET_0,
    SET_WORDS,
    SETS,
    SETTLED,
    SETTLED_END,
    SIZE,
    SPARSE,
    STAMP,
    STATE_HEAD,
    STOP,
    TALLY,
    THREE,
    TRIED,
    TURN,
    TWO,
    WAYS,
    WORD,
    WORDS,
    WORK,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_kept, compile_part


@compile_part
def run_leaf(m: Words, op: Integer, depth: Integer, turn: Integer, extent: Integer,
             allowed: Integer, own: Integer) -> None:
    """Run a loop that holds nothing but streams."""
    work = np.uint64(m[WORK])
    first, last = np.uint64(m[op + FIRST]) * RECORD, np.uint64(m[op + LAST]) * RECORD
    block = np.uint64(m[op + FIRST_BLOCK]) * RECORD
    if m[op + PARTNER]:
        set_ranges(m, turn, extent, depth, work + block, work + last)
    if block != first:
        if m[HITS_CHANGE]:
            run_pieces(m, op, depth, turn, extent, allowed, own)
        else:
            run_settled(m, op, turn, extent, allowed, own)
        return
    if m[SPARSE] and extent - turn > 1:
        run_rounds(m, turn, extent, work + first, work + last, allowed, own)
        return
    while turn < extent:
        m[STAMP] += 1
        stop = min(extent, turn + m[op + CHUNK])
        run_lines(m, turn, stop, work + first, work + last, allowed, own)
        turn = stop


@compile_part
def run_loop(m: Words, op: Integer, depth: Integer, turn: Integer, extent: Integer,
             allowed: Integer, own: Integer) -> bool:
    """Enter or go on with a loop; return whether its body is to be run."""
    loop = np.uint64(m[LOOPS]) + (depth + ONE) * LOOP_WORDS
    position, tried, size, entered = np.int64(0), turn, m[op + CHUNK], np.int64(0)
    if m[op] == END:
        turn, extent = m[loop + TURN] + 1, m[loop + STOP]
        position, tried = m[loop + POSITION], m[loop + TRIED]
        size, entered = m[loop + SIZE], m[loop + ENTERED]
    alone = m[op] != END and extent - turn == 1 and m[POLICY] == LRU
    if m[op + FIRST_BLOCK] == m[op + FIRST] or alone:
        # Nothing is known of the loop, or it leaves nothing out: its body sees what the loop sees.
        tried = extent
        m[loop + OWN], m[loop + ALLOWED] = own, np.int64(allowed)
    while turn < extent and turn == tried:
        if m[HITS_CHANGE]:
            tried, clashed, size = try_chunk(m, op, depth, turn, extent, size, entered, allowed,
                                             own)
            entered = m[loop + ENTERED]
        elif m[COUPLED]:
            turn, tried, clashed, size = try_events(m, op, depth, turn, extent, size, allowed, own)
        else:
            tried, clashed, size = try_settled(m, op, depth, turn, extent, size, allowed, own)
        if not clashed:
            turn = tried
    m[loop + TURN], m[loop + STOP], m[loop + SIZE], m[loop + TRIED] = turn, extent, size, tried
    m[loop + POSITION] = turn if turn < extent else 0
    if m[loop + POSITION] != position:
        shift_streams(m, m[loop + POSITION] - position, depth, m[op + FIRST], m[op + LAST])
    goes_on: bool = turn < extent
    return goes_on


@compile_inline
def iterations_of(m: Words, row: Integer, extent: Integer) -> tuple[Integer, Integer]:
    """First iteration of a loop and how many: all, or those a row of a phase tells."""
    plain = m[row + THREE] >> 1
    if extent == FULL:
        return m[row], 1 - plain
    if extent == MIDDLE:
        return m[row + ONE], m[row + TWO] * (1 - plain)
    if extent == PLAIN:
        return m[row + ONE], m[row + TWO] * plain
    return 0, extent


@compile_inline
def move_sets(m: Words, words: Words, starts: Words, stored: Integer) -> None:
    """Put the state of a cache into the sets behind programs, or those into it: `stored`."""
    sets, ways = np.uint64(starts[SETS]), np.uint64(starts[WAYS])
    size = np.uint64(starts[SET_WORDS])
    entry, word = STATE_HEAD, STATE_HEAD + sets * ways
    s = np.uint64(len(m)) - ONE - sets * size
    for index in range(sets):
        for way in range(ways):
            if stored:
                words[entry] = m[s + ENTRY + way]
            else:
                m[s + ENTRY + way] = words[entry]
            entry += ONE
        if stored:
            words[word + index] = m[s + WORD]
        else:
            m[s + WORD] = words[word + index]
        s += size


@compile_part
def begin_program(m: Words, start: Words) -> None:
    """Make of a program what it is before a run, and the sets behind all programs its own."""
    for word in range(np.uint64(start[WORK])):
        m[word] = start[word]
    m[SET_0] = len(m) - 1 - m[SETS] * m[SET_WORDS]
    for index in range(np.uint64(m[SETS])):
        m[record_of(m, index) + TALLY] = m[MISSES]


@compile_part
def run_program(m: Words) -> None:
    """Run a program on the sets behind it.

    Every loop is tried some iterations at a time. In the sets where order does not tell
    (`note_again`) each line is touched once, and not again while the loop goes on and nothing
    else comes into the set (`settle_still`). The other sets alone are simulated by the loop's
    body, whose inner loops are tried in turn, and in a leaf by its accesses in program order.
    """
    for word in range(np.uint64(m[SETTLED]), np.uint64(m[SETTLED_END])):
        m[word] = 0  # Of what is there nothing is known until it is touched.
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
            if not m[row + THREE] & 1:
                following = partner
        else:
            # Sets to look at: those the loop around left to its body.
            outer = np.uint64(m[LOOPS]) + depth * LOOP_WORDS
            allowed, own = np.uint64(m[outer + ALLOWED]), m[outer + OWN]
            turn, extent = iterations_of(m, row, extent)
            if operation == LEAF:
                run_leaf(m, op, depth, turn, turn + extent, allowed, own)
            else:
                if operation >= PASSES:
                    again = run_passes(m, op, depth, turn, extent, allowed, own)
                else:
                    again = run_loop(m, op, depth, turn, turn + extent, allowed, own)
                if again == (operation in (END, PASSES_END)):
                    following = partner + OPERATION_WORDS
        op = following


@compile_part
def tell_counters(m: Words, counters: Words) -> Integer:
    """Put a program's counters, and its touches, where they are asked for; return how many."""
    first, size = np.uint64(m[MISSES]), np.uint64(m[LEAVING] + 2 * m[OWNERS])
    for place in range(size):
        counters[place] = m[first + place]
    counters[size] = m[CLOCK]
    return size + ONE


@compile_kept
def run_programs(programs: Integer, starts: Words, m: Words, words: Words,
                 counters: Words) -> None:
    """Run programs through a cache, one behind the other.

    Parameters
    ----------
    programs : int
        How many, one or more.
    starts : ndarray of int64
        What each is before a run, as `hwmodels.nest.program` lays it out, up to what no run
        changes.
    m : ndarray of int64
        Changed: the programs, the sets of the cache, and the last stamp, which tells what runs
        before noted.
    words : ndarray of int64
        State of the cache, as `hwmodels.cache.set_associative` keeps it; changed.
    counters : ndarray of int64
        Filled: misses and what left by each program, and its touches.
    """
    move_sets(m, words, starts, 0)
    last = np.uint64(len(m)) - ONE
    register, stamp = words[REGISTER], m[last]
    start = at = out = ZERO
    for _ in range(programs):
        begin_program(m[at:], starts[start:])
        m[at + REGISTER], m[at + STAMP] = register, stamp + 1
        run_program(m[at:])
        register, stamp = m[at + REGISTER], m[at + STAMP]
        out += tell_counters(m[at:], counters[out:])
        start += np.uint64(m[at + WORK])
        at += np.uint64(m[at + WORDS])
    words[REGISTER], m[last] = register, stamp
    move_sets(m, words, starts, 1)
