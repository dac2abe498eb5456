"""What an undocumented replacement policy leaves open: the prediction under each it may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from hwmodels.board.facts import Board, Cache
from hwmodels.board.file import WHAT_IF_SOURCE
from hwmodels.board.policies import POLICIES
from hwmodels.paths.timing import read_timing
from hwmodels.paths.ways import data_caches
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.pricing.host import runtime_prices
from twin.pricing.prediction import predict
from twin.pricing.rates import time_us
from twin.pricing.structure import find_structure

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
            (stated or "none", _time_all((deployment,))[0]),))
    rivals = list_rivals(deployment, caches)
    return ReplacementRange(caches=tuple(cache.name for cache in caches), time_us=tuple(
        zip([policy for policy, _ in rivals], _time_all([one for _, one in rivals]),
            strict=True)))


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


def _time_all(rivals: Sequence[Deployment]) -> list[float]:
    """Time deployments that differ in policies alone; their prices are those of the first."""
    if not is_itemised(rivals[0]):
        return [predict(one).time_us for one in rivals]
    first, board = rivals[0], rivals[0].board
    prices, read = runtime_prices(first), cache(partial(read_timing, board))
    hertz, lower = board.clock(board.core.clock).frequency_hz, cache(partial(lower_network, first))
    structures = [find_structure(one, lower, cold=False) for one in rivals]
    return [time_us(one, read(one.sheet.places), prices, first.runtime, hertz)
            for one in structures]


def is_itemised(deployment: Deployment) -> bool:
    """Whether a prediction is counts of kernels on the core times prices, and nothing beside."""
    return not deployment.target.offloads and deployment.transfers is None


def _with_caches(board: Board, caches: Sequence[Cache]) -> Board:
    changed = {cache.name: cache for cache in caches}
    return replace(board, caches=tuple(changed.get(cache.name, cache) for cache in board.caches))


def _is_used(board: Board, cache: Cache) -> bool:
    return cache.name in (board.core.icache, board.core.dcache, *board.core.data_caches)
