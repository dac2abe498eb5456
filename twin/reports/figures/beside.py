"""Two sides beside each other: a pair of bars per part or published row, and the way between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twin.attribution.difference import Difference
from twin.attribution.tasks import TaskReport
from twin.reports.beside import (
    Pair,
    chart_gap,
    chart_pairs,
    name_account,
    pair_energies,
    pair_latencies,
    pair_rows,
)
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import new_figure, write_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hwmodels.board.facts import Board
    from twin.attribution.published import Comparison
    from twin.attribution.views import View

ROW_IN = 0.42
"""Height of one pair of bars with its gap, in inches."""

MOST_ROWS = 100
"""Pairs of one picture; of more the largest are drawn."""


Panels = Sequence[tuple[str, Sequence[Pair]]]


def draw_beside(view: View) -> Figure:
    """Return the bars of every layer, or of every task's core and its phases.

    Parameters
    ----------
    view
        Of `twin compare`.

    Returns
    -------
    Figure
        One panel per quantity; at most `MOST_ROWS` pairs, said where there are more.
    """
    first, second = view.difference.first, view.difference.second
    panels = _task_panels(view.tasks) if view.tasks is not None else [
        (name_account(account), pair_rows(account.rows, lambda row: row.name if row.index is None
                                          else f"{row.index} {row.op}"))
        for account in view.difference.accounts]
    rows = max(len(pairs) for _, pairs in panels)
    left = f" · the {MOST_ROWS} largest of {rows}" if rows > MOST_ROWS else ""
    return _draw_panels([(label, _largest(pairs)) for label, pairs in panels], second.kind,
                        f"{first.model} on {first.board}: predicted beside {second.kind}",
                        f"bars from zero, ratio = predicted / {second.kind}{left}")


def draw_published(model: str, board: Board, comparisons: Sequence[Comparison], *,
                   learnt: bool = False) -> Figure:
    """Return the figure of latencies, and of energies where both sides know one.

    Parameters
    ----------
    comparisons
        Rows with a prediction, top to bottom.
    learnt
        Whether the predictions use prices learnt from published rows.

    Returns
    -------
    Figure
        Bars from zero, so that lengths compare.
    """
    energies = pair_energies(comparisons, label_row)
    panels = [("latency of an inference, ms", pair_latencies(comparisons, label_row))]
    if any(pair.first and pair.second for pair in energies):
        panels.append(("energy of an inference, mJ", energies))
    return _draw_panels(
        panels, "published", f"{model} on {board.name}: predicted beside published",
        f"{board.core.model}, {board.soc} · published: measured on the board, warm · "
        + ("predicted: prices learnt from published rows" if learnt else
           "predicted: no price learnt from these rows"))


def draw_attribution(difference: Difference) -> Figure:
    """Return the figure: the main account's waterfall from first to second, above its parts."""
    account, first, second = difference.main, difference.first, difference.second
    kinds = ("predicted", second.kind)
    way = chart_gap(account, kinds)
    pairs = pair_rows(account.rows, lambda row: row.label[:36])
    height = 1.6 + 0.3 * len(way.rows) + ROW_IN * len(pairs)
    with new_figure(8.5, height, f"Predicted to {second.kind}: {account.quantity}",
                    f"{first.model} on {first.board} · {first.runtime} predicted · "
                    f"{second.runtime} {second.kind}") as figure:
        above, below = figure.subplots(2, 1, height_ratios=(len(way.rows) + 2, len(pairs) + 2))
        draw_bars(way, above, title="one inference")
        above.locator_params(axis="x", nbins=6)
        draw_bars(chart_pairs(pairs, kinds, account.unit), below, room=1.3)
        for axes in (above, below):
            axes.xaxis.set_major_formatter("{x:,.0f}")
        write_legend(figure)
    return figure


def _draw_panels(panels: Panels, kind: str, title: str, note: str) -> Figure:
    rows = max(len(pairs) for _, pairs in panels)
    with new_figure(6.2 * len(panels) + 1.2, 1.1 + ROW_IN * max(2, rows), title, note) as figure:
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (label, pairs) in zip(all_axes, panels, strict=True):
            draw_bars(chart_pairs(pairs, ("predicted", kind), label), axes, room=1.3)
            axes.xaxis.set_major_formatter("{x:,.5g}" if kind == "published" else "{x:,.0f}")
        write_legend(figure)
    return figure


def label_row(item: Comparison) -> str:
    """Name a published row: round, who measured, with what, at which clock."""
    row = item.row
    clock = "" if row.clock_hz is None else f", {row.clock_hz / 1e6:g} MHz"
    return f"{row.runtime}\n{row.edition} {row.submitter}{clock}"


def _largest(pairs: Sequence[Pair]) -> Sequence[Pair]:
    if len(pairs) <= MOST_ROWS:
        return pairs
    kept = sorted(pairs, key=lambda pair: -(pair.second or 0.0))[:MOST_ROWS]
    return [pair for pair in pairs if pair in kept]


def _task_panels(report: TaskReport) -> Panels:
    return [(name, pairs) for name in ("pre + core + post, MCU cycles", "core, NPU cycles")
            if (pairs := [Pair(label=f"{part.name} {part.op}", first=pair.lines[name].first,
                               second=pair.lines[name].second) for pair in report.pairs
                          if name in pair.lines and (part := pair.second or pair.first)])]


