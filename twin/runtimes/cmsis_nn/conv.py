"""Convolution: pixels gathered into two int16 columns and multiplied, 1x1 multiplied directly.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_convolve_wrapper_s8.c (choice of
function), arm_convolve_s8.c, arm_nn_mat_mult_kernel_s8_s16.c, arm_convolve_1x1_s8_fast.c,
arm_convolve_1x1_s8.c; arm_s8_to_s16_unordered_with_offset (even and odd bytes apart, so packed
multiplies need no reordering).
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.convolution_sequences import (
    CODES,
    MULTIPLY_4_1X1,
    MULTIPLY_4_1X2,
    MULTIPLY_4_2X2,
    WIDEN_4,
)
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    MVE,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
    requantise,
)
from twin.runtimes.cmsis_nn.geometry import Geometry, read_geometry
from twin.runtimes.cmsis_nn.libc import copy_blocks, copy_moves, fill_blocks
from twin.runtimes.cmsis_nn.matmul import Product, product_blocks, product_drafts
from twin.runtimes.cmsis_nn.nests import Bound, bound, load, repeat, resolve, store
from twin.runtimes.lowering import Site

_IM2COL = "data_copy"

_PIXEL = {"dsp": (17, 7, 29), "thumb2": (13, 4, 20), "thumb1": (13, 4, 20), "rv32": (13, 4, 20)}
_ROWS = {"dsp": (13, 6, 19), "thumb2": (5, 4, 14), "thumb1": (11, 5, 14), "rv32": (11, 5, 14)}
_POSITION = {"dsp": (3, 0, 14, 2), "thumb2": (3, 0, 14, 2), "thumb1": (3, 0, 10, 7),
             "rv32": (3, 0, 14, 2)}
"""Stack loads, stack stores, arithmetic and jumps per gathered pixel, per two weight rows and per
window position."""


def lower_conv(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a convolution to the function the library's wrapper chooses.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `conv_2d`.
    site : Site
        Instruction set and operands: input, weights, bias, parameters, output, scratch.
    """
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.conv_mve import lower_conv as lower_conv_mve
        return lower_conv_mve(graph, layer, site)
    shape = read_geometry(graph, layer)
    if shape.is_pointwise and layer.groups == 1:
        return (_lower_pointwise(shape, site),)
    return (_lower_general(shape, layer.groups, site),)


