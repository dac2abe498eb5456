"""Intervals that hold: quantiles of past errors, and Student t where past errors are few.

Errors are of logarithms, so an interval is a factor either way and asymmetric in time. Each past
error is divided by the standard deviation its own prediction stated, so that the quantile of a
harder network is not asked of an easier one (normalised conformal prediction).

References
----------
Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, Distribution-free predictive inference for
regression, JASA 113 (2018), section 2 and 5.2; Barber, Candes, Ramdas and Tibshirani, Predictive
inference with the jackknife+, Annals of Statistics 49 (2021), section 1.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from calibration.errors import FitError
from hwmodels.errors import extra_missing

LEVEL = 0.9
"""Nominal probability that a measurement lies inside an interval."""

CONFORMAL_ROWS = 9
"""Fewest errors whose largest bounds 90 % of further ones: ceil(0.9 (n + 1)) <= n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds a quantity lies within at a level, in the quantity's unit."""

    low: float
    high: float
    level: float

    def __post_init__(self) -> None:
        """Refuse ends in the wrong order and a level outside 0 to 1."""
        if not (self.low <= self.high and 0 < self.level < 1):
            raise FitError(f"interval {self.low} to {self.high} at level {self.level}")

    def holds(self, value: float) -> bool:
        """Whether a value lies inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """How many stated standard deviations an interval reaches, down and up.

    Parameters
    ----------
    down, up : float
        Multiples of the stated standard deviation of the logarithm.
    level : float
        Nominal coverage.
    basis : str
        "conformal" (quantiles of past errors), or "model-based" (Student t between boards).
    count : int
        Past errors, or boards, it rests on.
    """

    down: float
    up: float
    level: float
    basis: str
    count: int


def conformal_quantile(scores: np.ndarray, level: float) -> float:
    """Return what the next score stays below with at least this probability.

    Parameters
    ----------
    scores : numpy.ndarray
        Shape (n,): exchangeable past scores.
    level : float
        Probability.

    Returns
    -------
    float
        The ceil((n + 1) level)-th smallest; infinite when n is too small to promise any.

    Notes
    -----
    Holds whatever the scores' distribution, as long as the next one could have been any of them.
    """
    scores = np.sort(np.asarray(scores, dtype=np.float64))
    # without the tolerance, (19 + 1) x 0.95 is 19.000000000000004 in floating point
    rank = math.ceil((len(scores) + 1) * level - 1e-9)
    return float(scores[rank - 1]) if rank <= len(scores) else math.inf


def make_band(errors: np.ndarray, level: float = LEVEL) -> Band | None:
    """Return a band from errors of past predictions over their stated standard deviations.

    Parameters
    ----------
    errors : numpy.ndarray
        Shape (n,): log(measured / predicted) / stated sd, each predicted without its own network.
    level : float
        Nominal coverage.

    Returns
    -------
    Band or None
        Each side by its own errors when there are enough for either tail; the same on both sides
        when there are only enough together; None with fewer.
    """
    errors = np.asarray(errors, dtype=np.float64)
    tail = (1 + level) / 2
    down, up = conformal_quantile(-errors, tail), conformal_quantile(errors, tail)
    if not math.isfinite(down) or not math.isfinite(up):
        down = up = conformal_quantile(np.abs(errors), level)
    if not math.isfinite(down):
        return None
    # a side no past error went to still has the width of a rounding
    return Band(down=max(down, 0.1), up=max(up, 0.1), level=level, basis="conformal",
                count=len(errors))


def student_band(boards: int, level: float = LEVEL, scale: float = 1.0) -> Band:
    """Return the band for a board that was not measured: Student t with boards - 1 degrees.

    Parameters
    ----------
    boards : int
        Boards the spread between boards was learnt from; below three, the normal prior alone
        cannot say more and one degree is used.
    level : float
        Nominal coverage.
    scale : float
        Error of boards left out, in standard deviations stated of it.

    Raises
    ------
    ToolMissingError
        Without SciPy.
    """
    try:
        from scipy.stats import t
    except ImportError as error:
        raise extra_missing("intervals", "SciPy", "fit") from error
    reach = scale * float(t.ppf((1 + level) / 2, max(boards - 1, 1)))
    return Band(down=reach, up=reach, level=level, basis="model-based", count=boards)


def widest(band: Band, *others: Band) -> Band:
    """Return a band that reaches as far as any of them, on either side; the first says why."""
    return replace(band, down=max(one.down for one in (band, *others)),
                   up=max(one.up for one in (band, *others)))


def bound(value: float, sd: float, band: Band) -> Interval:
    """Return the interval of a positive value whose logarithm has a standard deviation.

    Parameters
    ----------
    value : float
        Predicted.
    sd : float
        Of its logarithm.
    band : Band
        How far to go either way.
    """
    return Interval(low=value * math.exp(-band.down * sd), high=value * math.exp(band.up * sd),
                    level=band.level)


def probability_less(log_difference: float, sd: float) -> float:
    """Return the probability that a log difference is really below zero, normal errors."""
    if sd <= 0:
        return 0.5 if log_difference == 0 else float(log_difference < 0)
    return 0.5 * math.erfc(log_difference / (sd * math.sqrt(2.0)))
