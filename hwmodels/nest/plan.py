"""Plans: nests checked, rewritten and flattened once, and found again."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import policies_of
from hwmodels.frozen import entity
from hwmodels.kernel import Nests, Operands
from hwmodels.nest.flattening import flatten_tree
from hwmodels.nest.rewrite import compact_tree
from hwmodels.nest.stream import make_tree
from hwmodels.nest.traffic import Traffic, measure_traffic

MOST_PLANS = 4096


@entity
class Plan:
    """A program to run and what is known without running it.

    Parameters
    ----------
    program
        Of `flatten_tree`.
    traffic
        Per operand.
    """

    program: np.ndarray
    traffic: tuple[Traffic, ...]


@lru_cache(maxsize=MOST_PLANS)
def plan_nests(nests: Nests, operands: Operands,
               looked_up: tuple[bool, ...], cache: Cache, method: str) -> Plan:
    """Check nests against their operands and flatten those that are looked up.

    Parameters
    ----------
    nests : tuple of Loop or Access
        In program order.
    looked_up
        Per operand, whether its accesses reach the cache.
    method
        One of `hwmodels.cache.set_associative.METHODS`.

    Returns
    -------
    Plan
        Shared between calls: nobody writes to its arrays.
    """
    line_bytes = cache.line_bytes
    traffic = measure_traffic(nests, operands, line_bytes)
    tree = make_tree(nests, operands, looked_up, line_bytes)
    in_order = method == "accesses" or any(
        [policy.step is not None for policy in policies_of(cache.replacement)])
    if not in_order:
        stores = any(operand.write_touches for operand, chosen in zip(
            traffic, looked_up, strict=True) if chosen)
        tree = compact_tree(tree, line_bytes, cache.allocate == "read_write" or not stores)
    return Plan(program=flatten_tree(tree, cache.sets, in_order=in_order), traffic=traffic)
