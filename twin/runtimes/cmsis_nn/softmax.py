"""Softmax in fixed point: maximum, sum of exponentials, scaled exponentials.

References
----------
ARM-software/CMSIS-NN 6.0, Source/SoftmaxFunctions/arm_softmax_s8.c, arm_nn_softmax_common_s8.c.
gcc 12.2 cannot compile the MVE path (there the library falls back to scalar code). The exponential
is the polynomial and the seven conditional multiplications of gemmlowp's fixed-point arithmetic.
"""

from __future__ import annotations

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.sequences import (
    LONG_MULTIPLY,
    bookkeeping,
    entry,
    lane_moves,
    row_load,
    row_moves,
    vectors,
)
from twin.runtimes.lowering import Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import (
    BRANCH,
    choose_dialect,
    draft_kernel,
    join,
    plain,
)
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_MULTIPLY_C = {  # a saturating doubling high multiply, one factor selected by a mask
    "thumb2": "mov r1, r3; mov r6, r4; smlal r1, r6, r2, r7; lsrs r1, r1, #31;"
              "orr r1, r1, r6, lsl #1; ands r5, r2; and r2, r1, r8; eors r2, r5;"
              "ldr r5, [sp, #24]; ldr r7, [sp, #28]",
    "thumb1": "asrs r1, r0, #31; movs r3, #0;" + LONG_MULTIPLY +
              "; movs r2, #128; lsls r2, r2, #23; adds r0, r0, r2; adcs r1, r3; lsrs r0, r0, #31;"
              "lsls r1, r1, #1; orrs r0, r1; ldr r2, [sp, #24]; ands r0, r2; ldr r3, [sp, #28];"
              "ands r3, r4; eors r0, r3; ldr r2, [sp, #32]",
    "rv32": "mul a1, a0, s2; mulh a2, a0, s2; add a3, a1, s10; sltu a1, a3, a1; srli a3, a3, 31;"
            "add a1, a1, a2; slli a1, a1, 1; or a1, a1, a3; and a1, a1, s3; and a0, a0, s4;"
            "xor a0, a0, a1; lw s2, 24(sp)",
}
_MULTIPLIES_C = 12
"""Long multiplies of one exponential, seven of them behind a mask."""

_REST_C = {"thumb2": (5, 13, 103, 6), "thumb1": (16, 27, 125, 18), "rv32": (12, 10, 114, 12)}
"""Stack loads, stack stores, arithmetic and jumps of the rest of one exponential."""

_MAXIMUM_C = {
    "thumb2": "ldrsb r3, [r1, #1]!; cmp r3, r2; it gt; movgt r2, r3; cmp r1, r5; bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r1, r3]; cmp r3, r2; ble 1f; movs r2, r3; adds r1, #1;"
              "cmp r1, r5; bne 0b",
    "rv32": "lb a3, 0(a1); bge a2, a3, 1f; mv a2, a3; addi a1, a1, 1; bne a1, a5, 0b",
}


def _extents(graph: Graph, layer: Layer) -> tuple[int, int]:
    """Rows, and their length: softmax runs over the last axis."""
    tensor = graph.input(layer)
    return tensor.elements // tensor.shape[-1], tensor.shape[-1]


