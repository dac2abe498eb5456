"""The arena map: which buffer lives where in memory, and when."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from twin.reports.figures.canvas import describe_deployment, draw_figure, rule_values, write_legend
from twin.reports.palette import INK, ORANGE, SKY, VERMILION, fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from twin.pricing.prediction import Prediction

TENSOR = fill(SKY) | {"alpha": 0.75}
SCRATCH = fill(ORANGE, "////") | {"alpha": 0.75}

LETTER_IN, LINE_IN = 0.05, 0.06
"""Width of a letter of a buffer's name, and half the height of its line."""


def draw_arena_figure(prediction: Prediction) -> Figure | None:
    """Return the figure of the arena map; None where buffers are a program's or compiler's own."""
    if not prediction.placement.arena or prediction.placement.hides_lives:
        return None
    width_in = min(24.0, 6.0 + 0.16 * len(prediction.layers))
    return draw_figure(
        partial(draw_arena, prediction), width_in, 4.6,
        f"The arena: {prediction.placement.arena_bytes:,} bytes", describe_deployment(prediction))


def draw_arena(prediction: Prediction, axes: Axes) -> None:
    """Draw each buffer as a rectangle, layers across and address up, with the bytes alive.

    Parameters
    ----------
    prediction
        Its deployment holds the memory plan.
    axes
        Where; address in KiB from the start of the arena.
    """
    from matplotlib.patches import Rectangle

    placement = prediction.placement
    layers = max(1, len(placement.live_bytes))
    whole = placement.arena_bytes / 1024
    # An alias shares its source's buffer.
    slots = list({(slot.first_layer, slot.last_layer, slot.offset_bytes, slot.size_bytes): slot
                  for slot in reversed(placement.arena)}.values())[::-1]
    for slot in slots:
        scratch = slot.tensor < 0
        width, height = slot.last_layer - slot.first_layer + 1, slot.size_bytes / 1024
        axes.add_patch(Rectangle(
            (slot.first_layer - 0.5, slot.offset_bytes / 1024), width, height,
            **(SCRATCH if scratch else TENSOR) | {"linewidth": 0.8}))
        if not scratch and height > 0.05 * whole:
            _write_name(axes, slot, slots, placement)
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


def _write_name(axes: Axes, slot: Any, slots: Sequence[Any], placement: Any) -> None:
    """Write a buffer's name where most of it is free of others; its end where not all has room."""
    from matplotlib.patheffects import withStroke

    figure = axes.get_figure(root=True)
    assert figure is not None
    around = axes.get_position()
    live = placement.live_bytes
    letters = around.width * figure.get_figwidth() / max(1, len(live)) / LETTER_IN
    line = LINE_IN * placement.arena_bytes / (around.height * figure.get_figheight())
    spots: list[tuple[float, bool, int, int, float]] = []
    for share in (0.5, 0.75, 0.25):
        height = slot.offset_bytes + share * slot.size_bytes
        start, free = _find_gap(slot, [
            other for other in slots if other is not slot
            and other.offset_bytes - line < height < other.offset_bytes + other.size_bytes + line])
        crossed = any(abs(size - height) < line for size in live[start:start + free])
        spots.append((min(free, len(slot.name) / letters), not crossed, -len(spots), start, height))
    layers, _, _, start, height = max(spots)
    room = int(layers * letters)
    name = slot.name if len(slot.name) <= room else f"…{slot.name[1 - room:]}" if room > 2 else ""
    axes.text(start - 0.42, height / 1024, name, fontsize=6, va="center", clip_on=True,
              path_effects=[withStroke(linewidth=1.5, foreground="white", alpha=0.8)])


def _find_gap(slot: Any, others: Sequence[Any]) -> tuple[int, int]:
    """Return the first layer of the longest stretch of a buffer's life none of others shares."""
    best, start = (slot.first_layer, 0), slot.first_layer
    for layer in range(slot.first_layer, slot.last_layer + 2):
        if layer > slot.last_layer or any(
                one.first_layer <= layer <= one.last_layer for one in others):
            best = max(best, (start, layer - start), key=lambda gap: gap[1])
            start = layer + 1
    return best


def _overlap(placement: Any) -> bool:
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
    write_legend(axes, handles)
