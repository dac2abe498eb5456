"""Instruction sequences of depthwise convolutions, by dialect."""

from __future__ import annotations

from twin.runtimes.cmsis_nn.libc import COPY_4_TO_STACK

TAP_3X3 = {  # one window position of four channels: 4 MAC
    "dsp": (
        "ldr r2, [r6, r11]; ldr r1, [r7, r11]; sxtab16 r8, r12, r2, ror #8;"
        "sxtb16 r9, r1, ror #8; smlabb r0, r8, r9, r0; sxtab16 r2, r12, r2; smlatt r5, r8, r9, r5;"
        "sxtb16 r1, r1; smlabb r4, r2, r1, r4; smlatt r3, r2, r1, r3"),
    "thumb2": (
        "ldr r3, [r6, r2]; ldr r2, [r7, r2]; sxtb r8, r3; add r8, r11; sbfx lr, r3, #8, #8;"
        "sxtb r10, r2; add lr, r11; sbfx r12, r3, #16, #8; mla r5, r10, r8, r5;"
        "sbfx r8, r2, #8, #8; mla r4, r8, lr, r4; add r12, r11; sbfx lr, r2, #16, #8;"
        "add r3, r11, r3, asr #24; asrs r2, r2, #24; mla r0, lr, r12, r0; mla r1, r2, r3, r1"),
    "thumb1": (  # two unaligned words fetched through memcpy
        "add r1, r9; " + COPY_4_TO_STACK + "; ldr r4, [sp, #184]; add r1, r10; "
        + COPY_4_TO_STACK + ";"
        "ldr r3, [sp, #188]; sxtb r1, r4; adds r1, r1, r5; sxtb r2, r3; muls r2, r1, r2;"
        "asrs r1, r4, #8; add r8, r2; sxtb r1, r1; asrs r2, r3, #8; adds r1, r1, r5; sxtb r2, r2;"
        "muls r2, r1, r2; asrs r1, r4, #16; add r9, r2; sxtb r1, r1; asrs r2, r3, #16;"
        "adds r1, r1, r5; sxtb r2, r2; muls r2, r1, r2; add r10, r2; ldr r2, [sp];"
        "asrs r4, r4, #24; mov r12, r2; adds r4, r4, r5; asrs r3, r3, #24; muls r3, r4, r3;"
        "add r12, r3; mov r3, r12; str r3, [sp]"),
    "rv32": (  # words assembled from bytes on the stack: no unaligned access
        "add a5, a6, s9; add a4, t1, s9; lbu s4, 0(a5); lbu s2, 1(a5); lbu t4, 2(a5);"
        "lbu a5, 3(a5); lbu t3, 0(a4); lbu a7, 1(a4); lbu a1, 2(a4); lbu a4, 3(a4);"
        "sb s4, 172(sp); sb s2, 173(sp); sb t4, 174(sp); sb a5, 175(sp); lw a5, 172(sp);"
        "sb t3, 172(sp); sb a1, 174(sp); sb a4, 175(sp); sb a7, 173(sp); lw a7, 172(sp);"
        "srai a1, a5, 8; srai a4, a5, 16; slli t3, a5, 24; srai s2, a7, 8; srai t4, a7, 16;"
        "slli a1, a1, 24; slli a4, a4, 24; srai a5, a5, 24; slli s4, a7, 24; srai t3, t3, 24;"
        "srai a1, a1, 24; srai a4, a4, 24; slli s2, s2, 24; slli t4, t4, 24; add a5, a5, s11;"
        "srai a7, a7, 24; mul a5, a5, a7; add t3, t3, s11; srai s4, s4, 24; add a1, a1, s11;"
        "srai s2, s2, 24; add a4, a4, s11; srai t4, t4, 24; mul t3, t3, s4; add t6, t6, a5;"
        "mul a1, a1, s2; add s0, s0, t3; mul a4, a4, t4; add t2, t2, a1; add t0, t0, a4"),
}

