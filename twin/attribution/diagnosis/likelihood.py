"""How likely a measurement is under a fault: errors of prices, of kernels and of the effect.

    log measured = log predicted under the fault + shares by cause x errors of prices
                   + errors of the kernels + error of the fault's own effect

Prices of causes are unsure alike in every layer, so an error of one shows as a pattern of its own:
the shares of that cause. A measurement known to be right has the same errors of prices and of
kernels; both are weighed together, and what they share cancels. A pattern counts by a share, its
temper, so that stated probabilities are right as often as they say.

References
----------
Guo et al., On Calibration of Modern Neural Networks, ICML 2017 (temperature scaling).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from hwmodels.counts import CAUSES
from hwmodels.frozen import frozen
from twin.attribution.diagnosis.fault_effects import Effect
from twin.attribution.diagnosis.faults import (
    BINARY,
    HIDING_SD,
    MOVED,
    OTHER_PRICE_SD,
    PRICE_SD,
    RELINKED,
    REPLACED,
    ErrorModel,
    Fault,
)
from twin.attribution.diagnosis.marks import Marks

FREEDOM = 10.0
"""Degrees of freedom of the error of a count: one far off is improbable, not impossible."""

LAYER_FREEDOM = 3.0
"""Degrees of freedom of a layer's own error: one layer may be far off, and counts little then."""

FARTHEST = 8.0
"""Standard deviations beyond which a layer that is off is not less likely still."""

TURNS = 8
"""Turns in which the layers that are far off are found."""

FULL_EFFECT, FULL_REBUILD = 0.1, 0.3
"""Effects below this, as a logarithm, are predicted better in proportion: of memories and clocks,
and of other kernels."""

MEMORY_EFFECT_SD, MEMORY_FAMILY_SD = 0.5, 0.14
"""How unsure it is what waits of caches, wait states and prefetch cost, as a logarithm: over all
layers, and over those of a family. What an uncached access costs, and what a prefetch hides of wait
states, is known of no board: all caches off cost a third to two thirds of what is predicted on
hidden Cortex-M7, 0.6 to 1.5 times on hidden Cortex-M33. A layer's time is off by its share of such
waits of that: d log t = (w / t) d log w. Chosen of six pairs by the log score of verdicts on hidden
boards of seeds 950, 951 and 961 to 963."""

EFFECT_LAYER_SD = 0.05
"""How unsure the size of a fault's effect is on a layer, as a share of its logarithm."""

STEP = 0.5
"""Sizes that are tried stand for those around them: by so much, as a share."""

LARGE_EFFECT = 0.3
"""Effects above this, as a logarithm, are no less sure from layer to layer."""

LITTLE_WORK = math.log(1e-2)
"""A layer of fewer multiply-accumulates a cycle, as a logarithm, does something else."""

LEAST_CHANCE = 1e-9
"""No direction is less probable: a logarithm stays finite."""

UNEVEN = 0.05
"""Of the time interrupts take, what falls on one layer more than on another: assumed."""

LEFT_OVER = 0.2
"""Of the scatter interrupts make, what is left in the least of a layer's runs."""

_PRICES = np.array([PRICE_SD.get(cause, OTHER_PRICE_SD) for cause in CAUSES])


def price_errors(first: ndarray, second: ndarray) -> ndarray:
    """Covariance of layers by what prices they share.

    Parameters
    ----------
    first, second
        Shape (layers, causes): shares of time.

    Notes
    -----
    d log(sum of share x price) = sum of share x d log(price).
    """
    return np.asarray((first * _PRICES**2) @ second.T)


def kernel_errors(errors: ErrorModel, families: Sequence[str],
                  density: ndarray | None = None) -> ndarray:
    """Covariance of layers by which kernels they run; a layer's own error is omitted."""
    same = np.equal.outer(np.array(families), np.array(families))
    matrix = np.asarray(errors.common**2 + errors.family**2 * same)
    if density is None or not errors.slope:
        return matrix
    apart = density - (same @ density) / same.sum(axis=1)
    return np.asarray(matrix + errors.slope**2 * same * np.outer(apart, apart))


def hiding_errors(first: ndarray, second: ndarray) -> ndarray:
    """Covariance of layers by what of their waits may be hidden: the same share in each.

    Parameters
    ----------
    first, second
        Shape (layers,): logarithm of that.
    """
    return np.asarray(HIDING_SD**2 * np.outer(first, second))


