"""How sure a prediction is: intervals of time and energy, and what stands behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from calibration.fitting.intervals import Basis, Interval, probability_less


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCertainty:
    """Intervals of one layer, in microseconds and microjoules; None is not known."""

    time_us: Interval | None
    energy_uj: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a total is uncertain by, so that two totals can share it.

    Parameters
    ----------
    source : tuple of str
        Which learnt prices; only draws of the same source are shared.
    covariance : numpy.ndarray
        Shape (prices, prices): of the logarithms.
    time : numpy.ndarray
        Shape (prices,): by how much log time follows each log price.
    row_sd : float
        Error of a single row: not shared.
    network_sd : float
        Error of a network's structure: shared by the same network.
    untold_sd : float
        Added for operators nobody measured: shared by the same network.
    network : str
        Architecture id of the network.
    """

    source: tuple[str, ...]
    covariance: np.ndarray = field(repr=False)
    time: np.ndarray = field(repr=False)
    row_sd: float
    network_sd: float
    network: str
    untold_sd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty:
    """What stands behind a calibrated prediction.

    Parameters
    ----------
    calibration : str
        Which learnt prices were used, for people.
    time_us, energy_uj : Interval or None
        Of one inference.
    layers : tuple of LayerCertainty
        In execution order.
    basis : Basis
        What intervals rest on: a key of `calibration.fitting.intervals.BASES`.
    errors : int
        Past errors they rest on.
    extrapolating : tuple of str
        Why the data do not support the prediction; empty when they do.
    unidentified : tuple of str
        Prices the data could not tell, that matter here.
    draw : Draw
        For differences between predictions.
    doubtful : tuple of str
        Prices fitted as one with others, or that stand for what none counts: no findings.
    epochs : tuple of Interval
        Of an accelerator's epochs, in microseconds, in order.
    powers : str
        What the energy rests on where no measured energy stands behind it.
    """

    calibration: str
    time_us: Interval
    energy_uj: Interval | None
    layers: tuple[LayerCertainty, ...]
    basis: Basis
    errors: int
    extrapolating: tuple[str, ...]
    unidentified: tuple[str, ...]
    draw: Draw = field(repr=False)
    doubtful: tuple[str, ...] = ()
    epochs: tuple[Interval, ...] = ()
    powers: str = ""


def ratio_interval(before_us: float, after_us: float, before: Draw, after: Draw,
                   level: float = 0.9) -> Interval:
    """Return the interval of the ratio of two times, after over before, that share their draws.

    Parameters
    ----------
    before_us, after_us : float
        Predicted times.
    before, after : Draw
        Of the two predictions.
    level : float
        Of the interval.

    Notes
    -----
    Normal in the logarithm, with the variance of `probability_faster`.
    """
    from statistics import NormalDist

    reach = NormalDist().inv_cdf(0.5 + level / 2)
    spread = math.exp(reach * math.sqrt(_variance(before_us, after_us, before, after)))
    ratio = after_us / before_us
    return Interval(low=ratio / spread, high=ratio * spread, level=level)


def probability_faster(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """Return the probability that `after` really takes less time than `before`.

    Parameters
    ----------
    before_us, after_us : float
        Predicted times.
    before, after : Draw
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
    Prices of different sources are taken as independent, which is the cautious side for cousins.
    """
    variance = _variance(before_us, after_us, before, after)
    if not variance:
        return 0.5 if before_us == after_us else float(after_us < before_us)
    return probability_less(math.log(after_us / before_us), math.sqrt(variance))


def _variance(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """Return the variance of the logarithm of the ratio of two times."""
    shared = before.source == after.source
    alike = shared and before.network == after.network
    if shared:
        moved = after.time - before.time
        variance = float(moved @ before.covariance @ moved)
    else:
        variance = float(before.time @ before.covariance @ before.time
                         + after.time @ after.covariance @ after.time)
    if not alike:
        variance += sum((one.network_sd + one.untold_sd)**2 for one in (before, after))
    moved_share = _moved_share(before_us, after_us, before, after) if alike else 1.0
    return variance + moved_share**2 * (before.row_sd**2 + after.row_sd**2)


def _moved_share(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """How much of the longer time is not the same time under the same price, at most 1."""
    priced = np.abs(after_us * after.time - before_us * before.time).sum()
    unpriced = abs(after_us * (1 - after.time.sum()) - before_us * (1 - before.time.sum()))
    return min(1.0, float(priced + unpriced) / max(before_us, after_us))
