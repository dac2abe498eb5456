"""Maximum pooling: the first position copied, the others compared, then one clamp.

References
----------
ARM-software/CMSIS-NN 6.0, Source/PoolingFunctions/arm_max_pool_s8.c.
"""

from __future__ import annotations

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.sequences import (
    bookkeeping,
    entry,
    row_load,
    row_moves,
    row_store,
    vectors,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import (
    BRANCH,
    block,
    choose_dialect,
    draft_kernel,
    join,
    plain,
)
from twin.runtimes.lowering.geometry import (
    needed_bounds,
    output_steps,
    over_pixels,
    over_window,
    read_geometry,
    window_bounds,
    window_load,
)
from twin.runtimes.lowering.libc import (
    COPY_4_FROM_STACK,
    COPY_4_TO_STACK,
    copy_blocks,
    copy_moves,
)
from twin.runtimes.lowering.nests import bound, closing, guarded, load, repeat, step, store

_COMPARE_4 = {  # four channels of one window position against the maximum so far
    "thumb2": "ldr r0, [r5]; ldr r3, [r2], #4; sxtb r8, r0; sxtb r4, r3; cmp r8, r4; it lt;"
              "movlt r8, r4; movs r4, #0; sbfx r9, r0, #8, #8; bfi r4, r8, #0, #8;"
              "sbfx r8, r3, #8, #8; cmp r8, r9; it lt; movlt r8, r9; bfi r4, r8, #8, #8;"
              "sbfx r9, r0, #16, #8; sbfx r8, r3, #16, #8; cmp r8, r9; asr r3, r3, #24;"
              "asr r0, r0, #24; it lt; movlt r8, r9; cmp r3, r0; it lt; movlt r3, r0;"
              "bfi r4, r8, #16, #8; bfi r4, r3, #24, #8; str r4, [r5], #4; cmp r5, r7; bne 0b",
    "thumb1": join(
        "mov r1, r5", COPY_4_TO_STACK, "mov r1, r9", COPY_4_TO_STACK,
        *["ldr r3, [sp, #4]; sxtb r3, r3; ldr r0, [sp, #8]; sxtb r0, r0; cmp r3, r0; bge 1f;"
          "movs r0, r3; str r0, [sp, #4]"] * 4, "mov r0, r5", COPY_4_FROM_STACK,
        bookkeeping("thumb1", 0, 0, 10),
        "ldr r3, [sp, #12]; adds r3, #4; str r3, [sp, #12]; adds r5, #4; subs r7, #1; bne 0b"),
    "rv32": join(*["lbu a3, 0(a2); sb a3, 8(sp); lbu a0, 0(a5); sb a0, 12(sp)"] * 4,
                 "lw a3, 8(sp); lw a0, 12(sp)",
                 *["slli a4, a3, 24; srai a4, a4, 24; slli a6, a0, 24; srai a6, a6, 24;"
                   "bge a6, a4, 1f; sb a4, 12(sp)"] * 4,
                 *["lbu a0, 12(sp); slli a4, a0, 8; or a6, a6, a4; sb a0, 0(a5)"] * 4,
                 bookkeeping("rv32", 0, 0, 8),
                 "addi a2, a2, 4; addi a5, a5, 4; bne a5, a7, 0b"),
}
_COMPARE_1 = {
    "thumb2": "ldrsb r3, [r2], #1; ldrsb r0, [r5]; cmp r3, r0; it gt; movgt r0, r3;"
              "strb r0, [r5], #1; cmp r5, r7; bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r2, r3]; movs r0, #0; ldrsb r0, [r5, r0]; cmp r3, r0;"
              "ble 1f; movs r0, r3; strb r0, [r5]; adds r2, #1; adds r5, #1; cmp r5, r7; bne 0b",
    "rv32": "lb a3, 0(a2); lb a0, 0(a5); bge a0, a3, 1f; mv a0, a3; sb a0, 0(a5); addi a2, a2, 1;"
            "addi a5, a5, 1; bne a5, a7, 0b",
}
_CLAMP_4 = {
    "thumb2": "ldr r3, [r4]; sxtb r12, r3; cmp r12, r9; sbfx r7, r3, #8, #8; it lt; movlt r12, r9;"
              "sxtb r12, r12; cmp r7, r9; sbfx r0, r3, #16, #8; it lt; movlt r7, r9; cmp r12, r5;"
              "sxtb r7, r7; it ge; movge r12, r5; cmp r0, r9; asr r3, r3, #24; it lt; movlt r0, r9;"
              "cmp r7, r5; it ge; movge r7, r5; cmp r3, r9; sxtb r0, r0; it lt; movlt r3, r9;"
              "movs r6, #0; sxtb r3, r3; cmp r0, r5; bfi r6, r12, #0, #8; it ge; movge r0, r5;"
              "bfi r6, r7, #8, #8; cmp r3, r5; it ge; movge r3, r5; bfi r6, r0, #16, #8;"
              "bfi r6, r3, #24, #8; str r6, [r4], #4; cmp r4, r2; bne 0b",
    "thumb1": join(
        "mov r1, r4", COPY_4_TO_STACK,
        *["ldr r3, [sp, #4]; sxtb r3, r3; cmp r3, r6; bge 1f; movs r3, r6; cmp r3, r5; ble 2f;"
          "movs r3, r5; str r3, [sp, #4]"] * 4, "mov r0, r4", COPY_4_FROM_STACK,
        "adds r4, #4; cmp r4, r2; bne 0b"),
    "rv32": join(*["lbu a3, 0(a4); sb a3, 12(sp)"] * 4, "lw a3, 12(sp)",
                 *["slli a0, a3, 24; srai a0, a0, 24; bge a0, s1, 1f; mv a0, s1; bge s2, a0, 2f;"
                   "mv a0, s2; sb a0, 12(sp)"] * 4, *["lbu a0, 12(sp); sb a0, 0(a4)"] * 4,
                 "addi a4, a4, 4; bne a4, a2, 0b"),
}
_CLAMP_1 = {
    "thumb2": "ldrsb r3, [r4]; cmp r3, r9; it lt; movlt r3, r9; cmp r3, r5; it ge; movge r3, r5;"
              "strb r3, [r4], #1; cmp r4, r2; bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r4, r3]; cmp r3, r6; bge 1f; movs r3, r6; cmp r3, r5;"
              "ble 2f; movs r3, r5; strb r3, [r4]; adds r4, #1; cmp r4, r2; bne 0b",
    "rv32": "lb a3, 0(a4); bge a3, s1, 1f; mv a3, s1; bge s2, a3, 2f; mv a3, s2; sb a3, 0(a4);"
            "addi a4, a4, 1; bne a4, a2, 0b",
}


def _lower(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Four channels of a position at a time; at an edge every position inside is a comparison."""
    shape, dialect = read_geometry(graph, layer), choose_dialect(site.isa)
    text, end, channels = plain(dialect), BRANCH[dialect], shape.input_channels
    pixels = shape.batches * shape.pixels
    later = shape.batches * shape.taps_inside - pixels
    steps, needed = output_steps(shape), needed_bounds(shape)
    inside = (*needed, bound(-1, 1 << 30, ky=shape.kernel_columns, kx=1))
    compared = [repeat("c", count, *[
        one._replace(offset_bytes=one.offset_bytes + done + width * k, bounds=inside)
        for one in (load("output", width, c=size, **steps),
                    window_load(shape, needed, width, 1, c=size),
                    store("output", width, c=size, **steps)) for k in range(times)])
        for count, done, size, width, times in _parts(channels, text)]
    clamped = [repeat("element", count, closing(name, code[text]), *[
        one("output", width, done + width * k, element=size)
        for one in (load, store) for k in range(times)])
        for (count, done, size, width, times), (name, code) in zip(
            _parts(pixels * channels, text), (("clamp four", _CLAMP_4), ("clamp", _CLAMP_1)),
            strict=True)]
    quads, rest = divmod(channels, 4)
    return (draft_kernel(
        "arm_max_pool_s8", "pool", site,
        entry(dialect, 60, 1),
        *over_pixels(
            shape,
            block("pixel", join(bookkeeping(dialect, 14, 6, 53, 3), end), pixels, 1),
            block("window row", join(bookkeeping(dialect, 4, 1, 4), end),
                  shape.batches * shape.window_rows, pixels),
            *copy_blocks(dialect, channels, pixels),
            *copy_moves(dialect, channels, window_load(shape, needed), store("output", 1, **steps)),
            block("position", join(bookkeeping(dialect, 3, 1, 6), end), later, pixels),
            block("compare four", _COMPARE_4[text], later * quads, later),
            block("compare", _COMPARE_1[text], later * rest, later),
            over_window(shape, *compared)),
        *clamped),)


def _parts(count: int, text: str) -> tuple[tuple[int, int, int, int, int], ...]:
    """Four at once, then single: how many, first byte, bytes each, width, accesses."""
    quads, rest = divmod(count, 4)
    return (quads, 0, 4, *((4, 1) if text == "thumb2" else (1, 4))), (rest, 4 * quads, 1, 1, 1)


_ENTRY_MVE = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d9}; sub sp, #116;"
    "str r3, [sp, #52]; ldr r3, [r2, #4]; ldrd r0, r4, [sp, #168]; str r3, [sp, #68];"
    "ldr r3, [r1, #4]; ldr r7, [r4, #4]; str r3, [sp, #72]; ldr r4, [r4, #8]; ldr r3, [r1];"
    "str r4, [sp, #16]; str r3, [sp, #40]; ldr r4, [r0, #4]; ldr r3, [r1, #8]; ldr r0, [r0, #8];"
    "cmp r7, #0; ldr r6, [r1, #12]; str r4, [sp, #76]; str r0, [sp, #44]; ldr r12, [sp, #176];"
    "str r7, [sp, #56]; str r3, [sp, #60]; ldrd r9, r0, [r2, #8]; ldrd r4, r1, [r1, #16];"
    "mov r8, #0; add r2, r0, #30; adds r3, r0, #15; negs r5, r6; mul r2, r0, r9; mov r10, r9;"
    "str r12, [sp, #176]; mov r9, r8; mov r7, r6; str r2, [sp, #12]; ldr r2, [sp, #16];"
    "strd r4, r1, [sp, #84]; mul r2, r0, r2; str r2, [sp, #80]; ldr r2, [sp, #60];"
    "mov r11, r3, asr #4; negs r2, r2; str r2, [sp, #64]; ldrd r4, r1, [sp, #84];"
    "ldr r12, [sp, #176]; ldr r3, [sp, #56]; vdup.8 q1, r1; mul r3, r2, r3; mul r3, r0, r3;"
    "adds r2, r3, #15; vdup.8 q2, r4; mov r2, r2, asr #4; dls lr, r2; add r12, r3; movs r0, #0;"
    "add sp, #116; vpop {d8-d9}; ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_ROW_MVE = (
    "ldr r3, [sp, #16]; cmp r3, #0; cmp r12, #0; ite le; movle r5, r7; movgt r5, #0;"
    "ldr r3, [sp, #68]; ldr r2, [sp, #76]; add r3, r7; cmp r3, r2; it ge; movge r3, r2;"
    "movs r4, #0; str r5, [sp, #36]; add r5, r12; mul r5, r10, r5; ldr r6, [sp, #60];"
    "strd r10, r12, [sp, #92]; strd r9, r8, [sp, #100]; ldr r2, [sp, #64]; mov r1, r6;"
    "add lr, r10, r6; str r5, [sp, #48]; add r6, r8, r0; str r3, [sp, #8]; str r7, [sp, #108];"
    "ldrd r9, r8, [sp, #100]; ldrd r10, r12, [sp, #92]; ldr r3, [sp, #80]; ldr r7, [sp, #108];"
    "add r8, r3; ldr r3, [sp, #72]; add r9, r9, #1; add r12, r3; subs r7, r7, r3;"
    "ldr r3, [sp, #56]; cmp r3, r9; bne 0b")
_POSITION_MVE = (
    "ldr r3, [sp, #44]; cmp r2, #0; ite le; movle r8, r1; movgt r8, #0; cmp r3, lr; it ge;"
    "movge r3, lr; ldr r5, [sp, #8]; mov r12, r3; ldr r3, [sp, #36]; sub r10, r6, r0; cmp r5, r3;"
    "ldr r5, [sp, #48]; mov r9, r3; adds r7, r2, r5; ldr r5, [sp, #52]; add r7, r8;"
    "mla r7, r0, r7, r5; movs r5, #0; strd r2, r4, [sp, #20]; strd lr, r1, [sp, #28]; mov r2, r7;"
    "mov r1, r10; mov r5, r8; adds r4, r0, r7; adds r5, #1; cmp r12, r5; ldrd r2, r4, [sp, #20];"
    "ldrd lr, r1, [sp, #28]; ldr r3, [sp, #40]; adds r4, #1; add r2, r3; subs r1, r1, r3;"
    "sub lr, lr, r3; ldr r3, [sp, #16]; add r6, r0; cmp r3, r4; wlstp.8 lr, r0, 1f; bne 0b")
_WINDOW_ROW_MVE = ("cmp r8, r12; cmp r5, #0; mov r5, r8; mov r4, r7; movs r5, #1;"
                   "ldr r3, [sp, #12]; add r9, r9, #1; add r7, r3; ldr r3, [sp, #8];"
                   "cmp r3, r9; bne 0b")
_COPY_MVE = "vldrb.u8 q0, [r2], #16; vstrb.8 q0, [r1], #16; letp lr, 0b"
_TAP_MVE = ("cmp r0, #0; add r4, r0; cmp r11, #1; mov lr, r11; it lt; movlt lr, #1; mov r2, r0;"
            "dls lr, lr; str r0, [sp, #4]; adds r5, #1; cmp r12, r5; ldr r0, [sp, #4]; bne 0b")
_COMPARE_MVE = ("vctp.8 r2; vmrs r3, p0; sxth r3, r3; vmsr p0, r3; subs r1, r6, r2;"
                "subs r0, r4, r2; vpst; vldrbt.u8 q1, [r0]; vpst; vldrbt.u8 q2, [r1]; vmov q3, q4;"
                "vpst; vmaxt.s8 q3, q2, q1; subs r2, #16; vpst; vstrbt.8 q3, [r1]; le lr, 0b")
_CLAMP_MVE = ("vctp.8 r3; vmrs r2, p0; sxth r2, r2; vmsr p0, r2; sub r1, r12, r3; vpst;"
              "vldrbt.u8 q0, [r1]; vmov q4, q3; vpst; vmaxt.s8 q4, q0, q2; vmov q0, q3; vpst;"
              "vmint.s8 q0, q4, q1; subs r3, #16; vpst; vstrbt.8 q0, [r1]; le lr, 0b")


def _lower_mve(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Sixteen channels of a position at a time.

    The first position of a window only writes; as accesses it reads the output too.
    """
    shape = read_geometry(graph, layer)
    rows, places = shape.batches * shape.output_rows, shape.batches * shape.pixels
    window_rows = shape.batches * shape.window_rows
    compared = shape.batches * shape.taps_inside - places
    bounds, output = window_bounds(shape), output_steps(shape)
    size, per_place = shape.pixels * shape.input_channels, vectors(shape.input_channels)
    result = [window_load(shape, bounds, 16), guarded(row_load("output", 0, **output), *bounds),
              guarded(row_store("output", 0, **output), *bounds)]
    return (draft_kernel(
        "arm_max_pool_s8", "pool", site,
        repeat("batch", shape.batches,
               step("call", _ENTRY_MVE, "kernel_call"),
               block("output row", _ROW_MVE, rows, shape.batches),
               block("output position", _POSITION_MVE, places, rows),
               block("copy 16", _COPY_MVE, places * per_place, places, "data_copy"),
               block("window row", _WINDOW_ROW_MVE, window_rows, places),
               block("window position", _TAP_MVE, compared, window_rows),
               block("compare 16", _COMPARE_MVE, compared * per_place, compared),
               repeat("row", shape.output_rows, repeat("column", shape.output_columns, over_window(
                   shape, *row_moves(shape.input_channels, *result)))),
               repeat("vector", vectors(size), closing("clamp 16", _CLAMP_MVE)),
               *row_moves(size, row_load("output", 0, batch=size),
                          row_store("output", 0, batch=size)))),)


KERNELS: Kernels = {
    "max_pool_2d": {"c": Lowering(lower=_lower), "mve": Lowering(lower=_lower_mve)},
}
