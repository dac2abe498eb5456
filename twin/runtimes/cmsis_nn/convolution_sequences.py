"""Instruction sequences of the general convolution, by dialect."""

from __future__ import annotations

from typing import NamedTuple


class Codes(NamedTuple):
    """Inner loops: widen one column, multiply two weight rows (or one) by two columns (or one)."""

    widen: str
    multiply_2x2: str
    multiply_1x2: str
    multiply_1x1: str


WIDEN_4 = (  # four int8 of a column to int16 with the offset added, even and odd bytes apart
    "ldr r12, [r0], #4; add lr, lr, #8; cmp r0, r5; ror r4, r12, #8; sxtab16 r12, r6, r12;"
    "sxtab16 r4, r6, r4; str r12, [lr, #-8]; str r4, [lr, #-4]; bne 0b")

MULTIPLY_4_2X2 = (  # 16 MAC: four columns, two weight rows, two pixels
    "ldr r7, [sp, #4]; ldr r0, [r9], #4; ldr r1, [r7], #4; str r7, [sp, #4];"
    "sxtb16 r12, r0, ror #8; sxtb16 r7, r1, ror #8; ldr r8, [r4]; ldr lr, [r5]; sxtb16 r0, r0;"
    "sxtb16 r1, r1; smlad r3, r0, r8, r3; smlad r2, r0, lr, r2; smlad r11, r1, r8, r11;"
    "smlad r10, r1, lr, r10; ldr r0, [r4, #4]; ldr r1, [r5, #4]; adds r4, #8; adds r5, #8;"
    "smlad r3, r12, r0, r3; smlad r2, r12, r1, r2; smlad r11, r7, r0, r11;"
    "smlad r10, r7, r1, r10; subs r6, #1; bne 0b")
MULTIPLY_4_1X2 = (  # 8 MAC: four columns, one weight row, two pixels
    "ldr r0, [r9], #4; ldr r8, [r4]; ldr lr, [r5]; sxtb16 r12, r0, ror #8; sxtb16 r0, r0;"
    "smlad r3, r0, r8, r3; smlad r2, r0, lr, r2; ldr r8, [r4, #4]; ldr lr, [r5, #4];"
    "adds r4, #8; adds r5, #8; smlad r3, r12, r8, r3; smlad r2, r12, lr, r2; cmp r9, r1; bne 0b")
MULTIPLY_4_1X1 = (  # 4 MAC: four columns, one weight row, one pixel
    "ldr r2, [lr], #4; ldr r9, [r1]; sxtb16 r5, r2, ror #8; sxtb16 r2, r2; smlad r2, r2, r9, r3;"
    "ldr r3, [r1, #4]; adds r1, #8; smlad r3, r5, r3, r2; cmp r0, lr; bne 0b")

_THUMB2 = Codes(
    "ldrsb r0, [r5], #1; add r0, r3; cmp r5, r2; strh r0, [r1], #2; bne 0b",
    "ldrsb r1, [r0], #1; ldrsh r5, [r3], #2; ldrsh r2, [r8], #2; mla r7, r5, r1, r7;"
    "mla lr, r2, r1, lr; ldrsb r1, [r10], #1; cmp r3, r9; mla r6, r1, r5, r6;"
    "mla r12, r1, r2, r12; bne 0b",
    "ldrsb r1, [r0], #1; ldrsh r5, [r3], #2; ldrsh r2, [r8], #2; cmp r0, r9;"
    "mla r7, r5, r1, r7; mla lr, r2, r1, lr; bne 0b",
    "ldrsb r1, [r0], #1; ldrsh r5, [r2], #2; cmp lr, r0; mla r3, r5, r1, r3; bne 0b")

CODES = {
    "dsp": _THUMB2._replace(multiply_1x1=(
        "ldrsb r1, [r0], #1; ldrh r5, [r2], #2; cmp lr, r0; smlabb r3, r5, r1, r3; bne 0b")),
    "thumb2": _THUMB2,
    "thumb1": Codes(
        "movs r4, #0; ldrsb r4, [r0, r4]; adds r0, #1; adds r4, r4, r3; strh r4, [r1];"
        "adds r1, #2; cmp r0, r2; bne 0b",
        "ldr r2, [sp, #8]; lsls r0, r3, #1; ldrsb r1, [r2, r3]; ldr r2, [sp, #12];"
        "ldrsh r2, [r2, r0]; movs r4, r2; muls r4, r1, r4; mov r12, r4; ldr r4, [sp, #4];"
        "add r4, r12; str r4, [sp, #4]; ldr r4, [sp, #16]; ldrsh r0, [r4, r0]; muls r1, r0, r1;"
        "adds r6, r6, r1; mov r1, r11; ldrsb r1, [r1, r3]; adds r3, #1; muls r2, r1, r2;"
        "muls r1, r0, r1; adds r5, r5, r2; adds r7, r7, r1; cmp r3, r8; bne 0b",
        "lsls r0, r3, #1; ldr r2, [sp, #8]; ldrsb r1, [r2, r3]; ldr r2, [sp, #12];"
        "ldrsh r2, [r2, r0]; ldr r4, [sp, #16]; ldrsh r0, [r4, r0]; adds r3, #1; muls r2, r1, r2;"
        "muls r1, r0, r1; adds r5, r5, r2; adds r7, r7, r1; cmp r3, r8; bne 0b",
        "movs r1, #0; ldrsb r1, [r0, r1]; movs r5, #0; ldrsh r5, [r2, r5]; adds r0, #1;"
        "adds r2, #2; muls r1, r5, r1; adds r3, r3, r1; cmp r0, r6; bne 0b"),
    "rv32": Codes(
        "lb a4, 0(a0); addi a0, a0, 1; addi a1, a1, 2; add a4, a4, a3; sh a4, -2(a1);"
        "bne a0, a2, 0b",
        "lb a6, 0(a0); lh t5, 0(a3); lb a7, 0(a1); lh t6, 0(a4); addi a0, a0, 1; addi a3, a3, 2;"
        "addi a1, a1, 1; addi a4, a4, 2; mul t3, a6, t5; mul a6, a6, t6; mul t5, a7, t5;"
        "mul a7, a7, t6; add t1, t1, t3; add t4, t4, a6; add t0, t0, t5; add t2, t2, a7;"
        "bne a0, s1, 0b",
        "lb a6, 0(a0); lh t5, 0(a3); lh t6, 0(a4); addi a0, a0, 1; addi a3, a3, 2;"
        "addi a4, a4, 2; mul t5, a6, t5; mul a6, a6, t6; add t1, t1, t5; add t4, t4, a6;"
        "bne a0, s1, 0b",
        "lb a6, 0(a0); lh t5, 0(a3); addi a0, a0, 1; addi a3, a3, 2; mul a6, a6, t5;"
        "add t1, t1, a6; bne a0, s1, 0b"),
}
"""Element-wise loops; `dsp` uses them for what four columns leave over."""
