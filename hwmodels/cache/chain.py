"""Kernels run one behind the other by one call of compiled code, and what they count."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hwmodels.cache.counters import MOST_MADE, Owners, make_counts
from hwmodels.cache.counts import AccessCounts
from hwmodels.errors import KernelError
from hwmodels.kernel import Operand
from hwmodels.nest.plan import Count
from hwmodels.nest.program import MAX_OWNERS

Room = tuple[np.ndarray, Callable[[np.ndarray], None]]
"""Counters, and what runs kernels on the words of a state and fills them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link:
    """A kernel behind earlier ones.

    Parameters
    ----------
    table : ndarray of int64
        Of a transfer, what compiled code reads; of a program, its front, without owners.
    size : int
        Counters: three per operand, two per owner, and look-ups made.
    owners : tuple of (str, str)
        Those of earlier kernels first.
    counts : tuple of callable
        Per operand, what makes its counts.
    fill : callable, optional
        Writes a program's front, with owners, to where it is run.
    made : dict
        Counts made last, by the bytes of counters.
    """

    table: np.ndarray
    size: int
    owners: Owners
    counts: tuple[Count, ...]
    fill: Callable[[np.ndarray], None] | None = None
    made: dict[bytes, AccessCounts] = field(default_factory=dict)

    def count(self, counters: bytes) -> AccessCounts:
        """Return what counters say."""
        if len(self.made) >= MOST_MADE:
            self.made.clear()
        found = self.made[counters] = make_counts(
            self.counts, self.owners, np.frombuffer(counters, dtype=np.int64).tolist())
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """Kernels that follow each other.

    Parameters
    ----------
    parts : tuple of (Link, slice)
        In order, and where the bytes of the counters of each are.
    owners : tuple of (str, str)
        After the last.
    make_room : callable
        Makes what a run needs.
    spare : list
        What earlier runs are done with.
    most_spare : int
        How much of that is kept.
    """

    parts: tuple[tuple[Link, slice], ...]
    owners: Owners
    make_room: Callable[[], Room]
    spare: list[Room] = field(default_factory=list)
    most_spare: int = 1

    def run(self, words: np.ndarray) -> tuple[AccessCounts, ...]:
        """Bring a state, in place, to after the kernels; return what each counts."""
        room = self.spare.pop() if self.spare else self.make_room()
        room[1](words)
        counters = room[0].tobytes()
        if len(self.spare) < self.most_spare:
            self.spare.append(room)
        return tuple([link.made.get(own := counters[where]) or link.count(own)
                      for link, where in self.parts])


def make_chain(links: Sequence[Link], make_room: Callable[[], Room], most_spare: int = 1) -> Chain:
    """Put kernels, each placed behind the one before it, one behind the other.

    Parameters
    ----------
    links : sequence of Link
        In order, one or more.
    make_room, most_spare
        As of the chain.

    Returns
    -------
    Chain
        All of them.
    """
    ends = [0, *itertools.accumulate(8 * link.size for link in links)]
    return Chain(parts=tuple((link, slice(*ends[at:at + 2])) for at, link in enumerate(links)),
                 owners=links[-1].owners, make_room=make_room, most_spare=most_spare)


def number_owners(known: Owners, operands: Sequence[Operand],
                  looked_up: Sequence[bool]) -> tuple[Owners, np.ndarray]:
    """Extend the owners by a kernel's operands; return them and each operand's number."""
    owners = list(known)
    numbers = np.zeros(len(operands), dtype=np.int64)
    for position, (operand, chosen) in enumerate(zip(operands, looked_up, strict=True)):
        owner = (operand.memory, operand.role)
        if chosen and owner not in owners:
            owners.append(owner)
        if chosen:
            numbers[position] = owners.index(owner)
    if len(owners) > MAX_OWNERS:
        raise KernelError(f"{len(owners)} pairs of memory and role; accepted: up to {MAX_OWNERS}")
    return tuple(owners), numbers
