"""Which fault of a set-up explains a measurement: the whole pattern over layers, weighed.

    log measured = log predicted under the fault + error of the model

Measured is the least of the runs, which interrupts disturb least. The error is Student's t with
`FREEDOM` degrees: one part all layers share, one per family of kernels, one of the layer alone,
stated by `ErrorModel`; each fault adds how unsure its own effect is. Counters of instructions and
of cache misses join the pattern; the clock by the host, a drift and a scatter over the runs are
evidence of their own. Bayes' rule gives each fault its probability among all listed, "as declared"
and "none of these" included.

References
----------
MacKay, Information Theory, Inference, and Learning Algorithms, chapter 28 (model comparison).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.measurement.counters import ALIASES
from calibration.measurement.measurement import Measurement
from twin.attribution.error_model import (
    BINARY,
    HEALTHY,
    LIBRARY,
    STAND_IN,
    ErrorModel,
)
from twin.attribution.faults import DECLARED, Fault, list_faults, prior_of
from twin.attribution.likelihood import log_student, shift_errors, sum_errors
from twin.attribution.marks import (
    CLOCK_SD,
    Marks,
    clock_hz_of,
    describe_marks,
    read_marks,
    ruled_out,
    weigh_marks,
)
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.attribution.sameness import require_network
from twin.attribution.side import Side
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.learning.calibrated import predict_at
from twin.learning.calibration import AUTO, Calibration, choose_calibration
from twin.prediction.prediction import Prediction

LEAST = 0.0
"""Percentile of the runs the pattern is of."""

PATTERN_SHARE = 0.99
"""The pattern rests on the layers that make up this share; the rest is overhead and noise."""


NO_EFFECT = 0.01
"""A fault that changes no layer by more, as a logarithm, cannot be told from its absence."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """A fault, weighed.

    Parameters
    ----------
    fault : Fault
        The hypothesis.
    prior, probability : float
        Before and after the evidence.
    evidence : tuple of str
        Figures that speak for or against it.
    predicted : mapping of int to float
        Amount by layer under the fault, in the diagnosis' quantity.
    """

    fault: Fault
    prior: float
    probability: float
    evidence: tuple[str, ...]
    predicted: Mapping[int | None, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diagnosis:
    """Faults by probability.

    Parameters
    ----------
    findings : tuple of Finding
        Most probable first.
    quantity : str
        What the pattern is of: "cycles", "time" or "instructions".
    layers : tuple of int
        Of the pattern.
    errors : ErrorModel
        Under which it was weighed.
    observations : tuple of str
        Evidence outside the pattern.
    indistinct : tuple of str
        Faults that change nothing here: they are neither found nor ruled out.
    remarks : tuple of str
        What to warn of.
    """

    findings: tuple[Finding, ...]
    quantity: str
    layers: tuple[int | None, ...]
    errors: ErrorModel
    observations: tuple[str, ...]
    indistinct: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, float]:
        """Probability by kind of fault, most probable first."""
        sums: dict[str, float] = {}
        for finding in self.findings:
            kind = finding.fault.kind
            sums[kind] = sums.get(kind, 0.0) + finding.probability
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    @property
    def verdict(self) -> Finding:
        """The most probable fault of the most probable kind."""
        kind = next(iter(self.kinds))
        return next(finding for finding in self.findings if finding.fault.kind == kind)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pattern:
    """What is compared: measured amounts by layer, and counts of the whole network."""

    quantity: str
    layers: tuple[int | None, ...]
    families: tuple[str, ...]
    measured: np.ndarray
    instructions: float | None
    misses: float | None


def diagnose(deployment: Deployment, measurement: Measurement, *,
             healthy: Measurement | None = None, stands_in: bool = False,
             calibration: str | Calibration | None = AUTO) -> Diagnosis:
    """Rank the faults that could explain a measurement.

    Parameters
    ----------
    deployment : Deployment
        What was asked for.
    measurement : Measurement
        Of the same network, on the same board.
    healthy : Measurement, optional
        Of the same kernels, known to be right: the pattern is then set against it, and only the
        effects of faults are predicted.
    stands_in : bool
        The deployment's runtime stands in for the one that was measured.
    calibration : str, Calibration or None
        As for `choose_calibration`, or chosen already; None is "none". Learnt prices are those of
        the runtime that was measured, also where another stands in for it.

    Returns
    -------
    Diagnosis
        Probabilities sum to 1.

    Raises
    ------
    UsageError
        When the measurement is of another network, or has nothing to compare.
    """
    side = side_of_measurement(measurement, percent=LEAST)
    prices = _choose_prices(deployment, measurement, stands_in, calibration)
    base = predict_at(deployment, prices, temperature=side.temperature or "warm")
    ours = side_of_prediction(base)
    require_network(ours, side)
    pattern = _make_pattern(ours, side, deployment)
    reference = None
    if healthy is not None:
        right = side_of_measurement(healthy, percent=LEAST)
        require_network(ours, right)
        if right.board != side.board:
            raise UsageError(f"the measurement known to be right was taken on {right.board}, the "
                             f"one to diagnose on {side.board}")
        reference = _make_pattern(ours, right, deployment)
        if (reference.quantity, reference.layers) != (pattern.quantity, pattern.layers):
            raise UsageError("the measurement known to be right has other layers or counters")
    errors = HEALTHY if healthy is not None else _choose_errors(deployment, stands_in)
    marks = read_marks(measurement, deployment)
    observed = None if marks.clock_log is None else clock_hz_of(deployment) * math.exp(
        marks.clock_log)
    if marks.clock_log is not None and abs(marks.clock_log) < 3 * CLOCK_SD:
        observed = clock_hz_of(deployment)  # right: no other clock is in question
    out = ruled_out(measurement)
    faults = tuple(fault for fault in list_faults(deployment, observed) if fault.kind not in out)
    weighed = [_weigh(fault, base, prices, pattern, reference, errors, marks) for fault in faults]
    return _rank(faults, weighed, pattern, errors, marks)


def _choose_prices(deployment: Deployment, measurement: Measurement, stands_in: bool,
                   calibration: str | Calibration | None) -> Calibration | None:
    if not isinstance(calibration, str):
        return calibration
    return choose_calibration(deployment, calibration,
                              runtime=measurement.header.runtime if stands_in else None)


def _choose_errors(deployment: Deployment, stands_in: bool) -> ErrorModel:
    if deployment.runtime.name == "firmware":
        return BINARY
    return STAND_IN if stands_in else LIBRARY


def _make_pattern(ours: Side, theirs: Side, deployment: Deployment) -> _Pattern:
    """Return the layers and counts both sides have."""
    for quantity in ("cycles", "time", "instructions"):
        if quantity not in theirs.whole.amounts or quantity not in ours.whole.amounts:
            continue
        found = {part.index: part.amounts[quantity] for part in theirs.parts
                 if part.amounts.get(quantity, 0) > 0}
        predicted = {part.index: part.amounts[quantity] for part in ours.parts
                     if part.amounts[quantity] > 0}
        layers = _largest([index for index in predicted if index in found], predicted)
        measured = [float(found[index]) for index in layers]
        if not layers and theirs.whole.amounts[quantity] > 0:
            layers, measured = (None,), [float(theirs.whole.amounts[quantity])]
        if layers:
            return _Pattern(
                quantity=quantity, layers=layers, measured=np.array(measured),
                families=tuple(_family(deployment, index) for index in layers),
                instructions=_count("instructions", theirs),
                misses=_count("misses", theirs))
    raise UsageError(f"{theirs.label}: has {', '.join(theirs.whole.amounts)}; a diagnosis needs "
                     "cycles, time or instructions above zero")


def _largest(indices: Sequence[int | None],
             amounts: Mapping[int | None, int]) -> tuple[int | None, ...]:
    """Return the fewest parts that make up `PATTERN_SHARE`, in order."""
    whole, kept, so_far = sum(amounts[index] for index in indices), set(), 0
    for index in sorted(indices, key=lambda one: -amounts[one]):
        if so_far >= PATTERN_SHARE * whole:
            break
        kept.add(index)
        so_far += amounts[index]
    return tuple(index for index in indices if index in kept)


def _family(deployment: Deployment, index: int | None) -> str:
    if index is None:
        return ""
    layer = next(one for one in deployment.graph.layers if one.index == index)
    pointwise = layer.window is not None and tuple(layer.window.kernel) == (1, 1)
    return f"{layer.op} 1x1" if pointwise else layer.op


def _count(name: str, side: Side) -> float | None:
    return next((side.whole.counts[alias] for alias in ALIASES[name]
                 if alias in side.whole.counts), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Weight:
    """Log likelihood of a fault and what it leaves."""

    log_likelihood: float
    residual: np.ndarray
    effect: np.ndarray
    predicted: np.ndarray
    counted: tuple[str, ...]


def _weigh(fault: Fault, base: Prediction, prices: Calibration | None, pattern: _Pattern,
           reference: _Pattern | None, errors: ErrorModel, marks: Marks) -> _Weight:
    """Return how likely the pattern and the marks are under a fault."""
    changed, versus = (base if other is None else predict_at(
        other, prices, temperature=base.temperature)
        for other in (fault.deployment, fault.versus))
    effect, core_share = _effect(fault, versus, changed, pattern)
    stated = _stated(base, pattern)
    origin = np.log(stated if reference is None else reference.measured)
    expected = origin + effect
    values = np.log(pattern.measured)
    shares, counts, names = _compare_counts(fault, (base, versus, changed), pattern, reference)
    count = len(values)
    residual = np.concatenate((values - expected, counts))
    covariance = sum_errors(fault, effect, core_share, pattern.families, errors, shares)
    covariance[:count, :count] += shift_errors(fault, marks, count)
    log_likelihood = log_student(residual, covariance)
    return _Weight(log_likelihood=log_likelihood + weigh_marks(fault, marks),
                   effect=effect, residual=residual[:count], predicted=np.exp(expected),
                   counted=names)


def _stated(prediction: Prediction, pattern: _Pattern) -> np.ndarray:
    """Predicted amounts of the pattern's layers."""
    def amount(position: int) -> float:
        layer = prediction.layers[position]
        return {"cycles": layer.cycles, "time": layer.time_us * 1e3,
                "instructions": float(layer.instructions)}[pattern.quantity]

    places = {layer.index: place for place, layer in enumerate(prediction.layers)}
    if pattern.layers == (None,):
        return np.array([math.fsum(amount(place) for place in places.values())])
    return np.array([max(amount(places[index]), 1.0) for index in pattern.layers
                     if index is not None])


