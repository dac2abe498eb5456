"""Which fault of a set-up explains a measurement: the whole pattern over layers, weighed.

Measured is the least of the runs, which interrupts disturb least. Each fault says what every layer
would take; `likelihood` says how far that may be off. Counters of instructions and of cache misses
join the pattern where a core has them; the clock by the host, a drift and a scatter over the runs
are evidence of their own. Bayes' rule gives each fault its probability among all listed: "as
declared", "none of these", and two at once of those that explain most.

References
----------
MacKay, Information Theory, Inference, and Learning Algorithms, chapter 28 (model comparison).
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from calibration.measurement.measurement import Measurement
from hwmodels.errors import TwinError
from twin.attribution.diagnosis.error_model import (
    BINARY,
    HEALTHY_SOURCE,
    LIBRARY,
    STAND_IN,
    ErrorModel,
)
from twin.attribution.diagnosis.evidence import Evidence, list_evidence
from twin.attribution.diagnosis.fault_effects import Effect, Forecasts
from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.faults import (
    COUNTER,
    DECLARED,
    JOINED,
    UNKNOWN,
    Fault,
    join_faults,
    prior_of,
)
from twin.attribution.diagnosis.finding import APART, Diagnosis, Finding, merge_unknown
from twin.attribution.diagnosis.known_right import BUILT_KINDS, SAME_IMAGE, is_one_image
from twin.attribution.diagnosis.likelihood import kernel_errors, price_errors
from twin.attribution.diagnosis.marks import (
    CLOCK_SD,
    Marks,
    clock_hz_of,
    describe_marks,
    may_be_other,
    read_marks,
    repeats_within,
    ruled_out,
)
from twin.attribution.diagnosis.pattern import Pattern, has_counts, make_pattern
from twin.attribution.diagnosis.setup import read_build
from twin.attribution.diagnosis.telling import choose_rivals, tell_apart, tell_otherwise
from twin.attribution.diagnosis.temper import choose_temper
from twin.attribution.diagnosis.weighing import NO_EFFECT, Weight, single_out, weigh
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.attribution.sameness import require_network
from twin.attribution.side import Side
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.learning.calibration import AUTO, Calibration, choose_calibration
from twin.prediction.prediction import Prediction

LEAST = 0.0
"""Percentile of the runs the pattern is of."""

SETTLED = 0.95
"""A kind of fault this probable needs no further measurement."""

ADDED = "what each does alone, added up: not predicted together"
TOGETHER = "predicted together"
"""Of two faults at once."""

AGAINST_HEADER = "the header says another level of optimisation"

WORTH_PREDICTING, MOST_TOGETHER = 0.02, 3
"""Two changes of memories and caches that are so probable at once are predicted together, so many
at most: each takes as long as a fault of its own."""

LOG_WRONG_HEADER = math.log(0.02)
"""How likely a header names another level of optimisation than its image was built with: a build
writes it, and seldom wrongly. Assumed."""

Progress = Callable[[int, int, str], None]

def diagnose(deployment: Deployment, measurement: Measurement, *,
             healthy: Measurement | None = None, stands_in: bool = False,
             calibration: str | Calibration | None = AUTO,
             forecasts: Forecasts | None = None,
             on_progress: Progress | None = None) -> Diagnosis:
    """Rank the faults that could explain a measurement.

    Parameters
    ----------
    deployment : Deployment
        What was asked for.
    measurement : Measurement
        Of the same network, on the same board.
    healthy : Measurement, optional
        Of the same kernels, known to be right: what prices and kernels are off by cancels.
    stands_in : bool
        The deployment's runtime stands in for the one that was measured.
    calibration : str, Calibration or None
        As for `choose_calibration`, or chosen already; None is "none". Learnt prices are those of
        the runtime that was measured, also where another stands in for it.
    forecasts : Forecasts, optional
        Of an earlier diagnosis of the same deployment at the same calibration, used again.
    on_progress : callable, optional
        Told before each fault is predicted: how many were, how many there are, and its name.

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
    forecasts = forecasts if forecasts is not None else Forecasts()
    tell = on_progress or _tell_nobody
    marks = read_marks(measurement, deployment)
    one_image = is_one_image(healthy, measurement)
    listed = tuple(fault for fault in _list(deployment, measurement, marks, forecasts)
                   if not (one_image and fault.kind in BUILT_KINDS)
                   and (fault.kind != COUNTER or fault.counts_all or has_counts(side)))
    faults = tuple(fault for fault in listed if not fault.doubted)
    tell(0, len(faults), DECLARED)
    temperature = side.temperature or "warm"
    base = forecasts.predict((DECLARED, temperature), deployment, prices, temperature)
    ours = side_of_prediction(base)
    require_network(ours, side)
    pattern = make_pattern(ours, side, deployment)
    effects = _foresee(faults, forecasts, base, prices, pattern, tell)
    evidence = Evidence(
        pattern=pattern, marks=marks, declared=effects[0], hidden=_sum_hidden(faults, effects),
        reference=None if healthy is None else _refer(healthy, ours, side, pattern, deployment),
        right=None if healthy is None else read_marks(healthy, deployment),
        errors=choose_errors(deployment, stands_in))
    foresee = partial(_foresee, forecasts=forecasts, base=base, prices=prices, pattern=pattern,
                      tell=tell, begun=len(faults))
    repeats = repeats_within(measurement)
    found = _explain(faults, effects, evidence, forecasts, foresee, repeats)
    if len(listed) > len(faults) and found.stated < SETTLED and next(iter(found.kinds)) != DECLARED:
        # nothing the header allows explains it: what it says may be wrong
        effects += foresee(listed[len(faults):])
        found = _explain(listed, effects, evidence, forecasts, foresee, repeats)
    found = dataclasses.replace(found, rests_on=list_evidence(pattern, measurement, healthy))
    if one_image:
        found = dataclasses.replace(found, observations=(*found.observations, SAME_IMAGE))
    if found.stated >= SETTLED:
        return found
    by_clock = tell_apart(choose_rivals(found), deployment, forecasts, prices, base, pattern)
    return dataclasses.replace(found, telling=by_clock or tell_otherwise(found))


