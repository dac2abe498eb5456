"""Compiled: run a flattened loop nest through a set-associative cache.

The array all of it works in is explained in `cache_words`.
"""


import numpy as np

from hwmodels.kernels.cache_blocks import try_chunk
from hwmodels.kernels.cache_events import run_settled, try_events
from hwmodels.kernels.cache_leaves import run_pieces
from hwmodels.kernels.cache_lines import run_lines, run_rounds, set_ranges, shift_streams
from hwmodels.kernels.cache_passes import run_passes
from hwmodels.kernels.cache_policies import record_of, settle
from hwmodels.kernels.cache_settled import try_settled
from hwmodels.kernels.cache_words import (
    ALLOWED,
    CHUNK,
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
    LOOP_WORDS,
    LOOPS,
    LRU,
    MIDDLE,
    ONE,
    OPERATION_WORDS,
    OWN,
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
    SETS,
    SETTLED,
    SETTLED_END,
    SIZE,
    SPARSE,
    STAMP,
    STATE_HEAD,
    STOP,
    THREE,
    TRIED,
    TURN,
    TWO,
    WAYS,
    WINDOWS,
    WINDOWS_END,
    WORD,
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
def move_sets(m: Words, words: Words, stored: Integer) -> None:
    """Put the state of a cache into the sets of a program, or those into the state: `stored`."""
    sets, ways = np.uint64(m[SETS]), np.uint64(m[WAYS])
    entry, word = STATE_HEAD, STATE_HEAD + sets * ways
    if stored:
        words[REGISTER] = m[REGISTER]
    else:
        m[REGISTER] = words[REGISTER]
    for index in range(sets):
        s = record_of(m, index)
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


@compile_inline
def settle_sets(m: Words) -> None:
    """Note which lines of operands are there."""
    for word in range(np.uint64(m[SETTLED]), np.uint64(m[SETTLED_END])):
        m[word] = 0
    for index in range(np.uint64(m[SETS])):
        s = record_of(m, index)
        for way in range(np.uint64(m[WAYS])):
            settle(m, m[s + ENTRY + way] >> 8, -1, -1)


@compile_kept
def run_program(m: Words, words: Words) -> None:
    """Run a program through a cache.

    Parameters
    ----------
    m : ndarray of int64
        Header, sets, program and counters, as `hwmodels.nest.program` lays them out; sets and
        counters are changed.
    words : ndarray of int64
        State of the cache, as `hwmodels.cache.set_associative` keeps it; changed.

    Notes
    -----
    Every loop is tried some iterations at a time. In the sets where order does not tell
    (`note_again`) each line is touched once, and not again while the loop goes on and nothing
    else comes into the set (`settle_still`). The other sets alone are simulated by the loop's
    body, whose inner loops are tried in turn, and in a leaf by its accesses in program order.
    """
    move_sets(m, words, 0)
    if m[WINDOWS] < m[WINDOWS_END]:
        settle_sets(m)
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
    move_sets(m, words, 1)