def lower_scalar(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a softmax one element at a time: what reference kernels run, too.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `softmax`.
    site : Site
        Operands: input, output.

    Notes
    -----
    Every element is taken to be close enough to the maximum for its exponential to be computed
    (twice); elements far below cost less in reality.
    """
    dialect = choose_dialect(site.isa)
    text = plain(dialect)
    rows, width = _extents(graph, layer)
    exponential = join(*[_MULTIPLY_C[text]] * _MULTIPLIES_C, bookkeeping(dialect, *_REST_C[text]))
    read, write = {"rv32": ("lb a0, 0(a1)", "sb a0, 0(a2)"),
                   "thumb1": ("ldrsb r0, [r1, r6]", "strb r0, [r2]")}.get(
        text, ("ldrsb r0, [r1], #1", "strb r0, [r2], #1"))
    first = "lb a2, 0(a1)" if text == "rv32" else "ldrb r2, [r1]"
    read_one = load("input", 1, row=width, column=1)
    return (draft_kernel(
        "arm_softmax_s8", "softmax", site,
        entry(dialect, 50, 1),
        repeat("row", rows,
               closing("row", join(first, bookkeeping(dialect, 12, 6, 30), *[_MULTIPLY_C[text]] * 7,
                                   BRANCH[dialect])),
               load("input", 1, row=width),
               repeat("column", width - 1,
                      closing("maximum", _MAXIMUM_C[text]),
                      load("input", 1, 1, row=width, column=1)),
               repeat("column", width,
                      closing("exponential, summed", join(read, exponential, BRANCH[dialect])),
                      read_one),
               repeat("column", width,
                      closing("exponential, scaled", join(read, exponential, write,
                                                          BRANCH[dialect])),
                      read_one, store("output", 1, row=width, column=1)))),)


_ENTRY = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d13}; mov r8, r2; movs r2, #1;"
    "sub sp, #36; str r3, [sp, #24]; ldr r3, [sp, #120]; str r1, [sp, #28]; lsl r3, r2, r3;"
    "str r3, [sp, #12]; add r3, r8, #15; cmp r3, #0; add r2, r8, #30; it lt; movlt r3, r2;"
    "cmp r8, #0; mov r9, r3, asr #4; add r3, r8, #3; asrs r3, r3, #2; str r3, [sp, #16];"
    "movs r3, #0; str r3, [sp, #4]; mvn r3, #11; vdup.32 q4, r3; add sp, #36; vpop {d8-d13};"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_ROW = (
    "movs r4, #0; cmp r9, r4; add r3, r9, #1; mvn r11, #127; mvn r5, #15; it lt; movlt r3, #1;"
    "ldr r3, [sp, #24]; mov r6, r0; movs r4, #0; vdup.32 q5, r3; ldr r7, [sp, #16];"
    "str r0, [sp, #8]; mvn r3, #127; vdup.32 q6, r3; ldr r3, [sp, #24]; ldr r7, [sp, #128];"
    "vdup.32 q5, r3; ldr r6, [sp, #16]; ldr r3, [sp, #128]; add r0, r8; add r3, r8;"
    "str r3, [sp, #128]; ldr r3, [sp, #4]; adds r3, #1; str r3, [sp, #4]; b 0b")
_RECIPROCAL = (
    "clz r3, r4; cmp r4, #0; str r3, [sp, #20]; lsl r3, r4, r3; add r3, r3, #2147483648;"
    "asrs r2, r3, #31; adds r3, r3, #2147483648; adc r2, r2, #0; mov r4, r3; mov r5, r2;"
    "asrl r4, r5, #1; mov r1, #4294967295; mov lr, r4; ldr r6, [pc, #476]; ldr r3, [pc, #480];"
    "negs r7, r4; mul r2, r3, r5; add r2, r7; umull r3, r7, r4, r3; adds r6, r3, r6; add r2, r7;"
    "adc r1, r2, r1; cmp r1, #0; mvn r3, #2147483648; adds r3, r6, r3; adc r1, r1, #0;"
    "asrl r2, r3, #31; mov r12, #3; add r3, r2, #1515870810; lsls r4, r3, #1")
_NEWTON = (  # one step of the reciprocal: two doubling high multiplies with rounding
    "eor r1, r3, lr; lsrs r1, r1, #31; cmp r1, #0; ldr r1, [pc, #412]; iteet eq;"
    "moveq r7, #1073741824; movne r7, r1; movne r10, #4294967295; moveq r10, #0; asrs r1, r3, #31;"
    "mul r6, r3, r5; muls r1, r4; add r1, r6; umull r6, r2, r3, r4; adds r6, r6, r7; add r1, r2;"
    "adc r1, r1, r10; cmp r1, #0; mov r10, r6; mov r6, r10; mov r7, r1; asrl r6, r7, #31;"
    "rsb r6, r6, #536870912; eor r1, r3, r6; lsrs r1, r1, #31; ldr r2, [pc, #336]; cmp r1, #0;"
    "itete ne; movne r1, r2; moveq r1, #1073741824; movne r10, #4294967295; moveq r10, #0;"
    "smlal r1, r10, r3, r6; cmp r10, #0; mov r6, r1; mov r7, r10; asrl r6, r7, #31;"
    "lsls r6, r6, #2; cmp r12, #0; add r3, r6; bne 0b")
_MAXIMUM = ("vctp.8 r2; vmrs r2, p0; sxth r2, r2; vmsr p0, r2; subs r1, r0, r1; mov r2, r11; vpst;"
            "vldrbt.u8 q3, [r1]; vpst; vmaxvt.s8 r2, q3; adds r4, #1; sxtb r11, r2; mul r1, r5, r4;"
            "subs r3, #1; add r2, r8, r1; bne 0b")
_SPILL = "add r2, sp, #64; vstrw.32 q5, [r2]; add r3, sp, #80; vldrw.u32 q5, [r3]"
_CONDITIONAL = (  # multiply by a constant where one bit of the remainder is set
    "ldr r2, [pc, #464]; vdup.32 q5, r2; mov r2, #33554432; vqrdmulh.s32 q5, q2, q5;"
    "vdup.32 q4, r2; vand q4, q4, q1; vcmp.i32 ne, q4, r3; vmrs r2, p0; sxth r2, r2; vmsr p0, r2;"
    "vmov q6, q3; vpst; vmvnt q6, q3; vmvn q4, q6; vand q4, q4, q2; vand q5, q5, q6;"
    "veor q2, q4, q5")
_SHIFT_RIGHT = "vand q7, q3, q6; vshr.s32 q7, q7, #31; vqadd.s32 q3, q3, q7; vrshl.s32 q3, q3, q6"
_EXPONENTIAL = join(
    "mvn r3, #4278190080; vpush {d8-d15}; vdup.32 q5, r3; mov r3, #16777216; vand q5, q0, q5;"
    "vdup.32 q4, r3; vsub.i32 q5, q5, q4; mov r1, #268435456; vsub.i32 q1, q5, q0;"
    "vshl.i32 q5, q5, #5; vadd.i32 q5, q5, r1; mvn r3, #1; vqrdmulh.s32 q2, q5, q5;"
    "vdup.32 q6, r3; vqrdmulh.s32 q3, q2, q2", _SHIFT_RIGHT,
    "vqrdmulh.s32 q4, q2, q5; ldr r3, [pc, #552]; vadd.i32 q3, q3, q4; vdup.32 q6, r3;"
    "mov r3, #4294967295; vqrdmulh.s32 q3, q3, q6; vdup.32 q6, r3; vadd.i32 q3, q3, q2",
    _SHIFT_RIGHT, "ldr r3, [pc, #516]; vdup.32 q4, r3; vadd.i32 q3, q3, q5; movs r3, #0;"
    "vqrdmulh.s32 q2, q4, q3; vadd.i32 q2, q2, q4; vdup.32 q3, r3",
    *[join(_CONDITIONAL, _SPILL)] * 7,
    "vcmp.s32 eq, q0, r3; vmrs r3, p0; sxth r3, r3; vmsr p0, r3; vpst; vmvnt q3, q3;"
    "vpop {d8-d15}; vmvn q2, q3; mvn r3, #2147483648; vand q0, q0, q2; vdup.32 q2, r3;"
    "vand q3, q3, q2; veor q0, q0, q3; bx lr")
_LOAD = ("vldrb.s32 q0, [r6]; vsub.i32 q0, q0, r11; ldr r3, [sp, #124]; vcmp.s32 ge, q0, r3;"
         "vmrs r5, p0; sxth r5, r5; cmp r5, #0; ldr r3, [sp, #12]; vmul.i32 q0, q0, r3;"
         "vqrdmulh.s32 q0, q0, q5; bl 1f")
_SUMMED = join(_LOAD, _EXPONENTIAL, (
    "vand q3, q0, q4; vshr.s32 q3, q3, #31; movs r3, #0; vqadd.s32 q0, q0, q3; vmsr p0, r5;"
    "vrshl.s32 q0, q0, q4; vdup.32 q3, r3; vpsel q0, q0, q3; vaddv.s32 r2, q0; add r4, r2;"
    "subs r7, #1; adds r6, #4; cmp r7, #0; bne 0b"))
_SCALED = join(_LOAD, _EXPONENTIAL, (
    "vdup.32 q3, r4; ldr r3, [sp, #20]; vqrdmulh.s32 q0, q3, q0; subs r3, #35; vdup.32 q2, r3;"
    "vand q3, q0, q2; vshr.s32 q3, q3, #31; vqadd.s32 q3, q0, q3; vrshl.s32 q3, q3, q2;"
    "movs r3, #127; vadd.i32 q3, q6, q3; vdup.32 q2, r3; vmax.s32 q3, q3, q6; vmsr p0, r5;"
    "vmin.s32 q3, q3, q2; vpsel q3, q3, q6; ldr r3, [sp, #8]; vstrb.32 q3, [r7], #4; adds r3, #4;"
    "subs r6, #1; str r3, [sp, #8]; cmp r6, #0; bne 0b"))
_MULTIPLY = (
    "eor r1, r3, lr; lsrs r1, r1, #31; ite eq; moveq r7, #1073741824; movne r7, r1; mov r10, #0;"
    "smlal r7, r10, r3, r4; asrl r6, r7, #31; and r5, r6, r2; cmp r5, r8; it gt; addgt r6, #1")
_SCALAR = join("ldrsb r0, [r1], #1; sub r0, r0, r11; cmp r0, r9; mul r0, r0, r12",
               *[_MULTIPLY] * 13, "strb r6, [r2], #1; subs r7, #1; bne 0b")
"""One element left over: thirteen doubling high multiplies make its exponential."""


def _lower_mve(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Four exponentials at a time, twice.

    Every group of four is taken to hold an element close enough to the maximum for its
    exponential to be computed. The vectors gcc keeps on the stack around the seven conditional
    multiplications are taken as one pair of store and load each.
    """
    rows, width = _extents(graph, layer)
    fours, ones = divmod(width, 4)
    read_4 = lane_moves(load("input", 4, 0, row=width, four=4), 4)
    read_1 = load("input", 1, 4 * fours, row=width, one=1)
    return (draft_kernel(
        "arm_softmax_s8", "softmax", site,
        step("call", _ENTRY, "kernel_call"),
        repeat("row", rows,
               closing("row", _ROW),
               repeat("maximum", vectors(width), closing("maximum of 16", _MAXIMUM)),
               *row_moves(width, row_load("input", 0, row=width)),
               repeat("four", fours, closing("four exponentials, summed", _SUMMED), *read_4),
               repeat("one", ones, closing("one exponential, summed", _SCALAR), read_1),
               step("reciprocal", _RECIPROCAL),
               repeat("newton", 3, closing("reciprocal step", _NEWTON)),
               repeat("four", fours,
                      closing("four exponentials, scaled", _SCALED), *read_4,
                      *lane_moves(store("output", 4, 0, row=width, four=4), 4)),
               repeat("one", ones,
                      closing("one exponential, scaled", _SCALAR), read_1,
                      store("output", 1, 4 * fours, row=width, one=1)))),)


KERNELS: Kernels = {
    "softmax": {"c": Lowering(lower=lower_scalar), "mve": Lowering(lower=_lower_mve)},
}
