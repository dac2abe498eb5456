"""Predictions of one network in several configurations: what moved, by cause and by step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.quantities import format_time
from twin.pricing.ledger import bill_time_us, cause_times_us
from twin.reports.bars import LESS, MORE, WHOLE, Bar, BarChart, chain_steps, stack_causes
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import (
    describe_deployment,
    draw_figure,
    new_figure,
    rule_values,
    save_figure,
    save_figures,
    write_legend,
)
from twin.reports.figures.charts import draw_chart
from twin.reports.figures.overview import is_folder
from twin.reports.palette import BLUE, DARK_GREY, ORANGE, fill
from twin.reports.rivals import chart_stages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction

Named = Sequence[tuple[str, "Prediction"]]
"""Configurations by name, in the order they are drawn."""


def write_change_pictures(before: Prediction, steps: Named, target: str) -> tuple[Path, ...]:
    """Write a change to a file, or every picture of it into a folder.

    Parameters
    ----------
    steps : sequence of (str, Prediction)
        After each change, those before it made, too.
    target
        A file by suffix, or a folder: one that exists or ends in a slash.
    """
    change = ", ".join(name for name, _ in steps)
    whole = draw_before_after_figure(before, steps[-1][1], change)
    if not is_folder(target):
        return (save_figure(whole, target),)
    named = [("as it is", before), *((_shorten(name), one) for name, one in steps)]
    return save_figures({
        "before_after": whole, "configurations": draw_configurations_figure(named),
        "steps": draw_steps_figure(named)}, target)


def _shorten(change: str) -> str:
    """Return a change by the last part of its path: frequency_hz=80.5MHz."""
    path, equals, value = change.partition("=")
    return path.rpartition(".")[2] + equals + value


def draw_before_after_figure(before: Prediction, after: Prediction, change: str) -> Figure:
    """Return the figure of a change: causes before and after, and the way between the totals."""
    causes = _moved(before, after)
    ratio = before.time_us / after.time_us if after.time_us else float("inf")
    with new_figure(12.0, 1.6 + 0.3 * (len(causes) + 2),
                    f"{format_time(before.time_us)} to {format_time(after.time_us)}: "
                    f"{ratio:.2f} times as fast with {change}", describe_deployment(before),
                    ) as figure:
        left, right = figure.subplots(1, 2)
        draw_pairs_of_causes(before, after, left)
        draw_moves(before, after, right)
        write_legend(figure)
    return figure


def draw_pairs_of_causes(before: Prediction, after: Prediction, axes: Axes) -> None:
    """Draw a line from before to after for every cause, the largest first."""
    causes = _moved(before, after)
    for place, (_, first, second) in enumerate(causes):
        axes.hlines(place, first, second, color=DARK_GREY, linewidth=1.2)
        axes.plot([first], [place], "o", color=ORANGE, markersize=7,
                  label="before" if place == 0 else None)
        axes.plot([second], [place], "D", color=BLUE, markersize=6,
                  label="after" if place == 0 else None)
    axes.set_yticks(range(len(causes)), [cause for cause, _, _ in causes])
    axes.set_ylim(len(causes) - 0.4, -0.6)
    axes.set_xlabel("time, ms")
    axes.set_title("each cause, before and after")
    rule_values(axes)


def draw_moves(before: Prediction, after: Prediction, axes: Axes) -> None:
    """Draw the way from the time before to that after, a step for each cause that moved."""
    moves = sorted(((cause, second - first) for cause, first, second in _moved(before, after)
                    if second != first), key=lambda move: move[1])
    rows, bars = chain_steps(before.time_us / 1e3, moves, after.time_us / 1e3,
                             ends=("before", "after"), write=lambda ms: f"{ms:,.3f}")
    draw_bars(BarChart(rows=rows, bars=bars, axis="time, ms"), axes, points=7,
              title="the way between")
    axes.bar(0, 0, label="less time", **fill(*LESS))
    axes.bar(0, 0, label="more time", **fill(*MORE))


def draw_configurations_figure(named: Named) -> Figure:
    """Return the figure of several configurations: a bar each by cause, with its interval."""
    best = min(named, key=lambda pair: pair[1].time_us)
    return draw_figure(
        partial(draw_configurations, named), 10.0, 1.6 + 0.42 * len(named),
        f"Fastest of {len(named)}: {best[0]}", "predicted · lines are 90 % intervals", legend=True)


def draw_configurations(named: Named, axes: Axes) -> None:
    """Draw a bar for each configuration, stacked by cause.

    Parameters
    ----------
    named : sequence of (str, Prediction)
        What each is called, and its prediction.
    axes
        Where; time in milliseconds across.
    """
    amounts = [cause_times_us(one, one.bill) for _, one in named]
    causes = dict.fromkeys(cause for part in amounts for cause in part)
    draw_bars(BarChart(
        rows=tuple(name for name, _ in named), axis="time of an inference, ms", scale=1e3,
        bars=(*stack_causes(amounts, causes, lambda row, cause, amount: ""), *(
            Bar(row=row, start=one.time_us, length=0.0, look=WHOLE, text=format_time(one.time_us),
                ends=None if one.certainty is None else (
                    one.certainty.time_us.low, one.certainty.time_us.high))
            for row, (_, one) in enumerate(named)))), axes, room=1.16, thick=0.62)


def draw_steps_figure(named: Named) -> Figure:
    """Return the figure of an optimisation: time and energy after each step, over the first."""
    first, last = named[0][1], named[-1][1]
    gain = first.time_us / last.time_us if last.time_us else float("inf")
    return draw_figure(
        partial(draw_steps, named), max(8.0, 1.9 * len(named)), 4.2,
        f"{gain:.2f} times as fast after {len(named) - 1} steps",
        describe_deployment(first), legend=True)


def draw_steps(named: Named, axes: Axes) -> None:
    """Draw time, and energy where it is known, after each step as a share of the beginning."""
    first = named[0][1]
    amounts: dict[str, list[float]] = {"time": [one.time_us for _, one in named]}
    if first.energy_uj and all(one.energy_uj is not None for _, one in named):
        amounts["energy"] = [one.energy_uj or 0.0 for _, one in named]
    shares = {name: [(100 * value / values[0],) * 3 for value in values]
              for name, values in amounts.items()}
    draw_chart(chart_stages([name for name, _ in named], shares, lambda name, place: ""), axes)
    for place, (_, one) in enumerate(named):
        axes.annotate(format_time(one.time_us), (place, shares["time"][place][1]), (0, 8),
                      textcoords="offset points", ha="center", fontsize=8)
    axes.set_ylim(0, 1.18 * max(share for bounds in shares.values() for _, share, _ in bounds))


def _moved(before: Prediction, after: Prediction) -> list[tuple[str, float, float]]:
    """Return causes with their milliseconds before and after, the largest first."""
    causes = dict.fromkeys((*before.bill.causes(), *after.bill.causes()))
    rows = [(cause, bill_time_us(before, before.bill, cause) / 1e3,
             bill_time_us(after, after.bill, cause) / 1e3) for cause in causes]
    return sorted((row for row in rows if row[1] or row[2]), key=lambda row: -max(row[1:]))
