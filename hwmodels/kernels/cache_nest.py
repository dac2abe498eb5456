"""Numba: run a flattened loop nest through a set-associative cache, access by access.

State, one int64 array: [0] LFSR, [1] ..., then `sets x ways` entries from STATE_HEAD, then one
word per set (tree bits of pseudo-LRU, next victim of round robin and FIFO). An entry is
line << 8 | owner << 1 | dirty, -1 when empty; under LRU a set's entries are kept in order of
recency, most recent first.
"""

import numba
import numpy as np

STATE_HEAD = 8
LRU, PLRU, ROUND_ROBIN, LFSR = 0, 1, 2, 3
HIT, BYPASS, FILL = -4, -3, -1
LOOP, END, LEAF = 0, 1, 2
READ_MISSES, WRITE_MISSES, BYPASSES = 0, 1, 2
EVICTIONS, WRITE_BACKS = 0, 1
# Fields of the geometry array.
G_SETS, G_WAYS, G_SHIFT, G_POLICY, G_BACK, G_ALLOCATE = 0, 1, 2, 3, 4, 5


@numba.njit(cache=True, forceinline=True)
def set_of(line, sets):
    """Set a line maps to."""
    if sets & (sets - 1) == 0:
        return line & (sets - 1)
    return line % sets


@numba.njit(cache=True, forceinline=True)
def touch_lru(state, base, ways, line, entry, write, allocate):
    """Touch a line under LRU: HIT, BYPASS, or the entry that had to leave (FILL: none)."""
    found = state[base]
    if found >> 8 == line:
        if write:
            state[base] = entry
        return HIT
    way = 1
    while way < ways and state[base + way] >> 8 != line:
        way += 1
    result = HIT
    if way < ways:
        found = entry if write else state[base + way]
    else:
        if write and not allocate:
            return BYPASS
        way = ways - 1
        result = state[base + way]
        found = entry
    for to in range(base + way, base, -1):
        state[to] = state[to - 1]
    state[base] = found
    return result


@numba.njit(cache=True, forceinline=True)
def point_away(bits, way, ways):
    """Tree bits after a touch of `way`: every node on its path points to the other half."""
    node = 1
    half = ways >> 1
    while half:
        right = way & half
        if right:
            bits &= ~(1 << node)
            node = 2 * node + 1
        else:
            bits |= 1 << node
            node = 2 * node
        half >>= 1
    return bits


@numba.njit(cache=True, forceinline=True)
def choose_victim(state, word, ways, policy):
    """Way a full set gives up; steps the counter or register of round robin and LFSR."""
    if policy == PLRU:
        bits = state[word]
        node = 1
        while node < ways:
            node = 2 * node + ((bits >> node) & 1)
        return node - ways
    if policy == ROUND_ROBIN:
        victim = state[word]
        state[word] = victim + 1 if victim + 1 < ways else 0
        return victim
    register = state[0]
    register = (register >> 1) ^ (0xB400 if register & 1 else 0)
    state[0] = register
    return register % ways


@numba.njit(cache=True, forceinline=True)
def touch_placed(state, base, word, ways, line, entry, write, allocate, policy):
    """Touch a line under a policy that leaves lines in their ways; results as `touch_lru`."""
    way = 0
    while way < ways and state[base + way] >> 8 != line:
        way += 1
    result = HIT
    if way < ways:
        if write:
            state[base + way] = entry
    else:
        if write and not allocate:
            return BYPASS
        way = 0
        while way < ways and state[base + way] >= 0:
            way += 1
        if way == ways:
            way = choose_victim(state, word, ways, policy)
        result = state[base + way]
        state[base + way] = entry
    if policy == PLRU:
        state[word] = point_away(state[word], way, ways)
    return result


