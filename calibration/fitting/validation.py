"""Errors on rows a fit has not seen: networks, families, boards left out one after another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.errors import FitError
from calibration.fitting.prices import Fit

FEWEST_BOARDS = 4
LEAST_SCALE = 1.0
"""A board nobody measured is never surer than was stated: below, an interval would rest on luck."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut:
    """Predictions of rows by fits that lack them.

    Parameters
    ----------
    log_errors : numpy.ndarray
        Shape (rows,): log(measured / predicted); NaN where nothing was left to fit to.
    sds : numpy.ndarray
        Shape (rows,): stated standard deviation of that, errors of network and row included.
    keys : tuple
        What was left out together, per row.
    """

    log_errors: np.ndarray
    sds: np.ndarray
    keys: tuple[Hashable, ...]

    @property
    def scores(self) -> np.ndarray:
        """Errors over their stated standard deviation."""
        scores: np.ndarray = self.log_errors / self.sds
        return scores


def leave_out_closely(fit: Fit, keys: Sequence[Hashable]) -> HeldOut:
    """Predict every row without the rows of its key, from one fit to all of them.

    Parameters
    ----------
    fit : Fit
        To every row.
    keys : sequence
        One per row; rows of one key are left out together.

    Returns
    -------
    HeldOut
        As a fit to the other rows gives with prices linearised where the fit ended.

    Notes
    -----
    With P = S^-1 and g the rows of a key, the errors left out are P_gg^-1 (P r)_g and their
    covariance is P_gg^-1: the rest of the rows, conditioned on in closed form. Ignores that shares
    and doubts would move a little.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, section 5.4.2.
    """
    if len(keys) != len(fit.evidence):
        raise FitError(f"{len(keys)} keys for {len(fit.evidence)} rows")
    errors, sds = np.full(len(keys), np.nan), np.full(len(keys), np.nan)
    groups: dict[Hashable, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    for rows in groups.values():
        if len(rows) < len(keys):
            covariance = np.linalg.inv(fit.precision[np.ix_(rows, rows)])
            errors[rows] = covariance @ fit.pull[rows]
            sds[rows] = np.sqrt(np.diag(covariance))
    return HeldOut(log_errors=errors, sds=sds, keys=tuple(keys))


def stranger_scale(fit: Fit, keys: Sequence[Hashable] | None = None) -> float:
    """Return how large errors on boards left out are, in standard deviations stated of them.

    Parameters
    ----------
    fit : Fit
        To rows of several boards.
    keys : sequence, optional
        What is left out instead, one per row: libraries.

    Returns
    -------
    float
        Root of the mean over boards of their mean squared scores; 1 with fewer than
        `FEWEST_BOARDS`, which say nothing of a spread, and at least `LEAST_SCALE`.
    """
    if keys is None:
        keys = [cell.board for cell in fit.evidence.cells]
    if len(set(keys)) < FEWEST_BOARDS:
        return 1.0
    scores = leave_out_closely(fit, keys).scores
    squares = [np.mean(scores[[row for row, other in enumerate(keys) if other == key]] ** 2)
               for key in dict.fromkeys(keys)]
    return max(float(np.sqrt(np.mean(squares))), LEAST_SCALE)


def total_error(fit: Fit) -> float:
    """Variance of a new network's row that no price explains."""
    return fit.noise.network_sd**2 + fit.noise.row_sd**2
