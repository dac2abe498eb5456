"""An inference on an accelerator over time: who is busy, what pools carry, the bill by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodels.quantities import format_time
from twin.prediction.accelerator.timeline import (
    HOST,
    ROW_KINDS,
    Span,
    list_spans,
    sample_bandwidth,
)
from twin.prediction.ledger import bill_time_us
from twin.reports.figures.canvas import (
    describe_deployment,
    new_sheet,
    rule_values,
    write_legend,
)
from twin.reports.figures.palette import (
    DARK_GREY,
    GREY,
    bar_style,
    fill,
    fill_series,
    line_series,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.prediction.prediction import Prediction

_HOST, _UNIT = fill(DARK_GREY), fill(GREY)
_DETAILED = 12
"""Epochs up to which each step is drawn; more are drawn as one bar per engine and epoch."""


def draw_timeline_figure(prediction: Prediction) -> Figure:
    """Return the sheet: Gantt, bandwidth and bill over the epochs of an inference."""
    detailed = len(prediction.epochs) <= _DETAILED
    spans = list_spans(prediction, steps=detailed)
    rows = _rows(spans)
    with new_sheet(14.0, 6.0 + 0.22 * len(rows), f"{len(prediction.epochs)} epochs in "
                   f"{format_time(prediction.time_us)}", describe_deployment(prediction)) as figure:
        gantt, bandwidth, bill = figure.subplots(
            3, 1, height_ratios=(0.22 * len(rows) + 1, 2.0, 2.5))
        draw_gantt(spans, gantt)
        draw_bandwidth(prediction, bandwidth)
        draw_epoch_bills(prediction, bill)
        bandwidth.sharex(gantt)
        gantt.set_xlim(0, prediction.time_us)
        write_legend(figure)
    return figure


def draw_gantt(spans: tuple[Span, ...], axes: Axes) -> None:
    """Draw a bar where a host phase, unit or stream engine is busy.

    Parameters
    ----------
    spans : tuple of Span
        From `twin.prediction.accelerator.timeline.list_spans`.
    axes : Axes
        Where; time in microseconds along it.
    """
    rows = _rows(spans)
    pools = _number_pools(spans)
    for place, row in enumerate(rows):
        for pool in dict.fromkeys(span.pool for span in spans if span.row == row):
            look = fill_series(pools[pool]) if pool else _HOST if row == HOST else _UNIT
            told = f"stream engine on {pool}" if pool else "host" if row == HOST else "a unit"
            axes.broken_barh(
                [(span.start_us, span.end_us - span.start_us) for span in spans
                 if span.row == row and span.pool == pool],
                (place - 0.4, 0.8), label=told, **look | {"linewidth": 0.0})
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title("busy over time")
    rule_values(axes)


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


def draw_epoch_bills(prediction: Prediction, axes: Axes) -> None:
    """Draw one bar per epoch, stacked by cause, host and NPU cycles as time."""
    places = range(len(prediction.epochs))
    tops = [0.0] * len(prediction.epochs)
    for cause in prediction.bill.causes():
        heights = [bill_time_us(prediction, epoch.bill, cause) for epoch in prediction.epochs]
        if any(heights):
            axes.bar(places, heights, bottom=tops, width=0.86, label=cause, **bar_style(cause))
            tops = [top + height for top, height in zip(tops, heights, strict=True)]
    axes.set_xlabel("epoch, s: in software, h: host steps the engines")
    axes.set_ylabel("time, us")
    marks = {"sw": "s", "hybrid": "h"}
    step = max(1, len(prediction.epochs) // 60)
    labels = [f"{epoch.number}{marks.get(epoch.kind, '')}" for epoch in prediction.epochs]
    axes.set_xticks(list(places)[::step], labels[::step])
    axes.set_xlim(-0.8, len(prediction.epochs) - 0.2)
    axes.set_title("bill by epoch")
    rule_values(axes, along="y")


def _rows(spans: tuple[Span, ...]) -> list[str]:
    """Host, then units, then engines."""
    kinds = {span.row: span.kind for span in spans}
    return sorted(kinds, key=lambda row: (ROW_KINDS.index(kinds[row]), row))


def _number_pools(spans: tuple[Span, ...]) -> dict[str, int]:
    pools = dict.fromkeys(span.pool for span in spans if span.pool)
    return {pool: place for place, pool in enumerate(pools)}