def _list(deployment: Deployment, measurement: Measurement, marks: Marks,
          forecasts: Forecasts) -> tuple[Fault, ...]:
    """Return the faults a measurement leaves possible; last those its header speaks against."""
    stated = may_be_other(measurement, deployment) and bool(measurement.count("cpu_cycles"))
    observed = None if stated else _observe_clock(marks, deployment)
    key = (observed, stated)
    if key not in forecasts.faults:
        forecasts.faults[key] = list_faults(deployment, observed, timed=not stated)
    out, built = ruled_out(measurement, deployment), read_build(deployment, measurement)
    possible = [fault for fault in forecasts.faults[key] if fault.kind not in out]
    against = [fault for fault in possible if fault.kind in built or fault.name in built]
    return (*(fault for fault in possible if fault not in against),
            *(dataclasses.replace(fault, doubted=LOG_WRONG_HEADER) for fault in against))


def _explain(faults: tuple[Fault, ...], effects: Sequence[Effect], evidence: Evidence,
             forecasts: Forecasts, foresee: Callable[[Sequence[Fault]], list[Effect]],
             repeats: float | None) -> Diagnosis:
    """Weigh faults, two of them at once, and layers that are off alone.

    Two at once are added up from what each does, and of those that then explain most, and are
    changes of one deployment, predicted together and weighed again.
    """
    weighed = [weigh(fault, evidence, effect)
               for fault, effect in zip(faults, effects, strict=True)]
    alone = tuple(single_out(faults[0], effects[0], evidence))
    pairs = _pair(faults, effects, weighed, evidence, forecasts)
    both = [weigh(pair, evidence, effect, parts) for pair, effect, parts in pairs]
    all_of_them = (*faults, *(pair for pair, _, _ in pairs), *(one for one, _ in alone))
    singles = [weight for _, weight in alone]
    found = _rank(all_of_them, [*weighed, *both, *singles], evidence, repeats)
    together = _choose_together(found, [pair for pair, _, _ in pairs])
    if not together:
        return found
    foreseen = dict(zip(together, foresee([together[place] for place in together]), strict=True))
    for place, effect in foreseen.items():
        both[place] = weigh(together[place], evidence, effect, pairs[place][2])
    return _rank(all_of_them, [*weighed, *both, *singles], evidence, repeats,
                 {one.name for one in together.values()})


