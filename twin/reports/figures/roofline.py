"""The roofline: every layer under what the core and the memories allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.reports.figures.canvas import describe_deployment, new_figure, place_labels, write_legend
from twin.reports.figures.charts import draw_chart
from twin.reports.roofline import chart_roofline, describe_side, list_sides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibration.microbench.machine import Machine
    from twin.pricing.prediction import Prediction

LABELLED = 12
"""Layers that get their index written beside them: those that cost most."""


def draw_roofline_figure(prediction: Prediction, measured: Machine | None = None) -> Figure:
    """Return the figure of the roofline, a panel for each machine layers ran on.

    Parameters
    ----------
    measured
        Micro-benchmarks of its board, in cycles: their rates are the roofs.
    """
    sides = list_sides(prediction, measured)
    whose = "the board" if measured is None else f"the board, {measured.kind}"
    with new_figure(8.0 * len(sides), 5.6, f"Layers and the roofs of {whose}: "
                    + "; ".join(describe_side(side) for side in sides),
                    describe_deployment(
                       prediction, "a point's area is its share of the time")) as figure:
        for side, axes in zip(sides, figure.subplots(1, len(sides), squeeze=False)[0], strict=True):
            draw_chart(chart_roofline(prediction, side), axes)
            if len(sides) > 1:
                axes.set_title(side.machine)
        write_legend(figure, columns=3)
        for side, axes in zip(sides, figure.axes, strict=True):
            costly = sorted(side.points, key=lambda point: -point[0].time_us)[:LABELLED]
            place_labels(axes, [(layer.arithmetic_intensity, layer.macs / cycles, str(layer.index))
                                for layer, cycles in costly])
    return figure