def effect_errors(fault: Fault, effect: Effect, moves: Sequence[ndarray],
                  families: Sequence[str], marks: Marks, density: ndarray,
                  errors: ErrorModel) -> tuple[ndarray, ndarray]:
    """Covariance of what a fault does to layers, and each layer's own variance.

    Parameters
    ----------
    fault, effect
        The hypothesis and what it does.
    moves
        Shape (layers,) each: logarithm of the change by each fault, one or two.
    density
        Shape (layers,): of multiply-accumulates, as `Effect` has it, as declared.
    errors
        Of what is predicted as declared.
    marks
        Time that a drift took even in the least of the runs is of the size of the mark it left.
    """
    same = np.equal.outer(np.array(families), np.array(families))
    layers = len(families)
    matrix, own = np.zeros((layers, layers)), np.zeros(layers)
    # What changes nothing is predicted without error: the evidence then leaves it its prior.
    largest = [float(np.abs(moved).max()) for moved in moves]
    scale = min(1.0, max(largest) / FULL_REBUILD) if fault.rebuilds and fault.deployment else 1.0
    parts = [] if fault.errors is None else [(fault.errors, np.full(layers, scale))]
    foreseen = fault.deployment is not None and fault.errors != REPLACED
    for moved, most in zip(moves, largest, strict=True) if foreseen else ():
        reached = most if fault.shifts_clock else np.abs(moved)  # a clock reaches every memory
        parts.append((MOVED, np.minimum(1.0, reached / FULL_EFFECT) * np.ones(layers)))
        sure = fault.errors == RELINKED or (fault.rebuilds and moved is moves[0])  # it is compiled
        sd, of_family, unsure = errors.effect, errors.effect, moved
        if not sure:  # the share of waits in the time is what their cost scales
            sd, of_family = MEMORY_EFFECT_SD, max(errors.effect, MEMORY_FAMILY_SD)
            unsure = np.where(moved > 0, -np.expm1(-moved), moved)
        matrix += (sd**2 + of_family**2 * same) * np.outer(unsure, unsure)
        own += (EFFECT_LAYER_SD * np.minimum(np.abs(moved), LARGE_EFFECT)) ** 2
    for part, scales in parts:
        matrix += np.outer(scales, scales) * kernel_errors(part, families, density)
        own += (scales * part.layer) ** 2
    if fault.slowdown and not fault.slowdown_of:
        # a mathematical library comes compiled: what has no multiplies may stay
        own += np.where(density < LITTLE_WORK, (fault.slowdown / 2) ** 2, 0.0)
    matrix += fault.slowdown_sd**2 * np.outer(effect.core, effect.core)
    matrix += (STEP * fault.stretch) ** 2 + STEP**2 * np.outer(effect.waits, effect.waits)
    matrix += (marks.drift or 0.0 if fault.drifts else 0.0) ** 2
    if fault.scatters:
        own += (LEFT_OVER * min(marks.scatter or 0.0, 0.1)) ** 2 + (UNEVEN * fault.stretch) ** 2
    return matrix, own


def log_pattern(residual: ndarray, covariance: ndarray, own: ndarray,
                grown: ndarray) -> float:
    """Logarithm of the density of a pattern.

    Parameters
    ----------
    residual
        Shape (layers,).
    covariance
        Shape (layers, layers): of errors that layers share, normal.
    own
        Shape (layers,): variance of each layer's own error, Student's t with `LAYER_FREEDOM`.
    grown
        Shape (layers,): by how much each of these grew (`own_errors`).

    Notes
    -----
    A Student variable is a normal one whose variance has an inverse gamma density. Variances are
    set where they are likeliest, by expectation and maximisation, and weighed by that density.
    """
    whole = covariance + np.diag(own * grown)
    _, determinant = np.linalg.slogdet(whole)
    distance = float(residual @ np.linalg.solve(whole, residual))
    half = LAYER_FREEDOM / 2
    weight = float(np.sum(-half * np.log(grown) - half / grown)) + half * len(residual)
    return -0.5 * (determinant + distance + len(residual) * math.log(2 * math.pi)) + weight


