"""What a measurement shows besides its pattern: clock, drift and scatter over the runs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.measurement.measurement import Measurement
from calibration.measurement.quality import STEP_RUNS, Finding, find_drift, find_first_run
from hwmodels.frozen import frozen
from hwmodels.quantities import Ends, significant
from twin.attribution.compatibility import find_ticks_hz
from twin.attribution.measured import RUN_COUNTERS, sum_runs
from twin.deployment.deployment import Deployment

QUIET_SCATTER = 2e-4, 1.3
"""Median of how far a layer's runs scatter and the standard deviation of its logarithm, without
interrupts: assumed; a core without caches repeats to the cycle."""

LOG_SCATTER = 1e-3, 1.5
"""The same without a fault of a program that is not our firmware: the tick of its system goes on.
Assumed: a tick of 2 kHz makes a thousandth."""

EVEN, LOUD_EVEN = 0.5, 0.05
"""How far the least of runs is below their median over how far the most is above it, from which
they lie on both sides, as no interrupts do; and how far they scatter at least. Assumed."""

LEAST_MOVES = 0.02
"""How far the least of runs is off at most, however far they scatter."""

CLOCK_SD = 0.004
"""Error of an observed clock at least, as a logarithm; a check may state more."""

SAME_TICKS = 0.01
"""Clocks that differ by less, as a share, are one."""

SET_CLOCK = "unicorn"
"""Port of the emulator whose cycles are those of a clock it is set to."""

SERVED = 0.9
"""Share of the runs' variance that counted interrupts account for, from which on the runs follow
them: assumed."""

FEWEST_DEGREES = 6
"""Scatter is known from so many differences of runs at least, over all layers."""


SERVICE_CYCLES = 40
"""An interrupt takes so many at least: entry and return of a Cortex-M (12 and 10, Arm), and a few
instructions of a handler."""

UNCHECKED = (": stated, and set against no other: cycles are the same at another clock but for "
             "what waits; time by the host shows it (twin measure on a board)")


@frozen
class Marks:
    """What the runs and the clock show besides; None is not known.

    Parameters
    ----------
    clock_log, drift, scatter
        Logarithm of the clock over the one asked for; change over the runs; scatter of a layer.
    clock_sd
        Of the first, as its check states it.
    change
        The step or trend that makes `drift`.
    loose
        Scatter of a layer with that in it; `scatter` is what is left beside it.
    first, runs
        By how much the first run alone is slower than the middle of the others, which the rest of
        the marks is of; and how many runs there are.
    served
        Fewest and most interrupts of a run, where the runs take as long as these are many.
    least_share
        Of a run's cycles, what these take at least.
    unchecked
        The clock was stated, and set against no other.
    ticks_hz, core_hz
        Clock of the ticks of a log that does not state the core's, and the one asked for.
    ticked
        Times are of ticks.
    even
        Runs scatter widely, and to both sides.
    quiet
        How far runs scatter without a fault, as `QUIET_SCATTER`.
    noise
        Standard deviation of the logarithm of a layer's amount, of what its own runs leave open.
    """

    clock_log: float | None
    drift: float | None
    scatter: float | None
    interrupts: float | None = None
    least_share: float = 0.0
    unchecked: bool = False
    clock_sd: float = CLOCK_SD
    change: Finding | None = None
    loose: float | None = None
    first: Finding | None = None
    runs: int = 0
    served: Ends | None = None
    ticks_hz: float | None = None
    core_hz: float = 0.0
    ticked: bool = False
    even: bool = False
    quiet: Ends = QUIET_SCATTER
    noise: float = 0.0

    @property
    def is_clock_right(self) -> bool:
        """Whether the clock seen is the one asked for, within its error."""
        return self.clock_log is not None and abs(self.clock_log) < 3 * self.clock_sd

    def own_ticks(self, core_hz: float) -> bool:
        """Whether ticks are of a core's clock."""
        return self.ticks_hz is not None and abs(self.ticks_hz / core_hz - 1) < SAME_TICKS


def clock_hz_of(deployment: Deployment) -> float:
    """Return the clock of the core that runs the network, in Hz."""
    return deployment.board.core_clock.frequency_hz


def is_clock_own(measurement: Measurement) -> bool:
    """Whether the clock is an emulator's own: nobody set it and nothing times it."""
    header = measurement.header
    return header.kind == "simulated" and "clock_by_host" not in header.facts


