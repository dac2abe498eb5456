"""Real numbers stored as integers: weights, biases and activations at other widths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hwmodels.quantities import Ends
from twin.network.graph import Quantization, Tensor

LIMITS = {"int4": 7, "int8": 127, "int16": 32767}
"""Largest stored weight, symmetric about zero."""


def real_values(tensor: Tensor) -> np.ndarray:
    """Return the real numbers a constant stands for.

    Notes
    -----
    real = scale x (stored - zero point), scales by channel where it has an axis.
    """
    assert tensor.data is not None
    if tensor.quantization is None:
        return tensor.data.astype(np.float32)
    scales, zeros = _spread(tensor)
    return ((tensor.data.astype(np.float64) - zeros) * scales).astype(np.float32)


def _spread(tensor: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return scales and zero points in a shape that broadcasts over a tensor."""
    quantization = tensor.quantization
    assert quantization is not None
    shape = [1] * len(tensor.shape)
    if quantization.axis is not None:
        shape[quantization.axis] = len(quantization.scales)
    return (np.asarray(quantization.scales, np.float64).reshape(shape),
            np.asarray(quantization.zero_points, np.float64).reshape(shape))


def quantise_weights(tensor: Tensor, dtype: str, axis: int | None) -> Tensor:
    """Return a constant in integers symmetric about zero, a scale for each channel.

    Parameters
    ----------
    tensor
        Weights, real or of another width.
    dtype
        A key of `LIMITS`.
    axis
        Of the channels; None: one scale for all.

    Notes
    -----
    scale = max |w| / limit; stored = round(w / scale). Channels of zeros have scale 1.
    """
    values, limit = real_values(tensor), LIMITS[dtype]
    others = tuple(i for i in range(values.ndim) if i != axis)
    peaks = np.abs(values).max(axis=others if axis is not None else None)
    scales = np.atleast_1d(np.where(peaks > 0, peaks / limit, 1.0)).astype(np.float32)
    shape = [1] * values.ndim
    if axis is not None:
        shape[axis] = len(scales)
    stored = np.clip(np.rint(values / scales.reshape(shape)), -limit, limit)
    return replace(tensor, dtype=dtype, data=stored.astype(
        np.int16 if dtype == "int16" else np.int8), quantization=Quantization(
            scales=tuple(scales.tolist()), zero_points=(0,) * len(scales),
            axis=axis if len(scales) > 1 else None))


def quantise_bias(tensor: Tensor, source: Quantization, weights: Quantization,
                  dtype: str) -> Tensor:
    """Return a bias in the products' scale: that of the data times that of the weights.

    Parameters
    ----------
    source, weights
        Of the layer's data and of its weights.
    dtype
        "int32", or "int64" for 16-bit data; values are kept to 32 and 40 bits.
    """
    scales = np.asarray(weights.scales, np.float64) * source.scales[0]
    values = real_values(tensor).reshape(-1).astype(np.float64)
    stored = np.rint(values / scales)
    most = 2 ** (31 if dtype == "int32" else 39) - 1
    kept = np.clip(stored, -most, most).astype(dtype).reshape(tensor.shape)
    axis = None if len(scales) == 1 else len(tensor.shape) - 1
    return replace(tensor, dtype=dtype, data=kept, quantization=Quantization(
        scales=tuple(scales.astype(np.float32).tolist()), zero_points=(0,) * len(scales),
        axis=axis))


def range_of(tensor: Tensor) -> Ends | None:
    """Return the least and largest real number a quantised activation can be; None: not known."""
    quantization = tensor.quantization
    if quantization is None or tensor.dtype not in ("int8", "uint8", "int16"):
        return None
    low, high = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}[tensor.dtype]
    scale, zero = quantization.scales[0], quantization.zero_points[0]
    return scale * (low - zero), scale * (high - zero)


def activation_scale(dtype: str, low: float, high: float) -> Quantization:
    """Return how activations between two real numbers are stored.

    Parameters
    ----------
    dtype
        "int8" or "int16".
    low, high
        Least and greatest value seen; widened to hold zero.

    Notes
    -----
    int8 takes 256 steps from low to high, zero among them; int16 is symmetric.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if dtype == "int16":
        scale = max(-low, high, 1e-9) / 32767
        return Quantization(scales=(float(np.float32(scale)),), zero_points=(0,))
    scale = max(high - low, 1e-9) / 255
    zero = round(-128 - low / scale)
    return Quantization(scales=(float(np.float32(scale)),),
                        zero_points=(max(-128, min(127, zero)),))
