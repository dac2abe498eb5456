"""Cycles of a cluster of RI5CY cores for a part of a layer: rows and channels of its output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from hwmodels.core.file import load_core
from hwmodels.core.schedule import BlockTiming, schedule
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import NamedCounts, frozen
from hwmodels.schedule import Npu
from hwmodels.schedule.cluster import share_work, wait_of_access
from twin.network.graph import GraphLayer, Layer
from twin.network.operators import Form, traits

UNIT = "CLUSTER"
"""Name of the cores in board files of this family."""

_AROUND = ("matmul_block", "depthwise_output", "depthwise_row", "row")
"""Kernels that stand around inner loops."""

Trips = Mapping[str, float]
"""How often each kernel's text runs."""

Counter = Callable[[GraphLayer, "Part"], Trips]


@frozen
class Part:
    """A part of a layer's output.

    Parameters
    ----------
    rows, channels
        Of the output, all of whose columns it has; of what is not an image, one row.
    """

    rows: int
    columns: int
    channels: int

    @property
    def pixels(self) -> int:
        """Rows times columns."""
        return self.rows * self.columns


@cache
def time_kernel(name: str) -> BlockTiming:
    """Return a kernel's text as the core runs it."""
    texts = read_yaml_once(Path(__file__).with_name("kernels.yaml"))
    return schedule(texts[name], load_core(texts["core"]))


@frozen
class ClusterCycles:
    """Cycles of a part of a layer, and of them those waited for banks, loops, the barrier."""

    cycles: int
    waits: NamedCounts


def count_cycles(step: GraphLayer, part: Part, npu: Npu) -> ClusterCycles:
    """Return the cycles of all cores of the cluster for a part of a layer, barrier included.

    Notes
    -----
    Work is dealt to the cores as PULP-NN deals it: rows of windows, channels of depthwise and fully
    connected layers; of 1x1 convolutions whose rows leave cores idle, halves of rows to pairs of
    cores. All else by rows, pixels or channels, whichever deals it most evenly.
    """
    unit, scratch = npu.unit(UNIT), npu.scratch
    trips = count_trips(step, part)
    timed = [(time_kernel(name), times) for name, times in trips.items() if times]
    cycles = sum((one.steady.cycles + one.steady.refill_cycles) * times for one, times in timed)
    accesses = sum((one.loads + one.stores) * times for one, times in timed)
    share = _share_part(step.layer, part, unit.count)
    often = min(1.0, accesses / max(1.0, cycles))
    wait = wait_of_access(unit.count, scratch.banks if scratch is not None else 0, often)
    alone = cycles / unit.count * share
    total = math.ceil(alone * (1 + often * wait))
    loops = sum((one.steady.cycles + one.steady.refill_cycles) * trips.get(name, 0)
                for name in _AROUND for one in [time_kernel(name)])
    return ClusterCycles(cycles=total + unit.barrier_cycles, waits=(
        ("banks", total - math.ceil(alone)), ("loops", round(loops / unit.count * share)),
        ("barrier", unit.barrier_cycles)))


def _share_part(layer: Layer, part: Part, cores: int) -> float:
    """Return the largest share of a part that a core gets, over an even one."""
    found = traits(layer)
    rows = share_work(part.rows, cores)
    if found.is_depthwise or layer.op == "fully_connected":
        return share_work(part.channels, cores)
    if _is_pointwise(layer):
        halved = part.rows % cores and part.columns > 1 and cores > 1
        return rows if not halved else (
            share_work(part.rows, cores // 2) * share_work(part.columns, 2))
    if found.is_convolution:
        return rows
    return min(rows, *(share_work(items, cores)
                       for items in (part.pixels, math.ceil(part.channels / 4))))


def _is_pointwise(layer: Layer) -> bool:
    """Whether it is a convolution of 1x1 that reads its pixels where they lie."""
    return traits(layer).is_convolution and layer.window is not None and (
        layer.window.kernel == layer.window.stride == (1, 1))


def count_trips(step: GraphLayer, part: Part) -> Trips:
    """Return how often each kernel's text runs for a part of a layer.

    Notes
    -----
    A convolution copies each window to a column, but of 1x1, and multiplies two columns by four
    filters; one of channels copies the rows of a channel under its window. Softmax takes three
    walks in one.
    """
    found = traits(step.layer)
    kinds = ((found.is_depthwise, _count_depthwise), (found.is_convolution, _count_conv),
             (found.is_pool or found.form is Form.REDUCE, _count_pool),
             (found.form is Form.BROADCAST, _count_each("add")),
             (found.form is Form.ELEMENTWISE or found.converts, _count_each("scale")))
    counted = _COUNTERS.get(step.op) or next(
        (one for fits, one in kinds if fits), _count_each("move", 4))
    return {**counted(step, part), "row": part.rows}


def _count_conv(step: GraphLayer, part: Part) -> Trips:
    depth = step.source.channels // step.layer.groups
    quads = math.ceil(math.prod(step.layer.kernel) * depth / 4)
    blocks = math.ceil(part.pixels / 2) * math.ceil(part.channels / 4)
    columns = {} if _is_pointwise(step.layer) else {"column": part.pixels * quads}
    return {"matmul": blocks * quads, "matmul_block": blocks, **columns,
            "requantise": part.pixels * part.channels}


def _count_depthwise(step: GraphLayer, part: Part) -> Trips:
    rows, columns = step.layer.kernel
    outputs = part.pixels * part.channels
    copied = outputs * step.layer.sliding_window.stride[0]
    return {"depthwise_tap": outputs * (rows * columns // 4), "requantise": outputs,
            "depthwise_left": outputs * (rows * columns % 4), "depthwise_row": copied,
            "depthwise_copy": copied * math.ceil(columns / 4), "depthwise_output": outputs}


def _count_dense(step: GraphLayer, part: Part) -> Trips:
    pairs = part.pixels * math.ceil(part.channels / 2)
    return {"linear": pairs * math.ceil(step.weights.channels / 4), "depthwise_output": pairs,
            "requantise": part.pixels * part.channels}


def _count_pool(step: GraphLayer, part: Part) -> Trips:
    outputs = part.pixels * part.channels
    taps = math.prod(step.layer.kernel) if step.layer.window is not None else (
        step.source.elements // step.output.elements)
    return {"pool_tap" if traits(step.layer).takes_largest else "sum_tap": outputs / 4 * taps,
            "pool_output": outputs}


def _count_each(kernel: str, at_once: int = 1) -> Counter:
    """Return the counter of a kernel that runs once for so many numbers of the output."""
    return lambda step, part: {kernel: part.pixels * part.channels / at_once}


_COUNTERS: Mapping[str, Counter] = {
    "softmax": _count_each("softmax"), "fully_connected": _count_dense,
    **dict.fromkeys(("logistic", "tanh", "hard_swish"), _count_each("table"))}
"""Operators whose form says too little."""
