"""Depthwise convolution of a window gathered into columns, with DSP and Helium.

DSP widens a position's window to one int16 column; Helium gathers the windows of four positions,
a block of channels at a time, and multiplies four channels at once.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_depthwise_conv_s8_opt.c,
arm_depthwise_conv_get_buffer_sizes_s8.c; Source/NNSupportFunctions/arm_nn_depthwise_conv_nt_t_s8.c.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hwmodels.kernel import Block, Kernel, Nest
from twin.runtimes.cmsis_nn.columns import (
    DEPTHWISE_GATHER,
    Columns,
    gather_blocks,
    gather_drafts,
)
from twin.runtimes.cmsis_nn.sequences import (
    CLAMP_VECTOR,
    PREDICATE,
    SCALE_VECTOR,
    bookkeeping,
    entry,
    floor_width,
    lane_moves,
    requantise,
)
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import (
    BRANCH,
    block,
    build_kernel,
    choose_dialect,
    draft_kernel,
    join,
)
from twin.runtimes.lowering.geometry import (
    Geometry,
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    window_load,
)
from twin.runtimes.lowering.libc import fill_blocks
from twin.runtimes.lowering.nests import closing, load, repeat, resolve, step, store

_WIDEN_4_ORDERED = (  # four int8 to int16 with the offset added, in order
    "ldr r12, [r0], #4; sxtab16 lr, r6, r12; adds r4, #8; cmp r0, r5; ror r12, r12, #8;"
    "sxtab16 r12, r6, r12; pkhtb r7, r12, lr, asr #16; pkhbt lr, lr, r12, lsl #16;"
    "str r7, [r4, #-4]; str lr, [r4, #-8]; bne 0b")
_WIDEN_1 = "ldrsb r0, [r5], #1; add r0, r3; cmp r2, r5; strh r0, [r1], #2; bne 0b"

_COLUMN_TAPS_2 = (  # two window positions of four channels from an int16 column: 8 MAC
    "ldr r2, [sp, #8]; ldr r3, [r7]; ldr r0, [r7, r2]; ldr r10, [r1]; ldr r6, [r1, r9];"
    "ldr r12, [sp]; pkhbt r8, r6, r10, lsl #16; ror r5, r3, #8; ror r2, r0, #8; sxtb16 r3, r3;"
    "sxtb16 r0, r0; pkhtb r6, r6, r10, asr #16; sxtb16 r5, r5; sxtb16 r2, r2;"
    "pkhbt r10, r0, r3, lsl #16; smlad r8, r8, r10, r12; str r8, [sp];"
    "pkhbt r8, r5, r2, lsl #16; smlad lr, r6, r8, lr; pkhtb r3, r3, r0, asr #16;"
    "ldr r0, [sp, #12]; ldr r6, [r1, #4]; ldr r0, [r0, r1]; pkhbt r8, r0, r6, lsl #16;"
    "pkhtb r0, r0, r6, asr #16; ldr r6, [sp, #4]; smlad r3, r8, r3, r6; str r3, [sp, #4];"
    "pkhtb r2, r2, r5, asr #16; smlad r11, r0, r2, r11; ldr r3, [sp, #16]; subs r4, #1;"
    "uxth r4, r4; add r7, r9; add r1, r3; cmp r4, #0; bne 0b")
_COLUMN_TAP_LAST = (  # the odd last position of four channels: 4 MAC
    "ldrsb r2, [r7]; ldrsh r3, [r1]; ldr r0, [sp]; mla r0, r2, r3, r0; str r0, [sp];"
    "ldrsb r2, [r7, #1]; ldrsh r3, [r1, #2]; mla lr, r2, r3, lr; ldrsb r2, [r7, #2];"
    "ldrsh r3, [r1, #4]; ldr r0, [sp, #4]; mla r0, r2, r3, r0; str r0, [sp, #4];"
    "ldrsb r2, [r7, #3]; ldrsh r3, [r1, #6]; mla r11, r2, r3, r11")
_COLUMN_TAP_SINGLE = (  # one position of one leftover channel
    "ldrsb r4, [r1]; ldrh r6, [r3]; adds r2, #1; cmp r5, r2; add r1, r9; smlabb r0, r6, r4, r0;"
    "add r3, r8; bne 0b")


_IM2COL = "data_copy"


def column_scratch_bytes(shape: Geometry) -> int:
    """Bytes of the column: one int16 for each window position and channel."""
    return 2 * shape.kernel_rows * shape.kernel_columns * shape.input_channels


def lower_column(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_s8_opt` on its DSP path.

    Parameters
    ----------
    shape : Geometry
        Channel multiplier one, batch one, no dilation.
    site : Site
        Operands.
    """
    dialect = choose_dialect(site.isa)
    return draft_kernel(
        "arm_depthwise_conv_s8_opt", "depthwise", site,
        entry(dialect, 80, 1),
        *over_pixels(shape, *_gather(dialect, shape), *_multiply(dialect, shape)),
        macs=shape.taps_inside * shape.input_channels)


