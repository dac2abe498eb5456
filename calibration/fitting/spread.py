"""How far prices lie apart between libraries, cores, releases and boards: empirical Bayes.

The standard deviations of a `Spread` are those that make the measured rows most likely once prices
are integrated out, with a pull towards what is assumed of them: with few boards the data cannot
say everything.

    -log p = 1/2 r' S^-1 r + 1/2 log det S + 1/2 sum ((log sd - log assumed) / ASSUMED)^2

Rows enter linearised at the fitted prices, so fitting and learning alternate.

References
----------
Rasmussen and Williams, Gaussian Processes for Machine Learning, section 5.4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace

import numpy as np
from numpy import ndarray

from calibration.fitting.cell import Cell
from calibration.fitting.prices import Evidence, Fit, Noise, fit_prices
from calibration.fitting.prior import LEVELS, Prior, Spread, pool_prior, relate, share, state
from hwmodels.errors import need_extra

ROUNDS = 3
SMALLEST, LARGEST = 0.003, 1.0
"""Bounds of every standard deviation: below, prices would be one; above, unrelated."""

ASSUMED = 0.5
"""Standard deviation of the logarithm of what is assumed of a spread; chosen by leaving out."""

MOST_ROWS = 400
"""Rows spreads are learnt from: more tell prices apart, hardly how far these lie apart."""

EDGE_UNIT = 1000.0
"""What an edge is learnt in, so that the same bounds hold: 3 to 1,000 cycles."""

LABORATORIES = 0.024
"""Worst difference of two laboratories measuring one binary (calibration/datasets/README.md)."""

FEW_ROWS, MOST_PARAMETERS = 4, 3.0
"""As many rows of one board and runtime as a benchmark round gives, and what they may claim."""


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which matrices are worked on by one thread: they are small here.

    Several threads on a busy machine wait for each other a hundred times longer than they work.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits


def noise_of(spread: Spread) -> Noise:
    """Return the errors a spread states."""
    return Noise(network_sd=spread.network, row_sd=spread.row)


def fit_pooled(evidence: Evidence, stated_sd: ndarray, spread: Spread,
               start: Fit | None = None) -> Fit:
    """Fit prices of all cells, pooled as a spread says; `start` as for `fit_prices`."""
    return fit_prices(evidence, pool_prior(evidence.names, stated_sd, spread), noise_of(spread),
                      start)


def thin(evidence: Evidence) -> Evidence:
    """Return at most `MOST_ROWS` rows, those of every place at even distances."""
    if len(evidence) <= MOST_ROWS:
        return evidence
    order = sorted(range(len(evidence)), key=lambda row: (str(evidence.cells[row]), row))
    chosen = np.unique(np.linspace(0, len(order) - 1, MOST_ROWS).round().astype(int))
    return evidence.select(sorted(order[place] for place in chosen))


def learn_spread(evidence: Evidence, stated_sd: ndarray, assumed: Spread | None = None,
                 ) -> Spread:
    """Learn the spread of prices from the rows themselves.

    Parameters
    ----------
    evidence
        Rows that may be learnt from.
    stated_sd
        Shape (names,): relative standard deviation each price is stated with; not learnt.
    assumed
        What is believed where the data are silent, and where the search starts.

    Returns
    -------
    Spread
        Most probable standard deviations.

    Raises
    ------
    ToolMissingError
        Without SciPy.
    """
    start = assumed or Spread()
    names = tuple(name for name, value in asdict(start).items() if value)
    centre = np.log([getattr(start, name) for name in names])
    found, fit = centre, None
    evidence = thin(evidence)
    for _ in range(ROUNDS):
        spread = _to_spread(start, names, found)
        fit = fit_pooled(evidence, stated_sd, spread, fit)
        target = np.linalg.solve(fit.precision, fit.pull)
        fixed, scaled = _covariances(evidence, stated_sd, fit, names)
        found = _search(found, target, fixed, scaled, centre)
    return _to_spread(start, names, found)


def _search(start: ndarray, target: ndarray, fixed: ndarray, scaled: ndarray,
            centre: ndarray) -> ndarray:
    with need_extra("fits", "SciPy", "fit"):
        from scipy.optimize import minimize
    result = minimize(_negative_log, start, args=(target, fixed, scaled, centre), jac=True,
                      method="L-BFGS-B", options={"maxiter": 100},
                      bounds=[(np.log(SMALLEST), np.log(LARGEST))] * len(start))
    return np.asarray(result.x)


def _to_spread(start: Spread, names: Sequence[str], log_sds: ndarray) -> Spread:
    """Return a spread with these deviations; those that are none stay none."""
    return replace(start, **dict(zip(names, np.exp(log_sds).tolist(), strict=True)))


def _covariances(evidence: Evidence, stated_sd: ndarray, fit: Fit, names: Sequence[str],
                 ) -> tuple[ndarray, ndarray]:
    """Return the stated part of S, and for each learnt variance what it multiplies."""
    cells, shares = evidence.cells, fit.shares
    common = {level: relate(level, cells, cells) for level in LEVELS}
    alike = shares @ state(evidence.names, stated_sd) @ shares.T
    fixed = (common["library"] * alike if "library" in names
             else common["everything"] * alike + common["file"])
    network, row, _ = _errors(fit)
    multiplied = {**{level: common[level] * (shares @ share(evidence.names, level) @ shares.T)
                     for level in common},
                  **{f"own_{level}": common[level] * alike for level in common},
                  "network": network, "row": row}
    return fixed, np.array([multiplied[name] for name in names])


def _errors(fit: Fit) -> tuple[ndarray, ndarray, ndarray]:
    """Return what the variances of network, row and edge multiply, doubted rows included."""
    rows = np.diag(fit.evidence.doubt**2 / fit.row_weights)
    edges = np.diag((EDGE_UNIT / fit.evidence.measured) ** 2 / fit.row_weights)
    both = np.linalg.inv(fit.precision) - fit.explained
    alone = rows * fit.noise.row_sd**2 + edges * (fit.noise.edge / EDGE_UNIT) ** 2
    return (both - alone) / fit.noise.network_sd**2, rows, edges


def _negative_log(log_sds: ndarray, target: ndarray, fixed: ndarray,
                  scaled: ndarray, centre: ndarray) -> tuple[float, ndarray]:
    """Negative log probability of the rows, and its gradient in the log standard deviations."""
    variances = np.exp(2 * log_sds)
    total = fixed + np.tensordot(variances, scaled, 1)
    inverse = np.linalg.inv(total)
    pull = inverse @ target
    away = (log_sds - centre) / ASSUMED
    value = 0.5 * (target @ pull + np.linalg.slogdet(total)[1] + away @ away)
    slope = 0.5 * (inverse - np.outer(pull, pull))
    return float(value), 2 * variances * np.tensordot(scaled, slope, 2) + away / ASSUMED


def claim_fewer(evidence: Evidence, stated_sd: ndarray, spread: Spread) -> tuple[Fit, Spread]:
    """Fit with rows doubted more, where a few rows of one place would claim too much.

    Parameters
    ----------
    stated_sd
        Shape (names,).

    Returns
    -------
    tuple of Fit and Spread
        The spread with a row error of at least `LABORATORIES`; rows fitted with as much doubt as
        lets `FEW_ROWS` rows of one board and runtime, or fewer, be spent on at most
        `MOST_PARAMETERS` effective parameters.
    """
    spread = replace(spread, row=max(spread.row, LABORATORIES))
    rows, some = Counter(evidence.cells), thin(evidence)
    fit = None if len(some) == len(evidence) else fit_pooled(some, stated_sd, spread)
    while True:
        fit = fit_pooled(evidence, stated_sd, spread, fit)
        leverage = fit.leverage
        used = Counter[Cell]()
        for cell, each in zip(evidence.cells, leverage, strict=True):
            used[cell] += each
        greedy = {cell for cell in rows if rows[cell] <= FEW_ROWS and used[cell] > MOST_PARAMETERS}
        if not greedy or spread.row * evidence.doubt.max() > LARGEST:
            return fit, spread
        more = np.array([1.2 if cell in greedy else 1.0 for cell in evidence.cells])
        evidence = replace(evidence, doubt=evidence.doubt * more)


def learn_noise(evidence: Evidence, prior: Prior, assumed: Noise | None = None) -> Noise:
    """Learn the errors of network and row under prices whose prior is known.

    Parameters
    ----------
    assumed
        What is believed where the data are silent.

    Returns
    -------
    Noise
        Most probable standard deviations.
    """
    start = assumed or noise_of(Spread())
    noise = start
    edge = [start.edge / EDGE_UNIT] if start.edge else []  # An edge of 0 is none, and stays so.
    centre = found = np.log([start.network_sd, start.row_sd, *edge])
    for _ in range(ROUNDS):
        fit = fit_prices(evidence, prior, noise)
        target = np.linalg.solve(fit.precision, fit.pull)
        scaled = np.array(_errors(fit)[:len(centre)])
        found = _search(found, target, fit.explained, scaled, centre)
        network, row, *edge = np.exp(found).tolist()
        noise = Noise(network_sd=network, row_sd=row, edge=EDGE_UNIT * sum(edge))
    return noise