def is_clock_set(measurement: Measurement, deployment: Deployment) -> bool:
    """Whether an emulator was set to another clock than was asked for: it has one to set."""
    environment = measurement.header.facts
    return environment.get("port") == SET_CLOCK and _is_as_asked(measurement, deployment) is False


def _is_as_asked(measurement: Measurement, deployment: Deployment) -> bool | None:
    """Whether the clock stated is the one asked for; None where none is."""
    hertz = measurement.header.clocks.get(deployment.board.core.clock)
    return None if hertz is None else abs(hertz / clock_hz_of(deployment) - 1) < 3 * CLOCK_SD


def may_be_other(measurement: Measurement, deployment: Deployment) -> bool:
    """Whether the core may run at another clock than is stated: stated as asked for, not timed."""
    timed = "clock_by_host" in measurement.header.facts
    return not timed and bool(_is_as_asked(measurement, deployment))


def ruled_out(measurement: Measurement, deployment: Deployment) -> frozenset[str]:
    """Return kinds of faults an emulator does not have; interrupts, where it counted none."""
    if not is_clock_own(measurement):
        return frozenset()
    settable = measurement.header.facts.get("port") == SET_CLOCK
    clock = not settable or not (is_clock_set(measurement, deployment)
                                 or may_be_other(measurement, deployment))
    quiet = measurement.count("interrupts") and not measurement.values("interrupts").any()
    return frozenset({"throttling", "load", *(["clock"] if clock else []),
                      *(["interrupts"] if quiet else [])})


def read_marks(measurement: Measurement, deployment: Deployment) -> Marks:
    """Read clock, drift and scatter."""
    header = measurement.header
    clocks, facts = header.clocks, header.facts
    hertz = clocks.get(deployment.board.core.clock, clocks.get("cpu"))
    match = re.match(r"([0-9.]+)(?: \+- ([0-9.]+))?", facts.get("clock_by_host", ""))
    clock_log, clock_sd = None, CLOCK_SD
    checked = match is not None or bool(measurement.count("cpu_cycles"))
    own = is_clock_own(measurement) and not is_clock_set(measurement, deployment)
    if hertz is not None and not own and checked:
        # a time by a clock that is only claimed is what a wrong clock shows in
        ratio = float(match[1]) if match and float(match[1]) > 0 else 1.0
        clock_log = math.log(hertz * ratio / clock_hz_of(deployment))
        if match and match[2]:
            clock_sd = max(CLOCK_SD, float(match[2]) / ratio)
    unchecked = hertz is not None and match is None and not own
    values = sum_runs(measurement)
    counted = _count_interrupts(measurement)
    cycles = measurement.count("cpu_cycles") and measurement.percentile("cpu_cycles", 50)
    share = counted * SERVICE_CYCLES / cycles if counted and cycles else 0.0
    seen = Marks(clock_log=clock_log, drift=None, scatter=None, interrupts=counted,
                 least_share=share, unchecked=unchecked, clock_sd=clock_sd,
                 ticks_hz=None if hertz is not None or checked or measurement.count(
                     "instructions") else find_ticks_hz(clocks),
                 core_hz=clock_hz_of(deployment), ticked="timer" in clocks,
                 quiet=QUIET_SCATTER if deployment.runtime.is_compiled else LOG_SCATTER)
    if values is None:
        return seen
    served, rows = _find_served(measurement, values), _list_runs(measurement, values)
    first = find_first_run(values)
    first = first if first and first.size > 0 else None
    if first:
        values, rows = values[1:], [(row[1:], middle) for row, middle in rows]
    change, runs = find_drift(values), len(values)
    places: np.ndarray = np.arange(runs)
    trend: np.ndarray = 0.0 * places
    if change:
        trend = change.size / float(np.median(values)) * (
            places / (runs - 1) if change.run is None else places >= change.run)
    scatter = _scatter(rows, trend)
    even = scatter is not None and scatter > LOUD_EVEN and _is_even(rows)
    apart = scatter or 0.0  # the least of runs hardly moves, a median as far as theory says
    return replace(
        seen, drift=change.share if change else 0.0 if runs >= STEP_RUNS else None, change=change,
        scatter=scatter, even=even, first=first, runs=runs + bool(first), served=served,
        loose=_scatter(rows, 0.0 * trend) if change else None,
        noise=apart * math.sqrt(math.pi / 2 / runs) if even else min(apart, LEAST_MOVES))


