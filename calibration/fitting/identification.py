"""What data can tell: rank, conditioning, parameters used, and prices that keep their prior."""

from __future__ import annotations

import numpy as np

from calibration.fitting.cell import Cell, Estimate
from calibration.fitting.prices import Fit
from hwmodels.frozen import frozen

IDENTIFIED = 0.5
"""A direction counts as identified when data halve its variance."""

CONFUSED = -0.7
"""Correlation below which two prices are traded for one another."""


@frozen
class Identification:
    """What the data say about the prices of a cell.

    Parameters
    ----------
    rows
        Measured in this cell itself.
    effective_parameters
        Sum of the leverages of its rows: how many numbers its own data are spent on.
    rank
        Directions of its prices whose variance the data, its family's included, halve.
    condition
        Largest over smallest singular value of its rows' shares, scaled by prior and error; 0
        without rows.
    unidentified
        Prices that are not identifiable: they keep their prior, moved only by what is
        common to all.
    confused : tuple of (str, str)
        Pairs of which mainly the sum is known.
    """

    rows: int
    effective_parameters: float
    rank: int
    condition: float
    unidentified: tuple[str, ...]
    confused: tuple[tuple[str, str], ...]


def identify(fit: Fit, cell: Cell) -> Identification:
    """Return what a fit can tell about the prices of a cell.

    Parameters
    ----------
    fit
        From `fit_prices`.

    Notes
    -----
    A price is judged by its contrast with the mean of all, each weighing as much as is stated of
    it, since a common factor is nearly always known: its prior and posterior variance, and the
    correlation of two contrasts given the data.
    """
    own = [row for row, other in enumerate(fit.evidence.cells) if other == cell]
    estimate = fit.estimate(cell)
    before, after = _contrasts(estimate)
    kept = np.diag(after) / np.diag(before)
    return Identification(
        rows=len(own), effective_parameters=float(fit.leverage[own].sum()),
        rank=_rank(estimate), condition=_condition(fit, estimate, own),
        unidentified=tuple(name for name, share in zip(fit.prior.names, kept, strict=True)
                           if share > IDENTIFIED), confused=_confused(fit.prior.names, after, kept))


def _contrasts(estimate: Estimate) -> tuple[np.ndarray, np.ndarray]:
    count = len(estimate.names)
    weights = 1 / np.diag(estimate.prior_covariance)
    contrast = np.eye(count) - weights / weights.sum() if count > 1 else np.eye(1)
    return (contrast @ estimate.prior_covariance @ contrast.T,
            contrast @ estimate.covariance @ contrast.T)


def _rank(estimate: Estimate) -> int:
    root = np.linalg.inv(np.linalg.cholesky(estimate.prior_covariance))
    left = np.linalg.eigvalsh(root @ estimate.covariance @ root.T)
    return int((left < IDENTIFIED).sum())


def _condition(fit: Fit, estimate: Estimate, rows: list[int]) -> float:
    if not rows:
        return 0.0
    root = np.linalg.cholesky(estimate.prior_covariance)
    error = np.hypot(fit.noise.row_sd, fit.noise.network_sd)
    values = np.linalg.svd(fit.shares[rows] @ root / error, compute_uv=False)
    return float(values[0] / max(values[-1], 1e-12))


def _confused(names: tuple[str, ...], covariance: np.ndarray, kept: np.ndarray,
              ) -> tuple[tuple[str, str], ...]:
    sd = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sd, sd)
    return tuple((names[i], names[j]) for i in range(len(names)) for j in range(i)
                 if correlation[i, j] < CONFUSED and min(kept[i], kept[j]) <= IDENTIFIED)
