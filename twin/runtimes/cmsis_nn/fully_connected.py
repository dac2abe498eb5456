"""Fully connected and batched matrix products: one vector by rows of weights, several at a time.

Three rows at a time in C, two with DSP, four with Helium. There the sums over weight rows are made
once, when the network is prepared, and kept in scratch.

References
----------
ARM-software/CMSIS-NN 6.0 (6.2 for Helium), Source/FullyConnectedFunctions:
arm_fully_connected_s8.c, arm_fully_connected_per_channel_s8.c; Source/NNSupportFunctions:
arm_nn_vec_mat_mult_t_s8.c (whole file compiled with unrolled loops on cores with DSP),
arm_nn_vec_mat_mult_t_per_ch_s8.c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.sequences import (
    CLAMP_VECTOR,
    SCALE_ONE,
    SCALE_SCALAR,
    SCALE_VECTOR,
    bias_load,
    bookkeeping,
    column_loops,
    entry,
    in_fours,
    requantise,
    requantise_tensor,
    row_load,
    row_moves,
    vectors,
)
from twin.runtimes.lowering import Kernels, Lowering, Site, has_extension
from twin.runtimes.lowering.blocks import BRANCH, choose_dialect, draft_kernel, join
from twin.runtimes.lowering.geometry import has_bias
from twin.runtimes.lowering.nests import closing, load, repeat, step, store

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


def _read_rows(graph: Graph, layer: Layer) -> _Rows:
    weights = graph.input(layer, 1)
    rows, columns = weights.shape[-2:]
    per_channel = weights.quantization is not None and len(weights.quantization.scales) > 1
    return _Rows(graph.input(layer).elements // columns, rows, columns,
                 has_bias(layer), per_channel, "weights")


def _name(shape: _Rows) -> str:
    return "arm_fully_connected_per_channel_s8" if shape.per_channel else "arm_fully_connected_s8"


def _lower(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Weights are (rows, columns)."""
    shape = _read_rows(graph, layer)
    return (_lower_rows(_name(shape), shape, site),)


