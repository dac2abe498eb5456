"""Depthwise convolution: 3x3 on four channels at once, int16 columns, or the generic loops.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_depthwise_conv_wrapper_s8.c (choice of
function), arm_depthwise_conv_3x3_s8.c, arm_depthwise_conv_s8_opt.c, arm_depthwise_conv_s8.c.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.depthwise_column import column_scratch_bytes, lower_column
from twin.runtimes.cmsis_nn.depthwise_generic import lower_generic
from twin.runtimes.cmsis_nn.depthwise_sequences import CLAMP_4_PACKED, TAP_3X3, TAP_SINGLE
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    CLAMP,
    MVE,
    PARAMETERS,
    SCALE,
    STORE,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
    requantise,
)
from twin.runtimes.cmsis_nn.geometry import Geometry, read_geometry
from twin.runtimes.cmsis_nn.nests import Move, bound, load, repeat, resolve, store
from twin.runtimes.lowering import Site


def lower_depthwise(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a depthwise convolution to the function the library's wrapper chooses.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `depthwise_conv_2d`.
    site : Site
        Instruction set and operands: input, weights, bias, parameters, output, scratch.
    """
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.depthwise_mve import lower_depthwise as lower_depthwise_mve
        return lower_depthwise_mve(graph, layer, site)
    shape = read_geometry(graph, layer)
    function = _choose(shape, choose_dialect(site.isa))
    return ({"3x3": _lower_3x3, "column": lower_column, "generic": lower_generic}[function](
        shape, site),)


