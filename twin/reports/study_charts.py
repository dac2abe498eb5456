"""Pictures of studies: effects beside a baseline, parallel coordinates, a map of two axes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from statistics import median

from hwmodels.quantities import list_by_key, significant
from twin.reports.charts import MISSED, Axis, Chart, Curve, Grid, label_rows, look_of, share_of_log
from twin.reports.palette import BLUE, GREY, SKY
from twin.reports.rivals import FIGURES, label_figure
from twin.reports.tables.study_sentences import rank_rows
from twin.studies.results import Table
from twin.studies.rows import Row, list_known
from twin.studies.study.definition import Finding
from twin.studies.study.figures import name_figure
from twin.studies.study.findings import Effect, list_cells, list_levels, name_baseline, split_within

MOST_LINES, MOST_CELLS, LONGEST_TICK = 200, 24, 20
"""Lines of parallel coordinates; values of an axis that are drawn one by one; letters of one."""


def chart_effects(effects: Sequence[Effect], finding: Finding, table: Table) -> Chart:
    """Describe every value's ratios to the baseline: each pair a mark, the median a line."""
    values = list(dict.fromkeys(effect.value for effect in effects))
    figures = list(dict.fromkeys(effect.figure for effect in effects))
    curves = []
    for number, figure in enumerate(figures):
        mine = [effect for effect in effects if effect.figure == figure]
        offset = (number - (len(figures) - 1) / 2) * min(0.22, 0.8 / len(figures))
        look = {**look_of(number), "dashes": ""}
        curves.append(Curve(
            x=[ratio for effect in mine for ratio in effect.ratios],
            y=[values.index(effect.value) + offset for effect in mine for _ in effect.ratios],
            name=name_figure(figure), **look, sizes=(6.0,), hollow=[
                True for effect in mine for _ in effect.ratios], hover=[
                f"{effect.value}<br>{name_figure(figure)} x{significant(ratio)}"
                for effect in mine for ratio in effect.ratios]))
        curves.append(Curve(
            x=[effect.median for effect in mine],
            y=[values.index(effect.value) + offset for effect in mine], **{**look, "mark": "|"},
            sizes=(15.0,), hover=[f"{effect.value}: {effect.words}" for effect in mine]))
    baseline = name_baseline(table, finding)
    return Chart(
        name="effects", title=f"Beside {baseline}, all else equal", curves=tuple(curves),
        caption="A mark is a pair of configurations that differ in nothing else, an upright line "
             "the median of its kind; left of 1 is less.", rules=(("x", 1.0),),
        y=label_rows([_name_value(value, finding, table) for value in values]),
        x=Axis(label=f"times that of {baseline}", log=True))


def _name_value(value: str, finding: Finding, table: Table) -> str:
    """Return a compared value, with how well the code of its rows is known where that counts."""
    known = list_cells(table, finding, value) if finding.cells else {}
    return value + (f" ({', '.join(known)})" if known else "")


def chart_levels(finding: Finding, table: Table) -> Chart | None:
    """Describe a figure's level by value of the compared axis, a line for each value within.

    The figure is the miss rate where the finding has it, else its first variable; None without one.
    """
    if not finding.variables:
        return None
    figure = "miss_rate" if "miss_rate" in finding.variables else finding.variables[0]
    percent = 100.0 if figure == "miss_rate" else 1.0
    parts = {within: list_levels(finding, rows, figure)
             for within, rows in split_within(finding, table.predicted).items()}
    values = sort_values(value for levels in parts.values() for value in levels)
    curves = []
    for number, (within, levels) in enumerate(parts.items()):
        known = [(place, levels[value]) for place, value in enumerate(values) if value in levels]
        shift = (number - (len(parts) - 1) / 2) * 0.12
        curves.append(Curve(
            x=[place + shift for place, _ in known],
            y=[percent * median(level) for _, level in known], sizes=(6.0,), **look_of(number),
            name=f"{finding.within.rpartition('.')[0]} {within}".strip() if within else "median",
            y_ends=[(percent * level[0], percent * level[-1]) for _, level in known]))
    return Chart(
        name="levels", title=f"{name_figure(figure).capitalize()} by {finding.vary}",
        caption="Marks are medians over networks and boards, uprights their least and most.",
        curves=tuple(curves), y=Axis(label=name_figure(figure) + ", %" * (percent > 1)),
        x=Axis(ticks=tuple(enumerate(values)), ends=(-0.5, len(values) - 0.5)))


def list_varied(table: Table) -> list[str]:
    """Return the axes of which predicted rows have several values, as far as they differ."""
    return [axis for axis in table.axes if len({row.asked(axis) for row in table.predicted}) > 1]


