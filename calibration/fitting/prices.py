"""Prices learnt from measurements: Gauss-Newton on relative error, with everything pooled.

A measured total is a sum of counts times prices, each price a prior times a factor exp(x):

    log measured = log(sum_k amount_k exp(x_k)) + error of the network + error of the row

The logarithm makes the error relative and the factors positive. At each step the sum is linearised
(row i gets the shares J_ik of its total), and the factors follow in closed form, since prior and
errors are normal:

    K = J C J'        S = K + N        x = mean + C J' S^-1 r        cov = C - C J' S^-1 J C

C is the covariance of `fit_prior`, over all boards and runtimes at once; N holds the errors, larger
for rows and networks that disagree (Huber), and for networks of few layers: what is not known of
the structure of layers averages out over many. Steps repeat until the shares are stable.

References
----------
Rasmussen and Williams, Gaussian Processes for Machine Learning, chapters 2 and 5; Gelman and Hill,
Data Analysis Using Regression and Multilevel/Hierarchical Models, chapter 12 (partial pooling);
Huber, Robust Statistics, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from calibration.errors import FitError
from calibration.fitting.cell import Estimate
from hwmodels.frozen import entity, frozen

if TYPE_CHECKING:
    from calibration.fitting.cell import Cell
    from calibration.fitting.prior import Prior

HUBER = 1.5
"""Standard deviations beyond which a residual pulls with constant force only."""

BOUND = math.log(20.0)
"""Farthest a log price may go from its prior mean, either way, unless its prior is very wide."""

_WIDE = 4.0

_STEPS = 250
_PATIENCE = 25
"""Steps of one length; then half of it, for weights of rows that keep changing places."""
_STABLE = 1e-4


@entity
class Evidence:
    """Measured totals, and what is counted behind each: arrays with names, no layer is known.

    Parameters
    ----------
    amounts
        Shape (rows, names), non-negative: what each price contributes to the total as stated, in
        the unit of `measured`.
    measured
        Shape (rows,), positive: cycles, or picojoules.
    cells
        Where each row was measured.
    networks
        Rows of one name share an error: the same network, or the same layer shape.
    labels
        Where each row comes from, for people.
    doubt
        Shape (rows,): what the error of each row is multiplied by; 1 by default.
    concentration
        Shape (rows,): what the error of its network is multiplied by, `concentrate`; 1 by default.
    beyond
        Takes positions of held-out rows, returns what their being unlike the rest adds to the
        standard deviation of each; nothing by default.
    """

    names: tuple[str, ...]
    amounts: np.ndarray
    measured: np.ndarray
    cells: tuple[Cell, ...]
    networks: tuple[str, ...]
    labels: tuple[str, ...]
    doubt: np.ndarray = field(default_factory=lambda: np.ones(0))
    concentration: np.ndarray = field(default_factory=lambda: np.ones(0))
    beyond: Callable[[Sequence[int]], np.ndarray] = lambda rows: np.zeros(len(rows))

    def __post_init__(self) -> None:
        """Refuse arrays without one entry per row and price; factors are 1 where not given."""
        rows = len(self.cells)
        for factor in ("doubt", "concentration"):
            if not getattr(self, factor).size:
                object.__setattr__(self, factor, np.ones(rows))
        if self.amounts.shape != (rows, len(self.names)):
            raise FitError(f"amounts of shape {self.amounts.shape} for {rows} rows and "
                           f"{len(self.names)} prices")
        if not (self.measured.shape == (rows,) and len(self.networks) == len(self.labels) == rows):
            raise FitError("measured, networks and labels must have one entry per row")
        for label, amounts, measured in zip(self.labels, self.amounts, self.measured, strict=True):
            if not (np.isfinite(amounts).all() and (amounts >= 0).all() and amounts.sum() > 0):
                raise FitError(f"{label}: amounts must be finite, non-negative and not all zero")
            if not 0 < measured < math.inf:
                raise FitError(f"{label}: measured is {measured}; accepted: above 0")

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.cells)

    @property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """Who shares an error: (library, network) of each row."""
        return tuple((cell.library, network)
                     for cell, network in zip(self.cells, self.networks, strict=True))

    def select(self, rows: Sequence[int]) -> Evidence:
        """Return these rows only, by position."""
        chosen = [int(row) for row in rows]
        return replace(
            self, amounts=self.amounts[chosen], measured=self.measured[chosen],
            cells=tuple(self.cells[i] for i in chosen),
            networks=tuple(self.networks[i] for i in chosen),
            labels=tuple(self.labels[i] for i in chosen), doubt=self.doubt[chosen],
            concentration=self.concentration[chosen],
            beyond=lambda left: self.beyond([chosen[row] for row in left]))


@frozen
class Noise:
    """Standard deviations of what no price explains.

    Parameters
    ----------
    network_sd, row_sd
        Of log totals: of a typical network, of a row.
    edge
        Of a row's total itself, in its unit: what entering and leaving a layer costs beside what
        is counted. It is all there is of a layer of a few hundred cycles, and nothing of others.
    """

    network_sd: float
    row_sd: float
    edge: float = 0.0

    def row_sds(self, evidence: Evidence) -> np.ndarray:
        """Return the standard deviation of each row's log total, shape (rows,)."""
        sds: np.ndarray = np.hypot(self.row_sd * evidence.doubt, self.edge / evidence.measured)
        return sds


