"""The memory access map: address against time, coloured by operand, misses marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hwmodels.quantities import format_count
from twin.reports.figures.cache_layers import describe_caches
from twin.reports.figures.canvas import new_figure, rule_values, write_legend
from twin.reports.palette import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, WINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.access_sample import AccessSample
    from twin.pricing.locality import Locality

ROLE_LOOKS = {"weights": (BLUE, "o"), "bias": (WINE, "P"), "parameters": (PURPLE, "D"),
              "input": (GREEN, "^"), "output": (ORANGE, "s"), "scratch": (SKY, "v")}
"""Colour and mark by operand."""

OTHER_LOOK = (INK, ".")


def draw_access_map_figure(locality: Locality, sample: AccessSample) -> Figure:
    """Return the figure of the access map of one layer: a panel for each memory."""
    memories = list(dict.fromkeys(sample.memory.tolist()))
    layer = next(one for one in locality.layers if one.index == sample.layer)
    with new_figure(
            11.0, 0.9 + 2.7 * max(1, len(memories)),
            f"Layer {sample.layer}, {layer.op}: {format_count(sample.accesses)} touches, "
            f"{format_count(sample.misses)} misses", describe_caches(locality)) as figure:
        panels = figure.subplots(max(1, len(memories)), 1, sharex=True, squeeze=False)[:, 0]
        for axes, memory in zip(panels, memories, strict=False):
            draw_access_map(sample, memory, locality, axes)
        panels[-1].set_xlabel("time, us of the core's own cycles (accesses spread evenly)")
        _add_legend(figure, sample)
    return figure


def draw_access_map(sample: AccessSample, memory: str, locality: Locality, axes: Axes) -> None:
    """Draw one memory's accesses as dots, those that missed as crosses.

    Parameters
    ----------
    locality
        For the clock and the memory's first address.
    axes
        Where; KiB from the memory's first byte.
    """
    board = locality.deployment.board
    hz = board.core_clock.frequency_hz
    here = sample.memory == memory
    when = sample.cycles[here] / hz * 1e6
    where = (sample.address[here] - board.memory(memory).address) / 1024
    role, missed = sample.role[here], sample.missed[here]
    for name in dict.fromkeys(role.tolist()):
        mine = (role == name) & ~missed
        colour, marker = ROLE_LOOKS.get(name, OTHER_LOOK)
        axes.plot(when[mine], where[mine], linestyle="", marker=marker, markersize=2.4,
                  color=colour, alpha=0.6, markeredgewidth=0, rasterized=True)
        lost = (role == name) & missed
        axes.plot(when[lost], where[lost], linestyle="", marker="x", markersize=4,
                  markeredgewidth=0.9, color=colour, rasterized=True)
    # Far buffers of one memory would leave nothing but lines: cut the axis to what is touched.
    margin = max(0.5, 0.04 * float(np.ptp(where))) if len(where) else 1.0
    if len(where):
        axes.set_ylim(float(where.min()) - margin, float(where.max()) + margin)
    axes.set_xlim(0, sample.total_cycles / hz * 1e6 or 1)
    axes.set_ylabel("address, KiB")
    axes.set_title(f"{memory}: {len(where):,} touches drawn, of those that missed more than "
                   "of the others" if missed.any() else f"{memory}: {len(where):,} touches drawn")
    rule_values(axes, along="y")


def _add_legend(figure: Figure, sample: AccessSample) -> None:
    from matplotlib.lines import Line2D

    looks = {name: ROLE_LOOKS.get(name, OTHER_LOOK) for name in dict.fromkeys(sample.role.tolist())}
    handles = [Line2D([], [], linestyle="", marker=marker, markersize=5, color=colour, label=name)
               for name, (colour, marker) in looks.items()]
    handles.append(Line2D([], [], linestyle="", marker="x", color=INK, label="missed"))
    write_legend(figure, handles)
