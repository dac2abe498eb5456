"""Transfers: what a kernel does to whatever is in a cache under LRU, known from one run of it.

In a set of n ways a line that was touched is there as long as fewer than n others came since: that
follows from the kernel alone. What was in the set before matters to the first n lines the kernel
comes to: each is hit if it is among what the lines before it did not drive out. So one run from an
empty cache, which notes those lines in order, tells what the kernel does to any state.

An entry that is found keeps its owner and its dirty bit until a store: that run notes which of the
first lines are stored to, which leave before that, and which stay as they were.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.cache.counts import AccessCounts
from hwmodels.cache.running import (
    MOST_MADE,
    MOST_PLACED,
    Owners,
    count_operands,
    make_counts,
    number_owners,
    place_program,
)
from hwmodels.kernel import Operand
from hwmodels.kernels.compiled import RUN_PROGRAM, TRANSFER_STATE
from hwmodels.nest.plan import Count, Plan
from hwmodels.nest.program import FIRSTS_WORD, STATE_HEAD

NOBODY, NOTED_GONE = 127, 2
GONE, STORED, STAYS = range(3)
"""As the kernels have them: owner of a first line that is not stored to; note that it left so; what
becomes of the entry it finds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transfer:
    """What a kernel does to a cache, its owners numbered from zero.

    Parameters
    ----------
    owners : tuple of (str, str)
        Its own.
    sets : int
        Sets it comes to.
    misses, leaving : ndarray of int64
        Counters from an empty cache: three per operand; of each owner lines that left and dirty
        ones.
    table : ndarray of int64
        Of each set the place of its entries in a state, number of first lines, those, of each the
        place of its miss among the counters and the fate of an entry it finds, as many entries of
        the end.
    entries_at : ndarray of int64
        Where in the table owners are: those of first lines and of entries.
    """

    owners: Owners
    sets: int
    misses: np.ndarray
    leaving: np.ndarray
    table: np.ndarray
    entries_at: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedTransfer:
    """A transfer behind earlier kernels.

    Parameters
    ----------
    table : ndarray of int64
        As `hwmodels.kernels.cache_transfer` reads it.
    size : int
        Counters.
    firsts : int
        Lines looked up.
    owners : tuple of (str, str)
        Those of earlier kernels first.
    counts : tuple of callable
        Per operand, what makes its counts.
    made : dict
        Counts made last, by the bytes of counters.
    """

    table: np.ndarray
    size: int
    firsts: int
    owners: Owners
    counts: tuple[Count, ...]
    made: dict[bytes, AccessCounts] = field(default_factory=dict)

    def count(self, counters: bytes) -> AccessCounts:
        """Return what counters say."""
        if len(self.made) >= MOST_MADE:
            self.made.clear()
        found = self.made[counters] = make_counts(
            self.counts, self.owners, np.frombuffer(counters, dtype=np.int64).tolist(),
            self.firsts)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """Transfers of kernels that follow each other.

    Parameters
    ----------
    parts : tuple of (PlacedTransfer, slice)
        In order, and where the bytes of the counters of each are.
    table : ndarray of int64
        One behind the other.
    ways : int
        Of the cache.
    owners : tuple of (str, str)
        After the last.
    spare : list
        Counters that earlier runs are done with, and what runs with them.
    """

    parts: tuple[tuple[PlacedTransfer, slice], ...]
    table: np.ndarray
    ways: int
    owners: Owners
    spare: list[tuple[np.ndarray, Callable[[np.ndarray], None]]] = field(default_factory=list)

    def move(self, words: np.ndarray) -> tuple[AccessCounts, ...]:
        """Bring a state, in place, to after the kernels; return what each counts."""
        room = self.spare.pop() if self.spare else self._make_room()
        room[1](words)
        counters = room[0].tobytes()
        self.spare.append(room)
        return tuple([part.made.get(own := counters[where]) or part.count(own)
                      for part, where in self.parts])

    def _make_room(self) -> tuple[np.ndarray, Callable[[np.ndarray], None]]:
        size = self.parts[-1][1].stop // 8 if self.parts else 0
        room = np.empty(size + self.ways, dtype=np.int64)
        return room[:size], TRANSFER_STATE.bind(len(self.parts), self.ways, self.table, None, room)


def make_chain(placed: Sequence[PlacedTransfer], ways: int, owners: Owners) -> Chain:
    """Put transfers, each placed behind the one before it, one behind the other.

    Parameters
    ----------
    placed : sequence of PlacedTransfer
        In order.
    ways : int
        Of the cache.
    owners : tuple of (str, str)
        Before the first.

    Returns
    -------
    Chain
        What all of them do.
    """
    ends = [0, *itertools.accumulate(8 * one.size for one in placed)]
    tables = [one.table for one in placed]
    return Chain(
        parts=tuple((one, slice(*ends[at:at + 2])) for at, one in enumerate(placed)),
        table=(tables[0] if len(tables) == 1 else np.concatenate(tables) if tables
               else np.zeros(0, dtype=np.int64)),
        ways=ways, owners=placed[-1].owners if placed else owners)


