"""Compiled: what happens at every basic block and every memory access of a program.

All state is one int64 array: HEAD words, then tables at offsets the head names: spans of code, a
word for each halfword of them that finds the block there, blocks, regions of memory, accesses by
function and region, and the accesses written down until Python takes them. What Python has to
decide it is asked for through EVENT, the address `twin.program.events` has.
"""

from hwmodels.kernels.compiled import (
    Integer,
    Words,
    compile_callback,
    compile_kept,
    compile_part,
)
from hwmodels.kernels.native import call_native, read_host

HEAD = 64
(SCRATCH, SPANS_AT, SPAN_COUNT, BLOCKS_AT, LAST_BLOCK, LAST_END, INSTRUCTIONS, CYCLES, LIMIT, ALARM,
 RETURN, REGIONS_AT, REGION_COUNT, COUNTS_AT, ROOM_AT, WRITTEN, ROOM, FETCH_LINE, FETCH_KEEPS,
 RECORDING, OWN_FUNCTION, STOPPING, BEGIN, UNTIL, CALLS_AT, DEPTH,
 TRACED_END, BLOCK_END, START, START_TURNS, VALUES_AT, SPACES_AT, SPACE_COUNT, SELF, EVENT,
 READ_REGISTER) = range(36)
"""SELF: the address of SCRATCH, the first word; EVENT and READ_REGISTER: of functions."""
MOST_CALLS = 4096

SPAN = 3
SPAN_BASE, SPAN_END, SPAN_INDEX = range(SPAN)
BLOCK = 15
(ADDRESS, BYTES, COUNT, AGAIN, TAKEN, FUNCTION, MARKED, LENGTH, ONCE, MORE, BRANCHED,
 FETCH_REGION, CALLING, STRETCHES_AT, STAYS) = range(BLOCK)
"""STAYS: fetched again at once it finds its lines as it left them, so nothing is written down."""
STRETCH = 4
BEGINS, STEPS_AT, MAKING, ACCESSING = range(STRETCH)
"""At STRETCHES_AT of a block, 0 before they are known: how many stretches, then each: how many of
its steps make values, and how many access memory."""
STEP = 6
KIND, MADE, FIRST, SECOND, FACTOR, CONSTANT = range(STEP)
READ_STEP, WRITE_STEP, _, ENTRY, SUM, LOAD, APART = range(7)
"""An access of MADE bytes at FIRST + SECOND x FACTOR + CONSTANT; a register (MADE: its number + 1)
as the emulator numbers it (FACTOR); such a sum; the word at one; a check that MADE bytes at one are
none of the word's before."""
MOST_VALUES = 64
SPACE = 3
SPACE_BASE, SPACE_END, HELD_AT = range(SPACE)
MASK = 0xFFFFFFFF
REGION = 5
BASE, END, KEPT_READS, KEPT_WRITES, FETCH_SHIFT = range(REGION)
COUNTS = 6
READS, WRITES, READ_BYTES, WRITE_BYTES, FURTHER_READS, FURTHER_WRITES = range(COUNTS)
"""Further: what an access that is not aligned is made of, bytes, halfwords and words, but one."""

(NEW_BLOCK, ODD_BLOCK, TIMER, LAYER, RETURNED, FULL, OVERRUN, STARTED, UNREAD, DOUBT) = range(10)
"""First argument of EVENT."""
READ, WRITE, FETCH = range(3)
SCALE = 64
"""Cycles are counted in 64ths."""


@compile_part
def write_down(words: Words, address: Integer, function: Integer, region: Integer, size: Integer,
               kind: Integer) -> None:
    """Keep an access for the caches, in two words; Python takes them when there is no room."""
    place = words[WRITTEN]
    at = words[ROOM_AT] + 2 * place
    words[at] = address
    words[at + 1] = function << 20 | region << 12 | size << 2 | kind
    words[WRITTEN] = place + 1
    if place + 1 >= words[ROOM]:
        call_native(words[EVENT], FULL, address, size)
        words[WRITTEN] = 0


@compile_part
def find_block(words: Words, address: Integer) -> Integer:
    """Offset of the word that says which block begins at an address, -1 outside of code."""
    at = words[SPANS_AT]
    for _ in range(words[SPAN_COUNT]):
        if words[at + SPAN_BASE] <= address < words[at + SPAN_END]:
            return words[at + SPAN_INDEX] + ((address - words[at + SPAN_BASE]) >> 1)
        at += SPAN
    return -1


