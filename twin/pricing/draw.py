"""What a predicted time is uncertain by, and how far two times share it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from hashlib import sha256
from statistics import NormalDist

import numpy as np

from calibration.fitting.intervals import LEVEL, Interval, probability_less
from hwmodels.frozen import frozen


@frozen
class Draw:
    """What a total is uncertain by, so that two totals can share it.

    Parameters
    ----------
    source
        Which learnt prices; only draws of the same source are shared.
    reach
        Shape (prices,): C^(1/2) s, the symmetric root of the covariance of the logarithms of
        prices on `time`, of which differences share what prices of one source have in common.
    time
        Shape (prices,): s, by how much log time follows each log price.
    row_sd
        Error of a single row: not shared.
    network_sd
        Error of a network's structure: shared by the same network.
    unlearned_sd
        Added for operators nobody measured: shared by the same network.
    network
        Architecture id of the network.
    structure, counts_sd
        What its counts depend on, and how well what differs between two structures of a library is
        known: of the logarithm; 0 where its instructions were counted.
    policies
        Times under each replacement policy a cache may have, over that of the assumed one.
    """

    source: tuple[str, ...]
    reach: np.ndarray = field(repr=False)
    time: np.ndarray = field(repr=False)
    row_sd: float
    network_sd: float
    network: str
    unlearned_sd: float = 0.0
    structure: str = ""
    counts_sd: float = 0.0
    policies: np.ndarray = field(repr=False, default_factory=lambda: np.ones(1))


def ratio_interval(before_us: float, after_us: float, before: Draw, after: Draw) -> Interval:
    """Return the interval of the ratio of two times, after over before, that share their draws.

    Notes
    -----
    Normal in the logarithm, with the variance of `probability_faster`; under every replacement
    policy both may have.
    """
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    spread = math.exp(reach * math.sqrt(_variance(before_us, after_us, before, after)))
    ratios = (after_us / before_us * _compare_policies(before, after)).tolist()
    return Interval(low=min(ratios) / spread, high=max(ratios) * spread, level=LEVEL)


def _compare_policies(before: Draw, after: Draw) -> np.ndarray:
    """Return by how much a ratio of times moves under each replacement policy both may have."""
    return after.policies / before.policies if (
        len(before.policies) == len(after.policies)) else np.ones(1)


_SDS = ("row_sd", "network_sd", "unlearned_sd", "counts_sd")


def write_draw(draw: Draw) -> tuple[float, ...]:
    """Return a draw as numbers; what it is of as 48 bits of a hash, which numbers hold exactly."""
    return (*(float(int(sha256(repr(one).encode()).hexdigest()[:12], 16))
              for one in (draw.source, draw.network, draw.structure)),
            *(getattr(draw, name) for name in _SDS), len(draw.policies),
            *map(float, (*draw.policies, *draw.time, *draw.reach)))


def read_draw(values: Sequence[float]) -> Draw:
    """Return the draw of `write_draw`; raises `ValueError` for other numbers."""
    source, network, structure, *sds, count = values[:8]
    end = 8 + int(count)
    time, reach = np.reshape(values[end:], (2, -1))
    return Draw(source=(str(source),), network=str(network), structure=str(structure), time=time,
                reach=reach, policies=np.array(values[8:end]), **dict(zip(_SDS, sds, strict=True)))


def take_root(covariance: np.ndarray) -> np.ndarray:
    """Return the symmetric root of a covariance, which is unique."""
    values, vectors = np.linalg.eigh(covariance)
    root: np.ndarray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def probability_faster(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """Return the probability that `after` really takes less time than `before`.

    Parameters
    ----------
    before, after
        Of the two predictions.

    Returns
    -------
    float
        0 to 1.

    Notes
    -----
    Prices of the same source are drawn once for both, so what is common cancels; so does the
    structure error of the same network. The error of a row cancels for the same network on the
    same prices as far as its time by price stays the same: sd x moved time / longer time, moved
    time the sum of |after - before| over prices and what has none. It does not cancel otherwise.
    Prices of different sources are taken as independent, which is the cautious side within a
    family. Where counts differ, as of another cache, moved time is known no better than the loops
    of the library, `counts_sd`; each replacement policy both may have is as likely.
    """
    sd = math.sqrt(_variance(before_us, after_us, before, after))
    logs = math.log(after_us / before_us) + np.log(_compare_policies(before, after))
    return float(np.mean([probability_less(one, sd) for one in logs.tolist()]))


def _variance(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """Return the variance of the logarithm of the ratio of two times."""
    shared = before.source == after.source
    alike = shared and before.network == after.network
    parts = (after.reach - before.reach,) if shared else (before.reach, after.reach)
    variance = sum(float(part @ part) for part in parts)
    if not alike:
        variance += sum((one.network_sd + one.unlearned_sd)**2 for one in (before, after))
    moved_share = _moved_share(before_us, after_us, before, after) if alike else 1.0
    counts_sd = differ(before, after) if alike else 0.0
    return variance + moved_share**2 * (before.row_sd**2 + after.row_sd**2 + counts_sd**2)


def differ(before: Draw, after: Draw) -> float:
    """Return how well counts of a network that differ are known; 0 where none do."""
    return max(before.counts_sd, after.counts_sd) * (
        before.network == after.network and before.structure != after.structure)


def _moved_share(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """How much of the longer time is not the same time under the same price, at most 1."""
    priced = np.abs(after_us * after.time - before_us * before.time).sum()
    unpriced = abs(after_us * (1 - after.time.sum()) - before_us * (1 - before.time.sum()))
    return min(1.0, float(priced + unpriced) / max(before_us, after_us))
