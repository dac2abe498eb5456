"""What block copies and fills of the C library execute, by length and alignment.

References
----------
newlib, newlib/libc/machine/arm/memcpy-armv7m.S: 64 bytes a turn, then 16, then words, then bytes;
newlib/libc/string/memcpy.c, memset.c, which cores without Thumb-2 run.
"""

from __future__ import annotations

from collections import Counter

PERIOD = 4
"""Addresses are alike again after so many equal steps."""


def count_copies(size_bytes: int, times: int, *, to_step: int | None = None, from_step: int = 0,
                 to_start: int = 0, from_start: int = 0) -> Counter[str]:
    """Return the terms of copying so many bytes so many times.

    Parameters
    ----------
    to_step, from_step
        Bytes from where one copy writes, or reads, to where the next does; by default copies
        write one behind the other and all read at one place.
    to_start, from_start
        Where the first writes and reads, from a word's boundary.

    Returns
    -------
    Counter of str
        "copy": calls; "copying", "copying thumb1": instructions of the routine for Thumb-2, and of
        that in C; "copied", "copied thumb1": accesses of each; "copied byte": what they move;
        "copied line": turns of 64 or 16 bytes, where builds for some cores add to both pointers.
    """
    step = size_bytes if to_step is None else to_step
    counted: Counter[str] = Counter()
    for place in range(min(PERIOD, times)):
        often = (times - place + PERIOD - 1) // PERIOD
        wide, moved = _copy((to_start + place * step) % 4, (from_start + place * from_step) % 4,
                            size_bytes)
        narrow, each = _copy_thumb1((to_start + place * step) % 4,
                                    (from_start + place * from_step) % 4, size_bytes)
        counted += Counter({"copy": often, "copying": often * wide, "copied": often * moved,
                            "copying thumb1": often * narrow, "copied thumb1": often * each,
                            "copied byte": often * size_bytes,
                            "copied line": often * (size_bytes // 64 + size_bytes % 64 // 16)})
    return counted


def _copy(to: int, source: int, size: int) -> tuple[int, int]:
    """Return instructions and loads of one copy, Thumb-2; those skipped in an IT block, too."""
    instructions, moved = 6, 0
    if to or source:
        if size < 8:
            if size < 4:
                return 12 + _tail(size)[0], _tail(size)[1]
            return 16 + 4 * (size - 3), size
        instructions += 4 if not source else 6
        if source and to:
            head = 4 - to
            size -= head
            instructions += 7 + (3 if head > 1 else 0)
            moved += (head & 1) + (head > 1)
    instructions += 8 + 34 * (size // 64)
    left = size % 64
    instructions += 10 * (left // 16) + 4 * (left % 16 // 4)
    after, last = _tail(size % 4)
    return instructions + after, moved + size // 4 + last


def _tail(left: int) -> tuple[int, int]:
    """Return instructions and loads of the last bytes."""
    return (0, 0) if not left else (5 + (2 if left > 1 else 0), (left & 1) + (left > 1))


def _copy_thumb1(to: int, source: int, size: int) -> tuple[int, int]:
    """Return instructions and loads of one copy of the routine in C."""
    if size < 16:
        return 8 + (1 + 6 * size if size else 0), size
    if to or source:
        return 15 + 6 * size, size
    words, last = size % 16 // 4, size % 4
    instructions = 33 + 13 * (size // 16) + (6 * words + 8 if words else 2)
    return instructions + (1 + 6 * last if last else 0), size // 4 + last


def count_fills(size_bytes: int, times: int, *, step: int, start: int = 0) -> Counter[str]:
    """Return the terms of filling so many bytes so many times, as `count_copies`.

    Returns
    -------
    Counter of str
        "fill": calls; "filling", "filling thumb1": instructions of the routine in C, for Thumb-2
        and for Thumb-1; "filled": its stores; "filled byte": what they write.
    """
    counted: Counter[str] = Counter()
    for place in range(min(PERIOD, times)):
        often = (times - place + PERIOD - 1) // PERIOD
        wide, narrow, moved = _fill((start + place * step) % 4, size_bytes)
        counted += Counter({"fill": often, "filling": often * wide,
                            "filling thumb1": often * narrow, "filled": often * moved,
                            "filled byte": often * size_bytes})
    return counted


def _fill(to: int, size: int) -> tuple[int, int, int]:
    """Return instructions of one fill, Thumb-2 and Thumb-1, and stores."""
    if to and size < 4 - to:
        return (10 + 5 * size, 12 + 7 * size, size) if size else (7, 8, 0)
    head = 4 - to if to else 0
    size -= head
    words, last = size % 16 // 4, size % 4
    wide, narrow = (7 + 5 * head, 8 + 7 * head) if head else (6, 7)
    if size >= 16:
        wide, narrow = wide + 16 + 7 * (size // 16), narrow + 27 + 7 * (size // 16)
    elif size >= 4:
        wide, narrow = wide + 8, narrow + 10
    if words:
        wide, narrow = wide + 5 + 3 * words, narrow + 12 + 3 * words
    elif size >= 16:
        wide += 3 if last else 4
    wide, narrow = wide + 4, narrow + 5
    if last:
        wide, narrow = wide + 2 + 3 * last, narrow + 2 + 4 * last
    return wide, narrow, head + size // 16 * 4 + words + last
