"""Pictures of studies kept in folders: effects beside a baseline, and a tornado of influences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twin.reports.figures.canvas import new_sheet, write_legend
from twin.reports.palette import BLUE, DARK_GREY, GREY, ORANGE, fill, line_series
from twin.studies.results import Table
from twin.studies.study.findings import WORDS, find_baseline, list_effects
from twin.studies.study.tasks import Finding, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twin.studies.study.sensitivity import Sensitivity

LOOKS = {word: line_series(place) for place, word in enumerate(WORDS)}
LOW, HIGH = fill(BLUE), fill(ORANGE, "////")


def draw_effects(study: Study, finding: Finding, table: Table) -> Figure | None:
    """Return every value's ratios to the baseline: each pair a dot, the median a bar.

    None where no two rows differ in the compared axis alone.
    """
    effects = list_effects(table, finding)
    if not effects:
        return None
    values = [*dict.fromkeys(effect.value for effect in effects)]
    figures = [*dict.fromkeys(effect.figure for effect in effects)]
    with new_sheet(9.0, 1.1 + 0.24 * len(values) * len(figures), study.question or study.name,
                   f"predicted · over {find_baseline(table, finding)}, all else equal · "
                   "marks: pairs, bars: medians") as figure:
        axes = figure.subplots()
        step = 0.8 / len(figures)
        for effect in effects:
            at = values.index(effect.value) - 0.4 + step * (figures.index(effect.figure) + 0.5)
            look = LOOKS[effect.figure]
            axes.plot(effect.ratios, [at] * len(effect.ratios), linestyle="", markersize=3.5,
                      marker=look["marker"], color=look["color"], alpha=0.5, markeredgewidth=0)
            axes.plot([effect.median] * 2, [at - 0.4 * step, at + 0.4 * step], linewidth=3,
                      color=look["color"])
        for name in figures:
            look = LOOKS[name]
            axes.plot([], [], marker=look["marker"], color=look["color"], linewidth=3,
                      label=WORDS[name])
        axes.axvline(1, color=GREY, linewidth=1, zorder=0)
        axes.set(xscale="log", yticks=range(len(values)), ylim=(len(values) - 0.5, -0.5),
                 xlabel="times the baseline")
        axes.set_yticklabels(values)
        write_legend(figure)
    return figure


def draw_tornado(found: Sequence[Sensitivity]) -> Figure:
    """Return a tornado for every model on every board: the figure at both ends of each axis."""
    most = max(len(one.influences) for one in found)
    first = found[0]
    with new_sheet(9.0, 0.3 + len(found) * (0.9 + 0.3 * most),
                   f"{first.study}: what {WORDS[first.quantity]} depends on",
                   f"predicted · {first.quantity} at both ends of each axis, the others in "
                   f"their middle · order by {first.method}") as figure:
        sheet = figure.subplots(len(found), 1, squeeze=False)
        for axes, one in zip(sheet[:, 0], found, strict=True):
            for place, axis in enumerate(one.influences):
                for end, value, look, told in (
                        (axis.low, axis.low_value, LOW, "at its first value"),
                        (axis.high, axis.high_value, HIGH, "at its last value")):
                    axes.barh(place, end - one.middle, left=one.middle, height=0.6, label=told,
                              **look)
                    axes.annotate(value, (end, place), fontsize=7, color=DARK_GREY, va="center",
                                  ha="left" if end >= one.middle else "right")
            axes.axvline(one.middle, color=DARK_GREY, linewidth=1)
            axes.set(yticks=range(len(one.influences)), ylim=(len(one.influences) - 0.5, -0.5),
                     xlabel=one.quantity, title=f"{one.model} on {one.board}")
            axes.set_yticklabels([axis.axis for axis in one.influences])
            axes.margins(x=0.15)
        write_legend(figure)
    return figure