def _gather(dialect: str, shape: Geometry) -> tuple[Any, ...]:
    """Return a position's window widened into the column; positions outside filled."""
    channels, pixels, wide = shape.input_channels, shape.pixels, 2 * shape.input_channels
    rows, inside = shape.window_rows, shape.taps_inside
    outside = rows * shape.kernel_columns - inside
    quads, rest = divmod(channels, 4)
    end = BRANCH[dialect]
    widen = join(bookkeeping(dialect, 2, 1, 24 if rest else 22, 1), end)
    source = window_load(shape, needed_bounds(shape), 4, 1, c=4)
    target = store("scratch", 4, 0, ky=shape.kernel_columns * wide, kx=wide, c=8)
    one = source._replace(width_bytes=1, offset_bytes=source.offset_bytes + 4 * quads,
                          steps_bytes={**source.steps_bytes, "c": 1})
    one_out = target._replace(width_bytes=2, offset_bytes=8 * quads,
                              steps_bytes={**target.steps_bytes, "c": 2})
    return (
        block("gather pixel", join(bookkeeping(dialect, 18, 8, 22), end), pixels, 1, _IM2COL),
        block("gather line", join(bookkeeping(dialect, 10, 2, 8), end), rows, pixels, _IM2COL),
        block("gather position", widen, inside, rows, _IM2COL),
        block("pad position", join(bookkeeping(dialect, 0, 0, 11, 1), end), outside, cause=_IM2COL),
        *fill_blocks(dialect, wide, outside),
        *fill_blocks(dialect, wide * shape.kernel_columns, pixels * shape.kernel_rows - rows),
        block("widen four", _WIDEN_4_ORDERED, inside * quads, inside, _IM2COL),
        block("widen", _WIDEN_1, inside * rest, inside, _IM2COL),
        over_window(shape, repeat("c", quads, source, target._replace(offset_bytes=4), target),
                    repeat("c", rest, one, one_out)))


def _multiply(dialect: str, shape: Geometry) -> tuple[Any, ...]:
    """Multiply the column by the weights: four channels at a time, two positions each, then one."""
    channels, taps = shape.input_channels, shape.kernel_rows * shape.kernel_columns
    wide, (quads, rest) = 2 * channels, divmod(channels, 4)
    done, last = 4 * quads, taps // 2 * 2
    bias = "ldr r3, [r2]" if shape.has_bias else ""

    def finish(start: int, count: int) -> tuple[Any, ...]:
        return tuple(
            part for k in range(count) for part in (
                load("parameters", 4, 4 * (channels + start + k), channel=4 * count),
                load("parameters", 4, 4 * (start + k), channel=4 * count),
                store("output", 1, start + k, channel=count, **output_steps(shape))))

    def biases(start: int, count: int) -> tuple[Any, ...]:
        return tuple(load("bias", 4, 4 * (start + k), channel=4 * count)
                     for k in range(count if shape.has_bias else 0))

    return (
        repeat("channel", quads, *biases(0, 4),
               repeat("tap", taps // 2, closing("two positions of four channels", _COLUMN_TAPS_2),
                      *[load("weights", 4, part, channel=4, tap=wide) for part in (0, channels)],
                      *[load("scratch", 4, part, channel=8, tap=2 * wide)
                        for part in (0, wide, 4, wide + 4)]),
               repeat("odd", taps % 2, step("last position of four channels", _COLUMN_TAP_LAST),
                      *[part for k in range(4) for part in (
                          load("weights", 1, last * channels + k, channel=4),
                          load("scratch", 2, last * wide + 2 * k, channel=8))]),
               closing("four channels", join(*[bias] * 4, bookkeeping(dialect, 6, 8, 17),
                                             requantise(dialect, 4), BRANCH[dialect])),
               *finish(0, 4)),
        repeat("channel", rest, *biases(done, 1),
               repeat("tap", taps, closing("position of one channel", _COLUMN_TAP_SINGLE),
                      load("weights", 1, done, channel=1, tap=channels),
                      load("scratch", 2, 2 * done, channel=2, tap=wide)),
               closing("one channel", join(bias, bookkeeping(dialect, 4, 2, 8),
                                           requantise(dialect, 1), BRANCH[dialect])),
               *finish(done, 1)))


