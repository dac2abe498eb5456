"""Plans: nests checked, rewritten and flattened once, and found again."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.board.policies import policy_of
from hwmodels.frozen import entity
from hwmodels.kernel import Nests, Operand, Operands
from hwmodels.nest.flattening import flatten_tree
from hwmodels.nest.rewrite import compact_tree
from hwmodels.nest.stream import Tree, find_base, make_tree
from hwmodels.nest.traffic import Traffic, measure_traffic

MOST_PLANS = 4096

MOST_TREES = 256
"""Trees kept, those of a network or two: under another policy or size they come again at once."""


@entity
class Plan:
    """A program to run and what is known without running it.

    Parameters
    ----------
    program
        Of `flatten_tree`.
    traffic
        Per operand.
    bases : ndarray of int64, (operands,)
        Address of the line each operand begins in, or of more.
    """

    program: np.ndarray
    traffic: tuple[Traffic, ...]
    bases: np.ndarray


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
    policy, line_bytes = policy_of(cache.replacement), cache.line_bytes
    met = _read_nests(nests, operands, looked_up, line_bytes)
    if method == "accesses" or policy.step is not None:
        program = flatten_tree(make_tree(nests, met.own, looked_up, line_bytes), cache.sets,
                               in_order=True)
        return Plan(program=program, traffic=met.traffic, bases=met.bases)
    allocates = cache.allocate == "read_write" or not met.stores
    tree = _make_compact(nests, met.own, looked_up, line_bytes, allocates)
    return Plan(program=_flatten_kept(tree, cache.sets), traffic=met.traffic, bases=met.bases)


@entity
class _Met:
    """What of nests and operands is the same under every policy, and of every size.

    Parameters
    ----------
    traffic
        Per operand.
    stores
        Whether there are any to operands that are looked up.
    bases : ndarray of int64, (operands,)
        Bytes each operand is from where plans have it.
    own
        Operands there, whatever they are for and whichever memory holds them.
    """

    traffic: tuple[Traffic, ...]
    stores: bool
    bases: np.ndarray
    own: Operands


@lru_cache(maxsize=MOST_PLANS)
def _read_nests(nests: Nests, operands: Operands,
                looked_up: tuple[bool, ...], line_bytes: int) -> _Met:
    traffic = measure_traffic(nests, operands, line_bytes)
    bases = [find_base(operand, line_bytes) for operand in operands]
    return _Met(
        traffic=traffic, bases=np.array(bases, dtype=np.int64),
        stores=any([operand.write_touches for operand, chosen in zip(
            traffic, looked_up, strict=True) if chosen]),
        own=tuple([Operand(name=operand.name, role="", memory="", size_bytes=operand.size_bytes,
                           address=operand.address - base)
                   for operand, base in zip(operands, bases, strict=True)]))


@lru_cache(maxsize=MOST_TREES)
def _make_compact(nests: Nests, operands: Operands,
                  looked_up: tuple[bool, ...], line_bytes: int, allocates: bool) -> Tree:
    """Return the compact tree of nests: it is the same under every replacement policy."""
    tree = make_tree(nests, operands, looked_up, line_bytes)
    return compact_tree(tree, line_bytes, allocates)


@lru_cache(maxsize=MOST_TREES)
def _flatten_kept(tree: Tree, sets: int) -> np.ndarray:
    """Flatten what is kept: most layers of a network come again, with other addresses."""
    return flatten_tree(tree, sets)
