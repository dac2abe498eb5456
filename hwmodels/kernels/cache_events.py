"""Compiled: what has not settled, in order of time, where a hit does not change what leaves next.

Leaves are run so under every such policy, loops where sets share what chooses the line that leaves
(LFSR, one counter for all): a list of first touches, which what is evicted comes into again.
"""

import numpy as np

from hwmodels.kernels.cache_blocks import clash_of, divide, span_of
from hwmodels.kernels.cache_lines import run_rounds
from hwmodels.kernels.cache_policies import (
    choose_way,
    geometry_of,
    record_of,
    set_among,
    set_of,
    touch_settling,
)
from hwmodels.kernels.cache_settled import evicts, has_settled, meets, operand_of, unsettled
from hwmodels.kernels.cache_words import (
    ADDRESS,
    ALLOWED,
    ANY,
    BITS,
    CHUNK,
    CLEAN,
    COUPLED,
    ENTRY,
    FIRST,
    FIRST_BLOCK,
    FIRST_PLACE,
    HIGH,
    KIND,
    LAST,
    LAST_PLACE,
    LINE,
    LOG_STEP,
    LOOP_WORDS,
    LOOPS,
    LOW,
    NEVER,
    NOTES,
    ONE,
    OPERAND,
    OWN,
    POLICY,
    REACH,
    RECORD,
    REGISTER,
    REST,
    ROOM,
    SEEN,
    SHARED,
    SHIFT,
    STAMP,
    STEP,
    THREE,
    TIRED,
    TWO,
    WAYS,
    WORD,
    WORK,
    WRITE,
    ZERO,
)
from hwmodels.kernels.compiled import Integer, Words, compile_inline, compile_part, lowest_bit


@compile_part
def insert_event(m: Words, head: Integer, tail: Integer, key: Integer, line: Integer,
                 piece: Integer) -> Integer:
    """Put a touch into a list in order of time, unless it is there; return where the list ends."""
    at = tail
    while at > head and m[at - THREE] > key:
        at -= THREE
    move = at
    while move > head and m[move - THREE] == key:
        move -= THREE
        if m[move + ONE] == line and m[move + TWO] == np.int64(piece):
            return tail
    move = tail
    while move > at:
        m[move], m[move + ONE], m[move + TWO] = m[move - THREE], m[move - TWO], m[move - ONE]
        move -= THREE
    m[at], m[at + ONE], m[at + TWO] = key, line, np.int64(piece)
    return tail + THREE


@compile_part
def merge_events(m: Words, head: Integer, middle: Integer, tail: Integer,
                 limit: Integer) -> None:
    """Merge two lists in order of time that follow each other; of one moment the first comes first.

    The second is moved behind both, if there is room before a limit; else each of it is inserted.
    """
    if middle in (head, tail) or m[middle - THREE] <= m[middle]:
        return
    if tail + tail - middle > limit:
        end = middle
        while end < tail:
            end = insert_event(m, head, end, m[end], m[end + ONE], np.uint64(m[end + TWO]))
        return
    at, last = tail, tail + tail - middle
    while at < last:
        m[at] = m[at + middle - tail]
        at += ONE
    to = tail
    while last > tail:
        if middle > head and m[middle - THREE] > m[last - THREE]:
            middle -= THREE
            at = middle
        else:
            last -= THREE
            at = last
        to -= THREE
        m[to], m[to + ONE], m[to + TWO] = m[at], m[at + ONE], m[at + TWO]


