"""Bars of `twin.reports.bars`, drawn with matplotlib."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from twin.reports.bars import Bar, BarChart
from twin.reports.figures.canvas import rule_values
from twin.reports.palette import DARK_GREY, INK, VERMILION, Keywords, fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_LETTERS = 150
"""Of all names below bars; more are written upright."""


def draw_bars(chart: BarChart, axes: Axes, *, room: float = 1.2, points: float = 8,
              thick: float = 0.7, title: str = "", **look: Any) -> None:
    """Draw bars, their texts beside them on the side with room, and the axes.

    Parameters
    ----------
    room
        End of the axis, as a multiple of the longest bar.
    points, thick
        Size of texts; of a bar as a share of its row.
    look
        More keywords of bars.
    """
    along, base, size = (axes.bar, "bottom", "width") if chart.upright else (
        axes.barh, "left", "height")
    for (series, colours), group in groupby(
            sorted((bar for bar in chart.bars if bar.length), key=lambda bar: bar.lane),
            key=lambda bar: (bar.series, bar.look)):
        bars = list(group)
        where: Keywords = {base: [bar.start / chart.scale for bar in bars],
                                 size: thick / chart.lanes}
        along([_place(bar, chart, thick) for bar in bars],
              [bar.length / chart.scale for bar in bars], **where,
              label=series or None, **(fill(*colours) | look))
    for bar in chart.bars:
        if bar.ends is not None:
            axes.hlines(_place(bar, chart, thick), bar.ends[0] / chart.scale,
                        bar.ends[1] / chart.scale, color=INK, linewidth=1.2)
    whole = chart.longest / chart.scale
    for bar in chart.bars:
        if bar.text:
            _write(axes, bar, chart, thick, room, points)
    count = len(chart.rows)
    if chart.upright:
        step = max(1, count // 60)
        shown = chart.rows[::step]
        axes.set_xticks(list(range(count))[::step], shown)
        if sum(map(len, shown)) > MOST_LETTERS:
            axes.tick_params(axis="x", labelrotation=90, labelsize=7)
        axes.set_xlim(-0.8, count - 0.2)
        axes.set_xlabel(chart.across)
        axes.set_ylabel(chart.axis)
    else:
        axes.set_yticks(range(count), chart.rows)
        axes.set_ylim(count - 0.4, -0.6)
        axes.set_xlim(min(0.0, *(min(bar.start, bar.start + bar.length) for bar in chart.bars))
                      / chart.scale if chart.bars else 0.0, room * whole)
        axes.set_xlabel(chart.axis)
    if chart.limit is not None:
        axes.axvline(chart.limit / chart.scale, color=VERMILION, linestyle="--", linewidth=1.2)
    if title:
        axes.set_title(title)
    rule_values(axes, "y" if chart.upright else "x")


def _place(bar: Bar, chart: BarChart, thick: float) -> float:
    """Return where along the rows a bar lies."""
    return bar.row + thick * ((bar.lane + 0.5) / chart.lanes - 0.5)


def _write(axes: Axes, bar: Bar, chart: BarChart, thick: float, room: float, points: float) -> None:
    end, start = (max(bar.end, *(bar.ends or (0.0,))) / chart.scale, bar.start / chart.scale)
    place = _place(bar, chart, thick)
    if bar.inside:
        axes.text(end / 2, place, bar.text, ha="center", va="center", color="white",
                  fontsize=points)
        return
    right = room > 1.05 or end < 0.85 * chart.longest / chart.scale
    axes.annotate(bar.text, (end if right else start, place), (4 if right else -4, 0),
                  textcoords="offset points", va="center", fontsize=points,
                  color=INK if bar.length or not chart.lanes > 1 else DARK_GREY,
                  ha="left" if right else "right")
