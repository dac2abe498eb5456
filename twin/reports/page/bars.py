"""Bars of `twin.reports.bars` as plots of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twin.reports.bars import WHOLE, Bar, BarChart
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.styles import INK, PAGE, page_marker
from twin.reports.palette import lightness

ROW_PX, HEAD_PX = 27, 60


def plot_bars(chart: BarChart, shorten: Callable[[str], str] | None = None,
              **plot: Any) -> Plot:
    """Return bars as a plot: a trace for each series, or each bar where there are none.

    Parameters
    ----------
    chart : BarChart
        What to draw; stacked where its series are.
    shorten : callable, optional
        Writes the label of a row where rows are long.
    plot
        Height, whether it is half as wide, and `layout` over that of the chart.
    """
    across, along = ("x", "y") if chart.upright else ("y", "x")
    groups: dict[str, list[Bar]] = {}
    for place, bar in enumerate(chart.bars):
        groups.setdefault(bar.series or f"-{place}", []).append(bar)
    names = [plain(row) for row in chart.rows]
    traces: list[Mapping[str, Any]] = []
    for series, bars in groups.items():
        first = bars[0]
        traces.append({
            "type": "bar", **({} if chart.upright else {"orientation": "h"}),
            **({"name": plain(series)} if first.series else {}),
            across: [names[bar.row] for bar in bars],
            along: [bar.length / chart.scale for bar in bars],
            **({} if chart.stacked else {"base": [bar.start / chart.scale for bar in bars]}),
            "marker": page_marker(*((INK, "") if first.look == WHOLE else first.look),
                                  edge=0 if first.series else 0.5),
            **({"text": [plain(first.text)], "textposition": "inside", "hoverinfo": "skip",
                "insidetextanchor": "middle", "textfont": {"color": PAGE}} if first.inside else
               {"hoverinfo": "text", "hovertext": [
                   "<br>".join(map(plain, bar.hover.split("<br>"))) for bar in bars]})})
    texts = [bar for bar in chart.bars if bar.text and not bar.inside]
    if texts:
        traces.append(_write_texts(chart, texts, names))
    rows = {"autorange": "reversed", "categoryorder": "array", "categoryarray": names,
            **({} if shorten is None else {"tickvals": list(range(len(names))),
                                           "ticktext": list(map(shorten, chart.rows))})}
    layout = {
        "barmode": "stack" if chart.stacked else "overlay",
        **({"legend": {"traceorder": "normal"}} if chart.stacked else {}),
        **({} if any(bar.series for bar in chart.bars) else {"showlegend": False}),
        f"{along}axis": {"title": {"text": chart.axis}, "rangemode": "tozero"},
        f"{across}axis": {"title": {"text": chart.across}, "type": "category"}
        if chart.upright else rows, **plot.pop("layout", {})}
    return Plot(name=chart.name, title=chart.title, told=chart.told, traces=tuple(traces),
                layout=layout, **{"height_px": HEAD_PX + ROW_PX * len(names), **plot})


def _write_texts(chart: BarChart, bars: list[Bar], names: list[str]) -> Mapping[str, Any]:
    """Return texts behind their bars, or before them where those end far out."""
    inside = [bar.end > 0.7 * chart.longest for bar in bars]
    return {
        "type": "scatter", "mode": "text", "cliponaxis": False, "hoverinfo": "skip",
        "y": [names[bar.row] for bar in bars],
        "x": [(min(bar.start, bar.start + bar.length) if far and bar.start else bar.end)
              / chart.scale for bar, far in zip(bars, inside, strict=True)],
        "text": [f" {bar.text} " for bar in bars],
        "textposition": ["middle left" if far else "middle right" for far in inside],
        "textfont": {"color": [_contrast(bar) if far and not bar.start else INK
                               for bar, far in zip(bars, inside, strict=True)]}}


def _contrast(bar: Bar) -> str:
    """Return the colour of text on a bar, in the light and in the dark."""
    return "#14171B" if lightness(bar.look[0]) > 0.5 else "#FFFFFF"
