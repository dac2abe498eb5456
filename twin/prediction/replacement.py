"""What an undocumented replacement policy leaves open: the prediction under each it may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hwmodels.board.facts import Board, Cache
from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.board.policies import POLICIES
from hwmodels.paths.ways import data_caches
from twin.deployment.deployment import Deployment
from twin.prediction.prediction import predict

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
    board = deployment.board
    known = {fact.path for fact in board.facts
             if fact.kind != "assumed" or fact.source == WHAT_IF_SOURCE}
    open_caches = [cache for cache in board.caches if cache.enabled
                   and cache.ways > 1 and _is_used(board, cache)
                   and f"caches.{cache.name}.replacement" not in known]
    first = predict(deployment).time_us
    if not open_caches:
        stated = "/".join(dict.fromkeys(cache.replacement for cache in data_caches(board)))
        return ReplacementRange(caches=(), time_us=((stated or "none", first),))
    times = [(open_caches[0].replacement, first)]
    for policy in CANDIDATES:
        if policy == open_caches[0].replacement or not all(
                POLICIES[policy].takes(cache.ways) for cache in open_caches):
            continue
        other = _with_caches(board, [replace(cache, replacement=policy)
                                     for cache in open_caches])
        times.append((policy, predict(replace(deployment, board=other)).time_us))
    return ReplacementRange(caches=tuple(cache.name for cache in open_caches),
                            time_us=tuple(times))


def _with_caches(board: Board, caches: Sequence[Cache]) -> Board:
    changed = {cache.name: cache for cache in caches}
    return replace(board, caches=tuple(changed.get(cache.name, cache) for cache in board.caches))


def _is_used(board: Board, cache: Cache) -> bool:
    return cache.name in (board.core.icache, board.core.dcache, *board.core.data_caches)
