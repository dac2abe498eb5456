"""The bus timeline: which master holds which memory when, and who waits for whom."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hwmodels.bus.bursts import HELD, TARGET
from hwmodels.bus.events import FINISH, GRANT, ISSUE, WAIT, BusRun
from hwmodels.quantities import format_count, format_frequency, format_share
from twin.reports.figures.canvas import draw_figure, rule_values, write_legend
from twin.reports.palette import DARK_GREY, VERMILION, Keywords, fill_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WAITING: Keywords = {"facecolor": "white", "edgecolor": VERMILION, "hatch": "//////",
                           "linewidth": 0.6}
"""How time that is waited for others looks."""

ROW_IN = 0.34
"""Height of a row, in inches."""

SHOWN_BURSTS = 150
"""How many bursts a timeline shows."""


def draw_bus_figure(run: BusRun, name: str) -> Figure:
    """Return the figure of the first `SHOWN_BURSTS` bursts on a bus.

    Parameters
    ----------
    name
        Of the board or scene, for the heading.

    Returns
    -------
    Figure
        One row per master, one per memory bank.
    """
    bus = run.bursts.interconnect
    rows = len(bus.masters) + len(bus.banks)
    lost = int(run.times[:, WAIT].sum()) // run.bursts.bus_period
    last = _end_of(run)
    return draw_figure(
        partial(draw_bus_timeline, run, last=last),
        11.0, 1.3 + ROW_IN * rows, f"{name}: {format_count(lost)} bus cycles waited for others",
        f"{_describe_shown(run, last)} · {format_frequency(bus.clock_hz)} · "
        f"{bus.arbitration.replace('_', ' ')} · predicted · figures beside the rows are of "
        "the whole")


def _describe_shown(run: BusRun, last: int) -> str:
    """Say which part of a run is shown: of its bursts and of its time."""
    whole = max(1, run.end_ticks // run.bursts.bus_period)
    times = run.times / run.bursts.bus_period
    shown = int((times[:, ISSUE] <= last).sum())
    all_of_it = f"{format_count(len(run.times))} bursts in {format_count(whole)} cycles"
    if last >= whole - 1:
        return f"all {all_of_it}"
    return (f"shown: cycles 0 to {last:,}, {format_share(last, whole)} of the time, "
            f"{shown:,} of {all_of_it}")


def draw_bus_timeline(run: BusRun, axes: Axes, last: int) -> None:
    """Draw masters above memories: bars of service, hatched waits, thin lines on the way.

    A memory's row has a lane for each master, so that they differ without colour.

    Parameters
    ----------
    axes
        Where; bus cycles across.
    last
        Bus cycle behind which nothing is drawn.
    """
    bus, cycle = run.bursts.interconnect, run.bursts.bus_period
    times, held = run.times / cycle, run.bursts.bursts[:, HELD] / cycle
    shown = times[:, ISSUE] <= last
    below = len(bus.masters)
    lane = 0.6 / max(1, below)
    for row, master in enumerate(bus.masters):
        part = np.zeros(len(times), dtype=bool)
        part[run.bursts.range_of(master.name)] = True
        mine = np.flatnonzero(part & shown)
        look = _plain(row)
        axes.hlines(np.full(len(mine), row), times[mine, ISSUE], times[mine, FINISH],
                    color=DARK_GREY, linewidth=0.7, zorder=0.8)
        axes.broken_barh(list(zip(times[mine, GRANT], held[mine], strict=True)),
                         (row - 0.3, 0.6), **look)
        waiting = mine[times[mine, WAIT] > 0]
        axes.broken_barh(
            list(zip(times[waiting, GRANT] - times[waiting, WAIT], times[waiting, WAIT],
                     strict=True)),
            (row - 0.18, 0.36), **WAITING)
        for bank in range(len(bus.banks)):
            served = mine[run.bursts.bursts[mine, TARGET] == bank]
            axes.broken_barh(list(zip(times[served, GRANT], held[served], strict=True)),
                             (below + bank - 0.3 + lane * row, lane), **look)
    _label_rows(run, axes)
    axes.axhline(below - 0.5, color=DARK_GREY, linewidth=0.6)
    axes.set_xlim(0, max(last, 1))
    axes.set_xlabel("bus cycles")
    rule_values(axes)
    _add_legend(run, axes)


def _plain(master: int) -> Keywords:
    """Return how a master's service looks: bars too thin for hatches, and for a pixel."""
    look = fill_series(master)
    return look | {"hatch": None, "linewidth": 0.5, "edgecolor": look["facecolor"]}


def _label_rows(run: BusRun, axes: Axes) -> None:
    """Name masters with what they waited, banks with how long they were held."""
    bus = run.bursts.interconnect
    labels = [f"{master.name}  waits {format_count(int(run.wait_cycles(master.name).sum()))}"
              for master in bus.masters]
    banked = {slave.name for slave in bus.slaves if slave.banks > 1}
    labels += [f"{name}{f'[{bank}]' if name in banked else ''}  "
               f"{format_share(int(run.busy[row]), max(1, run.end_ticks))}"
               for row, (name, bank) in enumerate(bus.banks)]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)


def _add_legend(run: BusRun, axes: Axes) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(**_plain(row), label=f"{master.name}: lane {row + 1} of a memory's row")
               for row, master in enumerate(run.bursts.interconnect.masters)]
    handles.append(Patch(**WAITING, label="waits for others"))
    write_legend(axes, handles)


def _end_of(run: BusRun) -> int:
    """Bus cycle in which the first `SHOWN_BURSTS` bursts are over."""
    finishes = np.sort(run.times[:, FINISH])
    if not len(finishes):
        return 1
    return int(finishes[min(len(finishes), SHOWN_BURSTS) - 1] // run.bursts.bus_period + 1)
