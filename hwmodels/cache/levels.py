"""Two levels: what leaves the first cache, in order, through the one below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwmodels.board.facts import Board, Cache
from hwmodels.cache.counts import AccessCounts, OperandCounts, OwnerCounts
from hwmodels.cache.running import describe_cache
from hwmodels.cache.set_associative import CacheState
from hwmodels.cache.touches import BYPASS, HIT, READ_FILL, WRITE_FILL, Touches, visit_touches
from hwmodels.kernel import Kernel

Owner = tuple[str, str]
"""(memory, role)."""


def look_below(board: Board, upper: Cache, lower: Cache, kernel: Kernel, state: CacheState,
               held: CacheState, chosen: Sequence[bool]) -> tuple[AccessCounts, CacheState]:
    """Run what leaves a cache through the one below it.

    Parameters
    ----------
    board
        For the memories the lower cache may hold.
    upper, lower
        Lines of the lower one are at least as long.
    state, held
        Of the upper and of the lower cache, before the kernel; not changed.
    chosen
        Operands that look the upper cache up.

    Returns
    -------
    AccessCounts
        Of the lower cache: touches are lines that came from the upper one; lines written back by
        it count for the operand name "" where their owner is of an earlier kernel.
    CacheState
        Of the lower cache, after the kernel.

    Notes
    -----
    A line filled above is read below before the one that makes room for it is written there; a
    miss of that read is of a store where it is a store that fills the line above. A store that
    bypasses or writes through the upper cache is a store below.
    """
    from hwmodels.kernels import touch_stream

    words = held.words.copy()
    geometry, run = describe_cache(lower), _Below(board, upper, lower, kernel, state, held, chosen)

    def visit(touches: Touches) -> None:
        lines, owners, writes, filling = run.select(touches)
        marks = owners << 1 | writes
        found, left = np.empty_like(lines), np.empty_like(lines)
        touch_stream.meet_touches(len(lines), lines, marks, run.numbers, geometry, words, found,
                                  left)
        run.count(owners, writes, filling, found, left)

    visit_touches(upper, kernel.nests, kernel.operands, state, visit, chosen)
    words.flags.writeable = False
    return run.total(), replace(held, words=words, owners=run.owners)


class _Below:
    """Which touches reach the lower cache, and what its touches add up to."""

    def __init__(self, board: Board, upper: Cache, lower: Cache, kernel: Kernel,
                 state: CacheState, held: CacheState, chosen: Sequence[bool]) -> None:
        self.kernel = kernel
        self.through = upper.write == "through"
        self.back = lower.write == "back"
        self.shift = (lower.line_bytes // upper.line_bytes).bit_length() - 1
        mine: list[Owner] = [(operand.memory, operand.role) for operand in kernel.operands]
        # `visit_touches` numbers owners of the upper cache in this order, too.
        before = tuple(dict.fromkeys((*state.owners, *(
            owner for owner, looked_up in zip(mine, chosen, strict=True) if looked_up))))
        self.owners = tuple(dict.fromkeys((*held.owners, *before, *mine)))
        served = [lower.may_hold(board.memory(memory)) for memory, _ in self.owners]
        self.numbers = np.where(served, np.arange(len(self.owners)), -1)
        self.of_operand = np.array([self.owners.index(owner) for owner in mine], dtype=np.int64)
        self.of_upper = np.array([self.owners.index(owner) for owner in before], dtype=np.int64)
        self.sums = np.zeros((len(self.owners), 5), dtype=np.int64)
        self.leaving = np.zeros((len(self.owners), 2), dtype=np.int64)

    def select(self, touches: Touches) -> tuple[np.ndarray, ...]:
        """Return lines, owners, directions of the touches below, and which fill for a store."""
        down = touches.found != HIT
        if self.through:
            down = down | touches.writes
        stored = (touches.found == BYPASS) | (touches.writes & self.through)
        owners = self.of_operand[touches.operands]
        lines = np.stack([touches.lines, touches.left], axis=1)
        both = np.stack([owners, self.of_upper[np.minimum(touches.left_owners,
                                                          len(self.of_upper) - 1)]], axis=1)
        writes = np.stack([stored, np.ones_like(stored)], axis=1).astype(np.int64)
        kept = np.stack([down, touches.left >= 0], axis=1) & (self.numbers[both] >= 0)
        filling = np.stack([touches.found == WRITE_FILL, np.zeros_like(stored)], axis=1)
        return lines[kept] >> self.shift, both[kept], writes[kept], filling[kept]

    def count(self, owners: np.ndarray, writes: np.ndarray, filling: np.ndarray,
              found: np.ndarray, left: np.ndarray) -> None:
        """Add up what touches met."""
        filled_for_store = (found == WRITE_FILL) | filling & (found == READ_FILL)
        for column, chosen in enumerate((writes == 0, writes == 1,
                                         (found == READ_FILL) & ~filling, filled_for_store,
                                         found == BYPASS)):
            self.sums[:, column] += np.bincount(owners[chosen], minlength=len(self.owners))
        gone = left[left >= 0]
        for column, entries in enumerate((gone, gone[gone & 1 == 1])):
            self.leaving[:, column] += np.bincount((entries >> 1) & 127, minlength=len(self.owners))

    def total(self) -> AccessCounts:
        """Return the sums, by operand where its owner is one of the kernel's."""
        names = {(operand.memory, operand.role): operand.name for operand in self.kernel.operands}
        rows = [OperandCounts(
            operand=names.get(owner, ""), role=owner[1], memory=owner[0], cached=True,
            read_touches=row[0], write_touches=row[1], read_misses=row[2], write_misses=row[3],
            write_bypasses=row[4], write_throughs=row[4] if self.back else row[1])
            for owner, row in zip(self.owners, self.sums.tolist(), strict=True) if sum(row)]
        return AccessCounts(operands=tuple(rows), owners=tuple(
            OwnerCounts(memory=owner[0], role=owner[1], evictions=row[0], write_backs=row[1])
            for owner, row in zip(self.owners, self.leaving.tolist(), strict=True) if row[0]))
