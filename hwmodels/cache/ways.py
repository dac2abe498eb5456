"""Every associativity of an LRU cache in one pass.

    counts, state = sweep_ways(cache, kernel.nests, kernel.operands, new_state(cache))
    counts[0].read_misses[w - 1]      misses of the first operand's loads with w ways
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.cache.set_associative import CacheState, run_memory
from hwmodels.errors import BoardError
from hwmodels.kernel import Nest, Operand
from hwmodels.nest.plan import plan_nests

SWEEP = -1
"""The kernel's number for counting depths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCounts:
    """What one operand would miss with 1, 2, ... ways at equal sets.

    Parameters
    ----------
    operand, role, memory : str
        As the kernel names them.
    touches : int
        Lines looked up.
    read_misses, write_misses : tuple of int
        Lines filled, by ways from one to those of the cache.
    """

    operand: str
    role: str
    memory: str
    touches: int
    read_misses: tuple[int, ...]
    write_misses: tuple[int, ...]


def sweep_ways(cache: Cache, nests: Sequence[Nest], operands: Sequence[Operand],
               state: CacheState, cached: Sequence[bool] | None = None,
               ) -> tuple[tuple[SweepCounts, ...], CacheState]:
    """Find the misses for every number of ways up to the cache's, at its number of sets.

    Parameters
    ----------
    cache : Cache
        The largest; LRU, and stores allocate.
    nests : sequence of Loop or Access
        In program order.
    operands : sequence of Operand
        What they touch.
    state : CacheState
        From `new_state` or the kernel before; not changed.
    cached : sequence of bool, optional
        Per operand, whether it is looked up; by default all are.

    Returns
    -------
    tuple of SweepCounts
        One per operand looked up.
    CacheState
        After the kernel, for the largest cache; it holds all smaller ones. Lines carry no owner.

    Raises
    ------
    BoardError
        When the policy is not LRU or stores do not allocate.

    Notes
    -----
    A smaller LRU cache of as many sets holds the most recent lines of a larger one: a touch that
    finds its line at depth d hits with more than d ways.

    References
    ----------
    R. L. Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal
    9(2), 1970.
    """
    if not POLICIES[cache.replacement].stack or cache.allocate != "read_write":
        raise BoardError(f"cache {cache.name!r}: replacement {cache.replacement!r}, allocate "
                         f"{cache.allocate!r}; a sweep over ways takes lru and read_write")
    looked_up = tuple(cached) if cached is not None else (True,) * len(operands)
    plan = plan_nests(tuple(nests), tuple(operands), looked_up, cache, "runs")
    front, words = run_memory(plan.program, replace(cache, write="through"),
                              np.zeros(len(operands), dtype=np.int64), 1, state.words, SWEEP)
    depths = front[plan.program.deep].reshape(len(operands), 2, cache.ways + 1)
    misses = depths[:, :, ::-1].cumsum(axis=2)[:, :, -2::-1].tolist()
    counts = tuple(
        SweepCounts(operand=operand.name, role=operand.role, memory=operand.memory,
                    touches=traffic.read_touches + traffic.write_touches,
                    read_misses=tuple(reads), write_misses=tuple(writes))
        for operand, traffic, (reads, writes), chosen
        in zip(operands, plan.traffic, misses, looked_up, strict=True) if chosen)
    return counts, replace(state, words=words, owners=(("", ""),))
