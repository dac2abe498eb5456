"""Layers in the data cache: working set against capacity, and miss rate with the 10 % line."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hwmodels.quantities import format_share, format_size
from twin.pricing.locality import WORRYING
from twin.reports.bars import BarChart, chart_miss_rates, chart_working_sets
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import describe_deployment, draw_figure, write_legend
from twin.reports.palette import VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.locality import Locality

ROW_IN = 0.22
"""Height of one layer's bar with its gap, in inches."""


def describe_caches(locality: Locality) -> str:
    """Say what a picture shows: model, board, core, runtime, caches, temperature."""
    caches = ", ".join(
        f"{cache.name} {format_size(cache.size_bytes)}, {cache.ways} ways of "
        f"{cache.line_bytes} B, {cache.replacement}" for cache in locality.caches)
    return describe_deployment(locality, caches or "no data cache")


def draw_working_set_figure(locality: Locality) -> Figure:
    """Return the figure of working sets."""
    beyond = sum(layer.working_set_bytes > locality.capacity_bytes for layer in locality.layers)
    return draw_figure(
        partial(draw_working_sets, locality), 9.5, 1.3 + ROW_IN * max(6, len(locality.layers)),
        f"Working sets: {beyond} of {len(locality.layers)} layers touch more "
        f"than the {format_size(locality.capacity_bytes)} cached", describe_caches(locality))


def draw_working_sets(locality: Locality, axes: Axes) -> None:
    """Draw the bytes of the lines each layer touches beside the caches' capacity, in KiB."""
    chart = chart_working_sets(locality)
    _draw(chart, axes, f" {format_size(locality.capacity_bytes)}")
    low = min(bar.start for bar in chart.bars) / chart.scale
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, max(chart.longest, locality.capacity_bytes) / chart.scale * 2.2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def draw_miss_rate_figure(locality: Locality) -> Figure:
    """Return the figure of miss rates."""
    rates = [layer.miss_rate for layer in locality.layers if layer.miss_rate is not None]
    above = sum(rate > WORRYING for rate in rates)
    title = (f"Miss rate {format_share(locality.misses, locality.accesses)}: {above} of "
             f"{len(locality.layers)} layers above 10 %" if rates else "No access is cached")
    return draw_figure(
        partial(draw_miss_rates, locality),
        9.5, 1.3 + ROW_IN * max(6, len(locality.layers)), title, describe_caches(locality))


def draw_miss_rates(locality: Locality, axes: Axes) -> None:
    """Draw misses per line looked up, layer by layer, in per cent."""
    chart = chart_miss_rates(locality)
    _draw(chart, axes, " 10 %")
    axes.set_xlim(0, 1.3 * max(200 * WORRYING, chart.longest))


def _draw(chart: BarChart, axes: Axes, limit: str) -> None:
    draw_bars(chart, axes, points=7, thick=0.78)
    assert chart.limit is not None
    axes.text(chart.limit / chart.scale, -0.9, limit, color=VERMILION, fontsize=8, ha="left",
              va="center")
    axes.set_ylim(len(chart.rows) - 0.4, -1.4)
    write_legend(axes)
