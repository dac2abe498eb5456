"""Sequences the kernels share: calls, bookkeeping, requantisation; with Helium, rows as vectors.

Helium's mix is what gcc 12.2 -O2 makes of the library's intrinsics and inline assembly for
Cortex-M55; register numbers carry only the dependencies. A tail-predicated access of n < 16
bytes is one access; its width here is n rounded down to a power of two.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hwmodels.kernel import Block
from twin.runtimes.lowering.blocks import CALL, RETURN, block, join, plain, spills
from twin.runtimes.lowering.nests import Move, load, repeat, store

LONG_MULTIPLY = (  # body of the 32x32 -> 64 bit multiply that Armv6-M calls: 41 instructions
    "bl __aeabi_lmul; push {r4, r5, r6, r7, lr}; mov lr, r9; mov r9, r3; lsrs r3, r0, #16;"
    "mov r12, r3; lsls r3, r2, #16; mov r7, r8; lsrs r3, r3, #16; movs r5, r3; movs r6, r1;"
    "mov r1, r12; lsls r4, r0, #16; lsrs r4, r4, #16; push {r7, lr}; movs r7, r0;"
    "lsrs r0, r2, #16; muls r3, r1, r3; muls r5, r4, r5; muls r1, r0, r1; muls r0, r4, r0;"
    "lsrs r4, r5, #16; adds r0, r0, r3; adds r4, r4, r0; mov r12, r1; cmp r3, r4;"
    "mov r1, r9; muls r1, r7, r1; muls r6, r2, r6; lsrs r3, r4, #16; lsls r5, r5, #16;"
    "lsrs r5, r5, #16; adds r1, r1, r6; add r3, r12; lsls r4, r4, #16; adds r0, r4, r5;"
    "adds r1, r1, r3; pop {r6, r7}; mov r9, r7; mov r8, r6; pop {r4, r5, r6, r7, pc}")

_SCALE_THUMB2 = (  # doubling high multiply, then rounding shift right by -shift
    "bic r1, r6, r6, asr #31; lsl r0, r4, r1; mov r12, #0; mov r1, #1073741824;"
    "smlal r1, r12, r0, r3; lsrs r1, r1, #31; cmp r6, #0; orr r1, r1, r12, lsl #1; bgt 1f;"
    "rsbs r6, r6, #0; movs r3, #1; lsls r3, r6; subs r3, #1; and r5, r1, r3; asrs r1, r6;"
    "asr r3, r3, #1; it mi; addmi r3, #1; cmp r5, r3; it gt; addgt r1, #1")
_SCALE_RV32 = (
    "not a2, t4; srai a2, a2, 31; and a2, t4, a2; sll a0, a0, a2; mul a1, a0, s2;"
    "add s1, a1, s10; sltu a1, s1, a1; srli s1, s1, 31; mulh a0, a0, s2; add a1, a1, a0;"
    "slli a1, a1, 1; or a1, a1, s1; bgtz t4, 1f; neg t4, t4; li a3, 1; sll s5, a3, t4;"
    "addi s5, s5, -1; and a0, a1, s5; sra a1, a1, t4; slti a3, a1, 0; srai t5, s5, 1;"
    "add a3, a3, t5; slt a3, a3, a0; add a1, a1, a3")
_SCALE_THUMB1 = (
    "mvns r7, r6; asrs r7, r7, #31; ands r7, r6; lsls r0, r7; asrs r1, r0, #31;"
    "asrs r2, r3, #31; str r2, [sp, #16]; movs r2, r3; ldr r3, [sp, #16];"
    + LONG_MULTIPLY +
    "; movs r2, #128; lsls r2, r2, #23; movs r3, #0; adds r0, r0, r2; adcs r1, r3;"
    "lsrs r0, r0, #31; lsls r1, r1, #1; orrs r1, r0; cmp r6, #0; bgt 1f; rsbs r6, r6, #0;"
    "movs r3, #1; lsls r3, r6; subs r3, #1; movs r5, r1; ands r5, r3; asrs r1, r6; asrs r3, r3, #1;"
    "cmp r1, #0; b 2f; cmp r5, r3; ble 3f; adds r1, #1")

SCALE = {
    "dsp": _SCALE_THUMB2, "thumb2": _SCALE_THUMB2, "thumb1": _SCALE_THUMB1, "rv32": _SCALE_RV32,
}
"""Requantise one accumulator with multiplier and shift in registers (both rounding steps)."""

_HOISTED_THUMB2 = (
    "mov r1, r11; mov r12, r10; smlal r1, r12, r0, lr; lsrs r1, r1, #31; orr r1, r1, r12, lsl #1;"
    "and r7, r1, r6; asrs r1, r4; ite mi; addmi lr, r5, #1; movpl lr, r5; cmp r7, lr; it gt;"
    "addgt r1, #1")
SCALE_HOISTED = {
    "dsp": _HOISTED_THUMB2,
    "thumb2": _HOISTED_THUMB2,
    "thumb1": "ldr r2, [sp, #32]; ldr r3, [sp, #28]; asrs r1, r0, #31;" + LONG_MULTIPLY +
              "; movs r2, #128; lsls r2, r2, #23; movs r3, #0; adds r0, r0, r2; adcs r1, r3;"
              "lsrs r0, r0, #31; lsls r1, r1, #1; orrs r0, r1; ldr r3, [sp, #48];"
              "ldr r1, [sp, #52]; ands r1, r0; asrs r0, r3; ldr r3, [sp, #56]; lsrs r2, r0, #31;"
              "add r2, r3; cmp r2, r1; bge 1f; adds r0, #1",
    "rv32": "mul a1, a0, s2; mulh a0, a0, s2; add s1, a1, s10; sltu a1, s1, a1; srli s1, s1, 31;"
            "add a1, a1, a0; slli a1, a1, 1; or a1, a1, s1; and a0, a1, s5; sra a1, a1, t4;"
            "slti a3, a1, 0; add a3, a3, t5; slt a3, a3, a0; add a1, a1, a3",
}
"""The same with one multiplier and shift for the whole tensor: masks and thresholds hoisted."""

PARAMETERS = {
    "dsp": "ldr r6, [r9, #-4]; ldr r3, [r8, #-4]",
    "thumb2": "ldr r6, [r9, #-4]; ldr r3, [r8, #-4]",
    "thumb1": "ldr r3, [sp, #28]; ldr r6, [r3]; ldr r3, [sp, #24]; ldr r3, [r3]",
    "rv32": "lw a2, 12(sp); lw s2, 0(s11); lw t4, 0(a2)",
}
"""Load one channel's multiplier and shift."""

