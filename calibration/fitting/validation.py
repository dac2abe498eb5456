"""Errors on rows a fit has not seen: networks, families, held-out boards one after another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from calibration.errors import FitError
from calibration.fitting.cell import Cell
from calibration.fitting.prices import Fit
from hwmodels.frozen import entity
from hwmodels.quantities import list_by_key

FEWEST = 3
"""Boards, cores, libraries or cells to leave out in turn, before their errors scale an interval."""

LEAST_SCALE = 0.5
"""What was not measured is never much surer than was stated: that would rest on luck."""


@entity
class HeldOut:
    """Predictions of rows by fits that lack them.

    Parameters
    ----------
    log_errors
        Shape (rows,): log(measured / predicted); NaN where nothing was left to fit to.
    sds
        Shape (rows,): stated standard deviation of that, errors of network and row included.
    keys
        What was held out together, per row.
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
    keys
        One per row; rows of one key are held out together.

    Returns
    -------
    HeldOut
        As a fit to the other rows gives with prices linearised where the fit ended.

    Notes
    -----
    With P = S^-1 and g the rows of a key, the errors held out are P_gg^-1 (P r)_g and their
    covariance is P_gg^-1: the rest of the rows, conditioned on in closed form. That a row, or all
    rows of a network, disagree is not known of those held out: their own errors are as stated.
    Ignores that shares and doubts of the rest would move a little. What rows are beyond the rest
    is added to their deviations.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, section 5.4.2.
    """
    if len(keys) != len(fit.evidence):
        raise FitError(f"{len(keys)} keys for {len(fit.evidence)} rows")
    errors, sds = np.full(len(keys), np.nan), np.full(len(keys), np.nan)
    groups = fit.evidence.groups
    pairs = tuple(zip(keys, groups, strict=True))
    known = fit.doubted(np.array([pairs.count(one) == groups.count(one[1]) for one in pairs]))
    for rows in list_by_key((key, row) for row, key in enumerate(keys)).values():
        if len(rows) < len(keys):
            covariance = np.linalg.inv(fit.precision[np.ix_(rows, rows)])
            errors[rows] = covariance @ fit.pull[rows]
            sds[rows] = np.sqrt(np.diag(covariance) - known[rows]) + fit.evidence.beyond(rows)
    return HeldOut(log_errors=errors, sds=sds, keys=tuple(keys))


def level_keys(fit: Fit, cell: Cell) -> list[tuple[Hashable, ...]]:
    """Return what to leave out of a fit to be as ignorant of the rest as of a cell it lacks.

    Parameters
    ----------
    fit
        To rows of other cells.

    Returns
    -------
    list of tuple
        Each with a key per row: core or else board, and release, those that no row shares with
        `cell`; its library alone where no row shares it, its cell where rows share all of these.
        Fewer than `FEWEST` keys say nothing of a spread, and are none.
    """
    cells = fit.evidence.cells

    def unknown(*levels: Callable[[Cell], Hashable]) -> list[tuple[Hashable, ...]]:
        """Return keys of the first level of a cell that is no row's."""
        keys = [tuple(map(level, cells)) for level in levels]
        return [found for level, found in zip(levels, keys, strict=True)
                if level(cell) not in found][:1]

    keys = unknown(lambda one: one.library) or [
        *unknown(lambda one: one.core, lambda one: one.board),
        *unknown(lambda one: (one.library, one.release))] or [cells]
    return [one for one in keys if len(set(one)) >= FEWEST]


def scale_of(scores: np.ndarray, keys: Sequence[Hashable]) -> tuple[float, float]:
    """Return how large errors held out are beside what was stated, and what that rests on.

    Parameters
    ----------
    scores
        Shape (rows,): errors over their stated standard deviation.
    keys
        What was held out together.

    Returns
    -------
    tuple of float
        Root of the mean over keys of their mean squared scores, at least `LEAST_SCALE`; and how
        many independent rows it is worth, of the squares.
    """
    squares = scores**2
    means = [np.mean(group) for group in list_by_key(zip(keys, squares, strict=True)).values()]
    return max(float(np.sqrt(np.mean(means))), LEAST_SCALE), effective_count(keys, squares)


def effective_count(clusters: Sequence[Hashable], values: np.ndarray) -> float:
    """Return how many independent rows clustered values are worth.

    Parameters
    ----------
    values
        Shape (rows,): whether each row was covered, or how far off it was.

    Returns
    -------
    float
        n / (1 + (m - 1) rho) with m the mean cluster size and rho the intracluster correlation
        (analysis of variance estimator), at least the number of clusters and at most n.
    """
    groups = [np.array(one, dtype=np.float64) for one in list_by_key(
        zip(clusters, values, strict=True)).values()]
    rows, count = len(values), len(groups)
    if count < 2 or rows == count:
        return float(max(count, 1) if count < 2 else rows)
    sizes, mean = np.array([len(group) for group in groups]), np.mean(values)
    between = sizes @ np.array([(group.mean() - mean)**2 for group in groups]) / (count - 1)
    within = sum(len(group) * group.var() for group in groups) / (rows - count)
    size = (rows - sizes @ sizes / rows) / (count - 1)
    spread = between + (size - 1) * within
    rho = max(0.0, (between - within) / spread) if spread > 0 else 1.0
    return float(min(rows, max(count, rows / (1 + (size - 1) * rho))))


def total_error(fit: Fit, concentration: np.ndarray | float = 1.0) -> np.ndarray:
    """Variance of a new network's row that no price explains, by how concentrated its time is."""
    return np.asarray((fit.noise.network_sd * concentration)**2 + fit.noise.row_sd**2)
