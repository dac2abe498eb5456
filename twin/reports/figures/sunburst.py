"""The bill as rings: groups, causes and operators, as shares of time or energy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hwmodels.counts import CAUSE_GROUPS, Bill
from hwmodels.quantities import sum_by_key
from twin.pricing.ledger import cause_energies_uj, cause_times_us
from twin.reports.figures.canvas import describe_deployment, new_figure, write_legend, write_total
from twin.reports.palette import DARK_GREY, Keywords, bar_style, fill, fill_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction

LEAST_NAMED = 0.035
"""Share from which a sector is named on it."""

Amounts = Mapping[str, float]


def draw_sunburst_figure(prediction: Prediction) -> Figure:
    """Return the figure: rings of time, and of energy where it is known."""
    quantities = ["time"] if prediction.energy_uj is None else ["time", "energy"]
    with new_figure(7.5 * len(quantities), 6.4, "Shares of the bill: within by group and cause, "
                    "without by operator", describe_deployment(prediction)) as figure:
        grid = figure.subplots(1, len(quantities), squeeze=False)[0]
        for axes, quantity in zip(grid, quantities, strict=True):
            draw_sunburst(prediction, axes, quantity)
        write_legend(figure)
    return figure


def draw_sunburst(prediction: Prediction, axes: Axes, quantity: str = "time") -> None:
    """Draw three rings from within: group of causes, cause, operator.

    Parameters
    ----------
    quantity
        "time" or "energy".
    """
    causes = _by_cause(prediction, prediction.bill, quantity)
    groups = {group: math.fsum(causes.get(cause, 0.0) for cause in members)
              for group, members in CAUSE_GROUPS.items()}
    ordered = {cause: causes[cause] for members in CAUSE_GROUPS.values() for cause in members
               if causes.get(cause, 0.0) > 0}
    operators = dict(sorted(sum_by_key(
        (layer.op, math.fsum(_by_cause(prediction, layer.bill, quantity).values()))
        for layer in prediction.layers).items(), key=lambda pair: -pair[1]))
    _draw_ring(axes, {name: one for name, one in groups.items() if one > 0}, 0.55, 0.25, [
        fill("#F2F2F2") | {"edgecolor": DARK_GREY, "linewidth": 0.8} for _ in groups])
    _draw_ring(axes, ordered, 0.85, 0.28, [bar_style(cause) for cause in ordered], named=False)
    _draw_ring(axes, operators, 1.1, 0.22, [
        fill_series(place) | {"alpha": 0.55} for place in range(len(operators))])
    for cause in ordered:
        axes.bar(0, 0, label=cause, **bar_style(cause))
    axes.set_xlim(-1.15, 1.15)
    axes.set_ylim(-1.15, 1.15)
    axes.axis("off")
    whole = write_total(prediction, quantity)
    axes.text(0, 0, f"{quantity}\n{whole}", ha="center", va="center", fontsize=10,
              fontweight="bold")


def _draw_ring(axes: Axes, amounts: Amounts, radius: float, width: float,
               looks: list[Keywords], *, named: bool = True) -> None:
    whole = math.fsum(amounts.values()) or 1.0
    wedges, *_ = axes.pie(list(amounts.values()), radius=radius, startangle=90,
                          counterclock=False, wedgeprops={"width": width})
    for wedge, look in zip(wedges, looks, strict=False):
        wedge.set(**look)
    if not named:
        return
    for wedge, (name, amount) in zip(wedges, amounts.items(), strict=True):
        if amount / whole >= LEAST_NAMED:
            middle = math.radians((wedge.theta1 + wedge.theta2) / 2)
            at = radius - width / 2
            axes.text(at * math.cos(middle), at * math.sin(middle),
                      f"{name}\n{amount / whole:.0%}", ha="center", va="center", fontsize=7,
                      bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6})


def _by_cause(prediction: Prediction, bill: Bill, quantity: str) -> dict[str, float]:
    return cause_times_us(prediction, bill) if quantity == "time" else cause_energies_uj(bill)
