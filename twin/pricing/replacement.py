"""What an undocumented replacement policy leaves open: the prediction under each it may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from hwmodels.board.facts import Board, Cache
from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.board.policies import POLICIES
from hwmodels.counts import Prices
from hwmodels.paths.timing import read_timing
from hwmodels.paths.ways import data_caches
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.pricing.lines import PricedLines, price_lines, runtime_prices
from twin.pricing.prediction import predict
from twin.pricing.structure import Groups, find_structure

CANDIDATES = tuple(name for name, policy in POLICIES.items() if policy.candidate)
"""Replacement policies an undocumented cache may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementRange:
    """What not knowing a replacement policy leaves open.

    Parameters
    ----------
    caches : tuple of str
        Whose policy is assumed; none: the candidates are the stated policy alone.
    time_us : tuple of (str, float)
        Of an inference by candidate, the assumed one first.
    """

    caches: tuple[str, ...]
    time_us: tuple[tuple[str, float], ...]

    @property
    def low(self) -> float:
        """Shortest time over that of the assumed policy."""
        return min(time for _, time in self.time_us) / self.time_us[0][1]

    @property
    def high(self) -> float:
        """Longest time over that of the assumed policy."""
        return max(time for _, time in self.time_us) / self.time_us[0][1]


def replacement_range(deployment: Deployment) -> ReplacementRange:
    """Predict under every replacement policy a cache of undocumented policy may have.

    Parameters
    ----------
    deployment : Deployment
        Any.

    Returns
    -------
    ReplacementRange
        Policies are those the board file marks `assumed` or does not state; all such caches change
        together.

    Notes
    -----
    Tree pseudo-LRU is tried only where every cache has a power of two of ways, up to 32.
    """
    caches = list_open(deployment.board)
    if not caches:
        stated = "/".join(dict.fromkeys(
            cache.replacement for cache in data_caches(deployment.board)))
        return ReplacementRange(caches=(), time_us=(
            (stated or "none", predict(deployment).time_us),))
    core = deployment.board.clock(deployment.board.core.clock)
    times_us = [(policy, math.fsum(priced.cycles) / core.frequency_hz * 1e6)
                for policy, priced in price_rivals(
                    deployment, runtime_prices(deployment),
                    cache(partial(lower_network, deployment)))] if deployment.is_itemised else [
        (policy, predict(one).time_us) for policy, one in list_rivals(deployment, caches)]
    return ReplacementRange(caches=tuple(cache.name for cache in caches),
                            time_us=tuple(times_us))


def list_open(board: Board) -> tuple[Cache, ...]:
    """Return the caches in use whose replacement policy nobody documents."""
    known = {fact.path for fact in board.facts
             if fact.kind != "assumed" or fact.source == WHAT_IF_SOURCE}
    return tuple(cache for cache in board.caches if cache.enabled
                 and cache.ways > 1 and _is_used(board, cache)
                 and f"caches.{cache.name}.replacement" not in known)


def list_rivals(deployment: Deployment, caches: Sequence[Cache],
                ) -> tuple[tuple[str, Deployment], ...]:
    """Return a deployment under each policy open caches may have, the assumed one first."""
    board = deployment.board
    return ((caches[0].replacement, deployment), *(
        (policy, replace(deployment, board=_with_caches(board, [
            replace(cache, replacement=policy) for cache in caches])))
        for policy in CANDIDATES if policy != caches[0].replacement
        and all(POLICIES[policy].takes(cache.ways) for cache in caches)))


def price_rivals(deployment: Deployment, prices: Prices,
                 lower: Groups) -> list[tuple[str, PricedLines]]:
    """Return the lines of a warm inference under each policy open caches may have, if any is open.

    Parameters
    ----------
    deployment : Deployment
        All of it on the core; the assumed policy is the first.
    prices : Prices
        Of the board, the same under each.
    lower : callable
        Returns the kernels of each layer.
    """
    caches, board = list_open(deployment.board), deployment.board
    found = []
    for policy, rival in list_rivals(deployment, caches) if caches else ():
        structure = find_structure(rival, lower, cold=False)
        found.append((policy, price_lines(structure, deployment.runtime, prices,
                                          read_timing(board, structure.sheet.places))))
    return found


def _with_caches(board: Board, caches: Sequence[Cache]) -> Board:
    changed = {cache.name: cache for cache in caches}
    return replace(board, caches=tuple(changed.get(cache.name, cache) for cache in board.caches))


def _is_used(board: Board, cache: Cache) -> bool:
    return cache.name in (board.core.icache, board.core.dcache, *board.core.data_caches)