_BLOCK_CHANNELS = 124
"""CH_IN_BLOCK_MVE: channels gathered at a time, and the step between window positions."""

_ENTRY_MVE = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d13}; sub sp, #228;"
    "ldr r5, [sp, #332]; ldr r11, [r3, #12]; ldr r7, [r5, #12]; mov r6, r3;"
    "ldrd r4, r12, [sp, #312]; cmp r11, r7; ldr r1, [r0]; str r1, [sp, #116]; cmp r1, #0;"
    "add r1, r11, #123; smull r7, r0, r0, r1; add r0, r1; asrs r1, r1, #31;"
    "str r1, [sp, #180]; ldr r0, [r12, #4]; ldr r1, [r12, #8]; str r0, [sp, #108];"
    "str r1, [sp, #56]; mul r1, r0, r1; ldr r0, [r3, #12]; str r1, [sp, #132];"
    "str r0, [sp, #84]; ldr r0, [r3, #16]; ldr r1, [r6, #8]; str r0, [sp, #168];"
    "ldr r0, [r2, #4]; ldr r2, [r2]; str r1, [sp, #104]; str r2, [sp, #92]; ldr r2, [r5, #8];"
    "ldr r1, [r6, #4]; str r2, [sp, #96]; ldr r2, [r5, #4]; str r1, [sp, #176];"
    "str r2, [sp, #172]; ldr r2, [r3, #4]; ldr r1, [r3, #20]; str r2, [sp, #80]; ldr r2, [r3];"
    "cmp r7, #124; str r1, [sp, #164]; str r2, [sp, #128]; ldr r1, [r3, #24];"
    "ldr r2, [r3, #36]; ldr r3, [r3, #40]; str r0, [sp, #88]; str r2, [sp, #136];"
    "str r3, [sp, #140]; movs r0, #0; add sp, #228; vpop {d8-d13};"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_SLICE_MVE = (
    "ldr r3, [sp, #200]; sub r3, r3, lr; str r3, [sp, #188]; ldr r3, [sp, #336]; add r3, lr;"
    "str r3, [sp, #120]; ldr r3, [sp, #172]; cmp r3, #0; mov r9, #0; ldr r3, [sp, #204];"
    "ldr r12, [sp, #116]; str r3, [sp, #100]; ldr r3, [sp, #88]; mov r4, r9;"
    "add r3, r3, lr, lsl #2; str r3, [sp, #148]; ldr r3, [sp, #92]; mov r7, r8;"
    "add r3, r3, lr, lsl #2; str r3, [sp, #152]; ldr r3, [sp, #328]; ldr r10, [sp, #176];"
    "str r3, [sp, #156]; ldr r3, [sp, #208]; ldr r8, [sp, #124]; ldr r3, [sp, #128];"
    "negs r5, r3; mov r2, r9; mov r3, r12; str r6, [sp, #212]; ldr r3, [sp, #188];"
    "adds r6, #1; cmp r3, #124; str r3, [sp, #124]; ldr r3, [sp, #180]; add lr, lr, #124;"
    "cmp r3, r6; bgt 0b")
