"""Transfers: what a kernel does to whatever is in a cache under LRU, known from one run of it.

In a set of n ways a line that was touched is there as long as fewer than n others came since: that
follows from the kernel alone. What was in the set before matters to the first n lines the kernel
comes to: each is hit if it is among what the lines before it did not drive out. So one run from an
empty cache, which notes those lines in order, tells what the kernel does to any state.

An entry that is found keeps its owner and its dirty bit until a store: that run notes which of the
first lines are stored to, which leave before that, and which stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.cache.chain import Chain, Link, Room, make_chain, number_owners
from hwmodels.cache.counters import Owners, count_operands
from hwmodels.cache.running import lay_programs, place_program
from hwmodels.kernel import Operand
from hwmodels.kernels.compiled import RUN_PROGRAMS, TRANSFER_STATE
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


def link_transfers(links: Sequence[Link], ways: int) -> Chain:
    """Put transfers, all behind the same owners or each behind those before, one behind the other.

    Parameters
    ----------
    links : sequence of Link
        In order, one or more.
    ways : int
        Of the cache.

    Returns
    -------
    Chain
        All of them.
    """
    tables = [link.table for link in links]
    table = tables[0] if len(tables) == 1 else np.concatenate(tables)
    size = sum([link.size for link in links])

    def make_room() -> Room:
        room = np.empty(size + ways, dtype=np.int64)
        return room[:size], TRANSFER_STATE.bind(len(links), ways, table, None, room)

    return make_chain(links, make_room)


def place_transfer(plan: Plan, cache: Cache, operands: Sequence[Operand],
                   looked_up: Sequence[bool], known: Owners) -> Link:
    """Return a plan's transfer behind the owners of earlier kernels.

    Parameters
    ----------
    plan, cache, operands, looked_up, known
        As for `hwmodels.cache.running.place_program`.

    Returns
    -------
    Link
        Found by one run of the plan's program, if it was not yet.
    """
    if not plan.transfer:
        plan.transfer.append(find_transfer(plan, cache, operands, looked_up))
    return _place(plan.transfer[0], count_operands(plan, cache, operands, looked_up),
                  number_owners(known, operands, looked_up)[0])


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
    link = place_program(plan, cache, operands, looked_up, ())
    memory, starts = lay_programs([link])
    starts[FIRSTS_WORD] = program.firsts.start
    counters = np.empty(link.size, dtype=np.int64)
    words = np.zeros(STATE_HEAD + entries + cache.sets, dtype=np.int64)
    words[STATE_HEAD:STATE_HEAD + entries] = -1
    RUN_PROGRAMS(1, starts, memory, words, counters)
    owners, numbers = number_owners((), operands, looked_up)
    firsts = memory[program.firsts].reshape(cache.sets, -1)
    used = np.flatnonzero(firsts[:, 0])
    misses, leaving = np.split(counters[:-1], [3 * len(operands)])
    table, entries_at = _lay_out(
        used, firsts[used], numbers, leaving,
        words[STATE_HEAD:STATE_HEAD + entries].reshape(cache.sets, cache.ways)[used])
    return Transfer(owners=owners, sets=len(used), misses=misses,
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


def _place(transfer: Transfer, counts: tuple[Count, ...], owners: Owners) -> Link:
    """Give a transfer's owners the numbers they have behind those of earlier kernels."""
    numbers = np.array([owners.index(owner) for owner in transfer.owners] or [0], dtype=np.int64)
    table = transfer.table.copy()
    entries = table[transfer.entries_at]
    table[transfer.entries_at] = (entries & ~(NOBODY << 1)
                                  | numbers[entries >> 1 & NOBODY] << 1)
    first = len(transfer.misses)
    counters = np.zeros(first + 2 * len(owners) + 1, dtype=np.int64)
    counters[:first], counters[-1] = transfer.misses, len(transfer.entries_at) // 2
    for number, left in zip(numbers.tolist(), transfer.leaving.reshape(-1, 2), strict=False):
        counters[first + 2 * number:first + 2 * number + 2] = left
    table = np.concatenate([[transfer.sets, len(counters), first], counters, table])
    return Link(table=table, size=len(counters), owners=owners, counts=counts)
