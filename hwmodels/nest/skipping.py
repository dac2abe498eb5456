"""Phases omitted from a loop: what streams through a cache under LRU is counted, not simulated.

A line that a loop comes to once is missed once, is hit while streams stay in it, and makes another
line leave. Where a cache has seen so much of that that nothing of what was there before is left,
misses follow from addresses alone, and so do evictions and write-backs: lines that came in have
left, but for those there at the end. That end follows from the last phases, which stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.kernel import Operand
from hwmodels.nest.blocks import Block, join_runs, make_blocks, moving_lines, walk_extents
from hwmodels.nest.stream import MOST_LOOPS, Repeat, find_base

MOST_BLOCKS = 48
"""Blocks beyond which comparing them costs more than it saves."""

Skipped = tuple[tuple[int, bool, int], ...]
"""Operand, whether stores, lines."""


Streaming = tuple[list[Block], list[Block]]
"""What an iteration of a loop touches: moved by the loop, and not."""


def find_streaming(loop: Repeat, cache: Cache, operands: Sequence[Operand],
                   extents: tuple[int, ...]) -> Streaming | None:
    """Find what an iteration of a loop touches, if all of them may stream through a cache.

    Parameters
    ----------
    cache
        LRU; stores allocate, or there are none.
    extents
        Of the loops around and the loop itself.

    Returns
    -------
    tuple of (list of Block, list of Block) or None
        Moved and not, every line of each touched; None where the loop touches too few lines, or
        not known ones.
    """
    blocks, lines = _find_touched(loop, len(extents) - 1, cache.line_bytes)
    if lines * extents[-1] < 2 * cache.sets * cache.ways:
        return None
    merged = sorted([
        replace(block, address=block.address + find_base(operands[block.operand],
                                                         cache.line_bytes))
        for block in blocks], key=lambda block: block.address)
    return ([block for block in merged if block.steps_bytes[-1]],
            [block for block in merged if not block.steps_bytes[-1]])


@lru_cache(maxsize=MOST_LOOPS)
def _find_touched(loop: Repeat, depth: int, line_bytes: int) -> tuple[list[Block], float]:
    """Blocks an iteration touches, and lines of them it enters; none where a loop goes down."""
    runs = join_runs(walk_extents(loop.body, ()), depth, line_bytes, 16 * MOST_BLOCKS)
    if (sum(map(len, runs.values())) > MOST_BLOCKS
            or any(steps[-1] < 0 for *_, steps in runs)):
        return [], 0.0
    return make_blocks(runs), moving_lines(runs, line_bytes)


def skip_rows(rows: np.ndarray, streaming: Streaming, cache: Cache,
              extents: tuple[int, ...]) -> tuple[np.ndarray, Skipped]:
    """Leave phases out of a table where what they miss is known.

    Parameters
    ----------
    rows : ndarray of int64, (rows, 4)
        Of `hwmodels.kernels.cache_phases`; changed.
    streaming : tuple of (list of Block, list of Block)
        What an iteration touches.

    Returns
    -------
    rows : ndarray of int64
        Those left.
    skipped : tuple of (int, bool, int)
        Lines the others fill, by operand and whether stores fill them.
    """
    from hwmodels.kernels.compiled import SKIP_PHASES

    blocks = [*streaming[0], *streaming[1]]
    skipped = np.zeros(len(blocks), dtype=np.int64)
    room = [np.zeros(size, dtype=np.int64) for size in (
        len(extents), len(blocks), cache.sets, cache.sets, cache.sets + 1)]
    count = SKIP_PHASES(
        np.array([(block.address, block.reach_bytes) for block in blocks], dtype=np.int64),
        np.array([block.steps_bytes for block in blocks], dtype=np.int64),
        np.array(extents, dtype=np.int64), len(streaming[0]), cache.line_bytes.bit_length() - 1,
        cache.sets, cache.ways, rows, *room, skipped)
    return rows[:count].copy(), tuple(
        (block.operand, block.write, number)
        for block, number in zip(blocks, skipped.tolist(), strict=True) if number)
