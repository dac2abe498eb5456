"""The bill as a waterfall: cause upon cause, up to the total."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodels.quantities import format_energy, format_time
from twin.prediction.ledger import bill_time_us, percentages
from twin.reports.figures.canvas import describe_deployment, new_sheet, rule_values
from twin.reports.figures.palette import DARK_GREY, INK, bar_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.prediction.prediction import Prediction


def draw_bill_figure(prediction: Prediction) -> Figure:
    """Return the sheet of the bill."""
    with new_sheet(7.5, 1.0 + 0.3 * len(prediction.bill.causes()),
                   f"The bill: {format_time(prediction.time_us)}",
                   describe_deployment(prediction)) as figure:
        draw_bill(prediction, figure.subplots())
    return figure


def draw_bill(prediction: Prediction, axes: Axes) -> None:
    """Draw the causes, largest first, each beginning where the last one ended, then the total.

    Parameters
    ----------
    prediction : Prediction
        What to show.
    axes : Axes
        Where; time in milliseconds along it.
    """
    times = {cause: bill_time_us(prediction, prediction.bill, cause) / 1e3
             for cause in prediction.bill.causes()}
    causes = sorted((cause for cause in times if times[cause] > 0), key=lambda c: -times[c])
    shares = percentages([times[cause] for cause in causes], decimals=1)
    whole = sum(times.values()) or 1.0
    start = 0.0
    for row, (cause, share) in enumerate(zip(causes, shares, strict=True)):
        end = start + times[cause]
        axes.barh(row, times[cause], left=start, height=0.7, **bar_style(cause))
        axes.plot([end, end], [row + 0.35, row + 0.65], color=DARK_GREY, linewidth=0.6)
        _write_share(axes, f"{share:.1f} %", start, end, row, whole)
        start = end
    axes.barh(len(causes), start, height=0.7, facecolor=INK)
    axes.text(start / 2, len(causes), _total(prediction), ha="center", va="center",
              color="white", fontsize=8)
    axes.set_yticks(range(len(causes) + 1), [*causes, "total"])
    axes.set_ylim(len(causes) + 0.6, -0.6)
    axes.set_xlim(0, 1.01 * whole)
    axes.set_xlabel("time, ms")
    axes.set_title("bill by cause")
    rule_values(axes)


def _write_share(axes: Axes, text: str, start: float, end: float, row: int, whole: float) -> None:
    """Write beside the bar, on the side with room."""
    gap = 0.01 * whole
    right = end < 0.85 * whole
    axes.text(end + gap if right else start - gap, row, text, va="center", fontsize=8,
              ha="left" if right else "right")


def _total(prediction: Prediction) -> str:
    return f"{format_time(prediction.time_us)}, energy {format_energy(prediction.energy_uj)}"