def chart_parallel(table: Table) -> Chart:
    """Describe an upright for each axis and figure, a line for each row."""
    ranked = [row for row in rank_rows(table) if row.time_us is not None][:MOST_LINES]
    uprights = [*list_varied(table), *(
        name for name in FIGURES if len({getattr(row, name) for row in ranked}) > 1)]
    uprights = uprights if len(uprights) > 1 else ["time_us", "ram_bytes"]
    placed = [_place(ranked, name) for name in uprights]
    groups: dict[str, list[int]] = {
        "on the front": [], "meets the limits": [], "beaten or over a limit": []}
    for place, row in enumerate(ranked):
        groups["on the front" if row.front in ("certain", "front") else "meets the limits"
               if table.limits and row.met else "beaten or over a limit"].append(place)
    looks = ((BLUE, 2.2, "-"), (SKY, 1.2, "--"), (GREY, 0.8, ":"))
    curves = []
    for (name, places), (colour, width, dashes) in zip(groups.items(), looks, strict=True):
        heights: list[float | None] = []
        for place in places:
            heights += [*(column[place] for column, _ in placed), None]
        if places:
            curves.append(Curve(x=[*range(len(uprights)), None] * len(places), y=heights, name=name,
                                colour=colour, width=width, dashes=dashes))
    caption = "A line is a configuration; it crosses each upright at its value."
    if len(table.predicted) > len(ranked):
        caption += f" The best {len(ranked)} of {len(table.predicted)} are drawn."
    return Chart(
        name="parallel", title="What goes with what", caption=caption,
        curves=tuple(reversed(curves)),
        x=Axis(ends=(-0.2, len(uprights) - 0.4), ticks=tuple(enumerate(
            label_figure(name) if name in FIGURES else name.split(".")[-1] for name in uprights))),
        y=Axis(ends=(-0.06, 1.06)), notes=tuple(
            (place, height, text) for place, (_, ticks) in enumerate(placed)
            for height, text in ticks))


def _place(rows: Sequence[Row], name: str) -> tuple[list[float | None], list[tuple[float, str]]]:
    """Return the height of every row on an upright, 0 to 1, and its ticks."""
    if name in FIGURES:
        factor = FIGURES[name][2]
        values = [getattr(row, name) for row in rows]
        known = [value for value in values if value]
        low, high = min(known, default=1.0), max(known, default=1.0)
        return [None if not value else share_of_log(value, (low, high)) for value in values], [
            (share_of_log(value, (low, high)), significant(value * factor))
            for value in (low, (low * high)**0.5, high)]
    words = [PurePath(row.asked(name)).name for row in rows]
    order = sort_values(words)
    step = max(len(order) - 1, 1)
    every = 1 if len(order) <= MOST_CELLS else max(step // 4, 1)
    return ([order.index(word) / step for word in words],
            [(place / step, word[:LONGEST_TICK]) for place, word in enumerate(order)
             if place % every == 0])


def grid_cells(table: Table, quantity: str = "") -> Grid | None:
    """Describe a quantity, by default the first objective, over the two axes with most values.

    A cell holds the least of all rows there. None without two axes.
    """
    chosen = _choose_cells(table)
    if chosen is None:
        return None
    across, up, rows, of_network = chosen
    quantity = quantity or table.objectives[0]
    name, unit, factor = FIGURES[quantity]
    columns, lines = (sort_values(row.asked(axis) for row in rows) for axis in (across, up))
    cells = list_by_key(((row.asked(up), row.asked(across)), row) for row in rows)
    network = f", of {of_network}" if of_network else ""
    return Grid(
        name="heat", title=f"Least {name} over {across.split('.')[-1]} and {up.split('.')[-1]}",
        caption=f"In {unit}, the lowest over the other axes{network}. An empty cell is infeasible, "
             "of ? it is not known."
             + (f" {MISSED}: everything there misses a limit." if table.limits else ""),
        columns=tuple(columns), rows=tuple(lines), across=across, up=up, unit=f"{name}, {unit}",
        values=tuple(tuple(min((
            value * factor for value in list_known(cells.get((line, column), ()), quantity)),
            default=None) for column in columns) for line in lines),
        missed=tuple(tuple(bool(table.limits) and not any(
            row.verdict != "no" for row in cells.get((line, column), ())) for column in columns)
            for line in lines),
        unknown=tuple(tuple((line, column) in cells for column in columns) for line in lines))


def _choose_cells(table: Table) -> tuple[str, str, list[Row], str] | None:
    """Return the two axes of a heat map, its rows and of what networks those are; or None.

    An axis of networks is drawn rather than omitted, and further ones keep the value of the first
    row: of several networks the smallest would have the least in every cell.
    """
    varied = list_varied(table)
    sizes = {axis: size for axis in varied if (size := len(
        {row.asked(axis) for row in table.predicted})) <= MOST_CELLS}
    of_networks = [axis for axis in sizes if _is_of_network(axis)]
    ranked = sorted(sizes, key=lambda axis: -sizes[axis])
    if len(ranked) < 2:
        return None
    across, up = ranked[:2]
    if of_networks and not {across, up} & set(of_networks):
        up = max(of_networks, key=lambda axis: sizes[axis])
    fixed = {axis: table.predicted[0].asked(axis) for axis in varied
             if _is_of_network(axis) and axis not in (across, up)}
    rows = [row for row in table.predicted
            if all(row.asked(axis) == value for axis, value in fixed.items())]
    return across, up, rows, ", ".join(
        table.predicted[0].named_inputs.get(axis, "") if axis == "model"
        else f"{axis.rpartition('.')[2]} {value}"
        for axis, value in fixed.items())


def _is_of_network(axis: str) -> bool:
    return axis == "model" or axis.startswith("network.")


def sort_values(values: Iterable[str]) -> list[str]:
    """Return distinct values: numbers with one unit by size, others as they come."""
    found = list(dict.fromkeys(values))
    numbers = [re.match(r"([\d.]+)([A-Za-z]*)$", value) for value in found]
    if all(numbers) and len({match[2] for match in numbers if match}) == 1:
        return sorted(found,
                      key=lambda value: float(re.match(r"[\d.]+", value)[0]))  # type: ignore[index]
    return found
