"""Does a calibration still hold: new totals against its intervals, and a change within a series.

    z = log(measured / predicted) / standard deviation stated

One total far outside its interval, or a series whose level moves, says that prices learnt before no
longer are those of the board.

References
----------
Page, "Continuous inspection schemes", 1954 (CUSUM); Hinkley, "Inference about the change-point from
cumulative sum tests", 1971.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from calibration.errors import FitError
from calibration.measurement.quality import Finding
from hwmodels.frozen import frozen
from hwmodels.quantities import Ends

Values = Sequence[float] | np.ndarray

LEVEL_Z = 1.6448536269514722
"""Half width of a 90 % interval in standard deviations."""
STALE_Z = 3.0
"""So many standard deviations outside: once in 370 predictions that hold."""
FALSE_ALARM = 1e-3
"""Chance of seeing a change in a series that has none."""
LEAST_SHIFT = 0.002
"""A smaller change of level, relative, is not worth a word."""
_SHUFFLES = 4000
_SHORTEST = 3


@frozen
class Change:
    """A series whose level moved.

    Parameters
    ----------
    position
        First value after the change.
    shift
        Of the logarithm: 0.02 is 2 %.
    probability
        Of a change as clear in a series without one.
    """

    position: int
    shift: float
    probability: float


def find_change(residuals: Values) -> Change | None:
    """Find where the level of a series of residuals moved.

    Parameters
    ----------
    residuals : array of shape (n,)
        log(measured / predicted), in the order measured.

    Returns
    -------
    Change or None
        None when the series is short, or its largest cumulative deviation is one that a shuffled
        series reaches with a chance above `FALSE_ALARM`.

    Notes
    -----
    S_k = sum of the first k deviations from the mean; its range over k, against the ranges of
    shuffled series (4,000, seeded), gives the probability: no distribution is assumed. The change
    is after the k with the largest |S_k|; the shift is the difference of medians on both sides.
    """
    data = np.asarray(residuals, dtype=np.float64)
    if not np.isfinite(data).all():
        raise FitError("residuals must be finite")
    count = len(data)
    if count < 4 * _SHORTEST or np.ptp(data) == 0:
        return None
    centred = data - data.mean()
    sums = np.cumsum(centred)
    reach = float(np.ptp(sums))
    shuffled = np.random.default_rng(0).permuted(np.tile(centred, (_SHUFFLES, 1)), axis=1)
    reached = np.ptp(np.cumsum(shuffled, axis=1), axis=1)
    probability = (1 + int((reached >= reach * (1 - 1e-12)).sum())) / (1 + _SHUFFLES)
    place = int(np.argmax(np.abs(sums[_SHORTEST - 1:count - _SHORTEST]))) + _SHORTEST
    shift = float(np.median(data[place:]) - np.median(data[:place]))
    if probability > FALSE_ALARM or abs(shift) < LEAST_SHIFT:
        return None
    return Change(position=place, shift=shift, probability=probability)


def judge_interval(calibration: str, interval: Ends, measured: float, *,
                   unit: str = "") -> Finding | None:
    """Say when a measured total is too far outside the interval of a calibrated prediction.

    Parameters
    ----------
    calibration
        Which learnt prices, for people.
    interval
        Predicted, of 0.9, the level overlays state; in the unit of `measured`.
    unit
        Of `measured`, for people.

    Returns
    -------
    Finding or None
        None within `STALE_Z` standard deviations of the interval's middle, in logarithms, side by
        side: intervals are asymmetric.
    """
    low, high = interval
    if not 0 < low < high or not measured > 0:
        raise FitError(f"interval {low} to {high}, measured {measured}: accepted: above 0")
    middle = math.sqrt(low * high)
    half = math.log(high / low) / 2
    z = math.log(measured / middle) / (half / LEVEL_Z)
    if abs(z) < STALE_Z:
        return None
    return Finding(
        name="stale", serious=True,
        evidence=f"{calibration} gives {low:.6g} to {high:.6g}{unit and ' '}{unit}, measured is "
                 f"{measured:.6g}{unit and ' '}{unit}: {z:+.1f} standard deviations",
        remedy="The overlay does not hold for this set-up any more, or the set-up is another one "
               "(twin diagnose): learn it again from new measurements (twin calibrate)")
