"""Compiled: accesses of a running program, in order, through a cache, counted by who made them.

An access is two words: its address, and function << 20 | region << 12 | bytes << 2 | kind. State
words and policies are those of `touch_stream`.
"""

from hwmodels.kernels.cache_words import BYPASS, HIT, WRITE_FILL
from hwmodels.kernels.compiled import Integer, Table, Words, compile_kept, compile_part
from hwmodels.kernels.touch_stream import meet_line

READ, WRITE, FETCH, FILL = 0, 1, 2, 3
"""Kinds of access; FILL is a read for a store that fills a line above."""
(READ_TOUCHES, WRITE_TOUCHES, READ_MISSES, WRITE_MISSES, BYPASSES, FETCH_MISSES) = range(6)
"""Rows of sums."""
MOST_OWNERS = 128


@compile_part
def row_of(met: Integer, kind: Integer) -> Integer:
    """Row of sums a miss counts in."""
    if met == BYPASS:
        return BYPASSES
    if met == WRITE_FILL or kind == FILL:
        return WRITE_MISSES
    return FETCH_MISSES if kind == FETCH else READ_MISSES


@compile_kept
def meet_accesses(accesses: Table, serves: Words, owners: Words, regions: Integer, geometry: Words,
                  state: Words, sums: Table, leaving: Table, homes: Words,
                  down: Table) -> Integer:
    """Look accesses up; return how many rows of `down` were written.

    Parameters
    ----------
    accesses : ndarray of int64, (count, 2)
        As above.
    serves : ndarray of int64, (4 x regions,)
        Whether the cache is looked up, by region and kind.
    owners : ndarray of int64, (regions,)
        Owner number lines of a region are marked with.
    regions : int
        How many there are.
    geometry, state : ndarray of int64
        As `touch_stream.meet_touches` takes them; the state is changed in place.
    sums : ndarray of int64, (6, functions x regions)
        Added to.
    leaving : ndarray of int64, (2, functions x MOST_OWNERS)
        Lines that left, and those of them written back; added to.
    homes : ndarray of int64, (owners,)
        A region of each owner.
    down : ndarray of int64, (room, 2)
        Where a cache lies below, room for accesses it sees: two for each line; else no rows.
    """
    shift, through = geometry[2], 1 - geometry[4]
    written, below = 0, down.shape[0]
    for place in range(accesses.shape[0]):
        address, mark = accesses[place, 0], accesses[place, 1]
        region, kind, function = mark >> 12 & 255, mark & 3, mark >> 20
        if serves[4 * region + kind] == 0:
            continue
        write = 1 if kind == WRITE else 0
        cell, own = function * regions + region, function * MOST_OWNERS
        for line in range(address >> shift, ((address + (mark >> 2 & 1023) - 1) >> shift) + 1):
            met, left = meet_line(line, write, owners[region], geometry, state)
            if kind != FETCH:
                sums[write, cell] += 1
            if met != HIT:
                sums[row_of(met, kind), cell] += 1
            if left >= 0:
                leaving[0, own + (left >> 1 & 127)] += 1
                leaving[1, own + (left >> 1 & 127)] += left & 1
            if below == 0 or kind == FETCH:
                continue
            stored = met == BYPASS or (write and through)
            if met != HIT or stored:
                down[written, 0] = line << shift
                down[written, 1] = mark >> 12 << 12 | 4 | (
                    WRITE if stored else FILL if met == WRITE_FILL else READ)
                written += 1
            if left >= 0 and left & 1:
                down[written, 0] = left >> 8 << shift
                down[written, 1] = function << 20 | homes[left >> 1 & 127] << 12 | 4 | WRITE
                written += 1
    return written
