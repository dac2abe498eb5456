"""Scores of predicted distributions, the twin's beside baselines', on the same rows.

A prediction's logarithm is normal about its point, each side with its own standard deviation: at
the ends of the 90 % interval. With y the measured logarithm, l and u those ends, F the
distribution and f its density:

    interval score = (u - l) + (2 / 0.1) (max(l - y, 0) + max(y - u, 0))
    CRPS = integral of (F(x) - [x >= y])^2 dx        log score = -log f(y)

Less is better. A difference is believed where 0 lies outside the 90 % of it that resampling whole
networks on a board leaves.

References
----------
Gneiting and Raftery, Strictly proper scoring rules, prediction, and estimation, JASA 102 (2007),
sections 4.2 and 6.2; Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from benchmarks.accuracy.calibrated import Guess
from benchmarks.accuracy.specifications import REACH
from hwmodels.frozen import frozen
from hwmodels.quantities import list_by_key

NAMES = ("interval score", "CRPS", "log score")
DRAWS = 1000
_LEVELS = (np.arange(200) + 0.5) / 200
_QUANTILES = np.array([NormalDist().inv_cdf(level) for level in _LEVELS])


@frozen
class Duel:
    """The twin against a baseline on the rows both predict.

    Parameters
    ----------
    rows : int
        How many.
    errors_pct : tuple of (float, float)
        Median and 90th percentile of |predicted / measured - 1|, the twin's and the baseline's.
    scores : tuple of tuple of float
        Means of `NAMES`, the twin's and the baseline's.
    differences : tuple of (float, float)
        By score: the twin's less the baseline's, the middle 90 % of resampled means.
    """

    rows: int
    errors_pct: tuple[tuple[float, float], ...]
    scores: tuple[tuple[float, ...], tuple[float, ...]]
    differences: tuple[tuple[float, float], ...]

    @property
    def lost(self) -> bool:
        """Whether the baseline is better by any score, beyond chance."""
        return any(low > 0 for low, _ in self.differences)


def score(errors: np.ndarray, downs: np.ndarray, ups: np.ndarray) -> np.ndarray:
    """Return interval score, CRPS and log score of each row, shape (3, rows).

    Parameters
    ----------
    errors : ndarray of float, (rows,)
        log(measured / predicted).
    downs, ups : ndarray of float, (rows,)
        How far the 90 % interval reaches either way, of logarithms; positive.
    """
    misses = np.maximum(-downs - errors, 0) + np.maximum(errors - ups, 0)
    ends = np.where(_QUANTILES[:, None] < 0, downs, ups) * _QUANTILES[:, None] / REACH
    gaps = errors - ends
    pinball = np.maximum(_LEVELS[:, None] * gaps, (_LEVELS[:, None] - 1) * gaps).mean(axis=0)
    sds = np.where(errors < 0, downs, ups) / REACH
    density = 0.5 * (errors / sds)**2 + np.log(sds) + 0.5 * np.log(2 * np.pi)
    return np.array([downs + ups + 20 * misses, 2 * pinball, density])


def duel(guesses: Sequence[Guess], baseline: str) -> Duel | None:
    """Set the twin beside a baseline on the rows both predict; None without any."""
    both = [one for one in guesses if np.isfinite([one.baselines[baseline],
                                                   one.spreads[baseline]]).all()]
    if not both:
        return None
    twin = np.array([(one.time_error, one.time_band.down * one.time_sd,
                      one.time_band.up * one.time_sd) for one in both]).T
    rival = np.array([(one.baselines[baseline], REACH * one.spreads[baseline],
                       REACH * one.spreads[baseline]) for one in both]).T
    ours, theirs = score(*twin), score(*rival)
    clusters = list_by_key(((one.observation.cell.board, one.observation.network), row)
                           for row, one in enumerate(both))
    sums = np.array([(ours - theirs)[:, rows].sum(axis=1) for rows in clusters.values()])
    sizes = np.array([len(rows) for rows in clusters.values()])
    drawn = np.random.default_rng(0).integers(0, len(sizes), (DRAWS, len(sizes)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)[:, None]
    lows, highs = np.quantile(means, (0.05, 0.95), axis=0).tolist()
    errors = 100 * np.abs(np.expm1(-np.array([twin[0], rival[0]])))
    return Duel(rows=len(both), errors_pct=tuple(
        (ours_pct, theirs_pct) for ours_pct, theirs_pct in np.percentile(
            errors, (50, 90), axis=1).tolist()), differences=tuple(zip(lows, highs, strict=True)),
                scores=(tuple(ours.mean(axis=1).tolist()), tuple(theirs.mean(axis=1).tolist())))
