"""Which fault of a set-up explains a measurement: the whole pattern over layers, weighed.

Measured is the least of the runs, which interrupts disturb least, or their median where they drift
or step. Each fault says what every layer
would take; `likelihood` says how far that may be off. Counters of instructions and of cache misses
join the pattern where a core has them; the clock by the host, a drift and a scatter over the runs
are evidence of their own. Bayes' rule gives each fault its probability among all listed: "as
declared", "none of these", and two at once of those that explain most.

References
----------
MacKay, Information Theory, Inference, and Learning Algorithms, chapter 28 (model comparison).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from calibration.measurement.measurement import Measurement
from hwmodels.errors import did_you_mean
from hwmodels.isa import load_isa
from twin.attribution.compatibility import require_network_and_board
from twin.attribution.diagnosis.again import (
    PLACED,
    describe_changes,
    describe_contradiction,
    find_changes,
    is_masked,
    is_other,
    vary_clock,
)
from twin.attribution.diagnosis.case import Again, Case, Progress
from twin.attribution.diagnosis.evidence import Evidence, list_evidence
from twin.attribution.diagnosis.fault_effects import (
    Effect,
    Forecasts,
    Pattern,
    expose,
    has_counts,
    join_effects,
    make_pattern,
)
from twin.attribution.diagnosis.fault_list import list_faults, list_fills
from twin.attribution.diagnosis.faults import (
    BINARY,
    BOARD,
    COUNTER,
    DECLARED,
    FIRST_RUN,
    LIBRARY,
    NETWORK,
    OPEN_LIBRARY,
    OTHER_WORK,
    RIVAL,
    STAND_IN,
    UNIT,
    UNKNOWN,
    ErrorModel,
    Fault,
    join_faults,
)
from twin.attribution.diagnosis.finding import Diagnosis
from twin.attribution.diagnosis.likelihood import choose_temper
from twin.attribution.diagnosis.log_faults import list_others
from twin.attribution.diagnosis.marks import (
    Marks,
    clock_hz_of,
    may_be_other,
    read_marks,
    repeats_within,
    ruled_out,
)
from twin.attribution.diagnosis.outlook import DATA
from twin.attribution.diagnosis.ranking import Weighed, rank
from twin.attribution.diagnosis.remedies import state_core, state_ticks, stop_others
from twin.attribution.diagnosis.setup import (
    BUILT_KINDS,
    SAME_IMAGE,
    choose_prices,
    is_log,
    is_one_image,
    measured_runtime,
    read_build,
)
from twin.attribution.diagnosis.telling import LEAST as NOTABLE
from twin.attribution.diagnosis.telling import (
    OTHERWISE,
    TIMED,
    choose_rivals,
    tell_apart,
    tell_otherwise,
)
from twin.attribution.diagnosis.weighing import NO_EFFECT, Weight, find_errors, single_out, weigh
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.attribution.side import Side
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.calibration import AUTO, Calibration

LEAST, TYPICAL = 0.0, 50.0
"""Percentiles of the runs the pattern is of: the second where they drift, step, or scatter evenly.
"""

NEAR = 4.0
"""Sizes of two faults at once that are less likely by more than this logarithm than others of the
same kinds are not weighed."""

SETTLED = 0.95
"""A kind of fault this probable needs no further measurement."""


EXPOSED = (DECLARED, "placement", "cache off", "wait states", "flash width")
"""Kinds under which what is hidden of waits is predicted; of others it is as much as declared."""

LOG_WRONG_HEADER = math.log(0.02)
"""How likely a header names another level of optimisation than its image was built with: a build
writes it, and seldom wrongly. Assumed."""


BEGINS = "other work begins during the runs"
"""What runs that drift are by a core's own cycles: a clock that slows down adds none."""

SLOW_SERVED = "interrupts, counted in the slower runs"
"""What rare ones are where the runs take as long as they are many."""


