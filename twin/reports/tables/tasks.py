"""The tasks of a prediction as text: a line each, or all an accelerator's profiler says of them."""

from __future__ import annotations

from hwmodels.quantities import format_time
from twin.attribution.predicted import profile_tasks, profile_whole, side_of_prediction
from twin.attribution.side import Side
from twin.pricing.accelerator.report import describe_head
from twin.pricing.prediction import Prediction
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, Group, Text, spaced, tabulate

_DROP_ORDER = ("compute", "post", "pre", "%", "type", "operations")
"""Columns given up, in this order, where the console has no room for all."""


def task_table(prediction: Prediction) -> Content:
    """Return every task in a line and the whole model; `tasks_report` has all the lines."""
    side = side_of_prediction(prediction)
    sure = prediction.certainty
    names = {id(task): part.name for task, part in zip(prediction.tasks, side.parts, strict=True)}
    intervals = {id(task): interval for task, interval in zip(
        prediction.tasks, sure.tasks, strict=True)} if sure is not None and sure.tasks else {}

    columns = [
        Column(prediction.compiler.task_name, lambda task: names[id(task)]),
        Column("type", "kind"), Column("operations", lambda task: " ".join(
            name if count == 1 else f"{name}:{count}" for name, count in task.run.task.operations)),
        number("npu cycles", "run.core_npu_cycles"),
        number("compute", "run.compute_cycles"), number("pre", "pre_cpu_cycles", "{:,.0f}"),
        number("post", "post_cpu_cycles", "{:,.0f}"),
        number("ms", lambda task: task.time_us / 1e3, "{:.3f}"),
        number("%", lambda task: 100 * task.time_us / prediction.time_us, "{:.1f}"),
        Column("90 % interval", lambda task: intervals.get(id(task)), lambda interval:
               "" if interval is None else interval.write(format_time)),
        Column("waits for", lambda task: "" if not task.run.exposed else max(
            task.run.exposed, key=lambda part: part.npu_cycles).resource)]
    return spaced([tabulate(columns, prediction.tasks, drops=_DROP_ORDER),
                   Group(*(Text(line) for line in profile_whole(side)))])


def tasks_report(prediction: Prediction) -> Content:
    """Return the tasks of a prediction with an accelerator, below what its profiler says first."""
    return spaced([Group(*map(Text, describe_head(prediction))),
                   tasks_part(side_of_prediction(prediction))])


def tasks_part(side: Side) -> Content:
    """Return every task and the whole model, line by line as the profiler prints them."""
    return spaced([*(Group(Text(head, "bold"), *map(Text, lines))
                     for head, *lines in profile_tasks(side)),
                   Group(*map(Text, profile_whole(side)))])
