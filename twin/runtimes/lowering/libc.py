"""Copies and fills of the C library (newlib) that kernels call: their blocks and widths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hwmodels.kernel import Block
from twin.runtimes.lowering.blocks import block, join
from twin.runtimes.lowering.nests import Move, load, repeat, store

_CAUSE = "data_copy"

_COPY_TAIL = {
    1: "lsls r2, r2, #31; itt ne; ldrbne r3, [r1], #1; strbne r3, [r0], #1; b 1f",
    2: "lsls r2, r2, #31; it ne; nop; nop; bcc 1f; ldrh r3, [r1]; strh r3, [r0]",
    3: "lsls r2, r2, #31; itt ne; ldrbne r3, [r1], #1; strbne r3, [r0], #1; bcc 1f;"
       "ldrh r3, [r1]; strh r3, [r0]",
}

def _copy_entry(size_bytes: int, words: bool) -> str:
    """Return the path of newlib's Armv7-M memcpy besides its loops; branches taken as jumps."""
    if not words:
        short = "b 2f; subs r2, #4;" + ("bcc 3f" if size_bytes >= 4 else "b 3f")
        return ("bl memcpy; mov r12, r0; orr r3, r1, r0; ands r3, r3, #3; b 1f; cmp r2, #8;"
                + short + "; adds r2, #4; beq 5f; mov r0, r12; bx lr")
    skips = [size_bytes < 64, size_bytes % 64 < 16, size_bytes % 16 < 4, size_bytes % 4 == 0]
    one, two, three, four = ("b" if taken else "bcc" for taken in skips)
    return (f"bl memcpy; mov r12, r0; orr r3, r1, r0; ands r3, r3, #3; bne 1f; subs r2, #64;"
            f"{one} 2f; adds r2, #48; {two} 3f; adds r2, #12; {three} 4f; adds r2, #4; {four} 5f;"
            f"mov r0, r12; bx lr")


_COPY_WORD = "ldr r3, [r1], #4; str r3, [r0], #4"
_COPY_BYTE = "subs r2, #1; ldrb r3, [r1], #1; strb r3, [r0], #1; bcs 0b"

_PLAIN = {  # newlib's portable memcpy: entry, entry of 16 bytes and more, 16 bytes, word, byte
    "thumb1": (
        "bl memcpy; push {r4, r5, r6, r7, lr}; movs r5, r0; cmp r2, #15; b 1f; subs r6, r2, #1;"
        "cmp r2, #0; beq 2f; movs r3, #0; pop {r4, r5, r6, r7, pc}",
        "bl memcpy; push {r4, r5, r6, r7, lr}; movs r5, r0; cmp r2, #15; bls 1f; movs r4, #3;"
        "movs r3, r0; movs r6, r4; orrs r3, r1; ands r6, r3; tst r4, r3; bne 2f; movs r5, r2;"
        "subs r5, #16; lsrs r5, r5, #4; movs r3, r0; movs r4, r1; mov r12, r5; lsls r7, r5, #4;"
        "adds r7, r7, r0; mov r5, r12; movs r3, #15; movs r4, #12; adds r5, #1; lsls r5, r5, #4;"
        "adds r1, r1, r5; ands r3, r2; adds r5, r0, r5; tst r4, r2; beq 3f; movs r2, r3;"
        "subs r6, r2, #1; cmp r2, #0; beq 4f; pop {r4, r5, r6, r7, pc}",
        "ldr r5, [r4, #4]; str r5, [r3, #4]; ldr r5, [r4, #8]; str r5, [r3, #8];"
        "ldr r5, [r4, #12]; str r5, [r3, #12]; ldr r5, [r4]; adds r4, #16; str r5, [r3];"
        "movs r5, r3; adds r3, #16; cmp r5, r7; bne 0b",
        "ldr r4, [r1, r6]; str r4, [r5, r6]; adds r6, #4; subs r4, r3, r6; cmp r4, #3; bhi 0b",
        "ldrb r4, [r1, r3]; movs r2, r3; strb r4, [r5, r3]; adds r3, #1; cmp r6, r2; bne 0b"),
    "rv32": (
        "call memcpy; li a5, 15; mv a4, a0; bgeu a5, a2, 1f; beqz a2, 2f; add a3, a1, a2; ret",
        "call memcpy; li a5, 15; mv a4, a0; bgeu a5, a2, 1f; or a5, a1, a0; andi a5, a5, 3;"
        "bnez a5, 2f; addi a6, a2, -16; andi a6, a6, -16; addi a6, a6, 16; add a3, a0, a6;"
        "mv a4, a1; mv a5, a0; add a1, a1, a6; andi a7, a2, 12; andi a6, a2, 15; beqz a7, 3f;"
        "mv a2, a6; beqz a2, 4f; ret",
        "lw a6, 0(a4); sw a6, 0(a5); lw a6, 4(a4); sw a6, 4(a5); lw a6, 8(a4); sw a6, 8(a5);"
        "lw a6, 12(a4); sw a6, 12(a5); addi a5, a5, 16; addi a4, a4, 16; bne a3, a5, 0b",
        "lw a5, 0(a4); sw a5, 0(a3); addi a4, a4, 4; addi a3, a3, 4; bne a4, a6, 0b",
        "lbu a5, 0(a1); sb a5, 0(a4); addi a1, a1, 1; addi a4, a4, 1; bne a1, a3, 0b"),
}

