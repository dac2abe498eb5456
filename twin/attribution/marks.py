"""What a measurement shows besides its pattern: clock, drift and scatter over the runs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from calibration.measurement.measurement import Measurement
from calibration.measurement.quality import find_drift, find_modes
from twin.attribution.faults import Fault
from twin.deployment.deployment import Deployment

QUIET_DRIFT, LOUD_DRIFT = 0.002, 0.2

QUIET_SCATTER, LOUD_SCATTER = 0.008, 0.15
"""Standard deviations of a drift over the runs and of (p95 - p5) / median, without and with the
fault that causes them."""

CLOCK_SD = 0.004

CLOCK_RANGE = math.log(100.0)
"""Error of an observed clock, and the range a wrong one may lie in, as logarithms."""

FEWEST_RUNS = 8
"""Fewer runs tell nothing of drift and scatter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What the runs and the clock show besides; None is not known."""

    clock_log: float | None
    drift: float | None
    scatter: float | None


def clock_hz_of(deployment: Deployment) -> float:
    """Return the clock of the core that runs the network, in Hz."""
    return deployment.board.clock(deployment.board.core.clock).frequency_hz


def is_clock_own(measurement: Measurement) -> bool:
    """Whether the clock is an emulator's own: nobody set it and nothing times it."""
    header = measurement.header
    return header.kind == "simulated" and "clock_by_host" not in dict(header.environment)


def ruled_out(measurement: Measurement) -> frozenset[str]:
    """Return kinds of faults an emulator does not have; interrupts, where it counted none."""
    if not is_clock_own(measurement):
        return frozenset()
    quiet = measurement.count("interrupts") and not measurement.values("interrupts").any()
    return frozenset({"clock", "throttling", *(["interrupts"] if quiet else [])})


def read_marks(measurement: Measurement, deployment: Deployment) -> Marks:
    """Read clock, drift and scatter."""
    header = measurement.header
    clocks, told = dict(header.clocks_hz), dict(header.environment)
    hertz = clocks.get(deployment.board.core.clock, clocks.get("cpu"))
    match = re.match(r"([0-9.]+)", told.get("clock_by_host", ""))
    clock_log = None
    if hertz is not None and not is_clock_own(measurement):
        real = hertz * (float(match[1]) if match and float(match[1]) > 0 else 1.0)
        clock_log = math.log(real / clock_hz_of(deployment))
    counter = next((name for name in ("latency", "timer_ticks", "cpu_cycles")
                    if measurement.count(name) >= FEWEST_RUNS), None)
    if counter is None:
        return Marks(clock_log=clock_log, drift=None, scatter=None)
    values = measurement.values(counter)
    runs = np.arange(len(values))
    slope = float(np.polyfit(runs, values, 1)[0]) if np.ptp(values) else 0.0
    middle = float(np.median(values))
    drifting = find_drift(values) is not None
    level = values - slope * runs if drifting else values
    low, high = np.percentile(level, (5, 95))
    drift = slope * (len(values) - 1) / middle if drifting else 0.0
    return Marks(clock_log=clock_log, drift=drift, scatter=float(high - low) / middle)


def weigh_marks(fault: Fault, marks: Marks) -> float:
    """Log likelihood of clock, drift and scatter."""
    total = 0.0
    if marks.clock_log is not None:
        # Where a wrong clock lies is not known before: every logarithm in the range alike.
        total += (-math.log(CLOCK_RANGE) if fault.shifts_clock
                  else _log_normal(marks.clock_log, CLOCK_SD))
    if marks.drift is not None:
        total += _log_normal(marks.drift, LOUD_DRIFT if fault.drifts else QUIET_DRIFT)
    if marks.scatter is not None:
        total += _log_normal(marks.scatter, LOUD_SCATTER if fault.scatters else QUIET_SCATTER)
    return total


def _log_normal(value: float, sd: float) -> float:
    """Logarithm of a normal density with tails no thinner than ten standard deviations'."""
    away = min(abs(value) / sd, 10.0)
    return -0.5 * away * away - math.log(sd * math.sqrt(2 * math.pi))


def describe_marks(marks: Marks) -> tuple[str, ...]:
    """Return what the marks tell, a phrase each."""
    found = []
    if marks.clock_log is not None:
        found.append(f"clock at {100 * math.exp(marks.clock_log):.1f} % of the one asked for")
    if marks.drift is not None and marks.scatter is not None:
        found.append(f"drift over the runs {100 * marks.drift:+.1f} %, scatter "
                     f"{100 * marks.scatter:.1f} %")
    return tuple(found)


def notes_of(measurement: Measurement) -> tuple[str, ...]:
    """Return drift and two kinds of runs, in words."""
    counter = next((name for name in ("latency", "timer_ticks", "cpu_cycles")
                    if measurement.count(name)), None)
    if counter is None:
        return ()
    values = measurement.values(counter)
    return tuple(str(one) for one in (find_drift(values), find_modes(values)) if one is not None)
