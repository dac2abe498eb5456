"""What a measurement shows besides its pattern: clock, drift and scatter over the runs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from calibration.measurement.measurement import Measurement
from calibration.measurement.quality import find_drift, find_modes
from twin.attribution.diagnosis.faults import Fault
from twin.deployment.deployment import Deployment

QUIET_DRIFT, LOUD_DRIFT = 0.002, 0.2
"""Standard deviations of a drift over the runs, without and with the fault that causes it."""

QUIET_SCATTER, LOUD_SCATTER = (2e-4, 1.3), (1e-2, 2.3)
"""Median of how far a layer's runs scatter and the standard deviation of its logarithm, without
and with interrupts: assumed; a core without caches repeats to the cycle, one with an operating
system to a percent, a tick of 2 kHz to a thousandth."""

LEAST_SCATTER = 1e-5
"""Scatter below this is none."""

SAME_SCATTER_SD = 0.5
"""How far the logarithm of scatter of the same set-up, measured twice, is apart."""

RUN_COUNTERS = ("latency", "timer_ticks", "cpu_cycles")
"""Counters that tell of drift and scatter, best first."""

CLOCK_SD = 0.004

LOG_STATED = math.log(0.5)
"""How likely a clock that is only stated is stated as asked for where the core runs at another: a
header says what was set, not what runs. Assumed."""

CLOCK_RANGE = math.log(100.0)
"""Error of an observed clock, and the range a wrong one may lie in, as logarithms."""

SET_CLOCK = "unicorn"
"""Port of the emulator whose cycles are those of a clock it is set to."""

FEWEST_RUNS = 8
"""Fewer runs tell nothing of drift."""

FEWEST_DEGREES = 6
"""Scatter is told by so many differences of runs at least, over all layers."""


SERVICE_CYCLES = 40
"""An interrupt takes so many at least: entry and return of a Cortex-M (12 and 10, Arm), and a few
instructions of a handler."""

NOTABLE_SHARE = 0.01
"""Interrupts that take less of a run are what any system has: a tick, a line that is idle."""

LOG_SERVED, LOG_LOADED, LOG_UNCOUNTED = math.log(0.2), math.log(0.02), math.log(0.01)
"""How likely some interrupts are counted where they are no fault, some that take a notable share,
and none where they are the fault: assumed."""


UNCHECKED = (": stated, and set against no other: cycles are the same at another clock but for "
             "what waits; time by the host tells (twin measure on a board)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What the runs and the clock show besides; None is not known.

    Parameters
    ----------
    clock_log, drift, scatter : float or None
        Logarithm of the clock over the one asked for; change over the runs; scatter of a layer.
    interrupts : float or None
        Counted, a run.
    least_share : float
        Of a run's cycles, what these take at least.
    unchecked : bool
        The clock was stated, and set against no other.
    """

    clock_log: float | None
    drift: float | None
    scatter: float | None
    interrupts: float | None = None
    least_share: float = 0.0
    unchecked: bool = False


def clock_hz_of(deployment: Deployment) -> float:
    """Return the clock of the core that runs the network, in Hz."""
    return deployment.board.clock(deployment.board.core.clock).frequency_hz


def is_clock_own(measurement: Measurement) -> bool:
    """Whether the clock is an emulator's own: nobody set it and nothing times it."""
    header = measurement.header
    return header.kind == "simulated" and "clock_by_host" not in dict(header.environment)


def is_clock_set(measurement: Measurement, deployment: Deployment) -> bool:
    """Whether an emulator was set to another clock than was asked for: it has one to set."""
    header = measurement.header
    hertz = dict(header.clocks_hz).get(deployment.board.core.clock)
    return (dict(header.environment).get("port") == SET_CLOCK and hertz is not None
            and abs(hertz / clock_hz_of(deployment) - 1) > 3 * CLOCK_SD)