@compile_part
def comes(m: Words, at: Integer, line: Integer, start: Integer) -> Integer:
    """When from an iteration on a block or piece first touches a line: iteration << 20 | place."""
    turn, step, shift = max(start, m[at + LOW]), m[at + STEP], m[SHIFT]
    if step > 0:
        turn = max(turn, divide((line << shift) - m[at + ADDRESS] - m[at + REACH] + step - 1, step,
                                m[at + LOG_STEP]))
    elif step < 0:
        turn = max(turn, (m[at + ADDRESS] - ((line + 1) << shift) - step) // -step)
    return turn << 20 | m[at + FIRST_PLACE]


@compile_inline
def stays(m: Words, at: Integer, line: Integer, stop: Integer) -> Integer:
    """Last iteration before one in which a block or piece touches a line."""
    turn, step, shift = min(stop, m[at + HIGH]) - 1, m[at + STEP], m[SHIFT]
    if step > 0:
        turn = min(turn, divide(((line + 1) << shift) - 1 - m[at + ADDRESS], step,
                                m[at + LOG_STEP]))
    elif step < 0:
        turn = min(turn, (m[at + ADDRESS] + m[at + REACH] - (line << shift)) // -step)
    return turn


@compile_part
def list_events(m: Words, start: Integer, stop: Integer, at: Integer, end: Integer,
                allowed: Integer, own: Integer) -> Integer:
    """List what has not settled of iterations [start, stop) of blocks or pieces, by first touch.

    Returns
    -------
    int
        Where the list ends (moment, line, block); zero when there is no room.
    """
    shift, sets, mask, _, _ = geometry_of(m)
    head = tail = np.uint64(m[NOTES])
    limit, lines = head + np.uint64(m[ROOM]), head
    while at < end:
        turn, final, address, reach, step = span_of(m, at, start, stop, shift)
        bits, own_head = m[at + BITS], tail
        while turn < final:
            place, last = (address >> shift) + bits, ((address + reach) >> shift) + bits
            lines += THREE * np.uint64(last - place + 1)
            while place <= last:
                found, count = unsettled(m, place, last)
                while found:
                    line = place - bits + np.int64(lowest_bit(found))
                    found &= found - 1
                    if m[allowed + set_among(sets, mask, line)] == own:
                        if tail + THREE > limit:
                            return ZERO
                        key = comes(m, at, line, start)
                        if tail == own_head or m[tail - THREE] <= key:
                            m[tail], m[tail + ONE], m[tail + TWO] = key, line, np.int64(at)
                            tail += THREE
                        else:
                            tail = insert_event(m, own_head, tail, key, line, at)
                place += count
            address += step
            turn += 1
        merge_events(m, head, own_head, tail, limit)
        at += RECORD
    return ZERO if tail > head and lines > limit else tail


@compile_inline
def left_behind(m: Words, at: Integer, line: Integer, turn: Integer) -> bool:
    """Whether a block or piece is never in a line from an iteration on; most that move are told."""
    step, address, shift = m[at + STEP], m[at + ADDRESS], m[SHIFT]
    if step > 0:
        behind: bool = (line + 1) << shift <= address + turn * step
        return behind
    return step == 0 and not address >> shift <= line <= (address + m[at + REACH]) >> shift


@compile_part
def next_touch(m: Words, at: Integer, line: Integer, key: Integer, start: Integer, stop: Integer,
               first: Integer) -> Integer:
    """When a block, or a piece of the streams at `first`, touches a line after a moment.

    It is not `left_behind`.

    Returns
    -------
    int
        A moment as of `comes`; NEVER if it does not.
    """
    turn, place = key >> 20, key & 0xFFFFF
    low, high = comes(m, at, line, start), stays(m, at, line, stop)
    if low >> 20 > high or turn > high:
        return NEVER
    if key < low:
        return low
    if place < m[at + FIRST_PLACE]:
        return turn << 20 | m[at + FIRST_PLACE]
    while place < m[at + LAST_PLACE]:
        place += 1
        stream = first + np.uint64(place) * RECORD
        if (m[stream + OPERAND] == m[at + OPERAND] and m[stream + WRITE] == m[at + WRITE]
                and (m[stream + ADDRESS] + turn * m[stream + STEP]) >> m[SHIFT] == line
                and m[stream + LOW] <= turn < m[stream + HIGH]):
            return turn << 20 | place
    return (turn + 1) << 20 | m[at + FIRST_PLACE] if turn < high else NEVER


@compile_part
def move_events(m: Words, head: Integer, tail: Integer) -> tuple[Integer, Integer]:
    """Move a list to where notes begin, over what was taken from it; return where it is."""
    to = np.uint64(m[NOTES])
    while head < tail:
        m[to] = m[head]
        to += ONE
        head += ONE
    return np.uint64(m[NOTES]), to


@compile_part
def touch_events(m: Words, head: Integer, tail: Integer, until: Integer, start: Integer,
                 stop: Integer, at: Integer, end: Integer,
                 first: Integer) -> tuple[Integer, Integer]:
    """Touch what is listed before a moment, and list again what is evicted and touched later.

    Each block's or piece's line is listed once at most, so there is room (`list_events`).

    Returns
    -------
    head, tail : int
        The list left.
    """
    limit = np.uint64(m[NOTES] + m[ROOM]) - THREE * ((end - at) // RECORD)
    while head < tail and m[head] < until:
        if tail > limit:
            head, tail = move_events(m, head, tail)
        key, line, piece = m[head], m[head + ONE], np.uint64(m[head + TWO])
        head += THREE
        if has_settled(m, piece, line):
            continue
        left, operand = touch_settling(m, line, record_of(m, set_of(m, line)), piece)
        piece = at
        while piece < end and operand != NEVER:
            if (m[piece + OPERAND] == operand or operand == ANY) and not left_behind(
                    m, piece, left >> 8, key >> 20):
                following = next_touch(m, piece, left >> 8, key, start, stop, first)
                if following != NEVER:
                    tail = insert_event(m, head, tail, following, left >> 8, piece)
            piece += RECORD
    return head, tail


@compile_part
def is_ordered(m: Words, event: Integer, tail: Integer, stop: Integer, at: Integer,
               end: Integer) -> bool:
    """Whether the order of blocks tells all about the next iteration for which events are listed.

    Not if a set sees several lines of one part of the loop's body, or what leaves is touched in
    the iteration, too; nor, where sets are coupled, if one part evicts several lines.
    """
    m[STAMP] += 1
    register, turn, ordered = m[REGISTER], m[event] >> 20, True
    drawn: Integer = -1
    while ordered and event < tail and m[event] >> 20 == turn:
        key, line, block = m[event], m[event + ONE], np.uint64(m[event + TWO])
        event += THREE
        if has_settled(m, block, line):
            continue
        s = record_of(m, set_of(m, line))
        if m[s + SEEN] == m[STAMP]:
            ordered = m[s + LINE] == line and m[s + KIND] < key
            continue
        m[s + SEEN], m[s + LINE], m[s + KIND] = m[STAMP], line, key
        if m[SHARED] and m[block + WRITE]:
            ordered = not meets(m, line, turn, stop, at, end, m[block + OPERAND], 1)
        if evicts(m, s, line):
            word = m[s + WORD]
            way = np.uint64(choose_way(m, s + WORD, m[WAYS], m[POLICY]))
            m[s + WORD] = word
            gone = m[s + ENTRY + way] >> 8
            operand = operand_of(m, gone)
            if (m[COUPLED] and drawn == key) or (operand != NEVER and meets(
                    m, gone, turn, turn + 1, at, end, operand, 0)):
                ordered = False
            drawn = key
    m[REGISTER] = register
    return ordered


@compile_part
def leave_events(m: Words, event: Integer, tail: Integer, clash: Integer) -> Integer:
    """Stamp the sets for which events of an iteration are listed; return how many there are."""
    m[STAMP] += 1
    turn, clashed = m[event] >> 20, 0
    while event < tail and m[event] >> 20 == turn:
        index = set_of(m, m[event + ONE])
        clashed += 1 if m[clash + index] != m[STAMP] else 0
        m[clash + index] = m[STAMP]
        event += THREE
    return clashed


@compile_part
def try_events(m: Words, op: Integer, depth: Integer, turn: Integer, extent: Integer,
                size: Integer, allowed: Integer,
                own: Integer) -> tuple[Integer, Integer, Integer, Integer]:
    """Deal with iterations of a loop by what has not settled, as far as blocks tell its order.

    Returns
    -------
    turn, stop, clashed, size : int
        Iterations before `turn` are dealt with, and those up to `stop` but for `clashed` sets,
        stamped CLASH; the size to try next.
    """
    work = np.uint64(m[WORK])
    at, end = work + np.uint64(m[op + FIRST_BLOCK]) * RECORD, work + np.uint64(
        m[op + FIRST]) * RECORD
    loop = np.uint64(m[LOOPS]) + (depth + ONE) * LOOP_WORDS
    m[loop + ALLOWED], m[loop + OWN] = np.int64(allowed), own
    if m[loop + CLEAN] == TIRED:
        m[loop + CLEAN] = TIRED - 1
        return turn, min(extent, turn + REST), 1, 1
    stop, tail = min(extent, turn + size), ZERO
    while tail == ZERO:
        stop = min(extent, turn + size)
        tail = list_events(m, turn, stop, at, end, allowed, own)
        size = size if tail else (stop - turn + 1) // 2
    head = np.uint64(m[NOTES])
    while head < tail and is_ordered(m, head, tail, stop, at, end):
        head, tail = touch_events(m, head, tail, ((m[head] >> 20) + 1) << 20, turn, stop, at, end,
                                  end)
    if head == tail:
        m[loop + CLEAN] = 0
        return stop, stop, 0, 2 * size if size < extent else size
    reached = m[head] >> 20
    clashed = leave_events(m, head, tail, clash_of(m, depth))
    m[loop + OWN], m[loop + ALLOWED] = m[STAMP], np.int64(clash_of(m, depth))
    m[loop + CLEAN] = m[loop + CLEAN] + 1 if reached == turn else 0
    return reached, reached + 1, clashed, max(1, reached - turn)


@compile_part
def share_stores(m: Words, event: Integer, tail: Integer, start: Integer, stop: Integer,
                 at: Integer, end: Integer) -> bool:
    """Whether several operands store to a line listed."""
    while event < tail:
        piece = np.uint64(m[event + TWO])
        if m[piece + WRITE] and meets(m, m[event + ONE], start, stop, at, end,
                                      m[piece + OPERAND], 1):
            return True
        event += THREE
    return False


@compile_part
def run_settled(m: Words, op: Integer, turn: Integer, extent: Integer, allowed: Integer,
                own: Integer) -> None:
    """Run a leaf, some iterations at a time, by the touches that change something."""
    work = np.uint64(m[WORK])
    first, last = np.uint64(m[op + FIRST]) * RECORD, np.uint64(m[op + LAST]) * RECORD
    at, end = work + np.uint64(m[op + FIRST_BLOCK]) * RECORD, work + first
    head, size = np.uint64(m[NOTES]), m[op + CHUNK]
    while turn < extent:
        stop = min(extent, turn + size)
        tail = list_events(m, turn, stop, at, end, allowed, own)
        if tail == ZERO:
            size = m[op + CHUNK] = (stop - turn + 1) // 2
            continue
        if tail == head:
            size = 4 * size if size < extent else size
        elif m[SHARED] and share_stores(m, head, tail, turn, stop, at, end):
            run_rounds(m, turn, stop, work + first, work + last, allowed, own)
        else:
            touch_events(m, head, tail, NEVER, turn, stop, at, end, work + first)
            size = m[op + CHUNK]
        turn = stop
