"""The roofline: every layer under what the core and the memories allow, as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hwmodels.counts import CAUSE_GROUPS
from hwmodels.frozen import frozen
from hwmodels.quantities import format_time, list_by_key, significant
from twin.pricing.roofs import (
    load_bytes_per_cycle,
    memory_bytes_per_second,
    npu_macs_per_cycle,
    peak_macs_per_cycle,
)
from twin.reports.charts import Axis, Chart, Curve
from twin.reports.palette import CAUSE_STYLES, DARK_GREY, ORANGE, PURPLE, VERMILION

if TYPE_CHECKING:
    from calibration.microbench.machine import Machine
    from twin.pricing.prediction import LayerPrediction, Prediction

GROUP_MARKS = {"compute": "o", "memory": "s", "movement": "D", "overhead": "^"}
"""Mark by the group of a layer's largest cause."""

ROOFS = ((DARK_GREY, "-"), (ORANGE, "--"), (VERMILION, "-."), (PURPLE, ":"))
"""Colours and dashes of memories."""


@frozen
class Side:
    """A machine with roofs of its own and the layers under them.

    Parameters
    ----------
    machine
        As its panel is called.
    clock
        The cycles are of.
    peak
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
    board = prediction.board
    layers = [layer for layer in prediction.layers if layer.macs and layer.bytes_moved]
    sides, npu = [], board.npu
    if prediction.tasks and npu is not None:
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


def describe_side(side: Side) -> str:
    """Say how many layers lie above the lowest roof, and why that can be."""
    slowest = min((rate for _, rate in side.roofs), default=None)
    above = [layer for layer, cycles in side.points
             if slowest is not None and layer.macs / cycles > 1.001 * min(
                 side.peak or math.inf, slowest * layer.arithmetic_intensity)]
    if not above:
        return f"all {len(side.points)} on the {side.machine} lie below every roof"
    wait = sum(_group_of(layer.largest_cause) == "memory" for layer in above)
    return (f"{len(above)} of {len(side.points)} on the {side.machine} lie above the slowest "
            "memory's, for not all of their data come from it"
            + f"; {wait} of them wait most for a memory" * bool(wait))


def chart_roofline(prediction: Prediction, side: Side, number: int = 0) -> Chart:
    """Describe attained MAC per cycle against MAC per byte, under compute and memory roofs.

    Parameters
    ----------
    prediction
        Whole; area of a point is its share of the time, colour its largest cause.
    number
        Of the plot on its page.

    Notes
    -----
    Roofs are those of `twin.pricing.roofs`: the densest MAC loop of the core, and what core and
    memories deliver per cycle of the core, or the accelerator's units and pools per cycle of its
    own, in which its layers are counted too: the host's work around their tasks is not in them.
    Bytes count each array once, so a layer can stay far below its roof.
    """
    intensities = [layer.arithmetic_intensity for layer, _ in side.points] or [1.0]
    attained = [layer.macs / cycles for layer, cycles in side.points] or [1.0]
    peak, per_cycle = side.peak or max(attained), f"MAC per {side.clock.upper()} cycle"
    # Every roof's slope shows left of its ridge.
    ridges = [peak / rate for _, rate in side.roofs]
    low, high = 0.4 * min(*intensities, *ridges), 3 * max(*intensities, *ridges)
    roofs = []
    for (label, rate), (colour, dashes) in zip(side.roofs, ROOFS, strict=False):
        ridge = high if side.peak is None else min(high, peak / rate)
        roofs.append(Curve(x=[low, ridge], y=[low * rate, ridge * rate], colour=colour,
                           dashes=dashes, name=f"{label}: {significant(rate)} B/cycle"))
    if side.peak is not None:
        roofs.append(Curve(x=[low, high], y=[peak, peak], dashes="-",
                           name=f"compute: {significant(peak)} MAC/cycle"))
    return Chart(
        curves=(*roofs, *(_list_points(prediction, side, cause) for cause in dict.fromkeys(
            layer.largest_cause for layer, _ in side.points))),
        x=Axis(label="arithmetic intensity, MAC per byte moved", log=True, ends=(low, high)),
        y=Axis(label=f"attained, {per_cycle}", log=True,
               ends=(0.4 * min(attained), 2.2 * max(*attained, peak))),
        name=f"roofline-{number}", title=f"Roofline of the {side.machine}",
        caption=f"{len(side.points)} layers with MACs, at most {significant(max(attained))} of "
             f"{significant(peak)} {per_cycle}: {describe_side(side)}.")


def list_memory_roofs(prediction: Prediction, measured: Machine | None) -> list[tuple[str, float]]:
    """Return what can deliver data, with its bytes per CPU cycle, the slowest last."""
    deployment = prediction.deployment
    board = deployment.board
    cpu_hz = board.core_clock.frequency_hz
    roofs = []
    loads = load_bytes_per_cycle(board)
    if loads is not None:
        roofs.append(("core loads", loads))
    holds = list_by_key(((deployment.arena, "arena"), (deployment.weights, "weights")))
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
    npu = prediction.board.npu
    used = {pool.name for task in prediction.tasks for pool in task.run.pools}
    rates = list_by_key((pool.bytes_per_cycle / pool.clock_ratio, pool.name)
                        for pool in (npu.pools if npu is not None else ()) if pool.name in used)
    return [(", ".join(rates[rate]), rate) for rate in sorted(rates, reverse=True)]


def _list_points(prediction: Prediction, side: Side, cause: str) -> Curve:
    mine = [point for point in side.points if point[0].largest_cause == cause]
    colour, hatch = CAUSE_STYLES[cause]
    return Curve(
        x=[layer.arithmetic_intensity for layer, _ in mine],
        y=[layer.macs / cycles for layer, cycles in mine], name=f"layers, mostly {cause}",
        colour=colour, hatch=hatch, mark=GROUP_MARKS[_group_of(cause)],
        sizes=[(24 + 500 * layer.time_us / prediction.time_us)**0.5 for layer, _ in mine],
        hover=[f"{layer.index} {layer.name or layer.op} ({layer.op})<br>"
               f"{significant(layer.macs / cycles)} MAC/cycle, "
               f"{significant(layer.arithmetic_intensity)} MAC/B<br>"
               f"{format_time(layer.time_us)}, most of it {layer.largest_cause}"
               for layer, cycles in mine])


def _group_of(cause: str) -> str:
    return next((group for group, causes in CAUSE_GROUPS.items() if cause in causes), "overhead")


def _data_type(prediction: Prediction) -> str:
    graph = prediction.graph
    weighted = [graph.input(layer, 1).dtype for layer in graph.layers
                if len(layer.inputs) > 1 and layer.inputs[1] >= 0]
    return "float32" if weighted and all(dtype == "float32" for dtype in weighted) else "int8"