def _find_served(measurement: Measurement, values: np.ndarray) -> Ends | None:
    """Return the fewest and most interrupts of a run where runs take as long as these are many."""
    counted = (measurement.values("interrupts") if measurement.count("interrupts") else
               np.zeros(0))
    if len(counted) != len(values) or len(values) < STEP_RUNS or not np.ptp(counted):
        return None
    follows = np.ptp(values) > 0 and np.corrcoef(counted, values)[0, 1] > math.sqrt(SERVED)
    return (float(counted.min()), float(counted.max())) if follows else None


def _count_interrupts(measurement: Measurement) -> float | None:
    """Return interrupts of a run, as they were counted; one where only their cycles were."""
    if measurement.count("interrupts"):
        return float(np.mean(measurement.values("interrupts")))
    if measurement.count("dwt_exccnt") and measurement.values("dwt_exccnt").any():
        return 1.0
    return None


def _list_runs(measurement: Measurement, whole: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return the runs of each larger layer, and their median; of the whole without layers."""
    counter = next((name for name in RUN_COUNTERS if measurement.layers
                    and all(measurement.count(name, layer) >= 2
                            for layer in measurement.layers)), None)
    rows = [whole] if counter is None else [measurement.values(counter, layer)
                                            for layer in measurement.layers]
    middles = [float(np.median(row)) for row in rows]
    return [(row, middle) for row, middle in zip(rows, middles, strict=True)
            if middle > 0.02 * sum(middles)]


def _scatter(rows: Sequence[tuple[np.ndarray, float]], trend: np.ndarray) -> float | None:
    """How far runs of a layer lie apart, pooled over the larger layers; of the whole without any.

    What a trend over the runs, as a share of the level, accounts for is taken off, and what a timer
    makes that counts whole ticks: a variance of a quarter of its tick's square at most. A tick is
    the largest number all values are multiples of.

    Interrupts take whole services, so a layer scatters more than the network does.
    """
    degrees = sum(len(row) - 1 for row, _ in rows)
    if degrees < FEWEST_DEGREES:
        return None
    tick = float(np.gcd.reduce(np.concatenate([row for row, _ in rows]).astype(np.int64)))
    squares = sum((float(np.var(row / middle - trend[:len(row)])) - (tick / middle)**2 / 4)
                  * len(row) for row, middle in rows)
    return math.sqrt(max(squares / degrees, 0.0))


def _is_even(rows: Sequence[tuple[np.ndarray, float]]) -> bool:
    """Whether runs lie about as far below their medians as above."""
    below, above = (sum(abs(float(ends(row)) - middle) for row, middle in rows)
                    for ends in (np.min, np.max))
    return below > EVEN * above


def repeats_within(measurement: Measurement) -> float | None:
    """Return the standard deviation of the whole network's runs, as a share; None of one run."""
    values = sum_runs(measurement)
    return None if values is None else float(np.std(values) / np.median(values))


def describe_marks(marks: Marks) -> tuple[str, ...]:
    """Return what the marks tell, a phrase each."""
    found = []
    if marks.clock_log is not None:
        error = (f" +- {100 * marks.clock_sd * math.exp(marks.clock_log):.1f} %"
                 if marks.clock_sd > CLOCK_SD else "")
        found.append(f"clock at {100 * math.exp(marks.clock_log):.1f} %{error} of the one asked "
                     "for" + UNCHECKED * marks.unchecked)
    elif marks.unchecked:
        found.append("clock not checked" + UNCHECKED)
    if marks.first:
        found.append(f"{marks.first.evidence}: the middle of the others is compared")
    if marks.drift is not None:
        found.append("no drift over the runs that is more than chance" if marks.change is None else
                     f"{marks.change.name}: {marks.change.evidence}")
    if marks.scatter is not None:
        found.append(f"runs of a layer scatter by {significant(100 * marks.scatter, 2)} %"
                     + (" to both sides, as no listed fault makes them: medians are compared"
                        * marks.even))
    if marks.served:
        found.append(f"{marks.served[0]:,.0f} to {marks.served[1]:,.0f} interrupts a run were "
                     "counted, and the runs take as long as these are many")
    elif marks.interrupts:
        found.append(f"{marks.interrupts:,.0f} interrupts a run were counted: at "
                     f"{SERVICE_CYCLES} cycles each at least, "
                     f"{significant(100 * marks.least_share, 2)} % of it")
    return tuple(found)
