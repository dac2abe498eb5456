"""The arena map: which buffer lives where in memory, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.reports.figures.canvas import (
    describe_deployment,
    new_sheet,
    rule_values,
    write_legend,
)
from twin.reports.figures.palette import INK, ORANGE, SKY, VERMILION, fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.deployment.placement import Placement
    from twin.prediction.prediction import Prediction

TENSOR = fill(SKY) | {"alpha": 0.75}
SCRATCH = fill(ORANGE, "////") | {"alpha": 0.75}


def draw_arena_figure(prediction: Prediction) -> Figure | None:
    """Return the sheet of the arena map; None for a program, whose buffers are its own."""
    if not prediction.placement.arena:
        return None
    width_in = min(24.0, 6.0 + 0.16 * len(prediction.layers))
    with new_sheet(width_in, 4.6, f"The arena: {prediction.placement.arena_bytes:,} bytes",
                   describe_deployment(prediction)) as figure:
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
    whole = placement.arena_bytes / 1024
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
            **(SCRATCH if scratch else TENSOR) | {"linewidth": 0.8}))
        if not scratch and height > 0.05 * whole and width > 0.6:
            axes.text(slot.first_layer - 0.42, (slot.offset_bytes + slot.size_bytes / 2) / 1024,
                      slot.name[:int(9 * width)], fontsize=6, va="center", clip_on=True)
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
    _add_legend(axes, any(slot.tensor < 0 for slot in placement.arena), _overlap(placement))


def _overlap(placement: Placement) -> bool:
    """Whether two tensors alive in one layer share bytes, as an output over its input does."""
    slots = [slot for slot in placement.arena if slot.tensor >= 0 and slot.size_bytes]
    return any(
        one.first_layer <= other.last_layer and other.first_layer <= one.last_layer
        and one.offset_bytes < other.offset_bytes + other.size_bytes
        and other.offset_bytes < one.offset_bytes + one.size_bytes
        and (one.offset_bytes, one.size_bytes) != (other.offset_bytes, other.size_bytes)
        for place, one in enumerate(slots) for other in slots[place + 1:])


def _add_legend(axes: Axes, has_scratch: bool, overlaps: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(**TENSOR, label="a tensor, from its first layer to its last")]
    if has_scratch:
        handles.append(Patch(**SCRATCH, label="scratch of a kernel"))
    if overlaps:
        handles.append(Patch(**TENSOR | {"alpha": 1.0}, label="darker: an output over its input"))
    handles += [Line2D([], [], color=INK, label="bytes alive"),
                Line2D([], [], color=VERMILION, linestyle="--", label="size of the arena")]
    sheet = axes.get_figure(root=True)
    if sheet is not None:
        write_legend(sheet, handles)