_CALL_4 = ("movs r2, #4; add r0, sp, #184; bl memcpy; push {r4, r5, r6, r7, lr}; movs r5, r0;"
           "cmp r2, #15; b 1f; subs r6, r2, #1; cmp r2, #0; beq 2f; movs r3, #0;")
COPY_4_TO_STACK = _CALL_4 + (
    "ldrb r4, [r1, r3]; movs r2, r3; str r4, [sp, #4]; adds r3, #1; cmp r6, r2; b 0b;" * 3
    + "ldrb r4, [r1, r3]; movs r2, r3; str r4, [sp, #4]; adds r3, #1; cmp r6, r2; bne 0b;"
    + "pop {r4, r5, r6, r7, pc}")
COPY_4_FROM_STACK = _CALL_4 + (
    "ldr r4, [sp, #4]; movs r2, r3; strb r4, [r5, r3]; adds r3, #1; cmp r6, r2; b 0b;" * 3
    + "ldr r4, [sp, #4]; movs r2, r3; strb r4, [r5, r3]; adds r3, #1; cmp r6, r2; bne 0b;"
    + "pop {r4, r5, r6, r7, pc}")
"""Armv6-M has no unaligned access: a word at an unknown address goes through memcpy."""

_FILL_ENTRY = {
    "thumb2": "bl memset; lsls r3, r0, #30; push {r4, r5, lr}; b 1f; mov r3, r0; mov r4, r2;"
              "b 2f; cmp r4, #3; bls 3f; uxtb r5, r1; add r5, r5, r5, lsl #8; cmp r4, #15;"
              "add r5, r5, r5, lsl #16; bls 4f; cbz r4, 5f; pop {r4, r5, pc}",
    "thumb1": "bl memset; push {r4, r5, r6, r7, lr}; movs r5, r0; lsls r3, r0, #30; beq 1f;"
              "movs r3, r0; movs r4, r2; b 2f; cmp r4, #3; bls 3f; movs r2, #255; ands r2, r1;"
              "lsls r5, r2, #8; adds r5, r5, r2; lsls r2, r5, #16; adds r5, r5, r2; cmp r4, #15;"
              "bls 4f; cmp r4, #0; beq 5f; pop {r4, r5, r6, r7, pc}",
    "rv32": "call memset; li t1, 15; mv a4, a0; bgeu t1, a2, 1f; andi a5, a4, 15; bnez a5, 2f;"
            "bnez a1, 3f; andi a3, a2, -16; andi a2, a2, 15; add a3, a3, a4; ret",
}
_FILL_WORD = {
    "thumb2": "str r5, [r2], #4; cmp r2, r3; bne 0b",
    "thumb1": "stm r2!, {r5}; cmp r2, r4; bne 0b",
    "rv32": "sw a1, 0(a4); addi a4, a4, 4; bltu a4, a3, 0b",
}
_FILL_BYTE = {
    "thumb2": "strb r1, [r3], #1; cmp r4, r3; bne 0b",
    "thumb1": "strb r1, [r3]; adds r3, #1; cmp r4, r3; bne 0b",
    "rv32": "sb a1, 0(a4); addi a4, a4, 1; bne a4, a3, 0b",
}
_FILL_HALF = {
    "thumb2": "strh r1, [r3], #2", "thumb1": "strh r1, [r3]", "rv32": "sh a1, 0(a4)"}


def split_copy(dialect: str, size_bytes: int) -> tuple[int, int, int]:
    """Return how many words, half-words and bytes a copy of that size moves.

    Notes
    -----
    Sizes that are no multiple of four are taken as misaligned. Armv7-M copies words from eight
    bytes on, and its tail as a byte and a half-word; the portable version copies words from
    sixteen aligned bytes on and single bytes otherwise.
    """
    if dialect in _PLAIN:
        words = size_bytes // 4 if size_bytes >= 16 and size_bytes % 4 == 0 else 0
        return words, 0, size_bytes - 4 * words
    if size_bytes % 4 == 0 or size_bytes >= 8:
        return size_bytes // 4, (size_bytes >> 1) & 1, size_bytes & 1
    if size_bytes > 4:
        return 0, 0, size_bytes
    return 0, (size_bytes >> 1) & 1, size_bytes & 1


