"""Accesses through a cache in the order they are made, and their misses through the one below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.cache import AccessCounts, OperandCounts, OwnerCounts
from hwmodels.cache.running import describe_cache
from hwmodels.cache.set_associative import new_state
from hwmodels.frozen import NamedTexts
from hwmodels.kernels.access_stream import MOST_OWNERS, meet_accesses


class Lookup:
    """A cache or line buffer: contents, and what accesses of each function met in it.

    Parameters
    ----------
    serves : ndarray of int64, (4 x regions,)
        Whether it is looked up, by region and kind of access, as `access_stream` has them.
    owners : ndarray of int64, (regions,)
        Owner number lines of a region are marked with.
    below
        What misses and dirty lines look up.
    functions
        How many accesses are counted by.
    words : ndarray of int64, or None
        Contents; None: empty.
    """

    def __init__(self, cache: Cache, serves: np.ndarray, owners: np.ndarray,
                 below: Lookup | None, functions: int = 1,
                 words: np.ndarray | None = None) -> None:
        self.cache, self.serves, self.owners, self.below = cache, serves, owners, below
        self.geometry, self.functions, self.regions = describe_cache(cache), functions, len(owners)
        self.homes = np.zeros(MOST_OWNERS, dtype=np.int64)
        self.homes[owners[::-1]] = np.arange(len(owners))[::-1]
        self.words = (new_state(cache).words if words is None else words).copy()
        self.down = np.zeros((0, 2), dtype=np.int64)
        self.clear()

    def clear(self) -> None:
        """Begin to count again."""
        self.sums = np.zeros((6, self.functions * self.regions), dtype=np.int64)
        self.leaving = np.zeros((2, self.functions * MOST_OWNERS), dtype=np.int64)

    def meet(self, accesses: np.ndarray) -> None:
        """Look accesses up in order, those that straddle a line once for each."""
        if self.below is not None and len(self.down) < 4 * len(accesses):
            # Two rows for each line; an access of a core straddles at most one border.
            self.down = np.zeros((4 * len(accesses), 2), dtype=np.int64)
        written = meet_accesses(accesses, self.serves, self.owners, self.regions, self.geometry,
                                self.words, self.sums, self.leaving, self.homes, self.down)
        if self.below is not None and written:
            self.below.meet(self.down[:written])

    def met(self, function: int, region: int) -> list[int]:
        """Return touches and misses of loads and of stores, and bypasses."""
        return list(self.sums[:5, function * self.regions + region].tolist())

    def count_lower(self, function: int, names: Sequence[tuple[str, str, str]],
                    owners: NamedTexts) -> AccessCounts:
        """Return what lines on their way to and from the cache above met here.

        Parameters
        ----------
        names : sequence of (str, str, str)
            Operand, memory and role of each region.
        owners : tuple of (str, str)
            (memory, role) of each owner number.
        """
        rows = []
        for region, (operand, memory, role) in enumerate(names):
            reads, writes, read_misses, write_misses, bypasses = met = self.met(function, region)
            if any(met):
                rows.append(OperandCounts(
                    operand=operand, role=role, memory=memory, cached=True, read_touches=reads,
                    write_touches=writes, read_misses=read_misses, write_misses=write_misses,
                    write_bypasses=bypasses,
                    write_throughs=bypasses if self.cache.write == "back" else writes))
        return AccessCounts(operands=tuple(rows), owners=count_owners([self], function, owners))


def count_owners(lookups: Iterable[Lookup], function: int,
                 owners: NamedTexts) -> tuple[OwnerCounts, ...]:
    """Return the lines that left caches while a function ran; owners as of `count_lower`."""
    found: dict[tuple[str, str], list[int]] = {}
    for lookup in lookups:
        first = MOST_OWNERS * function
        rows = lookup.leaving[:, first:first + MOST_OWNERS]
        for number in np.flatnonzero(rows[0]).tolist():
            cell = found.setdefault(owners[number], [0, 0])
            cell[0] += int(rows[0, number])
            cell[1] += int(rows[1, number])
    return tuple(OwnerCounts(memory=memory, role=role, evictions=row[0], write_backs=row[1])
                 for (memory, role), row in found.items())
