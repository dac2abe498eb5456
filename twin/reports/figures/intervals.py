"""How sure a prediction is: intervals of the whole and of each layer, around what is predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.reports.figures.canvas import describe_deployment, new_figure, write_legend
from twin.reports.figures.charts import draw_chart
from twin.reports.figures.layers import ROW_IN
from twin.reports.intervals import chart_intervals
from twin.reports.palette import DARK_GREY
from twin.reports.tables.header import describe_rest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction


def draw_interval_figure(prediction: Prediction) -> Figure | None:
    """Return the figure of intervals; None at stated prices, which have none."""
    sure = prediction.certainty
    if sure is None:
        return None
    energy = sure.energy_uj is not None
    with new_figure(11.0 if energy else 7.0, 1.3 + ROW_IN * max(6, len(prediction.layers) + 1),
                    f"How sure: {100 * sure.time_us.level:.0f} % intervals, {sure.basis}",
                    describe_deployment(prediction, describe_rest(prediction)),
                    ) as figure:
        panels = figure.subplots(1, 2 if energy else 1, squeeze=False)[0]
        for axes, quantity in zip(panels, ("time", "energy"), strict=False):
            draw_chart(chart_intervals(prediction, quantity), axes)
            axes.axhline(0.5, color=DARK_GREY, linewidth=0.6)
        write_legend(figure)
    return figure
