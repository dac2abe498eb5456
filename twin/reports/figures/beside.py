"""Two sides beside each other: a pair of bars per part or published row, and the way between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodels.quantities import NOT_KNOWN, significant
from twin.attribution.difference import Difference, Row
from twin.attribution.epochs import EpochReport
from twin.reports.bars import LESS, MORE, UNEXPLAINED, BarChart, chain_steps
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import new_sheet, rule_values, write_legend
from twin.reports.palette import BLUE, DARK_GREY, GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hwmodels.board.facts import Board
    from twin.attribution.views import View
    from twin.learning.published import Comparison

ROW_IN = 0.42
"""Height of one pair of bars with its gap, in inches."""

MOST_ROWS = 100
"""Pairs of one picture; of more the largest are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two bars: what was predicted, and what is beside it, in the axis's unit."""

    label: str
    first: float | None
    second: float | None
    stood_in: bool = False
    comparable: bool = True

    @property
    def ratio(self) -> float | None:
        """First over second; None when either is not known, or they are not of the same."""
        if not self.comparable or self.first is None or not self.second:
            return None
        return self.first / self.second


Panels = Sequence[tuple[str, Sequence[Pair]]]


def draw_beside(view: View) -> Figure:
    """Return the bars of every layer, or of every epoch's core and its phases.

    Parameters
    ----------
    view : View
        Of `twin compare`.

    Returns
    -------
    Figure
        One panel per quantity; at most `MOST_ROWS` pairs, said where there are more.
    """
    first, second = view.difference.first, view.difference.second
    panels = _layer_panels(view.difference) if view.epochs is None else _epoch_panels(view.epochs)
    rows = max(len(pairs) for _, pairs in panels)
    left = f" · the {MOST_ROWS} largest of {rows}" if rows > MOST_ROWS else ""
    return _draw_panels([(label, _largest(pairs)) for label, pairs in panels], second.kind,
                        f"{first.model} on {first.board}: predicted beside {second.kind}",
                        f"bars from zero, ratio = predicted / {second.kind}{left}")


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
    latencies = [Pair(label=label_row(item), second=item.row.latency_ms, first=item.predicted_ms,
                      stood_in=item.stood_in) for item in comparisons]
    energies = [Pair(label=label_row(item), second=_thousandth(item.row.energy_uj),
                     first=_thousandth(item.predicted_uj), stood_in=item.stood_in,
                     comparable=item.energy_ratio is not None)
                for item in comparisons]
    panels = [("latency of an inference, ms", latencies)]
    if any(pair.first and pair.second for pair in energies):
        panels.append(("energy of an inference, mJ", energies))
    return _draw_panels(
        panels, "published", f"{model} on {board.name}: predicted beside published",
        f"{board.core.model}, {board.soc} · published: measured on the board, warm · "
        + ("predicted: prices learnt from published rows" if learnt else
           "predicted: no price learnt from these rows"))


def draw_attribution(difference: Difference) -> Figure:
    """Return the sheet: the main account's waterfall from first to second, above its parts."""
    account, first, second = difference.main, difference.first, difference.second
    way = _chart_way(account.total, account.unit, second.kind)
    pairs = [Pair(label=row.label[:36], first=row.first, second=row.second)
             for row in account.rows]
    height = 1.6 + 0.3 * len(way.rows) + ROW_IN * len(pairs)
    with new_sheet(8.5, height, f"Predicted to {second.kind}: {account.quantity}",
                   f"{first.model} on {first.board} · {first.runtime} predicted · "
                   f"{second.runtime} {second.kind}") as figure:
        above, below = figure.subplots(2, 1, height_ratios=(len(way.rows) + 2, len(pairs) + 2))
        draw_bars(way, above, title="one inference")
        above.xaxis.set_major_formatter("{x:,.0f}")
        above.locator_params(axis="x", nbins=6)
        draw_pairs(below, account.unit, pairs, beside=second.kind)
        below.xaxis.set_major_formatter("{x:,.0f}")
        write_legend(figure)
    return figure


def _draw_panels(panels: Panels, kind: str, title: str, note: str) -> Figure:
    rows = max(len(pairs) for _, pairs in panels)
    with new_sheet(6.2 * len(panels) + 1.2, 1.1 + ROW_IN * max(2, rows), title, note) as figure:
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (label, pairs) in zip(all_axes, panels, strict=True):
            draw_pairs(axes, label, pairs, beside=kind)
            axes.xaxis.set_major_formatter("{x:,.5g}" if kind == "published" else "{x:,.0f}")
        write_legend(figure)
    return figure


def draw_pairs(axes: Axes, label: str, pairs: Sequence[Pair], *, beside: str) -> None:
    """Draw each pair of bars, its values behind them and the ratio behind the lower one."""
    longest = max((value for pair in pairs for value in (pair.first, pair.second) if value),
                  default=1.0)
    for place, pair in enumerate(pairs):
        axes.barh(place - 0.19, pair.second or 0.0, height=0.36, color=GREY,
                  label=beside if place == 0 else "")
        axes.barh(place + 0.19, pair.first or 0.0, height=0.36, color=BLUE,
                  hatch="////" if pair.stood_in else "", edgecolor="white", linewidth=0.0)
        for offset, value in ((-0.19, pair.second), (0.19, pair.first)):
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


def _largest(pairs: Sequence[Pair]) -> Sequence[Pair]:
    if len(pairs) <= MOST_ROWS:
        return pairs
    kept = sorted(pairs, key=lambda pair: -(pair.second or 0.0))[:MOST_ROWS]
    return [pair for pair in pairs if pair in kept]


def _layer_panels(difference: Difference) -> Panels:
    return [(f"{account.quantity}, {account.unit}", [
        Pair(label=f"{row.index} {row.op}" if row.index is not None else row.name,
             first=row.first, second=row.second) for row in account.rows])
        for account in difference.accounts]


def _epoch_panels(report: EpochReport) -> Panels:
    panels = []
    for name in ("pre + core + post, MCU cycles", "core, NPU cycles"):
        pairs = [Pair(label=f"{part.name} {part.op}", first=pair.lines[name].first,
                      second=pair.lines[name].second)
                 for pair in report.pairs
                 if name in pair.lines and (part := pair.second or pair.first) is not None]
        panels.append((name, pairs))
    return [(name, pairs) for name, pairs in panels if pairs]


def _chart_way(total: Row, unit: str, kind: str) -> BarChart:
    """Describe the way from a predicted total to that beside it."""
    moves = [(label if len(label) <= 44 else f"{label[:41]}...", move) for label, move in (
        *((line.label, line.gap) for line in total.lines), ("unexplained", total.unexplained))
        if move]
    rows, bars = chain_steps(
        total.first, moves, total.second, ends=("predicted", kind), write=lambda one: f"{one:,.0f}",
        look=lambda name, move: UNEXPLAINED if name == "unexplained" else MORE if move > 0
        else LESS)
    return BarChart(rows=rows, bars=bars, axis=unit)
