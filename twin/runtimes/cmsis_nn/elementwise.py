"""Addition and multiplication of two tensors, element by element.

References
----------
ARM-software/CMSIS-NN 6.0, Source/BasicMathFunctions: arm_elementwise_add_s8.c,
arm_elementwise_mul_s8.c (four elements at once with DSP).
"""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    CLAMP,
    MVE,
    SCALE_HOISTED,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
)
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.lowering import Site

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


def lower_add(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower an addition: both inputs and the sum are rescaled.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        An `add` of int8 tensors; a broadcast operand runs element by element.
    site : Site
        Operands: input, input2, output.
    """
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.elementwise_mve import lower_add as lower_mve
        return lower_mve(graph, layer, site)
    return (_lower("arm_elementwise_add_s8", graph, layer, site, 3, _ADD),)


def lower_mul(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a multiplication: the product is rescaled once.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `mul` of int8 tensors; a broadcast operand runs element by element.
    site : Site
        Operands: input, input2, output.
    """
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.elementwise_mve import lower_mul as lower_mve
        return lower_mve(graph, layer, site)
    return (_lower("arm_elementwise_mul_s8", graph, layer, site, 1, _MULTIPLY),)


def _lower(name: str, graph: Graph, layer: Layer, site: Site, scalings: int,
           overheads: Mapping[str, tuple[int, ...]]) -> Kernel:
    dialect = choose_dialect(site.isa)
    count = graph.tensors[layer.outputs[0]].elements
    inputs = ("input", "input2")[:len(layer.inputs)]
    sizes = [graph.tensors[tensor].elements for tensor in layer.inputs[:2]]
    broadcast = any(size < count for size in sizes)
    plain = "thumb2" if dialect == "dsp" else dialect
    product = {"rv32": "mul a0, a2, a4", "thumb1": "muls r0, r5, r0"}.get(
        dialect, "smulbb r0, r2, r5") if scalings == 1 else ""
    result = join(product, *[SCALE_HOISTED[dialect]] * scalings, CLAMP[dialect])
    fours, ones = divmod(count, 4) if dialect == "dsp" and not broadcast else (0, count)
    blocks = (
        entry(dialect, 70, 1),
        block("four elements", join(
            _READ_4, *[result] * 4, bookkeeping(dialect, *overheads["dsp"]), _PACK_4,
            BRANCH[dialect]), fours, min(1, fours)),
        block("element", join(
            _READ_1[plain], result, bookkeeping(dialect, *overheads[plain]),
            bookkeeping(dialect, *_SUBSCRIPTS) if broadcast else "", _WRITE_1[plain],
            BRANCH[dialect]), ones, min(1, ones)))
    if broadcast:
        inner = max(1, min(sizes))
        drafts = [repeat("outer", count // inner, repeat(
            "element", inner,
            *[load(operand, 1, element=1, outer=inner if size == count else 0)
              for operand, size in zip(inputs, sizes, strict=True)],
            store("output", 1, element=1, outer=inner)))]
    else:
        drafts = [repeat("element", extent,
                         *[load(operand, width, done, element=width) for operand in inputs],
                         store("output", width, done, element=width))
                  for width, extent, done in ((4, fours, 0), (1, ones, 4 * fours))]
    return build_kernel(f"{name}_broadcast" if broadcast else name, "elementwise", site, blocks,
                        resolve(*drafts), assumed=broadcast)