def diagnose(deployment: Deployment, measurement: Measurement, *,
             healthy: Measurement | None = None, also: Measurement | None = None,
             stands_in: bool = False, priors: Mapping[str, float] | None = None,
             calibration: str | Calibration | None = AUTO,
             forecasts: Forecasts | None = None,
             on_progress: Progress | None = None) -> Diagnosis:
    """Rank the faults that could explain a measurement.

    Parameters
    ----------
    measurement
        Of the same network, on the same board.
    healthy
        Of the same kernels, known to be right: what prices and kernels are off by cancels.
    also
        Of the same board, taken otherwise: another clock, masked, weights elsewhere.
    priors
        Probability of a kind before any evidence, in place of what is assumed.
    stands_in
        The deployment's runtime stands in for the one that was measured.
    calibration
        As for `choose_calibration`, or chosen already; None is "none". Learnt prices are those of
        the runtime that was measured, also where another stands in for it.
    forecasts
        Of an earlier diagnosis of the same deployment at the same calibration, used again.
    on_progress
        Called before each fault is predicted: how many were, how many there are, and its name.

    Returns
    -------
    Diagnosis
        Probabilities sum to 1.

    Raises
    ------
    UsageError
        When the measurement is of another network, or has nothing to compare.
    """
    case, listed = _open(deployment, measurement, calibration,
                         forecasts if forecasts is not None else Forecasts(),
                         on_progress or (lambda *_: None), is_one_image(healthy, measurement), also)
    if case.also is not None and case.pattern.quantity == "time":
        listed = tuple(one for fault in listed
                       for one in vary_clock(fault, deployment, case.also.changes))
    _check_priors(priors or {}, {fault.kind for fault in listed})
    faults = tuple(fault for fault in listed if not fault.doubted)
    effects = _expose(faults, case.foresee(faults), case)
    evidence = Evidence(
        pattern=case.pattern, marks=read_marks(measurement, deployment), declared=effects[0],
        reference=_refer(healthy, case),
        right=None if healthy is None else read_marks(healthy, deployment),
        errors=choose_errors(deployment, stands_in), priors=priors or {})
    evidence = evidence if also is None else _add_second(evidence, case, effects[0])
    started = len(faults)
    repeats = [repeats_within(one) for one in (measurement, also) if one is not None]
    found = _explain(faults, effects, evidence, repeats)
    if len(listed) > started and found.stated < SETTLED and (
            found.verdict.fault.kind != DECLARED or found.is_far):
        # nothing the header allows explains it: what it says may be wrong
        effects += case.foresee(listed[started:], started)
        found = _explain(listed, effects, evidence, repeats)
    return _add_basis(found, case, measurement, healthy, evidence.marks)


def _check_priors(priors: Mapping[str, float], kinds: set[str]) -> None:
    """Refuse a prior of a kind that is not possible."""
    if unknown := set(priors) - kinds:
        raise UsageError(f"--prior {min(unknown)}: is no kind that is possible here; "
                         + did_you_mean(min(unknown), kinds))


def _add_basis(found: Diagnosis, case: Case, measurement: Measurement,
               healthy: Measurement | None, marks: Marks) -> Diagnosis:
    """Say what a diagnosis rests on, and where it is not sure what to measure next."""
    second = () if case.also is None else ("a second measurement (" + describe_changes(
        case.also.changes, masked=is_masked(case.also.measurement)) + ")",)
    same = (SAME_IMAGE,) if is_one_image(healthy, measurement) else ()
    origin = measurement.header.kind
    found = replace(found, origin=origin,
                    second=found.second and replace(found.second, origin=origin))
    return replace(
        found, rests_on=(*list_evidence(case.pattern, measurement, healthy), *second),
        observations=(*found.observations, *same),
        telling=found.telling if found.stated >= SETTLED and len(found.members) < 2 else _tell(
            found, case, marks))


def _open(deployment: Deployment, measurement: Measurement,
          calibration: str | Calibration | None, forecasts: Forecasts, tell: Progress,
          one_image: bool, also: Measurement | None) -> tuple[Case, tuple[Fault, ...]]:
    """Predict as declared, and list what a measurement leaves possible; what is doubted last."""
    marks = read_marks(measurement, deployment)
    side = _read_side(measurement, marks)
    prices = (choose_prices(deployment, measurement, calibration)
              if isinstance(calibration, str) else calibration)
    listed = tuple(fault for fault in _list(deployment, measurement, marks, forecasts)
                   if not (one_image and fault.kind in BUILT_KINDS)
                   and (fault.kind != COUNTER or fault.counts_all or has_counts(side)))
    tell(0, sum(not fault.doubted for fault in listed), DECLARED)
    temperature = side.temperature or "warm"
    base = forecasts.predict((DECLARED, temperature), deployment, prices, temperature)
    ours = side_of_prediction(base)
    require_network_and_board(ours, side)
    case = Case(deployment=deployment, prices=prices, base=base, ours=ours, theirs=side,
                pattern=make_pattern(ours, side, deployment), forecasts=forecasts, tell=tell)
    return (case if also is None else replace(
        case, also=_open_second(case, also, measurement)),
            listed)


