"""Compiled: leave phases out of a loop under LRU where what they miss is known without them.

A line that a loop's streams come to and do not come back to is missed once and hit for as long as
they stay in it: what a phase misses is then counted, not simulated.
"""

from hwmodels.kernels.cache_phases import clear, enter_next
from hwmodels.kernels.cache_policies import set_among
from hwmodels.kernels.cache_words import ONE
from hwmodels.kernels.compiled import (
    Integer,
    Table,
    Words,
    compile_inline,
    compile_kept,
    compile_part,
)

ADDRESS, REACH = 0, 1
"""Columns of a block; those a loop moves come first."""


@compile_inline
def low_line(blocks: Table, steps: Table, bases: Words, block: Integer, turn: Integer,
             shift: Integer) -> Integer:
    """First line a block touches in an iteration of the loop."""
    return (bases[block] + turn * steps[block, steps.shape[1] - 1]) >> shift


@compile_inline
def high_line(blocks: Table, steps: Table, bases: Words, block: Integer, turn: Integer,
              shift: Integer) -> Integer:
    """Last line a block touches in an iteration of the loop."""
    return (bases[block] + blocks[block, REACH]
            + turn * steps[block, steps.shape[1] - 1]) >> shift


@compile_part
def place_blocks(blocks: Table, steps: Table, index: Words, bases: Words) -> None:
    """Work out where each block begins for the indices of the loops around."""
    for block in range(len(blocks)):
        bases[block] = blocks[block, ADDRESS]
        for loop in range(steps.shape[1] - 1):
            bases[block] += steps[block, loop] * index[loop]


@compile_part
def count_still(blocks: Table, steps: Table, bases: Words, moving: Integer, shift: Integer,
                sets: Integer, mask: Integer, ways: Integer, still: Words) -> bool:
    """Count, by set, the lines of blocks the loop does not move; False where they do not fit."""
    clear(still)
    for block in range(moving, len(blocks)):
        low = low_line(blocks, steps, bases, block, 0, shift)
        high = high_line(blocks, steps, bases, block, 0, shift)
        for other in range(moving, block):
            if low <= high_line(blocks, steps, bases, other, 0, shift) and (
                    high >= low_line(blocks, steps, bases, other, 0, shift)):
                # Shared lines are counted once: those of the block before.
                if low < low_line(blocks, steps, bases, other, 0, shift):
                    return False  # too rare to distinguish
                low = high_line(blocks, steps, bases, other, 0, shift) + 1
        for line in range(low, high + 1):
            index = set_among(sets, mask, line)
            still[index] += 1
            if still[index] > ways:
                return False
    return True


@compile_part
def never_meet(blocks: Table, steps: Table, bases: Words, moving: Integer, extent: Integer,
               shift: Integer) -> bool:
    """Whether no line is touched by two blocks of which the loop moves one."""
    size = 1 << shift
    for block in range(moving):
        step = steps[block, steps.shape[1] - 1]
        low = low_line(blocks, steps, bases, block, 0, shift)
        high = high_line(blocks, steps, bases, block, extent - 1, shift)
        for other in range(block + 1, len(blocks)):
            last = extent - 1 if other < moving else 0
            if high < low_line(blocks, steps, bases, other, 0, shift) or (
                    low > high_line(blocks, steps, bases, other, last, shift)):
                continue
            # Their ranges overlap: of one step, they may still stay a line apart.
            ahead = (bases[other] - bases[block]) % step
            if steps[other, steps.shape[1] - 1] != step or (
                    ahead - blocks[block, REACH] < size
                    or step - ahead - blocks[other, REACH] < size):
                return False
    return True


@compile_part
def reach_all(blocks: Table, steps: Table, bases: Words, moving: Integer, extent: Integer,
              back: Integer, shift: Integer, sets: Integer, mask: Integer, ways: Integer,
              still: Words, seen: Words) -> Integer:
    """Count iterations, from the first or `back` from the last, that fill every set with lines.

    Returns
    -------
    int
        As many as the loop has, and one more, where they do not.
    """
    short = 0
    for number in range(len(seen)):
        seen[number] = still[number]
        short += 1 if still[number] < ways else 0
    count = 0
    while count < extent:
        turn = extent - 1 - count if back else count
        for block in range(moving):
            low = low_line(blocks, steps, bases, block, turn, shift)
            high = high_line(blocks, steps, bases, block, turn, shift)
            if count and back:
                high = min(high, low_line(blocks, steps, bases, block, turn + 1, shift) - 1)
            elif count:
                low = max(low, high_line(blocks, steps, bases, block, turn - 1, shift) + 1)
            for line in range(low, high + 1):
                index = set_among(sets, mask, line)
                seen[index] += 1
                short -= 1 if seen[index] == ways else 0
        count += 1
        if short == 0:
            return count
    return extent + 1


@compile_part
def both_fit(blocks: Table, steps: Table, bases: Words, moving: Integer, one: Integer, two: Integer,
             shift: Integer, sets: Integer, mask: Integer, ways: Integer, still: Words,
             marks: Words) -> bool:
    """Whether no set sees more lines than it has ways in two iterations, the second a later one."""
    marks[0] += ways + 1
    floor = marks[0]
    for block in range(moving):
        low = low_line(blocks, steps, bases, block, one, shift)
        high = high_line(blocks, steps, bases, block, one, shift)
        for _ in range(2):
            for line in range(low, high + 1):
                index = set_among(sets, mask, line)
                found = max(marks[index + ONE], floor + still[index]) + 1
                marks[index + ONE] = found
                if found > floor + ways:
                    marks[0] = found
                    return False
            low = max(low_line(blocks, steps, bases, block, two, shift), high + 1)
            high = high_line(blocks, steps, bases, block, two, shift)
    return True


