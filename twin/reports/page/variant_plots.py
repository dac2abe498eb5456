"""Plots of variants: bills stacked by cause, stages of optimisation, what moved between two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hwmodels.quantities import format_energy, format_time
from twin.attribution.difference import Account
from twin.reports.figures.palette import BLUE, CAUSE_STYLES, GREY, ORANGE
from twin.reports.page.axes import error_bars
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.rival_plots import COLOURS, DASHES, SYMBOLS, label_axis, short_label
from twin.reports.page.rivals import Rival, write_figure
from twin.reports.page.styles import INK, PAGE, cause_marker, hatches

FOLLOWED = (("time", "time_us"), ("energy", "energy_uj"), ("RAM", "ram_bytes"),
            ("flash", "flash_bytes"))
"""Figures of the timeline."""

MOST_MOVES = 10
ON_BAR = "#14171B"
"""Of text on a grey bar, in the light and in the dark."""


def draw_bills(what: str, bills: Sequence[tuple[str, Mapping[str, float]]]) -> Plot:
    """Draw a bar for each variant, stacked by cause.

    Parameters
    ----------
    what : str
        "time" or "energy".
    bills : sequence of (str, mapping)
        Label, and microseconds or microjoules by cause.
    """
    write = format_time if what == "time" else format_energy
    unit = "ms" if what == "time" else "mJ"
    causes = [cause for cause in CAUSE_STYLES if any(bill.get(cause) for _, bill in bills)]
    labels = [label for label, _ in bills]
    traces = tuple({
        "type": "bar", "orientation": "h", "name": cause, "y": list(range(len(bills))),
        "width": 0.8,
        "x": [bill.get(cause, 0.0) / 1e3 for _, bill in bills], "marker": cause_marker(cause),
        "hoverinfo": "text", "hovertext": [f"{plain(label)}<br>{cause} "
                                           f"{write(bill.get(cause, 0.0))}"
                                           for label, bill in bills]} for cause in causes)
    sums = [math.fsum(bill.values()) for _, bill in bills]
    longest = max(causes, key=lambda cause: max(bill.get(cause, 0.0) for _, bill in bills),
                  default="nothing")
    return Plot(
        name=f"bills-{what}", title=f"Bill for {what}, cause by cause", traces=traces,
        told=f"From {write(min(sums))} to {write(max(sums))}; {longest} is the largest single "
             "cause.", height_px=150 + 38 * len(bills), layout={
                 "barmode": "stack", "legend": {"traceorder": "normal"},
                 "xaxis": {"title": {"text": f"{what}, {unit}"}}, "yaxis": label_axis(labels)})


def draw_timeline(rivals: Sequence[Rival]) -> Plot:
    """Draw what each stage leaves of each figure, in per cent of the first."""
    traces = []
    places = list(range(len(rivals)))
    for number, (name, quantity) in enumerate(FOLLOWED):
        start = getattr(rivals[0].row, quantity)
        if not start or any(getattr(one.row, quantity) is None for one in rivals):
            continue
        bounds = [one.row.bounds_of(quantity) or (0.0, 0.0, 0.0) for one in rivals]
        trace: dict[str, Any] = {
            "type": "scatter", "mode": "lines+markers", "name": name, "x": places,
            "y": [100 * point / start for _, point, _ in bounds],
            "line": {"color": COLOURS[number], "dash": DASHES[number], "width": 2,
                     "shape": "linear"},
            "marker": {"color": COLOURS[number], "symbol": SYMBOLS[number], "size": 9},
            "hoverinfo": "text", "hovertext": [
                f"{plain(one.label)}<br>{name} {write_figure(quantity, getattr(one.row, quantity))}"
                for one in rivals]}
        if quantity == "time_us" and any(high > low for low, _, high in bounds):
            trace["error_y"] = error_bars(bounds, 100 / start, color=COLOURS[number], thickness=1)
        traces.append(trace)
    last, first = rivals[-1].row, rivals[0].row
    left = 100 * (last.time_us or 0.0) / (first.time_us or 1.0)
    return Plot(
        name="timeline", title="What each stage leaves", traces=tuple(traces), height_px=420,
        told=f"{left:.0f} % of the time is left at last. Each stage keeps the changes before it; "
             "bars are 90 % intervals of the time.", layout={
                 "xaxis": {"tickvals": places, "range": [-0.3, len(rivals) - 0.7],
                           "ticktext": [short_label(one.label) for one in rivals]},
                 "yaxis": {"title": {"text": "per cent of the first"}, "rangemode": "tozero"}})


def draw_moves(account: Account, before: str, after: str) -> Plot:
    """Draw the way from the time of one variant to that of another, cause by cause."""
    total = account.total
    moved = [(line.label, line.gap or 0) for line in total.moved]
    steps = moved[:MOST_MOVES]
    rest = total.gap - sum(gap for _, gap in steps)
    steps += [("others", rest)] if rest else []
    labels = [before, *(name for name, _ in steps), after]
    starts, at = [0], total.first
    for _, gap in steps:
        starts.append(at)
        at += gap
    lengths = [total.first, *(gap for _, gap in steps), total.second]
    colours = [GREY, *(ORANGE if gap > 0 else BLUE for _, gap in steps), GREY]
    traces = tuple({
        "type": "bar", "orientation": "h", "y": [place], "x": [length / 1e6], "width": 0.8,
        "base": [start / 1e6], "marker": {"color": colour, "line": {"width": 0.5, "color": PAGE},
                                          "pattern": hatches({ORANGE: "/", BLUE: "\\"}.get(
                                              colour, ""))},
        "hoverinfo": "text", "hovertext": [f"{plain(label)}<br>{length / 1e6:+,.3f} ms"]}
        for place, (label, start, length, colour) in enumerate(zip(
            labels, [*starts, 0], lengths, colours, strict=True)))
    ends = [max(start, start + length) / 1e6 for start, length in zip(
        [*starts, 0], lengths, strict=True)]
    most = max(ends)
    whole = (0, len(labels) - 1)
    inside = [end > 0.7 * most for end in ends]  # Of a whole inside its bar, of a step before it.
    texts = {"type": "scatter", "mode": "text", "hoverinfo": "skip", "cliponaxis": False,
             "y": list(range(len(labels))), "textposition": [
                 "middle left" if one else "middle right" for one in inside],
             "textfont": {"color": [ON_BAR if one and place in whole else INK
                                    for place, one in enumerate(inside)]},
             "x": [min(start, start + length) / 1e6 if one and place not in whole else end
                   for place, (start, length, one, end) in enumerate(zip(
                       [*starts, 0], lengths, inside, ends, strict=True))],
             "text": [f" {length / 1e6:,.3f} " if place in whole else f" {length / 1e6:+,.3f} "
                      for place, length in enumerate(lengths)]}
    return Plot(
        name="moves", title=f"From {before} to {after}", traces=(*traces, texts),
        told=f"{moved[0][0]} moves most: {moved[0][1] / 1e6:+,.3f} ms. Orange with rising strokes "
             "costs more, blue with falling ones less.",
        height_px=90 + 30 * len(labels), layout={
            "barmode": "overlay", "showlegend": False,
            "xaxis": {"title": {"text": "time, ms"}, "range": [0, 1.04 * most],
                      "zerolinecolor": INK}, "yaxis": label_axis(labels)})
