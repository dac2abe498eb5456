"""Rows times transposed weights on Helium: what the MVE loops of a convolution execute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hwmodels.kernel import Block
from twin.runtimes.cmsis_nn.sequences import (
    CLAMP_VECTOR,
    SCALE_ONE,
    SCALE_SCALAR,
    SCALE_VECTOR,
    VECTOR_BYTES,
    floor_width,
    lane_moves,
    row_load,
    vectors,
)
from twin.runtimes.lowering.blocks import block, join, straight
from twin.runtimes.lowering.nests import (
    Repeat,
    bound,
    guarded,
    load,
    repeat,
    store,
)

_ENTRY_MVE = ("stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d15}; sub sp, #124;"
              "mov r10, r3; ldr r3, [sp, #232]; mov lr, r0; cmp r3, #3; mov r9, r1;"
              "str r2, [sp, #68]; ldr r2, [sp, #232]; cmp r2, r3; movs r0, #0; add sp, #124;"
              "vpop {d8-d15}; ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_QUADS_MVE = ("mov r5, r2; subs r4, r3, #3; ldr r3, [sp, #236]; mov r11, r10; str r3, [sp, #92];"
              "ldr r3, [sp, #252]; mov r10, r5; vdup.32 q7, r3; ldr r3, [sp, #256];"
              "ldr r1, [sp, #236]; vdup.32 q6, r3; movs r3, #0; lsls r2, r1, #1;"
              "add r0, r1, r1, lsl #1; ldr r1, [sp, #264]; str r2, [sp, #96]; mov r12, r1, lsl #1;"
              "add r8, r1, r1, lsl #1; str r0, [sp, #100]; add r2, sp, #88; lsls r1, r1, #2;"
              "str r3, [sp, #88]; vldrw.u32 q5, [r2]; strd r1, r0, [sp, #40];"
              "strd r8, r12, [sp, #56]; ldr r12, [sp, #240]; str r4, [sp, #48]; str lr, [sp, #64];"
              "str r9, [sp, #52]; ldr r3, [sp, #232]; ldr r1, [sp, #40]; subs r3, #4;"
              "lsrs r3, r3, #2; mla r1, r3, r1, r1; ldr lr, [sp, #64]; adds r3, #1;"
              "ldr r9, [sp, #52]; add lr, r1; lsls r3, r3, #2")
_QUAD_MVE = ("ldr r2, [sp, #236]; cmp r2, #0; it le; movs r7, #0; ldr r2, [sp, #60]; "
             "str r7, [sp, #4];"
             "add r2, lr; str r2, [sp, #24]; ldr r2, [sp, #56]; mov r7, r12; add r2, lr;"
             "str r2, [sp, #28]; ldr r2, [sp, #264]; ldr r6, [sp, #52]; add r2, lr;"
             "str r2, [sp, #32]; ldr r2, [sp, #224]; str r3, [sp, #36]; sub r9, r2, #4;"
             "ldr r2, [sp, #228]; str r9, [sp, #8]; sub r8, r2, #4; mov r9, r8;"
             "ldr r2, [sp, #236]; str r6, [sp]; add r2, r11; strd r2, lr, [sp, #12];"
             "str r10, [sp, #20]; str r12, [sp, #240]; mov r12, r7; ldr lr, [sp, #16];"
             "ldr r3, [sp, #36]; ldr r10, [sp, #20]; ldr r2, [sp, #40]; ldr r1, [sp, #44];"
             "add lr, r2; ldr r2, [sp, #12]; adds r3, #4; add r2, r1; mov r11, r2;"
             "ldr r2, [sp, #48]; cmp r3, r2; blt 0b")
_CHANNEL_4_MVE = ("movs r2, #0; ldrd r4, r5, [sp, #24]; mov r8, r2; mov r12, r2; mov r10, r2;"
                  "mov r6, r2; ldr r3, [sp]; ldr r1, [sp, #16]; ldr r0, [sp, #32];"
                  "vldrb.u8 q0, [r3], #16; wlstp.8 lr, r7, 1f")
_INNER_4_MVE = ("vaddva.s8 r2, q0; vldrb.u8 q1, [r1], #16; vmladava.s8 r8, q0, q1;"
                "vldrb.u8 q2, [r0], #16; vmladava.s8 r12, q0, q2; vldrb.u8 q3, [r4], #16;"
                "vmladava.s8 r10, q0, q3; vldrb.u8 q4, [r5], #16; vmladava.s8 r6, q0, q4;"
                "vldrb.u8 q0, [r3], #16; letp lr, 0b")
_FINISH_4_MVE = ("ldr r3, [sp]; strd r8, r12, [sp, #72]; strd r10, r6, [sp, #80]; add r3, r7;"
                 "str r3, [sp]; add r3, sp, #72; vldrw.u32 q3, [r3]; ldr r3, [sp, #244];"
                 "mul r2, r3, r2; ldr r3, [sp, #20]; cbz r3, 1f")
_BIAS_4_MVE = "ldr r1, [sp, #4]; ldr r3, [r3, r1]; add r2, r3"
_SCALE_4_MVE = join(
    "ldr r3, [sp, #4]; ldr r1, [sp, #8]; adds r3, #4; vadd.i32 q3, q3, r2; str r3, [sp, #4];"
    "ldr r2, [r1, #4]!; ldr r3, [r9, #4]!; str r1, [sp, #8]", SCALE_SCALAR, CLAMP_VECTOR,
    "vstrb.32 q3, [r11, q5]; ldr r3, [sp, #12]; add r11, r11, #1; cmp r3, r11; bne 0b")
_SINGLE_MVE = ("mov r11, #0; ldr r2, [sp, #252]; str r3, [sp, #4]; vdup.32 q6, r2;"
               "ldr r2, [sp, #256]; ldr r7, [sp, #68]; vdup.32 q5, r2; ldr r2, [sp, #236];"
               "ldr r3, [sp, #240]; and r12, r2, #3; str r12, [sp, #12]; ldr r5, [sp];"
               "ldrd r6, r9, [sp, #224]; ldr r8, [sp, #16]; ldr r2, [sp, #264]; add r4, r2;"
               "ldr r2, [sp, #12]; cmp r2, #0; ldr r2, [sp, #4]; ldr r1, [sp, #232]; adds r2, #1;"
               "cmp r1, r2; str r2, [sp, #4]; bne 0b")
_CHANNEL_1_MVE = ("mov r1, r8; mov r2, r11; mov r0, r4; mov r10, r11; vldrb.u8 q0, [r1], #16;"
                  "wlstp.8 lr, r3, 1f")
_INNER_1_MVE = ("vaddva.s8 r2, q0; vldrb.u8 q1, [r0], #16; vmladava.s8 r10, q0, q1;"
                "vldrb.u8 q0, [r1], #16; letp lr, 0b")
_FINISH_1_MVE = "ldr r0, [sp, #244]; and r1, r12, #3; mla r0, r0, r2, r10; add r8, r3; cbz r7, 1f"
_BIAS_1_MVE = "ldr r2, [r7, r12, lsl #2]; add r0, r2"
_KEEP_1_MVE = ("add r2, sp, #120; add r2, r2, r1, lsl #2; cmp r1, #3; add r12, r12, #1;"
               "str r0, [r2, #-16]; bne 2f")
_NEXT_1_MVE = "ldr r2, [sp, #236]; cmp r2, r12; bne 0b"
_SCALE_1_MVE = join("vldrw.u32 q1, [r9], #16; vcmp.s32 gt, q1, r11; add r2, sp, #104;"
                "vldrw.u32 q3, [r2]; vldrw.u32 q0, [r6], #16", SCALE_VECTOR, CLAMP_VECTOR,
                "vstrb.32 q3, [r5], #4")
_TAIL_1_MVE = join("ldr r4, [r1], #4; ldr r3, [r6], #4; ldr r6, [r9], #4", SCALE_ONE,
               "strb r1, [r5], #1; subs r7, #1; bne 0b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductMve:
    """Rows times transposed weights.

    Parameters
    ----------
    depth : int
        Multiply-accumulates of one result; bytes of a row.
    channels : int
        Weight rows.
    calls, quads, singles : int
        Calls of the function, groups of four rows and left-over rows over all of them.
    has_bias : bool
        Whether a bias is read per channel.
    """

    depth: int
    channels: int
    calls: int
    quads: int
    singles: int
    has_bias: bool


def product_blocks_mve(shape: ProductMve) -> tuple[Block, ...]:
    """Return the blocks of `arm_nn_mat_mult_nt_t_s8`."""
    fours, ones = shape.quads * shape.channels, shape.singles * shape.channels
    per_row = vectors(shape.depth)
    bias_4, bias_1 = (_BIAS_4_MVE, _BIAS_1_MVE) if shape.has_bias else ("", "")
    with_quads = min(shape.calls, shape.quads)
    tail = shape.channels % 4
    return (
        block("call", _ENTRY_MVE, shape.calls, cause="kernel_call"),
        block("set up rows of four", _QUADS_MVE, with_quads, cause="kernel_call"),
        block("four rows", _QUAD_MVE, shape.quads, with_quads),
        block("channel of four rows", _CHANNEL_4_MVE, fours),
        block("multiply 4 x 16", _INNER_4_MVE, fours * per_row, fours),
        block("requantise four rows", join(_FINISH_4_MVE, bias_4, _SCALE_4_MVE), fours,
              shape.quads),
        straight("left-over row", _SINGLE_MVE, shape.singles),
        block("channel of one row", _CHANNEL_1_MVE, ones),
        block("multiply 16", _INNER_1_MVE, ones * per_row, ones),
        straight("finish one row", join(_FINISH_1_MVE, bias_1, _KEEP_1_MVE), ones,
                 ones - shape.singles * (shape.channels // 4)),
        block("requantise four channels", _SCALE_1_MVE, shape.singles * (shape.channels // 4)),
        straight("next channel", _NEXT_1_MVE, ones, ones - shape.singles),
        block("requantise one channel", _TAIL_1_MVE, shape.singles * tail,
              shape.singles if tail else 0),
    )


def quad_drafts(shape: ProductMve, source: str, row_step_bytes: int, rows_offset_bytes: int,
                output_offset_bytes: int, output_row_bytes: int, *, source_steps: dict[str, int],
                output_steps: dict[str, int]) -> Repeat:
    """Return the accesses of four rows times all channels.

    Parameters
    ----------
    shape : ProductMve
        Depth and channels.
    source : str
        Operand the rows are in.
    row_step_bytes, rows_offset_bytes : int
        Between rows, and of the first row.
    output_offset_bytes, output_row_bytes : int
        Of the first result, and between rows of results.
    source_steps, output_steps : dict
        Steps of the rows and of the results in enclosing loops, in bytes by loop name.
    """
    return repeat(
        "channel", shape.channels,
        *_weights_and_rows(shape, [
            row_load(source, rows_offset_bytes + one * row_step_bytes, **source_steps)
            for one in range(4)]),
        *_channel_parameters(shape, 4, shape.has_bias),
        *[store("output", 1, output_offset_bytes + one * output_row_bytes, channel=1,
                **output_steps) for one in range(4)])


def single_drafts(shape: ProductMve, source: str, rows_offset_bytes: int,
                  output_offset_bytes: int, *, source_steps: dict[str, int],
                  output_steps: dict[str, int]) -> list[Any]:
    """Return the accesses of one row times all channels: bias by channel, the rest by four."""
    fours, tail = divmod(shape.channels, 4)

    def channel(first: int, **outer: int) -> list[Any]:
        return _weights_and_rows(
            shape, [row_load(source, rows_offset_bytes, **source_steps)], first, outer
        ) + ([load("bias", 4, 4 * first, channel=4, **{name: 4 * step
                                                       for name, step in outer.items()})]
             if shape.has_bias else [])

    shifts = 4 * shape.channels
    by_four = repeat(
        "four", fours, repeat("channel", 4, *channel(0, four=4)),
        load("parameters", 16, shifts, four=16), load("parameters", 16, 0, four=16),
        *lane_moves(store("output", 4, output_offset_bytes, four=4, **output_steps), 4))
    last = [repeat("channel", tail, *channel(4 * fours)),
            repeat("channel", tail, load("parameters", 4, 16 * fours, channel=4),
                   load("parameters", 4, shifts + 16 * fours, channel=4),
                   store("output", 1, output_offset_bytes + 4 * fours, channel=1,
                         **output_steps))]
    return [by_four, *last]


def _channel_parameters(shape: ProductMve, width_bytes: int, has_bias: bool) -> list[Any]:
    bias = [load("bias", width_bytes, 0, channel=4)] if has_bias else []
    return [*bias, load("parameters", width_bytes, 0, channel=4),
            load("parameters", width_bytes, 4 * shape.channels, channel=4)]


def _weights_and_rows(shape: ProductMve, rows: list[Any], first: int = 0,
                      outer: dict[str, int] | None = None) -> list[Any]:
    """One channel: weights with each row, then the weights fetched ahead of the next channel.

    Weights are loaded one vector ahead: the last full load of a row, and the one after it, reach
    into the next rows; where that would leave the tensor the access is narrowed or left out.
    """
    depth, channels = shape.depth, shape.channels
    full, tail = divmod(depth, VECTOR_BYTES)
    weight_steps = {"channel": depth, **{name: step * depth
                                         for name, step in (outer or {}).items()}}
    index_steps = {"channel": 1, **(outer or {})}
    weights = row_load("weights", first * depth, **weight_steps)
    moves: list[Any] = [repeat("vector", full, *[
        row._replace(steps_bytes={**row.steps_bytes, "vector": VECTOR_BYTES})
        for row in (weights, *rows)])]
    lanes = tail or VECTOR_BYTES
    if tail:
        moves += _overreaching(weights, full * VECTOR_BYTES, VECTOR_BYTES, tail, depth, channels,
                               first, index_steps)
        moves += [row._replace(width_bytes=floor_width(tail),
                               offset_bytes=row.offset_bytes + full * VECTOR_BYTES)
                  for row in rows]
    ahead = vectors(depth) * VECTOR_BYTES
    return moves + _overreaching(weights, ahead, floor_width(lanes), 0, depth, channels, first,
                                 index_steps)


def _overreaching(weights: Any, offset_bytes: int, width_bytes: int, inside_bytes: int,
                  depth: int, channels: int, first: int, steps: dict[str, int]) -> list[Any]:
    """Return an access that may leave its row; near the tensor's end `inside_bytes` wide."""
    rows_needed = -(-(offset_bytes + width_bytes) // depth)
    limit = channels - rows_needed + 1  # channels below it have enough rows behind them
    move = weights._replace(offset_bytes=weights.offset_bytes + offset_bytes)
    wide = guarded(move._replace(width_bytes=width_bytes), bound(first, limit, **steps))
    if not inside_bytes:
        return [wide]
    narrow = guarded(move._replace(width_bytes=floor_width(inside_bytes)),
                     bound(first - limit, channels - limit, **steps))
    return [wide, narrow]
