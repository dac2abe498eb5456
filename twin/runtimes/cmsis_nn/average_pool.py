"""Average pooling: channel by channel in C, sums of all channels with DSP, sixteen with Helium.

The Helium mix is gcc's at -O3: at -O2 the division loop stays rolled and spills, which the
Apollo510 measurement does not show.

References
----------
ARM-software/CMSIS-NN 6.0, Source/PoolingFunctions/arm_avgpool_s8.c.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.sequences import bookkeeping, entry, floor_width, row_store, vectors
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import BRANCH, block, choose_dialect, draft_kernel, join
from twin.runtimes.lowering.geometry import (
    Geometry,
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    read_geometry,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.nests import bound, closing, guarded, load, repeat, step, store

_FIRST = "ldrsb r1, [r3, #1]!; str r1, [r2, #4]!; cmp r3, r5; bne 0b"
_ACCUMULATE = ("ldrsb r3, [r2, #1]!; ldr r0, [r1, #4]!; qadd r3, r3, r0; cmp r2, r5; str r3, [r1];"
               "bne 0b")
_DIVIDE = ("ldr r5, [r7, #4]!; cmp r5, #0; ite gt; addgt r5, lr; suble r5, r5, lr;"
           "sdiv r5, r5, r0; cmp r5, r1; it lt; movlt r5, r1; cmp r5, r2; it ge; movge r5, r2;"
           "cmp r3, r7; strb r5, [r12, #1]!; bne 0b")

_SUM_TAP = {  # one window position inside the input: bounds checks, load, sum, count
    "thumb2": "orrs r4, r1, r3; bmi 1f; cmp r11, r1; ble 1f; cmp r10, r3; ble 1f;"
              "ldrsb r4, [r2]; adds r6, #1; add r7, r4; adds r3, #1; cmp r3, r0; add r2, r12;"
              "bne 0b",
    "thumb1": "movs r0, r1; orrs r0, r3; bmi 1f; mov r0, r9; cmp r0, r1; ble 1f; cmp r8, r3;"
              "ble 1f; movs r0, #0; ldrsb r0, [r2, r0]; add r11, r0; movs r0, #1; mov r12, r0;"
              "add r10, r12; adds r3, #1; adds r2, r2, r6; cmp r3, r4; bne 0b",
    "rv32": "bltz a1, 1f; bltz a3, 1f; bge a1, s1, 1f; bge a3, s2, 1f; lb a4, 0(a2);"
            "addi a6, a6, 1; add a7, a7, a4; addi a3, a3, 1; add a2, a2, s3; bne a3, a0, 0b",
}
_SKIP_TAP = {
    "thumb2": "orrs r4, r1, r3; bmi 1f; adds r3, #1; cmp r3, r0; add r2, r12; bne 0b",
    "thumb1": "movs r0, r1; orrs r0, r3; bmi 1f; adds r3, #1; adds r2, r2, r6; cmp r3, r4; bne 0b",
    "rv32": "bltz a1, 1f; bltz a3, 1f; addi a3, a3, 1; add a2, a2, s3; bne a3, a0, 0b",
}
_AVERAGE = {  # rounded division by the count, clamp, store
    "thumb2": "cmp r7, #0; add r3, r6, r6, lsr #31; ite gt; addgt r7, r7, r3, asr #1;"
              "suble r7, r7, r3, asr #1; sdiv r7, r7, r6; ldr r3, [sp, #40]; cmp r7, r3; it lt;"
              "movlt r7, r3; ldr r3, [sp, #44]; cmp r7, r3; it ge; movge r7, r3; strb r7, [r5]",
    "thumb1": "mov r0, r10; lsrs r3, r0, #31; adds r0, r0, r3; asrs r0, r0, #1; mov r3, r11;"
              "cmp r3, #0; ble 1f; adds r0, r0, r3; mov r1, r10; bl __aeabi_idiv; cmp r1, #0;"
              "beq 2f; movs r2, #0; " + "lsrs r3, r0, #1; cmp r3, r1; bcc 3f;" * 8
              + "lsls r3, r1, #1; cmp r0, r3; b 5f; lsls r2, r2, #1; adds r2, #1;" * 8
              + "movs r0, r2; bx lr; ldr r3, [sp, #40]; cmp r0, r3; bge 6f; movs r0, r3;"
              "ldr r3, [sp, #44]; cmp r0, r3; ble 7f; movs r0, r3; strb r0, [r5]",
    "rv32": "srli a4, a6, 31; add a4, a4, a6; srai a4, a4, 1; blez a7, 1f; add a7, a7, a4;"
            "div a7, a7, a6; lw a4, 40(sp); bge a7, a4, 2f; mv a7, a4; lw a4, 44(sp);"
            "bge a4, a7, 3f; mv a7, a4; sb a7, 0(a5)",
}


def _lower_c(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """One channel of one position at a time."""
    shape, dialect = read_geometry(graph, layer), choose_dialect(site.isa)
    channels, end = shape.input_channels, BRANCH[dialect]
    pixels, taps = shape.batches * shape.pixels, shape.batches * shape.taps_inside * channels
    lines = pixels * channels * shape.kernel_rows
    return (draft_kernel(
        "arm_avgpool_s8", "pool", site,
        entry(dialect, 70, 1),
        *over_pixels(
            shape,
            block("pixel", join(bookkeeping(dialect, 10, 6, 12), end), pixels, 1),
            repeat("c", channels,
                   closing("channel", join(bookkeeping(dialect, 4, 2, 7, 1), _AVERAGE[dialect],
                                           end)),
                   repeat("ky", shape.kernel_rows,
                          closing("window row", join(bookkeeping(dialect, 0, 0, 6), end))),
                   block("position", _SUM_TAP[dialect], taps, lines),
                   block("position outside", _SKIP_TAP[dialect],
                         shape.batches * shape.taps * channels - taps),
                   over_window(shape, window_load(shape, needed_bounds(shape), c=1)),
                   store("output", 1, c=1, **output_steps(shape))))),)


def _lower_dsp(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Return sums of all channels of a position in a buffer of 32-bit words."""
    shape, dialect = read_geometry(graph, layer), choose_dialect(site.isa)
    channels, end = shape.input_channels, BRANCH[dialect]
    pixels = shape.batches * shape.pixels
    later = shape.batches * shape.taps_inside - pixels
    source = window_load(shape, needed_bounds(shape), c=1)
    read, write = load("scratch", 4, c=4), store("scratch", 4, c=4)
    not_first = bound(-1, 1 << 30, ky=shape.kernel_columns, kx=1)
    return (draft_kernel(
        "arm_avgpool_s8", "pool", site,
        entry(dialect, 70, 1),
        *over_pixels(
            shape,
            block("pixel", join(bookkeeping(dialect, 14, 8, 50), end), pixels, 1),
            block("window row", join(bookkeeping(dialect, 3, 1, 4), end),
                  shape.batches * shape.window_rows, pixels),
            repeat("c", channels, closing("first position", _FIRST), write),
            block("position", join(bookkeeping(dialect, 1, 1, 10), end), later, pixels),
            block("accumulate", _ACCUMULATE, later * channels, later),
            over_window(shape, repeat(
                "c", channels, source, *[guarded(one, *source.bounds, not_first)
                                         for one in (read, write)])),
            repeat("c", channels, closing("divide", _DIVIDE), read,
                   store("output", 1, c=1, **output_steps(shape))))),)