def _lower_batch_matmul(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a product of two activations: the same inner function for each left row.

    Of (..., m, k) and (..., k, n); the right side as if already transposed, and on a core with
    MVE as if it ran the scalar loops (assumed).
    """
    left = graph.input(layer)
    right = graph.input(layer, 1)
    columns = left.shape[-2 if layer.option("adj_x", False) else -1]
    rows = graph.output(layer).shape[-1]
    batches = max(1, right.elements // (rows * columns))
    shape = _Rows(left.elements // columns // batches, rows, columns, False, False,
                  "input2", batches)
    return (_lower_rows("arm_batch_matmul_s8", shape, site,
                        assumed=has_extension(site.isa, "mve")),)


def _lower_rows(name: str, shape: _Rows, site: Site, assumed: bool = False) -> Kernel:
    dialect = choose_dialect(site.isa)
    at_once = 2 if dialect == "dsp" else 3
    groups, last = divmod(shape.rows, at_once)
    calls = shape.batches * shape.vectors
    return draft_kernel(
        name, "fully_connected", site,
        entry(dialect, 100, calls),
        repeat("batch", shape.batches, repeat(
            "vector", shape.vectors,
            repeat("group", groups, *_group(dialect, shape, at_once, calls * groups, 0)),
            repeat("group", last, *_group(dialect, shape, 1, calls * last, groups * at_once)))),
        macs=calls * shape.rows * shape.columns, assumed=assumed)


def _group(dialect: str, shape: _Rows, count: int, trips: int, start: int) -> tuple[Any, ...]:
    """`count` rows of weights from `start` on, times one vector."""
    columns, rows = shape.columns, shape.rows
    quads, rest = in_fours(dialect, columns)
    outer = {"vector": columns, "batch": shape.vectors * columns}

    def part(width: int, done: int) -> tuple[Any, ...]:
        return (load("input", width, done, column=width, **outer),
                *[load(shape.weights, width, (start + k) * columns + done, column=width,
                       batch=rows * columns, group=count * columns) for k in range(count)])

    biases = count if shape.has_bias else 0
    results = (requantise if shape.per_channel else requantise_tensor)(dialect, count)
    return (
        *[load("bias", 4, 4 * (start + k), group=4 * count) for k in range(biases)],
        *column_blocks(dialect, columns, trips, count),
        repeat("column", quads, *part(4, 0)),
        repeat("column", rest, *part(1, 4 * quads)),
        closing(f"{count} rows", join(
            *[bias_load(dialect)] * biases, bookkeeping(dialect, *_PAIR[dialect]), results,
            BRANCH[dialect])),
        *[load("parameters", 4, 4 * (half * rows + start + k), group=4 * count)
          for k in range(count if shape.per_channel else 0) for half in (0, 1)],
        *[store("output", 1, start + k, vector=rows, batch=shape.vectors * rows, group=count)
          for k in range(count)])


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
    four = _STEP_1 if rows == 1 else _STEP_2
    return column_loops(dialect, f"of {rows} rows", columns, entries, (
        join(*[four] * 4, _UNROLLED_END), join(four, _PEELED_END),
        single if rows == 1 else several), peeled=True)


_ENTRY_MVE = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; ldr r12, [r0]; sub sp, #60; ldr r5, [r3];"
    "ldrd r6, r10, [sp, #96]; ldrd r9, r7, [sp, #116]; cmp r12, #0; mov r8, r2; mov r11, #1;"
    "mov r4, r1; str r12, [sp, #52]; movs r0, #0; add sp, #60;"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_VECTOR_MVE = (
    "ldr r3, [r9, #12]; ldr r1, [r10]; ldr r0, [r4, #4]; str r3, [sp, #24]; ldr r2, [r8, #4];"
    "str r7, [sp]; str r0, [sp, #40]; str r1, [sp, #20]; ldrd r3, r1, [r4, #12];"
    "strd r1, r11, [sp, #32]; str r3, [sp, #28]; ldr r3, [r8]; ldr r1, [r4, #8];"
    "strd r3, r2, [sp, #12]; ldr r2, [r4]; mov r0, r6; strd r2, r1, [sp, #4]; ldr r3, [sp, #112];"
    "ldr r1, [sp, #104]; ldr r2, [sp, #52]; bl 1f;"
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; vpush {d8-d15}; sub sp, #92;"
    "ldr r10, [sp, #216]; movs r3, #0; cmp r10, #0; add r4, r10, #3; it ge; movge r4, r10;"
    "ldr r5, [sp, #228]; mov r7, r2; asrs r2, r4, #2; str r2, [sp, #36]; strd r1, r0, [sp, #44];"
    "lsls r2, r5, #1; str r2, [sp, #80]; add r2, r5, r5, lsl #1; str r2, [sp, #84];"
    "str r5, [sp, #76]; str r3, [sp, #72]; add r2, sp, #72; cmp r10, #3; vldrw.u32 q0, [r2];"
    "ldr r8, [sp, #192]; ldr r12, [sp, #212]; mov r2, r3; ldr r3, [sp, #200];"
    "add lr, r12, r12, lsl #1; vdup.32 q7, r3; ldr r3, [sp, #220]; add lr, r1; vdup.32 q6, r3;"
    "ldr r1, [sp, #228]; ldr r3, [sp, #224]; adds r5, r12, #15; mov r1, r1, lsl #2;"
    "vdup.32 q5, r3; add r3, r12, #30; str r1, [sp, #40]; ldr r3, [sp, #208]; ldr r1, [sp, #44];"
    "add r9, lr, r12; ldr r4, [sp, #208]; cmp r3, r2; str r9, [sp]; add r9, r1, r12;"
    "ldr r1, [sp, #48]; bic r6, r4, r4, asr #31; add r1, r12; negs r3, r3; vdup.32 q4, r6;"
    "str r1, [sp, #12]; mov r6, r2; mov r4, r8; vdup.32 q1, r3; mov r1, r7; mov r2, r12;"
    "mov r0, r12, lsl #2; sub r11, lr, r12; asrs r5, r5, #4; str lr, [sp, #8]; str r7, [sp, #52];"
    "mov r12, r2; mov r2, r3; ldr r10, [sp, #216]; lsls r2, r2, #4; movs r0, #0; add sp, #92;"
    "vpop {d8-d15}; ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}; ldr r1, [r10];"
    "ldr r3, [r9, #12]; subs r5, #1; add r6, r1; add r7, r3; bne 0b")
_ROWS_4_MVE = (
    "vldrw.u32 q3, [r1], #16; cmp r2, #0; vmov.32 r12, d7[1]; vmov.32 r8, d7[0];"
    "vmov.32 r10, d6[1]; vmov r7, s12; ble 1f; cmp r5, #1; mov lr, r5; it lt; movlt lr, #1;"
    "mov r3, r2; dls lr, lr; strd r0, r1, [sp, #16]; strd r5, r4, [sp, #24]; str r6, [sp, #32];"
    "str r2, [sp, #212]")
_INNER_4_MVE = (
    "vctp.8 r3; vmrs r2, p0; sxth r2, r2; vmsr p0, r2; ldr r6, [sp, #12]; sub r5, r9, r3;"
    "subs r6, r6, r3; vpst; vldrbt.u8 q3, [r6]; vpst; vldrbt.u8 q2, [r5]; mov r6, r7;"
    "sub r4, r11, r3; vmladava.s8 r6, q2, q3; vpst; vldrbt.u8 q2, [r4]; ldr r0, [sp, #8];"
    "vmladava.s8 r10, q2, q3; subs r0, r0, r3; vpst; vldrbt.u8 q2, [r0]; ldr r1, [sp];"
    "vmladava.s8 r8, q2, q3; subs r1, r1, r3; vpst; vldrbt.u8 q2, [r1]; mov r7, r6;"
    "vmladava.s8 r12, q2, q3; subs r3, #16; le lr, 0b")
_GATHER_4_MVE = (
    "ldrd r0, r1, [sp, #16]; ldrd r5, r4, [sp, #24]; strd r7, r10, [sp, #56];"
    "strd r8, r12, [sp, #64]; add r3, sp, #56; vldrw.u32 q3, [r3]; ldr r6, [sp, #32];"
    "ldr r2, [sp, #212]")
_FINISH_4_MVE = join(
    SCALE_SCALAR, CLAMP_VECTOR,
    "ldr r3, [sp]; adds r6, #1; add r3, r0; str r3, [sp]; ldr r3, [sp, #8]; add r11, r0;"
    "add r3, r0; str r3, [sp, #8]; ldr r3, [sp, #204]; add r9, r0; vstrb.32 q3, [r4, q0];"
    "ldr r3, [sp, #40]; add r4, r3; ldr r3, [sp, #36]; cmp r3, r6; bgt 0b")
_FINISH_4_PER_CHANNEL_MVE = join(
    "vldrw.u32 q1, [r6], #16; vldrw.u32 q0, [r7], #16; vcmp.s32 gt, q1, r2", SCALE_VECTOR,
    CLAMP_VECTOR,
    "ldr r3, [sp]; adds r6, #1; add r3, r0; str r3, [sp]; ldr r3, [sp, #8]; add r3, r0;"
    "str r3, [sp, #8]; add r9, r0; vstrb.32 q3, [r4, q0]; ldr r3, [sp, #36]; cmp r3, r6; bgt 0b")
_ROW_1_MVE = ("ldr r5, [sp, #44]; ldr r10, [r7], #4; cmp r12, #0; mov lr, r11; mov r3, r12;"
              "dls lr, lr; str r5, [sp]")
_INNER_1_MVE = ("vctp.8 r3; vmrs r2, p0; sxth r2, r2; vmsr p0, r2; subs r1, r0, r3; "
                "subs r5, r4, r3;"
                "vpst; vldrbt.u8 q2, [r5]; vpst; vldrbt.u8 q3, [r1]; subs r3, #16;"
                "vmladava.s8 r10, q3, q2; le lr, 0b")
_FINISH_1_MVE = join("ldr r5, [sp]; ldr r3, [sp, #204]; ldr r6, [sp, #208]", SCALE_ONE,
                 "ldr r3, [sp, #228]; cmp r7, r9; strb r1, [r8]; add r8, r3; bne 0b")


def _lower_mve(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Scratch holds the sums over weight rows, bias included."""
    shape = _read_rows(graph, layer)
    rows, columns, per_channel = shape.rows, shape.columns, shape.per_channel
    fours, ones = divmod(rows, 4)
    first, shifts = 4 * fours, 4 * rows
    data, result = row_load("input", 0, vector_row=columns), {"vector_row": rows}
    wide = [load("parameters", 16, part, four=16) for part in (shifts, 0)]
    narrow = [load("parameters", 4, part + 4 * first, one=4) for part in (0, shifts)]
    finish = _FINISH_4_PER_CHANNEL_MVE if per_channel else _FINISH_4_MVE
    return (draft_kernel(
        _name(shape), "fully_connected", site,
        step("call", _ENTRY_MVE, "kernel_call"),
        repeat("vector_row", shape.vectors,
               closing("input row", _VECTOR_MVE, "kernel_call"),
               repeat("four", fours,
                      step("four weight rows", _ROWS_4_MVE),
                      load("scratch", 16, 0, four=16),
                      repeat("sixteen", vectors(columns), closing("multiply 16 x 4", _INNER_4_MVE)),
                      *row_moves(columns, data, *[
                          row_load("weights", one * columns, four=4 * columns)
                          for one in range(4)]),
                      closing("requantise four", join(_GATHER_4_MVE, finish)),
                      *(wide if per_channel else []),
                      *[store("output", 1, one, four=4, **result) for one in range(4)]),
               repeat("one", ones,
                      step("left-over weight row", _ROW_1_MVE),
                      load("scratch", 4, 4 * first, one=4),
                      repeat("sixteen", vectors(columns), closing("multiply 16", _INNER_1_MVE)),
                      *row_moves(columns, data, row_load("weights", first * columns, one=columns)),
                      closing("requantise one", _FINISH_1_MVE),
                      *(narrow if per_channel else []),
                      store("output", 1, first, one=1, **result))),
        macs=shape.vectors * rows * columns),)


def _scratch_bytes_mve(graph: Graph, layer: Layer, isa: str) -> int:
    """One 32-bit sum per weight row."""
    return 4 * graph.input(layer, 1).shape[-2]


KERNELS: Kernels = {
    "batch_matmul": {"c": Lowering(lower=_lower_batch_matmul)},
    "fully_connected": {
        "c": Lowering(lower=_lower),
        "mve": Lowering(lower=_lower_mve, scratch_bytes=_scratch_bytes_mve),
    },
}
