"""Fully connected and batched matrix products: one vector by rows of weights, two at a time.

References
----------
ARM-software/CMSIS-NN 6.0, Source/FullyConnectedFunctions/arm_fully_connected_s8.c,
Source/NNSupportFunctions/arm_nn_vec_mat_mult_t_s8.c (whole file compiled with unrolled loops on
cores with DSP), arm_nn_vec_mat_mult_t_per_ch_s8.c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import (
    BRANCH,
    MVE,
    block,
    bookkeeping,
    build_kernel,
    choose_dialect,
    entry,
    join,
    requantise,
    requantise_tensor,
)
from twin.runtimes.cmsis_nn.geometry import has_bias
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.lowering import Site

_STEP_2 = (  # 8 MAC: four columns of two rows
    "ldr r7, [r4, #4]; ldr r3, [r1, #4]; sxtab16 r9, r11, r7, ror #8; sxtb16 r10, r3, ror #8;"
    "sxtab16 r7, r11, r7; sxtb16 r3, r3; smlad r5, r10, r9, r5; smlad r5, r3, r7, r5;"
    "ldr r10, [r0, #4]; sxtb16 r12, r10, ror #8; sxtb16 r10, r10; smlad r2, r12, r9, r2;"
    "smlad r2, r10, r7, r2")
_STEP_1 = (  # 4 MAC: four columns of one row
    "ldr r7, [r4, #4]; ldr r3, [r1, #4]; sxtab16 r9, r11, r7, ror #8; sxtb16 r10, r3, ror #8;"
    "sxtab16 r7, r11, r7; sxtb16 r3, r3; smlad r5, r10, r9, r5; smlad r5, r3, r7, r5")
_UNROLLED_END = ("mov r8, r4; mov lr, r1; mov r12, r0; adds r4, #16; adds r1, #16; adds r0, #16;"
                 "subs r6, #4; bne 0b")
_PEELED_END = "adds r4, #4; adds r1, #4; subs r6, #1; beq 1f"

_COLUMN = {  # element-wise loops: three rows at once (two with DSP), and one
    "dsp": ("ldrsb lr, [r4], #1; ldrsb r6, [r1], #1; ldrsb r5, [r0], #1; add lr, r12;"
            "mla r2, lr, r6, r2; mla r3, lr, r5, r3",
            "ldrsb lr, [r4], #1; ldrsb r6, [r1], #1; add lr, r12; mla r2, lr, r6, r2"),
    "thumb2": ("ldrsb r9, [r1], #1; ldrsb r10, [r12, #1]!; add r9, r7; mla r0, r9, r10, r0;"
               "ldrsb r10, [r6, #1]!; cmp r1, r8; mla r4, r9, r10, r4; ldrsb r10, [lr, #1]!;"
               "mla r5, r9, r10, r5; bne 0b",
               "ldrsb r3, [r1], #1; ldrsb r12, [r4, #1]!; add r3, r7; cmp r1, r6;"
               "mla r0, r12, r3, r0; bne 0b"),
    "thumb1": ("mov r3, r9; ldrsb r3, [r3, r2]; ldrsb r1, [r7, r2]; add r3, r8; muls r1, r3, r1;"
               "mov r10, r1; ldr r1, [sp, #4]; add r0, r10; ldrsb r1, [r1, r2]; muls r1, r3, r1;"
               "mov r10, r1; ldrsb r1, [r6, r2]; adds r2, #1; muls r3, r1, r3; add r4, r10;"
               "adds r5, r5, r3; cmp r12, r2; bne 0b",
               "ldrsb r1, [r4, r3]; ldrsb r2, [r5, r3]; adds r1, r1, r7; muls r2, r1, r2;"
               "adds r3, #1; adds r0, r0, r2; cmp r6, r3; bne 0b"),
    "rv32": ("lb a5, 0(a0); lb a4, 0(a1); lb a3, 0(a2); lb a6, 0(a7); add a5, a5, s11;"
             "addi a0, a0, 1; addi a1, a1, 1; addi a2, a2, 1; addi a7, a7, 1; mul a4, a5, a4;"
             "mul a3, a5, a3; mul a6, a5, a6; add s0, s0, a4; add s1, s1, a3; add s2, s2, a6;"
             "bne a0, t3, 0b",
             "lb a5, 0(a0); lb a4, 0(a1); addi a0, a0, 1; addi a1, a1, 1; add a5, a5, s11;"
             "mul a5, a5, a4; add s0, s0, a5; bne a0, t3, 0b"),
}

_PAIR = {"dsp": (21, 5, 14, 5), "thumb2": (8, 3, 10, 4), "thumb1": (14, 6, 28, 6),
         "rv32": (8, 4, 12, 4)}
"""Stack loads, stack stores, arithmetic and jumps per group of rows."""


class _Rows(NamedTuple):
    """Extents of one product: rows of weights by columns, for some vectors, over batches."""

    vectors: int
    rows: int
    columns: int
    has_bias: bool
    per_channel: bool
    weights: str
    batches: int = 1


def lower_fully_connected(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a fully connected layer.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `fully_connected`; weights (rows, columns).
    site : Site
        Operands: input, weights, bias, output, parameters where scales are per channel.
    """
    if site.isa == MVE:
        from twin.runtimes.cmsis_nn.fully_connected_mve import lower_fully_connected as lower_mve
        return lower_mve(graph, layer, site)
    rows, columns = graph.tensors[layer.inputs[1]].shape[-2:]
    vectors = graph.tensors[layer.inputs[0]].elements // columns
    quantization = graph.tensors[layer.inputs[1]].quantization
    per_channel = quantization is not None and len(quantization.scales) > 1
    shape = _Rows(vectors, rows, columns, has_bias(layer), per_channel, "weights")
    name = "arm_fully_connected_per_channel_s8" if per_channel else "arm_fully_connected_s8"
    return (_lower_rows(name, shape, site),)