def _effect(fault: Fault, base: Prediction, changed: Prediction,
            pattern: _Pattern) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the change by layer, and the share of it that a slower core would scale."""
    before = _stated(base, pattern)
    if not fault.slowdown:
        return np.log(_stated(changed, pattern) / before), np.zeros(len(before))
    core = _core_share(base, pattern)
    grown = 1 + core * (math.exp(fault.slowdown) - 1)
    return np.log(grown), core * math.exp(fault.slowdown) / grown


def _core_share(prediction: Prediction, pattern: _Pattern) -> np.ndarray:
    """Share of each layer's cycles the core spends on its own work."""
    from hwmodels.counts import CAUSE_GROUPS

    def memory(layer_index: int | None) -> float:
        bills = [layer.bill for layer in prediction.layers
                 if layer_index is None or layer.index == layer_index]
        clock = prediction.clock
        whole = sum(bill.cycles(clock) for bill in bills)
        waits = sum(bill.cycles(clock, cause) for bill in bills for cause in CAUSE_GROUPS["memory"])
        return waits / whole if whole else 0.0

    return np.array([1 - memory(index) for index in pattern.layers])


def _compare_counts(fault: Fault, predictions: tuple[Prediction, Prediction, Prediction],
                    pattern: _Pattern, reference: _Pattern | None) -> tuple[
                        list[float], np.ndarray, tuple[str, ...]]:
    """Residuals of counts; the share of the common error each has (1 or 0), and what they were."""
    shares: list[float] = []
    found: list[float] = []
    names: list[str] = []
    executed = [sum(layer.instructions for layer in one.layers) for one in predictions]
    if pattern.instructions and all(executed):
        grows = math.log(executed[2] / executed[1]) + fault.slowdown
        origin = executed[0] if reference is None else reference.instructions
        if origin:
            found.append(math.log(pattern.instructions / origin) - grows)
            shares.append(1.0)
            names.append(f"instructions {pattern.instructions / origin:.2f} x those "
                         f"{'predicted' if reference is None else 'known'}, "
                         f"{math.exp(grows):.2f} x expected")
    missed = [sum(layer.misses for layer in one.layers) for one in predictions]
    looked = max(sum(layer.accesses for layer in one.layers) for one in predictions)
    if pattern.misses is not None and looked:
        least = max(1e-3 * looked, 1.0)  # fewer misses than this are none
        known = missed[0] if reference is None else reference.misses or 0.0
        expected = math.log((missed[2] + least) / (missed[1] + least)) + math.log(known + least)
        found.append(math.log(pattern.misses + least) - expected)
        shares.append(0.0)
        names.append(f"{pattern.misses:,.0f} cache lines filled, "
                     f"{math.exp(expected) - least:,.0f} expected")
    return shares, np.array(found), tuple(names)


