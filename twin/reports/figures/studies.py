"""Pictures of studies: the Pareto front with intervals, parallel coordinates, heat maps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twin.errors import UsageError
from twin.reports.figures.canvas import (
    draw_figure,
    new_figure,
    save_figure,
    save_figures,
    write_legend,
)
from twin.reports.figures.charts import draw_chart, draw_grid
from twin.reports.figures.dashboard import draw_dashboard_figure, draw_radar_figure
from twin.reports.figures.overview import is_folder
from twin.reports.palette import DARK_GREY
from twin.reports.rivals import (
    MOST_GROUPS,
    chart_front,
    choose_objectives,
    name_rivals,
    say_undrawn,
)
from twin.reports.study_charts import chart_parallel, grid_cells
from twin.studies.results import Table
from twin.studies.sweep import name_network, network_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 6
"""Networks with a panel each; more share one."""


def write_study_pictures(table: Table, target: str | Path) -> tuple[Path, ...]:
    """Write the Pareto picture to a file, or every picture of a table into a folder.

    Parameters
    ----------
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
    pictures: dict[str, Callable[[Table], Figure | None]] = {
        "pareto": draw_front_figure, "parallel": draw_parallel_figure}
    if len(table.predicted) > 1:
        pictures |= {"dashboard": draw_dashboard_figure, "radar": draw_radar_figure}
    if grid_cells(table) is not None:
        pictures["heat"] = draw_heat_figure
    return save_figures({name: draw(table) for name, draw in pictures.items()}, target)


def draw_front_figure(table: Table) -> Figure:
    """Return time against energy, or two other objectives, with intervals and limits.

    A panel for each network; filled marks are on its front, hollow ones are beaten, crosses miss a
    limit.
    """
    objectives = choose_objectives(table.predicted, table.objectives)
    assert objectives is not None, "time and memory are known of every row"
    rows = [row for row in table.predicted
            if all(getattr(row, name) is not None for name in objectives)]
    networks = list(dict.fromkeys(map(network_of, rows)))
    panels = [[row for row in rows if network_of(row) == network] for network in networks] \
        if len(networks) <= MOST_PANELS else [rows]
    wide = min(3, len(panels))
    deep = -(-len(panels) // wide)
    meeting = sum(row.met for row in rows)
    limits = f"{meeting} of {len(table.rows)} meet the limits" if table.limits else \
        f"{sum(bool(row.front) for row in rows)} of {len(rows)} may be best"
    undrawn = say_undrawn(table.predicted, objectives)
    limits += f", {undrawn}" * bool(undrawn)
    may = any(row.verdict == "may" for row in rows)
    with new_figure(8.5 if wide == 1 else 5.2 * wide, 5.2 if deep == 1 else 4.0 * deep, limits,
                    "predicted · bars are 90 % intervals · filled: may be best of its "
                    "network · dotted: the front · dashed: a limit"
                    + " · x: misses a limit" * bool(table.limits)
                    + " · +: may meet, a figure is not known" * may) as figure:
        grid = figure.subplots(deep, wide, squeeze=False).ravel()
        boards = list(dict.fromkeys(row.board for row in rows))
        if len(boards) > MOST_GROUPS:
            boards = list(dict.fromkeys(row.board for row in rows if row.front))
        for axes, mine in zip(grid, panels, strict=False):
            draw_chart(chart_front(name_rivals(mine), objectives, table.limits, boards), axes)
            if len(panels) > 1:
                axes.set_title(name_network(mine[0]))
        for axes in grid[len(panels):]:
            axes.set_visible(False)
        write_legend(figure)
    return figure


def draw_parallel_figure(table: Table) -> Figure:
    """Return parallel coordinates: an upright for every axis and figure, a line for every row."""
    chart = chart_parallel(table)
    uprights = len(chart.x.ticks)
    with new_figure(max(7.0, 1.5 * uprights), 4.6, chart.title,
                    f"predicted · {chart.caption}") as figure:
        axes = figure.subplots()
        draw_chart(chart, axes)
        axes.grid(False)
        for place in range(uprights):
            axes.axvline(place, color=DARK_GREY, linewidth=0.8)
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        write_legend(figure)
    return figure


def draw_heat_figure(table: Table, quantity: str = "") -> Figure:
    """Return a heat map of the first objective over the two axes with most values.

    A cell holds the least of all rows there; a cross: everything there misses a limit.

    Raises
    ------
    UsageError
        Without two axes that vary.
    """
    grid = grid_cells(table, quantity)
    if grid is None:
        raise UsageError("a heat map needs two axes with several values")
    return draw_figure(
        partial(draw_grid, grid),
        max(6.0, 2.5 + 0.85 * len(grid.columns)), max(3.4, 1.2 + 0.45 * len(grid.rows)),
        grid.title, "predicted · lowest over the other axes · -: infeasible"
        + " · ?: not known" * any("?" in line for line in grid.texts)
        + (" · x: misses a limit" if table.limits else ""))
