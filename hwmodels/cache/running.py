"""Programs run: their lines are given owners, their counters made into counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.cache.counts import AccessCounts, OperandCounts, OwnerCounts
from hwmodels.errors import KernelError
from hwmodels.kernel import Nest, Operand
from hwmodels.nest.plan import Count, Placed, Plan, Room
from hwmodels.nest.program import (
    CLOCK_WORD,
    MARK_WORD,
    MAX_OWNERS,
    MOST_SPARE_WORDS,
    OPERAND_WORD,
    OWNERS_WORD,
    RECORD_WORDS,
    STAMP_WORD,
    WRITE_WORD,
    Program,
)
from hwmodels.nest.traffic import Traffic, measure_traffic

Owners = tuple[tuple[str, str], ...]
"""(memory, role) of each owner number."""

MOST_KEPT = 1 << 12
"""Counts of owners kept, for most runs are made again."""

MOST_MADE = 16
"""Counts of a kernel that are kept, for most runs are made again."""

MOST_PLACED = 8
"""Sequences of owners for which a plan is kept with its marks."""


def run_plan(plan: Plan, cache: Cache, operands: Sequence[Operand], looked_up: Sequence[bool],
             known: Owners, words: np.ndarray) -> tuple[AccessCounts, Owners]:
    """Run a plan's program.

    Parameters
    ----------
    plan : Plan
        Of the operands and the cache.
    cache : Cache
        Geometry and policies.
    operands : sequence of Operand
        What the program touches.
    looked_up : sequence of bool
        Per operand, whether its accesses reach the cache.
    known : tuple of (str, str)
        Owners of earlier kernels.
    words : ndarray of int64
        State before; the state after, in place.

    Returns
    -------
    AccessCounts
        Per operand and per owner.
    tuple of (str, str)
        Owners, those of earlier kernels first.
    """
    placed = plan.placed.get(known)
    if placed is None:
        placed = place_program(plan, cache, operands, looked_up, known)
        if len(plan.placed) >= MOST_PLACED:
            plan.placed.clear()
        for other in plan.placed.values():
            other.spare.clear()
        plan.placed[known] = placed
    if placed.spare:
        room = placed.spare.pop()
        stamp = room.memory[STAMP_WORD]
        room.changing[0][:] = room.changing[1]
        room.memory[STAMP_WORD] = stamp  # Its notes are older than stamps to come.
    else:
        room = _make_room(plan.program, placed.front)
    room.run(words)
    touches, key = int(room.memory[CLOCK_WORD]), room.counters.tobytes()
    counts = placed.made.get(key)
    if counts is None or counts.simulated_touches != touches:
        if len(placed.made) >= MOST_MADE:
            placed.made.clear()
        counts = placed.made[key] = make_counts(placed.counts, placed.owners,
                                                room.counters.tolist(), touches)
    if not placed.spare and plan.program.words <= MOST_SPARE_WORDS:
        placed.spare.append(room)
    return counts, placed.owners


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


def place_program(plan: Plan, cache: Cache, operands: Sequence[Operand],
                  looked_up: Sequence[bool], known: Owners) -> Placed:
    """Give a plan's lines numbers of owners behind those of earlier kernels."""
    owners, numbers = number_owners(known, operands, looked_up)
    front = plan.program.front.copy()
    records = front[plan.program.records].reshape(-1, RECORD_WORDS)
    records[:, MARK_WORD] = numbers[records[:, OPERAND_WORD]] << 1
    if cache.write == "back":
        records[:, MARK_WORD] |= records[:, WRITE_WORD]
    front[OWNERS_WORD] = len(owners)
    leaving = front[plan.program.leaving].reshape(-1, 2)
    for operand, write, lines in plan.program.skipped:
        # As many leave as came: those that stay are of the phases after them.
        leaving[numbers[operand]] += lines, lines * (write and cache.write == "back")
    return Placed(front=front, owners=owners,
                  counts=count_operands(plan, cache, operands, looked_up))