def scratch_bytes_fully_connected(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory: sums over weight rows on cores with MVE, none otherwise."""
    if isa == MVE:
        from twin.runtimes.cmsis_nn.fully_connected_mve import (
            scratch_bytes_fully_connected as scratch_mve,
        )
        return scratch_mve(graph, layer, isa)
    return 0


def lower_batch_matmul(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a product of two activations: the same inner function for each left row.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `batch_matmul` of (..., m, k) and (..., k, n); the right side as if already transposed,
        and on a core with MVE as if it ran the scalar loops (assumed).
    site : Site
        Operands: input, input2, output.
    """
    left = graph.tensors[layer.inputs[0]]
    right = graph.tensors[layer.inputs[1]]
    columns = left.shape[-2 if layer.option("adj_x", False) else -1]
    rows = graph.tensors[layer.outputs[0]].shape[-1]
    batches = max(1, right.elements // (rows * columns))
    shape = _Rows(left.elements // columns // batches, rows, columns, False, False,
                  "input2", batches)
    return (_lower_rows("arm_batch_matmul_s8", shape, site, assumed=site.isa == MVE),)


def _lower_rows(name: str, shape: _Rows, site: Site, assumed: bool = False) -> Kernel:
    dialect = choose_dialect(site.isa)
    calls = shape.batches * shape.vectors
    at_once = 2 if dialect == "dsp" else 3
    groups, last = divmod(shape.rows, at_once)
    blocks = (
        entry(dialect, 100, calls),
        *column_blocks(dialect, shape.columns, calls * groups, at_once),
        _finish(dialect, shape, at_once, calls * groups, calls),
        *column_blocks(dialect, shape.columns, calls * last, 1),
        _finish(dialect, shape, 1, calls * last, calls))
    return build_kernel(name, "fully_connected", site, blocks,
                        resolve(*_drafts(dialect, shape, at_once)),
                        macs=calls * shape.rows * shape.columns, assumed=assumed)


def column_blocks(dialect: str, columns: int, entries: int, rows: int) -> tuple[Block, ...]:
    """Return the inner loops of dot products.

    Parameters
    ----------
    dialect : str
        Of the core.
    columns : int
        Length of each product.
    entries : int
        How many groups of products there are.
    rows : int
        Weight rows taken at once: 1, or the dialect's number (2 with DSP, 3 without).
    """
    several, single = _COLUMN[dialect]
    column = single if rows == 1 else several
    if dialect != "dsp":
        return (block(f"column of {rows} rows", column, entries * columns, entries),)
    step = _STEP_1 if rows == 1 else _STEP_2
    steps = columns // 4
    return (
        block(f"16 columns of {rows} rows", join(*[step] * 4, _UNROLLED_END),
              entries * (steps // 4), entries),
        block(f"4 columns of {rows} rows", join(step, _PEELED_END), entries * (steps % 4)),
        block(f"column of {rows} rows", column, entries * (columns % 4)))


def _finish(dialect: str, shape: _Rows, rows: int, trips: int, calls: int) -> Block:
    bias = "lw a2, 0(a4)" if dialect == "rv32" else "ldr r3, [r2]"
    results = (requantise if shape.per_channel else requantise_tensor)(dialect, rows)
    return block(f"{rows} rows", join(
        *[bias] * (rows if shape.has_bias else 0), bookkeeping(dialect, *_PAIR[dialect]), results,
        BRANCH[dialect]), trips, calls)


def _drafts(dialect: str, shape: _Rows, at_once: int) -> tuple[Any, ...]:
    columns, rows = shape.columns, shape.rows
    quads = columns // 4 if dialect == "dsp" else 0
    outer = {"vector": columns, "batch": shape.vectors * columns}

    def group(count: int, start: int, name: str) -> tuple[Any, ...]:
        def part(width: int, done: int) -> tuple[Any, ...]:
            return (load("input", width, done, column=width, **outer),
                    *[load(shape.weights, width, (start + k) * columns + done, column=width,
                           batch=rows * columns, **{name: count * columns})
                      for k in range(count)])

        words = {name: 4 * count}
        return (
            *[load("bias", 4, 4 * (start + k), **words)
              for k in range(count if shape.has_bias else 0)],
            repeat("column", quads, *part(4, 0)),
            repeat("column", columns - 4 * quads, *part(1, 4 * quads)),
            *[load("parameters", 4, 4 * (half * rows + start + k), **words)
              for k in range(count if shape.per_channel else 0) for half in (0, 1)],
            *[store("output", 1, start + k, vector=rows, batch=shape.vectors * rows,
                    **{name: count}) for k in range(count)])

    done = rows // at_once * at_once
    return (repeat("batch", shape.batches, repeat(
        "vector", shape.vectors,
        repeat("group", rows // at_once, *group(at_once, 0, "group")),
        repeat("row", rows - done, *group(1, done, "row")))),)
