"""Rows of a table beside each other: time, energy, RAM and price 2x2, and as a radar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import new_figure, write_legend
from twin.reports.figures.charts import draw_chart
from twin.reports.rivals import Rival, chart_quantity, chart_radar, list_quantities, name_rivals
from twin.reports.tables.study_sentences import rank_rows
from twin.studies.results import Table
from twin.studies.rows import VERDICTS
from twin.studies.sweep import name_network, network_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

MOST_ROWS = 12
"""Rows of a dashboard; a radar has half as many."""


def draw_dashboard_figure(table: Table) -> Figure:
    """Return the 2x2 figure of the rows, the best first, with intervals, limits and winners."""
    rivals = _choose(table, MOST_ROWS)
    with new_figure(13.0, 1.4 + 0.6 * len(rivals) + 1.2,
                    f"{len(rivals)} configurations of {name_network(rivals[0].row)} side by side",
                    "predicted · lines: 90 % intervals · dashed: a limit · hatched: least of these"
                    + (" that meet the limits" if not all(one.row.met for one in rivals) else "")
                    + _describe_rest(table, rivals)) as figure:
        asked = dict(table.limits.list_limits())
        for axes, quantity in zip(figure.subplots(2, 2).ravel(), list_quantities(rivals),
                                  strict=True):
            draw_bars(chart_quantity(rivals, quantity, asked.get(quantity)), axes, thick=0.62)
    return figure


def draw_radar_figure(table: Table) -> Figure | None:
    """Return the radar of the best rows; None where fewer than three things are known of all."""
    rivals = _choose(table, MOST_ROWS // 2)
    known = tuple(one for one in rivals if one.row.verdict != "may")
    rivals = known if len(known) > 1 else rivals  # a spoke needs a figure of all
    chart = chart_radar(rivals)
    if chart is None:
        return None
    with new_figure(7.5, 6.0, f"{len(rivals)} configurations of {name_network(rivals[0].row)} "
                    "by what each is best at", "predicted · the rim is the best of these, rings "
                    "further in take so many times as much" + _describe_rest(table, rivals),
                    ) as figure:
        axes = figure.add_subplot(projection="polar")
        draw_chart(chart, axes)
        axes.tick_params(axis="x", pad=14)
        axes.set_ylim(0, 1.05)
        write_legend(figure)
    return figure


def _describe_rest(table: Table, rivals: Sequence[Rival]) -> str:
    first = network_of(rivals[0].row)
    mine = sum(network_of(row) == first for row in table.predicted)
    others = len(set(map(network_of, table.predicted))) - 1
    subset = f" · the {len(rivals)} best of {mine}" if len(rivals) < mine else ""
    return subset + (f" · {others} other networks: not compared with this one" if others else "")


def _choose(table: Table, most: int) -> tuple[Rival, ...]:
    """Return rows of the first network, those that meet the limits and are on the front before.

    Networks are not compared: a smaller one would win without saying what it loses.
    """
    first = network_of(table.predicted[0])
    mine = [row for row in rank_rows(table) if network_of(row) == first]
    return name_rivals(sorted(mine, key=lambda row: (
        VERDICTS.index(row.verdict), not row.front))[:most])