def _choose_together(found: Diagnosis, pairs: Sequence[Fault]) -> dict[int, Fault]:
    """Return the likeliest two at once that one deployment can have, by their place in a list."""
    likely = [one.fault.name for one in found.findings
              if one.fault.changes and JOINED in one.fault.kind and not one.fault.rebuilds
              and one.probability >= WORTH_PREDICTING][:MOST_TOGETHER]
    asked = {place: _deploy_both(pair) for place, pair in enumerate(pairs) if pair.name in likely}
    return {place: pair for place, pair in asked.items() if pair is not None}


def _deploy_both(pair: Fault) -> Fault | None:
    """Return two faults as one deployment; None where they cannot be."""
    assert pair.deployment is not None
    try:
        return dataclasses.replace(pair, deployment=pair.deployment.replace(dict(pair.changes)))
    except TwinError:
        return None


def _foresee(faults: Sequence[Fault], forecasts: Forecasts, base: Prediction,
             prices: Calibration | None, pattern: Pattern, tell: Progress,
             begun: int = 0) -> list[Effect]:
    """Predict what each fault would do, behind so many others."""
    effects, total = [], begun + len(faults)
    for number, fault in enumerate(faults):
        tell(begun + number, total, fault.name)
        effects.append(forecasts.foresee(fault, base, prices, pattern))
    tell(total, total, "")
    return effects


def _sum_hidden(faults: Sequence[Fault], effects: Sequence[Effect]) -> np.ndarray:
    """Logarithm of what a prefetch may hide of each layer."""
    declared = effects[0].logs
    return sum((effect.logs - declared for fault, effect in zip(faults, effects, strict=True)
                if fault.kind == "prefetch"), np.zeros(len(declared)))


def _tell_nobody(done: int, total: int, name: str) -> None:
    """Show no progress."""


def _refer(healthy: Measurement, ours: Side, side: Side, pattern: Pattern,
           deployment: Deployment) -> Pattern:
    """Return the pattern of the measurement known to be right."""
    right = side_of_measurement(healthy, percent=LEAST)
    require_network(ours, right)
    if right.board != side.board:
        raise UsageError(f"the measurement known to be right was taken on {right.board}, the "
                         f"one to diagnose on {side.board}")
    reference = make_pattern(ours, right, deployment)
    if (reference.quantity, reference.layers) != (pattern.quantity, pattern.layers):
        raise UsageError("the measurement known to be right has other layers or counters")
    return reference


def _observe_clock(marks: Marks, deployment: Deployment) -> float | None:
    """Return the clock the host saw, in Hz; the one asked for where it is right."""
    if marks.clock_log is None:
        return None
    right = abs(marks.clock_log) < 3 * CLOCK_SD
    return clock_hz_of(deployment) * (1.0 if right else math.exp(marks.clock_log))


def _choose_prices(deployment: Deployment, measurement: Measurement, stands_in: bool,
                   calibration: str | Calibration | None) -> Calibration | None:
    if not isinstance(calibration, str):
        return calibration
    return choose_calibration(deployment, calibration,
                              runtime=measurement.header.runtime if stands_in else None)


def choose_errors(deployment: Deployment, stands_in: bool) -> ErrorModel:
    """Return how far a prediction may be off, by where its kernels come from."""
    if deployment.runtime.name == "firmware":
        return BINARY
    return STAND_IN if stands_in else LIBRARY


def _pair(faults: tuple[Fault, ...], effects: Sequence[Effect],
          weighed: Sequence[Weight], evidence: Evidence, forecasts: Forecasts,
          ) -> list[tuple[Fault, Effect, tuple[Effect, Effect]]]:
    """Return two faults at once, of each two kinds those that come closest together.

    The size of a fault that explains most by itself is another than beside a second one, so each
    variant is joined with each, and the pair nearest to what was measured stands for its kinds.
    """
    movers = [(fault, effect) for fault, effect, one in zip(faults, effects, weighed, strict=True)
              if fault.kind not in (DECLARED, UNKNOWN, COUNTER)
              and float(np.abs(one.moved).max()) >= NO_EFFECT]
    metric = _metric(evidence)
    best: dict[tuple[str, str], tuple[float, Fault, Effect, tuple[Effect, Effect]]] = {}
    for (first, effect), (second, other) in combinations(movers, 2):
        if first.kind == second.kind or (first.rebuilds and second.rebuilds):
            continue
        if second.rebuilds:
            first, second, effect, other = second, first, other, effect
        joined = forecasts.join(first, second, (effect, other, evidence.declared),
                                evidence.pattern)
        off = _expected_logs(evidence) + joined.logs - np.log(evidence.pattern.measured)
        distance = float(off @ metric @ off)
        kept = best.get((first.kind, second.kind))
        if kept is None or distance < kept[0]:
            best[first.kind, second.kind] = (distance, join_faults(first, second), joined,
                                             (effect, other))
    return [(pair, joined, parts) for _, pair, joined, parts in best.values()]