@compile_part
def fetch(words: Words, block: Integer, address: Integer, size: Integer) -> None:
    """Write down the lines of a block that lies in memory an instruction cache holds."""
    region = words[block + FETCH_REGION]
    if region < 0:
        return
    shift = words[words[REGIONS_AT] + region * REGION + FETCH_SHIFT]
    function = words[block + FUNCTION]
    for line in range(address >> shift, ((address + size - 1) >> shift) + 1):
        if line != words[FETCH_LINE] or not words[FETCH_KEEPS]:
            words[FETCH_LINE] = line
            write_down(words, line << shift, function, region, 1, FETCH)


@compile_part
def know_block(words: Words, address: Integer, size: Integer) -> Integer:
    """Offset of a block, which Python learns of when it is new; 0 where it cannot be."""
    index = find_block(words, address)
    if index < 0:
        call_native(words[EVENT], ODD_BLOCK, address, size)
        return 0
    block = words[index]
    if block == 0 or words[block + BYTES] != size:
        block = call_native(words[EVENT], NEW_BLOCK, address, size)
    return max(block, 0)


@compile_part
def step_block(words: Words, block: Integer, address: Integer, size: Integer) -> Integer:
    """Count a block, whether it follows itself, and whether the one before was left by a branch.

    Returns 0 where it is not to run now.
    """
    if words[CYCLES] >= words[ALARM] and call_native(words[EVENT], TIMER, address, size):
        return 0
    if words[INSTRUCTIONS] >= words[LIMIT]:
        call_native(words[EVENT], OVERRUN, address, size)
        return 0
    if address == words[RETURN]:
        call_native(words[EVENT], RETURNED, address, size)
        if words[STOPPING]:
            return 0
    if words[block + MARKED]:
        call_native(words[EVENT], LAYER, address, size)
    words[block + COUNT] += 1
    words[INSTRUCTIONS] += words[block + LENGTH]
    last = words[LAST_BLOCK]
    if last == block:
        words[block + AGAIN] += 1
        words[CYCLES] += words[block + MORE]
    else:
        words[CYCLES] += words[block + ONCE]
        if last > 0 and words[LAST_END] != address:
            words[last + TAKEN] += 1
            words[CYCLES] += words[last + BRANCHED]
    words[LAST_BLOCK] = block
    words[LAST_END] = address + size
    words[OWN_FUNCTION] = words[block + FUNCTION]
    if words[RECORDING] and (last != block or not words[block + STAYS]):
        fetch(words, block, address, size)
    return 1


@compile_part
def step_access(words: Words, address: Integer, size: Integer, write: Integer) -> None:
    """Count an access by function and region, and write it down where a cache may hold it."""
    at = words[REGIONS_AT]
    for region in range(words[REGION_COUNT]):
        if words[at + BASE] <= address < words[at + END]:
            function = words[OWN_FUNCTION]
            counts = words[COUNTS_AT] + (function * words[REGION_COUNT] + region) * COUNTS
            words[counts + write] += 1
            words[counts + READ_BYTES + write] += size
            if address & (size - 1) & 3:
                words[counts + FURTHER_READS + write] += 2 if address & 1 and size >= 4 else 1
            if words[at + KEPT_READS + write]:
                write_down(words, address, function, region, size, write)
            return
        at += REGION


@compile_part
def add_up(words: Words, at: Integer) -> Integer:
    """Sum of a step, in 32 bits."""
    values = words[VALUES_AT]
    return (words[values + words[at + FIRST]] + words[values + words[at + SECOND]]
            * words[at + FACTOR] + words[at + CONSTANT]) & MASK


@compile_part
def read_word(words: Words, address: Integer) -> Integer:
    """Word of memory at an address, -1 where there is none."""
    at = words[SPACES_AT]
    for _ in range(words[SPACE_COUNT]):
        if words[at + SPACE_BASE] <= address and address + 4 <= words[at + SPACE_END]:
            return read_host(words[at + HELD_AT] + address - words[at + SPACE_BASE], 4)
        at += SPACE
    return -1


@compile_part
def make_values(words: Words, machine: Integer, stretch: Integer) -> Integer:
    """Make the values addresses of a stretch rest on; 0 where memory does not hold them yet."""
    at, values, loaded = words[stretch + STEPS_AT], words[VALUES_AT], 0
    for _ in range(words[stretch + MAKING]):
        kind, made = words[at + KIND], words[at + MADE]
        if kind == ENTRY:
            words[SCRATCH] = 0
            call_native(words[READ_REGISTER], machine, words[at + FACTOR], words[SELF])
            words[values + made] = words[SCRATCH]
        elif kind == SUM:
            words[values + made] = add_up(words, at)
        elif kind == LOAD:
            loaded = add_up(words, at)
            words[values + made] = read_word(words, loaded)
            if words[values + made] < 0:
                return 0
        else:
            stored = add_up(words, at)
            if stored < loaded + 4 and loaded < stored + made:
                return 0
        at += STEP
    return 1


