"""A constant time in each layer: a print, a hook, or what the profiler itself takes.

    measured = g x predicted + c        the same c in each layer, whatever it computes

The layers predicted to take far less than c show it: they all take about c, though predictions of
them are hundreds of times apart. Little layers are no part of the pattern, whose predictions of
them are poor; that several take the same time by chance is improbable however poor they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hwmodels.quantities import format_time, significant
from twin.attribution.diagnosis.evidence import Evidence
from twin.attribution.diagnosis.fault_effects import Effect, Pattern
from twin.attribution.diagnosis.faults import EACH_LAYER, REPEATED, Fault
from twin.attribution.diagnosis.likelihood import log_student

LEAST_PART, FEWEST_LAYERS, LEAST_SHARE, LEAST_TICKS = 0.5, 3, 0.01, 3.0
"""What the constant is of the rest of a layer at least in those that show it, how many do at least
where no run is known to be right, what it makes of the network's time (beside one, of a layer's) at
least, and of the timer's ticks: little layers of a coarse one all take one."""

SAME_SD, LITTLE_SD, LAYER_SD = 0.1, 0.5, 0.1
"""How far the constant is apart from layer to layer, as a print's line is longer or shorter; how
far predictions of little layers are off; and how far layers are off the line that shows it, beside
no run known to be right: standard deviations of logarithms, assumed."""

LEAST_SEEN, LOG_RANGE = 0.1, math.log(1000.0)
"""What of the constant a little layer takes at least that is weighed by it; and the range in which
its time lies for any other reason, as a logarithm: assumed."""


def list_overheads(evidence: Evidence, base: Effect,
                   library: str) -> Iterator[tuple[Fault, Effect, float]]:
    """Yield a constant time in each layer, where one shows; as `list_layers`."""
    pattern, also = evidence.pattern, base.also
    if not (found := _add_constant(pattern, base, evidence.reference)):
        return
    effect, constant, density = found
    if evidence.also and also and (second := _add_constant(evidence.also.pattern, also, None)):
        also = second[0]
    text = format_time(constant / 1e3) if pattern.quantity == "time" else (
        f"{significant(constant)} {pattern.quantity}")
    yield (Fault(kind=EACH_LAYER, places=1, name=f"{text} more in each layer{library}",
                 remedy="take out what runs between the layers' time stamps: a print (MicroPrintf, "
                        "printf), a hook, or the profiler's own cost; or subtract it from each "
                        "layer"), replace(effect, also=also), density)


def _add_constant(pattern: Pattern, base: Effect,
                  reference: Pattern | None) -> tuple[Effect, float, float] | None:
    """Return an effect with a constant in each layer besides, that, and the density of both.

    The density is the logarithm of how likely little layers and the constant are, over how likely
    they are without it. Beside a run known to be right, layers are known without the little ones.
    """
    alone = reference is None
    known = np.exp(base.logs) if reference is None else reference.measured
    little = np.array(pattern.little * alone).reshape(-1, 2).T
    expected, measured = np.hstack([[known, pattern.measured], little])
    # least squares of relative errors: measured = scale x expected + constant
    line = np.column_stack([expected, np.ones(len(expected))]) / measured[:, None]
    unsure = np.linalg.inv(line.T @ line)
    scale, constant = unsure @ line.sum(axis=0)
    tick = float(np.gcd.reduce(np.round(measured).astype(np.int64)))
    share = constant / measured.mean() if alone else (constant / known).max()
    if min(scale, constant - LEAST_TICKS * tick, share - LEAST_SHARE) <= 0 or (
            alone and (scale * expected < constant / LEAST_PART).sum() < FEWEST_LAYERS):
        return None
    fit_sd = math.sqrt(unsure[1, 1]) * (LAYER_SD if alone else REPEATED) / constant
    density = math.log(min(fit_sd, 1.0) * math.sqrt(2 * math.pi) / LOG_RANGE)
    for right, seen in (little * [[scale], [1]]).T:
        if right < constant * LEAST_PART:
            density += math.log(LOG_RANGE) + log_student(
                math.log(max((seen - right) / constant, LEAST_SEEN)),
                math.hypot(SAME_SD, tick / constant, LITTLE_SD * right / constant))
    grown = 1 + constant / known
    return replace(base, logs=base.logs + np.log(grown),
                   shares=base.shares / grown[:, None]), float(constant), density
