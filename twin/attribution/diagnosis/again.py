"""A second measurement of the same board, taken otherwise: at another clock, masked, elsewhere.

    p(A, B | fault) = p(A | fault) p(B | A, fault)

Prices, kernels and the fault's own effect are off alike in both, so what the first leaves under a
fault says what the second is expected to take under it, far more surely than a prediction alone:
normal, given the first. What waits for a memory changes with the clock, what the core does stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from calibration.measurement.measurement import Measurement
from hwmodels.quantities import significant
from twin.attribution.compatibility import CLOCK_SLACK, find_ticks_hz
from twin.attribution.diagnosis.evidence import Evidence
from twin.attribution.diagnosis.fault_effects import Effect, hidden_under
from twin.attribution.diagnosis.faults import MOVED, REPEATED, Fault
from twin.attribution.diagnosis.likelihood import (
    AGAIN,
    FULL_EFFECT,
    effect_errors,
    hiding_errors,
    kernel_errors,
    log_shape,
    log_total,
    own_errors,
    price_errors,
)
from twin.attribution.diagnosis.mark_chances import weigh_marks
from twin.deployment.deployment import Deployment

SAME_CLOCK = 0.01
"""Clocks that differ by less, as a share, are one."""

SAME_IMAGE_SD = 0.001
"""What two measurements of one image may differ by in a layer besides the scatter of their runs:
assumed; where code and data lie is the same."""

PLACED = "placement."
"""How paths of weights and arena begin, among what is otherwise."""

LEAST_FACTOR = math.log(1.3)
"""A layer that is off by less is within what kernels of other shapes are off by."""

LEAST_ALIKE, NOISY = math.log(1.1), 5.0
"""The same of two measurements taken alike, in which only code may lie elsewhere, and how many
standard deviations of their runs besides: assumed."""

MOST_NAMED = 3
"""Layers that are named where measurements contradict each other."""

CHANGED_SD, CHANGED_LAYER_SD = 0.5, 0.1
"""How unsure it is by how much an effect changes from one measurement to the other, as a share of
that change: of all layers, and of each alone. Effects of caches of hidden boards (seeds 20 and 910)
change by 0.8 to 2.0 times what is predicted: what an uncached access costs without wait states is
known of no board."""


def find_changes(deployment: Deployment, measurement: Measurement,
                 first: Measurement) -> dict[str, object]:
    """Return what a header says was otherwise than deployed, by dotted path.

    Ticks of a core whose clock is not stated are of it, or of as much of it as those of the first.
    """
    header, board = measurement.header, deployment.board
    clock, places = board.core.clock, dict(header.placement)
    here_hz, ticks_hz = board.clock(clock).frequency_hz, find_ticks_hz(header.clocks)
    stated = header.clocks.get(clock)
    changes: dict[str, object] = {}
    if stated is None and ticks_hz and not board.clock(clock).settings_hz:
        stated = here_hz * ticks_hz / (find_ticks_hz({
            "timer": first.header.clocks.get("timer", here_hz)}) or here_hz)
        if stated > board.highest_hz.get(clock, math.inf) * (1 + CLOCK_SLACK):
            stated = None
    if stated and abs(stated / here_hz - 1) > SAME_CLOCK:
        changes[f"clocks.{clock}.frequency_hz"] = stated
    for role, memory in (("weights", deployment.weights), ("arena", deployment.arena)):
        if places.get(role, memory) != memory:
            changes[f"placement.{role}"] = places[role]
    return changes


def describe_changes(changes: Mapping[str, object], *, masked: bool = False) -> str:
    """Say what is otherwise in a second measurement."""
    parts = [f"at {value / 1e6:g} MHz" if isinstance(value, float | int) else
            f"with {path.rpartition('.')[2]} in {value}" for path, value in changes.items()]
    return ", ".join([*parts, *(["interrupts masked"] if masked else [])]) or "taken alike"


def vary_clock(fault: Fault, deployment: Deployment,
               changes: Mapping[str, object]) -> Iterator[Fault]:
    """Yield a fault; one of the clock also as far off in a second measurement, and as it stays."""
    yield fault
    clock = deployment.board.core.clock
    path = f"clocks.{clock}.frequency_hz"
    stated = changes.get(path)
    if not fault.shifts_clock or fault.deployment is None or not isinstance(stated, float | int):
        return
    hertz, asked = (one.board.clock(clock).frequency_hz for one in (fault.deployment, deployment))
    for again in (stated * hertz / asked, hertz):
        if abs(again / stated - 1) > SAME_CLOCK:
            yield replace(
                fault, name=f"{fault.name}, {again / 1e6:.3g} MHz in the second",
                again=((path, again),))


def is_masked(measurement: Measurement) -> bool:
    """Whether interrupts were masked."""
    return measurement.header.facts.get("interrupts") == "masked"


def alter(fault: Fault, deployment: Deployment, changes: Mapping[str, object], *,
          masked: bool = False) -> Fault:
    """Return a fault of a board that is taken otherwise; raises `TwinError` where it cannot be."""
    if masked and fault.scatters:
        fault = replace(fault, scatters=False, stretch=0.0)
    waits = deployment.replace(dict(changes)).board.memory if fault.longer else None
    longer = {f"memories.{name}.wait_states": round(times * waits(name).wait_states)
              for name, times in fault.longer if waits}
    return replace(
        fault, deployment=(fault.deployment or deployment).replace({**changes, **longer}),
        versus=fault.versus and fault.versus.replace(dict(changes)))


def weigh_again(fault: Fault, evidence: Evidence, effect: Effect, parts: Sequence[Effect],
                first: np.ndarray) -> float:
    """Return the log likelihood of a second measurement, given the first.

    Parameters
    ----------
    fault, effect
        The hypothesis, and what it does to both.
    evidence
        Of the first, with the second in it.
    parts
        Of two faults at once, what each does alone.
    first
        Shape (layers,): logarithm of the first over what is expected of it.
    """
    second, there = evidence.also, effect.also
    if second is None or there is None:
        return 0.0
    if evidence.masked:
        fault = replace(fault, scatters=False, stretch=0.0)
    marks = weigh_marks(fault, second.marks)
    moves = [(part.unsure_move(evidence.declared), part.also.unsure_move(second.declared))
             for part in parts or (effect,) if part.also is not None]
    return marks + _weigh_given(fault, evidence, second, (effect, there), moves, first)


def is_other(evidence: Evidence, second: Evidence) -> bool:
    """Whether something else is predicted of a second measurement, as it was taken otherwise."""
    return not np.array_equal(second.declared.logs, evidence.declared.logs)


def _weigh_given(fault: Fault, evidence: Evidence, second: Evidence,
                 effects: tuple[Effect, Effect], moves: Sequence[tuple[np.ndarray, np.ndarray]],
                 first: np.ndarray) -> float:
    """Log likelihood of the second pattern; arrays of both measurements stand one after another."""
    errors, count, families = evidence.errors, len(first), evidence.pattern.families
    shares = np.concatenate([one.shares for one in effects])
    # an effect is as large in both where the hypothesis changes nothing from one to the other
    most = np.abs(effects[1].logs - effects[0].logs) + (math.inf if second.placed else 0.0)
    if fault.rebuilds and len(moves) == 1:  # of other kernels it is not known how much waits
        most = np.maximum(most, np.abs(second.declared.logs - evidence.declared.logs))
    moves = [(one, one + np.clip(other - one, -most, most)) for one, other in moves]
    both = replace(effects[0], core=np.concatenate([one.core for one in effects]),
                   waits=np.concatenate([one.waits for one in effects]))
    shared, own = effect_errors(
        fault, both, [np.concatenate(move) for move in moves], families * 2, evidence.marks,
        np.concatenate([evidence.declared.density, second.declared.density]), errors)
    hidden = np.concatenate([hidden_under(effects[0], evidence.declared),
                             hidden_under(effects[1], second.declared)])
    shared = (shared + price_errors(shares, shares) + kernel_errors(errors, families * 2)
              + hiding_errors(hidden, hidden))
    here, there = slice(None, count), slice(count, None)
    layer, noise = own[here] + errors.layer**2, evidence.marks.noise**2
    grown = layer * own_errors(first, shared[here, here] + noise * np.eye(count), layer)[1]
    across = shared[here, there] + np.diag(grown)
    repeated = (REPEATED if second.placed else SAME_IMAGE_SD) ** 2
    gain = np.linalg.solve(shared[here, here] + np.diag(grown + repeated + noise), across)
    spread = shared[there, there] + np.diag(grown) - across.T @ gain
    same = np.equal.outer(np.array(families), np.array(families))
    for one, other in moves:
        change, size = other - one, max(float(np.linalg.norm(other)), 1e-9)
        scaled = other * min(1.0, float(np.linalg.norm(change)) / size)  # off by its own factor
        spread = spread + (CHANGED_SD**2 + errors.effect**2 * same) * np.outer(
            change, change) + CHANGED_SD**2 * np.outer(scaled, scaled)
    residual = np.log(second.pattern.measured) - effects[1].logs - gain.T @ first
    alone = repeated + second.marks.noise**2 + sum(
        (CHANGED_LAYER_SD * (other - one)) ** 2 for one, other in moves)
    if is_other(evidence, second):
        spread = spread + MOVED.common**2
    # and is predicted without error but for all layers alike in those it does not change
    scales = np.minimum(1.0, most / FULL_EFFECT)
    spread = spread + MOVED.family**2 * same * np.outer(scales, scales)
    alone = alone + (scales * MOVED.layer) ** 2
    if second.placed:  # what leaves a memory is as unsure as what a fault moves
        placed = second.declared.logs - evidence.declared.logs
        spread = spread + CHANGED_SD**2 * np.outer(placed, placed)
    measured = second.pattern.measured
    _, grown, _ = own_errors(residual, spread, alone)
    return (AGAIN.shape * log_shape(residual, spread, alone, grown, measured)
            + log_total(residual, spread + np.diag(alone), measured))


def describe_contradiction(evidence: Evidence, changed: np.ndarray,
                           shift: np.ndarray) -> tuple[str, ...]:
    """Return which layers two measurements differ in by more than an explanation; () of none.

    Parameters
    ----------
    changed, shift
        As `Weight` has them.
    """
    second = evidence.also
    if second is None:
        return ()
    first, other = (np.log(one.pattern.measured) - one.declared.logs for one in (evidence, second))
    far = np.abs(changed) > np.abs(shift) + (
        LEAST_FACTOR if evidence.masked or is_other(evidence, second) else
        LEAST_ALIKE + NOISY * math.hypot(evidence.marks.noise, second.marks.noise))
    places = sorted(np.flatnonzero(far).tolist(), key=lambda place: -abs(changed[place]))
    texts = [f"layer {evidence.pattern.layers[place]} ({evidence.pattern.families[place]}) takes "
            f"{significant(math.exp(first[place]))} x what is predicted in the first, "
            f"{significant(math.exp(other[place]))} x in the second"
            for place in places[:MOST_NAMED]]
    more = f"; {len(places) - MOST_NAMED} more differ" if len(places) > MOST_NAMED else ""
    return (f"the second measurement contradicts the first: {'; '.join(texts)}{more}",) * bool(
        places)