_QUAD_CALL_MVE = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d15}; sub sp, #92;"
    "str r2, [sp, #32]; add r12, r3, #6; adds r2, r3, #3; it mi; movmi r2, r12;"
    "ldrd r11, r7, [sp, #220]; asrs r2, r2, #2; cmp r3, #0; ldr r4, [sp, #192];"
    "ldr r5, [sp, #204]; ldrh r6, [sp, #216]; str r2, [sp, #12]; ldr r2, [sp, #208];"
    "mov r8, #372; vdup.32 q7, r2; ldr r2, [sp, #212]; rsb r12, r6, r6, lsl #5;"
    "vdup.32 q3, r2; add r2, sp, #72; vstrw.32 q3, [r2]; movs r2, #0; vdup.32 q3, r2;"
    "str r6, [sp, #8]; add r1, r3; add r6, r0, r12, lsl #2; str r1, [sp, #64]; adds r1, r6, r3;"
    "ldr r6, [sp, #8]; str r1, [sp, #36]; mla r8, r8, r6, r0; add r1, sp, #16;"
    "add r12, r0, r12, lsl #3; vstrw.32 q3, [r1]; adds r1, r0, r3; add r10, r7, r4;"
    "str r1, [sp, #60]; add r1, r12, r3; str r1, [sp, #40]; add r1, r10, r3;"
    "add r9, r7, r4, lsl #1; str r1, [sp, #48]; add r1, r8, r3; str r1, [sp, #44]; mov r12, r3;"
    "ldrd r10, r8, [sp, #196]; add r1, r9, r3; mov r9, r2; add lr, r4, r4, lsl #1; add lr, r7;"
    "str r1, [sp, #52]; add r7, r3; add r1, lr, r3; str r7, [sp, #68]; str r1, [sp, #56];"
    "movs r0, #0; add sp, #92; vpop {d8-d15};"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_CHANNELS_MVE = (
    "ldr r3, [sp, #68]; vdup.32 q2, r9; sub r3, r3, r12; str r3, [sp, #4]; cmp r11, #0; beq 1f;"
    "ldr r3, [sp, #64]; ldr r4, [sp, #8]; sub r1, r3, r12; ldr r3, [sp, #60]; vdup.32 q4, r9;"
    "sub r0, r3, r12; ldr r3, [sp, #36]; vmov q6, q2; sub r6, r3, r12; ldr r3, [sp, #40];"
    "vmov q5, q2; sub r7, r3, r12; ldr r3, [sp, #44]; sub r3, r3, r12; cmp r4, #0; vmov q1, q2;"
    "dls lr, r4; ldr r4, [sp, #192]")
_BIAS_MVE = "vldrw.u32 q2, [r11], #16"
_INNER_MVE = (
    "vldrb.s32 q3, [r1]; vldrb.s32 q0, [r0], #124; vmul.i32 q0, q0, q3; vadd.i32 q2, q2, q0;"
    "vldrb.s32 q0, [r6], #124; vmul.i32 q0, q0, q3; vadd.i32 q1, q1, q0;"
    "vldrb.s32 q0, [r7], #124; vmul.i32 q0, q0, q3; vadd.i32 q5, q5, q0;"
    "vldrb.s32 q0, [r3], #124; vadd.i32 q4, q4, q3; vmul.i32 q3, q0, q3; add r1, r4;"
    "vadd.i32 q6, q6, q3; le lr, 0b")
