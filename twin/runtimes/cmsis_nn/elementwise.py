"""Addition and multiplication of two tensors: one element at a time, four with DSP or Helium.

References
----------
ARM-software/CMSIS-NN 6.0, Source/BasicMathFunctions: arm_elementwise_add_s8.c,
arm_elementwise_mul_s8.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.sequences import (
    CLAMP,
    SCALE_HOISTED,
    bookkeeping,
    entry,
    in_fours,
    lane_moves,
)
from twin.runtimes.lowering import Codes, Kernels, Lowering, Site
from twin.runtimes.lowering.blocks import (
    BRANCH,
    block,
    choose_dialect,
    draft_kernel,
    join,
    plain,
)
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

_READ_4 = ("ldr r3, [sp, #24]; ldr r0, [r3], #4; str r3, [sp, #24]; sxtb16 r7, r0;"
           "sxtb16 r0, r0, ror #8; ldr r3, [sp, #68]; sadd16 r7, r7, r3; sadd16 r0, r0, r3;"
           "ldr r3, [sp, #20]; ldr r5, [r3], #4; str r3, [sp, #20]; sxtb16 r2, r5, ror #8;"
           "sxtb16 r5, r5; ldr r3, [sp, #72]; sadd16 r2, r2, r3; sadd16 r5, r5, r3")
_PACK_4 = ("sxtb r1, r1; sxtb r3, r3; lsls r3, r3, #16; and r3, r3, #16711680; ldrb r0, [sp, #28];"
           "orrs r0, r3; lsls r2, r2, #8; uxth r2, r2; orrs r2, r0; ldr r3, [sp, #196];"
           "orr r2, r2, r1, lsl #24; str r2, [r3], #4; str r3, [sp, #196]")
_READ_1 = {
    "thumb2": "ldr r3, [sp, #8]; ldrsb r2, [r0], #1; add r2, r3; ldr r1, [sp, #4];"
              "ldrsb r5, [r1], #1; str r1, [sp, #4]; ldr r1, [sp, #116]; add r5, r1",
    "thumb1": "mov r3, r9; movs r5, #0; ldrsb r5, [r3, r5]; ldr r3, [sp, #116]; movs r0, #0;"
              "mov r12, r3; add r5, r12; mov r3, r8; ldrsb r0, [r3, r0]; ldr r3, [sp];"
              "mov r12, r3; add r0, r12",
    "rv32": "lb a2, 0(a0); lb a4, 0(a1); addi a0, a0, 1; addi a1, a1, 1; add a2, a2, s8;"
            "add a4, a4, s9",
}
_WRITE_1 = {"thumb2": "strb r3, [r5], #1", "thumb1": "strb r0, [r3]", "rv32": "sb a1, 0(s3)"}

_ADD = {"dsp": (40, 10, 30, 6), "thumb2": (18, 0, 7), "thumb1": (5, 0, 9, 5), "rv32": (12, 0, 11)}
_MULTIPLY = {"dsp": (0, 5, 5), "thumb2": (1, 0, 1), "thumb1": (0, 0, 4), "rv32": (0, 0, 4)}
"""Stack loads, stack stores, arithmetic (and jumps) per four elements with DSP, per element
without."""
_SUBSCRIPTS = (8, 2, 20)
"""The same for the subscripts of a broadcast element: the portable loop, estimated."""


_ADD_CALL_MVE = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d15}; sub sp, #92;"
    "ldr r8, [sp, #236]; ldr lr, [sp, #192]; cmp r8, #0; ldr r5, [sp, #200]; ldr r12, [sp, #204];"
    "ldrd r6, r7, [sp, #216]; cmp lr, #0; vdup.32 q6, r2; mov r2, r8; csneg r8, r11, lr, gt;"
    "bic lr, lr, lr, asr #31; vdup.32 q3, lr; ldr r4, [sp, #196]; cmp r12, #0; mov r10, #1;"
    "csneg r9, r11, r12, gt; vdup.32 q5, r4; bic r12, r12, r12, asr #31; add r4, sp, #64;"
    "vstrw.32 q3, [r4]; vdup.32 q3, r12; ldr r4, [sp, #224]; rsb r8, r8, #0; cmp r4, #0;"
    "sub r11, r2, #4; vdup.32 q4, r8; csneg r8, r11, r4, gt; bic r11, r4, r4, asr #31;"
    "ldr r4, [sp, #212]; mov lr, lr, lsr #2; add lr, r10; add r10, r4, r2; add r4, sp, #48;"
    "vstrw.32 q3, [r4]; vdup.32 q3, r11; add r4, sp, #32; vstrw.32 q3, [r4]; ldr r4, [sp, #228];"
    "rsb r9, r9, #0; vdup.32 q3, r4; mov r4, sp; vstrw.32 q3, [r4]; ldr r4, [sp, #232];"
    "rsb r8, r8, #0; vdup.32 q3, r4; dls lr, lr; vdup.32 q0, r9; vdup.32 q1, r8; add r4, sp, #16;"
    "vstrw.32 q3, [r4]; ldr r4, [sp, #208]; add r1, r2; add r0, r2; str r3, [sp, #84];"
    "movs r0, #0; add sp, #92; vpop {d8-d15};"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
PREDICATE = "vctp.32 r2; vmrs r12, p0; sub r11, r0, r2; sxth r12, r12; vmsr p0, r12; mov r3, r11"
_SHIFT_RIGHT = "vand {t}, {v}, {s}; vshr.s32 {t}, {t}, #31; vqadd.s32 {v}, {v}, {t}"
_ADD_MVE = join(
    PREDICATE, "vpst; vldrbt.s32 q2, [r3]; vadd.i32 q2, q6, q2; add r3, sp, #64;"
    "vldrw.u32 q3, [r3]; vshl.s32 q2, r4; vshl.s32 q2, q2, q3; ldr r3, [sp, #84]; sub r9, r1, r2;"
    "vqrdmulh.s32 q2, q2, r3; mov r3, r9; vpst; vldrbt.s32 q3, [r3]; vadd.i32 q3, q5, q3;"
    "add r3, sp, #48; vldrw.u32 q7, [r3]; vshl.s32 q3, r4; vshl.s32 q3, q3, q7;"
    "vqrdmulh.s32 q3, q3, r5", _SHIFT_RIGHT.format(t="q7", v="q2", s="q4"),
    _SHIFT_RIGHT.format(t="q7", v="q3", s="q0"),
    "vrshl.s32 q2, q2, q4; vrshl.s32 q3, q3, q0; add r3, sp, #32; vadd.i32 q3, q3, q2;"
    "vldrw.u32 q2, [r3]; vshl.s32 q3, q3, q2; vqrdmulh.s32 q3, q3, r7",
    _SHIFT_RIGHT.format(t="q2", v="q3", s="q1"),
    "mov r3, sp; vrshl.s32 q3, q3, q1; vldrw.u32 q2, [r3]; vadd.i32 q3, q3, r6; add r3, sp, #16;"
    "vmax.s32 q3, q3, q2; vldrw.u32 q2, [r3]; sub r8, r10, r2; vmin.s32 q3, q3, q2; mov r3, r8;"
    "subs r2, #4; vpst; vstrbt.32 q3, [r3]; le lr, 0b")
_MULTIPLY_CALL_MVE = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d11}; ldr r4, [sp, #92];"
    "ldr r7, [sp, #80]; adds lr, r4, #3; add r5, r4, #6; ldrd r8, r9, [sp, #72]; cmp r4, #0;"
    "mov r12, r4; ldr r4, [sp, #84]; mov lr, lr, asr #2; vdup.32 q4, r4; ldr r4, [sp, #88];"
    "cmp r7, #0; vdup.32 q0, r4; csneg r4, r5, r7, gt; cmp lr, #1; negs r4, r4; vdup.32 q2, r4;"
    "dls lr, lr; add r6, r1, r12; ldr r1, [sp, #68]; bic r7, r7, r7, asr #31; vdup.32 q1, r7;"
    "add r11, r0, r12; add r7, r1, r12; vpop {d8-d11}; movs r0, #0;"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_MULTIPLY_MVE = join(
    PREDICATE, "sub r4, r6, r12; vpst; vldrbt.s32 q3, [r3]; vpst; vldrbt.s32 q5, [r4];"
    "vadd.i32 q3, q3, r2; vadd.i32 q5, q5, r3; vmul.i32 q3, q3, q5; vshl.s32 q3, q3, q1;"
    "vqrdmulh.s32 q3, q3, r9", _SHIFT_RIGHT.format(t="q5", v="q3", s="q2"),
    "vrshl.s32 q3, q3, q2; vadd.i32 q3, q3, r8; vmax.s32 q3, q3, q4; vmin.s32 q3, q3, q0;"
    "sub r0, r7, r12; vpst; vstrbt.32 q3, [r0]; sub r12, r12, #4; le lr, 0b")


class Operation(NamedTuple):
    """What tells the two apart: rescalings and bookkeeping of an element, Helium's sequences."""

    function: str
    scalings: int
    overheads: Mapping[str, tuple[int, ...]]
    call_mve: str
    four_mve: str