CLAMP = {
    "dsp": "ldr r3, [sp, #132]; add r1, r3; ldr r3, [sp, #8]; cmp r1, r3; it lt; movlt r1, r3;"
           "ldr r3, [sp, #12]; cmp r1, r3; it ge; movge r1, r3",
    "thumb1": "ldr r3, [sp, #132]; adds r1, r1, r3; ldr r3, [sp, #8]; cmp r1, r3; bge 1f;"
              "movs r1, r3; ldr r3, [sp, #12]; cmp r1, r3; b 2f",
    "rv32": "lw a2, 108(sp); add a1, a1, a2; bge a1, t6, 1f; mv a1, t6; j 2f",
}
CLAMP["thumb2"] = CLAMP["dsp"]
"""Add the output offset and clamp to the activation's range; without conditional execution the
lower bound is taken as reached and the upper one as not."""

_CLAMP_4_PACKED = (  # offset, clamp and one word store of four results (stores are merged)
    "ldr r3, [sp, #44]; ldr r5, [sp, #48]; ldr r7, [sp, #52]; add r4, r3; add r6, r3; cmp r4, r5;"
    "it lt; movlt r4, r5; cmp r6, r5; add r0, r3; it lt; movlt r6, r5; cmp r4, r7; it ge;"
    "movge r4, r7; cmp r0, r5; add r1, r3; it lt; movlt r0, r5; cmp r6, r7; it ge; movge r6, r7;"
    "movs r3, #0; cmp r1, r5; it lt; movlt r1, r5; bfi r3, r4, #0, #8; cmp r0, r7; it ge;"
    "movge r0, r7; bfi r3, r6, #8, #8; cmp r1, r7; it ge; movge r1, r7; bfi r3, r0, #16, #8;"
    "bfi r3, r1, #24, #8; ldr r1, [sp, #56]; add r1, r10; str r3, [r1, #-4]")

STORE = {
    "dsp": "ldr r3, [sp, #16]; strb r1, [r3, #-1]",
    "thumb2": "ldr r3, [sp, #16]; strb r1, [r3, #-1]",
    "thumb1": "ldr r3, [sp, #16]; strb r1, [r3]",
    "rv32": "sb a1, 0(s3)",
}
"""Store one int8 result through a pointer kept on the stack."""

_SPREAD = {
    "dsp": (1.0, 1.0, 1.0), "thumb2": (1.0, 1.0, 1.0), "thumb1": (1.4, 1.4, 1.4),
    "rv32": (0.5, 0.6, 1.0),
}
"""Bookkeeping relative to Thumb-2: eight low registers spill more, thirty-one spill less."""


