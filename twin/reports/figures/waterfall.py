"""The bill as a waterfall: cause upon cause, up to the total."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hwmodels.quantities import format_energy, format_time
from twin.pricing.ledger import cause_times_us
from twin.reports.bars import chart_bill
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import describe_deployment, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction


def draw_bill_figure(prediction: Prediction) -> Figure:
    """Return the figure of the bill."""
    return draw_figure(
        partial(draw_bill, prediction), 7.5, 1.0 + 0.3 * len(prediction.bill.causes()),
        f"The bill: {format_time(prediction.time_us)}", describe_deployment(prediction))


def draw_bill(prediction: Prediction, axes: Axes) -> None:
    """Draw the causes, largest first, each from where the last one ended, then the total."""
    amounts = cause_times_us(prediction, prediction.bill)
    total = f"{format_time(prediction.time_us)}, energy {format_energy(prediction.energy_uj)}"
    draw_bars(replace(chart_bill("time", amounts, format_time, total), axis="time, ms",
                      scale=1e3), axes, room=1.01, title="bill by cause")
