"""Counters of compiled loops made into counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from hwmodels.board.facts import Cache
from hwmodels.cache.counts import AccessCounts, OperandCounts, OwnerCounts
from hwmodels.frozen import NamedTexts
from hwmodels.kernel import Nests, Operand, Operands
from hwmodels.nest.plan import Count, Plan
from hwmodels.nest.traffic import Traffic, measure_traffic

Owners = NamedTexts
"""(memory, role) of each owner number."""

MOST_KEPT = 1 << 12
"""Counts of owners kept, for most runs are made again."""

MOST_MADE = 16
"""Counts of a kernel that are kept, for most runs are made again."""


def count_operands(plan: Plan, cache: Cache, operands: Sequence[Operand],
                   looked_up: Sequence[bool]) -> tuple[Count, ...]:
    """Return, per operand, what makes its counts of its misses."""
    return tuple(_operand_counts(cache, *row)
                 for row in zip(operands, looked_up, plan.traffic, strict=True))


def make_counts(counts: Sequence[Count], owners: Owners, counters: Sequence[int]) -> AccessCounts:
    """Make counters into counts.

    Parameters
    ----------
    counts
        Per operand, of `count_operands`.
    owners : tuple of (str, str)
        All there are.
    counters
        Per operand misses of loads, of stores, and bypasses; then look-ups made; then per owner
        lines that left, and dirty ones among them.

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
                      in zip(owners, counters[end + 1::2], counters[end + 2::2], strict=True)
                      if evicted]),
        simulated_touches=counters[end])


@lru_cache(maxsize=MOST_KEPT)
def count_uncached(nests: Nests, operands: Operands,
                   line_bytes: int) -> AccessCounts:
    """Count a kernel's accesses where none looks a cache up.

    Parameters
    ----------
    line_bytes
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
