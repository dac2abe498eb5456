"""How well hardware is used along an inference: shares of groups of causes, MACs, power."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hwmodels.counts import CAUSE_GROUPS
from twin.pricing.ledger import bill_time_us
from twin.reports.figures.canvas import (
    describe_deployment,
    new_figure,
    place_labels,
    rule_values,
    write_legend,
)
from twin.reports.palette import BLUE, GREY, INK, ORANGE, VERMILION, WINE, fill
from twin.reports.roofline import list_sides

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction

GROUP_LOOKS = {"compute": fill(BLUE), "memory": fill(ORANGE, "////"),
               "movement": fill(WINE, "...."), "overhead": fill(GREY, "xxxx")}
"""How a group of causes looks where causes are not separate."""


def draw_utilisation_figure(prediction: Prediction) -> Figure:
    """Return the figure: what each moment is spent on, MACs against the peak, mean power."""
    power = prediction.energy_uj is not None
    with new_figure(10.0, 6.4 if power else 4.6, "What the hardware does along an inference",
                    describe_deployment(prediction, "a step is a layer")) as figure:
        panels = figure.subplots(3 if power else 2, 1, sharex=True)
        draw_groups(prediction, panels[0])
        draw_mac_use(prediction, panels[1])
        if power:
            draw_layer_power(prediction, panels[2])
        panels[-1].set_xlabel("time, ms")
        panels[-1].set_xlim(0, prediction.time_us / 1e3)
        write_legend(figure)
        _name_longest(prediction, panels[1])
    return figure


def draw_groups(prediction: Prediction, axes: Axes) -> None:
    """Draw, as wide as each layer is long, the shares of groups of causes in it."""
    edges = _edges(prediction)
    for place, layer in enumerate(prediction.layers):
        width, level = edges[place + 1] - edges[place], 0.0
        if width <= 0:
            continue
        for group, causes in CAUSE_GROUPS.items():
            share = math.fsum(bill_time_us(prediction, layer.bill, cause) for cause in causes) \
                / layer.time_us * 100
            axes.bar(edges[place], share, bottom=level, width=width, align="edge",
                     **GROUP_LOOKS[group])
            level += share
    for group, look in GROUP_LOOKS.items():
        axes.bar(0, 0, label=group, **look)
    axes.set_ylim(0, 100)
    axes.set_ylabel("share of the layer, %")


def draw_mac_use(prediction: Prediction, axes: Axes) -> None:
    """Draw MACs per cycle as a share of the peak of the machine each layer ran on."""
    shares = dict.fromkeys((layer.index for layer in prediction.layers), 0.0)
    for side in list_sides(prediction):
        for layer, cycles in side.points:
            if side.peak:
                shares[layer.index] = 100 * layer.macs / cycles / side.peak
    axes.stairs([shares[layer.index] for layer in prediction.layers], _edges(prediction),
                color=INK, linewidth=1.3, label="MACs, share of the peak")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("of peak MACs, %")
    rule_values(axes, "y")


def draw_layer_power(prediction: Prediction, axes: Axes) -> None:
    """Draw the mean power of each layer."""
    levels = [1e3 * (layer.energy_uj or 0.0) / layer.time_us if layer.time_us else 0.0
              for layer in prediction.layers]
    axes.stairs(levels, _edges(prediction), color=VERMILION, linewidth=1.3, linestyle="--",
                label="mean power of the layer")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("power, mW")
    rule_values(axes, "y")


def _edges(prediction: Prediction) -> list[float]:
    edges = [0.0]
    for layer in prediction.layers:
        edges.append(edges[-1] + layer.time_us / 1e3)
    return edges


def _name_longest(prediction: Prediction, axes: Axes) -> None:
    edges = _edges(prediction)
    longest = sorted(prediction.layers, key=lambda layer: -layer.time_us)[:8]
    starts = {layer.index: edges[place] for place, layer in enumerate(prediction.layers)}
    place_labels(axes, [(starts[layer.index], 0.0, str(layer.index)) for layer in longest], 7)