_FINISH_MVE = (
    "str r4, [sp, #192]; vldrw.u32 q3, [r10], #16; vctp.32 r12; ldr r3, [sp, #32];"
    "add r4, sp, #16; vmul.i32 q4, q4, r3; ldr r3, [sp, #48]; vadd.i32 q2, q4, q2;"
    "sub r7, r3, r12; ldr r3, [sp, #52]; vadd.i32 q1, q4, q1; sub r6, r3, r12;"
    "ldr r3, [sp, #56]; vadd.i32 q5, q4, q5; sub r0, r3, r12; vmrs r3, p0;"
    "vcmp.s32 gt, q3, r9; vmrs r1, p0; sxth r1, r1; vmsr p0, r1; vadd.i32 q4, q4, q6;"
    "vldrw.u32 q6, [r4]; vpsel q0, q3, q6; vshl.s32 q2, q2, q0; vshl.s32 q1, q1, q0;"
    "vshl.s32 q5, q5, q0; vshl.s32 q0, q4, q0; vldrw.u32 q4, [r8], #16; vpsel q3, q6, q3;"
    "vqrdmulh.s32 q2, q2, q4; vqrdmulh.s32 q1, q1, q4; vqrdmulh.s32 q5, q5, q4;"
    "vqrdmulh.s32 q0, q0, q4; vand q4, q2, q3; vshr.s32 q4, q4, #31; vqadd.s32 q2, q2, q4;"
    "vrshl.s32 q2, q2, q3; vadd.i32 q2, q2, r5; add r1, sp, #72; vldrw.u32 q6, [r1];"
    "vmax.s32 q2, q2, q7; sxth r3, r3; vmsr p0, r3; vmin.s32 q2, q2, q6; ldr r1, [sp, #4];"
    "vand q4, q5, q3; vpst; vstrbt.32 q2, [r1]; vand q2, q1, q3; vshr.s32 q2, q2, #31;"
    "vqadd.s32 q1, q1, q2; vand q2, q0, q3; vshr.s32 q4, q4, #31; vshr.s32 q2, q2, #31;"
    "vqadd.s32 q4, q5, q4; vqadd.s32 q2, q0, q2; vrshl.s32 q1, q1, q3; vrshl.s32 q4, q4, q3;"
    "vrshl.s32 q3, q2, q3; vadd.i32 q1, q1, r5; vadd.i32 q4, q4, r5; vadd.i32 q3, q3, r5;"
    "vmax.s32 q1, q1, q7; vmax.s32 q4, q4, q7; vmax.s32 q3, q3, q7; vmin.s32 q1, q1, q6;"
    "vmin.s32 q4, q4, q6; vmin.s32 q3, q3, q6; ldr r3, [sp, #12]; adds r2, #1; cmp r3, r2; vpst;"
    "vstrbt.32 q1, [r7]; sub r12, r12, #4; vpst; vstrbt.32 q4, [r6]; vpst; vstrbt.32 q3, [r0];"
    "bgt 0b")
_LAST_MVE = (
    "movs r2, #0; sub r6, r12, r0; vdup.32 q2, r2; sub r1, r9, r0; sub r2, r10, r0; cmp r11, #0;"
    "beq 1f; cmp r7, #0; dls lr, r7")
_LAST_BIAS_MVE = "add lr, r11, r4; vldrw.u32 q2, [lr]"
_LAST_INNER_MVE = ("vldrb.s32 q3, [r1], #124; vldrb.s32 q1, [r2]; vadd.i32 q3, q3, r3;"
                   "vmul.i32 q3, q3, q1; add r2, r8; vadd.i32 q2, q2, q3; le lr, 0b")
_LAST_FINISH_MVE = join(
    "ldr r2, [sp, #88]; vctp.32 r0; add r2, r4; vldrw.u32 q1, [r2]; ldr r2, [sp, #92];"
    "vmrs r1, p0; add r2, r4; vldrw.u32 q0, [r2]; movs r2, #0; vcmp.s32 gt, q1, r2",
    SCALE_VECTOR, CLAMP_VECTOR, PREDICATE,
    "ldr r2, [sp, #44]; adds r5, #1; cmp r2, r5; vpst; vstrbt.32 q3, [r6]; add r4, r4, #16;"
    "sub r0, r0, #4; bgt 0b")


def column_scratch_bytes_mve(shape: Geometry) -> int:
    """Bytes of four gathered windows of a channel block."""
    return 4 * _BLOCK_CHANNELS * shape.kernel_rows * shape.kernel_columns


def lower_column_mve(shape: Geometry, site: Site) -> Kernel:
    """Lower `arm_depthwise_conv_s8_opt` on its Helium path.

    Parameters
    ----------
    shape : Geometry
        Channel multiplier one, batch one, no dilation.
    site : Site
        Operands.
    """
    blocks, nests = _plan_mve(shape)
    return build_kernel("arm_depthwise_conv_s8_opt", "depthwise", site, blocks, nests,
                        shape.taps_inside * shape.output_channels)


@lru_cache(maxsize=256)
def _plan_mve(shape: Geometry) -> tuple[tuple[Block, ...], tuple[Nest, ...]]:
    """Blocks and accesses; they depend on the shape alone, and networks repeat shapes."""
    full, rest = divmod(shape.input_channels, _BLOCK_CHANNELS)
    blocks: list[Block] = [block("call", _ENTRY_MVE, 1, cause="kernel_call")]
    drafts: list[Any] = []
    if full:
        columns = Columns(shape=shape, copied_bytes=_BLOCK_CHANNELS,
                          column_step_bytes=_BLOCK_CHANNELS, input_step_bytes=_BLOCK_CHANNELS)
        blocks += _slice_blocks(columns, full)
        drafts.append(repeat("slice", full, *_slice_drafts(columns)))
    if rest:
        columns = Columns(shape=shape, copied_bytes=rest, column_step_bytes=_BLOCK_CHANNELS,
                          input_offset_bytes=full * _BLOCK_CHANNELS)
        blocks += _slice_blocks(columns, 1)
        drafts += _slice_drafts(columns)
    return tuple(blocks), resolve(*drafts)