@entity
class Fit:
    """A finished fit: what it was fitted to, and what estimates anywhere follow from.

    Parameters
    ----------
    evidence, prior, noise
        What was fitted, and under which beliefs.
    shares
        Shape (rows, names): share of each price in each fitted total.
    pull
        Shape (rows,): S^-1 r.
    precision
        Shape (rows, rows): S^-1.
    explained
        Shape (rows, rows): K.
    fitted
        Shape (rows,): totals at the fitted prices.
    row_weights
        Shape (rows,): 1 where a row is believed in full, less where it disagrees.
    steps
        Gauss-Newton steps taken.
    """

    evidence: Evidence
    prior: Prior
    noise: Noise
    shares: np.ndarray
    pull: np.ndarray
    precision: np.ndarray
    explained: np.ndarray
    fitted: np.ndarray
    row_weights: np.ndarray
    steps: int

    @property
    def residuals(self) -> np.ndarray:
        """log(measured / fitted) of each row."""
        logs: np.ndarray = np.log(self.evidence.measured / self.fitted)
        return logs

    @property
    def leverage(self) -> np.ndarray:
        """How much of each row's own value its fit repeats, 0 to 1; sums to the parameters used."""
        leverage: np.ndarray = np.einsum("ij,ji->i", self.explained, self.precision)
        return leverage

    def doubted(self, whole: np.ndarray) -> np.ndarray:
        """Return the variance beyond what is stated that rows got for lying far off (Huber).

        Parameters
        ----------
        whole
            Shape (rows,): whether what all rows of its network got is to be counted, too.
        """
        stated = self.noise.row_sds(self.evidence)**2
        networks = (self.noise.network_sd * self.evidence.concentration)**2
        errors = np.diag(np.linalg.inv(self.precision) - self.explained) - networks
        return np.asarray(np.where(whole, errors, stated / self.row_weights) - stated)

    @property
    def log_evidence(self) -> float:
        """Log probability of the rows with prices integrated out, up to a constant.

        Two ways of counting the same rows are compared by it: the better one is more probable.
        """
        miss = np.linalg.solve(self.precision, self.pull)
        return float(-0.5 * (miss @ self.pull - np.linalg.slogdet(self.precision)[1]))

    def estimate(self, cell: Cell) -> Estimate:
        """Return the prices of any cell, measured or not."""
        from calibration.fitting.prior import relate

        cross = np.zeros((len(self.evidence), len(self.prior.names)))
        for part in self.prior.parts:
            common = relate(part.level, self.evidence.cells, [cell])
            cross += common * (self.shares @ part.covariance)
        before = self.prior.of(cell.stated_sd, cell.option)
        after = before - cross.T @ self.precision @ cross
        log = _bounded(self.prior.mean + cross.T @ self.pull, self.prior)
        return Estimate(names=self.prior.names, log=log, prior_covariance=before,
                        covariance=(after + after.T) / 2)


