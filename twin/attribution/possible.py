"""Which causes could explain a gap no counter covers: by probability, from cycles of layers alone.

    log(measured / predicted) of a layer = sum of its shares by cause x errors of their prices
                                           + error of its kernels

Prices are off alike in every layer and layers are made of causes in different shares, so a pattern
of gaps speaks for some causes and against others; how much of it each may take follows from how
unsure its price was before. Where a calibration, such as one of micro-benchmarks, has settled a
price, that cause explains little, and the others explain the rest.

References
----------
Rasmussen and Williams, Gaussian Processes for Machine Learning, chapter 2 (a linear model).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy import ndarray

from hwmodels.counts import CAUSE_GROUPS, CAUSES
from hwmodels.frozen import frozen
from twin.attribution.diagnosis.faults import OTHER_PRICE_SD, PRICE_SD, ErrorModel
from twin.attribution.difference import Account, Row
from twin.pricing.calibration import Calibration
from twin.pricing.price_names import OWN_FAMILIES

KERNELS = "none of these prices"
"""What is left: kernels that do other work, or something no cause counts."""

DRAWS, SEED = 2000, 7
"""Draws of the prices, always the same ones: probabilities are good to a percent."""

LEAST_SHARE = 1e-3
"""Of the predicted total: causes below explain nothing."""

TURNS = 60
"""Turns in which layers' own errors are learnt."""

FEWEST = 3
"""Errors a variance is learnt from; of fewer it is as believed."""

ALIKE = 0.5
"""By less of what all layers are off by, those of an operator are off as others are: assumed."""

LEVEL = (5.0, 95.0)
"""Percentiles an interval spans."""


@frozen
class Possible:
    """A cause that may explain part of a gap.

    Parameters
    ----------
    cause
        Of the bill, or `KERNELS`.
    expected, low, high
        What it accounts for, in the account's unit, and its 90 % interval.
    probability
        That it is the largest part of the gap.
    unsure
        How unsure its price was before, as a share; None for `KERNELS`.
    mostly
        Of `KERNELS`, the operator whose layers make more than half of it, and are off by more than
        others; "" where none does.
    """

    cause: str
    expected: int
    low: int
    high: int
    probability: float
    unsure: float | None
    mostly: str = ""


def explain_gap(account: Account, errors: ErrorModel,
                unsure: Mapping[str, float] = PRICE_SD) -> tuple[Possible, ...]:
    """Return the causes that could explain what no counter covers, most probable first.

    Parameters
    ----------
    account
        Of cycles or time, with causes on the first side.
    errors
        How far kernels may be off.
    unsure
        By cause, how unsure its price is, as a standard deviation of its logarithm.

    Returns
    -------
    tuple of Possible
        Empty where causes or a gap are missing. Expected parts sum to the gap, up to rounding.
    """
    rows = list_open(account)
    gap = sum(row.unexplained for row in rows)
    if not rows or not gap:
        return ()
    amounts = np.array([_open_amounts(row) for row in rows])
    large = amounts.sum(axis=0) >= LEAST_SHARE * sum(row.first for row in rows)
    causes = [cause for cause, kept in zip(CAUSES, large, strict=True) if kept]
    sds = np.array([unsure.get(cause, OTHER_PRICE_SD) for cause in causes])
    first = np.array([row.first for row in rows], float)
    logs = np.log1p(np.array([row.unexplained for row in rows]) / first)
    shares = amounts[:, large] / first[:, None]
    families = np.equal.outer(*2 * (np.array([row.op for row in rows]),)).astype(float)
    noise = _learn_noise((shares * sds**2) @ shares.T + errors.common**2, logs, (
        (families, errors.family**2), (np.eye(len(rows)), errors.layer**2)))
    parts, left = _draw_parts(shares, sds, logs, first, noise + errors.common**2)
    return _rank(causes, sds, parts, gap, _name_operator(
        rows, math.copysign(1.0, gap) * left, first))


def _name_operator(rows: Sequence[Row], left: ndarray, first: ndarray) -> str:
    """Name the operator that makes most of what is left, if its layers are off more than others."""
    ops, size = np.array([row.op for row in rows]), np.abs(left).sum()
    for op in dict.fromkeys(ops.tolist()):
        own = ops == op
        apart = left[own].sum() / first[own].sum() - left[~own].sum() / max(first[~own].sum(), 1)
        if left[own].sum() > size / 2 and apart > ALIKE * size / first.sum():
            return str(op)
    return ""


def list_open(account: Account) -> list[Row]:
    """Return rows a price may explain: none of what ran outside the layers."""
    return [row for row in account.rows if row.first > 0 and row.first + row.unexplained > 0
            and any(_is_open(line.causes, line.second) for line in row.lines)]


