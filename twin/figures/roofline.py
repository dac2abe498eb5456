"""The roofline: every layer under what the core and the memories allow."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING

from twin.figures.canvas import describe_deployment, new_figure, write_heading
from twin.figures.palette import DARK_GREY, INK, ORANGE, VERMILION, bar_style
from twin.quantities import significant
from twin.roofs import (
    load_bytes_per_cycle,
    memory_bytes_per_second,
    npu_macs_per_cycle,
    peak_macs_per_cycle,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from twin.prediction import LayerPrediction, Prediction

LABELLED = 12
"""Layers that get their index written beside them: those that cost most."""


def draw_roofline_figure(prediction: Prediction) -> Figure:
    """Return the sheet of the roofline."""
    with new_figure(8.0, 6.2) as figure:
        write_heading(figure, "Every layer under the roofs of the board",
                      describe_deployment(prediction))
        draw_roofline(prediction, figure.subplots())
    return figure


def draw_roofline(prediction: Prediction, axes: Axes) -> None:
    """Draw attained MAC per cycle against MAC per byte, under compute and memory roofs.

    Parameters
    ----------
    prediction : Prediction
        Its layers with MACs are the points, those of its main clock; area is share of time, colour
        the largest cause.
    axes : Axes
        Where; both axes logarithmic.

    Notes
    -----
    Roofs are those of `twin.roofs`: the densest MAC loop of the core, and what core and memories
    deliver per CPU cycle, or the accelerator's units and pools per cycle of its own. Bytes count
    each array once, so a layer can stay far below its roof.
    """
    clock = prediction.clock
    points = [layer for layer in prediction.layers if layer.macs and layer.cycles
              and layer.bytes_moved and layer.clock == clock]
    axes.set_xscale("log")
    axes.set_yscale("log")
    intensities = [layer.arithmetic_intensity for layer in points] or [1.0]
    attained = [layer.macs / layer.cycles for layer in points] or [1.0]
    on_npu = bool(prediction.epochs) and clock != prediction.deployment.board.core.clock
    peak = (npu_macs_per_cycle(prediction.deployment.board) if on_npu else
            peak_macs_per_cycle(prediction.deployment.board, _data_type(prediction)))
    roofs = list_pool_roofs(prediction) if on_npu else list_memory_roofs(prediction)
    # Every roof's slope shows left of its ridge.
    ridges = [(peak or max(attained)) / rate for _, rate in roofs]
    low, high = 0.4 * min(*intensities, *ridges), 3 * max(*intensities, *ridges)
    _draw_roofs(roofs, axes, peak, low, high)
    _draw_points(prediction, axes, points)
    axes.set_xlim(low, high)
    axes.set_ylim(0.4 * min(attained), 2.2 * max(*attained, peak or 0.0))
    axes.set_xlabel("arithmetic intensity, MAC per byte moved")
    axes.set_ylabel(f"attained, MAC per {clock.upper()} cycle")
    for axis in (axes.xaxis, axes.yaxis):
        _label_plainly(axis)
    axes.grid(True)


def list_memory_roofs(prediction: Prediction) -> list[tuple[str, float]]:
    """Return what can deliver data, with its bytes per CPU cycle, the slowest last."""
    deployment = prediction.deployment
    board = deployment.board
    cpu_hz = board.clock(board.core.clock).frequency_hz
    roofs = []
    loads = load_bytes_per_cycle(board)
    if loads is not None:
        roofs.append(("core loads", loads))
    holds: dict[str, list[str]] = {}
    for what, name in (("arena", deployment.arena), ("weights", deployment.weights)):
        holds.setdefault(name, []).append(what)
    for name, contents in holds.items():
        rate = memory_bytes_per_second(board, board.memory(name)) / cpu_hz
        roofs.append((f"{name} ({' and '.join(contents)}), uncached", rate))
    return sorted(roofs, key=lambda roof: -roof[1])


def list_pool_roofs(prediction: Prediction) -> list[tuple[str, float]]:
    """Return the accelerator's pools in use, with bytes per cycle of its clock, slowest last."""
    npu = prediction.deployment.board.npu
    used = {pool.name for epoch in prediction.epochs for pool in epoch.run.pools}
    roofs = [(pool.name, pool.bytes_per_cycle / pool.clock_ratio)
             for pool in (npu.pools if npu is not None else ()) if pool.name in used]
    return sorted(roofs, key=lambda roof: -roof[1])


def _draw_roofs(roofs: list[tuple[str, float]], axes: Axes, peak: float | None, low: float,
                high: float) -> None:
    styles = ((DARK_GREY, "-"), (ORANGE, "--"), (VERMILION, "-."))
    for (label, rate), (colour, dashes) in zip(roofs, styles, strict=False):
        ridge = high if peak is None else min(high, peak / rate)
        axes.plot([low, ridge], [low * rate, ridge * rate], color=colour, linestyle=dashes,
                  linewidth=1.3, label=f"{label}: {significant(rate)} B/cycle")
    if peak is not None:
        axes.axhline(peak, color=INK, linewidth=1.3,
                     label=f"compute: {significant(peak)} MAC/cycle")


def _draw_points(prediction: Prediction, axes: Axes, points: list[LayerPrediction]) -> None:
    for cause in dict.fromkeys(layer.largest_cause for layer in points):
        chosen = [layer for layer in points if layer.largest_cause == cause]
        style = bar_style(cause)
        axes.scatter([layer.arithmetic_intensity for layer in chosen],
                     [layer.macs / layer.cycles for layer in chosen],
                     s=[24 + 500 * layer.time_us / prediction.time_us for layer in chosen],
                     c=style["facecolor"], hatch=style["hatch"], edgecolors="white",
                     linewidths=0.6, alpha=0.9, label=f"layers, mostly {cause}", zorder=3)
    for (intensity, attained), indices in _group_labels(points).items():
        axes.annotate(", ".join(map(str, indices)), (intensity, attained), xytext=(6, 5),
                      textcoords="offset points", fontsize=8, zorder=4)
    sheet = axes.get_figure()
    if sheet is None:
        return
    legend = sheet.legend(loc="outside lower left", ncols=2, fontsize=8)
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([36])


def _group_labels(points: list[LayerPrediction]) -> dict[tuple[float, float], list[int]]:
    """Indices of the costliest layers by where they are drawn; those on one spot share a label."""
    costly = sorted(points, key=lambda layer: -layer.time_us)[:LABELLED]
    spots: dict[tuple[int, int], tuple[float, float]] = {}
    labels: dict[tuple[float, float], list[int]] = {}
    for layer in sorted(costly, key=lambda layer: layer.index):
        place = layer.arithmetic_intensity, layer.macs / layer.cycles
        # Within a fortieth of a decade two points look like one.
        spot = spots.setdefault((round(40 * log10(place[0])), round(40 * log10(place[1]))), place)
        labels.setdefault(spot, []).append(layer.index)
    return labels


def _label_plainly(axis: Axis) -> None:
    """Label a logarithmic axis at 1, 2, 5, 10 ... and without powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _data_type(prediction: Prediction) -> str:
    graph = prediction.deployment.graph
    weighted = [graph.tensors[layer.inputs[1]].dtype for layer in graph.layers
                if len(layer.inputs) > 1 and layer.inputs[1] >= 0]
    return "float32" if weighted and all(dtype == "float32" for dtype in weighted) else "int8"
