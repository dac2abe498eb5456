"""Pictures of studies kept in folders: effects beside a baseline, and a tornado of influences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from twin.reports.figures.canvas import draw_figure, new_figure, write_legend
from twin.reports.figures.charts import draw_chart
from twin.reports.palette import BLUE, DARK_GREY, ORANGE, fill
from twin.reports.rivals import FIGURES, label_figure
from twin.reports.study_charts import chart_effects, chart_levels
from twin.studies.results import Table
from twin.studies.study.definition import Finding, Study
from twin.studies.study.figures import name_figure
from twin.studies.study.findings import list_effects, name_baseline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twin.studies.study.sensitivity import Sensitivity

LOW, HIGH = fill(BLUE), fill(ORANGE, "////")


def draw_effects(study: Study, finding: Finding, table: Table) -> Figure | None:
    """Return every value's ratios to the baseline: each pair a mark, the median a line.

    None where no two rows differ in the compared axis alone.
    """
    effects = list_effects(table, finding)
    if not effects:
        return None
    chart = chart_effects(effects, finding, table)
    figures = len({effect.figure for effect in effects})
    return draw_figure(
        partial(draw_chart, chart),
        9.0, 1.1 + 0.24 * len(chart.y.ticks) * figures, study.question or study.name,
        f"predicted · over {name_baseline(table, finding)}, all else equal · "
        "marks: pairs, upright lines: medians", legend=True)


def draw_levels(study: Study, finding: Finding, table: Table) -> Figure | None:
    """Return the level of a figure of caches or memories by value; None where none is known."""
    chart = chart_levels(finding, table)
    if chart is None or not any(curve.y for curve in chart.curves):
        return None
    return draw_figure(
        partial(draw_chart, chart), 8.0, 4.2, study.question or study.name,
        f"predicted · {chart.caption}", legend=True)


def draw_tornado(found: Sequence[Sensitivity]) -> Figure:
    """Return a tornado for every model on every board: the figure at both ends of each axis."""
    most = max(len(one.influences) for one in found)
    first, factor = found[0], FIGURES[found[0].quantity][2]
    with new_figure(9.0, 0.3 + len(found) * (0.9 + 0.3 * most),
                    f"{first.study}: what {name_figure(first.quantity)} depends on",
                    f"predicted · {name_figure(first.quantity)} at both ends of each axis, the "
                    f"others in their middle · order by {first.method}") as figure:
        panels = figure.subplots(len(found), 1, squeeze=False)
        for axes, one in zip(panels[:, 0], found, strict=True):
            middle = factor * one.middle
            for place, axis in enumerate(one.influences):
                ends = factor * axis.low, factor * axis.high
                for end, value, look, caption in (
                        (ends[0], axis.low_value, LOW, "at its first value"),
                        (ends[1], axis.high_value, HIGH, "at its last value")):
                    if end != middle:
                        axes.barh(place, end - middle, left=middle, height=0.6, label=caption,
                                  **look)
                    axes.annotate(f" {value} ", (end, place), fontsize=7, color=DARK_GREY,
                                  va="center", ha="left" if 2 * end >= sum(ends) else "right")
            axes.axvline(middle, color=DARK_GREY, linewidth=1)
            axes.set(yticks=range(len(one.influences)), ylim=(len(one.influences) - 0.5, -0.5),
                     xlabel=label_figure(one.quantity), title=f"{one.model} on {one.board}")
            axes.set_yticklabels([axis.axis for axis in one.influences])
            axes.use_sticky_edges = False  # else what begins in the middle begins at the edge
            axes.margins(x=0.15)
        write_legend(figure)
    return figure
