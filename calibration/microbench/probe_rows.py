"""What a micro-benchmark shows of prices: a linear-Gaussian row, before it is measured and after.

A price of a board under a library is what the hardware does times what the library makes of it.
A micro-benchmark sees the hardware. With P the prior covariance of log prices, B the part of it
that cores and boards bring (`fit_prior`), C the covariance now, and h the row's shares:

    hardware u = part of the log prices x     Cov(x, u) = C P^-1 B
    Var(u)   = B - B P^-1 (P - C) P^-1 B      what is known of x is shared out by size
    y = h' u + error                          Cov(x, y) = reach Cov(x, u) h

No row of data touches the parts of a board nobody measured: there Cov(x, u) = Var(u) = B of those
levels, exactly. `reach`, at most 1, is how much of the price the probe saw: one memory of several,
say. Measuring y moves x by the usual update; the covariance shrinks whatever y turns out to be, so
it is known before.

References
----------
Rasmussen and Williams, Gaussian Processes for Machine Learning, appendix A.2 (conditioning).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from calibration.errors import FitError
from calibration.fitting.prior import Prior
from hwmodels.frozen import entity

HARDWARE = ("core", "board")
"""Levels of the prior that are the machine's, not the library's."""


@entity
class ProbeRow:
    """A micro-benchmark as a row over log prices.

    Parameters
    ----------
    shares
        Shape (prices,), summing to 1: what it is made of.
    reach
        0 to 1: how much of these prices it stands for.
    noise_sd
        Standard deviation of what else it is: how unlike it networks use the hardware.
    log_ratio
        Log of measured over stated; NaN before it is measured.
    whole
        It sees the price itself, whatever library asks: waiting on a memory. Else the hardware's
        part only.
    """

    name: str
    shares: np.ndarray
    reach: float
    noise_sd: float
    log_ratio: float = math.nan
    whole: bool = False

    def __post_init__(self) -> None:
        """Refuse a reach outside 0 to 1 and a noise that is not above 0."""
        if not (0 <= self.reach <= 1 and self.noise_sd > 0):
            raise FitError(f"{self.name}: reach {self.reach}, noise {self.noise_sd}; accepted: 0 "
                           "to 1, above 0")


@entity
class Believed:
    """Log prices with their covariance."""

    log: np.ndarray
    covariance: np.ndarray

    def sd(self, shares: np.ndarray) -> float:
        """Return the standard deviation of the log of a total with these shares of price."""
        return math.sqrt(max(float(shares @ self.covariance @ shares), 0.0))


@entity
class Belief:
    """What stands behind prices, so that rows can be set beside them.

    Parameters
    ----------
    prior
        What they started from: says what is the hardware's.
    untouched
        Levels of `HARDWARE` that no measured row shared; empty on a measured board.
    counted
        Instructions were counted: all that is left open is of the core and its memories.
    """

    now: Believed
    prior: Prior
    untouched: tuple[str, ...] = ()
    counted: bool = False

    def seen(self, row: ProbeRow) -> tuple[np.ndarray, np.ndarray]:
        """Cov(x, z) and Var(z) of what z a row sees: the prices, or the hardware's part of them."""
        if row.whole or self.counted:
            return self.now.covariance, self.now.covariance
        hardware = _sum_parts(self.prior, self.untouched or HARDWARE)
        if self.untouched:
            return hardware, hardware
        share, learnt = self._share(), self.prior.covariance - self.now.covariance
        return self.now.covariance @ share.T, hardware - share @ learnt @ share.T

    def expected(self, row: ProbeRow) -> float:
        """Mean of a row before it is measured."""
        off = self.now.log - self.prior.mean
        if not row.whole:
            off = np.zeros_like(off) if self.untouched else self._share() @ off
        return row.reach * float(row.shares @ off)

    def surprise(self, row: ProbeRow) -> float:
        """How many standard deviations a measured row is from what was expected of it."""
        variance = float(row.shares @ self.seen(row)[1] @ row.shares) + row.noise_sd**2
        return (row.log_ratio - self.expected(row)) / math.sqrt(variance)

    def _share(self) -> np.ndarray:
        """B P^-1."""
        return np.linalg.solve(self.prior.covariance, _sum_parts(self.prior, HARDWARE)).T


def _sum_parts(prior: Prior, levels: Sequence[str]) -> np.ndarray:
    parts = [part.covariance for part in prior.parts if part.level in levels]
    return np.sum(parts, axis=0) if parts else prior.covariance


def expect(belief: Belief, rows: Sequence[ProbeRow]) -> Believed:
    """Return what will be believed once micro-benchmarks are run, prices not moved."""
    gain, cross = _update(belief, rows)
    after = belief.now.covariance - gain @ cross.T
    return Believed(log=belief.now.log, covariance=(after + after.T) / 2)


def learn_rows(belief: Belief, rows: Sequence[ProbeRow]) -> Believed:
    """Return what is believed once micro-benchmarks are measured.

    Parameters
    ----------
    belief
        Before.

    Raises
    ------
    FitError
        When a row is not measured.
    """
    for row in rows:
        if not math.isfinite(row.log_ratio):
            raise FitError(f"{row.name}: is not measured")
    gain, _ = _update(belief, rows)
    misses = np.array([row.log_ratio - belief.expected(row) for row in rows])
    return Believed(log=belief.now.log + gain @ misses, covariance=expect(belief, rows).covariance)


def _update(belief: Belief, rows: Sequence[ProbeRow]) -> tuple[np.ndarray, np.ndarray]:
    """Gain and Cov(x, y) of rows."""
    cross = np.zeros((len(belief.now.log), len(rows)))
    common = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        with_prices, own = belief.seen(row)
        cross[:, i] = row.reach * with_prices @ row.shares
        for j, other in enumerate(rows):
            # two rows that see different things have prices in common
            shared = own if row.whole == other.whole else (
                with_prices.T if other.whole else belief.seen(other)[0])
            common[i, j] = row.reach * other.reach * float(row.shares @ shared @ other.shares)
        common[i, i] = float(row.shares @ own @ row.shares) + row.noise_sd**2
    return np.linalg.solve(common, cross.T).T, cross
