"""Compiled: loops where a hit does not change what leaves next, set by set (round robin, FIFO).

What is there, and marked where it is stored to, has settled: touching it changes nothing, in any
order. Bits tell, 32 lines a word, from when a line was touched first (`settle_touch`). Of a loop's
iterations only the lines that have not are looked at.
"""

import numpy as np

from hwmodels.kernels.cache_blocks import clash_of, span_of
from hwmodels.kernels.cache_policies import (
    choose_way,
    find_way,
    geometry_of,
    record_of,
    set_among,
    touch_settling,
)
from hwmodels.kernels.cache_words import (
    ALLOWED,
    ALONE,
    ALONE_END,
    ANY,
    BITS,
    CHUNK,
    CLEAN,
    ENTRY,
    FIRST,
    FIRST_BLOCK,
    KIND,
    LINE,
    LOOP_WORDS,
    LOOPS,
    NEVER,
    NOTES,
    ONE,
    OPERAND,
    OWN,
    PATIENCE,
    POLICY,
    RECORD,
    REGISTER,
    SEEN,
    SHARED,
    SHIFT,
    STAMP,
    THREE,
    TWO,
    WAYS,
    WINDOW_WORDS,
    WINDOWS,
    WINDOWS_END,
    WORD,
    WORK,
    WRITE,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part, lowest_bit


@compile_inline
def unsettled(m: Words, place: Integer, last: Integer) -> tuple[Integer, Integer]:
    """Bits of what has not settled from a place of the bits on, and how many were looked at."""
    shift = place & 31
    count = min(32 - shift, last - place + 1)
    return (~m[np.uint64(place >> 5)] >> shift) & ((1 << count) - 1), count


@compile_inline
def has_settled(m: Words, at: Integer, line: Integer) -> bool:
    """Whether a touch of a block's or piece's line changes nothing."""
    place = m[at + BITS] + line
    told: bool = (m[np.uint64(place >> 5)] >> (place & 31)) & 1 != 0
    return told


@compile_part
def meets(m: Words, line: Integer, start: Integer, stop: Integer, at: Integer, end: Integer,
          operand: Integer, others: Integer) -> bool:
    """Whether iterations [start, stop) of an operand's blocks touch a line (ANY: of all blocks).

    Of `others`: whether they store to it for another operand.
    """
    shift = m[SHIFT]
    while at < end:
        own = m[at + OPERAND] == operand
        if (m[at + WRITE] and not own) if others else (own or operand == ANY):
            turn, final, address, reach, step = span_of(m, at, start, stop, shift)
            while turn < final:
                if address >> shift <= line <= (address + reach) >> shift:
                    return True
                address += step
                turn += 1
        at += RECORD
    return False


@compile_inline
def operand_of(m: Words, line: Integer) -> Integer:
    """Operand a line is of; ANY: it may be of several, NEVER: it is of none.

    Windows overlap where operands share lines.
    """
    at, end = np.uint64(m[WINDOWS]), np.uint64(m[WINDOWS_END])
    operand = 0
    while at < end and not 0 <= line - m[at] < m[at + ONE]:
        operand += 1
        at += WINDOW_WORDS
    if at == end:
        return NEVER
    return operand if m[at + ALONE] <= line < m[at + ALONE_END] else ANY


@compile_inline
def evicts(m: Words, s: Integer, line: Integer) -> bool:
    """Whether a line is not there and its set is full."""
    ways = np.uint64(m[WAYS])
    full: bool = m[s + ENTRY + ways - ONE] >= 0
    return full and find_way(m, s + ENTRY, line) == ways


@compile_inline
def next_out(m: Words, s: Integer) -> Integer:
    """Line that leaves a full set next."""
    word, register = m[s + WORD], m[REGISTER]
    way = np.uint64(choose_way(m, s + WORD, m[WAYS], m[POLICY]))
    m[s + WORD], m[REGISTER] = word, register
    return m[s + ENTRY + way] >> 8


@compile_part
def note_unsettled(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer,
                   allowed: Integer, own: Integer,
                   clash: Integer) -> tuple[Integer, Integer, Integer, Integer]:
    """Note what has not settled of iterations [start, stop) of blocks, in sets stamped `own`.

    A set that sees several such lines, or one in several manners, clashes: it is stamped so.

    Returns
    -------
    clashed, note, least, most : int
        Sets that clash; where the notes end: line, set, block; lines between which all touched are.
    """
    shift, sets, mask, records, words = geometry_of(m)
    stamp = m[STAMP]
    clashed, note = 0, np.uint64(m[NOTES])
    least, most = NEVER, -1
    while at < end:
        turn, final, address, reach, step = span_of(m, at, start, stop, shift)
        if turn < final:
            travel = step * (final - turn - 1)
            least = min(least, address + min(0, travel))
            most = max(most, address + reach + max(0, travel))
        bits, kind = m[at + BITS], 2 * m[at + OPERAND] + m[at + WRITE]
        while turn < final:
            place, last = (address >> shift) + bits, ((address + reach) >> shift) + bits
            while place <= last:
                found, count = unsettled(m, place, last)
                while found:
                    line = place - bits + np.int64(lowest_bit(found))
                    found &= found - 1
                    index = set_among(sets, mask, line)
                    if m[allowed + index] == own:
                        s = records + index * words
                        if m[s + SEEN] != stamp:
                            m[s + SEEN], m[s + LINE], m[s + KIND] = stamp, line, kind
                            m[note], m[note + ONE] = line, np.int64(index)
                            m[note + TWO] = np.int64(at)
                            note += THREE
                        elif (m[s + LINE] != line or m[s + KIND] != kind) and (
                                m[clash + index] != stamp):
                            m[clash + index] = stamp
                            clashed += 1
                place += count
            address += step
            turn += 1
        at += RECORD
    return clashed, note, least >> shift, most >> shift


@compile_part
def find_clashes(m: Words, end: Integer, start: Integer, stop: Integer, at: Integer,
                 last: Integer, clash: Integer, clashed: Integer, least: Integer,
                 most: Integer) -> Integer:
    """Stamp noted sets where the order of blocks tells; return how many there are with others.

    It does where what leaves is touched, too.
    """
    stamp, note = m[STAMP], np.uint64(m[NOTES])
    while note < end:
        line, index, block = m[note], np.uint64(m[note + ONE]), np.uint64(m[note + TWO])
        if m[clash + index] != stamp:
            s = record_of(m, index)
            told = m[SHARED] and m[block + WRITE] and meets(
                m, line, start, stop, at, last, m[block + OPERAND], 1)
            if evicts(m, s, line):
                gone = next_out(m, s)
                if least <= gone <= most and not told:
                    operand = operand_of(m, gone)
                    told = operand != NEVER and meets(m, gone, start, stop, at, last, operand, 0)
            if told:
                m[clash + index] = stamp
                clashed += 1
        note += THREE
    return clashed


@compile_part
def touch_noted(m: Words, end: Integer, clash: Integer) -> None:
    """Touch the lines noted in sets that do not clash."""
    note = np.uint64(m[NOTES])
    while note < end:
        index = np.uint64(m[note + ONE])
        if m[clash + index] != m[STAMP]:
            touch_settling(m, m[note], record_of(m, index), np.uint64(m[note + TWO]))
        note += THREE


@compile_part
def try_settled(m: Words, op: Integer, depth: Integer, turn: Integer, extent: Integer,
                size: Integer, allowed: Integer, own: Integer) -> tuple[Integer, Integer, Integer]:
    """Deal with iterations of a loop in all sets but those left to its body.

    Returns
    -------
    stop, clashed, size : int
        Iterations [turn, stop) are dealt with but for `clashed` sets, stamped CLASH; the size to
        try next.
    """
    at = np.uint64(m[WORK]) + np.uint64(m[op + FIRST_BLOCK]) * RECORD
    end = np.uint64(m[WORK]) + np.uint64(m[op + FIRST]) * RECORD
    loop = np.uint64(m[LOOPS]) + (depth + ONE) * LOOP_WORDS
    clash = clash_of(m, depth)
    while True:
        m[STAMP] += 1
        stop = min(extent, turn + size)
        clashed, note, least, most = note_unsettled(m, turn, stop, at, end, allowed, own, clash)
        if note == np.uint64(m[NOTES]):
            return stop, 0, 4 * size if size < extent else size
        clashed = find_clashes(m, note, turn, stop, at, end, clash, clashed, least, most)
        if not clashed or stop - turn == 1:
            break
        size = (stop - turn + 3) // 4
        m[loop + CLEAN] = 0
    touch_noted(m, note, clash)
    m[loop + OWN], m[loop + ALLOWED] = m[STAMP], np.int64(clash)
    m[loop + CLEAN] = 0 if clashed else m[loop + CLEAN] + 1
    if m[loop + CLEAN] == PATIENCE:
        size, m[loop + CLEAN] = max(size, min(m[op + CHUNK], 2 * size)), 0
    return stop, clashed, size