TAP_SINGLE = {  # one window position of one channel: 1 MAC
    "dsp": "ldrsb r1, [r0, r11]; ldrsb r4, [r2, r11]; add r1, lr; mla r3, r4, r1, r3",
    "thumb2": "ldrsb r1, [r0, r11]; ldrsb r4, [r2, r11]; add r1, lr; mla r3, r4, r1, r3",
    "thumb1": "ldrsb r1, [r0, r6]; ldrsb r4, [r2, r6]; add r1, lr; muls r4, r1, r4;"
              "adds r3, r3, r4",
    "rv32": "add a5, a6, s9; add a4, t1, s9; lb a5, 0(a5); lb a4, 0(a4); add a5, a5, s11;"
            "mul a5, a5, a4; add s0, s0, a5",
}

GENERIC_TAP = {  # generic kernel: one position of one channel
    "dsp": "ldrsb r3, [r2]; ldrsb r7, [r1]; adds r0, #1; add r3, r10; cmp r6, r0; add r2, r8;"
           "mla r4, r7, r3, r4; add r1, r9; bne 0b",
    "thumb1": "ldr r6, [sp, #4]; movs r3, #0; mov r8, r6; ldrsb r3, [r2, r3]; movs r7, #0;"
              "ldrsb r7, [r1, r7]; adds r0, #1; add r3, r8; add r2, r8; muls r7, r3, r7;"
              "adds r4, r4, r7; add r1, r9; cmp r6, r0; bne 0b",
    "rv32": "lb a5, 0(a2); lb a4, 0(a1); addi a0, a0, 1; add a5, a5, s11; add a2, a2, s8;"
            "mul a5, a5, a4; add a1, a1, s9; add s0, s0, a5; bne a0, a6, 0b",
}
GENERIC_TAP["thumb2"] = GENERIC_TAP["dsp"]

MULTIPLIER_4_TAP = {  # one input position by four output channels: 4 MAC
    "dsp": "ldrsb r3, [lr]; ldrsb r2, [r1]; add r3, r9; mla r7, r3, r2, r7; ldrsb r2, [r1, #1];"
           "mla r4, r3, r2, r4; ldrsb r2, [r1, #2]; adds r0, #1; mla r5, r3, r2, r5;"
           "ldrsb r2, [r1, #3]; cmp r0, r12; add lr, r11; mla r6, r3, r2, r6; add r1, r10; bne 0b",
    "thumb1": "movs r3, #0; ldrsb r3, [r4, r3]; adds r3, r3, r7; movs r2, #0; ldrsb r2, [r1, r2];"
              "muls r2, r3, r2; add r8, r2; movs r2, #1; ldrsb r2, [r1, r2]; muls r2, r3, r2;"
              "add r9, r2; movs r2, #2; ldrsb r2, [r1, r2]; muls r2, r3, r2; add r10, r2;"
              "movs r2, #3; ldrsb r2, [r1, r2]; muls r2, r3, r2; adds r6, r6, r2; adds r0, #1;"
              "add r4, r11; add r1, r12; cmp r0, r5; bne 0b",
    "rv32": "lb a5, 0(a3); lb a4, 0(a1); lb a2, 1(a1); lb t3, 2(a1); lb t4, 3(a1);"
            "add a5, a5, s11; mul a4, a5, a4; mul a2, a5, a2; mul t3, a5, t3; mul a5, a5, t4;"
            "add s0, s0, a4; add s1, s1, a2; add s2, s2, t3; add s3, s3, a5; addi a0, a0, 1;"
            "add a3, a3, s8; add a1, a1, s9; bne a0, a6, 0b",
}
MULTIPLIER_4_TAP["thumb2"] = MULTIPLIER_4_TAP["dsp"]

