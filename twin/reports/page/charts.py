"""Charts and grids of `twin.reports.charts` as plots of a page."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from hwmodels.files import JsonObject
from twin.reports.charts import Axis, Chart, Curve, Grid
from twin.reports.page.axes import error_bars, lay_out_log, rule
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import INK, PAGE
from twin.reports.palette import INK as BLACK

MARKS = {"o": "circle", "s": "square", "D": "diamond", "^": "triangle-up", "v": "triangle-down",
         "P": "cross", "X": "x", "*": "star", "|": "line-ns-open",
         "x": "x-thin", "+": "cross-thin", "": "circle"}
"""Plotly's names of marks."""

DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}

SPOKES = {"gridcolor": "#999999", "linecolor": "#999999"}


def plot_chart(chart: Chart, **plot: Any) -> Plot:
    """Return a chart as a plot: a trace for each curve.

    Parameters
    ----------
    plot
        Height, whether it is half as wide, and `layout` over that of the chart.
    """
    axes: JsonObject = {"polar": {
        "bgcolor": "rgba(0,0,0,0)", "angularaxis": {**SPOKES, "direction": "clockwise"},
        "radialaxis": {**SPOKES, **_lay_out(chart, "y", chart.y), "tickfont": {"size": 10}}}
    } if chart.polar else {
        "xaxis": _lay_out(chart, "x", chart.x), "yaxis": _lay_out(chart, "y", chart.y)}
    layout = {
        **axes, **({} if any(curve.name for curve in chart.curves) else {"showlegend": False}),
        **({"shapes": [rule(value, across=axis == "x") for axis, value in chart.rules]}
           if chart.rules else {}),
        **({"annotations": [
            {"x": x, "y": y, "text": plain(text), "showarrow": False, "xshift": 5,
             "xanchor": "left", "font": {"size": 10}, "bgcolor": PAGE, "opacity": 0.85,
             "borderpad": 1} for x, y, text in chart.notes]} if chart.notes else {}),
        **plot.pop("layout", {})}
    return Plot(name=chart.name, title=chart.title, caption=chart.caption, layout=layout,
                traces=tuple(_trace(chart, curve) for curve in chart.curves), **plot)


def _trace(chart: Chart, curve: Curve) -> JsonObject:
    colour = INK if curve.colour == BLACK else curve.colour
    dash = DASHES.get(curve.dashes) if isinstance(curve.dashes, str) else ",".join(
        f"{2 * length}px" for length in curve.dashes[1])
    symbol = MARKS[curve.mark] + ("-dot" if curve.hatch else "")
    names = [plain(text) for _, text in chart.x.ticks]
    return {
        **({"type": "scatterpolar", "theta": [names[int(place or 0)] for place in curve.x],
            "r": list(curve.y)} if chart.polar else
           {"type": "scatter", "x": list(curve.x), "y": list(curve.y)}),
        "mode": "+".join(("lines",) * bool(dash) + ("markers",) * bool(curve.mark)),
        **({"name": plain(curve.name)} if curve.name else {"showlegend": False}),
        "hoverinfo": "text" if curve.hover else "skip",
        **({"hovertext": ["<br>".join(map(plain, text.split("<br>"))) for text in curve.hover]}
           if curve.hover else {}),
        "line": {"color": colour, "width": curve.width, "shape": "hv" if curve.steps else "linear",
                 **({"dash": dash} if dash else {})},
        "marker": {"color": colour, "size": curve.sizes[0] if len(curve.sizes) == 1 else
                   list(curve.sizes), "line": {"width": 3, "color": colour}
                   if curve.mark in ("|", "x", "+") else {"width": 1, "color": PAGE},
                   "symbol": [symbol + "-open" * hollow for hollow in curve.hollow]
                   if curve.hollow else symbol},
        **{f"error_{axis}": error_bars(
            ((point or 0.0, point or 0.0, point or 0.0) if end is None else
             (end[0], point or 0.0, end[1]) for point, end in zip(points, ends, strict=True)),
            thickness=1, width=3, color=colour)
           for axis, points, ends in (("x", curve.x, curve.x_ends), ("y", curve.y, curve.y_ends))
           if any(ends)}}


def _lay_out(chart: Chart, name: str, axis: Axis) -> JsonObject:
    if axis.log:
        return lay_out_log(*chart.spread(axis, name), plain(axis.label))
    return {**({"title": {"text": plain(axis.label)}} if axis.label else
               {} if axis.ticks else {"visible": False}),
            **({"rangemode": "tozero"} if axis.ends is None else {"range": list(axis.ends)}),
            **({"tickvals": [place for place, _ in axis.ticks], "zeroline": False,
                "ticktext": ["<br>".join(map(plain, text.split("<br>")))
                             for _, text in axis.ticks]} if axis.ticks else {})}


def plot_grid(grid: Grid, **plot: Any) -> Plot:
    """Return a grid as a heat map: the least is light."""
    return Plot(
        name=grid.name, title=grid.title, caption=grid.caption, traces=({
            "type": "heatmap", "z": [list(line) for line in grid.values],
            "x": [plain(PurePath(one).name) for one in grid.columns],
            "y": [plain(PurePath(one).name) for one in grid.rows], "xgap": 2, "ygap": 2,
            "text": grid.texts, "texttemplate": "%{text}", "showscale": False, "hoverongaps": False,
            "hovertemplate": f"%{{y}}, %{{x}}: %{{text}} {grid.unit}<extra></extra>",
            "colorscale": [[0, "#deebf7"], [0.5, "#6baed6"], [1, "#08519c"]]},), layout={
                "xaxis": {"type": "category"},
                "yaxis": {"type": "category", "autorange": "reversed"}},
        height_px=120 + 26 * len(grid.rows), least_px=180 + 52 * len(grid.columns), **plot)
