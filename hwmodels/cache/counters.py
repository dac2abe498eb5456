"""Counters of compiled loops made into counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hwmodels.board.facts import Cache
from hwmodels.cache import AccessCounts, OperandCounts, OwnerCounts
from hwmodels.frozen import NamedTexts
from hwmodels.kernel import Nests, Operand, Operands
from hwmodels.nest.plan import Plan
from hwmodels.nest.traffic import Traffic, measure_traffic

Owners = NamedTexts
"""(memory, role) of each owner number."""

MOST_KEPT = 1 << 12


def make_counts(cache: Cache, plan: Plan, operands: Sequence[Operand], looked_up: Sequence[bool],
                owners: Owners, counters: Sequence[int]) -> AccessCounts:
    """Make counters into counts.

    Parameters
    ----------
    plan
        Of a kernel.
    looked_up
        Per operand.
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
    end = 3 * len(operands)
    return AccessCounts(
        operands=tuple([_count_operand(operand, traffic, cached, cache.write, *misses)
                        for operand, traffic, cached, *misses in zip(
                            operands, plan.traffic, looked_up, counters[:end:3],
                            counters[1:end:3], counters[2:end:3], strict=True)]),
        owners=tuple([OwnerCounts(memory=memory, role=role, evictions=evicted, write_backs=written)
                      for (memory, role), evicted, written in zip(
                          owners, counters[end + 1::2], counters[end + 2::2], strict=True)
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
        _count_operand(operand, traffic, False) for operand, traffic in zip(
            operands, measure_traffic(nests, operands, line_bytes), strict=True)]))


def _count_operand(operand: Operand, traffic: Traffic, cached: bool, write: str = "back",
                   read_misses: int = 0, write_misses: int = 0, bypasses: int = 0) -> OperandCounts:
    """Return an operand's counts; under write-back its bypasses alone are passed on."""
    return OperandCounts(
        operand=operand.name, role=operand.role, memory=operand.memory, cached=cached,
        reads=traffic.reads, writes=traffic.writes, read_bytes=traffic.read_bytes,
        write_bytes=traffic.write_bytes, read_touches=traffic.read_touches * cached,
        write_touches=traffic.write_touches * cached, read_misses=read_misses,
        write_misses=write_misses, write_bypasses=bypasses,
        write_throughs=bypasses if write == "back" else traffic.write_touches * cached)
