"""Compiled: what happens at every basic block and every memory access of the emulated core.

All state is one int64 array. HEAD words, then tables at offsets the head names: blocks (COUNT,
AGAIN, TAKEN, BYTES each), blocks seen, regions of memory, entries of both caches, trace. Costs
are in 1/64 cycle. Caches are looked up by `meet_set` of `hwmodels.kernels.touch_stream`, as those
of predictions are; a word per set, of its policy, stands after the entries.
"""

from hwmodels.kernels.cache_policies import meet_set
from hwmodels.kernels.cache_words import BYPASS, HIT
from hwmodels.kernels.compiled import Integer, Words, compile_callback, compile_part
from hwmodels.kernels.native import call_native

HEAD = 64
(SCRATCH, CODE_BASE, CODE_SLOTS, SEEN_COUNT, LAST_SLOT, LAST_END, LOADS, STORES, STALL, READ_MISSES,
 WRITE_MISSES, WRITE_BACKS, FETCH_MISSES, TRACE_COUNT, TRACE_LIMIT, DATA_TOUCHES, ODD_BLOCKS,
 BLOCKS_AT, SEEN_AT, REGIONS_AT, REGION_COUNT, WRITE_BACK_COST, TRACE_AT, FETCH_STALL,
 SELF, READ_REGISTER, WRITE_REGISTER) = range(27)
"""SELF: the address of SCRATCH, the first word; READ_REGISTER, WRITE_REGISTER: of functions."""
DATA, FETCH = 32, 48
"""Offsets of the two caches in the head."""
AT, SETS, WAYS, LINE_SHIFT, POLICY, BACK, ALLOCATE, REGISTER, LAST_LINE = range(9)

SLOT = 4
COUNT, AGAIN, TAKEN, BYTES = range(SLOT)
REGION = 14
(BASE, END, CACHED, READ_MISS, WRITE_MISS, READ_COST, WRITE_COST, BUFFER_SHIFT, BUFFER_LINE,
 FETCH_CACHED, FETCH_MISS, FETCH_COST, FETCH_SHIFT, FETCH_LINE) = range(REGION)

XPSR = 120  # UC_ARM_REG_XPSR
IT_STATE = 0x0600FC00


@compile_part
def touch(words: Words, cache: Integer, line: Integer, write: Integer) -> Integer:
    """Look a line up: 0 hit, 1 filled, 2 filled over a dirty line, 3 missed and not allocated."""
    sets, ways, at = words[cache + SETS], words[cache + WAYS], words[cache + AT]
    index = line % sets
    met, left = meet_set(line, write, line << 8 | (write & words[cache + BACK]),
                         words[cache + ALLOCATE], words, at + index * ways,
                         at + sets * ways + index, cache + REGISTER, ways, words[cache + POLICY])
    if met == HIT:
        return 0
    if met == BYPASS:
        return 3
    return 2 if left >= 0 and left & 1 else 1


@compile_part
def find_region(words: Words, address: Integer) -> Integer:
    """Offset of the region that holds an address, -1 for none (peripherals)."""
    at = words[REGIONS_AT]
    for _ in range(words[REGION_COUNT]):
        if words[at + BASE] <= address < words[at + END]:
            return at
        at += REGION
    return -1


@compile_part
def fetch(words: Words, address: Integer, size: Integer) -> None:
    """Charge the lines of code a block lies in."""
    region = find_region(words, address)
    if region < 0:
        return
    if not words[region + FETCH_CACHED]:
        width = words[region + FETCH_SHIFT]
        if not width:
            words[FETCH_STALL] += words[region + FETCH_COST] * ((size + 3) >> 2)
            return
        for line in range(address >> width, ((address + size - 1) >> width) + 1):
            if line != words[region + FETCH_LINE]:
                words[region + FETCH_LINE] = line
                words[FETCH_STALL] += words[region + FETCH_COST]
        return
    shift = words[FETCH + LINE_SHIFT]
    for line in range(address >> shift, ((address + size - 1) >> shift) + 1):
        if line == words[FETCH + LAST_LINE]:
            continue  # touching the latest line again changes nothing under any policy
        words[FETCH + LAST_LINE] = line
        if touch(words, FETCH, line, 0):
            words[FETCH_MISSES] += 1
            words[FETCH_STALL] += words[region + FETCH_MISS]


