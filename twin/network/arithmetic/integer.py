"""int8 operators, bit for bit what the firmware's kernels compute.

Every function returns its output array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy import ndarray

from twin.network.arithmetic import parameters
from twin.network.arithmetic.requantisation import (
    INT8_LOW,
    activation_range,
    scale_values,
    single,
    weighted,
)
from twin.network.arithmetic.windows import cut_windows
from twin.network.graph import GraphLayer

Operation = Callable[[GraphLayer], ndarray]


def _multiply(left: ndarray, right: ndarray) -> ndarray:
    """Exact product of small integers: doubles hold every sum below 2**53."""
    return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)


def convolve(step: GraphLayer) -> ndarray:
    """Convolution with full channel sums."""
    weights = parameters.weight_values(step)
    if step.layer.groups != 1:
        raise step.refuse(f"{step.layer.groups} groups; one is " "expected")
    _, zero_point = single(step.source)
    shape = step.shape
    windows = cut_windows(step.data[0], step.layer.sliding_window, shape[1:3], zero_point)
    columns = windows.reshape(shape[1] * shape[2], -1)
    sums = _multiply(columns, weights.reshape(shape[3], -1).T)
    return weighted(step).apply(sums + parameters.folded_bias(step)).reshape(shape)


def convolve_depthwise(step: GraphLayer) -> ndarray:
    """Convolution of each channel with its own filters."""
    _, zero_point = single(step.source)
    shape = step.shape
    weights = parameters.weight_values(step)[0].astype(np.int64)
    windows = cut_windows(step.data[0].astype(np.int64) - zero_point, step.layer.sliding_window,
                          shape[1:3], 0)
    windows = np.repeat(windows, shape[3] // windows.shape[4], axis=4)
    sums = np.einsum("yxijc,ijc->yxc", windows, weights) + parameters.bias_values(step)
    return weighted(step).apply(sums).reshape(shape)


def connect(step: GraphLayer) -> ndarray:
    """Fully connected layer."""
    weights = parameters.weight_values(step)
    sums = _multiply(step.data.reshape(-1, weights.shape[1]), weights.T)
    values = weighted(step).apply(sums + parameters.folded_bias(step))
    return values.reshape(step.shape)


def _check_pool(step: GraphLayer) -> None:
    data, output = step.ends
    if single(data) != single(output):
        raise step.refuse("input and output scales " "differ; equal ones are expected")
    if step.option("count_include_pad", False):
        raise step.refuse("padding is counted in the "
                          "average; windows inside the image are expected")


def pool_average(step: GraphLayer) -> ndarray:
    """Average over the part of each window inside the image, rounded half away from zero."""
    _check_pool(step)
    shape, window = step.shape, step.layer.sliding_window
    image = step.data[0].astype(np.int64)
    sums = cut_windows(image, window, shape[1:3], 0).sum(axis=(2, 3))
    counts = cut_windows(np.ones_like(image), window, shape[1:3], 0).sum(axis=(2, 3))
    # C divides towards zero, after half the count is added away from zero.
    magnitude = (np.abs(sums) + counts // 2) // counts
    low, high = activation_range(step)
    return np.clip(np.sign(sums) * magnitude, low, high).astype(np.int8).reshape(shape)


def pool_max(step: GraphLayer) -> ndarray:
    """Greatest value of each window."""
    _check_pool(step)
    shape = step.shape
    windows = cut_windows(step.data[0], step.layer.sliding_window, shape[1:3], INT8_LOW)
    low, high = activation_range(step)
    return np.clip(windows.max(axis=(2, 3)), low, high).astype(np.int8).reshape(shape)


def add(step: GraphLayer) -> ndarray:
    """Sum of two tensors."""
    constants = parameters.addition(step)
    total = sum(
        scale_values((values.astype(np.int64) + offset) << parameters.ADD_SHIFT, multiplier, shift)
        for values, offset, multiplier, shift in zip(
            step.inputs, constants.offsets, constants.multipliers, constants.shifts, strict=False))
    scaled = scale_values(np.asarray(total), constants.multipliers[2], constants.shifts[2])
    return np.clip(scaled + constants.out_offset, constants.low, constants.high).astype(np.int8)


def average(step: GraphLayer) -> ndarray:
    """Mean over height and width."""
    requantisation, offset, _ = parameters.averaging(step)
    sums = step.data.astype(np.int64).sum(axis=(1, 2)) + offset
    return requantisation.apply(sums).reshape(step.shape)


def normalise(step: GraphLayer) -> ndarray:
    """Softmax over the last axis, by a table of exponentials."""
    table = parameters.softmax_table(step).astype(np.int64)
    values = step.data.astype(np.int64)
    shares = table[values.max(axis=-1, keepdims=True) - values]
    sums = shares.sum(axis=-1, keepdims=True)
    return np.minimum((shares * 256 + sums // 2) // sums - 128, 127).astype(np.int8)


def look_up(step: GraphLayer) -> ndarray:
    """Operator on one value, by table."""
    return parameters.lookup_table(step)[step.data.astype(np.int64) - INT8_LOW]


def pad(step: GraphLayer) -> ndarray:
    """Constant border around an image."""
    data, amounts = step.source, padding_amounts(step)
    value = single(data)[1] if data.dtype == "int8" else float(step.option("value", 0.0) or 0.0)
    return np.pad(step.data, amounts, constant_values=value)


def padding_amounts(step: GraphLayer) -> tuple[tuple[int, int], ...]:
    """Border of each axis, before and after.

    Raises
    ------
    RuntimeRefusedError
        When the border is not a constant zero around an image.
    """
    amounts = tuple((int(a), int(b)) for a, b in step.option("paddings", ()))
    mode, value = step.option("mode", "constant"), step.option("value", None)
    if (len(amounts) != 4 or amounts[0] != (0, 0) or mode != "constant"
            or (value not in (None, 0, 0.0) and step.source.dtype == "int8")):
        raise step.refuse(f"{amounts}, {mode}, value {value}; a "
                          "border of zeros around an image is expected")
    return amounts


def concatenate(step: GraphLayer) -> ndarray:
    """Tensors of one scale, one behind the other."""
    check_concatenation(step)
    return np.concatenate(step.inputs, axis=step.option("axis"))


def check_concatenation(step: GraphLayer) -> None:
    """Refuse a concatenation that would have to requantise."""
    tensors = [step.graph.tensors[i] for i in step.layer.tensors]
    if tensors[0].dtype == "int8" and len({single(tensor) for tensor in tensors}) > 1:
        raise step.refuse("the tensors' scales " "differ; equal ones are expected")
    if step.layer.activation is not None:
        raise step.refuse(f"fused activation " f"{step.layer.activation!r}; none is expected")


def rename(step: GraphLayer) -> ndarray:
    """Return the same values under another shape."""
    return step.data.reshape(step.shape)


OPERATIONS: Mapping[str, Operation] = {
    "conv_2d": convolve, "depthwise_conv_2d": convolve_depthwise, "fully_connected": connect,
    "average_pool_2d": pool_average, "max_pool_2d": pool_max, "add": add, "mean": average,
    "softmax": normalise, "pad": pad, "concatenation": concatenate, "reshape": rename,
    **dict.fromkeys(parameters.LOOKUPS, look_up),
}
"""int8 operators by name."""
