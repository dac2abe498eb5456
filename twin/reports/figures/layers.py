"""Per-layer time as stacked bars, coloured by cause."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from twin.pricing.ledger import cause_energies_uj, cause_times_us, percentages
from twin.reports.bars import WHOLE, Bar, BarChart, stack_causes
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import describe_deployment, draw_figure, write_legend, write_total

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction

ROW_IN = 0.22
"""Height of one layer's bar with its gap, in inches: a label of 8 points fits."""


def draw_layer_figure(prediction: Prediction, quantity: str = "time") -> Figure:
    """Return the figure of per-layer bars of time, or of energy where it is known."""
    whole = write_total(prediction, quantity)
    known = quantity == "time" or prediction.energy_uj is not None
    return _draw(prediction, partial(draw_layers, prediction, quantity=quantity),
                 f"Where {whole} go, layer by layer" if known else "Energy: not known")


def _draw(prediction: Prediction, draw: Callable[[Axes], None], title: str) -> Figure:
    """Return a figure as tall as the layers need."""
    return draw_figure(draw, 9.0, 1.5 + ROW_IN * max(6, len(prediction.layers)), title,
                       describe_deployment(prediction))


def draw_macs_figure(prediction: Prediction) -> Figure | None:
    """Return multiply-accumulates of each layer; None where no layer has any."""
    return _draw_amounts(prediction, "Multiply-accumulates, layer by layer", "MACs, millions", 1e6,
                         [layer.macs for layer in prediction.layers])


def draw_activations_figure(prediction: Prediction) -> Figure | None:
    """Return the bytes each layer's outputs take, as stored; None of a program."""
    graph = prediction.graph
    return _draw_amounts(prediction, "Activations, layer by layer", "outputs, KiB", 1024, [
        0 if prediction.deployment.target.executes else
        sum(tensor.size_bytes for tensor in graph.layer_outputs(layer)) for layer in graph.layers])


def _draw_amounts(prediction: Prediction, title: str, axis: str, scale: float,
                  amounts: list[int]) -> Figure | None:
    if not any(amounts):
        return None
    shares = percentages(list(map(float, amounts)), 1)
    chart = BarChart(
        rows=tuple(layer.tick for layer in prediction.layers), axis=axis, scale=scale,
        bars=tuple(Bar(row=row, length=amount, look=WHOLE, text=f"{share:.1f} %")
                   for row, (amount, share) in enumerate(zip(amounts, shares, strict=True))))
    return _draw(prediction, partial(draw_bars, chart, room=1.1, points=7, thick=0.78), title)


def draw_layers(prediction: Prediction, axes: Axes, quantity: str = "time") -> None:
    """Draw one horizontal bar per layer, stacked by cause, in milliseconds or microjoules.

    Parameters
    ----------
    axes
        Where; grows downwards in execution order.
    quantity
        "time" or "energy".
    """
    layers, is_time = prediction.layers, quantity == "time"
    amounts = [cause_times_us(prediction, layer.bill) if is_time else
               cause_energies_uj(layer.bill) for layer in layers]
    whole = [math.fsum(one.values()) for one in amounts]
    assumed = "    * assumed" if any(layer.assumed for layer in layers) else ""
    chart = BarChart(
        rows=tuple(layer.tick + (" *" if layer.assumed else "") for layer in layers),
        axis=("time, ms" if is_time else "energy, uJ") + assumed, scale=1e3 if is_time else 1.0,
        bars=(*stack_causes(amounts, prediction.bill.causes(), lambda row, cause, amount: ""), *(
            Bar(row=row, start=end, length=0.0, look=WHOLE, text=f"{share:.1f} %")
            for row, (end, share) in enumerate(zip(whole, percentages(whole, 1), strict=True)))))
    draw_bars(chart, axes, room=1.1, points=7, thick=0.78, title=f"{quantity} per layer, by cause")
    write_legend(axes)