def may_be_other(measurement: Measurement, deployment: Deployment) -> bool:
    """Whether the core may run at another clock than is stated: stated as asked for, not timed."""
    header = measurement.header
    hertz = dict(header.clocks_hz).get(deployment.board.core.clock)
    timed = "clock_by_host" in dict(header.environment)
    return (not timed and hertz is not None
            and abs(hertz / clock_hz_of(deployment) - 1) < 3 * CLOCK_SD)


def ruled_out(measurement: Measurement, deployment: Deployment) -> frozenset[str]:
    """Return kinds of faults an emulator does not have; interrupts, where it counted none."""
    if not is_clock_own(measurement):
        return frozenset()
    settable = dict(measurement.header.environment).get("port") == SET_CLOCK
    clock = not settable or not (is_clock_set(measurement, deployment)
                                 or may_be_other(measurement, deployment))
    quiet = measurement.count("interrupts") and not measurement.values("interrupts").any()
    return frozenset({"throttling", *(["clock"] if clock else []),
                      *(["interrupts"] if quiet else [])})


def read_marks(measurement: Measurement, deployment: Deployment) -> Marks:
    """Read clock, drift and scatter."""
    header = measurement.header
    clocks, told = dict(header.clocks_hz), dict(header.environment)
    hertz = clocks.get(deployment.board.core.clock, clocks.get("cpu"))
    match = re.match(r"([0-9.]+)", told.get("clock_by_host", ""))
    clock_log = None
    checked = match is not None or bool(measurement.count("cpu_cycles"))
    own = is_clock_own(measurement) and not is_clock_set(measurement, deployment)
    if hertz is not None and not own and checked:
        # a time by a clock that is only claimed is what a wrong clock shows in
        real = hertz * (float(match[1]) if match and float(match[1]) > 0 else 1.0)
        clock_log = math.log(real / clock_hz_of(deployment))
    unchecked = hertz is not None and match is None and not own
    values = _whole_runs(measurement)
    counted = _count_interrupts(measurement)
    cycles = measurement.count("cpu_cycles") and measurement.percentile("cpu_cycles", 50)
    share = counted * SERVICE_CYCLES / cycles if counted and cycles else 0.0
    if values is None:
        return Marks(clock_log=clock_log, drift=None, scatter=None, interrupts=counted,
                     least_share=share, unchecked=unchecked)
    runs = np.arange(len(values))
    slope = float(np.polyfit(runs, values, 1)[0]) if np.ptp(values) else 0.0
    middle = float(np.median(values))
    drifting = len(values) >= FEWEST_RUNS and find_drift(values) is not None
    drift = slope * (len(values) - 1) / middle if drifting else 0.0
    return Marks(clock_log=clock_log, drift=drift if len(values) >= FEWEST_RUNS else None,
                 scatter=_scatter(measurement, values, slope / middle if drifting else 0.0),
                 interrupts=counted, least_share=share, unchecked=unchecked)


def _count_interrupts(measurement: Measurement) -> float | None:
    """Return interrupts of a run, as they were counted; one where only their cycles were."""
    if measurement.count("interrupts"):
        return float(np.mean(measurement.values("interrupts")))
    if measurement.count("dwt_exccnt") and measurement.values("dwt_exccnt").any():
        return 1.0
    return None


def _whole_runs(measurement: Measurement) -> np.ndarray | None:
    counter = next((name for name in RUN_COUNTERS if measurement.count(name) >= 2), None)
    values = None if counter is None else measurement.values(counter)
    return None if values is None or float(np.median(values)) <= 0 else values


def _scatter(measurement: Measurement, whole: np.ndarray, slope: float) -> float | None:
    """How far runs of a layer lie apart, pooled over the larger layers; of the whole without any.

    Interrupts take whole services, so a layer scatters more than the network does.
    """
    counter = next((name for name in RUN_COUNTERS if measurement.layers
                    and all(measurement.count(name, layer) >= 2
                            for layer in measurement.layers)), None)
    rows = [whole] if counter is None else [measurement.values(counter, layer)
                                            for layer in measurement.layers]
    middles = [float(np.median(row)) for row in rows]
    kept = [(row - slope * middle * np.arange(len(row))) / middle
            for row, middle in zip(rows, middles, strict=True) if middle > 0.02 * sum(middles)]
    degrees = sum(len(row) - 1 for row in kept)
    if degrees < FEWEST_DEGREES:
        return None
    return math.sqrt(sum(float(np.var(row)) * len(row) for row in kept) / degrees)