def scratch_bytes_depthwise(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory: one int16 column for windows other than 3x3 on cores with DSP."""
    if isa == MVE:
        from twin.runtimes.cmsis_nn.depthwise_mve import scratch_bytes_depthwise as scratch_mve
        return scratch_mve(graph, layer, isa)
    shape = read_geometry(graph, layer)
    column = _choose(shape, choose_dialect(isa)) == "column"
    return column_scratch_bytes(shape) if column else 0


def _choose(shape: Geometry, dialect: str) -> str:
    """The wrapper's choice: multiplier one, batch one and no dilation go to a fast function."""
    window = shape.window
    if (shape.output_channels != shape.input_channels or shape.batches != 1
            or window.dilation != (1, 1)):
        return "generic"
    if window.kernel == (3, 3) and window.padding[0] <= 1 and window.padding[2] <= 1:
        return "3x3"
    return "column" if dialect == "dsp" else "generic"


def _column_counts(shape: Geometry) -> tuple[int, int]:
    """Output columns whose left and whose right window column lies inside the input."""
    stride, before = shape.window.stride[1], shape.window.padding[2]
    firsts = [place * stride - before for place in range(shape.output_columns)]
    return (sum(1 for first in firsts if first >= 0),
            sum(1 for first in firsts if shape.input_columns - first >= 3))


def _lower_3x3(shape: Geometry, site: Site) -> Kernel:
    dialect = choose_dialect(site.isa)
    blocks = (entry(dialect, 60, 1), *_blocks_3x3(dialect, shape))
    return build_kernel("arm_depthwise_conv_3x3_s8", "depthwise", site, blocks,
                        resolve(*_drafts_3x3(dialect, shape)),
                        macs=shape.taps_inside * shape.input_channels)


def _blocks_3x3(dialect: str, shape: Geometry) -> tuple[Block, ...]:
    pixels, rows = shape.pixels, sum(shape.row_taps)
    left, right = _column_counts(shape)
    quads, singles = divmod(shape.input_channels, 4)
    end = BRANCH[dialect]
    jumps = 1 if dialect in ("dsp", "thumb1") else 0  # edge columns are laid out of line
    tap, single = TAP_3X3[dialect], TAP_SINGLE[dialect]
    lines, single_lines = (rows * shape.output_columns * count for count in (quads, singles))
    bias = {"rv32": "lw s0, 0(s4); lw t2, 4(s4); lw t0, 8(s4); lw t6, 12(s4)",
            "thumb1": "ldr r4, [r2]; ldr r0, [r2, #4]; ldr r3, [r2, #8]; ldr r5, [r2, #12]"}.get(
                dialect, "ldrd r4, r0, [r2]; ldrd r3, r5, [r2, #8]")
    one_bias = "lw s0, 0(s4)" if dialect == "rv32" else "ldr r3, [r1]"
    return (
        block("pixel", join(bookkeeping(dialect, 18, 8, 19), end), pixels, 1),
        block("four channels", join(
            bias if shape.has_bias else "", bookkeeping(dialect, *_QUAD[dialect]),
            _finish_quad(dialect), end), pixels * quads, pixels),
        block("window row", join(bookkeeping(dialect, 5, 0, 7 - jumps), tap, end), lines,
              pixels * quads),
        block("left window column", join(tap, bookkeeping(dialect, 0, 0, 0, jumps)),
              rows * quads * left),
        block("right window column", join(bookkeeping(dialect, 1, 0, 1 - jumps, jumps), tap),
              rows * quads * right),
        block("one channel", join(
            one_bias if shape.has_bias else "", bookkeeping(dialect, 8, 3, 10),
            requantise(dialect, 1), end), pixels * singles, pixels),
        block("window row, one channel", join(bookkeeping(dialect, 3, 0, 8), single, end),
              single_lines, pixels * singles),
        block("left column, one channel", single, rows * singles * left),
        block("right column, one channel", single, rows * singles * right))


_QUAD = {"dsp": (8, 2, 13), "thumb2": (10, 5, 12), "thumb1": (12, 5, 20, 8), "rv32": (5, 5, 10)}
"""Stack loads, stack stores, arithmetic and jumps per four channels."""


def _finish_quad(dialect: str) -> str:
    scale = join(PARAMETERS[dialect], SCALE[dialect])
    if dialect in ("dsp", "thumb2"):
        return join(*[scale] * 4, CLAMP_4_PACKED)
    return join(*[scale] * 4, *[join(CLAMP[dialect], STORE[dialect])] * 4)


def _drafts_3x3(dialect: str, shape: Geometry) -> tuple[Any, ...]:
    """Accesses in program order: per pixel and four channels, bias, taps, parameters, store."""
    channels = shape.input_channels
    quads, singles = divmod(channels, 4)
    packed = dialect in ("dsp", "thumb2")
    word = (4, 1) if packed else (1, 4)
    pixel = {"line": shape.output_columns * channels, "pixel": channels}
    wide_bias = ((8, 2) if packed else (4, 4)) if shape.has_bias else (4, 0)

    def finish(start: int, count: int, stores: tuple[int, int], name: str) -> list[Move]:
        moves = [load("parameters", 4, 4 * (part * channels + start + k), **{name: 4 * count})
                 for k in range(count) for part in (1, 0)]
        width, times = stores
        return moves + [store("output", width, start + width * k, **{name: count}, **pixel)
                        for k in range(times)]

    done = 4 * quads
    return (repeat("line", shape.output_rows, repeat(
        "pixel", shape.output_columns,
        repeat("quad", quads,
               *[load("bias", wide_bias[0], wide_bias[0] * k, quad=16)
                 for k in range(wide_bias[1])],
               *_taps_3x3(shape, *word, 0, "quad", 4), *finish(0, 4, word, "quad")),
        repeat("single", singles,
               *([load("bias", 4, 4 * done, single=4)] if shape.has_bias else []),
               *_taps_3x3(shape, 1, 1, done, "single", 1),
               *finish(done, 1, (1, 1), "single")))),)


def _taps_3x3(shape: Geometry, width: int, times: int, start: int, name: str,
              step: int) -> tuple[Any, ...]:
    """Loads of the three window rows; edge columns are skipped, rows outside are not visited."""
    channels, window = shape.input_channels, shape.window
    line_bytes = shape.input_columns * channels
    top, first = -window.padding[0], -window.padding[2]
    stride_rows, stride_columns = window.stride
    row = bound(top, shape.input_rows, line=stride_rows, ky=1)
    left = bound(first, 1 << 30, pixel=stride_columns)
    right = bound(shape.input_columns - 3 - first, 1 << 30, pixel=-stride_columns)
    all_rows = sum(shape.row_taps) == 3 * shape.output_rows
    counts = _column_counts(shape)
    edges = [() if count == shape.output_columns else (edge,)
             for count, edge in zip((counts[0], 0, counts[1]), (left, None, right), strict=True)]
    edges[1] = ()
    moves: list[Move] = []
    for column in range(3):
        bounds = (*(() if all_rows else (row,)), *edges[column])
        place = load("input", width, top * line_bytes + (first + column) * channels + start,
                     line=stride_rows * line_bytes, pixel=stride_columns * channels,
                     ky=line_bytes, **{name: step})
        weight = load("weights", width, column * channels + start, ky=3 * channels,
                      **{name: step})
        for side in (place, weight):
            moves += [side._replace(offset_bytes=side.offset_bytes + width * k, bounds=bounds)
                      for k in range(times)]
    return (repeat("ky", 3, *moves),)
