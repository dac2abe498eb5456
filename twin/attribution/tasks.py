"""Tasks of an accelerator side by side: every line of its profiler's report, and the whole model.

MCU and NPU cycles are never added; a hybrid task's extra tasks count to its phases. The whole
model is the sum of the tasks, so that what is shown adds up; totals only the report knows stand
beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from calibration.measurement.measurement import Measurement
from hwmodels.frozen import frozen
from hwmodels.quantities import list_by_key
from twin.attribution.pairing import Pair, pair_parts
from twin.attribution.side import Part, Side
from twin.deployment.choice import compiler_of


@frozen
class Figure:
    """One line of a report on both sides; None is not there."""

    first: float | None
    second: float | None

    @property
    def ratio(self) -> float | None:
        """First over second; None when either is not known or the second is nothing."""
        if self.first is None or not self.second:
            return None
        return self.first / self.second


@frozen
class TaskPair:
    """A task on both sides; `lines` are its report, by name."""

    first: Part | None
    second: Part | None
    lines: Mapping[str, Figure]


@frozen
class TaskReport:
    """Two inferences of an accelerator, line by line.

    Parameters
    ----------
    pairs
        In order; a task of one side only has no other.
    whole
        Sums over all tasks of each side.
    stated
        Totals only a report states: durations and shares.
    paired_by
        "name", "index" or "order".
    word
        What a task is called.
    gaps
        Why the measurement is not whole; the sums are then over the tasks both have but the last,
        which may be cut within, and totals a report states are omitted.
    """

    pairs: tuple[TaskPair, ...]
    whole: Mapping[str, Figure]
    stated: Mapping[str, Figure]
    paired_by: str
    word: str
    gaps: tuple[str, ...] = ()


def report_tasks(first: Side, second: Side, *, gaps: Sequence[str] = ()) -> TaskReport:
    """Set the tasks of two inferences beside each other, line by line.

    Parameters
    ----------
    gaps
        What the second lacks, of `find_gaps`.

    Returns
    -------
    TaskReport
        Tasks paired as `twin.attribution.pairing` says.
    """
    pairing, compiler = pair_parts(first, second), compiler_of(first.runtime)
    pairs: tuple[Pair, ...] = pairing.pairs
    described = [TaskPair(first=ours, second=theirs, lines=_figures(
        *(compiler.describe_counters(one.counts) if one else {} for one in (ours, theirs))))
        for ours, theirs in pairs]
    sides: tuple[Sequence[Part], ...] = (first.parts, second.parts)
    if gaps:
        both = [(ours, theirs) for ours, theirs in pairs
                if ours is not None and theirs is not None and theirs is not second.parts[-1]]
        sides = ([ours for ours, _ in both], [theirs for _, theirs in both])
    return TaskReport(
        pairs=tuple(described), paired_by=pairing.by, word=second.part, gaps=tuple(gaps),
        whole=_figures(*(
            {name: value for name, value in compiler.describe_counters(sum_counters(tasks)).items()
             if not name.endswith("busiest")} for tasks in sides)),  # which it is, changes by task
        stated={} if gaps else _figures(*(
            compiler.describe_totals(side.whole.counts) for side in (first, second))))


def find_gaps(measured: Measurement, word: str) -> tuple[str, ...]:
    """Return what a measurement of tasks lacks: what its log lacked, what its folder lost.

    Parameters
    ----------
    measured
        Whose header names every task of the log.
    word
        What a task is called.
    """
    facts = measured.header.facts
    found = [text for text in facts.get("remarks", "").split("; ") if text.startswith("partial")]
    named = measured.task_names
    lost = set(named) - set(measured.layers)
    if lost:
        found.append(f"the folder has lost {len(lost)} of {len(named)} {word}s its log had")
    elif named and not found and not measured.count("core_npu_cycles"):
        found.append("the folder has lost the totals its log had")
    return tuple(found)


def _figures(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, Figure]:
    return {name: Figure(first=ours.get(name), second=theirs.get(name))
            for name in dict.fromkeys((*theirs, *ours))}


def sum_counters(tasks: Sequence[Part]) -> Mapping[str, float]:
    """Return the counters of tasks, added; engines stay apart by number and pool."""
    return {name: math.fsum(values) for name, values in list_by_key(
        pair for task in tasks for pair in task.counts.items()).items()}
