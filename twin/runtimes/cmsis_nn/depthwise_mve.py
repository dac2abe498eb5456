"""Depthwise convolution on Helium: four positions gathered, four channels multiplied at once.

References
----------
ARM-software/CMSIS-NN 6.0, Source/ConvolutionFunctions: arm_depthwise_conv_wrapper_s8.c (choice
of function), arm_depthwise_conv_s8_opt.c, arm_depthwise_conv_get_buffer_sizes_s8.c;
Source/NNSupportFunctions/arm_nn_depthwise_conv_nt_t_s8.c.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from hwmodels.kernel import Block, Kernel, Nest
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.conv_mve import lower_general
from twin.runtimes.cmsis_nn.dialect import block, build_kernel, join
from twin.runtimes.cmsis_nn.gather_mve import (
    DEPTHWISE_GATHER,
    Columns,
    gather_blocks,
    gather_drafts,
)
from twin.runtimes.cmsis_nn.geometry import Geometry, read_geometry
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.cmsis_nn.vector_mve import (
    CLAMP,
    PREDICATE,
    SCALE_VECTOR,
    floor_width,
    int8_only,
    lane_moves,
)
from twin.runtimes.lowering import Site

_BLOCK_CHANNELS = 124
"""CH_IN_BLOCK_MVE: channels gathered at a time, and the step between window positions."""

_TO_CONV_ABOVE = 8
"""Output channels above which a one-channel input runs as an ordinary convolution."""

_SCALAR_ISA = "armv8-m-dsp"
"""Instruction set of the functions that have no vector path."""

_ENTRY = (
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
_SLICE = (
    "ldr r3, [sp, #200]; sub r3, r3, lr; str r3, [sp, #188]; ldr r3, [sp, #336]; add r3, lr;"
    "str r3, [sp, #120]; ldr r3, [sp, #172]; cmp r3, #0; mov r9, #0; ldr r3, [sp, #204];"
    "ldr r12, [sp, #116]; str r3, [sp, #100]; ldr r3, [sp, #88]; mov r4, r9;"
    "add r3, r3, lr, lsl #2; str r3, [sp, #148]; ldr r3, [sp, #92]; mov r7, r8;"
    "add r3, r3, lr, lsl #2; str r3, [sp, #152]; ldr r3, [sp, #328]; ldr r10, [sp, #176];"
    "str r3, [sp, #156]; ldr r3, [sp, #208]; ldr r8, [sp, #124]; ldr r3, [sp, #128];"
    "negs r5, r3; mov r2, r9; mov r3, r12; str r6, [sp, #212]; ldr r3, [sp, #188];"
    "adds r6, #1; cmp r3, #124; str r3, [sp, #124]; ldr r3, [sp, #180]; add lr, lr, #124;"
    "cmp r3, r6; bgt 0b")
_QUAD_CALL = (
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
_CHANNELS = (
    "ldr r3, [sp, #68]; vdup.32 q2, r9; sub r3, r3, r12; str r3, [sp, #4]; cmp r11, #0; beq 1f;"
    "ldr r3, [sp, #64]; ldr r4, [sp, #8]; sub r1, r3, r12; ldr r3, [sp, #60]; vdup.32 q4, r9;"
    "sub r0, r3, r12; ldr r3, [sp, #36]; vmov q6, q2; sub r6, r3, r12; ldr r3, [sp, #40];"
    "vmov q5, q2; sub r7, r3, r12; ldr r3, [sp, #44]; sub r3, r3, r12; cmp r4, #0; vmov q1, q2;"
    "dls lr, r4; ldr r4, [sp, #192]")
_BIAS = "vldrw.u32 q2, [r11], #16"
_INNER = (
    "vldrb.s32 q3, [r1]; vldrb.s32 q0, [r0], #124; vmul.i32 q0, q0, q3; vadd.i32 q2, q2, q0;"
    "vldrb.s32 q0, [r6], #124; vmul.i32 q0, q0, q3; vadd.i32 q1, q1, q0;"
    "vldrb.s32 q0, [r7], #124; vmul.i32 q0, q0, q3; vadd.i32 q5, q5, q0;"
    "vldrb.s32 q0, [r3], #124; vadd.i32 q4, q4, q3; vmul.i32 q3, q0, q3; add r1, r4;"
    "vadd.i32 q6, q6, q3; le lr, 0b")
_FINISH = (
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
_LAST = (
    "movs r2, #0; sub r6, r12, r0; vdup.32 q2, r2; sub r1, r9, r0; sub r2, r10, r0; cmp r11, #0;"
    "beq 1f; cmp r7, #0; dls lr, r7")
_LAST_BIAS = "add lr, r11, r4; vldrw.u32 q2, [lr]"
_LAST_INNER = ("vldrb.s32 q3, [r1], #124; vldrb.s32 q1, [r2]; vadd.i32 q3, q3, r3;"
               "vmul.i32 q3, q3, q1; add r2, r8; vadd.i32 q2, q2, q3; le lr, 0b")
_LAST_FINISH = join(
    "ldr r2, [sp, #88]; vctp.32 r0; add r2, r4; vldrw.u32 q1, [r2]; ldr r2, [sp, #92];"
    "vmrs r1, p0; add r2, r4; vldrw.u32 q0, [r2]; movs r2, #0; vcmp.s32 gt, q1, r2",
    SCALE_VECTOR, CLAMP, PREDICATE,
    "ldr r2, [sp, #44]; adds r5, #1; cmp r2, r5; vpst; vstrbt.32 q3, [r6]; add r4, r4, #16;"
    "sub r0, r0, #4; bgt 0b")


@int8_only
def lower_depthwise(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a depthwise convolution to the Helium function the library's wrapper chooses.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `depthwise_conv_2d`.
    site : Site
        Operands: input, weights, bias, parameters, output, scratch.

    Notes
    -----
    A dilated window or a channel multiplier above one runs in scalar code, like on other cores.
    """
    shape = read_geometry(graph, layer)
    if shape.input_channels == 1 and shape.output_channels > _TO_CONV_ABOVE:
        return (_lower_to_conv(shape, site),)
    if not _is_vector(shape):
        from twin.runtimes.cmsis_nn.depthwise import lower_depthwise as lower_scalar
        return lower_scalar(graph, layer, replace(site, isa=_SCALAR_ISA))
    return (_lower_vector(shape, site),)


