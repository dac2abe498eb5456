"""How likely what was measured is under one fault, or two: pattern, total, counts and runs.

One layer may take another time alone, all others as declared: a fault made of what is left. What a
single layer is off by is no price, no cache and no level of optimisation, which reach every layer
of its kind. The pattern with that layer's own error taken out is weighed as declared, and the error
by how likely a fault of one layer is to be so large. A layer so far off is then no longer called
"as declared": the Student tails that keep it from ruling a state out stand for this fault.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy import ndarray

from hwmodels.frozen import entity
from hwmodels.quantities import significant
from twin.attribution.diagnosis.again import LEAST_FACTOR, weigh_again
from twin.attribution.diagnosis.evidence import Evidence, compare_counts, describe_counts
from twin.attribution.diagnosis.fault_effects import Effect, hidden_under
from twin.attribution.diagnosis.faults import (
    ONE_LAYER,
    ONE_OPERATOR,
    OTHER_IMAGE,
    REPEATED,
    RIVAL,
    UNKNOWN,
    Fault,
)
from twin.attribution.diagnosis.likelihood import (
    LEAST_CHANCE,
    effect_errors,
    hiding_errors,
    kernel_errors,
    log_apart,
    log_direction,
    log_shape,
    log_student,
    log_total,
    own_errors,
    price_errors,
)
from twin.attribution.diagnosis.mark_chances import weigh_marks
from twin.attribution.diagnosis.overhead import list_overheads

NO_EFFECT = 0.01
"""A fault that changes no layer by more, as a logarithm, cannot be distinguished from its
absence."""

EXACT = 0.002
"""What changes the whole by less, as a logarithm, is neither faster nor slower."""


@entity
class Weight:
    """Log likelihood of a fault: by shape and counts, total, what runs show; what it leaves.

    Parameters
    ----------
    changed
        Shape (layers,): what it leaves of a second measurement, less what it leaves of the first,
        as logarithms; 0 without one.
    shift
        Shape (layers,): by how much its effect changes from the first to the second; of another
        clock, which changes all layers alike, what a layer does besides.
    apart
        How far its errors leave layers apart, as the standard deviation of a logarithm.
    again
        Of `marks`, what a second measurement adds.
    """

    shape: float
    total: float
    marks: float
    residual: ndarray
    moved: ndarray
    predicted: ndarray
    counted: tuple[str, ...]
    changed: ndarray
    shift: ndarray
    apart: float = 0.0
    again: float = 0.0

    def log(self, share: float = 1.0) -> float:
        """Return the log likelihood in all, its shape by the share a temper gives it."""
        return share * self.shape + self.total + self.marks


@entity
class Errors:
    """What is left under a fault, and how far it may be off.

    Parameters
    ----------
    expected, residual
        Shape (layers,): logarithm of what each would take, and of measured over that.
    shared
        Shape (layers, layers): covariance of errors layers share, and of what the fault does.
    own
        Shape (layers,): variance of each layer's own error.
    fault_shared, fault_own
        Of the last two, what the fault's effect adds.
    """

    expected: ndarray
    residual: ndarray
    shared: ndarray
    own: ndarray
    fault_shared: ndarray
    fault_own: ndarray


def find_errors(fault: Fault, evidence: Evidence, effect: Effect,
                 parts: Sequence[Effect] = ()) -> Errors:
    """Return how far what a fault, or two, predicts may be off."""
    pattern, reference, declared = evidence.pattern, evidence.reference, evidence.declared
    moves = [part.unsure_move(declared) for part in parts or (effect,)]
    fault_shared, fault_own = effect_errors(fault, effect, moves, pattern.families, evidence.marks,
                                            declared.density, evidence.errors)
    hidden = hidden_under(effect, declared)
    # prices, kernels, and how much a prefetch hides, are unsure alike under each fault
    spread = (fault_shared + price_errors(effect.shares, effect.shares)
              + hiding_errors(hidden, hidden)
              + kernel_errors(evidence.errors, pattern.families))
    expected = effect.logs
    if reference is None:
        own = fault_own + evidence.errors.layer**2 + evidence.marks.noise**2
    else:
        expected, spread = _set_beside(fault, effect, spread, evidence)
        right = evidence.right.noise if evidence.right else 0.0
        own = (fault_own + REPEATED**2 + evidence.marks.noise**2 + right**2
               + OTHER_IMAGE**2 * (fault.errors is not None))
    return Errors(expected=expected, residual=np.log(pattern.measured) - expected, shared=spread,
                  own=own, fault_shared=fault_shared, fault_own=fault_own)


def weigh(fault: Fault, evidence: Evidence, effect: Effect, parts: Sequence[Effect] = ()) -> Weight:
    """Return how likely the pattern, the counts and the marks are under a fault, or two.

    Parameters
    ----------
    fault, effect
        The hypothesis, and what it does.
    evidence
        What was measured, and how far predictions may be off.
    parts
        Of two faults at once, what each does alone.
    """
    measured, reference = evidence.pattern.measured, evidence.reference
    moved = effect.logs - evidence.declared.logs
    left = find_errors(fault, evidence, effect, parts)
    whole = left.shared + np.diag(left.own)
    total = log_total(left.residual, whole, measured,
                      1.0 if reference is not None or fault.kind == UNKNOWN
                      else evidence.errors.faster)
    errors, grown, _ = own_errors(left.residual, left.shared, left.own)
    shape = log_shape(left.residual, left.shared, left.own, grown, measured)
    marks = weigh_marks(fault, evidence.marks, evidence.right) + fault.doubted
    if fault.kind != UNKNOWN and not fault.rebuilds:
        marks += log_apart(errors, left.own, are_far(errors, left.own, evidence))
    if float(np.abs(moved).max()) >= NO_EFFECT:
        doing = left.fault_shared + np.diag(left.fault_own)
        marks += log_direction(left.residual, moved, doing, whole, measured)
    if reference is None and fault.kind not in (UNKNOWN, ONE_LAYER, ONE_OPERATOR):
        declared = np.exp(evidence.declared.logs).sum()
        does = math.log(np.exp(effect.logs).sum() / declared)
        gap = math.log(measured.sum() / declared)
        if does * gap < 0 and abs(does) > EXACT and not (
                -FASTER * evidence.errors.common < gap < SLOWER * evidence.errors.common):
            marks += math.log(LEAST_CHANCE)
    again = weigh_again(fault, evidence, effect, parts, left.residual)
    marks += again
    for off, sd in compare_counts(fault, effect, evidence):
        shape += log_student(off, sd)
    changed = shift = np.zeros(len(measured))
    if evidence.also is not None and effect.also is not None:
        changed = np.log(evidence.also.pattern.measured / measured) - effect.also.logs + effect.logs
        shift = effect.also.logs - evidence.also.declared.logs - moved
        shift = shift - fault.shifts_clock * np.median(shift)
    return Weight(shape=shape, total=total, marks=marks, moved=moved, residual=left.residual,
                  predicted=np.exp(left.expected), counted=describe_counts(effect, evidence),
                  changed=changed, shift=shift, again=again,
                  apart=math.sqrt(np.trace(whole) / len(whole) - whole.mean()))


def single_out(base: Fault, effect: Effect, evidence: Evidence,
               bases: int) -> Iterator[tuple[Fault, Weight]]:
    """Yield layers off alone, or by a constant, weighed as declared, or of another library else.

    Parameters
    ----------
    base, effect
        The hypothesis that nothing else is wrong, and what it predicts.
    bases
        How many such hypotheses there are.
    """
    left = find_errors(base, evidence, effect)
    library = f", {base.name}" if base.kind == RIVAL else ""
    for fault, moved, density in (*list_layers(evidence, effect, left, library),
                                  *list_overheads(evidence, effect, library)):
        weight = weigh(base, evidence, moved)
        fault = replace(fault, places=fault.places * bases)
        # beside a healthy run it counts by the share the pattern it explains away counts by
        yield fault, (replace(weight, marks=weight.marks + density)
                      if evidence.reference is None else
                      replace(weight, shape=weight.shape + density))


def _set_beside(fault: Fault, effect: Effect, spread: ndarray, evidence: Evidence,
                ) -> tuple[ndarray, ndarray]:
    """Return what is expected, and how surely, beside a measurement known to be right.

    Prices and kernels are off by the same in both; what is left is normal, given the other.
    """
    assert evidence.reference is not None
    declared, errors = evidence.declared, evidence.errors
    families = evidence.pattern.families
    known = np.log(evidence.reference.measured) - declared.logs
    shared = kernel_errors(errors, families)
    hidden = hidden_under(declared, declared)
    right = price_errors(declared.shares, declared.shares) + shared + hiding_errors(hidden, hidden)
    own = np.full(len(known), errors.layer**2)
    _, grown, _ = own_errors(known, right, own)
    own = np.diag(own * grown)
    right, spread = right + own, spread + own
    across = (price_errors(declared.shares, effect.shares) + shared + own
              + hiding_errors(hidden, hidden_under(effect, declared)))
    gain = np.linalg.solve(right, across)
    return effect.logs + gain.T @ known, spread - across.T @ gain + (REPEATED / 2) ** 2


FASTER, SLOWER = 1.0, 2.0
"""Standard deviations of all layers' common error: where a network is faster than declared by more,
what would make it slower is no explanation, nor the reverse: prices that are too low are common.
Assumed."""

FAR = 6.0
"""A layer's own error, in its standard deviations, from which on it is one that is off alone."""

