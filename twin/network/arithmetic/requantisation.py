"""Fixed-point scaling as TensorFlow Lite's reference kernels do it, on whole arrays."""

from __future__ import annotations

import math

import numpy as np
from numpy import ndarray

from hwmodels.frozen import entity
from twin.errors import RuntimeRefusedError
from twin.network.graph import GraphLayer, Quantization, Tensor
from twin.network.operators import ACTIVATION_BOUNDS

INT8_LOW, INT8_HIGH = -128, 127


@entity
class Requantisation:
    """From 32-bit sums to stored values: multiply, shift, add the zero point, clamp.

    Parameters
    ----------
    multipliers, shifts : ndarray of int32, shape (channels,) or (1,)
        value = sum * multiplier * 2 ** (shift - 31); multipliers are Q0.31.
    offset
        Zero point of the output.
    low, high
        Bounds of the fused activation.
    """

    multipliers: ndarray
    shifts: ndarray
    offset: int
    low: int
    high: int

    def apply(self, sums: ndarray) -> ndarray:
        """Requantise 32-bit sums, channels last, to int8."""
        values = scale_values(sums, self.multipliers, self.shifts) + self.offset
        return np.clip(values, self.low, self.high).astype(np.int8)


def split_scale(scale: float) -> tuple[int, int]:
    """Split a positive scale into a 32-bit multiplier and a shift.

    Parameters
    ----------
    scale
        Real factor.

    Returns
    -------
    multiplier, shift : int
        scale ~ multiplier * 2 ** (shift - 31), multiplier in [2**30, 2**31); 0, 0 for a factor
        of 0 or below 2 ** -32.

    Raises
    ------
    RuntimeRefusedError
        When the factor is 2 ** 31 or more.

    References
    ----------
    TensorFlow Lite, kernels/internal/quantization_util: QuantizeMultiplier.
    """
    if scale == 0.0:
        return 0, 0
    fraction, shift = math.frexp(scale)
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    if shift > 30:
        raise RuntimeRefusedError(f"a scale of {scale:g} does not fit a 32-bit multiplier")
    return multiplier, shift


def split_scales(scales: ndarray) -> tuple[ndarray, ndarray]:
    """Split many scales; see `split_scale`."""
    pairs = [split_scale(float(scale)) for scale in np.ravel(scales)]
    return (np.array([m for m, _ in pairs], np.int32), np.array([s for _, s in pairs], np.int32))


def scale_values(values: ndarray, multiplier: ndarray | int,
                 shift: ndarray | int) -> ndarray:
    """Multiply 32-bit values by multiplier * 2 ** (shift - 31), rounding twice.

    Parameters
    ----------
    values : ndarray of integers
        Taken modulo 2**32.
    multiplier, shift : ndarray of int32 or int
        Broadcast against `values`.

    Returns
    -------
    ndarray of int64
        Within 32 bits.

    Notes
    -----
    MultiplyByQuantizedMultiplier of TensorFlow Lite without TFLITE_SINGLE_ROUNDING: a shift to
    the left modulo 2**32, the upper word of the doubled product rounded half up, then a division
    by a power of two rounded half away from zero.
    """
    shift = np.asarray(shift, np.int64)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = wrap(np.asarray(values, np.int64) << left)
    high = (shifted * np.asarray(multiplier, np.int64) + (1 << 30)) >> 31
    mask = (np.int64(1) << right) - 1
    threshold = (mask >> 1) + (high < 0)
    return (high >> right) + ((high & mask) > threshold)


def wrap(values: ndarray) -> ndarray:
    """Reduce to the 32-bit two's complement range, as int64."""
    return values.astype(np.int32).astype(np.int64)


def single(tensor: Tensor) -> tuple[float, int]:
    """Scale and zero point of a tensor quantised as a whole.

    Raises
    ------
    RuntimeRefusedError
        When it is not int8 with one scale.
    """
    quantization = tensor.quantization
    if tensor.dtype != "int8" or quantization is None or len(quantization.scales) != 1:
        raise RuntimeRefusedError(f"tensor {tensor.name!r}: int8 with one scale and zero point is "
                                  f"expected, not {tensor.dtype}")
    return quantization.scales[0], quantization.zero_points[0]


def activation_range(step: GraphLayer) -> tuple[int, int]:
    """Return stored values the fused activation of a layer lets through.

    References
    ----------
    TensorFlow Lite, kernels/kernel_util: CalculateActivationRangeQuantized.
    """
    scale, zero_point = single(step.output)

    def stored(real: float) -> int:
        return zero_point + int(round_away(real / scale))

    low, high = INT8_LOW, INT8_HIGH
    if step.layer.activation is None:
        return low, high
    if step.layer.activation not in ACTIVATION_BOUNDS:
        raise step.refuse(f"fused activation "
                          f"{step.layer.activation!r}; accepted: {', '.join(ACTIVATION_BOUNDS)}")
    lower, upper = ACTIVATION_BOUNDS[step.layer.activation]
    return (max(low, stored(lower)), high if math.isinf(upper) else min(high, stored(upper)))


def round_away(value: float | ndarray) -> ndarray:
    """Round half away from zero."""
    value = np.asarray(value, np.float64)
    return np.trunc(value + np.copysign(0.5, value))


def weighted(step: GraphLayer) -> Requantisation:
    """Requantisation of a convolution or fully connected layer.

    Notes
    -----
    Factor of a channel: input scale * weight scale / output scale, in double precision.
    Convolutions keep one factor per output channel even where the file has one scale.
    """
    input_scale, _ = single(step.source)
    output_scale, offset = single(step.output)
    scales = np.array(_weight_scales(step).scales, np.float64)
    if step.op != "fully_connected" and scales.size == 1:
        scales = np.repeat(scales, step.output.channels)
    multipliers, shifts = split_scales(input_scale * scales / output_scale)
    low, high = activation_range(step)
    return Requantisation(multipliers=multipliers, shifts=shifts, offset=offset, low=low, high=high)


def _weight_scales(step: GraphLayer) -> Quantization:
    weights = step.weights
    quantization = weights.quantization
    if weights.dtype != "int8" or quantization is None or any(quantization.zero_points):
        raise step.refuse(f"weights {weights.name!r} are "
                          f"{weights.dtype}; int8 with zero point 0 is expected")
    return quantization