@cache
def bookkeeping(dialect: str, loads: int, stores: int, arithmetic: int, jumps: int = 0) -> str:
    """Return index arithmetic and spills around an inner loop, as read from compiled code.

    Parameters
    ----------
    dialect : str
        Of the core.
    loads, stores, arithmetic : int
        Stack loads, stack stores and register instructions gcc 12.2 -O2 needs on Armv7-M; other
        dialects need in proportion.
    jumps : int
        Branches taken inside.
    """
    counts = [round(count * spread) for count, spread in zip(
        (loads, stores, arithmetic), _SPREAD[dialect], strict=True)]
    return spills(dialect, *counts, jumps)


@cache
def requantise(dialect: str, channels: int, outputs: int = 1) -> str:
    """Return scaling, clamping and storing of int8 results with per-channel parameters.

    Parameters
    ----------
    dialect : str
        Of the core.
    channels : int
        Channels, each with one load of its multiplier and shift.
    outputs : int
        Results of each channel.
    """
    one = join(SCALE[dialect], CLAMP[dialect], STORE[dialect])
    return join(*[join(PARAMETERS[dialect], *[one] * outputs)] * channels)


@cache
def requantise_tensor(dialect: str, outputs: int) -> str:
    """Return scaling, clamping and storing with one multiplier for all: shifts are hoisted."""
    one = join(SCALE_HOISTED[dialect], CLAMP[dialect], STORE[dialect])
    return join(*[one] * outputs)


def finish_four(dialect: str) -> str:
    """Return scaling, clamping and storing of four channels: one word on Armv7-M."""
    scale = join(PARAMETERS[dialect], SCALE[dialect])
    if plain(dialect) == "thumb2":
        return join(*[scale] * 4, _CLAMP_4_PACKED)
    return join(*[scale] * 4, *[join(CLAMP[dialect], STORE[dialect])] * 4)


def bias_load(dialect: str) -> str:
    """Return the load of one channel's bias."""
    return "lw a2, 0(a4)" if dialect == "rv32" else "ldr r3, [r2]"


def entry(dialect: str, instructions: int, calls: int, name: str = "call") -> Block:
    """Return prologue and epilogue of a function: arguments, saved registers, set-up.

    Parameters
    ----------
    dialect : str
        Of the core.
    instructions : int
        Of both together, on Armv7-M.
    calls : int
        How often it is called.
    name : str
        Of the block.
    """
    saved = (instructions - 2) // 4
    code = join(bookkeeping(dialect, saved, saved, instructions - 2 - 2 * saved), CALL[dialect],
                RETURN[dialect])
    return block(name, code, calls, cause="kernel_call")


def in_fours(dialect: str, length: int) -> tuple[int, int]:
    """Return groups of four a core with DSP takes at once, and elements left to single steps."""
    return divmod(length, 4) if dialect == "dsp" else (0, length)


