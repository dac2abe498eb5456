"""Windows gathered into columns, four output positions at a time (Helium convolutions).

Output positions are numbered row by row and taken in groups of four, which run over row ends.
Where a row is not a multiple of four the grouping repeats after a few rows; those rows are written
out, so the accesses stay in program order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from hwmodels.frozen import frozen
from hwmodels.kernel import Blocks
from twin.runtimes.cmsis_nn.sequences import CODE, copy_loop, row_load, row_moves, row_store
from twin.runtimes.lowering.blocks import block, straight
from twin.runtimes.lowering.geometry import Geometry
from twin.runtimes.lowering.nests import bound, guarded, repeat

_CODE = CODE["columns"]


@frozen
class Columns:
    """Columns a kernel gathers.

    Parameters
    ----------
    copied_bytes
        Input channels copied per window position.
    column_step_bytes
        Between window positions in the column.
    input_offset_bytes, input_step_bytes
        First channel, and step of an enclosing loop "slice" over channels.
    """

    shape: Geometry
    copied_bytes: int
    column_step_bytes: int
    input_offset_bytes: int = 0
    input_step_bytes: int = 0


def gather_drafts(columns: Columns, multiply: Callable[[int, dict[str, int]], list[Any]]
                  ) -> list[Any]:
    """Return gathering and, after every fourth position, multiplying.

    Parameters
    ----------
    multiply
        (position, steps in positions by loop name) -> drafts for four positions from there.
    """
    shape = columns.shape
    period = 4 // math.gcd(4, shape.output_columns)
    blocks, rest = divmod(shape.output_rows, period)
    return [
        repeat("block", blocks, *_rows(columns, multiply, 0, period)),
        *_rows(columns, multiply, blocks * period, rest),
    ]


def _rows(columns: Columns, multiply: Callable[[int, dict[str, int]], list[Any]],
          first_row: int, rows: int) -> list[Any]:
    width = columns.shape.output_columns
    period = 4 // math.gcd(4, width)
    drafts: list[Any] = []
    held = 0
    for row in range(first_row, first_row + rows):
        head = min((4 - held) % 4, width)
        if head:
            drafts += _positions(columns, period, row, 0, held, head)
            held = (held + head) % 4
            if not held:
                drafts += multiply(row * width + head - 4, {"block": period * width})
        quads, left = divmod(width - head, 4)
        drafts.append(repeat(
            "quad", quads, *_positions(columns, period, row, head, 0, 4),
            *multiply(row * width + head, {"block": period * width, "quad": 4})))
        if left:
            drafts += _positions(columns, period, row, head + 4 * quads, 0, left)
            held = left
    return drafts


def _positions(columns: Columns, period: int, row: int, column: int, slot: int, count: int
               ) -> list[Any]:
    """Gather the windows of `count` neighbouring output positions into neighbouring columns."""
    shape = columns.shape
    window = shape.window
    size = shape.window_taps * columns.column_step_bytes
    y_first = row * window.stride[0] - window.padding[0]
    x_first = column * window.stride[1] - window.padding[2]
    down = {"block": period * window.stride[0], "ky": window.dilation[0]}
    along = {"quad": 4 * window.stride[1], "slot": window.stride[1], "kx": window.dilation[1]}
    channels = shape.input_channels
    steps = {name: step * channels * shape.input_columns for name, step in down.items()}
    steps |= {name: step * channels for name, step in along.items()}
    source = guarded(
        row_load("input", columns.input_offset_bytes
                 + (y_first * shape.input_columns + x_first) * channels,
                 slice=columns.input_step_bytes,
                 batch=shape.input_rows * shape.input_columns * channels, **steps),
        bound(y_first, shape.input_rows, **down), bound(x_first, shape.input_columns, **along))
    target = row_store("scratch", slot * size, slot=size,
                       ky=shape.kernel_columns * columns.column_step_bytes,
                       kx=columns.column_step_bytes)
    return [repeat("slot", count, repeat("ky", shape.kernel_rows, repeat(
        "kx", shape.kernel_columns, *row_moves(columns.copied_bytes, source, target))))]


def gather_blocks(code: Mapping[str, str], columns: Columns, repeats: int, calls: int
                  ) -> Blocks:
    """Return the blocks that gather every output position `repeats` times.

    Parameters
    ----------
    code
        Of the function, per window position, window row, output position and row.
    repeats
        Passes over all positions (batches times channel slices).
    """
    shape = columns.shape
    taps = shape.taps * repeats
    inside = shape.taps_inside * repeats
    rows_inside = shape.window_rows * shape.kernel_columns * repeats
    left = _taps_not_left(shape) * sum(shape.row_taps) * repeats
    window_rows = shape.pixels * shape.kernel_rows * repeats
    pixels, rows = shape.pixels * repeats, shape.output_rows * repeats
    return (
        straight("window position", code["position"], taps, rows_inside, "data_copy"),
        straight("left of the input?", code["left"], rows_inside, rows_inside - left, "data_copy"),
        straight("right of the input?", code["right"], left, left - inside, "data_copy"),
        block("copy channels", code["copy"], inside, cause="data_copy"),
        copy_loop("copy 16 channels", inside, columns.copied_bytes),
        straight("pad channels", code["fill"], taps - inside, taps - inside, "data_copy"),
        copy_loop("pad 16 channels", taps - inside, columns.copied_bytes,
                  "vstrb.8 q0, [r8], #16"),
        block("window row", code["window_row"], window_rows, pixels, "data_copy"),
        block("output position", code["output_position"], pixels, rows, "data_copy"),
        block("output row", code["output_row"], rows, repeats, "data_copy"),
        block("call per four positions", _CODE.quad_call, calls, cause="kernel_call"),
    )


def _taps_not_left(shape: Geometry) -> int:
    """Window columns not left of the input, over one row of output positions."""
    window = shape.window
    return sum(column * window.stride[1] - window.padding[2] + tap * window.dilation[1] >= 0
               for column in range(shape.output_columns) for tap in range(shape.kernel_columns))