def place_transfer(plan: Plan, cache: Cache, operands: Sequence[Operand],
                   looked_up: Sequence[bool], known: Owners) -> Chain:
    """Return a plan's transfer behind the owners of earlier kernels; those made last are kept.

    Parameters
    ----------
    plan, cache, operands, looked_up, known
        As for `hwmodels.cache.running.run_plan`.

    Returns
    -------
    Chain
        Of that alone; found by one run of the plan's program, if it was not yet.
    """
    found = plan.moved.get(known)
    if found is None:
        if not plan.transfer:
            plan.transfer.append(find_transfer(plan, cache, operands, looked_up))
        placed = _place(plan.transfer[0], count_operands(plan, cache, operands, looked_up),
                        number_owners(known, operands, looked_up)[0])
        if len(plan.moved) >= MOST_PLACED:
            plan.moved.clear()
        found = plan.moved[known] = make_chain((placed,), cache.ways, known)
    return found


def find_transfer(plan: Plan, cache: Cache, operands: Sequence[Operand],
                  looked_up: Sequence[bool]) -> Transfer:
    """Run a plan's program from an empty cache.

    Parameters
    ----------
    plan : Plan
        Whose program has room for first lines.
    cache : Cache
        Geometry and policies.
    operands : sequence of Operand
        What the program touches.
    looked_up : sequence of bool
        Per operand, whether its accesses reach the cache.

    Returns
    -------
    Transfer
        Of sets the program comes to.
    """
    program, entries = plan.program, cache.sets * cache.ways
    front = place_program(plan, cache, operands, looked_up, ()).front
    memory = np.zeros(program.words, dtype=np.int64)
    memory[:len(front)] = front
    memory[FIRSTS_WORD] = program.firsts.start
    words = np.zeros(STATE_HEAD + entries + cache.sets, dtype=np.int64)
    words[STATE_HEAD:STATE_HEAD + entries] = -1
    RUN_PROGRAM(memory, words)
    owners, numbers = number_owners((), operands, looked_up)
    firsts = memory[program.firsts].reshape(cache.sets, -1)
    used = np.flatnonzero(firsts[:, 0])
    leaving = memory[program.leaving][:2 * len(owners)].copy()
    table, entries_at = _lay_out(
        used, firsts[used], numbers, leaving,
        words[STATE_HEAD:STATE_HEAD + entries].reshape(cache.sets, cache.ways)[used])
    return Transfer(owners=owners, sets=len(used), misses=memory[program.misses].copy(),
                    leaving=leaving, table=table, entries_at=entries_at)


def _lay_out(used: np.ndarray, firsts: np.ndarray, numbers: np.ndarray, leaving: np.ndarray,
             ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lay sets out in a table; first lines that left are added to what left."""
    ways = ends.shape[1]
    count, lines, notes = firsts[:, 0], firsts[:, 1::2], firsts[:, 2::2]
    there = np.arange(ways) < count[:, None]
    owner = numbers[np.where(there, notes >> 2, 0)]
    unstored = (ends >= 0) & (ends >> 1 & NOBODY == NOBODY)
    stays = (there[:, :, None] & unstored[:, None, :]
             & (ends[:, None, :] >> 8 == lines[:, :, None]))
    gone = there & (notes & NOTED_GONE > 0)
    np.add.at(leaving, 2 * owner[gone], 1)
    fate = np.where(gone, GONE, np.where(stays.any(2), STAYS + stays.argmax(2), STORED))
    whose = np.take_along_axis(owner, stays.argmax(1), 1)
    rows = np.concatenate([
        STATE_HEAD + used[:, None] * ways, count[:, None], lines << 8 | owner << 1,
        3 * (notes >> 2) + (notes & 1) << 16 | fate,
        np.where(stays.any(1), ends & ~(NOBODY << 1) | whose << 1, ends)], axis=1)
    head, none = np.ones((len(used), 2), dtype=bool), np.zeros((len(used), 2), dtype=bool)
    kept = np.concatenate([head, there, there, there], axis=1)
    owned = np.concatenate([none, there, there & False, there], axis=1)
    return rows[kept], np.flatnonzero(owned[kept])


def _place(transfer: Transfer, counts: tuple[Count, ...], owners: Owners) -> PlacedTransfer:
    """Give a transfer's owners the numbers they have behind those of earlier kernels."""
    numbers = np.array([owners.index(owner) for owner in transfer.owners] or [0], dtype=np.int64)
    table = transfer.table.copy()
    entries = table[transfer.entries_at]
    table[transfer.entries_at] = (entries & ~(NOBODY << 1)
                                  | numbers[entries >> 1 & NOBODY] << 1)
    first = len(transfer.misses)
    counters = np.zeros(first + 2 * len(owners), dtype=np.int64)
    counters[:first] = transfer.misses
    for number, left in zip(numbers.tolist(), transfer.leaving.reshape(-1, 2), strict=False):
        counters[first + 2 * number:first + 2 * number + 2] = left
    table = np.concatenate([[transfer.sets, len(counters), first], counters, table])
    return PlacedTransfer(
        table=table, size=len(counters),
        firsts=len(transfer.entries_at) // 2, owners=owners, counts=counts)
