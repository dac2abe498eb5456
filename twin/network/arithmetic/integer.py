"""int8 operators, bit for bit what the firmware's kernels compute.

Every function takes the graph, the layer and its input arrays, and returns its output array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from twin.errors import RuntimeRefusedError
from twin.network.arithmetic import parameters
from twin.network.arithmetic.requantisation import (
    INT8_LOW,
    activation_range,
    scale_values,
    single,
    weighted,
)
from twin.network.arithmetic.windows import cut_windows
from twin.network.graph import Graph, Layer, Tensor

Operands = list[np.ndarray]
"""Values of the tensors a layer reads that are no constants."""

Operation = Callable[[Graph, Layer, Operands], np.ndarray]


def _multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Exact product of small integers: doubles hold every sum below 2**53."""
    return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)


def convolve(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Convolution with full channel sums."""
    weights = parameters.weight_values(graph, layer)
    if layer.groups != 1:
        raise RuntimeRefusedError(f"layer {layer.index} conv_2d: {layer.groups} groups; one is "
                                  "expected")
    _, zero_point = single(graph.input(layer))
    shape = graph.output(layer).shape
    windows = cut_windows(inputs[0][0], layer.sliding_window, shape[1:3], zero_point)
    columns = windows.reshape(shape[1] * shape[2], -1)
    sums = _multiply(columns, weights.reshape(shape[3], -1).T)
    return weighted(graph, layer).apply(sums + parameters.folded_bias(graph, layer)).reshape(shape)


def convolve_depthwise(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Convolution of each channel with its own filters."""
    _, zero_point = single(graph.input(layer))
    shape = graph.output(layer).shape
    weights = parameters.weight_values(graph, layer)[0].astype(np.int64)
    windows = cut_windows(inputs[0][0].astype(np.int64) - zero_point, layer.sliding_window,
                          shape[1:3], 0)
    windows = np.repeat(windows, shape[3] // windows.shape[4], axis=4)
    sums = np.einsum("yxijc,ijc->yxc", windows, weights) + parameters.bias_values(graph, layer)
    return weighted(graph, layer).apply(sums).reshape(shape)


def connect(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Fully connected layer."""
    weights = parameters.weight_values(graph, layer)
    sums = _multiply(inputs[0].reshape(-1, weights.shape[1]), weights.T)
    values = weighted(graph, layer).apply(sums + parameters.folded_bias(graph, layer))
    return values.reshape(graph.output(layer).shape)


def _check_pool(graph: Graph, layer: Layer) -> None:
    data, output = graph.ends(layer)
    if single(data) != single(output):
        raise RuntimeRefusedError(f"layer {layer.index} {layer.op}: input and output scales "
                                  "differ; equal ones are expected")
    if layer.option("count_include_pad", False):
        raise RuntimeRefusedError(f"layer {layer.index} {layer.op}: padding is counted in the "
                                  "average; windows inside the image are expected")


def pool_average(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Average over the part of each window inside the image, rounded half away from zero."""
    _check_pool(graph, layer)
    shape, window = graph.output(layer).shape, layer.sliding_window
    image = inputs[0][0].astype(np.int64)
    sums = cut_windows(image, window, shape[1:3], 0).sum(axis=(2, 3))
    counts = cut_windows(np.ones_like(image), window, shape[1:3], 0).sum(axis=(2, 3))
    # C divides towards zero, after half the count is added away from zero.
    magnitude = (np.abs(sums) + counts // 2) // counts
    low, high = activation_range(layer, graph.output(layer))
    return np.clip(np.sign(sums) * magnitude, low, high).astype(np.int8).reshape(shape)


def pool_max(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Greatest value of each window."""
    _check_pool(graph, layer)
    shape = graph.output(layer).shape
    most = cut_windows(inputs[0][0], layer.sliding_window, shape[1:3], INT8_LOW).max(axis=(2, 3))
    low, high = activation_range(layer, graph.output(layer))
    return np.clip(most, low, high).astype(np.int8).reshape(shape)


def add(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Sum of two tensors."""
    constants = parameters.addition(graph, layer)
    total = sum(
        scale_values((values.astype(np.int64) + offset) << parameters.ADD_SHIFT, multiplier, shift)
        for values, offset, multiplier, shift in zip(
            inputs, constants.offsets, constants.multipliers, constants.shifts, strict=False))
    scaled = scale_values(np.asarray(total), constants.multipliers[2], constants.shifts[2])
    return np.clip(scaled + constants.out_offset, constants.low, constants.high).astype(np.int8)


def average(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Mean over height and width."""
    requantisation, offset, _ = parameters.averaging(graph, layer)
    sums = inputs[0].astype(np.int64).sum(axis=(1, 2)) + offset
    return requantisation.apply(sums).reshape(graph.output(layer).shape)


def normalise(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Softmax over the last axis, by a table of exponentials."""
    table = parameters.softmax_table(graph, layer).astype(np.int64)
    values = inputs[0].astype(np.int64)
    shares = table[values.max(axis=-1, keepdims=True) - values]
    sums = shares.sum(axis=-1, keepdims=True)
    return np.minimum((shares * 256 + sums // 2) // sums - 128, 127).astype(np.int8)


def look_up(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Operator on one value, by table."""
    return parameters.lookup_table(graph, layer)[inputs[0].astype(np.int64) - INT8_LOW]


def pad(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Constant border around an image."""
    data = graph.input(layer)
    amounts = padding_amounts(layer, data)
    value = single(data)[1] if data.dtype == "int8" else float(layer.option("value", 0.0) or 0.0)
    return np.pad(inputs[0], amounts, constant_values=value)


def padding_amounts(layer: Layer, data: Tensor) -> tuple[tuple[int, int], ...]:
    """Border of each axis, before and after.

    Raises
    ------
    RuntimeRefusedError
        When the border is not a constant zero around an image.
    """
    amounts = tuple((int(a), int(b)) for a, b in layer.option("paddings", ()))
    mode, value = layer.option("mode", "constant"), layer.option("value", None)
    if (len(amounts) != 4 or amounts[0] != (0, 0) or mode != "constant"
            or (value not in (None, 0, 0.0) and data.dtype == "int8")):
        raise RuntimeRefusedError(f"layer {layer.index} pad: {amounts}, {mode}, value {value}; a "
                                  "border of zeros around an image is expected")
    return amounts


def concatenate(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Tensors of one scale, one behind the other."""
    check_concatenation(graph, layer)
    return np.concatenate(inputs, axis=layer.option("axis"))


def check_concatenation(graph: Graph, layer: Layer) -> None:
    """Refuse a concatenation that would have to requantise."""
    tensors = [graph.tensors[i] for i in layer.tensors]
    if tensors[0].dtype == "int8" and len({single(tensor) for tensor in tensors}) > 1:
        raise RuntimeRefusedError(f"layer {layer.index} concatenation: the tensors' scales "
                                  "differ; equal ones are expected")
    if layer.activation is not None:
        raise RuntimeRefusedError(f"layer {layer.index} concatenation: fused activation "
                                  f"{layer.activation!r}; none is expected")


def rename(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Return the same values under another shape."""
    return inputs[0].reshape(graph.output(layer).shape)


OPERATIONS: Mapping[str, Operation] = {
    "conv_2d": convolve, "depthwise_conv_2d": convolve_depthwise, "fully_connected": connect,
    "average_pool_2d": pool_average, "max_pool_2d": pool_max, "add": add, "mean": average,
    "softmax": normalise, "pad": pad, "concatenation": concatenate, "reshape": rename,
    **dict.fromkeys(parameters.LOOKUPS, look_up),
}
"""int8 operators by name."""