def _read_side(measurement: Measurement, marks: Marks) -> Side:
    drifts = bool(marks.drift) and not marks.served  # fewest interrupts disturb the least of runs
    if marks.first:
        first = measurement.samples[0].run
        measurement = replace(measurement, samples=tuple(
            one for one in measurement.samples if one.run != first))
    return side_of_measurement(
        measurement, percent=TYPICAL if drifts or marks.even or marks.first else LEAST)


def _open_second(case: Case, also: Measurement, first: Measurement) -> Again:
    """Predict the declared set-up as a second measurement was taken."""
    changes = find_changes(case.deployment, also, first)
    forecasts = case.forecasts.second.setdefault(
        describe_changes(changes, masked=is_masked(also)), Forecasts())
    deployment = case.deployment.replace(changes) if changes else case.deployment
    base = forecasts.predict((DECLARED, case.base.temperature), deployment, case.prices,
                             case.base.temperature)
    pattern = _read_beside(case, also, side_of_prediction(base), deployment, "second measurement")
    return Again(measurement=also, changes=changes, base=base, pattern=pattern, forecasts=forecasts)


def _add_second(evidence: Evidence, case: Case, declared: Effect) -> Evidence:
    """Return the evidence with that of a second measurement in it."""
    assert case.also is not None and declared.also is not None
    measurement = case.also.measurement
    own = replace(
        evidence, pattern=case.also.pattern, declared=declared.also, reference=None, right=None,
        placed=any(path.startswith(PLACED) for path in case.also.changes),
        marks=replace(read_marks(measurement, case.also.base.deployment),
                      ticks_hz=None))  # no other clock than the first's
    if is_masked(measurement):  # its scatter is that without interrupts
        return replace(evidence, also=own, masked=True, right=evidence.right or own.marks)
    # how far a board's runs scatter says the same twice
    once = replace(own, marks=replace(own.marks, scatter=None, loose=None, first=None))
    return replace(evidence, also=once, masked=False)


def _tell(found: Diagnosis, case: Case, marks: Marks) -> str:
    """Say which measurement, or statement, distinguishes the likeliest explanations."""
    def tell(rivals: Sequence[Fault]) -> str:
        return tell_apart(rivals, case.deployment, case.forecasts, case.prices, case.base,
                          case.pattern, case.also.changes if case.also else {})

    if by_clock := tell(choose_rivals(found)):
        return by_clock
    # of "as declared" no two rivals are likeliest: what distinguishes it from any of them helps
    foreseen = [one.fault for one in found.findings if one.fault.deployment is not None
                and one.fault.name in found.not_distinguishable and not one.fault.shifts_clock]
    rival = next((kind for kind in found.kinds if kind not in (UNKNOWN, DECLARED)), "")
    timed = OTHERWISE.get(rival) == TIMED and found.origin == "measured"
    besides = "" if timed or not foreseen or case.also is not None else tell(
        [found.verdict.fault, foreseen[0]])
    clocks = [clock_hz_of(one.fault.deployment) for one in found.findings
              if one.fault.shifts_clock and one.fault.deployment
              and found.kinds[one.kind] >= NOTABLE]
    ticks = "" if not marks.ticks_hz else (
        state_ticks(marks.ticks_hz) if not marks.own_ticks(marks.core_hz) else
        state_core(clocks[0]) if clocks else "")
    return "; or ".join(filter(None, (
        tell_otherwise(found, ticks, native=_is_native(case.deployment)), besides)))


def _is_native(deployment: Deployment) -> bool:
    return load_isa(deployment.board.core.isa).code.native