@numba.njit(cache=True, forceinline=True)
def touch(state, geometry, line, owner, write):
    """Look a line up and update the cache.

    Parameters
    ----------
    state, geometry : ndarray of int64
        As the module and `G_*` describe.
    line, owner, write : int
        Line number, owner to mark it with, store or load.

    Returns
    -------
    int
        HIT, BYPASS (a store that does not allocate), FILL, or the entry evicted.
    """
    ways = geometry[G_WAYS]
    sets = geometry[G_SETS]
    index = set_of(line, sets)
    base = STATE_HEAD + index * ways
    entry = line << 8 | owner << 1 | (write & geometry[G_BACK])
    if geometry[G_POLICY] == LRU:
        return touch_lru(state, base, ways, line, entry, write, geometry[G_ALLOCATE])
    return touch_placed(state, base, STATE_HEAD + sets * ways + index, ways, line, entry, write,
                        geometry[G_ALLOCATE], geometry[G_POLICY])


@numba.njit(cache=True, forceinline=True)
def guarded_range(extent, depth, first, last, values, guards, guard_steps):
    """Iterations [low, high) of a loop in which every guard of a stream holds."""
    low, high = 0, extent
    for guard in range(first, last):
        step = guard_steps[guard, depth]
        value = values[guard]
        limit = guards[guard, 1]
        if step == 0:
            if value < 0 or value >= limit:
                high = low
        elif step > 0:
            low = max(low, -(value // step))
            high = min(high, -((value - limit) // step))
        else:
            low = max(low, -((value + 1 - limit) // step))
            high = min(high, value // -step + 1)
    return low, high


@numba.njit(cache=True)
def run_accesses(code, streams, steps, guards, guard_steps, owners, geometry, state, misses,
                 leaving):
    """Run a program touch by touch.

    Parameters
    ----------
    code, streams, steps, guards, guard_steps : ndarray of int64
        A `Program`.
    owners : ndarray of int64, (operands,)
        Owner number of each operand.
    geometry : ndarray of int64
        `G_*`.
    state : ndarray of int64
        Changed in place.
    misses : ndarray of int64, (operands, 3)
        Added to: read misses, write misses that allocate, stores that bypass.
    leaving : ndarray of int64, (owners, 2)
        Added to: evictions, write-backs.
    """
    current = streams[:, 0].copy()
    values = guards[:, 0].copy()
    index = np.zeros(steps.shape[1], np.int64)
    low = np.zeros(len(streams), np.int64)
    high = np.zeros(len(streams), np.int64)
    shift = geometry[G_SHIFT]
    at = 0
    while at < len(code):
        operation, extent, depth = code[at, 0], code[at, 1], code[at, 2]
        first, last = code[at, 3], code[at, 4]
        if operation == LOOP:
            index[depth] = 0
        elif operation == END:
            index[depth] += 1
            again = index[depth] < extent
            factor = 1 if again else 1 - extent
            for stream in range(first, last):
                current[stream] += factor * steps[stream, depth]
                for guard in range(streams[stream, 4], streams[stream, 5]):
                    values[guard] += factor * guard_steps[guard, depth]
            if again:
                at = code[at, 5]
        else:
            for stream in range(first, last):
                low[stream], high[stream] = guarded_range(
                    extent, depth, streams[stream, 4], streams[stream, 5], values, guards,
                    guard_steps)
            for turn in range(extent):
                line = -1
                for stream in range(first, last):
                    if turn < low[stream] or turn >= high[stream]:
                        continue
                    before = line
                    line = (current[stream] + turn * steps[stream, depth]) >> shift
                    if streams[stream, 3] and line == before:
                        continue
                    operand, write = streams[stream, 1], streams[stream, 2]
                    left = touch(state, geometry, line, owners[operand], write)
                    if left == HIT:
                        continue
                    if left == BYPASS:
                        misses[operand, BYPASSES] += 1
                        continue
                    misses[operand, WRITE_MISSES if write else READ_MISSES] += 1
                    if left >= 0:
                        leaving[(left >> 1) & 127, EVICTIONS] += 1
                        leaving[(left >> 1) & 127, WRITE_BACKS] += left & 1
        at += 1
