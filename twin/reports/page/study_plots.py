"""Plots of studies: effects beside a baseline, parallel coordinates, a map of two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from hwmodels.quantities import significant
from twin.reports.figures.studies import choose_cells, list_varied, sort_values
from twin.reports.page.axes import FIGURES, log_axis
from twin.reports.page.page import plain
from twin.reports.page.parts import Plot
from twin.reports.page.rival_plots import COLOURS, SYMBOLS
from twin.reports.page.styles import INK, PAGE
from twin.reports.palette import BLUE, GREY, SKY
from twin.reports.tables.studies import rank_rows
from twin.studies.results import Row as Point
from twin.studies.results import Table as Points
from twin.studies.study.findings import WORDS, Effect, find_baseline
from twin.studies.study.tasks import Finding

MOST_LINES, MOST_CELLS = 200, 24
"""Lines of parallel coordinates; values of an axis that are drawn one by one."""


def draw_effects(effects: Sequence[Effect], finding: Finding, table: Points) -> Plot:
    """Draw every value's ratios to the baseline: each pair a mark, the median a line."""
    values = list(dict.fromkeys(effect.value for effect in effects))
    figures = list(dict.fromkeys(effect.figure for effect in effects))
    traces: list[dict[str, Any]] = []
    for place, figure in enumerate(figures):
        mine = [effect for effect in effects if effect.figure == figure]
        offset = (place - (len(figures) - 1) / 2) * 0.22
        colour, symbol = COLOURS[place], SYMBOLS[place]
        traces.append({
            "type": "scatter", "mode": "markers", "name": WORDS[figure],
            "x": [ratio for effect in mine for ratio in effect.ratios],
            "y": [values.index(effect.value) + offset for effect in mine for _ in effect.ratios],
            "marker": {"symbol": f"{symbol}-open", "size": 7, "color": colour},
            "hoverinfo": "text", "hovertext": [
                f"{plain(effect.value)}<br>{WORDS[figure]} x{significant(ratio)}"
                for effect in mine for ratio in effect.ratios]})
        traces.append({
            "type": "scatter", "mode": "markers", "showlegend": False, "hoverinfo": "text",
            "x": [effect.median for effect in mine],
            "y": [values.index(effect.value) + offset for effect in mine],
            "marker": {"symbol": "line-ns-open", "size": 16, "color": "ink",
                       "line": {"width": 3, "color": colour}},
            "hovertext": [plain(f"{effect.value}: {effect.words}") for effect in mine]})
    ratios = [ratio for effect in effects for ratio in effect.ratios] + [1.0]
    baseline = find_baseline(table, finding)
    return Plot(
        name="effects", title=f"Beside {baseline}, all else equal", traces=tuple(traces),
        told="A mark is a pair of configurations that differ in nothing else, an upright line the "
             "median of its kind; left of 1 is less.",
        height_px=110 + (16 + 18 * len(figures)) * len(values), layout={
            "xaxis": log_axis(ratios, f"times {plain(baseline)}"),
            "yaxis": {"range": [len(values) - 0.5, -0.5], "tickvals": list(range(len(values))),
                      "ticktext": [plain(value) for value in values], "zeroline": False},
            "shapes": [{"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": 1, "x1": 1,
                        "line": {"color": INK, "width": 1}}]})


