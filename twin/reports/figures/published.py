"""Predicted beside published: a pair of bars per published result, with the ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodels.quantities import NOT_KNOWN, significant
from twin.reports.figures.canvas import HEADING_IN, new_figure, rule_values, write_heading
from twin.reports.figures.palette import BLUE, DARK_GREY, GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hwmodels.board.facts import Board
    from twin.learning.published import Comparison

ROW_IN = 0.52
"""Height of one pair of bars with its gap, in inches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two bars: what was published or measured, and what is predicted, in the axis's unit."""

    label: str
    published: float | None
    predicted: float | None
    ratio: float | None
    stood_in: bool


def draw_published(model: str, board: Board, comparisons: Sequence[Comparison], *,
                   learnt: bool = False) -> Figure:
    """Return the sheet of latencies, and of energies where both sides know one.

    Parameters
    ----------
    model : str
        Name of the network.
    board : Board
        The machine.
    comparisons : sequence of Comparison
        Rows with a prediction, top to bottom.
    learnt : bool
        Whether the predictions use prices learnt from published rows.

    Returns
    -------
    Figure
        Bars from zero, so that lengths compare.
    """
    latencies = [Pair(label=label_row(item), published=item.row.latency_ms,
                      predicted=item.predicted_ms, ratio=item.latency_ratio,
                      stood_in=item.stood_in) for item in comparisons]
    energies = [Pair(label=label_row(item), published=_thousandth(item.row.energy_uj),
                     predicted=_thousandth(item.predicted_uj), ratio=item.energy_ratio,
                     stood_in=item.stood_in) for item in comparisons]
    panels = [("latency of an inference, ms", latencies)]
    if any(pair.published and pair.predicted for pair in energies):
        panels.append(("energy of an inference, mJ", energies))
    height_in = HEADING_IN + 1.1 + ROW_IN * max(2, len(comparisons))
    with new_figure(6.2 * len(panels) + 1.2, height_in) as figure:
        write_heading(figure, f"{model} on {board.name}: predicted beside published",
                      f"{board.core.model}, {board.soc} · published: measured on the board, warm · "
                      + ("predicted: prices learnt from published rows" if learnt else
                         "predicted: no price learnt from these rows"))
        all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (label, pairs) in zip(all_axes, panels, strict=True):
            draw_pairs(axes, label, pairs)
        figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=3,
                      fontsize=8)
    return figure


def draw_pairs(axes: Axes, label: str, pairs: Sequence[Pair], *,
               beside: str = "published") -> None:
    """Draw each pair of bars, its values behind them and the ratio behind the lower one."""
    longest = max((value for pair in pairs for value in (pair.published, pair.predicted)
                   if value), default=1.0)
    for place, pair in enumerate(pairs):
        axes.barh(place - 0.19, pair.published or 0.0, height=0.36, color=GREY,
                  label=beside if place == 0 else "")
        axes.barh(place + 0.19, pair.predicted or 0.0, height=0.36, color=BLUE,
                  hatch="////" if pair.stood_in else "", edgecolor="white", linewidth=0.0)
        for offset, value in ((-0.19, pair.published), (0.19, pair.predicted)):
            text = NOT_KNOWN if value is None else significant(value)
            if offset > 0 and pair.ratio is not None:
                text += f"   ratio {pair.ratio:.2f}"
            axes.text((value or 0.0) + 0.01 * longest, place + offset, text, va="center",
                      fontsize=8, color=INK if value else DARK_GREY)
    axes.barh(0, 0, color=BLUE, label="predicted")
    if any(pair.stood_in for pair in pairs):
        axes.barh(0, 0, color=BLUE, hatch="////", edgecolor="white",
                  label="predicted with another version of the runtime")
    axes.set_yticks(range(len(pairs)), [pair.label for pair in pairs])
    axes.set_ylim(len(pairs) - 0.5, -0.5)
    axes.set_xlim(0, 1.3 * longest)
    axes.set_xlabel(label)
    rule_values(axes)


def label_row(item: Comparison) -> str:
    """Name a published row: round, who measured, with what, at which clock."""
    row = item.row
    clock = "" if row.clock_hz is None else f", {row.clock_hz / 1e6:g} MHz"
    return f"{row.runtime}\n{row.edition} {row.submitter}{clock}"


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1e3
