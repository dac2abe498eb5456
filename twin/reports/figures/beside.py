"""Predicted beside measured: a pair of bars per layer, or per epoch of an accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.attribution.epochs import EpochComparison
from twin.attribution.layers import LayerComparison, head_counter
from twin.reports.figures.canvas import HEADING_IN, new_figure, write_heading
from twin.reports.figures.published import Pair, draw_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW_IN = 0.42
"""Height of one pair of bars with its gap, in inches."""

MOST_ROWS = 100
"""Pairs of one picture; of more the largest are drawn."""


def draw_beside(title: str, comparison: LayerComparison | EpochComparison) -> Figure:
    """Return the bars of every layer, or of every epoch's core and its phases.

    Parameters
    ----------
    title : str
        Model and board.
    comparison : LayerComparison or EpochComparison
        What to draw.

    Returns
    -------
    Figure
        One panel per counter; at most `MOST_ROWS` pairs, said where there are more.
    """
    panels = _layer_panels(comparison) if isinstance(comparison, LayerComparison) \
        else _epoch_panels(comparison)
    rows = max(len(pairs) for _, pairs in panels)
    drawn = min(rows, MOST_ROWS)
    left = f" · the {MOST_ROWS} largest of {rows}" if rows > MOST_ROWS else ""
    with new_figure(6.2 * len(panels) + 1.2, HEADING_IN + 1.1 + ROW_IN * max(2, drawn)) as figure:
        write_heading(figure, f"{title}: predicted beside {comparison.kind}",
                      f"bars from zero, ratio = predicted / {comparison.kind}{left}")
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (label, pairs) in zip(all_axes, panels, strict=True):
            draw_pairs(axes, label, _largest(pairs), beside=comparison.kind)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=3,
                      fontsize=8)
    return figure


def _largest(pairs: list[Pair]) -> list[Pair]:
    if len(pairs) <= MOST_ROWS:
        return pairs
    kept = sorted(pairs, key=lambda pair: -(pair.published or 0.0))[:MOST_ROWS]
    return [pair for pair in pairs if pair in kept]


def _layer_panels(comparison: LayerComparison) -> list[tuple[str, list[Pair]]]:
    rows = comparison.rows[:-1] or comparison.rows
    return [(head_counter(name, unit), [
        Pair(label=f"{row.label} {row.op}".strip(), published=figure.measured,
             predicted=figure.predicted, ratio=figure.ratio, stood_in=False)
        for row in rows if (figure := row.figures[name]) and figure.measured is not None])
        for name, unit in comparison.counters]


def _epoch_panels(comparison: EpochComparison) -> list[tuple[str, list[Pair]]]:
    panels = []
    for name in ("pre + core + post, MCU cycles", "core, NPU cycles"):
        pairs = []
        for pair in comparison.pairs:
            figure = pair.lines.get(name)
            side = pair.measured or pair.predicted
            if figure is not None and side is not None:
                pairs.append(Pair(label=f"{side.title} {side.kind}", published=figure.measured,
                                  predicted=figure.predicted, ratio=figure.ratio, stood_in=False))
        panels.append((name, pairs))
    return [(name, pairs) for name, pairs in panels if pairs]