@compile_part
def phase_fits(blocks: Table, steps: Table, bases: Words, moving: Integer, start: Integer,
               stop: Integer, shift: Integer, sets: Integer, mask: Integer, ways: Integer,
               still: Words, marks: Words) -> bool:
    """Whether each iteration of [start, stop] fits a cache together with the one before it."""
    for turn in range(start, stop + 1):
        if not both_fit(blocks, steps, bases, moving, turn - 1, turn, shift, sets, mask, ways,
                        still, marks):
            return False
    return True


@compile_part
def count_skipped(blocks: Table, steps: Table, bases: Words, moving: Integer, start: Integer,
                  stop: Integer, shift: Integer, skipped: Words) -> None:
    """Add the lines that are missed in iterations [start, stop] but not where the first are out."""
    for block in range(moving):
        before = high_line(blocks, steps, bases, block, start - 1, shift)
        high = high_line(blocks, steps, bases, block, stop, shift)
        low = low_line(blocks, steps, bases, block, stop, shift)
        skipped[block] -= high - max(before, low - 1)
        for turn in range(start, stop + 1):
            high = high_line(blocks, steps, bases, block, turn, shift)
            low = low_line(blocks, steps, bases, block, turn, shift)
            skipped[block] += high - max(before, low - 1)
            before = high


@compile_inline
def copy_rows(rows: Table, first: Integer, stop: Integer, to: Integer) -> Integer:
    """Move rows up; return where they end."""
    for row in range(first, stop):
        for column in range(4):
            rows[to, column] = rows[row, column]
        to += 1
    return to


@compile_part
def thin_entry(blocks: Table, steps: Table, bases: Words, moving: Integer, head: Integer,
               tail: Integer, shift: Integer, sets: Integer, mask: Integer, ways: Integer,
               still: Words, marks: Words, rows: Table, row: Integer, last: Integer, to: Integer,
               skipped: Words) -> Integer:
    """Leave phases between two iterations out of an entry, rows [row, last]; return their end."""
    opened = -1
    while row <= last:
        after = row + 1
        if after <= last and rows[after, 1] == 0:
            after += 1
        start = rows[row, 0]
        stop = rows[after, 0] if after <= last else tail + 1
        if start >= head and stop <= tail and phase_fits(
                blocks, steps, bases, moving, start, stop, shift, sets, mask, ways, still, marks):
            opened = row if opened < 0 else opened
        else:
            if opened >= 0:
                first, resumed = rows[opened, 0], row
                while resumed > opened and not both_fit(
                        blocks, steps, bases, moving, first - 1, rows[resumed, 0], shift, sets,
                        mask, ways, still, marks):
                    resumed -= 1 if rows[resumed - 1, 1] else 2
                if resumed > opened:
                    count_skipped(blocks, steps, bases, moving, first, rows[resumed, 0], shift,
                                  skipped)
                to = copy_rows(rows, resumed, row, to)
                opened = -1
            to = copy_rows(rows, row, after, to)
        row = after
    return to


@compile_kept
def skip_phases(blocks: Table, steps: Table, extents: Words, moving: Integer, shift: Integer,
                sets: Integer, ways: Integer, rows: Table, index: Words, bases: Words,
                still: Words, seen: Words, marks: Words, skipped: Words) -> Integer:
    """Leave out of a table of phases those whose misses are known.

    Parameters
    ----------
    blocks : ndarray of int64, (blocks, 2)
        First byte an iteration touches with all indices zero, and bytes to the last: all lines
        between are touched. Blocks the loop moves come first.
    steps : ndarray of int64, (blocks, loops)
        Address step per loop around, outermost first; the loop itself last, never backwards.
    extents : ndarray of int64, (loops,)
        Of the loops around and the loop itself.
    moving, shift, sets, ways : int
        Blocks the loop moves, log2 of the line, geometry.
    rows : ndarray of int64, (rows, 4)
        As `cache_phases.cut_phases` fills them; those left stand first afterwards.
    index, bases, still, seen, marks : ndarray of int64
        Zeros: per loop around, per block, per set, per set, per set and one.
    skipped : ndarray of int64, (blocks,)
        Zeros; filled: lines missed by what is left out, each of which makes another leave.

    Returns
    -------
    int
        Rows left.

    Notes
    -----
    Left out are phases before which every set has seen as many lines as it has ways, so that
    none is left of what was there before; after which it does again, so that the final state is
    that of what follows; and each iteration of which fits the cache together with the one
    before it. There a line is hit in the iteration after one that touched it; any other is new.
    """
    loops, extent = len(extents) - 1, extents[len(extents) - 1]
    mask = sets - 1 if sets & (sets - 1) == 0 else -1
    row = to = 0
    while True:
        last = row
        while not rows[last, 3]:
            last += 1
        place_blocks(blocks, steps, index, bases)
        head, tail = extent, 0
        if count_still(blocks, steps, bases, moving, shift, sets, mask, ways, still) and (
                never_meet(blocks, steps, bases, moving, extent, shift)):
            head = reach_all(blocks, steps, bases, moving, extent, 0, shift, sets, mask, ways,
                             still, seen)
            tail = extent - reach_all(blocks, steps, bases, moving, extent, 1, shift, sets, mask,
                                      ways, still, seen)
        if head < tail:
            to = thin_entry(blocks, steps, bases, moving, head, tail, shift, sets, mask, ways,
                            still, marks, rows, row, last, to, skipped)
        else:
            to = copy_rows(rows, row, last + 1, to)
        row = last + 1
        if not enter_next(index, extents, loops):
            return to
