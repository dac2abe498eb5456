"""What fills each memory: RAM and flash by part, beside the room there is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hwmodels.quantities import format_share, format_size
from twin.reports.bars import WHOLE, Bar, BarChart
from twin.reports.figures.bars import draw_bars
from twin.reports.figures.canvas import describe_deployment, draw_figure
from twin.reports.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction


def draw_memory_figure(prediction: Prediction) -> Figure:
    """Return the figure of the memories."""
    used = format_share(prediction.ram_bytes, max(1, prediction.ram_available_bytes))
    return draw_figure(
        partial(draw_memories, prediction), 8.5, 2.4, f"RAM {used} full, flash "
        f"{format_share(prediction.flash_bytes, prediction.flash_available_bytes)}",
        describe_deployment(prediction), legend=True)


def draw_memories(prediction: Prediction, axes: Axes) -> None:
    """Draw RAM and flash as bars of their parts, and how much more there is.

    Parameters
    ----------
    axes
        Where; per cent of each memory, on a scale that ends at the fuller one.
    """
    deployment = prediction.deployment
    ram = {name: size for name, size in deployment.ram_parts.items() if size}
    weights = deployment.linked_bytes
    in_flash = 0 if "weights" in ram else min(weights, prediction.flash_bytes)
    flash = {"weights": in_flash, "code and tables": prediction.flash_bytes - in_flash}
    if deployment.target.executes:  # a file does not tell them apart
        flash = {"code, weights and tables": prediction.flash_bytes}
    rows = (("RAM", ram, prediction.ram_available_bytes),
            ("flash", flash, prediction.flash_available_bytes))
    names = list(dict.fromkeys(name for _, parts, _ in rows for name in parts))
    bars = []
    for row, (_, parts, room) in enumerate(rows):
        start = 0.0
        for name, size in parts.items():
            colour, _, _, hatch = SERIES[names.index(name) % len(SERIES)]
            share = 100 * size / max(1, room)
            bars.append(Bar(row=row, start=start, length=share, series=name, look=(colour, hatch)))
            start += share
        bars.append(Bar(row=row, start=start, length=0.0, look=WHOLE, text=(
            f"{format_size(sum(parts.values()))} of {format_size(room)}")))
    fullest = max((100 * sum(parts.values()) / max(1, room) for _, parts, room in rows),
                  default=1.0)
    draw_bars(BarChart(rows=("RAM", "flash"), bars=tuple(bars), axis="share of the memory, %",
                       limit=100.0), axes, thick=0.6)
    axes.set_xlim(0, max(1.35 * fullest, 1e-3) if fullest < 60 else max(105.0, 1.35 * fullest))
