"""Charts and grids of `twin.reports.charts`, drawn with matplotlib."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import TYPE_CHECKING

from twin.reports.charts import Axis, Chart, Curve, Grid, share_of_log
from twin.reports.figures.canvas import label_plainly
from twin.reports.palette import VERMILION, fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_chart(chart: Chart, axes: Axes) -> None:
    """Draw curves, intervals, rules and texts, and label both axes."""
    for curve in chart.curves:
        _draw_curve(chart, curve, axes)
    for crossed, value in chart.rules:
        (axes.axvline if crossed == "x" else axes.axhline)(
            value, color=VERMILION, linewidth=1, linestyle="--", zorder=1)
    for x, y, text in chart.notes:
        axes.annotate(text, (x, y), (4, 0), textcoords="offset points", fontsize=7, va="center",
                      bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.5})
    axes.grid(True)
    axes.tick_params(axis="both", labelsize=8)
    for name in ("x", "y"):
        _lay_out(axes, name, chart)


def _draw_curve(chart: Chart, curve: Curve, axes: Axes) -> None:
    x, y = ([math.nan if value is None else value for value in values]
            for values in (curve.x, curve.y))
    if chart.polar:
        x = [2 * math.pi * place / len(chart.x.ticks) for place in x]
    label = curve.name or None
    if curve.dashes:
        axes.plot(x, y, color=curve.colour, linestyle=curve.dashes, linewidth=curve.width,
                  marker=curve.mark or None, markersize=curve.sizes[0], label=label,
                  drawstyle="steps-post" if curve.steps else "default")
    else:
        hollow = curve.hollow or [False] * len(x)
        look = fill(curve.colour, curve.hatch)
        sizes = curve.sizes if len(curve.sizes) > 1 else list(curve.sizes) * len(x)
        for drawn in dict.fromkeys(hollow):
            mine = [place for place, one in enumerate(hollow) if one is drawn]
            axes.scatter([x[place] for place in mine], [y[place] for place in mine],
                         s=[sizes[place]**2 for place in mine], marker=curve.mark, zorder=3,
                         facecolors="white" if drawn else curve.colour, alpha=0.9,
                         hatch=None if drawn else look["hatch"], **(
                             {"linewidths": 3 if curve.mark == "|" else 1.5}
                             if curve.mark in ("|", "x", "+") else
                             {"linewidths": 0.8, "edgecolors": curve.colour if drawn else
                              look["edgecolor"]}),
                         label=label if drawn is hollow[0] else None)
    for line, along, ends in ((axes.hlines, y, curve.x_ends), (axes.vlines, x, curve.y_ends)):
        for place, end in enumerate(ends):
            if end is not None:
                faint = bool(curve.hollow) and curve.hollow[place]
                line(along[place], *end, color=curve.colour, zorder=2, linewidth=1.4,
                     alpha=0.35 if faint else 0.9)


def _lay_out(axes: Axes, name: str, chart: Chart) -> None:
    """Set label, scale, ends and ticks of an axis; spokes go around."""
    axis: Axis = getattr(chart, name)
    around = chart.polar and name == "x"
    ends, ticks = axis.ends, axis.ticks
    getattr(axes, f"set_{name}label")(axis.label)
    if axis.log:
        getattr(axes, f"set_{name}scale")("log")
        ends, ticks = chart.spread(axis, name)
        getattr(axes, f"{name}axis").set_minor_formatter("")
    if ticks:
        step = 2 * math.pi / len(ticks) if around else 1
        getattr(axes, f"set_{name}ticks")([step * place for place, _ in ticks],
                                          [text for _, text in ticks])
    if ends is not None and not around:
        getattr(axes, f"set_{name}lim")(*ends)


def draw_grid(grid: Grid, axes: Axes) -> None:
    """Draw a heat map: the least is light; a cross is said of cells that miss a limit."""
    from matplotlib.colors import LogNorm

    known = [value for line in grid.values for value in line if value is not None]
    image = axes.imshow([[math.nan if value is None else value for value in line]
                         for line in grid.values], aspect="auto", cmap="cividis_r", norm=LogNorm())
    for y, (line, texts) in enumerate(zip(grid.values, grid.texts, strict=True)):
        for x, (value, text) in enumerate(zip(line, texts, strict=True)):
            shade = 0.0 if value is None else share_of_log(value, known)
            axes.text(x, y, text or "-", ha="center", va="center", fontsize=8,
                      color="white" if shade > 0.55 else "black")
    slant = len(grid.columns) > 4
    axes.set_xticks(range(len(grid.columns)), [PurePath(one).name for one in grid.columns],
                    fontsize=8, rotation=30 if slant else 0, ha="right" if slant else "center")
    axes.set_yticks(range(len(grid.rows)), [PurePath(one).name for one in grid.rows], fontsize=8)
    axes.set_xlabel(grid.across)
    axes.set_ylabel(grid.up)
    figure = axes.get_figure(root=True)
    if figure is not None:
        label_plainly(figure.colorbar(image, ax=axes, label=grid.unit).ax.yaxis, (1, 2, 3, 5))
