"""An inference on an accelerator over time: who is busy, what pools carry, the bill by task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hwmodels.quantities import format_time
from twin.pricing.accelerator.timeline import Span, list_spans, sample_bandwidth
from twin.reports.bars import chart_spans, chart_tasks, list_rows
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import describe_deployment, new_figure, rule_values, write_legend
from twin.reports.palette import SERIES, line_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction

_DETAILED = 12
"""Tasks up to which each step is drawn; more are drawn as one bar per engine and task."""


def draw_timeline_figure(prediction: Prediction) -> Figure:
    """Return the figure: Gantt, bandwidth and bill over the tasks of an inference."""
    detailed = len(prediction.tasks) <= _DETAILED
    spans = list_spans(prediction, steps=detailed)
    rows = list_rows(spans)
    with new_figure(14.0, 6.0 + 0.22 * len(rows), f"{len(prediction.tasks)} "
                    f"{prediction.compiler.task_name}s in "
                   f"{format_time(prediction.time_us)}", describe_deployment(prediction)) as figure:
        gantt, bandwidth, bill = figure.subplots(
            3, 1, height_ratios=(0.22 * len(rows) + 1, 2.0, 2.5))
        draw_gantt(prediction, spans, gantt)
        draw_bandwidth(prediction, bandwidth)
        draw_task_bills(prediction, bill)
        bandwidth.sharex(gantt)
        gantt.set_xlim(0, prediction.time_us)
        write_legend(figure)
    return figure


def draw_gantt(prediction: Prediction, spans: tuple[Span, ...], axes: Axes) -> None:
    """Draw a bar where a host phase, unit or stream engine is busy, in microseconds."""
    looks = [(colour, hatch) for colour, _, _, hatch in SERIES]
    chart = chart_spans(prediction, spans, looks)
    draw_bars(replace(chart, scale=1.0, axis=""), axes, thick=0.8, linewidth=0.0,
              title="busy over time")


def draw_bandwidth(prediction: Prediction, axes: Axes) -> None:
    """Draw what each pool carries over time, in MB/s, and label it at its highest."""
    spans = list_spans(prediction)
    pools = _number_pools(spans)
    bins = 300
    for pool, rates in sample_bandwidth(spans, prediction.time_us, bins).items():
        edges = [place * prediction.time_us / bins for place in range(bins + 1)]
        look = line_series(pools[pool])
        axes.stairs(rates, edges, color=look["color"], linestyle=look["linestyle"], linewidth=1.0,
                    label=f"bandwidth of {pool}")
    axes.set_ylabel("pool bandwidth, MB/s")
    axes.set_xlabel("time, us")
    rule_values(axes, along="y")


def draw_task_bills(prediction: Prediction, axes: Axes) -> None:
    """Draw one bar per task, stacked by cause, host and NPU cycles as time."""
    name = prediction.compiler.task_name
    draw_bars(replace(
        chart_tasks(prediction), scale=1.0, axis="time, us",
        across=f"{name}, s: in software, h: host steps the engines",
        rows=tuple(f"{task.number}{'s' * (task.step.kind == 'host')}{'h' * task.step.stepped}"
                   for task in prediction.tasks)),
        axes, thick=0.86, title=f"bill by {name}")


def _number_pools(spans: tuple[Span, ...]) -> dict[str, int]:
    pools = dict.fromkeys(span.pool for span in spans if span.pool)
    return {pool: place for place, pool in enumerate(pools)}
