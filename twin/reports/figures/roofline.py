"""The roofline: every layer under what the core and the memories allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwmodels.counts import CAUSE_GROUPS
from hwmodels.quantities import significant
from twin.pricing.roofs import (
    load_bytes_per_cycle,
    memory_bytes_per_second,
    npu_macs_per_cycle,
    peak_macs_per_cycle,
)
from twin.reports.figures.canvas import (
    describe_deployment,
    label_plainly,
    new_sheet,
    place_labels,
    write_legend,
)
from twin.reports.palette import DARK_GREY, INK, ORANGE, PURPLE, VERMILION, bar_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibration.microbench.machine import Machine
    from twin.pricing.prediction import LayerPrediction, Prediction

GROUP_MARKS = {"compute": "o", "memory": "s", "movement": "D", "overhead": "^"}
"""Mark by the group of a layer's largest cause."""

LABELLED = 12
"""Layers that get their index written beside them: those that cost most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A machine with roofs of its own and the layers under them.

    Parameters
    ----------
    machine : str
        As its panel is called.
    clock : str
        The cycles are of.
    peak : float or None
        MACs a cycle; None is not known.
    roofs : list of (str, float)
        What delivers data, and its bytes a cycle, the slowest last.
    points : list of (LayerPrediction, float)
        Layers with MACs, and their cycles on this machine.
    """

    machine: str
    clock: str
    peak: float | None
    roofs: list[tuple[str, float]]
    points: list[tuple[LayerPrediction, float]]


def list_sides(prediction: Prediction, measured: Machine | None = None) -> list[Side]:
    """Return the accelerator, where layers ran on it, and the core, where layers ran there.

    With micro-benchmarks of the board, the core's roofs are theirs where they have them.
    """
    board = prediction.deployment.board
    layers = [layer for layer in prediction.layers if layer.macs and layer.bytes_moved]
    sides, npu = [], board.npu
    if prediction.epochs and npu is not None:
        on_npu = [(layer, cycles) for layer in layers
                  if (cycles := layer.bill.cycles(npu.clock)) > 0]
        layers = [layer for layer in layers if not layer.bill.cycles(npu.clock)]
        if on_npu:
            sides.append(Side(machine=f"{npu.family} NPU", clock=npu.clock,
                              peak=npu_macs_per_cycle(board), roofs=list_pool_roofs(prediction),
                              points=on_npu))
    clock = board.core.clock
    points = [(layer, cycles) for layer in layers if (cycles := layer.bill.cycles(clock)) > 0]
    if points or not sides:
        dtype = _data_type(prediction)
        peak = peak_macs_per_cycle(board, dtype)
        sides.append(Side(machine=board.core.model, clock=clock, points=points,
                          peak=measured.macs.get(dtype, peak) if measured else peak,
                          roofs=list_memory_roofs(prediction, measured)))
    return sides


def draw_roofline_figure(prediction: Prediction, measured: Machine | None = None) -> Figure:
    """Return the sheet of the roofline, a panel for each machine layers ran on.

    Parameters
    ----------
    prediction : Prediction
        Whose layers are drawn.
    measured : Machine, optional
        Micro-benchmarks of its board, in cycles: their rates are the roofs.
    """
    sides = list_sides(prediction, measured)
    whose = "the board" if measured is None else f"the board, {measured.kind}"
    with new_sheet(8.0 * len(sides), 5.6, f"Layers and the roofs of {whose}: "
                   + "; ".join(describe_side(side) for side in sides),
                   describe_deployment(
                       prediction, "a point's area is its share of the time")) as figure:
        for side, axes in zip(sides, figure.subplots(1, len(sides), squeeze=False)[0],
                              strict=True):
            draw_roofline(prediction, side, axes)
            if len(sides) > 1:
                axes.set_title(side.machine)
        write_legend(figure, columns=3)
        for side, axes in zip(sides, figure.axes, strict=True):
            label_costliest(side, axes)
    return figure


def describe_side(side: Side) -> str:
    """Say how many layers lie above the lowest roof, and why that can be."""
    slowest = min((rate for _, rate in side.roofs), default=None)
    above = sum(
        slowest is not None and layer.macs / cycles > 1.001 * min(
            side.peak or math.inf, slowest * layer.arithmetic_intensity)
        for layer, cycles in side.points)
    if not above:
        return f"all {len(side.points)} on the {side.machine} lie below every roof"
    return (f"{above} of {len(side.points)} on the {side.machine} lie above the slowest memory's, "
            "for their data come from a nearer one")