def _list(deployment: Deployment, measurement: Measurement, marks: Marks,
          forecasts: Forecasts) -> tuple[Fault, ...]:
    """Return the faults a measurement leaves possible; last those its header speaks against."""
    stated = may_be_other(measurement, deployment) and bool(measurement.count("cpu_cycles"))
    observed = None if stated else _observe_clock(marks, deployment)
    key = (observed, marks.clock_sd, stated, runtime := measured_runtime(measurement),
           marks.ticks_hz, log := is_log(measurement, deployment))
    if key not in forecasts.faults:
        forecasts.faults[key] = (
            *list_faults(deployment, observed, timed=not stated, clock_sd=marks.clock_sd,
                         stated=runtime, ticks_hz=marks.ticks_hz),
            *(list_others(deployment, runtime) if log else ()))
    out = ruled_out(measurement, deployment) | frozenset(
        DATA["bare"] if _is_native(deployment) else ())
    built = read_build(deployment, measurement)
    possible = [fault for fault in forecasts.faults[key] if fault.kind not in out]
    if measurement.count("cpu_cycles"):
        possible = [replace(fault, kind=OTHER_WORK, name=BEGINS, remedy=stop_others(deployment))
                    if fault.drifts else fault for fault in possible]
    if marks.served:
        possible = [replace(fault, name=SLOW_SERVED) if fault.scatters and not fault.stretch
                    else fault for fault in possible]
    if marks.first:
        possible.append(Fault(
            kind=FIRST_RUN, name=f"the first run alone is slow, {100 * marks.first.share:+.0f} %",
            remedy="report it apart, as cold (caches, flash buffers, allocation), or make warm-up "
                   "runs before it (twin measure --warmup)"))
    against = [fault for fault in possible if fault.kind in built or fault.name in built]
    return (*(fault for fault in possible if fault not in against),
            *(replace(fault, doubted=LOG_WRONG_HEADER) for fault in against))


def _explain(faults: tuple[Fault, ...], effects: Sequence[Effect], evidence: Evidence,
             repeats: Sequence[float | None]) -> Diagnosis:
    """Rank them; where a second measurement contradicts the first, by what each is by itself.

    One that was taken alike and is slower is weighed beside the first.
    """
    first, second = _weigh_all(faults, effects, evidence), None
    declared, also = first[1][0], evidence.also
    if also and describe_contradiction(evidence, declared.changed, declared.shift):
        if not is_other(evidence, also) and (
                also.pattern.measured.sum() > evidence.pattern.measured.sum()):
            also = replace(also, reference=evidence.pattern, right=evidence.marks)
            evidence = replace(evidence, also=also)
        second = _weigh_all(faults, [one.also or one for one in effects], also)
    return rank(first, evidence, repeats, second)


def _weigh_all(faults: tuple[Fault, ...], effects: Sequence[Effect],
               evidence: Evidence) -> Weighed:
    """Weigh faults, two of them at once, and layers that are off alone."""
    weighed = [weigh(fault, evidence, effect)
               for fault, effect in zip(faults, effects, strict=True)]
    bases = [one for one in zip(faults, effects, strict=True) if one[0].kind in (DECLARED, RIVAL)]
    alone = tuple(one for fault, effect in bases
                  for one in single_out(fault, effect, evidence, len(bases)))
    pairs = [_choose_size([(pair, weigh(pair, evidence, both, parts))
                           for pair, both, parts in sizes], evidence)
             for sizes in _pair(faults, effects, weighed, evidence)]
    return ((*faults, *(pair for pair, _ in pairs), *(one for one, _ in alone)),
            [*weighed, *(weight for _, weight in pairs), *(weight for _, weight in alone)])


def _choose_size(sizes: Sequence[tuple[Fault, Weight]],
                 evidence: Evidence) -> tuple[Fault, Weight]:
    """Return the likeliest size of two faults at once; it counts once for each as likely."""
    shape = choose_temper(evidence.errors, healthy=evidence.reference is not None).shape
    logs = np.array([weight.log(shape) for _, weight in sizes])
    pair, weight = sizes[int(np.argmax(logs))]
    return replace(pair, sizes=float(np.exp(logs - logs.max()).sum())), weight


