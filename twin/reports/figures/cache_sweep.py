"""The miss-ratio curve of a network: over cache sizes, one line per associativity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hwmodels.quantities import format_share, format_size
from twin.reports.figures.cache_layers import describe_caches
from twin.reports.figures.canvas import draw_figure, label_plainly, rule_values
from twin.reports.palette import VERMILION, line_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.locality import Locality
    from twin.studies.caches import SweepPoint


def draw_miss_curve_figure(locality: Locality, sweep: Sequence[SweepPoint]) -> Figure:
    """Return the figure of the miss-ratio curve."""
    return draw_figure(
        partial(draw_miss_curve, locality, sweep), 8.5, 4.6, "Misses by cache size: "
        f"{format_share(locality.misses, locality.accesses)} as the board is",
        describe_caches(locality))


def draw_miss_curve(locality: Locality, sweep: Sequence[SweepPoint], axes: Axes) -> None:
    """Draw miss ratio over size, a line for each number of ways, and the board's own cache.

    Parameters
    ----------
    locality
        The network in the board's own caches.
    axes
        Where; sizes logarithmic, ratios too where they span more than a decade: linear below
        the smallest of them, so that a cache without misses has its point, at 0.
    """
    for number, ways in enumerate(dict.fromkeys(point.ways for point in sweep)):
        line = sorted((point.size_bytes / 1024, 100 * point.miss_ratio)
                      for point in sweep if point.ways == ways)
        axes.plot([size for size, _ in line], [rate for _, rate in line], linewidth=1.4,
                  markersize=4.5, **line_series(number),
                  label=f"{ways} way{'s' if ways > 1 else ''}")
    rate = locality.miss_rate
    if rate and len(locality.caches) == 1:
        cache = locality.caches[0]
        axes.plot([cache.size_bytes / 1024], [100 * rate], marker="*", markersize=15,
                  color=VERMILION, linestyle="", zorder=5,
                  label=f"{cache.name}: {format_size(cache.size_bytes)}, {cache.ways} ways")
    shown = [100 * point.miss_ratio for point in sweep if point.misses] or [100.0]
    none = any(not point.misses for point in sweep)
    axes.set_xscale("log", base=2)
    if max(shown) < 10 * min(shown):
        axes.set_ylim(0, 1.15 * max(shown))
    else:
        if none:
            axes.set_yscale("symlog", linthresh=min(shown), linscale=0.4)
        else:
            axes.set_yscale("log")
            label_plainly(axes.yaxis)
        axes.set_ylim(-0.15 * min(shown) if none else min(shown) / 1.6, max(shown) * 1.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("size of the data cache, KiB")
    axes.set_ylabel("misses per line looked up, %")
    rule_values(axes, along="y")
    axes.grid(True, axis="x")
    axes.legend(fontsize=8)
