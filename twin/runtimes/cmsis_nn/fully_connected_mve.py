"""Fully connected layers on Helium: one input row times four weight rows at a time.

References
----------
ARM-software/CMSIS-NN 6.2, Source/FullyConnectedFunctions/arm_fully_connected_s8.c and
arm_fully_connected_per_channel_s8.c; Source/NNSupportFunctions/arm_nn_vec_mat_mult_t_s8.c, the
MVE path. The sums over weight rows are made once, when the network is prepared.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block, Kernel
from twin.network.graph import Graph, Layer
from twin.runtimes.cmsis_nn.dialect import block, build_kernel, join
from twin.runtimes.cmsis_nn.nests import load, repeat, resolve, store
from twin.runtimes.cmsis_nn.vector_mve import (
    CLAMP,
    SCALE_ONE,
    SCALE_SCALAR,
    SCALE_VECTOR,
    int8_only,
    row_load,
    row_moves,
    vectors,
)
from twin.runtimes.lowering import Site

_ENTRY = (
    "stmdb sp!, {r4, r5, r6, r7, r8, r9, r10, r11, lr}; ldr r12, [r0]; sub sp, #60; ldr r5, [r3];"
    "ldrd r6, r10, [sp, #96]; ldrd r9, r7, [sp, #116]; cmp r12, #0; mov r8, r2; mov r11, #1;"
    "mov r4, r1; str r12, [sp, #52]; movs r0, #0; add sp, #60;"
    "ldmia sp!, {r4, r5, r6, r7, r8, r9, r10, r11, pc}")
_VECTOR = (
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
_ROWS_4 = (
    "vldrw.u32 q3, [r1], #16; cmp r2, #0; vmov.32 r12, d7[1]; vmov.32 r8, d7[0];"
    "vmov.32 r10, d6[1]; vmov r7, s12; ble 1f; cmp r5, #1; mov lr, r5; it lt; movlt lr, #1;"
    "mov r3, r2; dls lr, lr; strd r0, r1, [sp, #16]; strd r5, r4, [sp, #24]; str r6, [sp, #32];"
    "str r2, [sp, #212]")
_INNER_4 = (
    "vctp.8 r3; vmrs r2, p0; sxth r2, r2; vmsr p0, r2; ldr r6, [sp, #12]; sub r5, r9, r3;"
    "subs r6, r6, r3; vpst; vldrbt.u8 q3, [r6]; vpst; vldrbt.u8 q2, [r5]; mov r6, r7;"
    "sub r4, r11, r3; vmladava.s8 r6, q2, q3; vpst; vldrbt.u8 q2, [r4]; ldr r0, [sp, #8];"
    "vmladava.s8 r10, q2, q3; subs r0, r0, r3; vpst; vldrbt.u8 q2, [r0]; ldr r1, [sp];"
    "vmladava.s8 r8, q2, q3; subs r1, r1, r3; vpst; vldrbt.u8 q2, [r1]; mov r7, r6;"
    "vmladava.s8 r12, q2, q3; subs r3, #16; le lr, 0b")
_GATHER_4 = (
    "ldrd r0, r1, [sp, #16]; ldrd r5, r4, [sp, #24]; strd r7, r10, [sp, #56];"
    "strd r8, r12, [sp, #64]; add r3, sp, #56; vldrw.u32 q3, [r3]; ldr r6, [sp, #32];"
    "ldr r2, [sp, #212]")
_FINISH_4 = join(
    SCALE_SCALAR, CLAMP,
    "ldr r3, [sp]; adds r6, #1; add r3, r0; str r3, [sp]; ldr r3, [sp, #8]; add r11, r0;"
    "add r3, r0; str r3, [sp, #8]; ldr r3, [sp, #204]; add r9, r0; vstrb.32 q3, [r4, q0];"
    "ldr r3, [sp, #40]; add r4, r3; ldr r3, [sp, #36]; cmp r3, r6; bgt 0b")
_FINISH_4_PER_CHANNEL = join(
    "vldrw.u32 q1, [r6], #16; vldrw.u32 q0, [r7], #16; vcmp.s32 gt, q1, r2", SCALE_VECTOR, CLAMP,
    "ldr r3, [sp]; adds r6, #1; add r3, r0; str r3, [sp]; ldr r3, [sp, #8]; add r3, r0;"
    "str r3, [sp, #8]; add r9, r0; vstrb.32 q3, [r4, q0]; ldr r3, [sp, #36]; cmp r3, r6; bgt 0b")
_ROW_1 = ("ldr r5, [sp, #44]; ldr r10, [r7], #4; cmp r12, #0; mov lr, r11; mov r3, r12;"
          "dls lr, lr; str r5, [sp]")
_INNER_1 = ("vctp.8 r3; vmrs r2, p0; sxth r2, r2; vmsr p0, r2; subs r1, r0, r3; subs r5, r4, r3;"
            "vpst; vldrbt.u8 q2, [r5]; vpst; vldrbt.u8 q3, [r1]; subs r3, #16;"
            "vmladava.s8 r10, q3, q2; le lr, 0b")
_FINISH_1 = join("ldr r5, [sp]; ldr r3, [sp, #204]; ldr r6, [sp, #208]", SCALE_ONE,
                 "ldr r3, [sp, #228]; cmp r7, r9; strb r1, [r8]; add r8, r3; bne 0b")


@int8_only
def lower_fully_connected(graph: Graph, layer: Layer, site: Site) -> tuple[Kernel, ...]:
    """Lower a fully connected layer.

    Parameters
    ----------
    graph : Graph
        The model.
    layer : Layer
        A `fully_connected`; weights (rows, columns).
    site : Site
        Operands: input, weights, output, scratch (sums over weight rows, bias included),
        parameters where scales are per channel.
    """
    weights = graph.tensors[layer.inputs[1]]
    rows, columns = weights.shape[-2:]
    count = graph.tensors[layer.inputs[0]].elements // columns
    per_channel = weights.quantization is not None and len(weights.quantization.scales) > 1
    name = "arm_fully_connected_per_channel_s8" if per_channel else "arm_fully_connected_s8"
    drafts = _drafts(count, rows, columns, per_channel)
    return (build_kernel(name, "fully_connected", site,
                         _blocks(count, rows, columns, per_channel), resolve(drafts),
                         count * rows * columns),)


def scratch_bytes_fully_connected(graph: Graph, layer: Layer, isa: str) -> int:
    """Working memory: one 32-bit sum per weight row."""
    return 4 * graph.tensors[layer.inputs[1]].shape[-2]


def _blocks(count: int, rows: int, columns: int, per_channel: bool) -> tuple[Block, ...]:
    fours, ones = rows // 4 * count, rows % 4 * count
    per_row = vectors(columns)
    return (
        block("call", _ENTRY, 1, cause="kernel_call"),
        block("input row", _VECTOR, count, min(1, count), "kernel_call"),
        block("four weight rows", _ROWS_4, fours),
        block("multiply 16 x 4", _INNER_4, fours * per_row, fours),
        block("requantise four", join(
            _GATHER_4, _FINISH_4_PER_CHANNEL if per_channel else _FINISH_4), fours,
            min(count, fours)),
        block("left-over weight row", _ROW_1, ones),
        block("multiply 16", _INNER_1, ones * per_row, ones),
        block("requantise one", _FINISH_1, ones, min(count, ones)),
    )


def _drafts(count: int, rows: int, columns: int, per_channel: bool) -> Any:
    fours, ones = divmod(rows, 4)
    first = 4 * fours
    vector = {"vector_row": columns}
    result = {"vector_row": rows}
    shifts = 4 * rows
    wide = [load("parameters", 16, shifts, four=16), load("parameters", 16, 0, four=16)]
    narrow = [load("parameters", 4, 4 * first, one=4),
              load("parameters", 4, shifts + 4 * first, one=4)]
    return repeat(
        "vector_row", count,
        repeat("four", fours, load("scratch", 16, 0, four=16),
               *row_moves(columns, row_load("input", 0, **vector),
                          *[row_load("weights", one * columns, four=4 * columns)
                            for one in range(4)]),
               *(wide if per_channel else []),
               *[store("output", 1, one, four=4, **result) for one in range(4)]),
        repeat("one", ones, load("scratch", 4, 4 * first, one=4),
               *row_moves(columns, row_load("input", 0, **vector),
                          row_load("weights", first * columns, one=columns)),
               *(narrow if per_channel else []), store("output", 1, first, one=1, **result)))