def _expose(faults: Sequence[Fault], effects: list[Effect], case: Case) -> list[Effect]:
    """Say what a prefetch and a cache's fills may hide as declared, and where a fault moves it."""
    ahead = [effect for fault, effect in zip(faults, effects, strict=True)
             if fault.kind == "prefetch" and fault.unhides]
    return [expose(effect, effects[0], () if fault.unhides else ahead, case.foresee(
                [replace(fill, name=f"{fault.name}: {fill.name}",
                         longer=() if fault.kind == "wait states" else fill.longer)
                 for fill in list_fills(fault.deployment or case.deployment)], len(faults)))
            if fault.unhides or fault.kind in EXPOSED else effect
            for fault, effect in zip(faults, effects, strict=True)]


def _refer(healthy: Measurement | None, case: Case) -> Pattern | None:
    """Return the pattern of the measurement known to be right, if there is one."""
    if healthy is None:
        return None
    if healthy.header.board != case.theirs.board:
        raise UsageError(f"the measurement known to be right was taken on {healthy.header.board}, "
                         f"the one to diagnose on {case.theirs.board}")
    return _read_beside(case, healthy, case.ours, case.deployment, "measurement known to be right")


def _read_beside(case: Case, measurement: Measurement, ours: Side, deployment: Deployment,
                 what: str) -> Pattern:
    """Return the pattern of another measurement of the same layers."""
    side = _read_side(measurement, read_marks(measurement, deployment))
    require_network_and_board(ours, side)
    pattern = make_pattern(ours, side, deployment, within=case.pattern.layers)
    if (pattern.quantity, pattern.layers) != (case.pattern.quantity, case.pattern.layers):
        raise UsageError(f"the {what} has other layers or counters than the one to diagnose")
    return pattern


def _observe_clock(marks: Marks, deployment: Deployment) -> float | None:
    """Return the clock the host saw, in Hz; the one asked for where it is right."""
    if marks.clock_log is None:
        return None
    return clock_hz_of(deployment) * (1.0 if marks.is_clock_right else math.exp(marks.clock_log))


def choose_errors(deployment: Deployment, stands_in: bool) -> ErrorModel:
    """Return how far a prediction may be off, by where its kernels come from."""
    if deployment.runtime.name == "firmware":
        return BINARY
    return (STAND_IN if stands_in else
            OPEN_LIBRARY if deployment.runtime.structure == "open" else LIBRARY)


def _pair(faults: tuple[Fault, ...], effects: Sequence[Effect], weighed: Sequence[Weight],
          evidence: Evidence) -> list[list[tuple[Fault, Effect, tuple[Effect, Effect]]]]:
    """Return two faults at once, of each two kinds the sizes that come about as close.

    The size of a fault that explains most by itself is another than beside a second one, so each
    variant is joined with each. Which come close is seen in the first measurement alone; a second
    one decides among them.
    """
    movers = [(fault, effect) for fault, effect, one in zip(faults, effects, weighed, strict=True)
              if fault.kind not in (DECLARED, UNKNOWN, COUNTER, UNIT, NETWORK, BOARD, RIVAL)
              and float(np.abs(one.moved).max()) >= NO_EFFECT]
    share = choose_temper(evidence.errors, healthy=evidence.reference is not None).shape / 2
    found: dict[tuple[str, str], list[tuple[float, Fault, Effect, tuple[Effect, Effect]]]] = {}
    for (first, effect), (second, other) in combinations(movers, 2):
        if first.kind == second.kind or (first.rebuilds and second.rebuilds):
            continue
        if second.rebuilds:
            first, second, effect, other = second, first, other, effect
        pair = join_faults(first, second)
        joined = join_effects(effect, other, evidence.declared, rebuilt=first.rebuilds)
        left = find_errors(pair, evidence, joined, (effect, other))
        whole = left.shared + np.diag(left.own)
        found.setdefault((first.kind, second.kind), []).append((
            share * float(left.residual @ np.linalg.solve(whole, left.residual)
                          + np.linalg.slogdet(whole)[1]), pair, joined, (effect, other)))
    return [[row[1:] for row in rows if row[0] < min(rows, key=lambda one: one[0])[0] + NEAR]
            for rows in found.values()]
