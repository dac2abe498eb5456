"""Layers in the data cache: working set against capacity, and miss rate with the 10 % line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodels.quantities import format_share, format_size
from twin.reports.figures.canvas import (
    describe_deployment,
    new_sheet,
    rule_values,
    write_legend,
)
from twin.reports.figures.palette import BLUE, DARK_GREY, ORANGE, VERMILION, fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.prediction.locality import Locality

ROW_IN = 0.22
"""Height of one layer's bar with its gap, in inches."""

WITHIN, ABOVE = fill(BLUE), fill(ORANGE, "////")

WORRYING = 0.10
"""Miss rate from which the report calls a layer bound by its cache."""


def describe_caches(locality: Locality) -> str:
    """Say what a picture shows: model, board, core, runtime, caches, temperature."""
    caches = ", ".join(
        f"{cache.name} {format_size(cache.size_bytes)}, {cache.ways} ways of "
        f"{cache.line_bytes} B, {cache.replacement}" for cache in locality.caches)
    return describe_deployment(locality, caches or "no data cache")


def draw_working_set_figure(locality: Locality) -> Figure:
    """Return the sheet of working sets."""
    beyond = sum(layer.working_set_bytes > locality.capacity_bytes for layer in locality.layers)
    with new_sheet(9.5, 1.3 + ROW_IN * max(6, len(locality.layers)),
                   f"Working sets: {beyond} of {len(locality.layers)} layers touch more "
                   f"than the {format_size(locality.capacity_bytes)} cached",
                   describe_caches(locality)) as figure:
        draw_working_sets(locality, figure.subplots())
    return figure


def draw_working_sets(locality: Locality, axes: Axes) -> None:
    """Draw the bytes of the lines each layer touches beside the caches' capacity.

    Parameters
    ----------
    locality : Locality
        What to show.
    axes : Axes
        Where; KiB on a logarithmic scale, layers downwards in execution order.
    """
    capacity = locality.capacity_bytes / 1024
    sizes = [layer.working_set_bytes / 1024 for layer in locality.layers]
    low = min([capacity, *(size for size in sizes if size)]) / 2
    for row, size in enumerate(sizes):
        if size:
            axes.barh(row, size - low, left=low, height=0.78,
                      **(ABOVE if size > capacity else WITHIN))
        axes.text(max(size, low) * 1.04, row, format_size(1024 * size) if size else "not cached",
                  va="center", fontsize=7, color="black" if size else DARK_GREY)
    axes.axvline(capacity, color=VERMILION, linestyle="--", linewidth=1.2)
    axes.text(capacity, -0.9, f" {format_size(locality.capacity_bytes)}", color=VERMILION,
              fontsize=8, ha="left", va="center")
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, max([capacity, *sizes]) * 2.2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("lines touched, KiB")
    _name_layers(locality, axes)
    _tell_apart(axes, "no more than the cache holds", "more than the cache holds")


def draw_miss_rate_figure(locality: Locality) -> Figure:
    """Return the sheet of miss rates."""
    rates = [layer.miss_rate for layer in locality.layers if layer.miss_rate is not None]
    above = sum(rate > WORRYING for rate in rates)
    title = (f"Miss rate {format_share(locality.misses, locality.accesses)}: {above} of "
             f"{len(locality.layers)} layers above 10 %" if rates else "No access is cached")
    with new_sheet(9.5, 1.3 + ROW_IN * max(6, len(locality.layers)), title,
                   describe_caches(locality)) as figure:
        draw_miss_rates(locality, figure.subplots())
    return figure


def draw_miss_rates(locality: Locality, axes: Axes) -> None:
    """Draw misses per line looked up, layer by layer.

    Parameters
    ----------
    locality : Locality
        What to show.
    axes : Axes
        Where; per cent.
    """
    rates = [layer.miss_rate for layer in locality.layers]
    top = max([2 * WORRYING, *(rate for rate in rates if rate is not None)]) * 100
    for row, rate in enumerate(rates):
        if rate is not None:
            axes.barh(row, 100 * rate, height=0.78, **(ABOVE if rate > WORRYING else WITHIN))
        layer = locality.layers[row]
        note = ("not cached" if rate is None else
                f"{format_share(layer.misses, layer.accesses)}   {layer.misses:,} misses")
        axes.text(100 * (rate or 0.0) + 0.012 * top, row, note, va="center", fontsize=7,
                  color=DARK_GREY if rate is None else "black")
    axes.axvline(100 * WORRYING, color=VERMILION, linestyle="--", linewidth=1.2)
    axes.text(100 * WORRYING, -0.9, " 10 %", color=VERMILION, fontsize=8, ha="left", va="center")
    axes.set_xlim(0, 1.3 * top)
    axes.set_xlabel("misses per line looked up, %")
    _name_layers(locality, axes)
    _tell_apart(axes, "up to 10 %", "above 10 %: bound by the cache")


def _tell_apart(axes: Axes, within: str, above: str) -> None:
    from matplotlib.patches import Patch

    sheet = axes.get_figure(root=True)
    if sheet is not None:
        write_legend(sheet, [Patch(**WITHIN, label=within), Patch(**ABOVE, label=above)])


def _name_layers(locality: Locality, axes: Axes) -> None:
    axes.set_yticks(range(len(locality.layers)),
                    [f"{layer.op}  {layer.index}" for layer in locality.layers])
    axes.set_ylim(len(locality.layers) - 0.4, -1.4)
    rule_values(axes)
