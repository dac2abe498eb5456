"""Constants of each operator, as kernels want them; code generation writes these very values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hwmodels.frozen import frozen
from hwmodels.quantities import Ends
from twin.network.arithmetic.requantisation import (
    INT8_HIGH,
    INT8_LOW,
    Requantisation,
    activation_range,
    round_away,
    single,
    split_scale,
    split_scales,
)
from twin.network.graph import GraphLayer, Layer
from twin.network.operators import ACTIVATION_BOUNDS

ADD_SHIFT = 20
"""Bits an addition keeps below its unit."""

SOFTMAX_TABLE = 256
"""Entries: differences of two int8 values."""

LOOKUPS: Mapping[str, Callable[[Layer, np.ndarray], np.ndarray]] = {
    "relu": lambda layer, x: np.maximum(x, 0.0),
    "relu6": lambda layer, x: np.clip(x, 0.0, 6.0),
    "logistic": lambda layer, x: 1.0 / (1.0 + np.exp(-x)),
    "tanh": lambda layer, x: np.tanh(x),
    "hard_swish": lambda layer, x: x * np.clip(x + 3.0, 0.0, 6.0) / 6.0,
    "leaky_relu": lambda layer, x: np.where(x < 0.0, x * float(layer.option("alpha", 0.01)), x),
    "quantize": lambda layer, x: x,
}
"""Operators on one int8 value, run by table: on real numbers."""


def bias_values(step: GraphLayer) -> np.ndarray:
    """Bias of a weighted layer, zeros where it has none; int32, shape (output channels,)."""
    channels = step.output.channels
    if len(step.layer.inputs) < 3 or step.layer.inputs[2] < 0:
        return np.zeros(channels, np.int32)
    bias = step.input(2)
    if bias.data is None or bias.dtype != "int32":
        raise step.refuse(f"bias {bias.name!r} is "
                          f"{bias.dtype}; a constant of int32 is expected")
    return np.asarray(bias.data, np.int32).reshape(-1)


def weight_values(step: GraphLayer) -> np.ndarray:
    """Constant weights of a layer, in the graph's layout."""
    weights = step.weights
    if weights.data is None:
        raise step.refuse(f"weights {weights.name!r} are " "computed; constants are expected")
    return np.asarray(weights.data).reshape(weights.shape)


def folded_bias(step: GraphLayer) -> np.ndarray:
    """Bias with the input's zero point folded in, for kernels that multiply stored values.

    Notes
    -----
    sum(w * (x - z)) + b = sum(w * x) + (b - z * sum(w)), modulo 2**32.
    """
    _, zero_point = single(step.source)
    weights = weight_values(step).astype(np.int64)
    sums = weights.reshape(weights.shape[0], -1).sum(axis=1)
    return (bias_values(step) - zero_point * sums).astype(np.int32)


@frozen
class Addition:
    """An int8 addition: both inputs in units of 2**-20 of twice the larger scale.

    Parameters
    ----------
    offsets
        Minus the zero points of the inputs.
    multipliers, shifts
        Of the inputs, then of the output.
    """

    offsets: tuple[int, int]
    multipliers: tuple[int, int, int]
    shifts: tuple[int, int, int]
    out_offset: int
    low: int
    high: int


def addition(step: GraphLayer) -> Addition:
    """Constants of an addition of two equal shapes.

    References
    ----------
    TensorFlow Lite, kernels/add: PrepareGeneralAddOrSub.
    """
    left, right = step.reads
    output = step.output
    if left.shape != right.shape or left.is_constant or right.is_constant:
        raise step.refuse(f"shapes {left.shape} and "
                          f"{right.shape}; two computed tensors of one shape are expected")
    (left_scale, left_zero), (right_scale, right_zero) = single(left), single(right)
    output_scale, out_offset = single(output)
    unit = 2.0 * max(left_scale, right_scale)
    pairs = [split_scale(factor) for factor in (
        left_scale / unit, right_scale / unit, unit / ((1 << ADD_SHIFT) * output_scale))]
    low, high = activation_range(step)
    return Addition(offsets=(-left_zero, -right_zero),
                    multipliers=(pairs[0][0], pairs[1][0], pairs[2][0]),
                    shifts=(pairs[0][1], pairs[1][1], pairs[2][1]),
                    out_offset=out_offset, low=low, high=high)


