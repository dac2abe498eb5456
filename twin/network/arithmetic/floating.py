"""Float operators, in the order of the firmware's plain C kernels up to the order of a sum.

Sums are taken in double precision and rounded once: kernels add single-precision values one by
one and differ from these by rounding only.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twin.errors import RuntimeRefusedError
from twin.network.arithmetic import parameters
from twin.network.arithmetic.integer import Operands, Operation, concatenate, pad, rename
from twin.network.arithmetic.requantisation import INT8_HIGH, INT8_LOW, round_away, single
from twin.network.arithmetic.windows import cut_windows
from twin.network.graph import Graph, Layer


def float_bias(graph: Graph, layer: Layer) -> np.ndarray:
    """Bias of a weighted layer, zeros where it has none; float32, shape (output channels,)."""
    if len(layer.inputs) < 3 or layer.inputs[2] < 0:
        return np.zeros(graph.output(layer).channels, np.float32)
    return np.asarray(graph.input(layer, 2).data, np.float32).reshape(-1)


def float_weights(graph: Graph, layer: Layer) -> np.ndarray:
    """Constant float32 weights of a layer."""
    weights = parameters.weight_values(graph, layer)
    if weights.dtype != np.float32:
        raise RuntimeRefusedError(f"layer {layer.index} {layer.op}: weights of "
                                  f"{graph.input(layer, 1).dtype} under float data; "
                                  "float32 is expected")
    return weights


def _finish(graph: Graph, layer: Layer, values: np.ndarray) -> np.ndarray:
    low, high = parameters.float_range(layer)
    shape = graph.output(layer).shape
    return np.clip(values, low, high).astype(np.float32).reshape(shape)


def _windows(graph: Graph, layer: Layer, image: np.ndarray, border: float) -> np.ndarray:
    shape = graph.output(layer).shape
    return cut_windows(image.astype(np.float64), layer.sliding_window, shape[1:3], border)


def convolve(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Convolution with full channel sums."""
    if layer.groups != 1:
        raise RuntimeRefusedError(f"layer {layer.index} conv_2d: {layer.groups} groups; one is "
                                  "expected")
    weights = float_weights(graph, layer)
    windows = _windows(graph, layer, inputs[0][0], 0.0)
    columns = windows.reshape(windows.shape[0] * windows.shape[1], -1)
    sums = columns @ weights.reshape(weights.shape[0], -1).T + float_bias(graph, layer)
    return _finish(graph, layer, sums)


def convolve_depthwise(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Convolution of each channel with its own filters."""
    weights = float_weights(graph, layer)[0]
    windows = _windows(graph, layer, inputs[0][0], 0.0)
    windows = np.repeat(windows, weights.shape[2] // windows.shape[4], axis=4)
    sums = np.einsum("yxijc,ijc->yxc", windows, weights) + float_bias(graph, layer)
    return _finish(graph, layer, sums)


def connect(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Fully connected layer."""
    weights = float_weights(graph, layer)
    rows = inputs[0].reshape(-1, weights.shape[1]).astype(np.float64)
    return _finish(graph, layer, rows @ weights.T + float_bias(graph, layer))


def pool_average(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Average over the part of each window inside the image."""
    if layer.option("count_include_pad", False):
        raise RuntimeRefusedError(f"layer {layer.index} {layer.op}: padding is counted in the "
                                  "average; windows inside the image are expected")
    sums = _windows(graph, layer, inputs[0][0], 0.0).sum(axis=(2, 3))
    counts = _windows(graph, layer, np.ones_like(inputs[0][0]), 0.0).sum(axis=(2, 3))
    return _finish(graph, layer, sums / counts)


def pool_max(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Greatest value of each window."""
    return _finish(graph, layer, _windows(graph, layer, inputs[0][0], -np.inf).max(axis=(2, 3)))


def add(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Sum of two tensors of one shape."""
    if inputs[0].shape != inputs[1].shape:
        raise RuntimeRefusedError(f"layer {layer.index} add: shapes {inputs[0].shape} and "
                                  f"{inputs[1].shape}; equal ones are expected")
    return _finish(graph, layer, inputs[0] + inputs[1])


def average(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Mean over height and width."""
    parameters.averaging(graph, layer)
    return _finish(graph, layer, inputs[0].astype(np.float64).mean(axis=(1, 2)))


def normalise(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Softmax over the last axis."""
    values = inputs[0].astype(np.float64) * float(layer.option("beta", 1.0))
    shares = np.exp(values - values.max(axis=-1, keepdims=True))
    return _finish(graph, layer, shares / shares.sum(axis=-1, keepdims=True))


def quantise(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """Floats to int8, rounded half away from zero."""
    scale, zero_point = single(graph.output(layer))
    # As the kernel divides: in single precision.
    quotient = np.clip(inputs[0].astype(np.float32) / np.float32(scale), -512.0, 512.0)
    return np.clip(round_away(quotient) + zero_point, INT8_LOW, INT8_HIGH).astype(np.int8)


def dequantise(graph: Graph, layer: Layer, inputs: Operands) -> np.ndarray:
    """int8 to floats."""
    scale, zero_point = single(graph.input(layer))
    return np.float32(scale) * (inputs[0].astype(np.int32) - zero_point).astype(np.float32)


OPERATIONS: Mapping[str, Operation] = {
    "conv_2d": convolve, "depthwise_conv_2d": convolve_depthwise, "fully_connected": connect,
    "average_pool_2d": pool_average, "max_pool_2d": pool_max, "add": add, "mean": average,
    "softmax": normalise, "pad": pad, "concatenation": concatenate, "reshape": rename,
}
"""Float operators by name."""