def scratch_bytes_conv(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory of a convolution: two int16 columns, rounded up to four elements."""
    if isa == MVE:
        from twin.runtimes.cmsis_nn.conv_mve import scratch_bytes_conv as scratch_bytes_mve
        return scratch_bytes_mve(graph, layer, isa)
    shape = read_geometry(graph, layer)
    if shape.is_pointwise and layer.groups == 1:
        return 0
    return 4 * _align4(_columns(shape, layer.groups))


def _align4(count: int) -> int:
    return (count + 3) // 4 * 4


def _columns(shape: Geometry, groups: int) -> int:
    return shape.kernel_rows * shape.kernel_columns * shape.input_channels // groups


def _lower_pointwise(shape: Geometry, site: Site) -> Kernel:
    """1x1 without padding: one product, or one per output row where the stride is not one."""
    dialect = choose_dialect(site.isa)
    channels, rows = shape.input_channels, shape.output_channels
    stride_rows, stride_columns = shape.window.stride
    fast = stride_rows == stride_columns == 1
    if fast:
        calls = 1
        product = Product(shape.batches * shape.pixels, rows, channels, shape.has_bias)
        drafts = product_drafts(dialect, product, channels)
    else:
        calls = shape.batches * shape.output_rows
        product = Product(shape.output_columns, rows, channels, shape.has_bias)
        row_in = stride_rows * shape.input_columns * channels
        batch_in = shape.input_rows * shape.input_columns * channels
        drafts = (repeat("batch", shape.batches, repeat(
            "line", shape.output_rows,
            *product_drafts(dialect, product, stride_columns * channels,
                            line=(row_in, shape.output_columns * rows),
                            batch=(batch_in, shape.pixels * rows)))),)
    blocks = (entry(dialect, 70, calls), *product_blocks(dialect, product, calls))
    return build_kernel(
        "arm_convolve_1x1_s8_fast" if fast else "arm_convolve_1x1_s8", "pointwise", site,
        blocks, resolve(*drafts), macs=shape.batches * shape.pixels * rows * channels)


def _lower_general(shape: Geometry, groups: int, site: Site) -> Kernel:
    dialect = choose_dialect(site.isa)
    runs = shape.batches * groups
    columns, filters = _columns(shape, groups), shape.output_channels // groups
    pairs, single = runs * (shape.pixels // 2), runs * (shape.pixels % 2)
    blocks = (
        entry(dialect, 120, 1),
        *_gather_blocks(dialect, shape, groups, runs),
        entry(dialect, 95, pairs, "call matrix product"),
        *_pair_blocks(dialect, columns, filters, shape.has_bias, pairs),
        *_single_blocks(dialect, columns, filters, shape.has_bias, single))
    one_row = shape.input_rows == 1 and shape.kernel_rows == 1
    name = "arm_convolve_s8"
    if one_row and shape.output_columns % 4 == 0 and shape.window.dilation[1] == 1:
        name = "arm_convolve_1_x_n_s8"
    return build_kernel(
        name, "conv", site, blocks, resolve(*_general_drafts(dialect, shape, groups)),
        macs=runs * shape.taps_inside * (shape.input_channels // groups) * filters)


def _gather_blocks(dialect: str, shape: Geometry, groups: int, runs: int) -> tuple[Block, ...]:
    """Collecting the window of every output pixel into a column, then widening it."""
    channels = shape.input_channels // groups
    columns = _columns(shape, groups)
    pixels, inside = runs * shape.pixels, runs * shape.taps_inside
    outside = runs * shape.taps - inside
    quads, rest = divmod(columns, 4) if dialect == "dsp" else (0, columns)
    lines = pixels * shape.kernel_rows
    return (
        block("gather pixel", join(bookkeeping(dialect, *_PIXEL[dialect]), BRANCH[dialect]),
              pixels, runs, _IM2COL),
        block("gather line", join(bookkeeping(dialect, 8, 2, 9), BRANCH[dialect]), lines, pixels,
              _IM2COL),
        block("gather position", join(bookkeeping(dialect, *_POSITION[dialect]), BRANCH[dialect]),
              inside, lines, _IM2COL),
        block("pad position", join(bookkeeping(dialect, 2, 0, 11, 1), BRANCH[dialect]), outside,
              cause=_IM2COL),
        *copy_blocks(dialect, channels, inside),
        *fill_blocks(dialect, channels, outside),
        block("widen four", WIDEN_4, pixels * quads, pixels, _IM2COL),
        block("widen", CODES[dialect].widen, pixels * rest, pixels, _IM2COL))


def _pair_blocks(dialect: str, columns: int, filters: int, has_bias: bool,
                 pairs: int) -> tuple[Block, ...]:
    """Two columns by all weight rows, two rows at a time and a last one alone."""
    codes = CODES[dialect]
    quads, rest = divmod(columns, 4) if dialect == "dsp" else (0, columns)
    twice, odd = pairs * (filters // 2), pairs * (filters % 2)
    jumps = 2 if dialect == "dsp" and not rest else 0  # round the leftover columns' loop
    return (
        block("4 columns 2x2", MULTIPLY_4_2X2, twice * quads, twice),
        block("column 2x2", codes.multiply_2x2, twice * rest, twice),
        block("two rows", join(
            _bias(dialect, 2, has_bias), bookkeeping(dialect, *_ROWS[dialect], jumps),
            requantise(dialect, 4), BRANCH[dialect]), twice, pairs),
        block("4 columns 1x2", MULTIPLY_4_1X2, odd * quads, odd),
        block("column 1x2", codes.multiply_1x2, odd * rest, odd),
        block("last row", join(_bias(dialect, 1, has_bias), bookkeeping(dialect, 8, 3, 9),
                               requantise(dialect, 2)), odd))


def _single_blocks(dialect: str, columns: int, filters: int, has_bias: bool,
                   pixels: int) -> tuple[Block, ...]:
    """The odd pixel left over: one column by one weight row at a time."""
    quads, rest = divmod(columns, 4) if dialect == "dsp" else (0, columns)
    rows = pixels * filters
    return (
        block("4 columns 1x1", MULTIPLY_4_1X1, rows * quads, rows),
        block("column 1x1", CODES[dialect].multiply_1x1, rows * rest, rows),
        block("row of odd pixel", join(_bias(dialect, 1, has_bias), bookkeeping(dialect, 5, 1, 8),
                                       requantise(dialect, 1), BRANCH[dialect]), rows, pixels))


def _bias(dialect: str, rows: int, has_bias: bool) -> str:
    if not has_bias:
        return ""
    one = "lw a2, 0(a4)" if dialect == "rv32" else "ldr r3, [r2]"
    return join(*[one] * rows)


def _general_drafts(dialect: str, shape: Geometry, groups: int) -> tuple[Any, ...]:
    """Accesses in program order; with odd rows a pair of pixels spans two of them."""
    half, odd = divmod(shape.output_columns, 2)
    columns = shape.output_columns

    def pixel(place: int, row: int, column: int, **steps: tuple[int, int]) -> tuple[Any, ...]:
        return _gather(dialect, shape, groups, place, row, column, steps)

    def product(pixels: int, row: int, column: int, **steps: tuple[int, int]) -> tuple[Any, ...]:
        return _multiply(dialect, shape, groups, pixels, row, column, steps)

    def pairs(row: int, column: int, **steps: tuple[int, int]) -> Any:
        inner = {**steps, "pair": (0, 2)}
        return repeat("pair", half, *pixel(0, row, column, **inner),
                      *pixel(1, row, column + 1, **inner), *product(2, row, column, **inner))

    if not odd:
        lines: tuple[Any, ...] = (repeat("line", shape.output_rows, pairs(0, 0, line=(1, 0))),)
    else:
        two = {"line": (2, 0)}
        last = shape.output_rows - 1
        lines = (
            repeat("line", shape.output_rows // 2, pairs(0, 0, **two),
                   *pixel(0, 0, columns - 1, **two), *pixel(1, 1, 0, **two),
                   *product(2, 0, columns - 1, **two), pairs(1, 1, **two)),
            *((pairs(last, 0), *pixel(0, last, columns - 1), *product(1, last, columns - 1))
              if shape.output_rows % 2 else ()))
    return (repeat("batch", shape.batches, repeat("group", groups, *lines)),)


def _gather(dialect: str, shape: Geometry, groups: int, place: int, row: int, column: int,
            steps: dict[str, tuple[int, int]]) -> tuple[Any, ...]:
    """Accesses that fill column `place` for the output pixel at (row, column) + steps."""
    window = shape.window
    channels, total = shape.input_channels // groups, shape.input_channels
    line_bytes = shape.input_columns * total
    start_row = row * window.stride[0] - window.padding[0]
    start_column = column * window.stride[1] - window.padding[2]
    rows = {name: step[0] * window.stride[0] for name, step in steps.items()}
    cols = {name: step[1] * window.stride[1] for name, step in steps.items()}
    bounds: list[Bound] = []
    if sum(shape.row_taps) < shape.output_rows * shape.kernel_rows:
        bounds.append(bound(start_row, shape.input_rows, ky=window.dilation[0], **rows))
    if sum(shape.column_taps) < shape.output_columns * shape.kernel_columns:
        bounds.append(bound(start_column, shape.input_columns, kx=window.dilation[1], **cols))
    length = _columns(shape, groups)
    staged = 2 * _align4(length) + place * length
    moves = {name: rows[name] * line_bytes + cols[name] * total for name in steps}
    source = load("input", 1, start_row * line_bytes + start_column * total,
                  ky=window.dilation[0] * line_bytes, kx=window.dilation[1] * total,
                  group=channels, batch=shape.input_rows * line_bytes, **moves)
    source = source._replace(bounds=tuple(bounds))
    target = store("scratch", 1, staged, ky=shape.kernel_columns * channels, kx=channels)
    wide = 2 * _align4(length) * place
    quads, rest = divmod(length, 4) if dialect == "dsp" else (0, length)
    return (
        repeat("ky", shape.kernel_rows, repeat("kx", shape.kernel_columns,
                                               *copy_moves(dialect, channels, source, target))),
        repeat("quad", quads, load("scratch", 4, staged, quad=4),
               store("scratch", 4, wide, quad=8), store("scratch", 4, wide + 4, quad=8)),
        repeat("rest", rest, load("scratch", 1, staged + 4 * quads, rest=1),
               store("scratch", 2, wide + 8 * quads, rest=2)))


def _multiply(dialect: str, shape: Geometry, groups: int, pixels: int, row: int, column: int,
              steps: dict[str, tuple[int, int]]) -> tuple[Any, ...]:
    """Accesses of the product of one or two columns with all weight rows."""
    length, total = _columns(shape, groups), shape.output_channels
    filters = total // groups
    first = (row * shape.output_columns + column) * total
    moves = {name: (step[0] * shape.output_columns + step[1]) * total
             for name, step in steps.items()}
    moves |= {"group": filters, "batch": shape.pixels * total}
    quads, rest = divmod(length, 4) if dialect == "dsp" else (0, length)
    second = 2 * _align4(length)

    def rows(count: int, base: int) -> tuple[Any, ...]:
        steps_in = {"filter": count * length, "group": filters * length}
        weights = [load("weights", 4, (base + k) * length, quad=4, **steps_in)
                   for k in range(count)]
        singles = [load("weights", 1, (base + k) * length + 4 * quads, rest=1, **steps_in)
                   for k in range(count)]
        values = [[load("scratch", 4, p * second + part, quad=8) for p in range(pixels)]
                  for part in (0, 4)]
        leftovers = [load("scratch", 2, p * second + 8 * quads, rest=2) for p in range(pixels)]
        spread = {"filter": 4 * count, "group": 4 * filters}
        outputs = [
            part
            for k in range(count) for p in range(pixels)
            for part in (
                load("parameters", 4, 4 * (base + k), **spread),
                load("parameters", 4, 4 * (total + base + k), **spread),
                store("output", 1, first + p * total + base + k, filter=count, **moves))]
        biases = [load("bias", 4, 4 * (base + k), **spread) for k in range(count)]
        return (*(biases if shape.has_bias else ()),
                repeat("quad", quads, *weights, *values[0], *values[1]),
                repeat("rest", rest, *singles, *leftovers), *outputs)

    if pixels == 1:
        return (repeat("filter", filters, *rows(1, 0)),)
    return (repeat("filter", filters // 2, *rows(2, 0)),
            *(rows(1, filters - 1) if filters % 2 else ()))
