"""From predicted to measured as a waterfall: the gap of each counted cause, and what is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.attribution.attribution import Attribution, Row
from twin.reports.figures.canvas import HEADING_IN, new_figure, rule_values, write_heading
from twin.reports.figures.palette import DARK_GREY, GREEN, INK, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_attribution(attribution: Attribution) -> Figure:
    """Return the sheet: the main account's waterfall above its layers."""
    account = attribution.main
    steps = _steps(account.total)
    height = HEADING_IN + 1.6 + 0.3 * len(steps) + 0.24 * len(account.rows)
    with new_figure(8.5, height) as figure:
        predicted, measured = attribution.predicted, attribution.measured
        write_heading(figure, f"Predicted to measured: {account.quantity}",
                      f"{predicted.model} on {predicted.board} · {predicted.runtime} predicted · "
                      f"{measured.runtime} {measured.kind}")
        above, below = figure.subplots(2, 1, height_ratios=(len(steps) + 2, len(account.rows) + 2))
        _draw_waterfall(above, steps, account.unit)
        _draw_rows(below, account.rows, account.unit)
    return figure


def _steps(total: Row) -> list[tuple[str, int, int]]:
    """Bars: label, start and end."""
    found, level = [("predicted", 0, total.predicted)], total.predicted
    moves = [(gap.label, gap.gap) for gap in total.gaps if gap.gap]
    for label, move in [*moves, ("unexplained", total.unexplained)]:
        if move:
            short = label if len(label) <= 44 else f"{label[:41]}..."
            found.append((short, level, level + move))
            level += move
    return [*found, ("measured", 0, total.measured)]


def _draw_waterfall(axes: Axes, steps: list[tuple[str, int, int]], unit: str) -> None:
    whole = max(max(start, end) for _, start, end in steps) or 1
    for place, (label, start, end) in enumerate(steps):
        ends = label in ("predicted", "measured") and start == 0
        colour = INK if ends else DARK_GREY if label == "unexplained" else (
            VERMILION if end > start else GREEN)
        axes.barh(place, end - start, left=start, height=0.7, facecolor=colour,
                  hatch="////" if label == "unexplained" else "", edgecolor="white", linewidth=0.3)
        text = f"{end:,}" if ends else f"{end - start:+,}"
        axes.text(max(start, end) + 0.01 * whole, place, text, va="center", fontsize=8)
    axes.set_yticks(range(len(steps)), [label for label, _, _ in steps])
    axes.set_ylim(len(steps) - 0.4, -0.6)
    axes.set_xlim(min(0, min(min(start, end) for _, start, end in steps)), 1.2 * whole)
    axes.set_title("one inference")
    _label_values(axes, unit)


def _draw_rows(axes: Axes, rows: tuple[Row, ...], unit: str) -> None:
    for place, row in enumerate(rows):
        axes.barh(place - 0.18, row.predicted, height=0.34, facecolor=INK)
        axes.barh(place + 0.18, row.measured, height=0.34, facecolor=VERMILION)
    axes.set_yticks(range(len(rows)), [
        row.name if row.index is None else f"{row.index} {row.name}"[:36] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title("predicted (dark) and measured, by part")
    _label_values(axes, unit)


def _label_values(axes: Axes, unit: str) -> None:
    axes.set_xlabel(unit)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=6)
    rule_values(axes)
