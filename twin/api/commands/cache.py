"""`twin cache`: how a network fares in the caches of a core."""

from __future__ import annotations

from collections.abc import Sequence
from os import fspath

from hwmodels.frozen import frozen
from twin.api.requests import takes
from twin.api.requests.prediction import Cache
from twin.errors import UsageError
from twin.pricing.calibrated import apply_calibration
from twin.pricing.calibration import choose_calibration
from twin.pricing.locality import Locality, ReplacementRange, measure_locality, replacement_range
from twin.studies.caches import SIZES_BYTES, WAYS, SweepPoint, sweep_caches

AXES = ("size", "ways")


@frozen
class CacheReport:
    """What a network's accesses meet in the data caches.

    Parameters
    ----------
    policies : ReplacementRange
        Times under other replacement policies, where the board's is assumed.
    points : tuple of SweepPoint
        Miss ratios over other caches.
    """

    locality: Locality
    policies: ReplacementRange
    prices: str
    points: tuple[SweepPoint, ...]


@takes(Cache)
def cache(asked: Cache) -> CacheReport:
    """Show hits and misses of a network in the data caches, by layer.

    Raises
    ------
    UsageError
        For another axis.
    """
    deployment = asked.deployment
    check_axes(asked.sweep)
    locality = measure_locality(deployment, cold=asked.temperature == "cold")
    chosen = choose_calibration(deployment, fspath(asked.calibration))
    policies = replacement_range(
        deployment if chosen is None else apply_calibration(deployment, chosen))
    return CacheReport(locality=locality, policies=policies,
                       points=sweep_axes(locality, asked.sweep),
                       prices="stated" if chosen is None else chosen.description)


def check_axes(axes: Sequence[str]) -> None:
    """Refuse axes nothing can be swept over, and one named twice; raises `UsageError`."""
    if any(axis not in AXES for axis in axes) or len(set(axes)) < len(axes):
        raise UsageError(f"--sweep {','.join(axes)!r}; accepted: size, ways, or size,ways")


def check_layer(locality: Locality, index: int | None) -> None:
    """Refuse the index of a layer there is not; raises `UsageError`."""
    known = [each.index for each in locality.layers]
    if index is not None and index not in known:
        raise UsageError(f"--layer {index}; accepted: {', '.join(map(str, known))}")


def sweep_axes(locality: Locality, axes: Sequence[str] = AXES) -> tuple[SweepPoint, ...]:
    """Return miss ratios over usual sizes, ways or both, and the cache's own."""
    if not axes or not locality.caches:
        return ()
    own = locality.caches[0]
    ways = sorted({*WAYS, own.ways}) if "ways" in axes else [own.ways]
    sizes = sorted({*SIZES_BYTES, own.size_bytes}) if "size" in axes else [own.size_bytes]
    return sweep_caches(locality.deployment, sizes, ways)
