"""Scratch buffers TFLM's kernels request in `Prepare`, by kernel library.

References
----------
tflite-micro: `RequestScratchBufferInArena` of kernels; CMSIS-NN: `arm_*_get_buffer_size`.
"""

from __future__ import annotations

from twin.network.graph import GraphLayer
from twin.runtimes.lowering import list_extensions
from twin.runtimes.lowering.geometry import Geometry, has_one_scale, read_geometry

_BLOCK_CHANNELS = 124
"""CMSIS-NN's CH_IN_BLOCK_MVE."""
_REVERSE_ABOVE = 16
"""CMSIS-NN's REVERSE_TCOL_EFFICIENT_THRESHOLD, in channels."""


def list_scratch(site: GraphLayer, kernels: str, isa: str, *,
                 newer: bool = True) -> tuple[int, ...]:
    """Return bytes of each scratch buffer a layer requests; `newer`: as since 2024."""
    data, output = site.ends
    dtype, code = data.dtype, list_extensions(isa)[0]
    whole = dtype in ("int8", "int16")
    if site.op in ("mean", "sum", "reduce_max", "reduce_min"):
        axes = len(site.option("axes", ()) or ()) or 1
        sums = (4 * output.elements,) if site.op in ("mean", "sum") and whole else ()
        kept = newer or site.op not in ("mean", "sum")
        return (*sums, 4 * len(data.shape), 4 * axes) if kept else sums
    if site.op == "pad" and site.option("mode") not in (None, "constant"):
        return (4 * len(data.shape),) * 2
    if site.op == "svdf":
        filters = site.weights.shape[0]
        return (4 * filters, *((4 * output.channels,) if whole else ()))
    if site.op == "lstm":
        size = output.channels * (2 if whole else 4)
        return (size,) * (3 if kernels == "cmsis-nn" and whole and newer else 4)
    if site.op == "transpose_conv_2d":
        return _transposed(read_geometry(site), dtype, kernels if newer else "reference", code)
    if kernels == "cmsis-nn" and whole:
        return tuple(size for size in _cmsis_nn(site, dtype, code) if size)
    if kernels == "esp-nn" and site.op == "softmax" and dtype == "int8":
        return (4 * data.shape[1],) if len(data.shape) > 1 else ()
    packed = len(site.layer.inputs) > 1 and site.layer.inputs[1] >= 0 and (
        site.weights.dtype == "int4")
    return (site.weights.elements,) if packed else ()


def is_pointwise_product(site: GraphLayer) -> bool:
    """Whether TFLite Micro hands a fully connected layer to CMSIS-NN as a convolution of 1x1."""
    return (site.op == "fully_connected" and len(site.shape) > 2
            and site.weights.channels % 4 == 0
            and site.weights.dtype != "int4")


def is_speed_sum(site: GraphLayer, kernels: str, isa: str) -> int:
    """Bytes of sums over weight rows, kept by builds for speed where Helium multiplies."""
    helium = list_extensions(isa)[0] == "mve"
    if kernels != "cmsis-nn" or not helium or site.source.dtype != "int8":
        return 0
    rows = site.weights.shape[0]
    return 0 if is_pointwise_product(site) else 4 * rows


def _cmsis_nn(site: GraphLayer, dtype: str, code: str) -> tuple[int, ...]:
    if site.op == "conv_2d":
        return (_windows(read_geometry(site), site.layer.groups, dtype, code),)
    if site.op == "depthwise_conv_2d" and dtype == "int8":
        return (_depthwise(read_geometry(site), code),)
    if site.op == "average_pool_2d" and code == "dsp":
        return (4 * site.source.channels,)
    if site.op == "fully_connected" and dtype == "int8" and is_pointwise_product(site):
        return (8 * site.output.channels * has_one_scale(site),)
    if site.op == "batch_matmul" and dtype == "int8" and code == "mve":
        return (4 * site.output.channels,)
    return ()


def _windows(shape: Geometry, groups: int, dtype: str, code: str) -> int:
    """arm_convolve_wrapper_s8_get_buffer_size and its s16 sibling."""
    taps = shape.window_taps * shape.input_channels
    if dtype == "int16":
        return 64 * -(-taps // 8) if code == "mve" else 4 * taps
    if shape.is_pointwise and groups == 1:
        return 0  # GCC; armclang builds ask for 4 bytes a channel where the stride is 1
    if code != "mve":
        return 16 * -(-taps // 4)
    if (shape.input_rows == 1 and shape.kernel_rows == 1 and shape.window.dilation[1] == 1
            and shape.window.stride[1] * shape.input_channels % 4 == 0 and groups == 1):
        return _one_row(shape)
    return 64 * -(-taps // 16)


def _one_row(shape: Geometry) -> int:
    """arm_convolve_1_x_n_s8_get_buffer_size_mve."""
    channels, kernel, stride = shape.input_channels, shape.kernel_columns, shape.window.stride[1]
    pad = shape.window.padding[2]
    total = (shape.output_columns - 1) * stride + kernel - shape.input_columns
    uneven = total % 2 if total >= 0 else -(-total % 2)
    right = max(1, (pad + uneven + stride - 1) // stride) if pad + uneven else 0
    left = max(1, (pad + stride - 1) // stride) if pad else 0
    if right + max(shape.output_columns - right - left, 0) + left != shape.output_columns:
        return 64 * -(-kernel * channels // 16)
    after = right * channels if uneven else pad * channels
    return max((kernel + pad) * channels, (kernel - 1) * channels + after)


def _depthwise(shape: Geometry, code: str) -> int:
    """arm_depthwise_conv_wrapper_s8_get_buffer_size."""
    taps = shape.window_taps
    if code == "mve" and shape.input_channels == 1 and shape.output_channels > 1:
        return _windows(shape, 1, "int8", code) + taps * shape.output_channels
    simple = (shape.input_channels == shape.output_channels and shape.batches == 1
              and shape.window.dilation == (1, 1))
    small = (shape.window.kernel == (3, 3) and shape.window.padding[0] <= 1
             and shape.window.padding[2] <= 1)
    if code == "mve":
        return 4 * _BLOCK_CHANNELS * taps if simple else 0
    return 2 * taps * shape.input_channels if simple and not small and code == "dsp" else 0


def _transposed(shape: Geometry, dtype: str, kernels: str, code: str) -> tuple[int, ...]:
    outputs = shape.outputs
    if dtype not in ("int8", "int16"):
        return ()
    if dtype == "int16" or kernels != "cmsis-nn":
        return (outputs * (8 if dtype == "int16" else 4),)
    rows, columns = shape.window.stride
    taps = shape.window_taps * shape.input_channels
    if max(rows, columns) <= 2 and shape.input_channels > _REVERSE_ABOVE:
        windows = 64 * -(-taps // 16) if code == "mve" else 16 * -(-taps // 4)
        return windows, taps * shape.output_channels
    width = (shape.input_columns - 1) * columns + max(shape.kernel_columns, rows)
    return 4 * width * max(shape.kernel_rows, rows) * shape.output_channels, 0
