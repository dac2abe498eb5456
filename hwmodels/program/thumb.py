"""What the bytes of a block of T32 tell without a disassembler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

MACHINE = "arm"
DEVICES = ((0x40000000, 0x20000000), (0xE0000000, 0x100000))
"""Address and bytes of what is not memory: a part's peripherals, and the core's own."""
MODE, RETURN_CODES = 1, 0xFFFFFF00
"""Bit 0 of an address to run at; from where on addresses are returns from handlers."""
JUMP, STAND_IN, ENDLESS = "b 0x0", "mov r0, r0", b"\xfe\xe7"
"""A jump, what an instruction the core's table does not know is scheduled as, a jump to itself."""
ARGUMENTS = ("R0", "R1", "R2", "R3")
"""Registers that hold arguments and results."""
REGISTERS = {**{f"R{place}": f"R{place}" for place in range(13)}, "SP": "SP", "LR": "LR"}
"""Registers a user may set, as the emulator calls them."""


def ends_in_call(code: bytes) -> bool:
    """Whether a block of T32 ends in BL or BLX."""
    *_, last = _halves(code)
    if len(code) - last == 4:
        return code[last + 1] >> 3 == 0b11110 and code[last + 3] & 0xD0 == 0xD0
    return code[last + 1] == 0x47 and code[last] & 0x80 != 0


def _halves(code: bytes) -> Iterator[int]:
    """Places of instructions: a prefix says which are of two halfwords."""
    place = 0
    while place < len(code):
        yield place
        place += 4 if code[place + 1] >> 3 in (0b11101, 0b11110, 0b11111) else 2


def measure_instructions(code: bytes) -> list[int]:
    """Return the bytes of each instruction of T32."""
    places = [*_halves(code), len(code)]
    return [after - place for place, after in pairwise(places)]


def find_calls(code: bytes, address: int) -> list[int]:
    """Return where calls (BL) in code go; `address` is where it runs.

    Notes
    -----
    Constants between functions are read as code; few look like a call. Encoding T1 of BL (DDI
    0403E, A7.7.18).
    """
    code = code[:len(code) // 2 * 2]
    at = np.array([place for place in _halves(code) if place + 4 <= len(code)], dtype=np.int64) // 2
    halves = np.frombuffer(code, "<u2").astype(np.int64)
    at = at[(halves[at] & 0xF800 == 0xF000) & (halves[at + 1] & 0xD000 == 0xD000)]
    high, low = halves[at], halves[at + 1]
    sign = high >> 10 & 1
    offset = (-sign << 24 | (1 - (low >> 13 & 1 ^ sign)) << 23 | (1 - (low >> 11 & 1 ^ sign)) << 22
              | (high & 0x3FF) << 12 | (low & 0x7FF) << 1)
    found: list[int] = np.unique(address + 2 * at + 4 + offset).tolist()
    return found


_JUMPS = re.compile(r"^(b|bl|bx|blx|bxns|blxns|cbn?z|tb[bh]|let?p?|wlst?p?)(eq|ne|[cv][cs]|hs|"
                    r"lo|mi|pl|hi|ls|[gl][et])?(\.|$)")


def is_jump(mnemonic: str, operands: str) -> bool:
    """Whether an instruction ends a block: a branch, or a write of the program counter."""
    if _JUMPS.match(mnemonic):
        return True
    words = operands.replace("{", "").replace("}", "").split(", ")
    return "pc" in words[:1] or (mnemonic.split(".")[0].startswith(("pop", "ldm"))
                                 and words[-1] == "pc")


_TARGET = re.compile(r"(?<=[ ,])#?((?:0x)?[0-9a-f]+)$")


def find_target(line: str, address: int) -> int | None:
    """Return where a jump goes, 0 where that is not known; None of what is not a jump.

    Parameters
    ----------
    line
        An instruction, of capstone or binutils.
    """
    mnemonic, _, operands = line.partition(" ")
    if not is_jump(mnemonic, operands):
        return None
    match = _TARGET.search(line)
    return int(match[1], 16) if match else 0


def without_target(line: str) -> str:
    """Return a jump that leads nowhere: where a library was linked to makes no odds."""
    return _TARGET.sub("#0x0", line)