def copy_blocks(dialect: str, size_bytes: int, calls: int) -> tuple[Block, ...]:
    """Return the blocks of `calls` copies of `size_bytes` each.

    Parameters
    ----------
    dialect : str
        Of the core.
    size_bytes : int
        Of one copy.
    calls : int
        Copies.
    """
    words, _, tail_bytes = split_copy(dialect, size_bytes)
    lines, singles = divmod(words, 4)
    if dialect in _PLAIN:
        short, long, line, word, byte = _PLAIN[dialect]
        return (
            block("copy call", long if words else short, calls, cause=_CAUSE),
            block("copy 16 bytes", line, calls * lines, calls, _CAUSE),
            block("copy word", word, calls * singles, calls, _CAUSE),
            block("copy byte", byte, calls * tail_bytes, calls, _CAUSE))
    big, lines = divmod(lines, 4)
    loop = "subs r2, #64; bcs 0b"
    bytewise = words == 0 and size_bytes > 4
    entry_code = _copy_entry(size_bytes, words > 0)
    tail_code = "" if bytewise else _COPY_TAIL.get(size_bytes % 4, "")
    return (
        block("copy call", join(entry_code, tail_code), calls, cause=_CAUSE),
        block("copy 64 bytes", join(*[_COPY_WORD] * 16, loop), calls * big, calls, _CAUSE),
        block("copy 16 bytes", join(*[_COPY_WORD] * 4, loop), calls * lines, calls, _CAUSE),
        block("copy word", join(_COPY_WORD, loop), calls * singles, calls, _CAUSE),
        block("copy byte", _COPY_BYTE, calls * size_bytes if bytewise else 0, calls, _CAUSE))


def copy_moves(dialect: str, size_bytes: int, source: Move, target: Move) -> tuple[Any, ...]:
    """Return the accesses of one copy between two places.

    Parameters
    ----------
    dialect : str
        Of the core.
    size_bytes : int
        Bytes copied.
    source, target : Move
        First access of either side; width and inner steps are filled in.
    """
    moves: list[Any] = []
    done = 0
    for width, count in zip((4, 2, 1), split_copy(dialect, size_bytes), strict=True):
        if count:
            name = f"copy{width}"
            moves.append(repeat(name, count, *[
                side._replace(width_bytes=width, offset_bytes=side.offset_bytes + done,
                              steps_bytes={**side.steps_bytes, name: width})
                for side in (source, target)]))
        done += width * count
    return tuple(moves)


def fill_blocks(dialect: str, size_bytes: int, calls: int,
                cause: str | None = _CAUSE) -> tuple[Block, ...]:
    """Return the blocks of `calls` fills of `size_bytes` each, widths as a copy would use."""
    words, halves, tail = split_copy(dialect, size_bytes)
    text = dialect if dialect in _FILL_WORD else "thumb2"
    entry_code = join(_FILL_ENTRY[text], *[_FILL_HALF[text]] * halves)
    return (
        block("fill call", entry_code, calls, cause=cause),
        block("fill word", _FILL_WORD[text], calls * words, calls, cause),
        block("fill byte", _FILL_BYTE[text], calls * tail, calls, cause))


def fill_moves(dialect: str, size_bytes: int, target: Move) -> tuple[Any, ...]:
    """Return the stores of one fill.

    Parameters
    ----------
    dialect : str
        Of the core.
    size_bytes : int
        Bytes filled.
    target : Move
        First store; width and inner steps are filled in.
    """
    moves = copy_moves(dialect, size_bytes, target, target)
    return tuple(one._replace(body=one.body[1:]) for one in moves)


def split_runs(parts: Sequence[tuple[int, ...]], whole: tuple[int, ...], axis: int,
               element_bytes: int = 1) -> tuple[int, list[int]]:
    """Return how tensors side by side along an axis interleave in one tensor.

    Parameters
    ----------
    parts : sequence of tuple of int
        Shapes of the tensors.
    whole : tuple of int
        Shape of the one tensor.
    axis : int
        Along which they follow each other.
    element_bytes : int
        Of an element.

    Returns
    -------
    int
        Repetitions: extent of the axes ahead.
    list of int
        Bytes each part contributes to a repetition.
    """
    return (math.prod(whole[:axis]),
            [math.prod(part[axis:]) * element_bytes for part in parts])


def run_drafts(dialect: str, repetitions: int, runs: Sequence[int], joined: bool) -> list[Any]:
    """Return the accesses of copying runs between several tensors and one.

    Parameters
    ----------
    dialect : str
        Of the core.
    repetitions : int
        How often the runs follow each other in the one tensor.
    runs : sequence of int
        Bytes of each tensor's run.
    joined : bool
        Inputs joined into one output; else one input split into outputs.
    """
    drafts: list[Any] = []
    start = 0
    for place, run in enumerate(runs):
        name = ("input" if joined else "output") + (f"{place + 1}" if place else "")
        source, target = (name, "output") if joined else ("input", name)
        part, whole = (0, run), (start, sum(runs))
        (read, step), (write, stride) = (part, whole) if joined else (whole, part)
        drafts.append(repeat("outer", repetitions, *copy_moves(
            dialect, run, load(source, 1, read, outer=step),
            store(target, 1, write, outer=stride))))
        start += run
    return drafts
