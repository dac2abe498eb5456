"""Kernels run one behind the other by one call of compiled code, and what they count."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import policy_of
from hwmodels.cache.counters import MOST_MADE, Owners, count_operands, make_counts
from hwmodels.cache.counts import AccessCounts
from hwmodels.errors import KernelError
from hwmodels.frozen import entity
from hwmodels.kernel import Operand
from hwmodels.kernels.compiled import RUN_PROGRAMS
from hwmodels.nest.flattening import (
    COUNTERS_WORD,
    LEAVING_WORD,
    MARK_WORD,
    OPERAND_WORD,
    RECORD_WORDS,
    WRITE_WORD,
)
from hwmodels.nest.plan import Count, Plan

MAX_OWNERS = 127

MOST_SPARE_WORDS = 1 << 17
"""Size up to which the array of a finished run is kept: a megabyte for each of its programs."""

Room = tuple[np.ndarray, Callable[[np.ndarray], None]]
"""Counters, and what runs kernels on the words of a state and fills them."""


@entity
class Chain:
    """Kernels that follow each other.

    Parameters
    ----------
    cache
        What they run through.
    plans, marks
        Of each: its plan, and the numbers of its operands' owners.
    counts
        Per kernel and operand, what makes its counts.
    ends
        Where the counters of each kernel begin, and where the last end.
    owners : tuple of (str, str)
        Of all lines, by number.
    made
        Of each, counts made last, by the bytes of counters.
    spare
        What an earlier run is done with.
    """

    cache: Cache
    plans: Sequence[Plan]
    marks: Sequence[np.ndarray]
    counts: tuple[tuple[Count, ...], ...]
    ends: tuple[int, ...]
    owners: Owners
    made: tuple[dict[bytes, AccessCounts], ...]
    spare: list[Room] = field(default_factory=list)

    def run(self, words: np.ndarray) -> tuple[AccessCounts, ...]:
        """Bring a state, in place, to after the kernels; return what each counts."""
        room = self.spare.pop() if self.spare else self._make_room()
        room[0][:] = 0
        room[1](words)
        counters = room[0].tobytes()
        if (not self.spare and sum([len(plan.program.words) for plan in self.plans])
                <= MOST_SPARE_WORDS * len(self.plans)):
            self.spare.append(room)
        return tuple([made.get(own := counters[8 * first:8 * last]) or self._count(kernel, own)
                      for kernel, (made, (first, last)) in enumerate(zip(
                          self.made, itertools.pairwise(self.ends), strict=True))])

    def _count(self, kernel: int, counters: bytes) -> AccessCounts:
        """Return what counters of a kernel say."""
        if len(self.made[kernel]) >= MOST_MADE:
            self.made[kernel].clear()
        found = self.made[kernel][counters] = make_counts(
            self.counts[kernel], self.owners,
            np.frombuffer(counters, dtype=np.int64).tolist())
        return found

    def _make_room(self) -> Room:
        """Lay the programs out one behind the other, and bind what runs them."""
        programs = []
        for plan, marks, first in zip(self.plans, self.marks, self.ends, strict=False):
            words = plan.program.words.copy()
            records = words[plan.program.records].reshape(-1, RECORD_WORDS)
            operands = records[:, OPERAND_WORD]
            records[:, 0] += plan.bases[operands]
            records[:, MARK_WORD] = marks[operands] << 1 | (
                records[:, WRITE_WORD] * (self.cache.write == "back"))
            words[COUNTERS_WORD] = first
            words[LEAVING_WORD] = first + 3 * len(marks) + 1
            programs.append(words)
        counters = np.empty(self.ends[-1], dtype=np.int64)
        return counters, RUN_PROGRAMS.bind(len(programs), np.concatenate(programs),
                                           describe_cache(self.cache), None, counters)


def make_chain(cache: Cache, calls: Sequence[tuple[Plan, Sequence[Operand], Sequence[bool]]],
               owners: Owners) -> Chain:
    """Put kernels one behind the other.

    Parameters
    ----------
    cache
        Geometry and policies.
    calls : sequence of (Plan, sequence of Operand, sequence of bool)
        In order, one or more: a plan, what it touches, and whether each operand is looked up.
    owners : tuple of (str, str)
        Of earlier kernels and of these.

    Returns
    -------
    Chain
        All of them.
    """
    marks = [number_owners(owners, operands, looked_up)[1] for _, operands, looked_up in calls]
    ends = [0, *itertools.accumulate(3 * len(own) + 1 + 2 * len(owners) for own in marks)]
    return Chain(cache=cache, plans=[plan for plan, *_ in calls], marks=marks,
                 ends=tuple(ends), owners=owners, made=tuple([{} for _ in calls]),
                 counts=tuple([count_operands(plan, cache, operands, looked_up)
                               for plan, operands, looked_up in calls]))


def number_owners(known: Owners, operands: Sequence[Operand],
                  looked_up: Sequence[bool]) -> tuple[Owners, np.ndarray]:
    """Extend the owners by a kernel's operands; return them and each operand's number."""
    asked = [(operand.memory, operand.role) for operand in operands]
    owners = tuple(dict.fromkeys(
        (*known, *(owner for owner, chosen in zip(asked, looked_up, strict=True) if chosen))))
    if len(owners) > MAX_OWNERS:
        raise KernelError(f"{len(owners)} pairs of memory and role; accepted: up to {MAX_OWNERS}")
    return owners, np.array([owners.index(owner) if chosen else -1
                             for owner, chosen in zip(asked, looked_up, strict=True)],
                            dtype=np.int64)


def describe_cache(cache: Cache) -> np.ndarray:
    """Return what compiled loops need to know of a cache, as `cache_words` lays it out."""
    return np.array([cache.sets, cache.ways, cache.line_bytes.bit_length() - 1,
                     policy_of(cache.replacement).number, cache.write == "back",
                     cache.allocate == "read_write",
                     -1 if cache.sets & (cache.sets - 1) else cache.sets - 1], dtype=np.int64)
