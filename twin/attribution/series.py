"""Measurements of one board in time order: did their level move, and since which run.

verdict = follow_series([("monday", monday), ("friday", friday)])
verdict.change      None while the level holds
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from calibration.fitting.staleness import FALSE_ALARM, LEAST_SHIFT, Change, find_change
from calibration.fitting.student import student_quantile
from calibration.measurement.measurement import Measurement
from hwmodels.frozen import frozen
from hwmodels.quantities import significant
from twin.errors import UsageError

COUNTERS = ("cpu_cycles", "latency")
"""What a series is of: the first of these every measurement has."""

FEWEST_RUNS = 6
"""Of each measurement, from which on runs are judged one by one."""

NOTABLE_CHANGE = 0.02
"""A larger move of a median must show, or too few runs were taken."""

SAME = ("model", "board", "runtime", "temperature")
"""What all measurements of a series share, by name in their headers."""


@frozen
class Stretch:
    """One measurement of a series.

    Parameters
    ----------
    label
        Its folder.
    ratio
        To the median of the first measurement.
    """

    label: str
    runs: int
    median: float
    ratio: float


@frozen
class Series:
    """Measurements in time order, judged.

    Parameters
    ----------
    stretches
        In the order given.
    change
        Where the level moved, as a position in all runs put together.
    since
        Folder and run the new level begins with; "" without a change.
    unseen
        Of measurements of few runs, the largest move of a median that would not show, as a
        share: `math.inf` where no runs tell. None where each run was judged.
    """

    counter: str
    unit: str
    stretches: tuple[Stretch, ...]
    change: Change | None
    since: str
    unseen: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the level is known not to have moved by more than `NOTABLE_CHANGE`."""
        return self.change is None and (self.unseen or 0.0) <= NOTABLE_CHANGE

    @property
    def sentence(self) -> str:
        """Return the verdict in words."""
        runs = sum(one.runs for one in self.stretches)
        if self.change is None and self.unseen is not None:
            hidden = ("runs do not say how well they repeat" if math.isinf(self.unseen) else
                      f"a move of less than {significant(100 * self.unseen, 2)} % would not show")
            return (f"too few runs to tell whether the level of {self.counter} moved: {hidden}; "
                    f"take {FEWEST_RUNS} or more each" if not self.holds else
                    f"the level of {self.counter} holds over {runs} runs, by medians: {hidden}")
        if self.change is None:
            return f"the level of {self.counter} holds over {runs} run{'s' * (runs > 1)}"
        return (f"the level of {self.counter} moved by {100 * math.expm1(self.change.shift):+.2f} "
                f"% since {self.since} (p {'=' if self.unseen is None else '<'} "
                f"{self.change.probability:.1g}, {runs} runs): what was "
                "learnt before no longer holds")


def follow_series(measurements: Sequence[tuple[str, Measurement]]) -> Series:
    """Judge whether the level of measurements in time order moved.

    Parameters
    ----------
    measurements : sequence of (label, Measurement)
        Of one network on one board, oldest first; two or more.

    Returns
    -------
    Series
        By `calibration.fitting.staleness.find_change` on log(value / first median); where one has
        fewer than `FEWEST_RUNS` runs, by the first median that is apart from the first
        measurement's by more than runs repeat (Student's t, all measurements' scatter pooled).

    Raises
    ------
    UsageError
        When they are not of the same thing, or share no counter of whole inferences.

    References
    ----------
    Page, "Continuous inspection schemes", 1954.
    """
    first_label, first = measurements[0]
    for label, other in measurements[1:]:
        for name in SAME:
            old, new = getattr(first.header, name), getattr(other.header, name)
            if old != new:
                raise UsageError(f"{first_label} and {label} are no series: {name} is {old} and "
                                 f"{new}; `twin diff` of the two says what changed")
    counter = next((name for name in COUNTERS
                    if all(one.count(name) for _, one in measurements)), None)
    if counter is None:
        raise UsageError("no counter of whole inferences is in all of them; accepted: "
                         + ", ".join(COUNTERS))
    values = [one.values(counter) for _, one in measurements]
    if not all((part > 0).all() for part in values):
        raise UsageError(f"{counter} has values of 0 or below: no level can be followed")
    level = float(np.median(values[0]))
    logs, unseen = [np.log(part / level) for part in values], None
    if min(map(len, values)) >= FEWEST_RUNS:
        change = find_change(np.concatenate(logs))
    else:
        change, unseen = _compare_medians(logs)
    return Series(
        counter=counter, unit=first.summarise(counter).unit, change=change, unseen=unseen,
        since="" if change is None else _locate(change.position, measurements, values),
        stretches=tuple(Stretch(label=label, runs=len(part), median=float(np.median(part)),
                                ratio=float(np.median(part)) / level)
                        for (label, _), part in zip(measurements, values, strict=True)))


def _compare_medians(logs: Sequence[np.ndarray]) -> tuple[Change | None, float]:
    """Return the first measurement whose level moved, and the largest move that would not show.

    A measurement of one run says nothing of how well runs repeat.
    """
    freedom = sum(len(part) - 1 for part in logs)
    if not freedom:
        return None, math.inf
    spread = math.sqrt(sum(float(part.var()) * len(part) for part in logs) / freedom)
    each = 1 - FALSE_ALARM / 2 / max(len(logs) - 1, 1)
    quantile, unseen = student_quantile(each, freedom), 0.0
    for place, part in enumerate(logs[1:], start=1):
        least = max(LEAST_SHIFT, quantile * spread * math.sqrt(1 / len(logs[0]) + 1 / len(part)))
        shift = float(np.median(part) - np.median(logs[0]))
        if abs(shift) > least:
            return Change(position=sum(map(len, logs[:place])), shift=shift,
                          probability=FALSE_ALARM), math.expm1(least)
        unseen = max(unseen, math.expm1(least))
    return None, unseen


def _locate(position: int, measurements: Sequence[tuple[str, Measurement]],
            values: Sequence[np.ndarray]) -> str:
    """Name the folder and the run within it that a position of all runs is."""
    for (label, _), part in zip(measurements, values, strict=True):
        if position < len(part):
            return f"run {position} of {label}"
        position -= len(part)
    raise AssertionError("a change lies within the series")
