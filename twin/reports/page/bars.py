"""Bars of `twin.reports.bars` as plots of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.quantities import list_by_key
from twin.reports.bars import WHOLE, Bar, BarChart
from twin.reports.page.axes import error_bars, rule
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import INK, PAGE, page_marker
from twin.reports.palette import lightness

ROW_PX, HEAD_PX = 27, 60
BAR_WIDTH = 0.8
"""Of a row: bars that overlay others are else as wide as the bars of their own trace lie apart."""


def plot_bars(chart: BarChart, shorten: Callable[[str], str] | None = None, *,
              texts: bool = True, **plot: Any) -> Plot:
    """Return bars as a plot: a trace for each series, or each bar where there are none.

    Parameters
    ----------
    chart
        What to draw; stacked where its series are.
    shorten
        Writes the label of a row where rows are long.
    texts
        Whether texts stand beside bars; a pointer shows what hovers over them anyway.
    plot
        Height, whether it is half as wide, and `layout` over that of the chart.
    """
    across, along = ("x", "y") if chart.upright else ("y", "x")
    groups = list_by_key((bar.series or f"-{place}", bar) for place, bar in enumerate(chart.bars))
    names = [plain(row) for row in chart.rows]
    places: Sequence[Any] = names if shorten is None else range(len(names))
    traces: list[JsonObject] = []
    for series, bars in groups.items():
        first = bars[0]
        traces.append({
            "type": "bar", **({} if chart.upright else {"orientation": "h"}),
            **({"name": plain(series)} if first.series else {}),
            across: [places[bar.row] for bar in bars],
            along: [bar.length / chart.scale for bar in bars],
            **({"offsetgroup": str(first.lane)} if chart.lanes > 1 else {} if chart.stacked else
               {"base": [bar.start / chart.scale for bar in bars], "width": BAR_WIDTH}),
            **({f"error_{along}": error_bars(
                ((*ends[:1], bar.end, *ends[1:]) for bar in bars
                 for ends in [bar.ends or (bar.end, bar.end)]), 1 / chart.scale, color=INK,
                thickness=1.3, width=3)} if any(bar.ends for bar in bars) else {}),
            "marker": page_marker(*((INK, "") if first.look == WHOLE else first.look),
                                  edge=0 if first.series and chart.stacked else 0.5),
            **({"text": [plain(first.text)], "textposition": "inside", "hoverinfo": "skip",
                "insidetextanchor": "middle", "textfont": {"color": PAGE}} if first.inside else
               {"hoverinfo": "text", "hovertext": [
                   "<br>".join(map(plain, bar.hover.split("<br>"))) for bar in bars]})})
    beside = [bar for bar in chart.bars if bar.text and not bar.inside] if texts else []
    if beside:
        traces.append(_write_texts(chart, beside, places))
    rows = {"autorange": "reversed", "categoryorder": "array", "categoryarray": names,
            "type": "category"} if shorten is None else {
        "range": [len(names) - 0.5, -0.5], "tickvals": list(range(len(names))), "zeroline": False,
        "ticktext": list(map(shorten, chart.rows))}
    layout = {
        "barmode": "group" if chart.lanes > 1 else "stack" if chart.stacked else "overlay",
        **({"legend": {"traceorder": "normal"}} if chart.stacked else {}),
        **({} if len(groups) > 1 and any(bar.series for bar in chart.bars) else
           {"showlegend": False}),
        f"{along}axis": {"title": {"text": chart.axis}, "rangemode": "tozero"},
        f"{across}axis": rows if not chart.upright else {
            "title": {"text": chart.across}, **({"type": "category"} if shorten is None else {
                name: rows[name] for name in ("tickvals", "ticktext")})},
        **({} if chart.limit is None else {"shapes": [
            rule(chart.limit / chart.scale, across=not chart.upright)]}), **plot.pop("layout", {})}
    return Plot(name=chart.name, title=chart.title, caption=chart.caption, traces=tuple(traces),
                layout=layout, **{"height_px": HEAD_PX + ROW_PX * len(names), **plot})


def _write_texts(chart: BarChart, bars: list[Bar], places: Sequence[Any]) -> JsonObject:
    """Return texts behind their bars, or before them where those end far out."""
    inside = [bar.end > 0.7 * chart.longest for bar in bars]
    return {
        "type": "scatter", "mode": "text", "cliponaxis": False, "hoverinfo": "skip",
        "showlegend": False, "y": [places[bar.row] for bar in bars],
        "x": [(min(bar.start, bar.start + bar.length) if far and bar.start else bar.end)
              / chart.scale for bar, far in zip(bars, inside, strict=True)],
        "text": [f" {plain(bar.text)} " for bar in bars],
        "textposition": ["middle left" if far else "middle right" for far in inside],
        "textfont": {"color": [_contrast(bar) if far and not bar.start else INK
                               for bar, far in zip(bars, inside, strict=True)]}}


def _contrast(bar: Bar) -> str:
    """Return the colour of text on a bar, in the light and in the dark."""
    return "#14171B" if lightness(bar.look[0]) > 0.5 else "#FFFFFF"