def _scratch_bytes_dsp(graph: Graph, layer: Layer, isa: str) -> int:
    """Return a 32-bit sum per channel."""
    return 4 * read_geometry(graph, layer).input_channels


_SAVE_MVE = "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d15}; sub sp, #188"
_RESTORE_MVE = ("movs r0, #0; add sp, #188; vpop {d8-d15};"
                "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_ENTRY_MVE = join(_SAVE_MVE, (
    "mov r5, r2; ldrd r4, r6, [sp, #288]; ldr r7, [r4, #4]; ldr r4, [r4, #8];"
    "ldrd r2, r6, [r6, #4]; str r4, [sp, #136]; mov r4, r3; ldrd lr, r11, [r5, #8];"
    "ldr r3, [r1, #4]; cmp r2, #0; str r3, [sp, #124]; ldr r3, [r5, #4];"
    "ldr r0, [sp, #296]; str r3, [sp, #120]; ldr r3, [r1]; str r6, [sp, #116]; str r3, [sp, #128];"
    "str r7, [sp, #132]; ldrd r5, r3, [r1, #8]; str r5, [sp, #140]; ldrd r5, r1, [r1, #16];"
    "vdup.32 q0, r5; add r5, sp, #72; vstrw.32 q0, [r5]; vdup.32 q0, r1;"
    "add r1, sp, #88; vstrw.32 q0, [r1]; add r1, r0, r11;"
    "str r1, [sp, #108]; negs r1, r3; mul r0, r11, r6; mul r6, lr, r11; str r0, [sp, #148];"
    "str r12, [sp, #156]"), _RESTORE_MVE)
