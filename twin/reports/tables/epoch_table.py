"""The epochs of a prediction, a line each, and the whole model as its profiler sums it up."""

from __future__ import annotations

from hwmodels.quantities import format_time
from twin.attribution.predicted import side_of_prediction
from twin.deployment.costs import TaskPrediction
from twin.pricing.prediction import Prediction
from twin.reports.columns import Column, number
from twin.reports.tables.epochs import model_lines
from twin.reports.tables.parts import Console, Content, Group, Text, fit_table, spaced


def _list_operations(epoch: TaskPrediction) -> str:
    return " ".join(name if count == 1 else f"{name}:{count}"
                    for name, count in epoch.run.task.operations)


def _name_wait(epoch: TaskPrediction) -> str:
    waits = max(epoch.run.exposed, key=lambda part: part.npu_cycles, default=None)
    return "" if waits is None else waits.resource


_DROP_ORDER = ("compute", "post", "pre", "%", "type", "operations")
"""Columns given up, in this order, where the console has no room for all."""


def epoch_table(prediction: Prediction, console: Console) -> Content:
    """Return every epoch in a line and the whole model; `epochs_report` has all the lines."""
    side = side_of_prediction(prediction)
    sure = prediction.certainty
    names = {id(epoch): part.name
             for epoch, part in zip(prediction.tasks, side.parts, strict=True)}
    intervals = {id(epoch): interval for epoch, interval in zip(
        prediction.tasks, sure.tasks, strict=True)} if sure is not None and sure.tasks else {}

    columns = [
        Column(prediction.compiler.task_name, lambda epoch: names[id(epoch)]),
        Column("type", "kind"), Column("operations", _list_operations),
        number("npu cycles", "run.core_npu_cycles"),
        number("compute", "run.compute_cycles"), number("pre", "pre_cpu_cycles", "{:,.0f}"),
        number("post", "post_cpu_cycles", "{:,.0f}"),
        number("ms", lambda epoch: epoch.time_us / 1e3, "{:.3f}"),
        number("%", lambda epoch: 100 * epoch.time_us / prediction.time_us, "{:.1f}"),
        Column("90 % interval", lambda epoch: intervals.get(id(epoch)), lambda interval:
               "" if interval is None else
               f"{format_time(interval.low)} to {format_time(interval.high)}"),
        Column("waits for", _name_wait)]
    table, dropped = fit_table(columns, prediction.tasks, console, _DROP_ORDER)
    model = [Text(line) for line in model_lines(side)]
    if dropped:
        model.insert(0, Text(f"not shown at {console.width} columns: {', '.join(dropped)}",
                             style="dim"))
    return spaced([table, Group(*model)])