def scratch_bytes_depthwise(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory: four gathered windows of a channel block, or what the convolution needs."""
    shape = read_geometry(graph, layer)
    taps = shape.kernel_rows * shape.kernel_columns
    if shape.input_channels == 1 and shape.output_channels > _TO_CONV_ABOVE:
        return 4 * 8 * -(-taps // 8) + taps * shape.output_channels
    return 4 * _BLOCK_CHANNELS * taps if _is_vector(shape) else 0


def _is_vector(shape: Geometry) -> bool:
    return (shape.input_channels == shape.output_channels and shape.batches == 1
            and shape.window.dilation == (1, 1))


def _lower_vector(shape: Geometry, site: Site) -> Kernel:
    blocks, nests = _plan_vector(shape)
    return build_kernel("arm_depthwise_conv_s8_opt", "depthwise", site, blocks, nests,
                        shape.taps_inside * shape.output_channels)


@lru_cache(maxsize=256)
def _plan_vector(shape: Geometry) -> tuple[tuple[Block, ...], tuple[Nest, ...]]:
    """Blocks and accesses; they depend on the shape alone, and networks repeat shapes."""
    full, rest = divmod(shape.input_channels, _BLOCK_CHANNELS)
    blocks: list[Block] = [block("call", _ENTRY, 1, cause="kernel_call")]
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
    bias, last_bias = (_BIAS, _LAST_BIAS) if shape.has_bias else ("", "")
    return (
        block("channel block", _SLICE, slices, cause="kernel_call"),
        *gather_blocks(DEPTHWISE_GATHER, columns, slices, calls),
        block("four positions", _QUAD_CALL, calls, cause="kernel_call"),
        block("four channels", join(_CHANNELS, bias), calls * fours),
        block("multiply 4 x 4", _INNER, calls * fours * taps, calls * fours),
        block("requantise 4 x 4", _FINISH, calls * fours, calls),
        block("left-over position", join(_LAST, last_bias), lasts * fours),
        block("multiply 4", _LAST_INNER, lasts * fours * taps, lasts * fours),
        block("requantise 4", _LAST_FINISH, lasts * fours, lasts),
    )


def _slice_drafts(columns: Columns) -> list[Any]:
    """Accesses of one channel block; the enclosing loop over blocks is named "slice"."""
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
    """Accesses of up to four channels; narrower where fewer are left (the library overreads)."""
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


def _lower_to_conv(shape: Geometry, site: Site) -> Kernel:
    """Transpose the weights behind the columns in scratch, then run the ordinary convolution.

    The convolution's accesses keep naming the weights: the transposed copy is as large.
    """
    taps, channels = shape.kernel_rows * shape.kernel_columns, shape.output_channels
    transposed = block(
        "transpose weights", "ldrsb r3, [r1], r2; strb r3, [r0], #1; subs r4, #1; bne 0b",
        taps * channels, channels, "data_copy")
    copy = resolve(repeat("out", channels, repeat(
        "tap", taps, load("weights", 1, 0, out=1, tap=channels),
        store("scratch", 1, 4 * 8 * -(-taps // 8), out=taps, tap=1))))
    kernel = lower_general(shape, 1, site)
    return replace(kernel, name="arm_depthwise_conv_wrapper_s8", family="depthwise",
                   blocks=(transposed, *kernel.blocks), nests=(*copy, *kernel.nests))