_ROW_MVE = (
    "ldr r0, [sp, #116]; cmp r0, #0; ldr r0, [sp, #132]; ldr r7, [sp, #120]; add r0, r1;"
    "cmp r7, r0; it ge; movge r7, r0; mov lr, #0; ldr r0, [sp, #108]; mov r8, r11;"
    "str r0, [sp, #64]; bic r0, r1, r1, asr #31; str r0, [sp, #68]; mul r0, r4, r0;"
    "str r0, [sp, #144]; ldr r0, [sp, #140]; mov r11, r9; rsb r12, r0, #0; strd r2, r3, [sp, #160];"
    "add r0, r6, r9; mov r3, lr; mov r9, r7; str r0, [sp, #152]; str r12, [sp, #112];"
    "mov r9, r11; mov r11, r8; ldr r2, [sp, #160]; ldr r3, [sp, #164]; ldr r0, [sp, #108];"
    "ldr r5, [sp, #148]; adds r3, #1; add r0, r5; str r0, [sp, #108]; ldr r0, [sp, #124];"
    "cmp r2, r3; add r1, r0; bne 0b")
_POSITION_MVE = (
    "ldr r0, [sp, #112]; ldr r2, [sp, #136]; add r2, r0; cmp r2, r4; it ge; movge r2, r4;"
    "cmp r11, #0; mov r12, r2; bic r2, r0, r0, asr #31; ldr r0, [sp, #156]; ldr r5, [sp, #152];"
    "str r0, [sp, #20]; ldr r0, [sp, #144]; strd r3, r1, [sp, #172]; adds r0, r2, r0;"
    "mla r0, r11, r0, r5; mov r5, sp; subs r0, #16; str r0, [sp, #104]; sub r0, r12, r2;"
    "mov lr, r11; vstrh.16 q3, [r5]; mov r1, r0; str r4, [sp, #168]; str r2, [sp, #28];"
    "str r6, [sp, #180]; ldrd r4, r3, [sp, #168]; ldrd r1, r6, [sp, #176]; ldr r2, [sp, #112];"
    "ldr r0, [sp, #128]; adds r3, #1; add r2, r0; str r2, [sp, #112]; ldr r2, [sp, #64];"
    "add r2, r11; str r2, [sp, #64]; ldr r2, [sp, #116]; cmp r2, r3; bne 0b")
_CHANNELS_MVE = (
    "vctp.8 lr; ldr r3, [sp, #64]; vdup.32 q0, r10; sub r3, r3, lr; str r3, [sp, #24];"
    "vmrs r3, p0; uxth r7, r3; ldr r3, [sp, #68]; vmov q6, q0; cmp r3, r9; vmov q5, q0;"
    "vmov q4, q0; sub lr, lr, #16; mov r2, sp; mov r5, r3; movs r3, #0; ldr r0, [sp, #104];"
    "vldrh.u16 q3, [r2]; ldr r2, [sp, #28]; sub r6, r0, lr; sxth r4, r7; str lr, [sp, #32]")
_WINDOW_ROW_MVE = ("cmp r2, r12; bge 1f; sub lr, r12, r2; dls lr, lr; mov r0, r6; add r3, r1;"
                   "adds r5, #1; cmp r9, r5; add r6, r8; bne 0b")
_SUM_MVE = ("vmsr p0, r4; vpst; vldrbt.u8 q1, [r0]; vmovlb.s8 q2, q1; vmovlb.s16 q7, q2;"
            "vmovlt.s8 q3, q1; vadd.i32 q0, q0, q7; vmovlt.s16 q7, q2; vadd.i32 q6, q6, q7;"
            "vmovlb.s16 q7, q3; vadd.i32 q5, q5, q7; vmovlt.s16 q7, q3; add r0, r11;"
            "vadd.i32 q4, q4, q7; le lr, 0b")