def averaging(step: GraphLayer) -> tuple[Requantisation, int, int]:
    """Constants of a mean over height and width.

    Returns
    -------
    requantisation : Requantisation
        Of the sum less the zero points.
    offset : int
        Added to the sum: minus positions x zero point of the input.
    positions : int
        Values averaged.
    """
    data, output = step.ends
    axes = tuple(step.option("axes", ()))
    if axes != (1, 2) or len(data.shape) != 4:
        raise step.refuse(f"axes {axes} of {data.shape}; height "
                          "and width of an image are expected")
    positions = data.pixels
    if data.dtype == "float32":
        none = np.zeros(0, np.int32)
        return Requantisation(multipliers=none, shifts=none, offset=0, low=0, high=0), 0, positions
    input_scale, zero_point = single(data)
    output_scale, offset = single(output)
    multipliers, shifts = split_scales(np.array([input_scale / (positions * output_scale)]))
    requantisation = Requantisation(multipliers=multipliers, shifts=shifts, offset=offset,
                                    low=INT8_LOW, high=INT8_HIGH)
    return requantisation, -positions * zero_point, positions


def find_table(step: GraphLayer) -> np.ndarray | None:
    """Return the table an int8 layer is run by, where it is one that looks up."""
    if step.source.dtype != "int8":
        return None
    if step.op == "softmax":
        return softmax_table(step)
    return lookup_table(step) if step.op in LOOKUPS else None


def softmax_table(step: GraphLayer) -> np.ndarray:
    """Exponentials by the difference to the row's greatest value; uint32, shape (256,).

    Notes
    -----
    round(exp(-beta * scale * i) * 2**bits), bits = min(23, 31 - ceil(log2(depth))): a row's sum
    stays below 2**31 and an entry times 256 below 2**32.
    """
    data, output = step.ends
    scale, _ = single(data)
    if single(output) != (1 / 256, -128):
        raise step.refuse(f"output scale and zero point "
                          f"{single(output)}; 1/256 and -128 are expected")
    if step.option("axis", len(data.shape) - 1) != len(data.shape) - 1:
        raise step.refuse("the last axis is expected")
    bits = min(23, 31 - math.ceil(math.log2(max(2, data.channels))))
    steps = np.arange(SOFTMAX_TABLE) * (float(step.option("beta", 1.0)) * scale)
    return np.floor(np.exp(-steps) * (1 << bits) + 0.5).astype(np.uint32)


def lookup_table(step: GraphLayer) -> np.ndarray:
    """Output by stored input + 128 of an operator on one value; int8, shape (256,).

    Notes
    -----
    The operator in double precision, then rounded half away from zero.
    """
    scale, zero_point = single(step.source)
    output_scale, output_zero = single(step.output)
    function = LOOKUPS.get(step.op)
    if function is None:
        raise step.refuse(f"no table runs it; tables run " f"{', '.join(LOOKUPS)}")
    real = (np.arange(INT8_LOW, INT8_HIGH + 1) - zero_point) * scale
    stored = round_away(function(step.layer, real) / output_scale) + output_zero
    return np.clip(stored, INT8_LOW, INT8_HIGH).astype(np.int8)


def float_range(step: GraphLayer) -> Ends:
    """Bounds of the fused activation on floats."""
    if step.layer.activation is None:
        return -math.inf, math.inf
    if step.layer.activation not in ACTIVATION_BOUNDS:
        raise step.refuse(f"fused activation " f"{step.layer.activation!r} has no float kernel")
    return ACTIVATION_BOUNDS[step.layer.activation]
