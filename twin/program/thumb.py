"""What the bytes of a block of T32 tell without a disassembler."""

from __future__ import annotations


def has_conditions(code: bytes) -> bool:
    """Whether a block of T32 may have an IT instruction (0xBFxx with a mask)."""
    return any(code[place + 1] == 0xBF and code[place] & 15 for place in range(0, len(code), 2))


def ends_in_call(code: bytes) -> bool:
    """Whether a block of T32 ends in BL or BLX."""
    if len(code) >= 4 and code[-3] >> 3 == 0b11110 and code[-1] & 0xD0 == 0xD0:
        return True
    return code[-1] == 0x47 and code[-2] & 0x80 != 0


def count_instructions(code: bytes) -> int:
    """Return how many instructions of T32 there are: a prefix says which are of two halfwords."""
    place = count = 0
    while place < len(code):
        place += 4 if code[place + 1] >> 3 in (0b11101, 0b11110, 0b11111) else 2
        count += 1
    return count
