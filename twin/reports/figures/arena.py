"""The arena map: which buffer lives where in memory, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.reports.figures.canvas import describe_deployment, new_figure, rule_values, write_heading
from twin.reports.figures.palette import BLUE, INK, ORANGE, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.prediction.prediction import Prediction


def draw_arena_figure(prediction: Prediction) -> Figure:
    """Return the sheet of the arena map."""
    width_in = min(24.0, 6.0 + 0.16 * len(prediction.layers))
    with new_figure(width_in, 5.2) as figure:
        write_heading(figure, f"The arena: {prediction.placement.arena_bytes:,} bytes",
                      describe_deployment(prediction))
        draw_arena(prediction, figure.subplots())
    return figure


def draw_arena(prediction: Prediction, axes: Axes) -> None:
    """Draw each buffer as a rectangle, layers across and address up, with the bytes alive.

    Parameters
    ----------
    prediction : Prediction
        Its deployment holds the memory plan.
    axes : Axes
        Where; address in KiB from the start of the arena.
    """
    from matplotlib.patches import Rectangle

    placement = prediction.placement
    layers = max(1, len(placement.live_bytes))
    seen: set[tuple[int, int, int, int]] = set()
    for slot in placement.arena:
        extent = (slot.first_layer, slot.last_layer, slot.offset_bytes, slot.size_bytes)
        if extent in seen:  # An alias shares its source's buffer.
            continue
        seen.add(extent)
        scratch = slot.tensor < 0
        width, height = slot.last_layer - slot.first_layer + 1, slot.size_bytes / 1024
        axes.add_patch(Rectangle(
            (slot.first_layer - 0.5, slot.offset_bytes / 1024), width, height,
            facecolor=ORANGE if scratch else (BLUE, SKY)[slot.first_layer % 2],
            alpha=0.75, edgecolor="white", linewidth=0.8, hatch="////" if scratch else ""))
    live = [size / 1024 for size in placement.live_bytes]
    axes.stairs(live, [row - 0.5 for row in range(layers + 1)], color=INK, linewidth=1.2,
                baseline=None)
    axes.axhline(placement.arena_bytes / 1024, color=VERMILION, linewidth=1, linestyle="--")
    peak = placement.peak_layer
    top = max(placement.arena_bytes / 1024, *live, 1e-3)
    axes.vlines(peak, live[peak], 1.06 * top, color=INK, linewidth=0.6)
    axes.text(peak, 1.07 * top, f"peak: {placement.live_bytes[peak]:,} bytes alive in layer {peak}",
              fontsize=8, va="bottom", ha="left" if peak < layers / 2 else "right")
    axes.set_xlim(-0.5, layers - 0.5)
    axes.set_ylim(0, 1.16 * top)
    axes.set_xlabel("layer index (execution order)")
    axes.set_ylabel("address in the arena, KiB")
    rule_values(axes, along="y")
    _add_legend(axes, any(slot.tensor < 0 for slot in placement.arena))


def _add_legend(axes: Axes, has_scratch: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(facecolor=BLUE, alpha=0.75, label="tensor")]
    if has_scratch:
        handles.append(Patch(facecolor=ORANGE, alpha=0.75, hatch="////", edgecolor="white",
                             label="scratch of a kernel"))
    handles += [Line2D([], [], color=INK, label="bytes alive"),
                Line2D([], [], color=VERMILION, linestyle="--", label="size of the arena")]
    sheet = axes.get_figure()
    if sheet is not None:
        sheet.legend(handles=handles, loc="outside lower left", fontsize=8, ncols=len(handles))