def price_sds(calibration: Calibration | None) -> dict[str, float]:
    """Return by cause how unsure its price is: as assumed, or as learnt where that is surer.

    Parameters
    ----------
    calibration
        Learnt prices: of waiting on memories, of calls, of copying, and of families of kernels,
        whose median stands for the core's work.
    """
    found = {cause: PRICE_SD.get(cause, OTHER_PRICE_SD) for cause in CAUSES}
    if calibration is None:
        return found
    names = calibration.time.names
    sds = dict(zip(names, np.sqrt(np.diag(calibration.time.covariance)).tolist(), strict=True))
    work = float(np.median([sds[name] for name in OWN_FAMILIES if name != "copy"]))
    learnt = dict.fromkeys(CAUSE_GROUPS["compute"], work)
    learnt |= dict.fromkeys(CAUSE_GROUPS["memory"], sds["memory"])
    learnt |= {"kernel_call": sds["call"], "data_copy": sds["copy"]}
    return found | {cause: min(sd, found[cause]) for cause, sd in learnt.items()}


def _is_open(causes: Sequence[str], second: int | None) -> bool:
    """Whether a line is one cause of the bill that nothing counted."""
    return second is None and len(causes) == 1 and causes[0] in CAUSES


def _open_amounts(row: Row) -> list[float]:
    found = dict.fromkeys(CAUSES, 0.0)
    for line in row.lines:
        if _is_open(line.causes, line.second):
            found[line.causes[0]] += line.first
    return list(found.values())


def _learn_noise(shared: ndarray, logs: ndarray,
                 parts: Sequence[tuple[ndarray, float]]) -> ndarray:
    """Return the covariance of errors of kernels and of layers, each part at least as believed.

    Layers no prices fit, as other kernels make them, speak for no price: by expectation and
    maximisation, from all of it being each part's own. A part is blocks of ones and its variance.
    """
    ranks = [int(np.linalg.matrix_rank(blocks)) for blocks, _ in parts]
    variances = [max(least, float(np.mean(logs**2)) * (rank >= FEWEST))
                 for rank, (_, least) in zip(ranks, parts, strict=True)]
    for _ in range(TURNS):
        inverse = np.linalg.inv(shared + sum(
            one * blocks for one, (blocks, _) in zip(variances, parts, strict=True)))
        fit = inverse @ logs
        variances = [one if rank < FEWEST else max(least, one + one**2 * float(
            fit @ blocks @ fit - np.sum(inverse * blocks)) / rank)
            for one, rank, (blocks, least) in zip(variances, ranks, parts, strict=True)]
    return np.asarray(sum(one * blocks for one, (blocks, _) in zip(variances, parts, strict=True)))


def _draw_parts(shares: ndarray, sds: ndarray, logs: ndarray, first: ndarray,
                noise: ndarray) -> tuple[ndarray, ndarray]:
    """Return draws of what each cause accounts for, shape (draws, causes + 1); the last: kernels.

    A layer's gap is shared as its logarithm is. Beside them what kernels account for by layer, in
    the mean.
    """
    cross = shares * sds**2
    gain = np.linalg.solve(cross @ shares.T + noise, cross)
    covariance = np.diag(sds**2) - cross.T @ gain
    random = np.random.default_rng(SEED)
    spread, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    drawn = gain.T @ logs + random.normal(size=(DRAWS, len(sds))) @ (
        axes * np.sqrt(np.maximum(spread, 0.0))).T
    scale = first * np.where(np.abs(logs) > 1e-9, np.expm1(logs) / np.where(
        np.abs(logs) > 1e-9, logs, 1.0), 1.0)
    parts = drawn * (scale @ shares)
    left = float(scale @ logs) - parts.sum(axis=1)
    return np.column_stack([parts, left]), scale * (logs - shares @ gain.T @ logs)


def _rank(causes: Sequence[str], sds: ndarray, parts: ndarray, gap: int,
          op: str) -> tuple[Possible, ...]:
    largest = np.argmax(math.copysign(1.0, gap) * parts, axis=1)
    chances = np.bincount(largest, minlength=parts.shape[1]) / len(parts)
    low, high = np.percentile(parts, LEVEL, axis=0)
    found = [Possible(cause=cause, expected=round(float(parts[:, place].mean())),
                      low=round(float(low[place])), high=round(float(high[place])),
                      probability=float(chances[place]),
                      unsure=float(sds[place]) if place < len(sds) else None,
                      mostly=op if place == len(sds) else "")
             for place, cause in enumerate((*causes, KERNELS))]
    return tuple(sorted(found, key=lambda one: -one.probability))