def own_errors(residual: ndarray, covariance: ndarray,
               own: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Return what of a pattern is each layer's own, by how much its variance grew for it, C^-1.

    C is the covariance of residuals before any variance grew.

    Parameters
    ----------
    residual, covariance, own
        As for `log_pattern`.
    """
    grown = mean = np.ones(len(residual))
    whole, inverses = covariance.copy(), list[ndarray]()
    for _ in range(TURNS):
        noise = own * grown
        np.fill_diagonal(whole, covariance.diagonal() + noise)
        inverses.append(inverse := np.linalg.inv(whole))
        mean = noise * (inverse @ residual)
        variance = noise - noise**2 * inverse.diagonal()
        grown = (LAYER_FREEDOM + (mean**2 + variance) / own) / (LAYER_FREEDOM + 2)
    return mean, grown, inverses[0]


def log_apart(errors: ndarray, own: ndarray, far: ndarray) -> float:
    """Logarithm of how much less likely layers that lie far off are under a normal error.

    Parameters
    ----------
    errors, own
        Shape (layers,): each layer's own error, and its variance.
    far
        Shape (layers,), bool: those that are looked at.
    """
    away = np.minimum(errors[far] ** 2 / own[far], FARTHEST**2)
    return float(np.sum(0.5 * (LAYER_FREEDOM + 1) * np.log1p(away / LAYER_FREEDOM) - 0.5 * away))


def log_shape(residual: ndarray, covariance: ndarray, own: ndarray, grown: ndarray,
              measured: ndarray) -> float:
    """Logarithm of the density of a pattern, given the whole network's residual.

    Parameters
    ----------
    residual, covariance, own, grown
        As for `log_pattern`.
    measured
        Shape (layers,): amounts the whole is weighed by, the same under every fault.
    """
    pattern = log_pattern(residual, covariance, own, grown)
    weights = measured / measured.sum()
    variance = float(weights @ (covariance + np.diag(own * grown)) @ weights)
    whole = -0.5 * (float(weights @ residual) ** 2 / variance + math.log(2 * math.pi * variance))
    return pattern - whole


def log_total(residual: ndarray, covariance: ndarray, measured: ndarray,
              faster: float = 1.0) -> float:
    """Logarithm of the density of the whole network's residual, layers weighed as measured.

    Normal: what is farther off than a listed state allows is for "none of these" to explain.

    Parameters
    ----------
    residual
        Shape (layers,).
    covariance
        Shape (layers, layers): of all errors.
    measured
        Shape (layers,): amounts, the same under every fault.
    faster
        Share of the standard deviation that holds where measured is below what is expected.
    """
    weights = measured / measured.sum()
    off, sd = float(weights @ residual), math.sqrt(weights @ covariance @ weights)
    away = off / (sd * (faster if off < 0 else 1.0))
    return -0.5 * away**2 - math.log(sd * (1 + faster) * math.sqrt(math.pi / 2))


def log_direction(residual: ndarray, moved: ndarray, effect: ndarray,
                  covariance: ndarray, measured: ndarray) -> float:
    """Logarithm of the probability that a fault did what it does in the direction it does it in.

    Parameters
    ----------
    residual, moved
        Shape (layers,): what is left under the fault, and what it is predicted to change.
    effect, covariance
        Shape (layers, layers): of errors of the effect, and of all errors.
    measured
        Shape (layers,): weights.

    Notes
    -----
    Errors of an effect are normal, but one that makes a network slower never makes it faster: its
    density is cut off at no effect, which multiplies the likelihood by P(same sign | measured).
    """
    weights = measured / measured.sum()
    predicted = float(weights @ moved)
    gain = np.linalg.solve(covariance, effect @ weights)
    middle = predicted + float(gain @ residual)
    variance = float(weights @ effect @ weights - (effect @ weights) @ gain)
    away = math.copysign(1.0, predicted) * middle / math.sqrt(max(variance, 1e-12))
    return math.log(max(0.5 * math.erfc(-away / math.sqrt(2)), LEAST_CHANCE))


def log_student(off: float, sd: float) -> float:
    """Logarithm of the density of an error of Student's t with `FREEDOM`, of a scale."""
    half = (FREEDOM + 1) / 2
    return (math.lgamma(half) - math.lgamma(FREEDOM / 2) - math.log(sd)
            - math.log(FREEDOM * math.pi) / 2 - half * math.log1p((off / sd) ** 2 / FREEDOM))


@frozen
class Temper:
    """By which share a pattern counts: errors of layers are not as independent as assumed.

    The total is one figure, so only the shape, how layers lie around it, is counted too often.

    Parameters
    ----------
    shape
        Of the log likelihood of a pattern's shape.
    whole
        Of the logarithm of the posterior: stated probabilities are right as often as they say.
    """

    shape: float
    whole: float = 1.0

    def chances(self, priors: Sequence[float], shapes: Sequence[float],
                totals: Sequence[float], marks: Sequence[float]) -> ndarray:
        """Return the probability of each hypothesis, by Bayes' rule.

        Parameters
        ----------
        priors
            Before any evidence.
        shapes, totals, marks
            Log likelihoods: of the pattern given its total, which alone is tempered by `shape`,
            of the total, and of what runs show.
        """
        logs = np.log(priors) + self.shape * np.asarray(shapes) + totals + marks
        chances = np.exp(self.whole * (logs - logs.max()))
        return np.asarray(chances / chances.sum())


ALONE = Temper(shape=0.78, whole=0.9)
BESIDE_HEALTHY = Temper(shape=0.35)
"""Learnt from planted faults (`benchmarks.diagnosis`, hidden boards of seeds 11 to 16), with the
priors of no fault and of two: what makes their true kinds most probable; of the whole on seeds 980
to 982 (0.8, 0.85, 0.9, 0.95 and 1 tried: mean log likelihood of the true kind -0.691, -0.695 at
1). With a second measurement, as beside a healthy run, the whole counts in full (950, 951, 961 to
963: at 0.9, too cautious; leave-one-board-out chooses 1 to 1.1 of 0.85 to 1.1). The total
counts in full: at 0.45 of it 6 of 320 verdicts beside a healthy run fewer were right."""

AGAIN = Temper(shape=0.35)
"""Of a second measurement, given the first: learnt from those of seeds 11 and 12 (kws on a
Cortex-M4, four tempers tried; log likelihood of the true kind -0.96 at 0.45 of the total, -0.90 at
all of it)."""

ASSUMED_ERRORS = Temper(shape=1.0)
"""Kernels not read from a binary, and no healthy measurement: no plants stand behind it, and the
errors assumed of libraries are taken as they are."""


def choose_temper(errors: ErrorModel, *, healthy: bool) -> Temper:
    """Return the temper for a diagnosis under an error model."""
    return BESIDE_HEALTHY if healthy else ALONE if errors == BINARY else ASSUMED_ERRORS