def _rank(faults: tuple[Fault, ...], weighed: Sequence[_Weight], pattern: _Pattern,
          errors: ErrorModel, marks: Marks) -> Diagnosis:
    """Apply Bayes' rule and say what speaks for each."""
    priors = prior_of(faults)
    logs = np.array([math.log(prior) + one.log_likelihood
                     for prior, one in zip(priors, weighed, strict=True)])
    chances = np.exp(logs - logs.max())
    chances = chances / chances.sum()
    total = float(pattern.measured.sum())
    found = [Finding(
        fault=fault, prior=prior, probability=float(chance),
        evidence=(_describe_fit(one, total), *one.counted),
        predicted=dict(zip(pattern.layers, one.predicted, strict=True)))
        for fault, prior, chance, one in zip(faults, priors, chances, weighed, strict=True)]
    return Diagnosis(
        findings=tuple(sorted(found, key=lambda finding: -finding.probability)),
        quantity=pattern.quantity, layers=pattern.layers, errors=errors,
        observations=describe_marks(marks),
        indistinct=tuple(fault.name for fault, one in zip(faults, weighed, strict=True)
                         if _is_indistinct(fault, one, weighed[0])))


def _is_indistinct(fault: Fault, weight: _Weight, declared: _Weight) -> bool:
    """Whether neither the fault's effect nor the evidence tells it from what was declared."""
    small = float(np.abs(weight.effect).max()) < NO_EFFECT
    moved = abs(weight.log_likelihood - declared.log_likelihood)
    return fault.deployment is not None and not fault.shifts_clock and small and moved < 1.0


def _describe_fit(weight: _Weight, total: float) -> str:
    spread = math.exp(float(np.std(weight.residual))) - 1
    return (f"measured {total / float(weight.predicted.sum()):.2f} x what it predicts, layers "
            f"apart by {100 * spread:.0f} %")


def explain_rows(diagnosis: Diagnosis, finding: Finding) -> dict[int | None, float]:
    """Return by layer by which share a fault changes what was predicted as declared."""
    declared = next(one for one in diagnosis.findings if one.fault.kind == DECLARED)
    return {index: finding.predicted[index] / declared.predicted[index] - 1
            for index in diagnosis.layers}