@compile_part
def look_up(words: Words, region: Integer, address: Integer, size: Integer, write: Integer) -> None:
    """Look up the lines of an access in the data cache."""
    shift, back = words[DATA + LINE_SHIFT], words[DATA + BACK]
    for line in range(address >> shift, ((address + size - 1) >> shift) + 1):
        words[DATA_TOUCHES] += 1
        if write and not back:
            words[STALL] += words[region + WRITE_COST]
        met = touch(words, DATA, line, write)
        if met == 0 or met == 3:
            continue
        if write:
            words[WRITE_MISSES] += 1
            words[STALL] += words[region + WRITE_MISS]
        else:
            words[READ_MISSES] += 1
            words[STALL] += words[region + READ_MISS]
        if met == 2:
            words[WRITE_BACKS] += 1
            words[STALL] += words[WRITE_BACK_COST]


@compile_callback("i64", "i64", "i32", "ptr")
def on_block(_: Integer, address: Integer, size: Integer, words: Words) -> None:
    """Count a block, whether it follows itself, and whether the one before was left by a branch."""
    slot = (address - words[CODE_BASE]) >> 1
    if slot < 0 or slot >= words[CODE_SLOTS]:
        words[ODD_BLOCKS] += 1
        return
    at = words[BLOCKS_AT] + slot * SLOT
    if words[at + COUNT] == 0:
        words[words[SEEN_AT] + words[SEEN_COUNT]] = slot
        words[SEEN_COUNT] += 1
        words[at + BYTES] = size
    elif words[at + BYTES] != size:
        words[ODD_BLOCKS] += 1
    words[at + COUNT] += 1
    last = words[LAST_SLOT]
    if last == slot:
        words[at + AGAIN] += 1
    elif last >= 0 and words[LAST_END] != address:
        words[words[BLOCKS_AT] + last * SLOT + TAKEN] += 1
    words[LAST_SLOT] = slot
    words[LAST_END] = address + size
    fetch(words, address, size)


@compile_callback("i64", "i32", "i64", "i32", "i64", "ptr")
def on_access(machine: Integer, kind: Integer, address: Integer, size: Integer, _: Integer,
              words: Words) -> None:
    """Count an access, write it down if asked, and charge what it waits for.

    Inside an IT block Unicorn 2.1 saves the IT state before it calls a hook and never clears it:
    the first instructions of the next block would be taken for conditional ones. So it is cleared
    here; what is left of the block has its conditions in translated code.
    """
    words[SCRATCH] = 0
    call_native(words[READ_REGISTER], machine, XPSR, words[SELF])
    if words[SCRATCH] & IT_STATE:
        words[SCRATCH] &= ~IT_STATE
        call_native(words[WRITE_REGISTER], machine, XPSR, words[SELF])
    region = find_region(words, address)
    if region < 0:
        return
    write = 1 if kind == 17 else 0  # UC_MEM_WRITE; 16 is UC_MEM_READ
    if write:
        words[STORES] += 1
    else:
        words[LOADS] += 1
    count = words[TRACE_COUNT]
    if count < words[TRACE_LIMIT]:
        words[words[TRACE_AT] + count] = address << 8 | size << 1 | write
        words[TRACE_COUNT] = count + 1
    if words[region + CACHED]:
        look_up(words, region, address, size, write)
        return
    shift = words[region + BUFFER_SHIFT]
    if shift and not write:
        line = address >> shift
        if line != words[region + BUFFER_LINE]:
            words[region + BUFFER_LINE] = line
            words[STALL] += words[region + READ_COST]
        return
    words[STALL] += words[region + (WRITE_COST if write else READ_COST)]