FAR_OPERATOR = 3.0
"""The same of an operator, whose errors are normal: nearer ones explain too little to be likely."""

SIZE_SD = 1.2
"""Of the logarithm of by how much a single layer, or operator, is off: a factor of three either
way, assumed; Student's t, since a softmax in double precision takes a thousand times as long."""


def are_far(errors: ndarray, own: ndarray, evidence: Evidence) -> ndarray:
    """Whether each layer is off alone, by its own error and that error's variance.

    Beside a run known to be right no other shape excuses a small one.
    """
    least = LEAST_FACTOR if evidence.reference is None else 0.0
    return (np.abs(errors) > FAR * np.sqrt(own)) & (np.abs(errors) > least)


def list_layers(evidence: Evidence, base: Effect, left: Errors,
                library: str) -> Iterator[tuple[Fault, Effect, float]]:
    """Yield each layer, and each operator, that is far off alone, what it does, and its density.

    Parameters
    ----------
    base, left
        What is predicted without such a fault, and what that leaves.
    library
        Behind the name: whose kernels, where it is not the one that was named.

    Yields
    ------
    Fault, Effect, float
        The last is the logarithm of what weighs besides the pattern that is left: how likely such a
        fault is of that size, beside the density of the error it explains away.

    Notes
    -----
    With residuals r and their covariance C, an operator's layers m are off by (m' C^-1 r) /
    (m' C^-1 m), with the variance 1 / (m' C^-1 m).
    """
    layers, families = evidence.pattern.layers, np.array(evidence.pattern.families)
    own, operators = left.own, sorted(set(evidence.pattern.families))
    if len(layers) < 3:
        return
    errors, _, inverse = own_errors(left.residual, left.shared, own)
    found = [(ONE_LAYER, f"layer {layers[place]} ({families[place]})",
              np.arange(len(layers)) == place, float(errors[place]), math.sqrt(own[place]),
              len(layers))
             for place in np.flatnonzero(are_far(errors, own, evidence))]
    kernels = [(name, families == name) for name in operators]
    of_operator = np.array([name.partition(" ")[0] for name in families])
    kernels += [(f"every {name}", of_operator == name) for name in sorted(
        {name.partition(" ")[0] for name in operators if " " in name}.intersection(operators))]
    for name, members in kernels if len(operators) > 1 else ():
        size = float(members @ inverse @ left.residual / (members @ inverse @ members))
        sd = float(members @ inverse @ members) ** -0.5
        if members.sum() > 1 and abs(size) > FAR_OPERATOR * sd:
            found.append((ONE_OPERATOR, name, members, size, sd, len(kernels)))
    for kind, name, members, size, sd, places in found:
        density = log_student(size, SIZE_SD) + math.log(sd * math.sqrt(2 * math.pi))
        yield (Fault(kind=kind, places=places,
                     name=f"{name} alone, {significant(math.exp(size))} x{library}",
                     remedy=f"look at {name}: which function is linked for it, where its data lie, "
                            "and what runs beside it; the other layers are as declared"),
               replace(
                   base, logs=base.logs + size * members, also=base.also and
                   replace(base.also, logs=base.also.logs + size * members)),
               density)
