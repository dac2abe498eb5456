"""Sequences the Helium (MVE) kernels share, and rows moved sixteen bytes at a time.

The mix is what gcc 12.2 -O2 makes of the library's intrinsics and inline assembly for
Cortex-M55; register numbers carry only the dependencies. A tail-predicated access of n < 16
bytes is one access; its width here is n rounded down to a power of two.
"""

from __future__ import annotations

from typing import Any

from hwmodels.kernel import Block
from twin.runtimes.lowering.blocks import block
from twin.runtimes.lowering.nests import Move, load, repeat, store

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

CLAMP = "ldr r3, [sp, #248]; vadd.i32 q3, q3, r3; vmax.s32 q3, q3, q6; vmin.s32 q3, q3, q5"
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
