"""Plots of several configurations: bars of each figure, a radar, a front with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twin.reports.page.bars import plot_bars
from twin.reports.page.charts import plot_chart
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.rivals import Rival, chart_front, chart_quantity, chart_radar, list_quantities
from twin.studies.limits import Limits
from twin.studies.rows import QUANTITIES

MOST_BARS, MOST_SPOKED, LONGEST_LABEL = 12, 6, 26


def draw_dashboard(rivals: Sequence[Rival], limits: Limits | None = None) -> tuple[Plot, ...]:
    """Return bars of time, energy, RAM, flash, prices that differ and a duty's power."""
    asked = dict((limits or Limits()).list_limits())
    plots = []
    for quantity in dict.fromkeys((*QUANTITIES[:4], list_quantities(rivals)[-1], "mean_mw")):
        known = [one for one in rivals if getattr(one.row, quantity) is not None]
        if known:
            shown = known[:MOST_BARS]
            chart = chart_quantity(shown, quantity, asked.get(quantity))
            more = len(known) - len(shown)
            caption = chart_quantity(known, quantity).caption + (
                f" {more} more are in the table." if more else "")
            deep = 38 if any(" · " in one.label for one in shown) else 26
            plots.append(plot_bars(replace(chart, caption=caption), short_label, texts=False,
                                   half=True, height_px=90 + deep * len(shown),
                                   layout={"showlegend": False}))
    return tuple(plots)


def short_label(label: str) -> str:
    """Return a label for an axis, in two lines; what is too long loses its end, part by part."""
    first, _, rest = label.partition(" · ")
    head, dot, last = rest.rpartition(" · ")
    room = LONGEST_LABEL - len(dot) - len(last)
    return "<br>".join(plain(part) for part in (
        _cut(first, LONGEST_LABEL), f"{_cut(head, max(room, 9))}{dot}{last}" if dot
        else _cut(last, LONGEST_LABEL)) if part)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most - 1]}…"


def draw_radar(rivals: Sequence[Rival]) -> Plot | None:
    """Draw each as a ring over what is known of all; None where fewer than three things are."""
    shown = rivals[:MOST_SPOKED]
    chart = chart_radar(shown)
    if chart is None:
        return None
    more = f" The first {len(shown)} are drawn." if len(shown) < len(rivals) else ""
    return plot_chart(replace(chart, caption=chart.caption + more), half=True, height_px=460,
                      layout={
        "margin": {"l": 60, "r": 60, "t": 30, "b": 30}, "legend": {"y": -0.12, "yanchor": "top"}})


def draw_front(rivals: Sequence[Rival], objectives: tuple[str, str],
               limits: Limits | None = None, *, half: bool = False) -> Plot:
    """Draw two quantities over each other with their intervals, and the Pareto front."""
    return plot_chart(chart_front(rivals, objectives, limits), half=half, height_px=460)
