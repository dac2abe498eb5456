"""Pictures of studies: the Pareto front with intervals, parallel coordinates, heat maps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from hwmodels.quantities import significant
from twin.errors import UsageError
from twin.reports.figures.canvas import (
    label_plainly,
    new_sheet,
    rule_values,
    save_figure,
    write_legend,
)
from twin.reports.figures.dashboard import PANELS, draw_dashboard_figure, draw_radar_figure
from twin.reports.figures.sheet import is_folder
from twin.reports.palette import (
    BLUE,
    DARK_GREY,
    LIGHT_GREY,
    SKY,
    VERMILION,
    line_series,
)
from twin.reports.tables.studies import name_network
from twin.studies.results import Row, Table
from twin.studies.sweep import network_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {**PANELS, "price_usd": ("price, USD", 1.0)}
"""What an axis of a quantity says, and its factor."""

MOST_PANELS = 6
"""Networks with a panel each; more share one."""

MOST_CELLS = 24
"""Values of an axis of a heat map; one with more is not drawn as cells."""

MOST_LINES = 500
"""Lines of parallel coordinates; beyond, the best rows are drawn."""


def write_study_pictures(table: Table, target: str | Path) -> tuple[Path, ...]:
    """Write the Pareto picture to a file, or every picture of a table into a folder.

    Parameters
    ----------
    table : Table
        Of a study.
    target : str or Path
        A file by suffix, or a folder: one that exists or ends in a slash.

    Raises
    ------
    UsageError
        When nothing of the table can be drawn.
    """
    if not table.predicted:
        raise UsageError(f"{target}: nothing to draw: no configuration could be predicted")
    if not is_folder(str(target)):
        return (save_figure(draw_front_figure(table), target),)
    folder = Path(target)
    pictures: dict[str, Callable[[Table], Figure]] = {
        "pareto": draw_front_figure, "parallel": draw_parallel_figure}
    if len(table.predicted) > 1:
        pictures |= {"dashboard": draw_dashboard_figure, "radar": draw_radar_figure}
    written = [save_figure(draw(table), folder / f"{name}.png")
               for name, draw in pictures.items()]
    if len(_list_short(table)) > 1:
        written.append(save_figure(draw_heat_figure(table), folder / "heat.png"))
    return tuple(written)


def list_varied(table: Table) -> list[str]:
    """Return the axes of which predicted rows have several values, as far as they differ."""
    return [axis for axis in table.axes
            if len({dict(row.inputs).get(axis) for row in table.predicted}) > 1]


def _list_short(table: Table) -> list[str]:
    """Return the axes that vary over few values."""
    return [axis for axis in list_varied(table) if len(
        {dict(row.inputs).get(axis) for row in table.predicted}) <= MOST_CELLS]


def choose_cells(table: Table) -> tuple[str, str, list[Row], str] | None:
    """Return the two axes of a heat map, its rows and of what networks those are; or None.

    An axis of networks is drawn rather than left out, and further ones keep the value of the first
    row: of several networks the smallest would have the least in every cell.
    """
    sizes = {axis: len({dict(row.inputs).get(axis) for row in table.predicted})
             for axis in _list_short(table)}
    of_networks = [axis for axis in sizes if _is_of_network(axis)]
    ranked = sorted(sizes, key=lambda axis: -sizes[axis])
    if len(ranked) < 2:
        return None
    across, up = ranked[:2]
    if of_networks and not {across, up} & set(of_networks):
        up = max(of_networks, key=lambda axis: sizes[axis])
    fixed = {axis: dict(table.predicted[0].inputs).get(axis, "") for axis in list_varied(table)
             if _is_of_network(axis) and axis not in (across, up)}
    rows = [row for row in table.predicted
            if all(dict(row.inputs).get(axis, "") == value for axis, value in fixed.items())]
    return across, up, rows, ", ".join(
        PurePath(value).stem if axis == "model" else f"{axis.rpartition('.')[2]} {value}"
        for axis, value in fixed.items())


def _is_of_network(axis: str) -> bool:
    return axis == "model" or axis.startswith("network.")


def draw_front_figure(table: Table) -> Figure:
    """Return time against energy, or two other objectives, with intervals and limits.

    A panel for each network; filled marks are on its front, hollow ones are beaten.
    """
    across, up = _choose_objectives(table)
    rows = [row for row in table.predicted
            if getattr(row, across) is not None and getattr(row, up) is not None]
    networks = list(dict.fromkeys(map(network_of, rows)))
    panels = [[row for row in rows if network_of(row) == network] for network in networks] \
        if len(networks) <= MOST_PANELS else [rows]
    wide = min(3, len(panels))
    deep = -(-len(panels) // wide)
    meeting = sum(row.met for row in rows)
    limits = f"{meeting} of {len(rows)} meet the limits" if table.limits else \
        f"{sum(bool(row.front) for row in rows)} of {len(rows)} may be best"
    with new_sheet(8.5 if wide == 1 else 5.2 * wide, 5.2 if deep == 1 else 4.0 * deep, limits,
                   "predicted · bars are 90 % intervals · filled: on the Pareto front of its "
                   "network · dashed: a limit") as figure:
        grid = figure.subplots(deep, wide, squeeze=False).ravel()
        boards = list(dict.fromkeys(row.board for row in rows))
        for axes, mine in zip(grid, panels, strict=False):
            _draw_points(axes, mine, across, up, boards)
            _draw_limits(axes, table, across, up)
            if len(panels) > 1:
                axes.set_title(name_network(mine[0]))
        for axes in grid[len(panels):]:
            axes.set_visible(False)
        write_legend(figure)
    return figure


def _draw_limits(axes: Axes, table: Table, across: str, up: str) -> None:
    """Draw limits, and what the axes are."""
    for name, limit in table.limits.list_limits():
        if name == across:
            axes.axvline(limit * AXES[name][1], color=VERMILION, linewidth=1, linestyle="--")
        elif name == up:
            axes.axhline(limit * AXES[name][1], color=VERMILION, linewidth=1, linestyle="--")
    axes.set_xlabel(AXES[across][0])
    axes.set_ylabel(AXES[up][0])
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log")
        label_plainly(axis)
    rule_values(axes, along="y")
    axes.grid(True, axis="x")


def _choose_objectives(table: Table) -> tuple[str, str]:
    """Return two quantities to draw: the objectives, or what is known besides."""
    wanted = dict.fromkeys((*table.objectives, "time_us", "energy_uj", "ram_bytes", "flash_bytes"))
    known = [name for name in wanted
             if any(getattr(row, name) is not None for row in table.predicted)]
    return known[0], known[1]


def _draw_points(axes: Axes, rows: Sequence[Row], across: str, up: str,
                 boards: Sequence[str]) -> None:
    for row in rows:
        x, y = (_bounds(row, name) for name in (across, up))
        look = line_series(boards.index(row.board))
        best = row.front in ("certain", "front")
        axes.errorbar(x[1], y[1], xerr=[[max(x[1] - x[0], 0)], [max(x[2] - x[1], 0)]],
                      yerr=[[max(y[1] - y[0], 0)], [max(y[2] - y[1], 0)]], marker=look["marker"],
                      color=look["color"], markerfacecolor=look["color"] if best else "white",
                      markersize=6, elinewidth=0.8 if best else 0.4,
                      alpha=1.0 if best else 0.6, linestyle="", zorder=3 if best else 2)
    for board in dict.fromkeys(row.board for row in rows):
        look = line_series(boards.index(board))
        axes.plot([], [], marker=look["marker"], linestyle="", color=look["color"],
                  label=PurePath(board).stem)


def _bounds(row: Row, name: str) -> tuple[float, float, float]:
    low, point, high = row.bounds_of(name) or (0.0, 0.0, 0.0)
    factor = AXES[name][1]
    return low * factor, point * factor, high * factor


def draw_parallel_figure(table: Table) -> Figure:
    """Return parallel coordinates: an upright for every axis and figure, a line for every row."""
    rows = sorted(table.predicted, key=lambda row: (row.met, bool(row.front)))[-MOST_LINES:]
    figures = [name for name in AXES if len({getattr(row, name) for row in rows}) > 1]
    uprights = [*list_varied(table), *figures]
    if len(uprights) < 2:
        uprights = ["time_us", "ram_bytes"]
    with new_sheet(max(7.0, 1.5 * len(uprights)), 4.6, "What goes with what",
                   "predicted · thick and dark: meets the limits and is on the front; dashed: "
                   "meets them; pale: does not") as figure:
        axes = figure.subplots()
        places = [_place(rows, name) for name in uprights]
        for number, row in enumerate(rows):
            best = row.front in ("certain", "front")
            axes.plot(range(len(uprights)), [place[number] for place, _ in places],
                      color=BLUE if best else SKY if row.met else LIGHT_GREY,
                      linestyle="-" if best or not row.met else "--",
                      linewidth=(1.6 if best else 0.7) * min(1.0, 60 / len(rows))**0.5,
                      zorder=3 if best else 2 if row.met else 1)
        for across, (_, ticks) in enumerate(places):
            axes.axvline(across, color=DARK_GREY, linewidth=0.8)
            for height, text in ticks:
                axes.annotate(text, (across, height), (4, 0), textcoords="offset points",
                              fontsize=7, va="center", bbox={"facecolor": "white", "alpha": 0.75,
                                                             "edgecolor": "none", "pad": 0.5})
        axes.set_xticks(range(len(uprights)), [
            AXES[name][0] if name in AXES else name.split(".")[-1] for name in uprights],
            fontsize=8)
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.set_xlim(-0.1, len(uprights) - 0.5)
    return figure


def _place(rows: Sequence[Row], name: str) -> tuple[list[float], list[tuple[float, str]]]:
    """Return the height of every row on an upright, 0 to 1, and its ticks."""
    if name in AXES:
        factor = AXES[name][1]
        values = [getattr(row, name) for row in rows]
        known = [value for value in values if value is not None]
        low, high = min(known), max(known)
        ticks = [(_share_of_log(value, known), significant(value * factor)) for value in
                 (low, (low * high)**0.5, high)]
        return [float("nan") if value is None else _share_of_log(value, known)
                for value in values], ticks
    words = [PurePath(dict(row.inputs).get(name, "")).name for row in rows]
    order = sort_values(words)
    step = max(len(order) - 1, 1)
    every = 1 if len(order) <= MOST_CELLS else max(step // 4, 1)
    return ([order.index(word) / step for word in words],
            [(place / step, word) for place, word in enumerate(order) if place % every == 0])


def draw_heat_figure(table: Table, quantity: str | None = None) -> Figure:
    """Return a heat map of the first objective over the two axes with most values.

    A cell holds the least of all rows there; a cross: everything there misses a limit.
    """
    quantity = quantity or table.objectives[0]
    chosen = choose_cells(table)
    if chosen is None:
        raise UsageError("a heat map needs two axes with several values")
    across, up, drawn, of_network = chosen
    columns, lines = (sort_values(dict(row.inputs).get(axis, "") for row in drawn)
                      for axis in (across, up))
    name, factor = AXES[quantity]
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in drawn:
        if getattr(row, quantity) is not None:
            inputs = dict(row.inputs)
            cells.setdefault((inputs.get(up, ""), inputs.get(across, "")), []).append(row)
    with new_sheet(max(6.0, 2.5 + 0.85 * len(columns)), max(3.4, 1.2 + 0.45 * len(lines)),
                   f"Least {name}" + (f", {of_network}" if of_network else ""),
                   "predicted · least of what else varies"
                   + (" · x: misses a limit" if table.limits else "")) as figure:
        axes = figure.subplots()
        grid = [[min((float(getattr(row, quantity)) * factor for row in cells.get(
            (line, column), ())), default=float("nan")) for column in columns] for line in lines]
        known = [value for line in grid for value in line if value == value]
        from matplotlib.colors import LogNorm

        image = axes.imshow(grid, aspect="auto", cmap="cividis_r", norm=LogNorm())
        for y, line in enumerate(lines):
            for x, column in enumerate(columns):
                rows = cells.get((line, column), [])
                text = significant(grid[y][x]) if rows else "-"
                crossed = bool(rows) and table.limits and not any(row.met for row in rows)
                shade = _share_of_log(grid[y][x], known) if rows else 0.0
                axes.text(x, y, f"{text} x" if crossed else text, ha="center", va="center",
                          fontsize=8, color="white" if shade > 0.55 else "black")
        axes.set_xticks(range(len(columns)), [PurePath(one).name for one in columns], fontsize=8,
                        rotation=30 if len(columns) > 4 else 0, ha="right" if len(columns) > 4
                        else "center")
        axes.set_yticks(range(len(lines)), [PurePath(one).name for one in lines], fontsize=8)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        figure.colorbar(image, ax=axes, label=name)
    return figure


def sort_values(values: Iterable[str]) -> list[str]:
    """Return distinct values: numbers with one unit by size, others as they come."""
    found = list(dict.fromkeys(values))
    numbers = [re.match(r"([\d.]+)([A-Za-z]*)$", value) for value in found]
    if all(numbers) and len({match[2] for match in numbers if match}) == 1:
        return sorted(found, key=lambda value: float(re.match(r"[\d.]+", value)[0]))  # type: ignore[index]
    return found


def _share_of_log(value: float, known: Sequence[float]) -> float:
    """Return where a positive value lies between the least and the largest, 0 to 1."""
    low, high = min(known), max(known)
    return math.log(value / low) / math.log(high / low) if high > low > 0 else 0.0
