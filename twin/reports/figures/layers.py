"""Per-layer time as stacked bars, coloured by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodels.quantities import format_energy, format_time
from twin.prediction.ledger import cause_energies_uj, cause_times_us, percentages
from twin.reports.figures.canvas import (
    describe_deployment,
    new_sheet,
    rule_values,
    write_legend,
)
from twin.reports.figures.palette import bar_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.prediction.prediction import Prediction

ROW_IN = 0.22
"""Height of one layer's bar with its gap, in inches: a label of 8 points fits."""


def draw_layer_figure(prediction: Prediction) -> Figure:
    """Return the sheet of per-layer bars."""
    with new_sheet(9.0, 1.5 + ROW_IN * max(6, len(prediction.layers)),
                   f"Where {format_time(prediction.time_us)} go, layer by layer",
                   describe_deployment(prediction)) as figure:
        draw_layers(prediction, figure.subplots())
    return figure


def draw_energy_figure(prediction: Prediction) -> Figure:
    """Return the sheet of per-layer energy, where it is known."""
    known = prediction.energy_uj is not None
    with new_sheet(9.0, 1.5 + ROW_IN * max(6, len(prediction.layers)),
                   f"Where {format_energy(prediction.energy_uj)} go, layer by layer" if known
                   else "Energy: not known", describe_deployment(prediction)) as figure:
        draw_layers(prediction, figure.subplots(), "energy")
    return figure


def draw_layers(prediction: Prediction, axes: Axes, quantity: str = "time") -> None:
    """Draw one horizontal bar per layer, stacked by cause, in milliseconds or microjoules.

    Parameters
    ----------
    prediction : Prediction
        What to show.
    axes : Axes
        Where; grows downwards in execution order.
    quantity : str
        "time" or "energy".
    """
    rows = range(len(prediction.layers))
    ends = [0.0] * len(prediction.layers)
    scale = 1e3 if quantity == "time" else 1.0
    amounts = [cause_times_us(prediction, layer.bill) if quantity == "time" else
               cause_energies_uj(layer.bill) for layer in prediction.layers]
    for cause in prediction.bill.causes():
        widths = [part.get(cause, 0.0) / scale for part in amounts]
        if any(widths):
            axes.barh(rows, widths, left=ends, height=0.78, label=cause, **bar_style(cause))
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
    longest = max(ends, default=0.0) or 1.0
    shares = percentages(ends, decimals=1)
    for row, (end, share) in enumerate(zip(ends, shares, strict=True)):
        axes.text(end + 0.008 * longest, row, f"{share:.1f} %", va="center", fontsize=7)
    axes.set_yticks(rows, [layer.tick + (" *" if layer.assumed else "")
                           for layer in prediction.layers])
    axes.set_ylim(len(prediction.layers) - 0.4, -0.6)
    axes.set_xlim(0, 1.1 * longest)
    axes.set_xlabel(("time, ms" if quantity == "time" else "energy, uJ") + ("    * assumed" if any(
        layer.assumed for layer in prediction.layers) else ""))
    axes.set_title(f"{quantity} per layer, by cause")
    rule_values(axes)
    sheet = axes.get_figure(root=False)
    if sheet is not None and prediction.bill.causes():
        write_legend(sheet)  # type: ignore[arg-type]
