"""How sure a prediction is: intervals of the whole and of each layer, around what is predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibration.fitting.intervals import describe_basis
from twin.reports.figures.canvas import (
    describe_deployment,
    label_plainly,
    new_sheet,
    rule_values,
    write_legend,
)
from twin.reports.figures.layers import ROW_IN
from twin.reports.palette import BLUE, DARK_GREY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibration.fitting.intervals import Interval
    from twin.pricing.prediction import Prediction


def draw_interval_figure(prediction: Prediction) -> Figure | None:
    """Return the sheet of intervals; None at stated prices, which have none."""
    sure = prediction.certainty
    if sure is None:
        return None
    energy = sure.energy_uj is not None
    with new_sheet(11.0 if energy else 7.0, 1.3 + ROW_IN * max(6, len(prediction.layers) + 1),
                   f"How sure: {100 * sure.time_us.level:.0f} % intervals, {sure.basis}",
                   describe_deployment(prediction, describe_basis(sure.basis, sure.errors)),
                   ) as figure:
        panels = figure.subplots(1, 2 if energy else 1, squeeze=False)[0]
        draw_intervals(prediction, panels[0])
        if energy:
            draw_intervals(prediction, panels[1], "energy")
        write_legend(figure)
    return figure


def draw_intervals(prediction: Prediction, axes: Axes, quantity: str = "time") -> None:
    """Draw the whole in the first row, then layers: a mark, and a line as long as the interval.

    Parameters
    ----------
    prediction : Prediction
        With learnt prices.
    axes : Axes
        Where; ms or uJ on a logarithmic scale.
    quantity : str
        "time" or "energy".
    """
    sure = prediction.certainty
    assert sure is not None
    rows: list[tuple[str, float | None, Interval | None]]
    if quantity == "time":
        factor, rows = 1e-3, [("whole", prediction.time_us, sure.time_us), *(
            (layer.tick, layer.time_us, known.time_us)
            for layer, known in zip(prediction.layers, sure.layers, strict=True))]
    else:
        factor, rows = 1.0, [("whole", prediction.energy_uj, sure.energy_uj), *(
            (layer.tick, layer.energy_uj, known.energy_uj)
            for layer, known in zip(prediction.layers, sure.layers, strict=True))]
    for place, (_, value, interval) in enumerate(rows):
        if not value or interval is None:
            continue
        colour = VERMILION if place == 0 else BLUE
        axes.hlines(place, interval.low * factor, interval.high * factor, color=colour,
                    linewidth=3 if place == 0 else 1.6,
                    label="interval of the whole" if place == 0 else "interval of a layer")
        axes.plot([value * factor], [place], marker="D" if place == 0 else "o", color=colour,
                  markersize=5, markeredgecolor="white", linestyle="", label="predicted"
                  if place == 1 else None)
    axes.axhline(0.5, color=DARK_GREY, linewidth=0.6)
    axes.set_xscale("log")
    label_plainly(axes.xaxis, (1.0, 3.0))
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("time, ms" if quantity == "time" else "energy, uJ")
    rule_values(axes)
