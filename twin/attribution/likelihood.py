"""How likely a residual is under a fault: errors of the model and of the fault's own effect."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from twin.attribution.error_model import MOVED, NOTHING_KNOWN, REBUILT, ErrorModel
from twin.attribution.faults import UNKNOWN, Fault
from twin.attribution.marks import Marks

FREEDOM = 10.0
"""Degrees of freedom of the error: a pattern far off is improbable, not impossible."""

FULL_EFFECT = 0.1
"""Effects below this, as a logarithm, are predicted better in proportion."""

EFFECT_SD, EFFECT_LAYER_SD = 0.2, 0.1
"""How unsure the size of a fault's effect is, as a share of its logarithm: over all layers and
over those of a family; on a layer."""


def sum_errors(fault: Fault, effect: np.ndarray, core_share: np.ndarray, families: Sequence[str],
                errors: ErrorModel, counts: Sequence[float]) -> np.ndarray:
    """Errors of the model and of the fault's own effect, layers first, then counts."""
    layers = len(effect)
    same = np.equal.outer(np.array(families), np.array(families))
    common = np.concatenate((np.ones(layers), counts))
    matrix = np.zeros((len(common), len(common)))
    for part, scale in _errors_of(fault, errors, effect):
        own = [part.layer] * layers + [part.instructions if share else part.misses
                                       for share in counts]
        own[:layers] = [scale * sd for sd in own[:layers]]
        matrix += (scale * part.common) ** 2 * np.outer(common, common) + np.diag(np.square(own))
        matrix[:layers, :layers] += (scale * part.family) ** 2 * same
    matrix[:layers, :layers] += EFFECT_SD**2 * (1 + same) * np.outer(effect, effect)
    matrix[:layers, :layers] += np.diag((EFFECT_LAYER_SD * effect) ** 2)
    slower = np.concatenate((core_share, counts))
    return matrix + fault.slowdown_sd**2 * np.outer(slower, slower)


def shift_errors(fault: Fault, marks: Marks, layers: int) -> np.ndarray:
    """Covariance of the time that drift or interrupts took even in the least of the runs.

    Of the size of the mark they left: where none was seen, they explain nothing.
    """
    seen = max(abs(marks.drift or 0.0) if fault.drifts else 0.0,
               marks.scatter or 0.0 if fault.scatters else 0.0)
    return seen**2 * np.ones((layers, layers)) + (0.2 * seen) ** 2 * np.eye(layers)


def _errors_of(fault: Fault, errors: ErrorModel,
               effect: np.ndarray) -> tuple[tuple[ErrorModel, float], ...]:
    """Errors that add up for a fault and their scale: as declared, and of the fault's effect."""
    if fault.kind == UNKNOWN:
        return (errors, 1.0), (NOTHING_KNOWN, 1.0)
    if fault.rebuilds:
        return (errors, 1.0), (REBUILT, 1.0)
    if fault.deployment is None:
        return ((errors, 1.0),)
    # What changes nothing is predicted without error: the evidence then leaves it its prior.
    return (errors, 1.0), (MOVED, min(1.0, float(np.abs(effect).max()) / FULL_EFFECT))


def log_student(residual: np.ndarray, covariance: np.ndarray) -> float:
    """Logarithm of a multivariate Student density whose scale matrix is the covariance."""
    count = len(residual)
    sign, determinant = np.linalg.slogdet(covariance)
    assert sign > 0
    distance = float(residual @ np.linalg.solve(covariance, residual))
    return (math.lgamma((FREEDOM + count) / 2) - math.lgamma(FREEDOM / 2)
            - 0.5 * (count * math.log(FREEDOM * math.pi) + determinant)
            - 0.5 * (FREEDOM + count) * math.log1p(distance / FREEDOM))
