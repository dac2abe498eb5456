"""Depthwise convolution: 3x3 on four channels at once, gathered columns, or the generic loops.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions/arm_depthwise_conv_wrapper_s8.c and
arm_depthwise_conv_3x3_s8.c: four channels at a time, edges by loop bounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hwmodels.kernel import Kernel, Lowered
from twin.runtimes.cmsis_nn.convolution.windows import lower_windows_mve, scratch_bytes_mve
from twin.runtimes.cmsis_nn.sequences import CODE, bookkeeping, entry, finish_four, requantise
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join, plain
from twin.runtimes.lowering.geometry import Geometry, output_steps, over_pixels
from twin.runtimes.lowering.nests import Move, Repeat, bound, closing, load, repeat, resolve, store

_CODE = CODE["depthwise"]


def _column_counts(shape: Geometry) -> tuple[int, int]:
    """Output columns whose left and whose right window column lies inside the input."""
    stride, before = shape.window.stride[1], shape.window.padding[2]
    firsts = [place * stride - before for place in range(shape.output_columns)]
    return (sum(1 for first in firsts if first >= 0),
            sum(1 for first in firsts if shape.input_columns - first >= 3))


_QUAD = {"dsp": (8, 2, 13), "thumb2": (10, 5, 12), "thumb1": (12, 5, 20, 8), "rv32": (5, 5, 10)}
"""Stack loads, stack stores, arithmetic and jumps per four channels."""


def lower_3x3(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_3x3_s8`: four channels at a time, then one.

    Parameters
    ----------
    shape
        Channel multiplier one, batch one, no dilation, padding of at most one in front.
    """
    dialect = site.dialect
    quads, singles = divmod(shape.input_channels, 4)
    return draft_kernel(
        "arm_depthwise_conv_3x3_s8", "depthwise", site,
        entry(dialect, 60, 1),
        *over_pixels(
            shape,
            block("pixel", join(bookkeeping(dialect, 18, 8, 19), BRANCH[dialect]), shape.pixels, 1),
            repeat("quad", quads, *_four_channels(dialect, shape, quads)),
            repeat("single", singles, *_one_channel(dialect, shape, 4 * quads, singles))),
        macs=shape.taps_inside * shape.input_channels)


def _four_channels(dialect: str, shape: Geometry, quads: int) -> tuple[Any, ...]:
    """Bias, taps, parameters and store of four channels; words where unaligned access is free."""
    end, tap, rows = BRANCH[dialect], _CODE.tap_3x3[dialect], sum(shape.row_taps) * quads
    jumps = 1 if dialect in ("dsp", "thumb1") else 0  # edge columns are laid out of line
    left, right = _column_counts(shape)
    packed = plain(dialect) == "thumb2"
    width, times = (4, 1) if packed else (1, 4)
    bias_width, biases = (8, 2) if packed else (4, 4)
    return (
        closing("four channels", join(
            _CODE.bias_4[plain(dialect)] if shape.has_bias else "",
            bookkeeping(dialect, *_QUAD[dialect]), finish_four(dialect), end)),
        block("window row", join(bookkeeping(dialect, 5, 0, 7 - jumps), tap, end),
              rows * shape.output_columns, shape.pixels * quads),
        block("left window column", join(tap, bookkeeping(dialect, 0, 0, 0, jumps)), rows * left),
        block("right window column", join(bookkeeping(dialect, 1, 0, 1 - jumps, jumps), tap),
              rows * right),
        *[load("bias", bias_width, bias_width * k, quad=16)
          for k in range(biases if shape.has_bias else 0)],
        _taps(shape, width, times, 0, "quad", 4),
        *_finish(shape, 0, 4, width, "quad"))


def _one_channel(dialect: str, shape: Geometry, start: int, singles: int) -> tuple[Any, ...]:
    end, tap = BRANCH[dialect], _CODE.tap_single[plain(dialect)]
    rows = sum(shape.row_taps) * singles
    left, right = _column_counts(shape)
    bias = "lw s0, 0(s4)" if dialect == "rv32" else "ldr r3, [r1]"
    return (
        closing("one channel", join(bias if shape.has_bias else "", bookkeeping(dialect, 8, 3, 10),
                                    requantise(dialect, 1), end)),
        block("window row, one channel", join(bookkeeping(dialect, 3, 0, 8), tap, end),
              rows * shape.output_columns, shape.pixels * singles),
        block("left column, one channel", tap, rows * left),
        block("right column, one channel", tap, rows * right),
        *([load("bias", 4, 4 * start, single=4)] if shape.has_bias else []),
        _taps(shape, 1, 1, start, "single", 1),
        *_finish(shape, start, 1, 1, "single"))


def _finish(shape: Geometry, start: int, count: int, width: int, name: str) -> list[Move]:
    """Parameters and stores of `count` channels, the loop around them named `name`."""
    channels = shape.input_channels
    return [
        *[load("parameters", 4, 4 * (part * channels + start + k), **{name: 4 * count})
          for k in range(count) for part in (1, 0)],
        *[store("output", width, start + k, **{name: count}, **output_steps(shape))
          for k in range(0, count, width)]]


