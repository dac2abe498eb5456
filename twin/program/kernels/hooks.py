"""Numba: what happens at every basic block and every memory access of a program.

All state is one int64 array: HEAD words, then tables at offsets the head names: spans of code, a
word for each halfword of them that finds the block there, blocks, regions of memory, accesses by
function and region, and the accesses written down until Python takes them. What Python has to
decide it is asked for through `twin_program_event`, a symbol `twin.program.events` gives.
"""

from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import carray

from calibration.virtual_board.kernels.hooks import (
    IT_STATE,
    WORDS,
    XPSR,
    compile_callback,
    compile_part,
    uc_reg_read,
    uc_reg_write,
)
from hwmodels.kernels.compiled import Integer, Words

HEAD = 64
(SCRATCH, SPANS_AT, SPAN_COUNT, BLOCKS_AT, LAST_BLOCK, LAST_END, INSTRUCTIONS, CYCLES, LIMIT, ALARM,
 RETURN, REGIONS_AT, REGION_COUNT, TALLY_AT, ROOM_AT, WRITTEN, ROOM, FETCH_LINE, FETCH_KEEPS,
 RECORDING, CONDITIONAL, OWN_FUNCTION, STOPPING, BEGIN, UNTIL, CALLS_AT, DEPTH,
 TRACED_END, BLOCK_END, START, START_TURNS) = range(31)
MOST_CALLS = 4096

SPAN = 3
SPAN_BASE, SPAN_END, SPAN_INDEX = range(SPAN)
BLOCK = 14
(ADDRESS, BYTES, COUNT, AGAIN, TAKEN, FUNCTION, MARKED, LENGTH, ONCE, MORE, BRANCHED,
 FETCH_REGION, CONDITIONS, CALLING) = range(BLOCK)
REGION = 5
BASE, END, KEPT_READS, KEPT_WRITES, FETCH_SHIFT = range(REGION)
TALLY = 4
READS, WRITES, READ_BYTES, WRITE_BYTES = range(TALLY)

NEW_BLOCK, ODD_BLOCK, TIMER, LAYER, RETURNED, FULL, OVERRUN, STARTED = range(8)
"""What `twin_program_event` is told."""
READ, WRITE, FETCH = range(3)
SCALE = 64
"""Cycles are counted in 64ths."""

twin_program_event: Any = types.ExternalFunction("twin_program_event", types.int64(
    types.int64, types.int64, types.int64))


@compile_part(inline="always")
def write_down(words: Words, address: Integer, function: Integer, region: Integer, size: Integer,
               kind: Integer) -> None:
    """Keep an access for the caches, in two words; Python takes them when there is no room."""
    place = words[WRITTEN]
    at = words[ROOM_AT] + 2 * place
    words[at] = address
    words[at + 1] = function << 20 | region << 12 | size << 2 | kind
    words[WRITTEN] = place + 1
    if place + 1 >= words[ROOM]:
        twin_program_event(FULL, address, size)
        words[WRITTEN] = 0


@compile_part(inline="always")
def find_block(words: Words, address: Integer) -> Integer:
    """Offset of the word that says which block begins at an address, -1 outside of code."""
    at = words[SPANS_AT]
    for _ in range(words[SPAN_COUNT]):
        if words[at + SPAN_BASE] <= address < words[at + SPAN_END]:
            return words[at + SPAN_INDEX] + ((address - words[at + SPAN_BASE]) >> 1)
        at += SPAN
    return -1


@compile_part(inline="always")
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


@compile_part()
def step_block(words: Words, address: Integer, size: Integer) -> None:
    """Count a block, whether it follows itself, and whether the one before was left by a branch."""
    index = find_block(words, address)
    if index < 0:
        twin_program_event(ODD_BLOCK, address, size)
        return
    block = words[index]
    if block == 0 or words[block + BYTES] != size:
        block = twin_program_event(NEW_BLOCK, address, size)
        if block <= 0:
            return
    if words[CYCLES] >= words[ALARM] and twin_program_event(TIMER, address, size):
        return
    if words[INSTRUCTIONS] >= words[LIMIT]:
        twin_program_event(OVERRUN, address, size)
        return
    if address == words[RETURN]:
        twin_program_event(RETURNED, address, size)
        if words[STOPPING]:
            return
    if words[block + MARKED]:
        twin_program_event(LAYER, address, size)
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
    words[CONDITIONAL] = words[block + CONDITIONS]
    if words[RECORDING]:
        fetch(words, block, address, size)


@compile_part(inline="always")
def step_access(words: Words, address: Integer, size: Integer, write: Integer) -> None:
    """Count an access by function and region, and write it down where a cache may hold it."""
    at = words[REGIONS_AT]
    for region in range(words[REGION_COUNT]):
        if words[at + BASE] <= address < words[at + END]:
            function = words[OWN_FUNCTION]
            tally = words[TALLY_AT] + (function * words[REGION_COUNT] + region) * TALLY
            words[tally + write] += 1
            words[tally + 2 + write] += size
            if words[at + KEPT_READS + write]:
                write_down(words, address, function, region, size, write)
            return
        at += REGION


@compile_callback(types.void(types.voidptr, types.uint64, types.uint32, types.voidptr), cache=True)
def on_block(_: Integer, begin: Integer, length: Integer, data: Integer) -> None:
    """Step a block, before Unicorn runs it."""
    words = carray(data, WORDS, np.int64)
    if not words[STOPPING]:
        step_block(words, np.int64(begin), np.int64(length))


@compile_callback(types.void(types.voidptr, types.int32, types.uint64, types.int32, types.int64,
                        types.voidptr), cache=True)
def on_access(machine: Integer, kind: Integer, begin: Integer, length: Integer, _: Integer,
              data: Integer) -> None:
    """Step an access, before Unicorn makes it.

    The IT state is cleared for the reason `calibration.virtual_board.kernels.hooks` gives, in
    blocks that have one.
    """
    words = carray(data, WORDS, np.int64)
    if words[CONDITIONAL]:
        words[SCRATCH] = 0
        uc_reg_read(machine, XPSR, data)
        if words[SCRATCH] & IT_STATE:
            words[SCRATCH] &= ~IT_STATE
            uc_reg_write(machine, XPSR, data)
    if not words[RECORDING]:
        return
    # UC_MEM_WRITE is 17, UC_MEM_READ 16
    step_access(words, np.int64(begin), np.int64(length), np.int64(kind == 17))


@compile_part(inline="always")
def follow_calls(words: Words, address: Integer) -> None:
    """Keep the addresses functions return to, as blocks tell them."""
    depth, last = words[DEPTH], words[LAST_BLOCK]
    if last > 0 and words[last + CALLING] and address != words[LAST_END]:
        if depth < MOST_CALLS:
            words[words[CALLS_AT] + depth] = words[LAST_END]
            words[DEPTH] = depth + 1
    elif depth > 0 and words[words[CALLS_AT] + depth - 1] == address:
        words[DEPTH] = depth - 1


@compile_part(inline="always")
def end_of(words: Words, ends: Words, address: Integer, otherwise: Integer) -> Integer:
    """Where the block that begins at an address ends, as the listing has it."""
    index = find_block(words, address)
    if index < 0 or ends[index - words[words[SPANS_AT] + SPAN_INDEX]] == 0:
        return otherwise
    return ends[index - words[words[SPANS_AT] + SPAN_INDEX]]


@compile_part(cache=True)
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
                    twin_program_event(STARTED, begin, end - begin)
            step_block(words, begin, end - begin)
            if words[STOPPING]:
                return place
            words[BLOCK_END] = end
            begin = end
    return events.shape[0]