_SIGNS_MVE = (
    "mov r0, sp; ldr lr, [sp, #32]; vstrh.16 q3, [r0]; str r2, [sp, #28]; cmp r3, #0;"
    "vcmp.s32 gt, q0, r10; vmrs r5, p0; vcmp.s32 gt, q6, r10; vmrs r4, p0; vcmp.s32 gt, q5, r10;"
    "sxth r2, r5; str r2, [sp, #32]; sxth r2, r4; strh r7, [sp, #62]; str r2, [sp, #36];"
    "vmrs r7, p0; mvns r2, r4; vcmp.s32 gt, q4, r10; str r2, [sp, #40]; sxth r2, r7; vmrs r6, p0;"
    "str r2, [sp, #44]; mvns r2, r7; str r2, [sp, #48]; sxth r2, r6; str r2, [sp, #52];"
    "mvns r2, r6; str r2, [sp, #56]; mvns r5, r5; asrs r0, r3, #1")
_DIVIDE_MVE = (  # four sums: round by half the count with the sign, divide lane by lane, clamp
    "ldrh r2, [sp, #36]; vmsr p0, r2; vmov q0, q6; ldrh r2, [sp, #40]; vpst;"
    "vaddt.i32 q0, q6, r0; vmsr p0, r2; vpst; vsubt.i32 q0, q0, r0; vmov r7, s0;"
    "vmov.32 r6, d0[1]; sdiv r7, r7, r3; vmov.32 r5, d1[0]; vmov.32 r4, d1[1]; vmov q0, q6;"
    "sdiv r6, r6, r3; vmov.32 d0[0], r7; sdiv r5, r5, r3; vmov.32 d0[1], r6; sdiv r4, r4, r3;"
    "vmov.32 d1[0], r5; vmov.32 d1[1], r4; vmax.s32 q0, q0, q7; vmin.s32 q0, q0, q3")
_NARROW_MVE = (
    "add r2, sp, #72; vldrw.u32 q7, [r2]; add r2, sp, #88; vldrw.u32 q3, [r2]; vmovnb.i32 q2, q0;"
    "vmovnt.i32 q2, q0; vmov q6, q7; mov r2, sp; vmov q7, q3; vldrh.u16 q3, [r2];"
    "vmovnb.i32 q3, q0; vmovnt.i32 q3, q0; vmovnb.i16 q1, q2; mov r3, sp; ldrh r2, [sp, #62];"
    "vmovnt.i16 q1, q3; vmsr p0, r2; vstrh.16 q3, [r3]; ldr r3, [sp, #24]; vpst;"
    "vstrbt.8 q1, [r3]; ldr r3, [sp, #20]; subs r3, #1; str r3, [sp, #20]; bne 0b")


def _lower_mve(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Sixteen channels at a time; the sums stay in vector registers."""
    shape = read_geometry(graph, layer)
    full, tail = divmod(shape.input_channels, 16)
    per_pixel = vectors(shape.input_channels)
    window_rows = shape.batches * shape.window_rows * per_pixel
    pixels, rows = shape.batches * shape.pixels, shape.batches * shape.output_rows
    return (draft_kernel(
        "arm_avgpool_s8", "pool", site,
        block("call", _ENTRY_MVE, shape.batches, cause="kernel_call"),
        block("output row", _ROW_MVE, rows, shape.batches),
        *over_pixels(
            shape,
            block("output position", _POSITION_MVE, pixels, rows),
            repeat("vector", per_pixel,
                   step("16 channels", _CHANNELS_MVE),
                   block("window row", _WINDOW_ROW_MVE, window_rows, pixels * per_pixel),
                   block("sum 16", _SUM_MVE, shape.batches * shape.taps_inside * per_pixel,
                         window_rows),
                   closing("divide 16", join(_SIGNS_MVE, *[_DIVIDE_MVE] * 4, _NARROW_MVE))),
            repeat("vector", full, *_vector(shape, 16, 0)),
            *(_vector(shape, floor_width(tail), 16 * full) if tail else ()))),)


def _vector(shape: Geometry, width_bytes: int, offset_bytes: int) -> list[Any]:
    """Return accesses of up to sixteen channels from `offset_bytes` on."""
    source = window_load(shape, window_bounds(shape), width_bytes, 1, vector=16)
    return [
        over_window(shape, source._replace(offset_bytes=source.offset_bytes + offset_bytes)),
        row_store("output", offset_bytes, vector=16, **output_steps(shape)
                  )._replace(width_bytes=width_bytes)]


KERNELS: Kernels = {
    "average_pool_2d": {
        "c": Lowering(lower=_lower_c),
        "dsp": Lowering(lower=_lower_dsp, scratch_bytes=_scratch_bytes_dsp),
        "mve": Lowering(lower=_lower_mve),
    },
}
