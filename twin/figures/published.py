"""Predicted beside published: a pair of bars per published result, with the ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twin.figures.canvas import HEADING_IN, new_figure, rule_values, write_heading
from twin.figures.palette import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hwmodels.board import Board
    from twin.published import Comparison

ROW_IN = 0.52
"""Height of one pair of bars with its gap, in inches."""


def draw_published(model: str, board: Board, comparisons: Sequence[Comparison]) -> Figure:
    """Return the sheet of latencies, and of energies where both sides know one.

    Parameters
    ----------
    model : str
        Name of the network.
    board : Board
        The machine.
    comparisons : sequence of Comparison
        Rows with a prediction, top to bottom.

    Returns
    -------
    Figure
        Bars from zero, so that lengths compare.
    """
    latencies = [(label_row(item), item.row.latency_ms, item.predicted_ms, item.stood_in)
                 for item in comparisons]
    energies = [(label_row(item), item.row.energy_uj and item.row.energy_uj / 1e3,
                 item.predicted_uj and item.predicted_uj / 1e3, item.stood_in)
                for item in comparisons]
    panels = [("latency of an inference, ms", latencies)]
    if any(published and predicted for _, published, predicted, _ in energies):
        panels.append(("energy of an inference, mJ", energies))
    height_in = HEADING_IN + 1.1 + ROW_IN * max(2, len(comparisons))
    with new_figure(6.2 * len(panels) + 1.2, height_in) as figure:
        write_heading(figure, f"{model} on {board.name}: predicted beside published",
                      f"{board.core.model}, {board.soc} · published: measured on the board, warm · "
                      "predicted: no price learned from these rows")
        all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (label, rows) in zip(all_axes, panels, strict=True):
            draw_pairs(axes, label, rows)
        figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=3,
                      fontsize=8)
    return figure


def draw_pairs(axes: Axes, label: str,
               rows: Sequence[tuple[str, float | None, float | None, bool]]) -> None:
    """Draw (name, published, predicted, stood in) as pairs of bars with the ratio behind."""
    longest = max((value for _, *pair, _ in rows for value in pair if value), default=1.0)
    for place, (_, published, predicted, stood_in) in enumerate(rows):
        axes.barh(place - 0.19, published or 0.0, height=0.36, color=GREY,
                  label="published" if place == 0 else "")
        axes.barh(place + 0.19, predicted or 0.0, height=0.36, color=BLUE,
                  hatch="////" if stood_in else "", edgecolor="white", linewidth=0.0,
                  label="predicted" if place == 0 else "")
        for offset, value in ((-0.19, published), (0.19, predicted)):
            text = "not known" if value is None else f"{value:,.3g}"
            if offset > 0 and value and published:
                text += f"   ratio {value / published:.2f}"
            axes.text((value or 0.0) + 0.01 * longest, place + offset, text, va="center",
                      fontsize=8, color="black" if value else ORANGE)
    if any(stood_in for *_, stood_in in rows):
        axes.barh(0, 0, color=BLUE, hatch="////", edgecolor="white",
                  label="predicted with another version of the runtime")
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.3 * longest)
    axes.set_xlabel(label)
    rule_values(axes)


def label_row(item: Comparison) -> str:
    """Name a published row: round, who measured, with what, at which clock."""
    row = item.row
    clock = "" if row.clock_hz is None else f", {row.clock_hz / 1e6:g} MHz"
    return f"{row.runtime}\n{row.edition} {row.submitter}{clock}"
