"""The general convolution: windows gathered into columns and multiplied with all weight rows.

C and DSP gather two windows and widen them to int16; with DSP even and odd bytes stay apart
(arm_s8_to_s16_unordered_with_offset), so packed multiplies need no reordering. Helium gathers
four windows of int8.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_convolve_s8.c,
arm_nn_mat_mult_kernel_s8_s16.c, arm_convolve_get_buffer_sizes_s8.c.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hwmodels.kernel import Blocks, Kernel, Nests
from twin.runtimes.cmsis_nn.convolution.product_mve import (
    ProductMve,
    product_blocks_mve,
    quad_drafts,
    single_drafts,
)
from twin.runtimes.cmsis_nn.sequences import (
    CODE,
    bias_load,
    bookkeeping,
    entry,
    in_fours,
    requantise,
)
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import BRANCH, block, build_kernel, join
from twin.runtimes.lowering.geometry import Geometry
from twin.runtimes.lowering.libc import copy_blocks, copy_moves, fill_blocks
from twin.runtimes.lowering.nests import Bound, bound, load, repeat, resolve, store

_CODE = CODE["convolution.windows"]


if TYPE_CHECKING:
    from twin.runtimes.cmsis_nn.columns import Columns


_IM2COL = "data_copy"

_PIXEL = {"dsp": (17, 7, 29), "thumb2": (13, 4, 20), "thumb1": (13, 4, 20), "rv32": (13, 4, 20)}
_ROWS = {"dsp": (13, 6, 19), "thumb2": (5, 4, 14), "thumb1": (11, 5, 14), "rv32": (11, 5, 14)}
_POSITION = {"dsp": (3, 0, 14, 2), "thumb2": (3, 0, 14, 2), "thumb1": (3, 0, 10, 7),
             "rv32": (3, 0, 14, 2)}
"""Stack loads, stack stores, arithmetic and jumps per gathered pixel, per two weight rows and per
window position."""


def scratch_bytes(shape: Geometry, groups: int) -> int:
    """Bytes of two int16 columns, each rounded up to four elements."""
    return 4 * _align4(_columns(shape, groups))


def scratch_bytes_mve(shape: Geometry, groups: int) -> int:
    """Bytes of four int8 columns, each rounded up to eight."""
    return 4 * 8 * -(-_columns(shape, groups) // 8)


def _align4(count: int) -> int:
    return (count + 3) // 4 * 4


def _columns(shape: Geometry, groups: int) -> int:
    return shape.window_taps * shape.input_channels // groups


_INNER = ((_CODE.multiply_4_2x2, _CODE.multiply_4_1x2, _CODE.multiply_4_1x1),
          (_CODE.widened_4_2x2, _CODE.widened_4_1x2, _CODE.widened_4_1x1))
"""Loops over four columns, weight rows by pixels: with weights that are unpacked, or widened."""


def lower_windows(shape: Geometry, groups: int, site: Site, tile_bytes: int = 0,
                  shared_filters: int = 1) -> Kernel:
    """Lower a convolution that widens two windows to int16 and multiplies them with all rows.

    Parameters
    ----------
    site
        Instruction set and operands.
    tile_bytes
        With DSP, weights are widened into a tile of so many bytes; windows are gathered for as many
        filters as it holds, at least `shared_filters`, but for each filter alone where it holds
        none; 0: weights are widened as they are multiplied. Accesses are those without tiles: what
        is gathered again, and the tile, lie near.
    """
    dialect = site.dialect
    runs = shape.batches * groups
    columns, filters = _columns(shape, groups), shape.output_channels // groups
    pairs, single = runs * (shape.pixels // 2), runs * (shape.pixels % 2)
    tiled = bool(tile_bytes) and dialect == "dsp"
    held = tile_bytes // (2 * columns)
    fit = min(filters, max(held, shared_filters) if held else 1) if tiled else filters
    tiles = [(count, size) for count, size in ((filters // fit, fit), (1, filters % fit)) if size]
    gathers = sum(count for count, _ in tiles)
    quads, rest = in_fours(dialect, columns)
    blocks = (
        entry(dialect, 120, 1),
        *((block("widen four weights", _CODE.widen_4, runs * filters * quads, runs * filters,
                 _IM2COL),
           block("widen weights", _CODE.codes[dialect]["widen"], runs * filters * rest,
                 runs * filters, _IM2COL)) if tiled else ()),
        *_gather_blocks(dialect, shape, groups, runs * gathers),
        entry(dialect, 95, pairs * gathers, "call matrix product"),
        *(one for count, size in tiles for one in _product_blocks(
            dialect, columns, size, shape.has_bias, pairs * count, single * count, tiled)))
    one_row = shape.input_rows == 1 and shape.kernel_rows == 1
    name = "arm_convolve_s8"
    if one_row and shape.output_columns % 4 == 0 and shape.window.dilation[1] == 1:
        name = "arm_convolve_1_x_n_s8"
    return build_kernel(
        name, "conv", site, blocks, resolve(*_general_drafts(dialect, shape, groups)),
        macs=runs * shape.taps_inside * (shape.input_channels // groups) * filters)


def _general_drafts(dialect: str, shape: Geometry, groups: int) -> tuple[Any, ...]:
    """Return accesses in program order; with odd rows a pair of pixels spans two of them."""
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


def _gather_blocks(dialect: str, shape: Geometry, groups: int, runs: int) -> Blocks:
    """Collect the window of every output pixel into a column, then widen it."""
    channels = shape.input_channels // groups
    columns = _columns(shape, groups)
    pixels, inside = runs * shape.pixels, runs * shape.taps_inside
    outside = runs * shape.taps - inside
    quads, rest = in_fours(dialect, columns)
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
        block("widen four", _CODE.widen_4, pixels * quads, pixels, _IM2COL),
        block("widen", _CODE.codes[dialect]["widen"], pixels * rest, pixels, _IM2COL))


def _gather(dialect: str, shape: Geometry, groups: int, place: int, row: int, column: int,
            steps: dict[str, tuple[int, int]]) -> tuple[Any, ...]:
    """Return accesses that fill column `place` for the output pixel at (row, column) + steps."""
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
    quads, rest = in_fours(dialect, length)
    return (
        repeat("ky", shape.kernel_rows, repeat("kx", shape.kernel_columns,
                                               *copy_moves(dialect, channels, source, target))),
        repeat("quad", quads, load("scratch", 4, staged, quad=4),
               store("scratch", 4, wide, quad=8), store("scratch", 4, wide + 4, quad=8)),
        repeat("rest", rest, load("scratch", 1, staged + 4 * quads, rest=1),
               store("scratch", 2, wide + 8 * quads, rest=2)))


def _product_blocks(dialect: str, columns: int, filters: int, has_bias: bool, pairs: int,
                    singles: int, widened: bool) -> Blocks:
    """Two columns by two weight rows and a last one; for an odd pixel one column by one row."""
    codes, inner = _CODE.codes[dialect], _INNER[widened]
    quads, rest = in_fours(dialect, columns)
    bias = bias_load(dialect) if has_bias else ""
    twice, odd, rows = pairs * (filters // 2), pairs * (filters % 2), singles * filters
    jumps = 2 if dialect == "dsp" and not rest else 0  # round the leftover columns' loop
    return (
        block("4 columns 2x2", inner[0], twice * quads, twice),
        block("column 2x2", codes["multiply_2x2"], twice * rest, twice),
        block("two rows", join(
            *[bias] * 2, bookkeeping(dialect, *_ROWS[dialect], jumps), requantise(dialect, 4),
            BRANCH[dialect]), twice, pairs),
        block("4 columns 1x2", inner[1], odd * quads, odd),
        block("column 1x2", codes["multiply_1x2"], odd * rest, odd),
        block("last row", join(bias, bookkeeping(dialect, 8, 3, 9), requantise(dialect, 2)), odd),
        block("4 columns 1x1", inner[2], rows * quads, rows),
        block("column 1x1", codes["multiply_1x1"], rows * rest, rows),
        block("row of odd pixel", join(bias, bookkeeping(dialect, 5, 1, 8), requantise(dialect, 1),
                                       BRANCH[dialect]), rows, singles))


def _multiply(dialect: str, shape: Geometry, groups: int, pixels: int, row: int, column: int,
              steps: dict[str, tuple[int, int]]) -> tuple[Any, ...]:
    """Return accesses of the product of one or two columns with all weight rows."""
    length, total = _columns(shape, groups), shape.output_channels
    filters = total // groups
    first = (row * shape.output_columns + column) * total
    moves = {name: (step[0] * shape.output_columns + step[1]) * total
             for name, step in steps.items()}
    moves |= {"group": filters, "batch": shape.pixels * total}
    quads, rest = in_fours(dialect, length)
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


def lower_windows_mve(shape: Geometry, groups: int, site: Site) -> Kernel:
    """Lower a convolution that gathers four windows and multiplies them with all channels."""
    blocks, nests = _plan_mve(shape, groups)
    depth = shape.input_channels // groups
    return build_kernel("arm_convolve_s8", "conv", site, blocks, nests, shape.products * depth)


@lru_cache(maxsize=256)
def _plan_mve(shape: Geometry, groups: int) -> tuple[Blocks, Nests]:
    """Return blocks and accesses; they depend on the shape alone, and networks repeat shapes."""
    # Gathering columns is Helium's: no other core loads it.
    from twin.runtimes.cmsis_nn.columns import Columns, gather_blocks

    channels = shape.input_channels // groups
    depth = shape.window_taps * channels
    repeats = shape.batches * groups
    quads, left = divmod(shape.pixels, 4)
    calls = quads + (left > 0)
    product = ProductMve(
        depth=depth, channels=shape.output_channels // groups, calls=calls * repeats,
        quads=quads * repeats, singles=left * repeats, has_bias=shape.has_bias)
    columns = Columns(shape=shape, copied_bytes=channels, column_step_bytes=channels,
                      input_step_bytes=channels)
    blocks = (block("call", _CODE.entry_mve, 1, cause="kernel_call"),
              *gather_blocks(CODE["columns"].conv_gather, columns, repeats, calls * repeats),
              *product_blocks_mve(product))
    return blocks, resolve(_drafts_mve(shape, groups, columns, product))


def _drafts_mve(shape: Geometry, groups: int, columns: Columns, product: ProductMve) -> Any:
    from twin.runtimes.cmsis_nn.columns import gather_drafts

    depth = product.depth
    outer = {"slice": product.channels, "batch": shape.pixels * shape.output_channels}

    def multiply(position: int, steps: dict[str, int]) -> list[Any]:
        positions = {name: step * shape.output_channels for name, step in steps.items()}
        return [quad_drafts(product, "scratch", depth, 0, position * shape.output_channels,
                            shape.output_channels, source_steps={},
                            output_steps={**positions, **outer})]

    left = shape.pixels % 4
    rest = [single_drafts(product, "scratch", slot * depth,
                          (shape.pixels - left + slot) * shape.output_channels, source_steps={},
                          output_steps=outer) for slot in range(left)]
    return repeat("batch", shape.batches, repeat(
        "slice", groups, *gather_drafts(columns, multiply),
        *[move for moves in rest for move in moves]))
