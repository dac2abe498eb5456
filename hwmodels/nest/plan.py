"""Plans: nests checked, rewritten and flattened once, and found again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.kernel import Nest, Operand
from hwmodels.nest.flattening import flatten_tree
from hwmodels.nest.passes import mark_passes
from hwmodels.nest.phases import cut_tree
from hwmodels.nest.program import Program
from hwmodels.nest.rewrite import compact_tree, split_guards
from hwmodels.nest.stream import Tree, find_base, make_tree
from hwmodels.nest.traffic import Traffic, measure_traffic

MOST_PLANS = 4096

MOST_TREES = 256
"""Trees kept, those of a network or two: under another policy or size they come again at once."""

ANY_CACHE = Cache(name="any", size_bytes=32, line_bytes=32, ways=1)
"""What loops run as passes ask of a cache is its line and its sets."""

LEAST_CUT_TOUCHES = 30_000_000
"""Touches of a kernel from which phases save more of a single run than it takes to find them: some
thirty milliseconds, and passes run through a touch in a nanosecond."""

Count = Callable[[int, int, int], Any]
"""What makes an operand's counts of its misses: of loads, of stores, and bypasses."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A program to run and what is known without running it.

    Parameters
    ----------
    program : Program
        Flattened for a cache.
    traffic : tuple of Traffic
        Per operand.
    placed : dict
        By the owners of earlier kernels, the program behind them (`hwmodels.cache.running`).
    transfer : list
        What it does to any state (`hwmodels.cache.transfer`), once that is known.
    moved : dict
        By the owners of earlier kernels, that.
    """

    program: Program
    traffic: tuple[Traffic, ...]
    placed: dict[tuple[tuple[str, str], ...], Any] = field(default_factory=dict)
    transfer: list[Any] = field(default_factory=list)
    moved: dict[tuple[tuple[str, str], ...], Any] = field(default_factory=dict)


@lru_cache(maxsize=MOST_PLANS)
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
        their own, phases a stack of lines: else "runs"); "auto": phases only where one run pays
        for them, else passes.

    Returns
    -------
    Plan
        Shared between calls: nobody writes to its arrays.
    """
    policy, line_bytes = POLICIES[cache.replacement], cache.line_bytes
    met = _read_nests(nests, operands, looked_up, line_bytes)
    allocates, own = cache.allocate == "read_write" or not met.stores, met.own
    if method == "accesses":
        tree = make_tree(nests, own, looked_up, line_bytes)
    else:
        tree = _make_compact(nests, own, looked_up, line_bytes, allocates)
    if method in ("auto", "phases") and policy.sets_apart and allocates:
        tree = _mark_tree(tree, line_bytes, cache.sets,
                          0 if policy.hits_change else cache.sets * cache.ways)
    cut, pays = tree, method == "phases" or (method == "auto" and met.touches >= LEAST_CUT_TOUCHES)
    if pays and policy.stack and allocates:
        cut = cut_tree(tree, cache, operands)
    flatten = _flatten_tree if cut is tree else flatten_tree
    program = flatten(cut, cache, own, allocates=allocates, grouped=method != "accesses")
    return Plan(program=program.move(met.lines, line_bytes), traffic=met.traffic)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Met:
    """What of nests and operands is the same under every policy, and of every size.

    Parameters
    ----------
    traffic : tuple of Traffic
        Per operand.
    stores : bool
        Whether there are any to operands that are looked up.
    touches : int
        Of operands that are looked up.
    lines : tuple of int
        Lines each operand is from where plans have it.
    own : tuple of Operand
        Operands there, whatever they are for and whichever memory holds them.
    """

    traffic: tuple[Traffic, ...]
    stores: bool
    touches: int
    lines: tuple[int, ...]
    own: tuple[Operand, ...]


@lru_cache(maxsize=MOST_PLANS)
def _read_nests(nests: tuple[Nest, ...], operands: tuple[Operand, ...],
                looked_up: tuple[bool, ...], line_bytes: int) -> _Met:
    traffic = measure_traffic(nests, operands, line_bytes)
    bases = [find_base(operand, line_bytes) for operand in operands]
    met = [operand for operand, chosen in zip(traffic, looked_up, strict=True) if chosen]
    return _Met(
        traffic=traffic, lines=tuple([base // line_bytes for base in bases]),
        stores=any([operand.write_touches for operand in met]),
        touches=sum([operand.read_touches + operand.write_touches for operand in met]),
        own=tuple([Operand(name=operand.name, role="", memory="", size_bytes=operand.size_bytes,
                           address=operand.address - base)
                   for operand, base in zip(operands, bases, strict=True)]))


@lru_cache(maxsize=MOST_TREES)
def _make_compact(nests: tuple[Nest, ...], operands: tuple[Operand, ...],
                  looked_up: tuple[bool, ...], line_bytes: int, allocates: bool) -> Tree:
    """Return the compact tree of nests: it is the same under every replacement policy."""
    tree = make_tree(nests, operands, looked_up, line_bytes)
    return compact_tree(split_guards(tree), line_bytes, allocates)


@lru_cache(maxsize=MOST_TREES)
def _mark_tree(tree: Tree, line_bytes: int, sets: int, room: int) -> Tree:
    return mark_passes(tree, replace(ANY_CACHE, size_bytes=line_bytes * sets,
                                     line_bytes=line_bytes), room=room)


_flatten_tree = lru_cache(maxsize=MOST_TREES)(flatten_tree)
"""`flatten_tree` of what is kept: most layers of a network come again, with other addresses."""
