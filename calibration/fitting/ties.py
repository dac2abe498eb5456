"""Prices that rows cannot tell apart are fitted as one: a price is freed when the rows ask for it.

Two prices always met in the same proportion are known as a sum only: how a fit shares it out rests
on rounding, on a miscounted layer, on the prior's width. So all prices start as one factor on what
was believed before, and that price is freed first which makes the rows most probable; the last
freed is the last to make them `ODDS` times as probable. Probabilities are those with prices
integrated out, so a price pays for its freedom by the width of its prior.

References
----------
MacKay, Information Theory, Inference, and Learning Algorithms, chapter 28 (Occam factors).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from calibration.errors import FitError
from calibration.fitting.cell import Cell, Estimate
from calibration.fitting.prices import Evidence, Fit, Noise, fit_prices
from calibration.fitting.prior import Prior, bind
from hwmodels.frozen import entity

ODDS = 3.0
"""By how much more probable rows must become for a price to count as identified; assumed."""

LEAST_SHARE = 1e-3
"""Of no row's total a larger share: such a price is not identifiable."""


@entity
class Tied:
    """A fit of one cell with as few prices of their own as its rows ask for.

    Parameters
    ----------
    free
        Every price by itself: what uncertainties are of.
    fit
        As many as the rows tell: what prices are of.
    names
        Prices that share one factor on what was believed of them; empty where none do.
    """

    free: Fit
    fit: Fit
    names: tuple[str, ...]

    @property
    def level(self) -> float:
        """Logarithm of the free fit's total of all rows over that of the tied one."""
        return math.log(float(self.free.fitted.sum()) / float(self.fit.fitted.sum()))

    @property
    def residuals(self) -> np.ndarray:
        """log(measured / fitted) of each row, at the tied prices."""
        return np.asarray(self.fit.residuals - self.level)

    def estimate(self, cell: Cell) -> Estimate:
        """Return the tied prices of the cell, as uncertain as those of its own each.

        Notes
        -----
        Tying says how a sum is shared, not what it is: the tied prices are brought to the free
        fit's total of all rows by one factor. With d what tying moved, the covariance is that of
        the free fit + d d': the mean square about the tied prices. As totals agree, d hardly
        widens those; it widens each price by what nothing identifies.
        """
        free = self.free.estimate(cell)
        log = self.fit.estimate(cell).log + self.level
        moved = log - free.log
        return replace(free, log=log, covariance=free.covariance + np.outer(moved, moved))


def tie_prices(evidence: Evidence, prior: Prior, noise: Noise) -> Tied:
    """Fit the prices of one cell, those that rows cannot tell apart as one.

    Returns
    -------
    Tied
        With the free fit beside it.

    Raises
    ------
    FitError
        For rows of several cells, and as `fit_prices` does.
    """
    if len(set(evidence.cells)) > 1:
        raise FitError("prices are tied within one board and runtime; the rows are of several")
    free = fit_prices(evidence, prior, noise)
    shares = free.shares.max(axis=0)
    open_names = [name for name, share in zip(evidence.names, shares, strict=True)
                  if share >= LEAST_SHARE]
    tied = set(open_names)
    fit = fit_prices(evidence, bind(prior, tied), noise)
    while len(tied) > 1:
        freed, better = _free(evidence, prior, noise, [one for one in open_names if one in tied],
                              fit)
        if not freed:
            break
        tied -= freed
        fit = better
    names = tuple(name for name in open_names if name in tied) if len(tied) > 1 else ()
    return Tied(free=free, fit=fit if names else free, names=names)


def _free(evidence: Evidence, prior: Prior, noise: Noise, tied: Sequence[str],
          fit: Fit) -> tuple[set[str], Fit]:
    """Return the price, or the two, that rows ask for most, and the fit with them freed.

    Two at once, where none alone is asked for: one that is freed leaves the other with a factor
    that is a third one's.
    """
    for count in (1, 2):
        fits = {free: fit_prices(evidence, bind(prior, set(tied) - set(free)), noise, fit)
                for free in combinations(tied, count)}
        best = max(fits, key=lambda free: fits[free].log_evidence, default=())
        if best and fits[best].log_evidence >= fit.log_evidence + count * math.log(ODDS):
            return set(best), fits[best]
    return set(), fit
