"""Windows gathered into columns, four output positions at a time (Helium convolutions).

Output positions are numbered row by row and taken in groups of four, which run over row ends.
Where a row is no multiple of four the grouping repeats after a few rows; those rows are written
out, so the accesses stay in program order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hwmodels.kernel import Block
from twin.runtimes.cmsis_nn.sequences import copy_loop, fill_loop, row_load, row_moves, row_store
from twin.runtimes.lowering.blocks import block, straight
from twin.runtimes.lowering.geometry import Geometry
from twin.runtimes.lowering.nests import bound, guarded, repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns a kernel gathers.

    Parameters
    ----------
    shape : Geometry
        Of the layer.
    copied_bytes : int
        Input channels copied per window position.
    column_step_bytes : int
        Between window positions in the column.
    input_offset_bytes, input_step_bytes : int
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
    columns : Columns
        What is gathered.
    multiply : callable
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
    size = shape.kernel_rows * shape.kernel_columns * columns.column_step_bytes
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


class GatherCode(NamedTuple):
    """Instructions per window position, per window row, per output position and row."""

    position: str
    left: str
    right: str
    copy: str
    fill: str
    window_row: str
    output_position: str
    output_row: str


CONV_GATHER = GatherCode(
    position="ldr r0, [sp, #48]; adds r3, #1; add r0, r8; cmp r7, r3; add r2, r5;"
             "str r0, [sp, #48]; add r1, r6; cmp r4, r12; bhi 0b",
    left="cmp r1, #0; blt 1f",
    right="ldr r0, [sp, #60]; cmp r1, r0; bge 1f",
    copy="ldr r8, [sp, #48]; mov r0, r2; wlstp.8 lr, r5, 1f",
    fill="mov r8, r2; vdup.8 q0, r9; wlstp.8 lr, r5, 1f; b 2f",
    window_row=(
        "cmp r7, #0; mov r2, r10; movs r3, #0; strd lr, r10, [sp, #48]; ldr r1, [sp, #68];"
        "str lr, [sp, #56]; b 1f; ldr r3, [sp, #80]; ldrd r10, lr, [sp, #52]; add r10, r3;"
        "ldr r3, [sp, #76]; add r11, r11, #1; add lr, r3; ldr r3, [sp, #72]; add r12, r3;"
        "ldr r3, [sp, #64]; cmp r3, r11; bne 0b"),
    output_position=(
        "ldr r3, [sp, #64]; cmp r3, #0; mov r11, #0; ldr r12, [sp, #108]; ldr lr, [sp, #84];"
        "str r2, [sp, #92]; ldr r2, [sp, #92]; adds r2, #1; cmp r2, #4; ldr r1, [sp, #84];"
        "ldr r0, [sp, #104]; ldr r3, [sp, #88]; add r1, r0; str r1, [sp, #84];"
        "ldr r0, [sp, #100]; ldr r1, [sp, #68]; adds r3, #1; add r1, r0; str r1, [sp, #68];"
        "ldr r1, [sp, #96]; str r3, [sp, #88]; cmp r1, r3; bne 0b"),
    output_row=(
        "ldr r3, [sp, #96]; cmp r3, #0; mov r10, #0; str r10, [sp, #88]; mov r10, lr;"
        "ldrh r1, [sp, #172]; ldrh r0, [sp, #168]; mul r1, r11, r1; subs r3, r1, r0;"
        "ldr r1, [sp, #60]; ldrh r0, [sp, #164]; mul r1, r3, r1; str r3, [sp, #108];"
        "ldr r3, [sp, #232]; subs r1, r1, r0; mla r3, r5, r1, r3; str r3, [sp, #84];"
        "negs r3, r0; str r3, [sp, #68]; str r11, [sp, #188]; mov lr, r10; ldr r11, [sp, #188];"
        "ldr r3, [sp, #116]; cmp r3, #0; ldr r3, [sp, #160]; add r11, r11, #1; cmp r11, r3;"
        "blt 0b"))
"""Of `arm_convolve_s8`."""

DEPTHWISE_GATHER = GatherCode(
    position="adds r3, #1; cmp r6, r3; add r2, r2, #124; add r1, r7; ble 1f; cmp r10, r4; bgt 0b",
    left="orrs r0, r4, r3; bmi 1f",
    right="cmp r11, r3; ble 1f",
    copy="mov r0, r1; mov r5, r2; wlstp.8 lr, r8, 1f",
    fill="mov r0, r2; ldr r5, [sp, #44]; vdup.8 q0, r5; wlstp.8 lr, r8, 1f",
    window_row=(
        "ldr r3, [sp, #56]; cmp r3, #0; ble 1f; mov r1, r12; mov r2, r9; ldr r3, [sp, #52];"
        "str r5, [sp, #44]; b 1f; ldr r3, [sp, #64]; ldr r5, [sp, #44]; add r9, r3;"
        "ldr r3, [sp, #60]; adds r4, #1; add r12, r3; ldr r3, [sp, #48]; cmp r4, r3; blt 0b"),
    output_position=(
        "ldr r3, [sp, #108]; cmp r3, #0; sub r1, r6, r11; cmp r6, r11; rsb r1, r1, r1, lsl #5;"
        "mov r1, r1, lsl #2; it le; movle r1, #124; str r1, [sp, #64]; ldr r1, [sp, #100];"
        "str r9, [sp, #76]; mov r4, r1; mov r9, lr; add r3, r1; str r11, [sp, #52];"
        "ldr r12, [sp, #68]; ldr r11, [sp, #104]; str r2, [sp, #72]; str r3, [sp, #48];"
        "mov lr, r9; ldr r2, [sp, #72]; ldr r11, [sp, #52]; ldr r9, [sp, #76]; adds r2, #1;"
        "cmp r2, #4; ldr r3, [sp, #84]; ldr r1, [sp, #112]; add r11, r3; add r6, r3;"
        "ldr r3, [sp, #68]; add r9, r9, #1; add r3, r1; str r3, [sp, #68]; ldr r3, [sp, #96];"
        "cmp r3, r9; bne 0b"),
    output_row=(
        "ldr r1, [sp, #96]; cmp r1, #0; movs r0, #0; str lr, [sp, #144]; mov r9, r0; mov lr, r3;"
        "ldr r1, [sp, #184]; ldr r6, [sp, #56]; str r1, [sp, #44]; ldr r1, [sp, #164];"
        "str r11, [sp, #68]; str r11, [sp, #220]; ldr r11, [sp, #44]; subs r6, r6, r1;"
        "str r4, [sp, #216]; mov r3, lr; ldr r4, [sp, #216]; ldr r11, [sp, #220];"
        "ldr lr, [sp, #144]; ldr r1, [sp, #100]; ldr r0, [sp, #168]; adds r4, #1; add r1, r0;"
        "str r1, [sp, #100]; ldr r1, [sp, #192]; add r11, r1; ldr r1, [sp, #172]; cmp r1, r4;"
        "bne 0b"))
"""Of `arm_depthwise_conv_s8_opt`."""

_QUAD_CALL = ("ldr r1, [sp, #136]; ldr r3, [sp, #140]; str r1, [sp, #32]; ldr r1, [sp, #132];"
              "str r3, [sp, #40]; str r1, [sp, #28]; ldr r1, [sp, #128]; str r2, [sp, #8];"
              "str r1, [sp, #24]; ldr r1, [sp, #124]; ldr r2, [sp, #112]; strd r3, r1, [sp, #16];"
              "ldr r3, [sp, #148]; str r2, [sp, #36]; str r3, [sp, #4]; ldr r3, [sp, #144];"
              "str r2, [sp, #12]; str r3, [sp]; ldr r3, [sp, #116]; ldr r1, [sp, #156];"
              "mov r2, r3; ldr r10, [sp, #120]; add r2, r1; str r2, [sp, #116]; mov r0, r10;"
              "ldr r2, [sp, #248]; ldr r1, [sp, #240]; movs r2, #0; bl 1f")


def gather_blocks(code: GatherCode, columns: Columns, repeats: int, calls: int
                  ) -> tuple[Block, ...]:
    """Return the blocks that gather every output position `repeats` times.

    Parameters
    ----------
    code : GatherCode
        Of the function.
    columns : Columns
        What is gathered.
    repeats : int
        Passes over all positions (batches times channel slices).
    calls : int
        Calls of the multiplication.
    """
    shape = columns.shape
    taps = shape.taps * repeats
    inside = shape.taps_inside * repeats
    rows_inside = shape.window_rows * shape.kernel_columns * repeats
    left = _taps_not_left(shape) * sum(shape.row_taps) * repeats
    window_rows = shape.pixels * shape.kernel_rows * repeats
    pixels, rows = shape.pixels * repeats, shape.output_rows * repeats
    return (
        straight("window position", code.position, taps, rows_inside, "data_copy"),
        straight("left of the input?", code.left, rows_inside, rows_inside - left, "data_copy"),
        straight("right of the input?", code.right, left, left - inside, "data_copy"),
        block("copy channels", code.copy, inside, cause="data_copy"),
        copy_loop("copy 16 channels", inside, columns.copied_bytes),
        straight("pad channels", code.fill, taps - inside, taps - inside, "data_copy"),
        fill_loop("pad 16 channels", taps - inside, columns.copied_bytes),
        block("window row", code.window_row, window_rows, pixels, "data_copy"),
        block("output position", code.output_position, pixels, rows, "data_copy"),
        block("output row", code.output_row, rows, repeats, "data_copy"),
        block("call per four positions", _QUAD_CALL, calls, cause="kernel_call"),
    )


def _taps_not_left(shape: Geometry) -> int:
    """Window columns not left of the input, over one row of output positions."""
    window = shape.window
    return sum(column * window.stride[1] - window.padding[2] + tap * window.dilation[1] >= 0
               for column in range(shape.output_columns) for tap in range(shape.kernel_columns))