def _make_room(program: Program, front: np.ndarray) -> Room:
    """Make an array for runs of a program, begun as told."""
    from hwmodels.kernels.compiled import RUN_PROGRAM

    memory = np.zeros(program.words, dtype=np.int64)
    memory[:len(front)] = front
    changing = memory[:program.changing], front[:program.changing]
    counters = memory[program.misses.start:program.leaving.start + 2 * int(memory[OWNERS_WORD])]
    return Room(memory=memory, changing=changing, counters=counters,
                run=RUN_PROGRAM.bind(memory, None))


def count_operands(plan: Plan, cache: Cache, operands: Sequence[Operand],
                   looked_up: Sequence[bool]) -> tuple[Count, ...]:
    """Return, per operand, what makes its counts of its misses."""
    return tuple(_operand_counts(cache, *row)
                 for row in zip(operands, looked_up, plan.traffic, strict=True))


def make_counts(counts: Sequence[Count], owners: Owners, counters: Sequence[int],
                touches: int) -> AccessCounts:
    """Make counters into counts.

    Parameters
    ----------
    counts : sequence of callable
        Per operand, of `count_operands`.
    owners : tuple of (str, str)
        All there are.
    counters : sequence of int
        Per operand misses of loads, of stores, and bypasses; then per owner lines that left, and
        dirty ones among them.
    touches : int
        Look-ups made.

    Returns
    -------
    AccessCounts
        Owners of which nothing left are not named.
    """
    end = 3 * len(counts)
    return AccessCounts(
        operands=tuple([count(*found) for count, *found in zip(
            counts, counters[:end:3], counters[1:end:3], counters[2:end:3], strict=True)]),
        owners=tuple([_count_owner(*owner, evicted, written) for owner, evicted, written
                      in zip(owners, counters[end::2], counters[end + 1::2], strict=True)
                      if evicted]),
        simulated_touches=touches)


def count_uncached(nests: tuple[Nest, ...], operands: tuple[Operand, ...],
                   line_bytes: int) -> AccessCounts:
    """Count a kernel's accesses where none looks a cache up.

    Parameters
    ----------
    nests, operands
        As of the kernel.
    line_bytes : int
        Of any cache the same nests are looked up in, for what is known of them is kept.

    Returns
    -------
    AccessCounts
        Without touches, misses or owners.
    """
    return AccessCounts(operands=tuple([
        OperandCounts(operand=operand.name, role=operand.role, memory=operand.memory, cached=False,
                      reads=traffic.reads, writes=traffic.writes, read_bytes=traffic.read_bytes,
                      write_bytes=traffic.write_bytes)
        for operand, traffic in zip(operands, measure_traffic(nests, operands, line_bytes),
                                    strict=True)]))


@lru_cache(maxsize=MOST_KEPT)
def _count_owner(memory: str, role: str, evicted: int, written: int) -> OwnerCounts:
    return OwnerCounts(memory=memory, role=role, evictions=evicted, write_backs=written)


def _operand_counts(cache: Cache, operand: Operand, cached: bool,
                    traffic: Traffic) -> Callable[[int, int, int], OperandCounts]:
    """Return what makes an operand's counts of its misses; the last ones made are kept."""
    make = partial(
        OperandCounts, operand=operand.name, role=operand.role, memory=operand.memory,
        cached=cached, reads=traffic.reads, writes=traffic.writes, read_bytes=traffic.read_bytes,
        write_bytes=traffic.write_bytes, read_touches=traffic.read_touches if cached else 0,
        write_touches=traffic.write_touches if cached else 0)
    # Under write-back bypasses alone are passed on.
    passed = None if cached and cache.write == "back" else traffic.write_touches * cached

    found: dict[tuple[int, int, int], OperandCounts] = {}

    def count(read: int, write: int, bypass: int) -> OperandCounts:
        made = found.get(key := (read, write, bypass))
        if made is None:
            if len(found) >= MOST_MADE:
                found.clear()
            made = found[key] = make(
                read_misses=read, write_misses=write, write_bypasses=bypass,
                write_throughs=bypass if passed is None else passed)
        return made

    return count