def log_total(amounts: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log totals of rows at log prices, and each price's share in them.

    Parameters
    ----------
    amounts
        Shape (rows, names).
    log
        Shape (names,) or (rows, names).
    """
    lines = amounts * np.exp(log)
    totals = lines.sum(axis=1)
    return np.log(totals), lines / totals[:, None]


def fit_prices(evidence: Evidence, prior: Prior, noise: Noise, start: Fit | None = None) -> Fit:
    """Fit log prices of all cells to measured totals.

    Parameters
    ----------
    evidence
        At least one row.
    prior
        Beliefs before; its names are those of the evidence.
    start
        Of much the same rows: where to start from, to save steps.

    Returns
    -------
    Fit
        Whose `estimate` gives prices and covariance of any cell.

    Raises
    ------
    FitError
        Without rows, with other names, or when the steps do not settle.

    Notes
    -----
    The equations of the module. A step moves no price by more than a factor e; prices stay within
    `BOUND` of their prior, or four of its standard deviations.
    """
    from calibration.fitting.prior import relate

    _check(evidence, prior)
    related = [relate(part.level, evidence.cells, evidence.cells) for part in prior.parts]
    members = _membership(evidence.groups) * evidence.concentration[:, None]
    log = _begin(evidence, prior, start)
    trust, group_trust = np.ones(len(evidence)), np.ones(members.shape[1])
    row_sds = noise.row_sds(evidence)
    damping = 1.0
    for step in range(1, _STEPS + 1):
        fitted, shares = log_total(evidence.amounts, log)
        target = np.log(evidence.measured) - fitted + ((log - prior.mean) * shares).sum(axis=1)
        explained = _covary(related, prior, shares)
        precision = np.linalg.inv(explained + _errors(members, noise.network_sd, row_sds, trust,
                                                        group_trust))
        pull = precision @ target
        moved = prior.mean + np.sum([(common * pull) @ shares @ part.covariance for common, part
                                     in zip(related, prior.parts, strict=True)], axis=0)
        change = damping * np.clip(_bounded(moved, prior) - log, -1.0, 1.0)
        if np.abs(change).max() < _STABLE or step == _STEPS:
            break
        log = log + change
        trust = _trust(row_sds**2 / trust * pull, row_sds)
        group_trust = _trust(noise.network_sd**2 / group_trust * (members.T @ pull),
                             noise.network_sd)
        damping = 2.0 ** -(step // _PATIENCE)
    if not np.isfinite(log).all() or np.abs(change).max() > 1e-2:
        raise FitError(f"prices did not settle in {_STEPS} steps: the rows contradict each other")
    return Fit(evidence=evidence, prior=prior, noise=noise, shares=shares, pull=pull,
               precision=precision, explained=explained, fitted=np.exp(fitted),
               row_weights=trust, steps=step)


def _begin(evidence: Evidence, prior: Prior, start: Fit | None) -> np.ndarray:
    """Return log prices to step from, shape (rows, prices): of another fit, or the prior's."""
    known = {} if start is None else {cell: start.estimate(cell).log
                                      for cell in dict.fromkeys(evidence.cells)}
    return np.array([known.get(cell, prior.mean) for cell in evidence.cells])


def _check(evidence: Evidence, prior: Prior) -> None:
    if not len(evidence):
        raise FitError("no measured row to fit to")
    if evidence.names != prior.names:
        raise FitError(f"prices {', '.join(evidence.names)} of the data are not those of the "
                       f"prior: {', '.join(prior.names)}")


def _bounded(log: np.ndarray, prior: Prior) -> np.ndarray:
    reach = np.maximum(BOUND, _WIDE * np.sqrt(np.diag(prior.covariance)))
    return np.asarray(np.clip(log, prior.mean - reach, prior.mean + reach))


def _covary(related: Sequence[np.ndarray], prior: Prior, shares: np.ndarray) -> np.ndarray:
    """Return K: how much the prior lets two rows' log totals move together."""
    parts = [common * (shares @ part.covariance @ shares.T)
             for common, part in zip(related, prior.parts, strict=True)]
    shared: np.ndarray = np.sum(parts, axis=0)
    return shared


def _membership(groups: Sequence[tuple[str, str]]) -> np.ndarray:
    """Rows by distinct group: 1 where the row belongs to it."""
    distinct = list(dict.fromkeys(groups))
    return np.array([[group == one for one in distinct] for group in groups], dtype=np.float64)


def _errors(members: np.ndarray, network_sd: float, row_sds: np.ndarray, trust: np.ndarray,
            group_trust: np.ndarray) -> np.ndarray:
    """Return N, the covariance of what prices do not explain."""
    shared: np.ndarray = (members * (network_sd**2 / group_trust)) @ members.T
    return shared + np.diag(row_sds**2 / trust)


def _trust(residuals: np.ndarray, sd: float | np.ndarray) -> np.ndarray:
    """Huber's weights: 1 within the bound, falling as 1 / residual beyond it."""
    weights: np.ndarray = np.minimum(1.0, HUBER * sd / np.maximum(np.abs(residuals), 1e-12))
    return weights