def column_loops(dialect: str, name: str, columns: int, entries: int,
                 codes: tuple[str, str, str], peeled: bool = False) -> tuple[Block, ...]:
    """Return the loops over the columns of a product: by 16, 4 and 1 with DSP, else by 1.

    Parameters
    ----------
    dialect : str
        Of the core.
    name : str
        Of the product.
    columns, entries : int
        Length of the product, and how many there are.
    codes : tuple of str
        Sixteen, four and one column.
    peeled : bool
        What sixteen leave over is written out, no loop.
    """
    wide, four, one = codes
    if dialect != "dsp":
        return (block(f"column {name}", one, entries * columns, entries),)
    looped = None if peeled else entries
    return (block(f"16 columns {name}", wide, entries * (columns // 16), entries),
            block(f"4 columns {name}", four, entries * (columns % 16 // 4), looped),
            block(f"column {name}", one, entries * (columns % 4), looped))


VECTOR_BYTES = 16

SCALE_SCALAR = ("bic r1, r3, r3, asr #31; vdup.32 q1, r1; vshl.s32 q3, q3, q1;"
                "and r3, r3, r3, asr #31; vdup.32 q2, r3; vqrdmulh.s32 q3, q3, r2;"
                "vand q1, q3, q2; vshr.s32 q1, q1, #31; vqadd.s32 q3, q3, q1;"
                "vrshl.s32 q3, q3, q2")
"""Requantise four accumulators (q3) of one channel: multiplier r2, shift r3."""

SCALE_VECTOR = ("vmrs r2, p0; sxth r2, r2; vmsr p0, r2; vpsel q7, q1, q2; vshl.s32 q3, q3, q7;"
                "vpsel q1, q2, q1; vqrdmulh.s32 q3, q3, q0; vand q0, q3, q1;"
                "vshr.s32 q0, q0, #31; vqadd.s32 q3, q3, q0; vrshl.s32 q3, q3, q1")
"""Requantise four accumulators (q3) of four channels: multipliers q0, shifts q1, p0 compared."""

CLAMP_VECTOR = "ldr r3, [sp, #248]; vadd.i32 q3, q3, r3; vmax.s32 q3, q3, q6; vmin.s32 q3, q3, q5"
"""Add the output offset and clamp four results."""

SCALE_ONE = ("bic r1, r6, r6, asr #31; lsl r0, r4, r1; mov r12, #0; mov r1, #1073741824;"
             "smlal r1, r12, r0, r3; lsrs r1, r1, #31; cmp r6, #0; orr r1, r1, r12, lsl #1;"
             "bgt 1f; rsbs r6, r6, #0; movs r3, #1; lsls r3, r6; subs r3, #1; and r5, r1, r3;"
             "asrs r1, r6; asr r3, r3, #1; it mi; addmi r3, #1; cmp r5, r3; it gt; addgt r1, #1;"
             "ldr r3, [sp, #132]; add r1, r3; cmp r1, r9; it lt; movlt r1, r9; cmp r1, r10;"
             "it ge; movge r1, r10")
"""Requantise and clamp one left-over accumulator in scalar registers."""

PREDICATE = "vmrs r3, p0; sxth r3, r3; vmsr p0, r3"
"""gcc moves a predicate through a core register before using it."""


def floor_width(size_bytes: int) -> int:
    """Return the largest access width not above `size_bytes`: 1, 2, 4, 8 or 16."""
    return min(VECTOR_BYTES, 1 << (size_bytes.bit_length() - 1))


def vectors(size_bytes: int) -> int:
    """Vector iterations that cover `size_bytes`."""
    return -(-size_bytes // VECTOR_BYTES)


def row_moves(size_bytes: int, *rows: Move) -> list[Any]:
    """Return a loop over vectors of several rows, and the predicated tail.

    Parameters
    ----------
    size_bytes : int
        Length of each row.
    rows : Move
        The access of the first vector of each row; stepped by a loop named "vector".
    """
    full, tail = divmod(size_bytes, VECTOR_BYTES)
    body = [row._replace(steps_bytes={**row.steps_bytes, "vector": VECTOR_BYTES}) for row in rows]
    moves: list[Any] = [repeat("vector", full, *body)]
    if tail:
        moves += [row._replace(width_bytes=floor_width(tail),
                               offset_bytes=row.offset_bytes + VECTOR_BYTES * full)
                  for row in rows]
    return moves


def lane_moves(move: Move, lanes: int) -> list[Move]:
    """Return the accesses of a widening load or narrowing store of up to four bytes.

    Two beats run per clock tick, so each pair of bytes is an access of its own. The Apollo510
    table counts 115 thousand for the depthwise layer; with the stack this comes to 107 thousand,
    one access of four bytes to 84.
    """
    pairs = [move._replace(width_bytes=2, offset_bytes=move.offset_bytes + 2 * pair)
             for pair in range(lanes // 2)]
    last = [move._replace(width_bytes=1, offset_bytes=move.offset_bytes + lanes - 1)]
    return pairs + last * (lanes % 2)


def row_load(operand: str, offset_bytes: int = 0, /, **steps_bytes: int) -> Move:
    """Return a sixteen-byte load."""
    return load(operand, VECTOR_BYTES, offset_bytes, **steps_bytes)


def row_store(operand: str, offset_bytes: int = 0, /, **steps_bytes: int) -> Move:
    """Return a sixteen-byte store."""
    return store(operand, VECTOR_BYTES, offset_bytes, **steps_bytes)


def copy_loop(name: str, rows: int, size_bytes: int) -> Block:
    """Return the tail-predicated loop that copies rows of `size_bytes`."""
    return block(name, "vldrb.u8 q0, [r8], #16; vstrb.8 q0, [r0], #16; letp lr, 0b",
                 rows * vectors(size_bytes), rows, "data_copy")


def fill_loop(name: str, rows: int, size_bytes: int) -> Block:
    """Return the tail-predicated loop that fills rows of `size_bytes` with a constant."""
    return block(name, "vstrb.8 q0, [r8], #16; letp lr, 0b", rows * vectors(size_bytes), rows,
                 "data_copy")
