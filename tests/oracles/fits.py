"""Fits judged: totals of rows they did not see, bands of a product, factors set by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibration.fitting.cell import Estimate
from calibration.fitting.intervals import BASES, Band
from calibration.fitting.prices import Evidence, Fit, log_total


def predict_totals(fit: Fit, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Return log totals of rows that need not be in the fit, and the variance prices leave them.

    Parameters
    ----------
    fit
        From `fit_prices`.
    evidence
        Rows to predict; what they measured is not looked at.

    Returns
    -------
    tuple of numpy.ndarray
        Log totals and variances, each of shape (rows,); errors of network and row not included.
    """
    estimates = {cell: fit.estimate(cell) for cell in dict.fromkeys(evidence.cells)}
    log = np.array([estimates[cell].log for cell in evidence.cells])
    totals, shares = log_total(evidence.amounts, log)
    variances = [share @ estimates[cell].covariance @ share
                 for cell, share in zip(evidence.cells, shares, strict=True)]
    return totals, np.array(variances)


def join_bands(one: Band, one_sd: float, other: Band, other_sd: float) -> Band:
    """Return the band of a product, as multiples of the root of its factors' variances.

    Parameters
    ----------
    one, other
        Of two independent factors: time, and power.
    one_sd, other_sd
        Their stated standard deviations of the logarithm.

    Returns
    -------
    Band
        Whose reach is the root of the squares of theirs; named after what is less sure of them.
    """
    sd = math.hypot(one_sd, other_sd)
    down, up = ((math.hypot(getattr(one, side) * one_sd, getattr(other, side) * other_sd) / sd
                 if sd else getattr(one, side)) for side in ("down", "up"))
    order = list(BASES)
    basis = max((one.basis, other.basis), key=order.index)
    return Band(down=down, up=up, level=one.level, basis=basis, count=min(one.count, other.count))


def set_factors(estimate: Estimate | None, names: tuple[str, ...],
                factors: Mapping[str, float]) -> Any:
    """Return an estimate with some factors in place of those it has; its covariance stays."""
    if not factors:
        return estimate
    before = np.zeros(len(names)) if estimate is None else estimate.log
    log = np.array([np.log(factors[name]) if name in factors else own
                    for name, own in zip(names, before, strict=True)])
    if estimate is None:
        none = np.zeros((len(names), len(names)))
        return Estimate(names=names, log=log, covariance=none, prior_covariance=none)
    return dataclasses.replace(estimate, log=log)