def _slice_blocks(columns: Columns, slices: int) -> tuple[Block, ...]:
    """Blocks of `slices` channel blocks over all output positions."""
    shape = columns.shape
    taps = shape.kernel_rows * shape.kernel_columns
    quads, left = divmod(shape.pixels, 4)
    calls, lasts = quads * slices, left * slices
    fours = -(-columns.copied_bytes // 4)
    bias, last_bias = (_BIAS_MVE, _LAST_BIAS_MVE) if shape.has_bias else ("", "")
    return (
        block("channel block", _SLICE_MVE, slices, cause="kernel_call"),
        *gather_blocks(DEPTHWISE_GATHER, columns, slices, calls),
        block("four positions", _QUAD_CALL_MVE, calls, cause="kernel_call"),
        block("four channels", join(_CHANNELS_MVE, bias), calls * fours),
        block("multiply 4 x 4", _INNER_MVE, calls * fours * taps, calls * fours),
        block("requantise 4 x 4", _FINISH_MVE, calls * fours, calls),
        block("left-over position", join(_LAST_MVE, last_bias), lasts * fours),
        block("multiply 4", _LAST_INNER_MVE, lasts * fours * taps, lasts * fours),
        block("requantise 4", _LAST_FINISH_MVE, lasts * fours, lasts),
    )


def _slice_drafts(columns: Columns) -> list[Any]:
    """Return accesses of one channel block; the enclosing loop over blocks is named "slice"."""
    shape = columns.shape
    first, step = columns.input_offset_bytes, columns.input_step_bytes
    left = shape.pixels % 4

    def multiply(position: int, steps: dict[str, int]) -> list[Any]:
        return _product_drafts(columns, first, step, 4, position, steps)

    drafts = gather_drafts(columns, multiply)
    for slot in range(left):
        drafts += _product_drafts(columns, first, step, 1, shape.pixels - left + slot, {}, slot)
    return drafts


def _product_drafts(columns: Columns, first: int, step: int, positions: int, position: int,
                    steps: dict[str, int], slot: int = 0) -> list[Any]:
    """Four channels at a time of four gathered positions, or of one."""
    fours, tail = divmod(columns.copied_bytes, 4)
    group = [repeat("four", fours, *_four_channels(columns, first, step, positions, position,
                                                   steps, slot, 4))]
    if tail:
        group += _four_channels(columns, first + 4 * fours, step, positions, position,
                                steps, slot, tail)
    return group


def _four_channels(columns: Columns, first: int, step: int, positions: int, position: int,
                   steps: dict[str, int], slot: int, lanes: int) -> list[Any]:
    """Return accesses of up to four channels, narrower for the last (the library overreads)."""
    shape = columns.shape
    channels = shape.output_channels
    taps = shape.kernel_rows * shape.kernel_columns
    size = taps * _BLOCK_CHANNELS
    column = first - columns.input_offset_bytes  # of this group in the gathered window
    words = floor_width(4 * lanes)
    results = {name: stride * channels for name, stride in steps.items()}
    bias = ([load("bias", words, 4 * first, four=16, slice=4 * step)] if shape.has_bias else [])
    return [
        *bias,
        repeat("tap", taps,
               *lane_moves(load("weights", 4, first, four=4, slice=step, tap=channels), lanes),
               *[move for one in range(positions) for move in lane_moves(
                   load("scratch", 4, (slot + one) * size + column, four=4, tap=_BLOCK_CHANNELS),
                   lanes)]),
        load("parameters", words, 4 * channels + 4 * first, four=16, slice=4 * step),
        load("parameters", words, 4 * first, four=16, slice=4 * step),
        *[move for one in range(positions) for move in lane_moves(
            store("output", 4, (position + one) * channels + first, four=4, slice=step, **results),
            lanes)],
    ]
