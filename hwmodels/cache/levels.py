"""Two levels: what leaves the first cache, in order, through the one below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwmodels.board.facts import Board, Cache
from hwmodels.cache import AccessCounts
from hwmodels.cache.lookup import Lookup
from hwmodels.cache.running import number_owners
from hwmodels.cache.set_associative import CacheState
from hwmodels.cache.touches import walk_touches
from hwmodels.kernel import Kernel


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
    mine = [(operand.memory, operand.role) for operand in kernel.operands]
    before, _ = number_owners(state.owners, kernel.operands, chosen)
    owners = tuple(dict.fromkeys((*held.owners, *before, *mine)))
    looked_up = {owner for owner, asked in zip(mine, chosen, strict=True) if asked}

    def serve(served: Sequence[bool]) -> np.ndarray:
        return np.repeat(np.array(served, dtype=np.int64), 4)

    below = Lookup(lower, serve([lower.may_hold(board.memory(memory)) for memory, _ in owners]),
                   np.arange(len(owners)), None, words=held.words)
    above = Lookup(upper, serve([owner in looked_up for owner in owners]),
                   np.array([before.index(owner) if owner in before else -1 for owner in owners]),
                   below, words=state.words)
    marks_of = np.array([owners.index(owner) << 12 | 1 << 2 for owner in mine], dtype=np.int64)
    for _, lines, marks in walk_touches(kernel.nests, kernel.operands, upper.line_bytes):
        above.meet(np.stack([lines * upper.line_bytes, marks_of[marks >> 1] | marks & 1], axis=1))
    below.words.flags.writeable = False
    names = {(operand.memory, operand.role): operand.name for operand in kernel.operands}
    return (below.count_lower(0, [(names.get(owner, ""), *owner) for owner in owners], owners),
            replace(held, words=below.words, owners=owners))
