"""Copies and fills of the C library (newlib) that kernels call: their blocks and widths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hwmodels.kernel import Blocks
from twin.network.graph import Shape
from twin.runtimes.lowering.blocks import block, join, read_code
from twin.runtimes.lowering.nests import Move, load, repeat, store

_CODE = read_code(__file__)["libc"]

_CAUSE = "data_copy"


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


def split_copy(dialect: str, size_bytes: int) -> tuple[int, int, int]:
    """Return how many words, half-words and bytes a copy of that size moves.

    Notes
    -----
    Sizes that are no multiple of four are taken as misaligned. Armv7-M copies words from eight
    bytes on, and its tail as a byte and a half-word; the portable version copies words from
    sixteen aligned bytes on and single bytes otherwise.
    """
    if dialect in _CODE.plain:
        words = size_bytes // 4 if size_bytes >= 16 and size_bytes % 4 == 0 else 0
        return words, 0, size_bytes - 4 * words
    if size_bytes % 4 == 0 or size_bytes >= 8:
        return size_bytes // 4, (size_bytes >> 1) & 1, size_bytes & 1
    if size_bytes > 4:
        return 0, 0, size_bytes
    return 0, (size_bytes >> 1) & 1, size_bytes & 1


def copy_blocks(dialect: str, size_bytes: int, calls: int) -> Blocks:
    """Return the blocks of `calls` copies of `size_bytes` each."""
    words, _, tail_bytes = split_copy(dialect, size_bytes)
    lines, singles = divmod(words, 4)
    if dialect in _CODE.plain:
        short, long, line, word, byte = _CODE.plain[dialect]
        return (
            block("copy call", long if words else short, calls, cause=_CAUSE),
            block("copy 16 bytes", line, calls * lines, calls, _CAUSE),
            block("copy word", word, calls * singles, calls, _CAUSE),
            block("copy byte", byte, calls * tail_bytes, calls, _CAUSE))
    big, lines = divmod(lines, 4)
    loop = "subs r2, #64; bcs 0b"
    bytewise = words == 0 and size_bytes > 4
    entry_code = _copy_entry(size_bytes, words > 0)
    tail_code = "" if bytewise else _CODE.copy_tail.get(size_bytes % 4, "")
    return (
        block("copy call", join(entry_code, tail_code), calls, cause=_CAUSE),
        block("copy 64 bytes", join(*[_CODE.copy_word] * 16, loop), calls * big, calls, _CAUSE),
        block("copy 16 bytes", join(*[_CODE.copy_word] * 4, loop), calls * lines, calls, _CAUSE),
        block("copy word", join(_CODE.copy_word, loop), calls * singles, calls, _CAUSE),
        block("copy byte", _CODE.copy_byte, calls * size_bytes if bytewise else 0, calls, _CAUSE))


def copy_moves(dialect: str, size_bytes: int, source: Move, target: Move) -> tuple[Any, ...]:
    """Return the accesses of one copy between two places.

    Parameters
    ----------
    size_bytes
        Bytes copied.
    source, target
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


def fill_blocks(dialect: str, size_bytes: int, calls: int) -> Blocks:
    """Return the blocks of `calls` fills of `size_bytes` each, widths as a copy would use."""
    words, halves, tail = split_copy(dialect, size_bytes)
    text = dialect if dialect in _CODE.fill_word else "thumb2"
    entry_code = join(_CODE.fill_entry[text], *[_CODE.fill_half[text]] * halves)
    return (
        block("fill call", entry_code, calls, cause=_CAUSE),
        block("fill word", _CODE.fill_word[text], calls * words, calls, _CAUSE),
        block("fill byte", _CODE.fill_byte[text], calls * tail, calls, _CAUSE))


def fill_moves(dialect: str, size_bytes: int, target: Move) -> tuple[Any, ...]:
    """Return the stores of one fill.

    Parameters
    ----------
    target
        First store; width and inner steps are filled in.
    """
    moves = copy_moves(dialect, size_bytes, target, target)
    return tuple(one._replace(body=one.body[1:]) for one in moves)


def split_runs(parts: Sequence[Shape], whole: Shape, axis: int,
               element_bytes: int = 1) -> tuple[int, list[int]]:
    """Return how tensors side by side along an axis interleave in one tensor.

    Parameters
    ----------
    whole
        Shape of the one tensor.
    axis
        Along which they follow each other.

    Returns
    -------
    int
        Repetitions: extent of the axes ahead.
    list of int
        Bytes each part contributes to a repetition.
    """
    return (math.prod(whole[:axis]), [math.prod(part[axis:]) * element_bytes for part in parts])


def run_drafts(dialect: str, repetitions: int, runs: Sequence[int], joined: bool) -> list[Any]:
    """Return the accesses of copying runs between several tensors and one.

    Parameters
    ----------
    repetitions
        How often the runs follow each other in the one tensor.
    runs
        Bytes of each tensor's run.
    joined
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
