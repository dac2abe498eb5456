"""Rows of a table beside each other: time, energy, RAM and flash in a 2x2 sheet, and as a radar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from hwmodels.quantities import NOT_KNOWN, significant
from twin.reports.figures.canvas import new_sheet, rule_values, write_legend
from twin.reports.palette import DARK_GREY, INK, VERMILION, fill_series, line_series
from twin.reports.tables.studies import name_network
from twin.studies.results import Row, Table
from twin.studies.sweep import network_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {"time_us": ("time of an inference, ms", 1e-3), "energy_uj": ("energy, mJ", 1e-3),
          "ram_bytes": ("RAM, KiB", 1 / 1024), "flash_bytes": ("flash, KiB", 1 / 1024)}
"""What a panel shows, and the factor of its unit."""

MOST_ROWS = 12
"""Rows of a dashboard; a radar has half as many."""


def draw_dashboard_figure(table: Table) -> Figure:
    """Return the 2x2 sheet of the rows, the fastest first, with intervals, limits and winners."""
    rows = _choose(table, MOST_ROWS)
    with new_sheet(13.0, 1.4 + 0.6 * len(rows) + 1.2,
                   f"{len(rows)} configurations of {name_network(rows[0])} side by side",
                   "predicted · lines: 90 % intervals · dashed: a limit · dark, *: least of these"
                   + (" that meet the limits" if not all(row.met for row in rows) else "")
                   + _describe_rest(table, rows)) as figure:
        grid = figure.subplots(2, 2).ravel()
        names = name_rows(rows)
        for axes, name in zip(grid, PANELS, strict=True):
            _draw_panel(axes, rows, names, name, dict(table.limits.list_limits()).get(name))
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Row], names: Sequence[str], name: str,
                limit: float | None) -> None:
    label, factor = PANELS[name]
    values = [getattr(row, name) for row in rows]
    least = min((getattr(row, name) for row in rows
                 if row.met and getattr(row, name) is not None), default=None)
    longest = max((row.bounds_of(name) or (0, 0, 0))[2] for row in rows) * factor or 1.0
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        if value is None:
            axes.text(0, place, f" {NOT_KNOWN}", va="center", fontsize=8, color=DARK_GREY)
            continue
        low, point, high = (one * factor for one in row.bounds_of(name) or (value,) * 3)
        best = row.met and value == least
        axes.barh(place, point, height=0.62, **fill_series(0 if best else 5))
        if high > low:
            axes.hlines(place, low, high, color=INK, linewidth=1.2)
        axes.text(max(point, high) + 0.01 * longest, place,
                  significant(point) + (" *" if best else ""), va="center",
                  fontsize=8)
    if limit is not None:
        axes.axvline(limit * factor, color=VERMILION, linestyle="--", linewidth=1)
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.18 * longest)
    axes.set_xlabel(label)
    rule_values(axes)


def draw_radar_figure(table: Table) -> Figure:
    """Return the radar of the best rows: on every spoke the least of all is 1, at the rim."""
    rows = _choose(table, MOST_ROWS // 2)
    spokes = [name for name in PANELS if all(getattr(row, name) for row in rows)]
    with new_sheet(7.5, 6.0, f"{len(rows)} configurations of {name_network(rows[0])} "
                   "by what each is best at", "predicted · the least of these divided by each: "
                   "1 at the rim is best" + _describe_rest(table, rows)) as figure:
        axes = figure.add_subplot(projection="polar")
        angles = [2 * math.pi * place / len(spokes) for place in range(len(spokes))]
        least = {name: min(getattr(row, name) for row in rows) for name in spokes}
        for number, (row, label) in enumerate(zip(rows, name_rows(rows), strict=True)):
            values = [least[name] / getattr(row, name) for name in spokes]
            axes.plot([*angles, angles[0]], [*values, values[0]], linewidth=1.5, markersize=5,
                      label=label, **line_series(number))
        axes.set_xticks(angles, [PANELS[name][0].split(",")[0].split(" of ")[0]
                                 for name in spokes])
        axes.tick_params(axis="x", pad=14)
        axes.set_ylim(0, 1)
        write_legend(figure)
    return figure


def name_rows(rows: Sequence[Row]) -> list[str]:
    """Return what tells rows apart: the inputs that differ among them, short."""
    inputs = [dict(row.inputs) for row in rows]
    axes = [axis for axis in dict.fromkeys(name for one in inputs for name in one)
            if len({one.get(axis) for one in inputs}) > 1]
    return [", ".join(PurePath(one[axis]).name for axis in axes if axis in one) or row.board
            for one, row in zip(inputs, rows, strict=True)]


def _describe_rest(table: Table, rows: Sequence[Row]) -> str:
    mine = sum(network_of(row) == network_of(rows[0]) for row in table.predicted)
    others = len(set(map(network_of, table.predicted))) - 1
    told = f" · the {len(rows)} best of {mine}" if len(rows) < mine else ""
    return told + (f" · {others} other networks: not compared with this one" if others else "")


def _choose(table: Table, most: int) -> list[Row]:
    """Return rows of the first network, those that meet the limits and are on the front before.

    Networks are not compared: a smaller one would win without saying what it loses.
    """
    first = network_of(table.predicted[0])
    mine = [row for row in table.predicted if network_of(row) == first]
    ranked = sorted(mine, key=lambda row: (not row.met, not row.front, row.time_us or 0))
    return sorted(ranked[:most], key=lambda row: row.time_us or 0)
