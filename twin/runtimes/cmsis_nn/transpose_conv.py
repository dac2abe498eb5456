"""Transposed convolution: every input pixel adds its window to 32-bit rows kept in scratch.

The inner function's source was not at hand; its loops follow the published interface (one row of
input at a time into a rolling buffer), so the kernel is marked assumed.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions/arm_transpose_conv_s8.c.
"""

from __future__ import annotations

from hwmodels.kernel import Lowered
from twin.runtimes.cmsis_nn.fully_connected import column_blocks
from twin.runtimes.cmsis_nn.sequences import bookkeeping, entry, in_fours, requantise
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, block, draft_kernel, join
from twin.runtimes.lowering.geometry import Geometry, output_steps
from twin.runtimes.lowering.libc import copy_blocks, copy_moves, fill_blocks, fill_moves
from twin.runtimes.lowering.nests import closing, load, repeat, store


def _buffer_extents(shape: Geometry) -> tuple[int, int]:
    """Rows and columns of the rolling buffer."""
    stride_rows, stride_columns = shape.window.stride
    return (max(shape.kernel_rows, stride_rows),
            (shape.input_columns - 1) * stride_columns + max(shape.kernel_columns, stride_columns))


def _scratch_bytes(site: Site) -> int:
    """Return the rolling buffer: one 32-bit sum for each of its positions."""
    shape = site.geometry
    rows, columns = _buffer_extents(shape)
    return 4 * rows * columns * shape.output_channels


def _lower(site: Site) -> Lowered:
    """Weights are (filters, rows, columns, channels)."""
    shape = site.geometry
    dialect = site.dialect
    channels, filters = shape.input_channels, shape.output_channels
    rows, columns = _buffer_extents(shape)
    taps = shape.window_taps
    products = shape.batches * shape.input_rows * shape.input_columns * taps * filters
    resets = shape.batches * (rows + shape.output_rows) * columns
    add = ("lw a3, 0(s1); add a3, a3, s0; sw a3, 0(s1)" if dialect == "rv32"
           else "ldr r3, [r9]; adds r3, r3, r5; str r3, [r9]")
    read = "lw a0, 0(s1)" if dialect == "rv32" else "ldr r4, [r9]"
    reset = (copy_blocks if shape.has_bias else fill_blocks)(dialect, 4 * filters, resets)
    quads, rest = in_fours(dialect, channels)
    place = {"batch": shape.input_rows * shape.input_columns * channels,
             "line": shape.input_columns * channels, "pixel": channels}
    weight = {"tap": channels, "filter": taps * channels}
    width, end = 4 * filters, BRANCH[dialect]
    source, target = load("bias", 1), store("scratch", 1, position=width)
    initial = (copy_moves(dialect, width, source, target) if shape.has_bias
               else fill_moves(dialect, width, target))
    return (draft_kernel(
        "arm_transpose_conv_s8", "conv", site,
        entry(dialect, 120, 1),
        block("reset position", join(bookkeeping(dialect, 2, 0, 4), end), resets, rows,
              "data_copy"),
        *reset,
        repeat("batch", shape.batches,
               repeat("position", rows * columns, *initial),
               repeat("line", shape.input_rows, repeat("pixel", shape.input_columns, repeat(
                   "tap", taps, repeat(
                       "filter", filters,
                       *column_blocks(dialect, channels, products, 1),
                       repeat("c", quads, load("input", 4, c=4, **place),
                              load("weights", 4, c=4, **weight)),
                       repeat("c", rest, load("input", 1, 4 * quads, c=1, **place),
                              load("weights", 1, 4 * quads, c=1, **weight)),
                       closing("add to buffer", join(bookkeeping(dialect, 4, 2, 8), add, end)),
                       load("scratch", 4, filter=4), store("scratch", 4, filter=4))))),
               repeat("row", shape.output_rows,
                      repeat("column", shape.output_columns, repeat(
                          "filter", filters,
                          closing("output", join(read, bookkeeping(dialect, 2, 1, 3),
                                                 requantise(dialect, 1), end)),
                          load("scratch", 4, filter=4), load("parameters", 4, filter=4),
                          load("parameters", 4, 4 * filters, filter=4),
                          store("output", 1, filter=1, **output_steps(shape)))),
                      repeat("position", columns, *initial))),
        macs=products * channels, assumed=True),)


KERNELS: Kernels = {
    "transpose_conv_2d": {"c": Lowering(lower=_lower, scratch_bytes=_scratch_bytes)},
}