def _taps(shape: Geometry, width: int, times: int, start: int, name: str, step: int) -> Repeat:
    """Return loads of the three window rows, without edge columns and rows outside."""
    channels, window = shape.input_channels, shape.window
    line_bytes = shape.input_columns * channels
    top, first = -window.padding[0], -window.padding[2]
    stride_rows, stride_columns = window.stride
    row = bound(top, shape.input_rows, row=stride_rows, ky=1)
    left = bound(first, 1 << 30, column=stride_columns)
    right = bound(shape.input_columns - 3 - first, 1 << 30, column=-stride_columns)
    all_rows = sum(shape.row_taps) == 3 * shape.output_rows
    counts = _column_counts(shape)
    edges = [() if count == shape.output_columns else (edge,)
             for count, edge in zip((counts[0], 0, counts[1]), (left, None, right), strict=True)]
    edges[1] = ()
    moves: list[Move] = []
    for column in range(3):
        bounds = (*(() if all_rows else (row,)), *edges[column])
        place = load("input", width, top * line_bytes + (first + column) * channels + start,
                     row=stride_rows * line_bytes, column=stride_columns * channels,
                     ky=line_bytes, **{name: step})
        weight = load("weights", width, column * channels + start, ky=3 * channels, **{name: step})
        for side in (place, weight):
            moves += [side._replace(offset_bytes=side.offset_bytes + width * k, bounds=bounds)
                      for k in range(times)]
    return repeat("ky", 3, *moves)


_TO_CONV_ABOVE = 8
"""Output channels above which Helium runs a one-channel input as an ordinary convolution."""


def _is_simple(shape: Geometry) -> bool:
    """Apply the wrapper's condition for a fast function: multiplier one, batch one, no dilation."""
    return (shape.output_channels == shape.input_channels and shape.batches == 1
            and shape.window.dilation == (1, 1))


def _is_3x3(shape: Geometry) -> bool:
    """Apply the condition of the function for 3x3 windows, whose middle column is always read."""
    window = shape.window
    last = (shape.output_columns - 1) * window.stride[1] - window.padding[2]
    return (_is_simple(shape) and window.kernel == (3, 3) and last + 2 <= shape.input_columns
            and window.padding[0] <= 1 and window.padding[2] <= 1)


def _lower_c(site: Site) -> Lowered:
    shape = site.geometry
    if _is_3x3(shape):
        return (lower_3x3(shape, site),)
    from twin.runtimes.cmsis_nn.depthwise.generic import lower_generic

    return (lower_generic(shape, site),)


def _lower_dsp(site: Site) -> Lowered:
    shape = site.geometry
    if _is_simple(shape) and not _is_3x3(shape):
        from twin.runtimes.cmsis_nn.depthwise.column import lower_column

        return (lower_column(shape, site),)
    return _lower_c(site)


def _scratch_bytes_dsp(site: Site) -> int:
    shape = site.geometry
    if not _is_simple(shape) or _is_3x3(shape):
        return 0
    from twin.runtimes.cmsis_nn.depthwise.column import column_scratch_bytes

    return column_scratch_bytes(shape)


def _lower_mve(site: Site) -> Lowered:
    """Choose scalar code for a dilated window or a channel multiplier above one, like elsewhere."""
    shape = site.geometry
    if _is_convolution(shape):
        return (_lower_to_conv_mve(shape, site),)
    if not _is_simple(shape):
        return _lower_c(site)
    from twin.runtimes.cmsis_nn.depthwise.column import lower_column_mve

    return (lower_column_mve(shape, site),)


def _scratch_bytes_mve(site: Site) -> int:
    shape = site.geometry
    if _is_convolution(shape):  # columns, and the weights transposed
        taps = shape.window_taps
        return scratch_bytes_mve(shape, 1) + taps * shape.output_channels
    if not _is_simple(shape):
        return 0
    from twin.runtimes.cmsis_nn.depthwise.column import column_scratch_bytes_mve

    return column_scratch_bytes_mve(shape)


def _is_convolution(shape: Geometry) -> bool:
    return shape.input_channels == 1 and shape.output_channels > _TO_CONV_ABOVE


def _lower_to_conv_mve(shape: Geometry, site: Site) -> Kernel:
    """Transpose the weights behind the columns in scratch, then run the ordinary convolution.

    The convolution's accesses keep naming the weights: the transposed copy is as large.
    """
    taps, channels = shape.window_taps, shape.output_channels
    transposed = block(
        "transpose weights", "ldrsb r3, [r1], r2; strb r3, [r0], #1; subs r4, #1; bne 0b",
        taps * channels, channels, "data_copy")
    copy = resolve(repeat("out", channels, repeat(
        "tap", taps, load("weights", 1, 0, out=1, tap=channels),
        store("scratch", 1, 4 * 8 * -(-taps // 8), out=taps, tap=1))))
    kernel = lower_windows_mve(shape, 1, site)
    return replace(kernel, name="arm_depthwise_conv_wrapper_s8", family="depthwise",
                   blocks=(transposed, *kernel.blocks), nests=(*copy, *kernel.nests))


KERNELS: Kernels = {
    "depthwise_conv_2d": {
        "c": Lowering(lower=_lower_c),
        "dsp": Lowering(lower=_lower_dsp, scratch_bytes=_scratch_bytes_dsp),
        "mve": Lowering(lower=_lower_mve, scratch_bytes=_scratch_bytes_mve),
    },
}