def repeats_within(measurement: Measurement) -> float | None:
    """Return the standard deviation of the whole network's runs, as a share; None of one run."""
    values = _whole_runs(measurement)
    return None if values is None else float(np.std(values) / np.median(values))


def weigh_marks(fault: Fault, marks: Marks, right: Marks | None = None) -> float:
    """Log likelihood of clock, drift and scatter.

    Parameters
    ----------
    fault, marks
        The hypothesis, and what was seen.
    right : Marks, optional
        Of a measurement known to be right: what runs scatter without interrupts.
    """
    total = 0.0
    if marks.clock_log is not None and marks.unchecked and abs(marks.clock_log) < 3 * CLOCK_SD:
        total += LOG_STATED if fault.shifts_clock else 0.0
    elif marks.clock_log is not None:
        # Where a wrong clock lies is not known before: every logarithm in the range alike.
        total += (-math.log(CLOCK_RANGE) if fault.shifts_clock
                  else _log_normal(marks.clock_log, CLOCK_SD))
    if marks.drift is not None:
        total += _log_normal(marks.drift, LOUD_DRIFT if fault.drifts else QUIET_DRIFT)
    if marks.scatter is not None:
        told = [_weigh_scatter(fault.scatters, marks.scatter, right.scatter if right else None)]
        if fault.scatters and marks.interrupts:  # a tick comes as often in each run
            told.append(_weigh_scatter(False, marks.scatter, right.scatter if right else None))
        total += max(told)
    return total + _weigh_interrupts(fault, marks, right)


def _weigh_interrupts(fault: Fault, marks: Marks, right: Marks | None) -> float:
    """Log likelihood of how many interrupts were counted."""
    counted = marks.interrupts
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


def _weigh_scatter(scatters: bool, scatter: float, right: float | None) -> float:
    """Log likelihood of how far runs scatter."""
    middle, sd = LOUD_SCATTER if scatters else QUIET_SCATTER
    if right is not None and not scatters:
        middle, sd = right, SAME_SCATTER_SD
    return _log_normal(math.log(max(scatter, LEAST_SCATTER) / max(middle, LEAST_SCATTER)), sd)


def _log_normal(value: float, sd: float) -> float:
    """Logarithm of a normal density with tails no thinner than thirty standard deviations'."""
    away = min(abs(value) / sd, 30.0)
    return -0.5 * away * away - math.log(sd * math.sqrt(2 * math.pi))


def describe_marks(marks: Marks) -> tuple[str, ...]:
    """Return what the marks tell, a phrase each."""
    found = []
    if marks.clock_log is not None:
        found.append(f"clock at {100 * math.exp(marks.clock_log):.1f} % of the one asked for"
                     + UNCHECKED * marks.unchecked)
    elif marks.unchecked:
        found.append("clock not checked" + UNCHECKED)
    if marks.drift is not None:
        found.append(f"drift over the runs {100 * marks.drift:+.1f} %")
    if marks.scatter is not None:
        found.append(f"runs of a layer scatter by {100 * marks.scatter:.2g} %")
    if marks.interrupts:
        found.append(f"{marks.interrupts:,.0f} interrupts a run were counted: at "
                     f"{SERVICE_CYCLES} cycles each at least, {100 * marks.least_share:.2g} % of "
                     "it")
    return tuple(found)


def notes_of(measurement: Measurement) -> tuple[str, ...]:
    """Return drift and two kinds of runs, in words."""
    counter = next((name for name in ("latency", "timer_ticks", "cpu_cycles")
                    if measurement.count(name)), None)
    if counter is None:
        return ()
    values = measurement.values(counter)
    return tuple(str(one) for one in (find_drift(values), find_modes(values)) if one is not None)
