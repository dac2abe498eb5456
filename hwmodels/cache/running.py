"""Kernels run one behind the other by one call of compiled code, and what they count."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import policies_of
from hwmodels.cache import AccessCounts
from hwmodels.cache.counters import Owners, make_counts
from hwmodels.errors import KernelError
from hwmodels.kernel import Operand
from hwmodels.kernels.cache_words import POLICY
from hwmodels.kernels.compiled import RUN_PROGRAMS
from hwmodels.nest.plan import Plan

MAX_OWNERS = 127

Call = tuple[Plan, Sequence[Operand], Sequence[bool]]
"""A kernel's plan, what it touches, and whether each operand is looked up."""


def run_plans(cache: Cache, calls: Sequence[Call], owners: Owners, numbers: np.ndarray,
              words: np.ndarray) -> tuple[AccessCounts, ...]:
    """Run kernels that follow each other through a cache.

    Parameters
    ----------
    cache
        Geometry and policies.
    calls
        In order, one or more.
    owners, numbers
        Of earlier kernels and of these, as `number_owners` has them of all operands.
    words : ndarray of int64
        The state of the cache, brought in place to after the kernels.

    Returns
    -------
    tuple of AccessCounts
        What each counts, under one policy behind the other.
    """
    starts = [0, *itertools.accumulate(len(operands) for _, operands, _ in calls)]
    shared = 1 + 2 * len(owners)
    geometry = describe_cache(cache)
    policies = len(geometry) - POLICY
    counters = np.zeros((policies, 3 * starts[-1] + shared * len(calls)), dtype=np.int64)
    RUN_PROGRAMS(np.array(starts), np.concatenate([plan.program for plan, *_ in calls]), numbers,
                 geometry, words.reshape(policies, -1), counters)
    return tuple([
        make_counts(cache, *call, owners,
                    counted[3 * first + shared * number:3 * last + shared * (number + 1)])
        for counted in counters.tolist()
        for number, (call, (first, last)) in enumerate(zip(
            calls, itertools.pairwise(starts), strict=True))])


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
                     -1 if cache.sets & (cache.sets - 1) else cache.sets - 1,
                     cache.write == "back", cache.allocate == "read_write",
                     *[one.number for one in policies_of(cache.replacement)]], dtype=np.int64)
