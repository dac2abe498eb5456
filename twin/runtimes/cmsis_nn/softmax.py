"""Softmax in fixed point: maximum, sum of exponentials, scaled exponentials.

References
----------
ARM-software/CMSIS-NN 6.0, Source/SoftmaxFunctions/arm_softmax_s8.c, arm_nn_softmax_common_s8.c.
"""

from __future__ import annotations

from hwmodels.kernel import Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    LONG_MULTIPLY,
    MVE,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
)
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.lowering import Site

_MULTIPLY = {  # a saturating doubling high multiply, one factor selected by a mask
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
_MULTIPLIES = 12
"""Long multiplies of one exponential, seven of them behind a mask."""

_REST = {"thumb2": (5, 13, 103, 6), "thumb1": (16, 27, 125, 18), "rv32": (12, 10, 114, 12)}
"""Stack loads, stack stores, arithmetic and jumps of the rest of one exponential."""

_MAXIMUM = {
    "thumb2": "ldrsb r3, [r1, #1]!; cmp r3, r2; it gt; movgt r2, r3; cmp r1, r5; bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r1, r3]; cmp r3, r2; ble 1f; movs r2, r3; adds r1, #1;"
              "cmp r1, r5; bne 0b",
    "rv32": "lb a3, 0(a1); bge a2, a3, 1f; mv a2, a3; addi a1, a1, 1; bne a1, a5, 0b",
}


def lower_softmax(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a softmax over the last axis.

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
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.softmax_mve import lower_softmax as lower_mve
        return lower_mve(graph, layer, site)
    dialect = choose_dialect(site.isa)
    text = "thumb2" if dialect == "dsp" else dialect
    tensor = graph.tensors[layer.inputs[0]]
    width = tensor.shape[-1]
    rows = tensor.elements // width
    exponential = join(*[_MULTIPLY[text]] * _MULTIPLIES, bookkeeping(dialect, *_REST[text]))
    read, write = {"rv32": ("lb a0, 0(a1)", "sb a0, 0(a2)"),
                   "thumb1": ("ldrsb r0, [r1, r6]", "strb r0, [r2]")}.get(
        text, ("ldrsb r0, [r1], #1", "strb r0, [r2], #1"))
    first = "lb a2, 0(a1)" if text == "rv32" else "ldrb r2, [r1]"
    blocks = (
        entry(dialect, 50, 1),
        block("row", join(first, bookkeeping(dialect, 12, 6, 30), *[_MULTIPLY[text]] * 7,
                          BRANCH[dialect]), rows, min(1, rows)),
        block("maximum", _MAXIMUM[text], rows * (width - 1), rows if width > 1 else 0),
        block("exponential, summed", join(read, exponential, BRANCH[dialect]), rows * width, rows),
        block("exponential, scaled", join(read, exponential, write, BRANCH[dialect]),
              rows * width, rows))
    drafts = repeat(
        "row", rows, load("input", 1, row=width),
        repeat("column", width - 1, load("input", 1, 1, row=width, column=1)),
        repeat("column", width, load("input", 1, row=width, column=1)),
        repeat("column", width, load("input", 1, row=width, column=1),
               store("output", 1, row=width, column=1)))
    return (build_kernel("arm_softmax_s8", "softmax", site, blocks, resolve(drafts)),)


