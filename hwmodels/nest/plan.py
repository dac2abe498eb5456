"""How the nests of a kernel are simulated: checked, counted, rewritten once, then reused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.kernel import Nest, Operand
from hwmodels.nest.guards import split_guards
from hwmodels.nest.passes import mark_passes
from hwmodels.nest.phases import cut_tree
from hwmodels.nest.program import Program, flatten_tree
from hwmodels.nest.rewrite import compact_tree
from hwmodels.nest.stream import Traffic, check_nests, make_tree, measure_traffic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A program to run and what is known without running it."""

    program: Program
    traffic: tuple[Traffic, ...]


@lru_cache(maxsize=4096)
def plan_nests(nests: tuple[Nest, ...], operands: tuple[Operand, ...],
               looked_up: tuple[bool, ...], cache: Cache, method: str) -> Plan:
    """Check nests against their operands and flatten those that are looked up.

    Parameters
    ----------
    nests : tuple of Loop or Access
        In program order.
    operands : tuple of Operand
        What they touch.
    looked_up : tuple of bool
        Per operand, whether its accesses reach the cache.
    cache : Cache
        What they reach.
    method : str
        "accesses", "runs" or "phases" (with passes; they need stores that allocate and sets on
        their own, phases a stack of lines: else "runs").

    Returns
    -------
    Plan
        Shared between calls: nobody writes to its arrays.
    """
    check_nests(nests, operands)
    traffic = measure_traffic(nests, operands, cache.line_bytes)
    allocates = cache.allocate == "read_write" or not any(
        operand.write_touches for operand, chosen in zip(traffic, looked_up, strict=True)
        if chosen)
    policy = POLICIES[cache.replacement]
    tree = make_tree(nests, operands, looked_up, cache.line_bytes)
    if method != "accesses":
        tree = compact_tree(split_guards(tree), cache.line_bytes, allocates)
    if method == "phases" and policy.sets_apart and allocates:
        tree = mark_passes(tree, cache)
    if method == "phases" and policy.stack and allocates:
        tree = cut_tree(tree, cache, operands)
    program = flatten_tree(tree, cache, len(operands), allocates=allocates,
                           grouped=method != "accesses")
    return Plan(program=program, traffic=traffic)
