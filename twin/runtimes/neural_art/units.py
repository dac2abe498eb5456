"""What a layer asks of the processing units, and the compute cycles it takes with ideal memory.

The compiler is closed; the rules are read off its published outputs, named in `neural-art.yaml`.
A stream carries one element a cycle and a unit passes one on, so a layer takes at least as many
cycles as it has outputs. A convolution unit holds a 3x3 kernel over several channels; a 1x1 kernel
fills a third of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hwmodels.npu import Npu, UnitWork
from twin.network.graph import DTYPE_BITS, Graph, Layer
from twin.network.operators import layer_macs
from twin.runtimes.offload import Offload

UNITS: Mapping[str, str] = {
    "conv_2d": "CONV_ACC", "depthwise_conv_2d": "CONV_ACC", "transpose_conv_2d": "CONV_ACC",
    "fully_connected": "CONV_ACC",
    "average_pool_2d": "POOL_ACC", "max_pool_2d": "POOL_ACC", "mean": "POOL_ACC",
    "add": "ARITH_ACC", "sub": "ARITH_ACC", "mul": "ARITH_ACC", "minimum": "ARITH_ACC",
    "maximum": "ARITH_ACC", "quantize": "ARITH_ACC",
    "relu": "ACTIV_ACC", "relu6": "ACTIV_ACC", "leaky_relu": "ACTIV_ACC", "prelu": "ACTIV_ACC",
    "hard_swish": "ACTIV_ACC", "logistic": "ACTIV_ACC", "tanh": "ACTIV_ACC",
}
"""Unit that computes each operator the accelerator has."""

_NAMES = {"conv_2d": "conv", "depthwise_conv_2d": "conv", "transpose_conv_2d": "conv",
          "fully_connected": "conv", "average_pool_2d": "avgpool", "max_pool_2d": "maxpool",
          "mean": "avgpool", "logistic": "sigmoid", "quantize": "sub"}
"""Operators as the profiler names them, where it differs from ours."""

_KERNEL_ROWS = 3
"""Rows and columns of the kernel a convolution unit holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A layer on the accelerator.

    Parameters
    ----------
    units : tuple of UnitWork
        In dataflow order.
    operations : tuple of (str, int)
        Kind and number, as the profiler lists them.
    weight_bytes : int
        Streamed from the weights' pool, in the form the compiler stores them.
    weight_streams : int
        Engines that stream them.
    scattered : bool
        Whether it walks channel by channel, an element at a time.
    """

    units: tuple[UnitWork, ...]
    operations: tuple[tuple[str, int], ...]
    weight_bytes: int = 0
    weight_streams: int = 0
    scattered: bool = False


def plan_work(graph: Graph, layer: Layer, npu: Npu, offload: Offload) -> Work:
    """Return what a layer asks of the units.

    Parameters
    ----------
    graph : Graph
        The network.
    layer : Layer
        Of an operator in `UNITS`.
    npu : Npu
        The accelerator: how many units, at which rate.
    offload : Offload
        The compiler's rules.

    Returns
    -------
    Work
        Compute cycles are with ideal memory.
    """
    kind = UNITS[layer.op]
    if kind == "CONV_ACC":
        return _plan_convolution(graph, layer, npu, offload)
    name = _NAMES.get(layer.op, layer.op)
    inputs = graph.tensors[layer.inputs[0]].elements
    outputs = graph.tensors[layer.outputs[0]].elements
    elements = max(inputs, outputs)
    unit = UnitWork(kind=kind, ops=elements, compute_cycles=elements)
    return Work(units=(unit,), operations=((name, 1),))


def _plan_convolution(graph: Graph, layer: Layer, npu: Npu, offload: Offload) -> Work:
    weights = graph.tensors[layer.inputs[1]]
    inputs = graph.tensors[layer.inputs[0]].elements
    outputs = graph.tensors[layer.outputs[0]].elements
    kernel = layer.window.kernel if layer.window is not None else (1, 1)
    depthwise = layer.op == "depthwise_conv_2d"
    grouped = depthwise and offload.depthwise == "grouped"
    stored = weights.elements * (offload.group_channels if grouped else _inflation(layer))
    bits = DTYPE_BITS[weights.dtype]
    stored_bytes = math.ceil(stored * bits / 8)
    macs = layer_macs(graph, layer) * (offload.group_channels if grouped else 1)
    depth = _depth(graph, layer, offload, grouped)
    count = _count_units(kernel, depth, npu, offload) if not depthwise else 1
    rate = _macs_per_cycle(kernel, npu, offload, bits)
    packed = offload.packed_weight_bytes_per_cycle if outputs <= inputs and not depthwise else 1
    passes = math.ceil(kernel[0] / _KERNEL_ROWS) * math.ceil(kernel[1] / _KERNEL_ROWS)
    cycles = [math.ceil(macs / (count * rate)), outputs, math.ceil(stored_bytes / packed)]
    if depthwise and not grouped:
        cycles = [outputs * passes * _inflation(layer), stored_bytes]
    elif kernel != (1, 1):
        cycles.append(inputs)
    units = [UnitWork(kind="CONV_ACC", count=count, macs=macs, mac_bits=(8, max(bits, 4)),
                      compute_cycles=max(cycles))]
    operations = {"conv": count, "add": 1} | ({"sub": 1} if layer.activation else {})
    # Bias and clipping take a unit each; where there is one only, it does one after the other.
    turns = 2 if layer.activation and npu.unit("ARITH_ACC").count < 2 else 1
    units += [UnitWork(kind="ARITH_ACC", ops=turns * outputs, compute_cycles=turns * outputs)
              for _ in range(2 // turns if layer.activation else 1)]
    if bits < 8:
        units.insert(0, UnitWork(kind="DECUN_ACC", ops=stored, compute_cycles=stored_bytes))
        operations = {"decun": 1, **operations}
    return Work(units=tuple(units), operations=tuple(operations.items()),
                weight_bytes=stored_bytes, weight_streams=count,
                scattered=depthwise and not grouped)


def _inflation(layer: Layer) -> int:
    """How much larger a native depthwise kernel is stored: a strided one covers twice the width."""
    strided = layer.window is not None and layer.window.stride != (1, 1)
    return 2 if layer.op == "depthwise_conv_2d" and strided else 1


def _depth(graph: Graph, layer: Layer, offload: Offload, grouped: bool) -> int:
    if grouped:
        return offload.group_channels
    weights = graph.tensors[layer.inputs[1]]
    return weights.shape[-1]


def _count_units(kernel: tuple[int, int], depth: int, npu: Npu, offload: Offload) -> int:
    """Convolution units the compiler chains: partial sums pass from one to the next.

    Each streams weights of its own; an engine brings the input and one takes the result.
    """
    # A unit that holds a whole kernel has its peak left for peak / 9 channels side by side.
    each = (offload.channels_per_unit if kernel == (1, 1)
            else _peak_macs(npu, 8) / _KERNEL_ROWS**2)
    return max(1, min(npu.unit("CONV_ACC").count, npu.engines - 2, math.ceil(depth / each)))


def _macs_per_cycle(kernel: tuple[int, int], npu: Npu, offload: Offload, bits: int) -> float:
    taps = min(kernel[0] * kernel[1], _KERNEL_ROWS)
    return min(_peak_macs(npu, bits), offload.pointwise_macs_per_cycle * taps)


def _peak_macs(npu: Npu, weight_bits: int) -> float:
    rates = dict(npu.unit("CONV_ACC").macs_per_cycle)
    return rates.get(f"8x{weight_bits}") or rates["8x8"]