WIDEN_4_ORDERED = (  # four int8 to int16 with the offset added, in order
    "ldr r12, [r0], #4; sxtab16 lr, r6, r12; adds r4, #8; cmp r0, r5; ror r12, r12, #8;"
    "sxtab16 r12, r6, r12; pkhtb r7, r12, lr, asr #16; pkhbt lr, lr, r12, lsl #16;"
    "str r7, [r4, #-4]; str lr, [r4, #-8]; bne 0b")
WIDEN_1 = "ldrsb r0, [r5], #1; add r0, r3; cmp r2, r5; strh r0, [r1], #2; bne 0b"

COLUMN_TAPS_2 = (  # two window positions of four channels from an int16 column: 8 MAC
    "ldr r2, [sp, #8]; ldr r3, [r7]; ldr r0, [r7, r2]; ldr r10, [r1]; ldr r6, [r1, r9];"
    "ldr r12, [sp]; pkhbt r8, r6, r10, lsl #16; ror r5, r3, #8; ror r2, r0, #8; sxtb16 r3, r3;"
    "sxtb16 r0, r0; pkhtb r6, r6, r10, asr #16; sxtb16 r5, r5; sxtb16 r2, r2;"
    "pkhbt r10, r0, r3, lsl #16; smlad r8, r8, r10, r12; str r8, [sp];"
    "pkhbt r8, r5, r2, lsl #16; smlad lr, r6, r8, lr; pkhtb r3, r3, r0, asr #16;"
    "ldr r0, [sp, #12]; ldr r6, [r1, #4]; ldr r0, [r0, r1]; pkhbt r8, r0, r6, lsl #16;"
    "pkhtb r0, r0, r6, asr #16; ldr r6, [sp, #4]; smlad r3, r8, r3, r6; str r3, [sp, #4];"
    "pkhtb r2, r2, r5, asr #16; smlad r11, r0, r2, r11; ldr r3, [sp, #16]; subs r4, #1;"
    "uxth r4, r4; add r7, r9; add r1, r3; cmp r4, #0; bne 0b")
COLUMN_TAP_LAST = (  # the odd last position of four channels: 4 MAC
    "ldrsb r2, [r7]; ldrsh r3, [r1]; ldr r0, [sp]; mla r0, r2, r3, r0; str r0, [sp];"
    "ldrsb r2, [r7, #1]; ldrsh r3, [r1, #2]; mla lr, r2, r3, lr; ldrsb r2, [r7, #2];"
    "ldrsh r3, [r1, #4]; ldr r0, [sp, #4]; mla r0, r2, r3, r0; str r0, [sp, #4];"
    "ldrsb r2, [r7, #3]; ldrsh r3, [r1, #6]; mla r11, r2, r3, r11")
COLUMN_TAP_SINGLE = (  # one position of one leftover channel
    "ldrsb r4, [r1]; ldrh r6, [r3]; adds r2, #1; cmp r5, r2; add r1, r9; smlabb r0, r6, r4, r0;"
    "add r3, r8; bne 0b")

CLAMP_4_PACKED = (  # offset, clamp and one word store of four results (stores are merged)
    "ldr r3, [sp, #44]; ldr r5, [sp, #48]; ldr r7, [sp, #52]; add r4, r3; add r6, r3; cmp r4, r5;"
    "it lt; movlt r4, r5; cmp r6, r5; add r0, r3; it lt; movlt r6, r5; cmp r4, r7; it ge;"
    "movge r4, r7; cmp r0, r5; add r1, r3; it lt; movlt r0, r5; cmp r6, r7; it ge; movge r6, r7;"
    "movs r3, #0; cmp r1, r5; it lt; movlt r1, r5; bfi r3, r4, #0, #8; cmp r0, r7; it ge;"
    "movge r0, r7; bfi r3, r6, #8, #8; cmp r1, r7; it ge; movge r1, r7; bfi r3, r0, #16, #8;"
    "bfi r3, r1, #24, #8; ldr r1, [sp, #56]; add r1, r10; str r3, [r1, #-4]")