def draw_parallel(table: Points) -> Plot | None:
    """Draw an upright for each axis and figure, a line for each row; None for fewer than three."""
    ranked = [row for row in rank_rows(table) if row.time_us is not None][:MOST_LINES]
    uprights = [upright for upright in (
        *(_upright_of_axis(ranked, axis) for axis in list_varied(table)),
        *(_upright_of_figure(ranked, name) for name in FIGURES)) if upright is not None]
    if len(ranked) < 3 or len(uprights) < 3:
        return None
    groups: dict[str, list[int]] = {
        "on the front": [], "meets the limits": [], "beaten or over a limit": []}
    for place, row in enumerate(ranked):
        groups["on the front" if row.front in ("certain", "front") else "meets the limits"
               if table.limits and row.met else "beaten or over a limit"].append(place)
    traces = []
    for (name, places), colour, width, dash in zip(
            groups.items(), (BLUE, SKY, GREY), (2.2, 1.2, 0.8), ("solid", "dash", "dot"),
            strict=True):
        across: list[int | None] = []
        heights: list[float | None] = []
        for place in places:
            across += [*range(len(uprights)), None]
            heights += [*(upright.heights[place] for upright in uprights), None]
        if places:
            traces.append({"type": "scatter", "mode": "lines", "name": name, "x": across,
                           "y": heights, "hoverinfo": "skip",
                           "line": {"color": colour, "width": width, "dash": dash}})
    told = "A line is a configuration; it crosses each upright at its value."
    if len(table.predicted) > len(ranked):
        told += f" The best {len(ranked)} of {len(table.predicted)} are drawn."
    return Plot(name="parallel", title="What goes with what", told=told, height_px=420,
                least_px=105 * len(uprights),
                traces=tuple(reversed(traces)), layout={
        "xaxis": {"range": [-0.2, len(uprights) - 0.4], "showgrid": True, "gridwidth": 1.5,
                  "tickvals": list(range(len(uprights))), "zeroline": False, "fixedrange": True,
                  "ticktext": [upright.name for upright in uprights]},
        "yaxis": {"visible": False, "range": [-0.06, 1.06], "fixedrange": True},
        "annotations": [{"x": place, "y": height, "text": text, "showarrow": False, "xshift": 5,
                         "xanchor": "left", "font": {"size": 10}, "bgcolor": PAGE, "opacity": 0.85,
                         "borderpad": 1}
                        for place, upright in enumerate(uprights)
                        for height, text in upright.ticks]})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upright:
    """An upright of parallel coordinates: its rows' heights, 0 to 1, and what stands at it."""

    name: str
    heights: list[float]
    ticks: list[tuple[float, str]]


def _upright_of_axis(rows: Sequence[Point], axis: str) -> _Upright | None:
    words = [PurePath(dict(row.inputs).get(axis, "")).name for row in rows]
    order = sort_values(words)
    if not 1 < len(order) <= MOST_CELLS:
        return None
    step = len(order) - 1
    return _Upright(name=plain(axis.split(".")[-1]), heights=[order.index(word) / step
                                                              for word in words],
                    ticks=[(place / step, plain(word[:20])) for place, word in enumerate(order)])


def _upright_of_figure(rows: Sequence[Point], name: str) -> _Upright | None:
    values = [getattr(row, name) for row in rows]
    if not all(values) or len(set(values)) < 2:
        return None
    label, unit, factor = FIGURES[name]
    low, high = math.log(min(values)), math.log(max(values))
    return _Upright(name=f"{label}, {unit}", heights=[
        (math.log(value) - low) / (high - low) for value in values], ticks=[
        (height, significant(math.exp(low + height * (high - low)) * factor))
        for height in (0.0, 0.5, 1.0)])


def draw_heat(table: Points) -> Plot | None:
    """Draw the first objective over the two axes with most values; None without two."""
    chosen = choose_cells(table)
    if chosen is None:
        return None
    across, up, rows, of_network = chosen
    told = "the least of what else varies" + (f", of {of_network}" if of_network else "")
    quantity = table.objectives[0]
    name, unit, factor = FIGURES[quantity]
    columns, lines = (sort_values(dict(row.inputs).get(axis, "") for row in rows)
                      for axis in (across, up))
    cells: dict[tuple[str, str], float] = {}
    for row in rows:
        value, inputs = getattr(row, quantity), dict(row.inputs)
        if value is not None:
            key = inputs.get(up, ""), inputs.get(across, "")
            cells[key] = min(cells.get(key, value * factor), value * factor)
    grid = [[cells.get((line, column)) for column in columns] for line in lines]
    return Plot(
        name="heat", title=f"Least {name} over {across.split('.')[-1]} and {up.split('.')[-1]}",
        told=f"In {unit}, {told}. An empty cell cannot be.",
        height_px=120 + 26 * len(lines), least_px=180 + 52 * len(columns), traces=({
            "type": "heatmap", "z": grid, "x": [plain(PurePath(one).name) for one in columns],
            "y": [plain(PurePath(one).name) for one in lines], "xgap": 2, "ygap": 2,
            "text": [["" if value is None else significant(value) for value in line]
                     for line in grid], "texttemplate": "%{text}", "showscale": False,
            "hoverongaps": False,
            "hovertemplate": f"%{{y}}, %{{x}}: %{{text}} {unit}<extra></extra>",
            "colorscale": [[0, "#deebf7"], [0.5, "#6baed6"], [1, "#08519c"]]},), layout={
                "xaxis": {"type": "category"}, "yaxis": {"type": "category",
                                                         "autorange": "reversed"}})