@compile_part
def step_stretch(words: Words, stretch: Integer) -> None:
    """Count what a stretch accesses, of values that were made."""
    at = words[stretch + STEPS_AT] + STEP * words[stretch + MAKING]
    for _ in range(words[stretch + ACCESSING]):
        step_access(words, add_up(words, at), words[at + MADE], words[at + KIND])
        at += STEP


@compile_callback("i64", "i64", "i32", "ptr")
def on_block(machine: Integer, address: Integer, size: Integer, words: Words) -> None:
    """Step a block and what it accesses, before Unicorn runs it."""
    if words[STOPPING]:
        return
    block = know_block(words, address, size)
    if block == 0:
        return
    if not words[RECORDING]:
        step_block(words, block, address, size)
        return
    if words[block + STRETCHES_AT] == 0 and (call_native(words[EVENT], UNREAD, address, size)
                                             or words[block + STRETCHES_AT] == 0):
        return
    if not make_values(words, machine, words[block + STRETCHES_AT] + 1):
        call_native(words[EVENT], DOUBT, address, size)
        return
    if step_block(words, block, address, size) and words[RECORDING]:
        step_stretch(words, words[block + STRETCHES_AT] + 1)


@compile_callback("i64", "i64", "i32", "ptr")
def on_stretch(machine: Integer, begin: Integer, _: Integer, words: Words) -> None:
    """Step what a block accesses from one of its instructions on, before Unicorn runs that."""
    block = words[LAST_BLOCK]
    if words[STOPPING] or not words[RECORDING] or block == 0:
        return
    at = words[block + STRETCHES_AT]
    if at == 0:
        return
    stretch = at + 1
    for _ in range(words[at] - 1):
        stretch += STRETCH
        if words[stretch + BEGINS] == begin:
            make_values(words, machine, stretch)
            step_stretch(words, stretch)
            return


@compile_part
def follow_calls(words: Words, address: Integer) -> None:
    """Keep the addresses functions return to, as blocks tell them."""
    depth, last = words[DEPTH], words[LAST_BLOCK]
    if last > 0 and words[last + CALLING] and address != words[LAST_END]:
        if depth < MOST_CALLS:
            words[words[CALLS_AT] + depth] = words[LAST_END]
            words[DEPTH] = depth + 1
    elif depth > 0 and words[words[CALLS_AT] + depth - 1] == address:
        words[DEPTH] = depth - 1


@compile_part
def end_of(words: Words, ends: Words, address: Integer, otherwise: Integer) -> Integer:
    """Where the block that begins at an address ends, as the listing has it."""
    index = find_block(words, address)
    if index < 0 or ends[index - words[words[SPANS_AT] + SPAN_INDEX]] == 0:
        return otherwise
    return ends[index - words[words[SPANS_AT] + SPAN_INDEX]]


@compile_kept
def replay(words: Words, ends: Words, events: Words) -> Integer:
    """Take what a tracer wrote down; return how many events were taken before the end.

    A tracer cuts blocks as it pleases: what goes on where it ended is no block of its own, nor is
    what begins anew inside a block that ends in a call.
    """
    for place in range(events.shape[0]):
        event = events[place]
        kind, address, size = event & 3, event >> 2 & 0xFFFFFFFF, event >> 34
        if kind:
            if words[BEGIN] < 0:
                step_access(words, address, size, kind - 1)
            continue
        if words[BEGIN] >= 0:
            if address != words[BEGIN]:
                continue
            words[BEGIN] = -1
        elif address == words[UNTIL] and words[RECORDING]:
            words[STOPPING] = 1
            return place
        elif address < words[BLOCK_END] and (address == words[TRACED_END] or (
                words[words[LAST_BLOCK] + CALLING] and address > words[
                    words[LAST_BLOCK] + ADDRESS])):
            words[TRACED_END] = address + size
            if words[TRACED_END] <= words[BLOCK_END]:
                continue
            size -= words[BLOCK_END] - address
            address = words[BLOCK_END]
        words[TRACED_END] = address + size
        begin = address
        while begin < address + size:
            end = end_of(words, ends, begin, address + size)
            follow_calls(words, begin)
            if begin == words[START]:
                words[START_TURNS] -= 1
                if words[START_TURNS] == 0:
                    call_native(words[EVENT], STARTED, begin, end - begin)
            block = know_block(words, begin, end - begin)
            if block:
                step_block(words, block, begin, end - begin)
            if words[STOPPING]:
                return place
            words[BLOCK_END] = end
            begin = end
    return events.shape[0]