def draw_roofline(prediction: Prediction, side: Side, axes: Axes) -> None:
    """Draw attained MAC per cycle against MAC per byte, under compute and memory roofs.

    Parameters
    ----------
    prediction : Prediction
        Whole; area of a point is its share of the time, colour its largest cause.
    side : Side
        The machine.
    axes : Axes
        Where; both axes logarithmic.

    Notes
    -----
    Roofs are those of `twin.pricing.roofs`: the densest MAC loop of the core, and what core and
    memories deliver per cycle of the core, or the accelerator's units and pools per cycle of its
    own, in which its layers are counted too: the host's work around their epochs is not in them.
    Bytes count each array once, so a layer can stay far below its roof.
    """
    axes.set_xscale("log")
    axes.set_yscale("log")
    intensities = [layer.arithmetic_intensity for layer, _ in side.points] or [1.0]
    attained = [layer.macs / cycles for layer, cycles in side.points] or [1.0]
    # Every roof's slope shows left of its ridge.
    ridges = [(side.peak or max(attained)) / rate for _, rate in side.roofs]
    low, high = 0.4 * min(*intensities, *ridges), 3 * max(*intensities, *ridges)
    _draw_roofs(side.roofs, axes, side.peak, low, high)
    _draw_points(prediction, axes, side.points)
    axes.set_xlim(low, high)
    axes.set_ylim(0.4 * min(attained), 2.2 * max(*attained, side.peak or 0.0))
    axes.set_xlabel("arithmetic intensity, MAC per byte moved")
    axes.set_ylabel(f"attained, MAC per {side.clock.upper()} cycle")
    for axis in (axes.xaxis, axes.yaxis):
        label_plainly(axis)
    axes.grid(True)


def list_memory_roofs(prediction: Prediction,
                      measured: Machine | None = None) -> list[tuple[str, float]]:
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
    streamed = {memory.name: memory.read_bytes for memory in measured.memories} if measured else {}
    for name, contents in holds.items():
        rate, how = streamed.get(name), measured.kind if measured else ""
        if rate is None:
            rate = memory_bytes_per_second(board, board.memory(name)) / cpu_hz
            how = "uncached"
        roofs.append((f"{name} ({' and '.join(contents)}), {how}", rate))
    return sorted(roofs, key=lambda roof: -roof[1])


def list_pool_roofs(prediction: Prediction) -> list[tuple[str, float]]:
    """Return the accelerator's pools in use, with bytes per cycle of its clock, slowest last.

    Pools of one rate are one roof.
    """
    npu = prediction.deployment.board.npu
    used = {pool.name for epoch in prediction.epochs for pool in epoch.run.pools}
    rates: dict[float, list[str]] = {}
    for pool in npu.pools if npu is not None else ():
        if pool.name in used:
            rates.setdefault(pool.bytes_per_cycle / pool.clock_ratio, []).append(pool.name)
    return [(", ".join(rates[rate]), rate) for rate in sorted(rates, reverse=True)]


def _draw_roofs(roofs: list[tuple[str, float]], axes: Axes, peak: float | None, low: float,
                high: float) -> None:
    styles = ((DARK_GREY, "-"), (ORANGE, "--"), (VERMILION, "-."), (PURPLE, ":"))
    for (label, rate), (colour, dashes) in zip(roofs, styles, strict=False):
        ridge = high if peak is None else min(high, peak / rate)
        axes.plot([low, ridge], [low * rate, ridge * rate], color=colour, linestyle=dashes,
                  linewidth=1.3, label=f"{label}: {significant(rate)} B/cycle")
    if peak is not None:
        axes.axhline(peak, color=INK, linewidth=1.3,
                     label=f"compute: {significant(peak)} MAC/cycle")


def _draw_points(prediction: Prediction, axes: Axes,
                 points: list[tuple[LayerPrediction, float]]) -> None:
    for cause in dict.fromkeys(layer.largest_cause for layer, _ in points):
        chosen = [point for point in points if point[0].largest_cause == cause]
        style = bar_style(cause)
        axes.scatter([layer.arithmetic_intensity for layer, _ in chosen],
                     [layer.macs / cycles for layer, cycles in chosen],
                     s=[24 + 500 * layer.time_us / prediction.time_us for layer, _ in chosen],
                     c=style["facecolor"], hatch=style["hatch"], edgecolors=style["edgecolor"],
                     marker=GROUP_MARKS[_group_of(cause)], linewidths=0.6, alpha=0.9,
                     label=f"layers, mostly {cause}", zorder=3)


def label_costliest(side: Side, axes: Axes) -> None:
    """Write their indices beside the layers that cost most, none over another."""
    costly = sorted(side.points, key=lambda point: -point[0].time_us)[:LABELLED]
    place_labels(axes, [(layer.arithmetic_intensity, layer.macs / cycles, str(layer.index))
                        for layer, cycles in costly])


def _group_of(cause: str) -> str:
    return next((group for group, causes in CAUSE_GROUPS.items() if cause in causes), "overhead")


def _data_type(prediction: Prediction) -> str:
    graph = prediction.deployment.graph
    weighted = [graph.tensors[layer.inputs[1]].dtype for layer in graph.layers
                if len(layer.inputs) > 1 and layer.inputs[1] >= 0]
    return "float32" if weighted and all(dtype == "float32" for dtype in weighted) else "int8"
