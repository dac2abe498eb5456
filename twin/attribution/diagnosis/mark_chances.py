"""How likely clock, drift, scatter and interrupts of the runs are under a fault."""

from __future__ import annotations

import math

import numpy as np

from twin.attribution.diagnosis.faults import DECLARED, FIRST_RUN, Fault
from twin.attribution.diagnosis.likelihood import LEAST_CHANCE
from twin.attribution.diagnosis.marks import Marks, clock_hz_of

LOUD_SCATTER = 1e-2, 2.3
"""`QUIET_SCATTER` with interrupts: assumed; a core with an operating system repeats to a percent, a
tick of 2 kHz to a thousandth."""

QUIET_DRIFT, LOUD_DRIFT = 0.002, 0.2
"""Standard deviations of a drift over the runs, without and with the fault that causes it."""

SERVED_SCATTER = 0.2, 1.5
"""`LOUD_SCATTER` of interrupts that take a share of the time, by it: they come as whole services,
so layers and runs get unequal numbers of them. Assumed: ticks of 2 kHz make 0.03, a radio's more
than 1."""

SAME_SCATTER_SD = 0.5
"""How far the logarithm of scatter of the same set-up, measured twice, is apart."""

LEAST_SCATTER = 1e-5
"""Scatter below this is none."""

LOG_STATED = math.log(0.5)
"""How likely a clock that is only stated is stated as asked for where the core runs at another: a
header says what was set, not what runs. Assumed."""

CHECKED_ELSEWHERE = 0.05
"""How likely the host's clock was held against another counter than the one that was read: our
firmware has one, but its runs may have been added up. Assumed."""

LOG_OWN_TICKS, LOG_OTHER_TICKS = math.log(0.9), math.log(0.01)
"""How likely a log's ticks are of the core's clock (a profiler reads the core's counter of cycles),
and of one other frequency: assumed, ten are common."""

CLOCK_RANGE = math.log(100.0)
"""The range a wrong clock may lie in, as a logarithm."""

NOTABLE_SHARE = 0.01
"""Interrupts that take less of a run are what any system has: a tick, a line that is idle."""

FIRST_BESIDE = 0.05
"""How likely a first run is slow alone where another fault is the matter, as second faults are:
assumed."""

LOG_SERVED, LOG_LOADED, LOG_UNCOUNTED = math.log(0.2), math.log(0.02), math.log(0.01)
"""How likely some interrupts are counted where they are no fault, some that take a notable share,
and none where they are the fault: assumed."""


def weigh_marks(fault: Fault, marks: Marks, right: Marks | None = None) -> float:
    """Log likelihood of clock, drift and scatter.

    Parameters
    ----------
    fault, marks
        The hypothesis, and what was seen.
    right
        Of a measurement known to be right: what runs scatter without interrupts.
    """
    total = 0.0
    if marks.clock_log is not None and marks.unchecked and marks.is_clock_right:
        total += LOG_STATED if fault.shifts_clock else 0.0
    elif marks.clock_log is not None:
        total += _weigh_clock(fault, marks.clock_log, marks.clock_sd)
    total += weigh_ticks(fault, marks)
    total += _weigh_first(fault, marks)
    change = marks.change
    if change and marks.loose is not None and fault.scatters and not fault.drifts:
        # runs that interrupts hit may have come in this order by chance; those counted did
        total += 0.0 if marks.served else math.log(change.chance)
        total += _weigh_scatter(fault, marks.loose, marks, right)
        return total + _weigh_interrupts(fault, marks, right)
    if change and fault.drifts and marks.served:
        total += math.log(change.chance)  # what is no interrupt came with them by chance
    if marks.drift is not None:
        total += _log_normal(marks.drift, LOUD_DRIFT if fault.drifts else QUIET_DRIFT)
    if marks.scatter is not None and not marks.even:
        weights = [_weigh_scatter(fault, marks.scatter, marks, right)]
        if fault.scatters and (marks.interrupts or (marks.first and not fault.stretch)):
            # a tick comes as often in each run; a run that is hit alone leaves the others quiet
            weights.append(_weigh_scatter(None, marks.scatter, marks, right))
        total += max(weights)
    return total + _weigh_interrupts(fault, marks, right)


def _weigh_first(fault: Fault, marks: Marks) -> float:
    """Log likelihood of a first run that is slow alone: interrupts may hit any, and chance."""
    if marks.first is None or fault.kind == FIRST_RUN:
        return 0.0
    other = 1 / marks.runs if fault.scatters else FIRST_BESIDE * (fault.kind != DECLARED)
    return math.log(max(other, marks.first.chance, LEAST_CHANCE))


def weigh_ticks(fault: Fault, marks: Marks) -> float:
    """Log likelihood of a log's ticks, as assumed: they are of the core's clock, or another."""
    if marks.ticks_hz is None:
        return 0.0
    core_hz = marks.core_hz if fault.deployment is None else clock_hz_of(fault.deployment)
    return LOG_OWN_TICKS if marks.own_ticks(core_hz) else LOG_OTHER_TICKS


def _weigh_clock(fault: Fault, seen: float, sd: float) -> float:
    """Log likelihood of a clock as the host saw it.

    A counter that counts double may be the one the host's clock was held against.
    """
    if fault.counted:
        return float(np.logaddexp(
            math.log(CHECKED_ELSEWHERE) + _log_normal(seen, sd),
            math.log1p(-CHECKED_ELSEWHERE) + _log_normal(seen - fault.counted, sd)))
    if fault.shifts_clock and fault.clock_log is None:
        # Where a wrong clock lies is not known before: every logarithm in the range alike.
        return -math.log(CLOCK_RANGE)
    return _log_normal(seen - (fault.clock_log or 0.0), sd)


def _weigh_interrupts(fault: Fault, marks: Marks, right: Marks | None) -> float:
    """Log likelihood of how many interrupts were counted."""
    counted = marks.interrupts
    if marks.served and fault.stretch and fault.scatters and not marks.served[0]:
        return LOG_UNCOUNTED  # none in the fewest, which are compared
    known = None if right is None else right.interrupts
    if counted is None:
        return 0.0
    if not counted:
        return LOG_UNCOUNTED if fault.scatters else 0.0
    if known is not None and counted <= known + 3 * math.sqrt(known + 1):
        return 0.0  # as many as where all is right
    if fault.scatters:
        return 0.0 if math.expm1(fault.stretch) >= marks.least_share - NOTABLE_SHARE else LOG_LOADED
    return LOG_LOADED if known is not None or marks.least_share > NOTABLE_SHARE else LOG_SERVED


def _weigh_scatter(fault: Fault | None, scatter: float, marks: Marks, right: Marks | None) -> float:
    """Log likelihood of how far runs scatter; without a fault, of quiet ones."""
    middle, sd = marks.quiet
    if fault is not None and fault.scatters:
        middle, sd = LOUD_SCATTER
        if fault.stretch:
            share, sd = SERVED_SCATTER
            middle = share * math.expm1(fault.stretch)
    elif right is not None and right.scatter is not None:
        # Runs that repeat better than those known to be right are no fault's.
        middle, sd = min(right.scatter, max(scatter, LEAST_SCATTER)), SAME_SCATTER_SD
    return _log_normal(math.log(max(scatter, LEAST_SCATTER) / max(middle, LEAST_SCATTER)), sd)


def _log_normal(value: float, sd: float) -> float:
    """Logarithm of a normal density with tails no thinner than thirty standard deviations'."""
    away = min(abs(value) / sd, 30.0)
    return -0.5 * away * away - math.log(sd * math.sqrt(2 * math.pi))