def _expected_logs(evidence: Evidence) -> np.ndarray:
    """How far each layer was off where it is known to be right; 0 where nothing is."""
    if evidence.reference is None:
        return np.zeros(len(evidence.declared.logs))
    return np.asarray(np.log(evidence.reference.measured) - evidence.declared.logs)


def _metric(evidence: Evidence) -> np.ndarray:
    """Inverse covariance that pairs of one kind are compared by: errors as declared."""
    declared, errors = evidence.declared, evidence.errors
    families = evidence.pattern.families
    spread = kernel_errors(errors, families) + errors.layer**2 * np.eye(len(families))
    if evidence.reference is None:
        spread = spread + price_errors(declared.shares, declared.shares)
    return np.linalg.inv(spread)


def _rank(faults: tuple[Fault, ...], weighed: Sequence[Weight], evidence: Evidence,
          repeats: float | None, together: Collection[str] = ()) -> Diagnosis:
    """Apply Bayes' rule and say what speaks for each."""
    pattern = evidence.pattern
    priors = prior_of(faults)
    chances = choose_temper(evidence.errors, healthy=evidence.reference is not None).chances(
        priors, [one.shape for one in weighed], [one.total for one in weighed],
        [one.marks for one in weighed])
    total = float(pattern.measured.sum())
    found = [Finding(
        fault=fault, prior=prior, probability=float(chance),
        evidence=(fit, *_say_joined(fault, together), *one.counted),
        predicted=dict(zip(pattern.layers, one.predicted, strict=True)))
        for fault, prior, chance, one, fit in zip(
            faults, priors, chances, weighed, _describe_fits(weighed, total), strict=True)]
    errors = evidence.errors if evidence.reference is None else dataclasses.replace(
        evidence.errors, source=HEALTHY_SOURCE)
    return Diagnosis(
        findings=merge_unknown(sorted(found, key=lambda finding: -finding.probability)),
        quantity=pattern.quantity, layers=pattern.layers, errors=errors, measured=total,
        repeats=repeats, counters=pattern.counted, left_out=pattern.left_out,
        observations=describe_marks(evidence.marks),
        indistinct=tuple(fault.name for fault, one in zip(faults, weighed, strict=True)
                         if _is_indistinct(fault, one, weighed[0])),
        healthy=evidence.reference is not None)


def _say_joined(fault: Fault, together: Collection[str]) -> tuple[str, ...]:
    """Say how two at once were foreseen, and what a header says against a fault."""
    said = (TOGETHER if fault.name in together else ADDED,) if JOINED in fault.kind else ()
    return (*said, AGAINST_HEADER) if fault.doubted else said


def _is_indistinct(fault: Fault, weight: Weight, declared: Weight) -> bool:
    """Whether neither the fault's effect nor the evidence tells it from what was declared.

    Never of two at once: each moves a layer alone, so their sum is small only where they undo each
    other, and that was added up and not predicted (the second may do nothing beside the first).
    """
    if JOINED in fault.kind:
        return False
    small = float(np.abs(weight.moved).max()) < NO_EFFECT
    apart = abs(weight.shape + weight.total + weight.marks
                - declared.shape - declared.total - declared.marks)
    return fault.deployment is not None and not fault.shifts_clock and small and apart < 1.0


def _describe_fits(weighed: Sequence[Weight], total: float) -> list[str]:
    """Say how far each is off, with two more digits where several would read alike."""
    said = [_describe_fit(one, total, 0) for one in weighed]
    alike = Counter(said)
    return [text if alike[text] == 1 else _describe_fit(one, total, 2)
            for text, one in zip(said, weighed, strict=True)]


def _describe_fit(weight: Weight, total: float, digits: int) -> str:
    spread = math.exp(float(np.std(weight.residual))) - 1
    return (f"measured {total / float(weight.predicted.sum()):.{2 + digits}f} x what it predicts, "
            f"{APART}{100 * spread:.{digits}f} %")