OPERATIONS = {
    "add": Operation("arm_elementwise_add_s8", 3, _ADD, _ADD_CALL_MVE, _ADD_MVE),
    "mul": Operation("arm_elementwise_mul_s8", 1, _MULTIPLY, _MULTIPLY_CALL_MVE, _MULTIPLY_MVE),
}


def _lower(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Four elements at a time with DSP; a broadcast operand runs element by element."""
    operation = OPERATIONS[layer.op]
    dialect = choose_dialect(site.isa)
    count = graph.output(layer).elements
    inputs = ("input", "input2")[:len(layer.inputs)]
    sizes = [graph.tensors[tensor].elements for tensor in layer.inputs[:2]]
    broadcast = any(size < count for size in sizes)
    text = plain(dialect)
    product = {"rv32": "mul a0, a2, a4", "thumb1": "muls r0, r5, r0"}.get(
        dialect, "smulbb r0, r2, r5") if operation.scalings == 1 else ""
    result = join(product, *[SCALE_HOISTED[dialect]] * operation.scalings, CLAMP[dialect])
    fours, ones = (0, count) if broadcast else in_fours(dialect, count)
    four = join(_READ_4, *[result] * 4, bookkeeping(dialect, *operation.overheads["dsp"]), _PACK_4,
                BRANCH[dialect])
    one = join(_READ_1[text], result, bookkeeping(dialect, *operation.overheads[text]),
               bookkeeping(dialect, *_SUBSCRIPTS) if broadcast else "", _WRITE_1[text],
               BRANCH[dialect])
    loops: list[Any] = [
        repeat("element", extent, closing(name, code),
               *[load(operand, width, done, element=width) for operand in inputs],
               store("output", width, done, element=width))
        for name, code, extent, width, done in (("four elements", four, fours, 4, 0),
                                                ("element", one, ones, 1, 4 * fours))]
    if broadcast:
        inner = max(1, min(sizes))
        loops = [block("element", one, count, 1), repeat("outer", count // inner, repeat(
            "element", inner,
            *[load(operand, 1, element=1, outer=inner if size == count else 0)
              for operand, size in zip(inputs, sizes, strict=True)],
            store("output", 1, element=1, outer=inner)))]
    name = f"{operation.function}_broadcast" if broadcast else operation.function
    return (draft_kernel(name, "elementwise", site, entry(dialect, 70, 1), *loops,
                         assumed=broadcast),)


def _lower_mve(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Four elements at a time; a broadcast operand is read again for every repetition."""
    operation = OPERATIONS[layer.op]
    count = graph.output(layer).elements
    sizes = [graph.tensors[layer.inputs[place]].elements for place in (0, 1)]
    inner = min(count, *sizes)
    calls = -(-count // inner)
    full, tail = divmod(inner, 4)
    steps = [{} if size < count else {"call": inner} for size in sizes]

    def moves(lanes: int, offset: int) -> list[Any]:
        return [*lane_moves(load("input", 4, offset, four=4, **steps[0]), lanes),
                *lane_moves(load("input2", 4, offset, four=4, **steps[1]), lanes),
                *lane_moves(store("output", 4, offset, four=4, call=inner), lanes)]

    return (draft_kernel(
        operation.function, "elementwise", site,
        repeat("call", calls,
               step("call", operation.call_mve, "kernel_call"),
               repeat("vector", -(-inner // 4), closing("four elements", operation.four_mve)),
               repeat("four", full, *moves(4, 0)),
               *(moves(tail, 4 * full) if tail else ()))),)


_BOTH: Codes = {"c": Lowering(lower=_lower), "mve": Lowering(lower=_lower_mve)}

KERNELS: Kernels = {
    "add": _BOTH,
    "mul": _BOTH,
}
