"""Float operators, in the order of the firmware's plain C kernels up to the order of a sum.

Sums are taken in double precision and rounded once: kernels add single-precision values one by
one and differ from these by rounding only.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from twin.network.arithmetic import parameters
from twin.network.arithmetic.integer import Operation, concatenate, pad, rename
from twin.network.arithmetic.requantisation import INT8_HIGH, INT8_LOW, round_away, single
from twin.network.arithmetic.windows import cut_windows
from twin.network.graph import GraphLayer


def float_bias(step: GraphLayer) -> ndarray:
    """Bias of a weighted layer, zeros where it has none; float32, shape (output channels,)."""
    if len(step.layer.inputs) < 3 or step.layer.inputs[2] < 0:
        return np.zeros(step.output.channels, np.float32)
    return np.asarray(step.input(2).data, np.float32).reshape(-1)


def float_weights(step: GraphLayer) -> ndarray:
    """Constant float32 weights of a layer."""
    weights = parameters.weight_values(step)
    if weights.dtype != np.float32:
        raise step.refuse(f"weights of "
                          f"{step.weights.dtype} under float data; "
                          "float32 is expected")
    return weights


def _finish(step: GraphLayer, values: ndarray) -> ndarray:
    low, high = parameters.float_range(step)
    return np.clip(values, low, high).astype(np.float32).reshape(step.shape)


def _windows(step: GraphLayer, image: ndarray, border: float) -> ndarray:
    return cut_windows(image.astype(np.float64), step.layer.sliding_window, step.shape[1:3], border)


def convolve(step: GraphLayer) -> ndarray:
    """Convolution with full channel sums."""
    if step.layer.groups != 1:
        raise step.refuse(f"{step.layer.groups} groups; one is " "expected")
    weights = float_weights(step)
    windows = _windows(step, step.data[0], 0.0)
    columns = windows.reshape(windows.shape[0] * windows.shape[1], -1)
    sums = columns @ weights.reshape(weights.shape[0], -1).T + float_bias(step)
    return _finish(step, sums)


def convolve_depthwise(step: GraphLayer) -> ndarray:
    """Convolution of each channel with its own filters."""
    weights = float_weights(step)[0]
    windows = _windows(step, step.data[0], 0.0)
    windows = np.repeat(windows, weights.shape[2] // windows.shape[4], axis=4)
    sums = np.einsum("yxijc,ijc->yxc", windows, weights) + float_bias(step)
    return _finish(step, sums)


def connect(step: GraphLayer) -> ndarray:
    """Fully connected layer."""
    weights = float_weights(step)
    rows = step.data.reshape(-1, weights.shape[1]).astype(np.float64)
    return _finish(step, rows @ weights.T + float_bias(step))


def pool_average(step: GraphLayer) -> ndarray:
    """Average over the part of each window inside the image."""
    if step.option("count_include_pad", False):
        raise step.refuse("padding is counted in the "
                          "average; windows inside the image are expected")
    sums = _windows(step, step.data[0], 0.0).sum(axis=(2, 3))
    counts = _windows(step, np.ones_like(step.data[0]), 0.0).sum(axis=(2, 3))
    return _finish(step, sums / counts)


def pool_max(step: GraphLayer) -> ndarray:
    """Greatest value of each window."""
    return _finish(step, _windows(step, step.data[0], -np.inf).max(axis=(2, 3)))


def add(step: GraphLayer) -> ndarray:
    """Sum of two tensors of one shape."""
    if step.data.shape != step.inputs[1].shape:
        raise step.refuse(f"shapes {step.data.shape} and "
                          f"{step.inputs[1].shape}; equal ones are expected")
    return _finish(step, step.data + step.inputs[1])


def average(step: GraphLayer) -> ndarray:
    """Mean over height and width."""
    parameters.averaging(step)
    return _finish(step, step.data.astype(np.float64).mean(axis=(1, 2)))


def normalise(step: GraphLayer) -> ndarray:
    """Softmax over the last axis."""
    values = step.data.astype(np.float64) * float(step.option("beta", 1.0))
    shares = np.exp(values - values.max(axis=-1, keepdims=True))
    return _finish(step, shares / shares.sum(axis=-1, keepdims=True))


def quantise(step: GraphLayer) -> ndarray:
    """Floats to int8, rounded half away from zero."""
    scale, zero_point = single(step.output)
    # As the kernel divides: in single precision.
    quotient = np.clip(step.data.astype(np.float32) / np.float32(scale), -512.0, 512.0)
    return np.clip(round_away(quotient) + zero_point, INT8_LOW, INT8_HIGH).astype(np.int8)


def dequantise(step: GraphLayer) -> ndarray:
    """int8 to floats."""
    scale, zero_point = single(step.source)
    return np.float32(scale) * (step.data.astype(np.int32) - zero_point).astype(np.float32)


OPERATIONS: Mapping[str, Operation] = {
    "conv_2d": convolve, "depthwise_conv_2d": convolve_depthwise, "fully_connected": connect,
    "average_pool_2d": pool_average, "max_pool_2d": pool_max, "add": add, "mean": average,
    "softmax": normalise, "pad": pad, "concatenation": concatenate, "reshape": rename,
}
"""Float operators by name."""
