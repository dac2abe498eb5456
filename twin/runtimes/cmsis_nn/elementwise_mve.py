"""Element-wise addition and multiplication on Helium: four elements at a time.

References
----------
ARM-software/CMSIS-NN 6.0, Source/BasicMathFunctions: arm_elementwise_add_s8.c,
arm_elementwise_mul_s8.c, the MVE paths. A broadcast operand is read again for every repetition.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import block, build_kernel, join
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.cmsis_nn.vector_mve import int8_only, lane_moves
from twin.runtimes.lowering import Site

_ADD_ENTRY = (
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
_PREDICATE = "vctp.32 r2; vmrs r12, p0; sub r11, r0, r2; sxth r12, r12; vmsr p0, r12; mov r3, r11"
_SHIFT_RIGHT = "vand {t}, {v}, {s}; vshr.s32 {t}, {t}, #31; vqadd.s32 {v}, {v}, {t}"
_ADD = join(
    _PREDICATE, "vpst; vldrbt.s32 q2, [r3]; vadd.i32 q2, q6, q2; add r3, sp, #64;"
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
_MULTIPLY_ENTRY = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d11}; ldr r4, [sp, #92];"
    "ldr r7, [sp, #80]; adds lr, r4, #3; add r5, r4, #6; ldrd r8, r9, [sp, #72]; cmp r4, #0;"
    "mov r12, r4; ldr r4, [sp, #84]; mov lr, lr, asr #2; vdup.32 q4, r4; ldr r4, [sp, #88];"
    "cmp r7, #0; vdup.32 q0, r4; csneg r4, r5, r7, gt; cmp lr, #1; negs r4, r4; vdup.32 q2, r4;"
    "dls lr, lr; add r6, r1, r12; ldr r1, [sp, #68]; bic r7, r7, r7, asr #31; vdup.32 q1, r7;"
    "add r11, r0, r12; add r7, r1, r12; vpop {d8-d11}; movs r0, #0;"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_MULTIPLY = join(
    _PREDICATE, "sub r4, r6, r12; vpst; vldrbt.s32 q3, [r3]; vpst; vldrbt.s32 q5, [r4];"
    "vadd.i32 q3, q3, r2; vadd.i32 q5, q5, r3; vmul.i32 q3, q3, q5; vshl.s32 q3, q3, q1;"
    "vqrdmulh.s32 q3, q3, r9", _SHIFT_RIGHT.format(t="q5", v="q3", s="q2"),
    "vrshl.s32 q3, q3, q2; vadd.i32 q3, q3, r8; vmax.s32 q3, q3, q4; vmin.s32 q3, q3, q0;"
    "sub r0, r7, r12; vpst; vstrbt.32 q3, [r0]; sub r12, r12, #4; le lr, 0b")


@int8_only
def lower_add(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an addition: both inputs and the sum are rescaled.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        An `add` or `sub` of int8 tensors.
    site : Site
        Operands: input, input2, output.
    """
    return (_lower("arm_elementwise_add_s8", graph, layer, site, _ADD_ENTRY, _ADD),)


@int8_only
def lower_mul(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a multiplication: the product is rescaled once.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `mul` of int8 tensors.
    site : Site
        Operands: input, input2, output.
    """
    return (_lower("arm_elementwise_mul_s8", graph, layer, site, _MULTIPLY_ENTRY, _MULTIPLY),)


def _lower(name: str, graph: Graph, layer: Layer, site: Site, entry: str, code: str) -> Kernel:
    count = graph.tensors[layer.outputs[0]].elements
    sizes = [graph.tensors[layer.inputs[place]].elements for place in (0, 1)]
    inner = min(count, *sizes)
    calls = -(-count // inner)
    fours = -(-inner // 4) * calls
    blocks = (block("call", entry, calls, cause="kernel_call"),
              block("four elements", code, fours, calls))
    return build_kernel(name, "elementwise", site, blocks, resolve(*_drafts(count, inner, sizes)))


def _drafts(count: int, inner: int, sizes: list[int]) -> list[Any]:
    """Four elements at a time; a smaller operand starts again after its last element."""
    fours, tail = divmod(inner, 4)
    calls = -(-count // inner)
    steps = [{} if size < count else {"call": inner} for size in sizes]

    def moves(lanes: int, offset: int) -> list[Any]:
        return [*lane_moves(load("input", 4, offset, four=4, **steps[0]), lanes),
                *lane_moves(load("input2", 4, offset, four=4, **steps[1]), lanes),
                *lane_moves(store("output", 4, offset, four=4, call=inner), lanes)]

    body = [repeat("four", fours, *moves(4, 0))]
    if tail:
        body += moves(tail, 4 * fours)
    return [repeat("call", calls, *body)]
