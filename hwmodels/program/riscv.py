"""What the bytes of a block of RV32IMC tell without a disassembler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from hwmodels.isa.operands import RISCV_NAMES

MACHINE = "riscv"
DEVICES = ((0x02000000, 0x02000000), (0x0C000000, 0x14000000), (0x60000000, 0x10000000))
"""Address and bytes of what is not memory: core-local timers; interrupt controllers and
peripherals as SiFive's parts and QEMU's `virt` have them; peripherals of Espressif's."""
MODE, RETURN_CODES = 0, 1 << 32
"""Bit 0 of an address to run at; from where on addresses are returns from handlers: never."""
JUMP, STAND_IN, ENDLESS = "j 0x0", "mv a0, a0", b"\x01\xa0"
"""A jump, what an instruction the core's table does not know is scheduled as, a jump to itself."""
ARGUMENTS = tuple(f"X{place}" for place in range(10, 18))
"""Registers that hold arguments and results."""
REGISTERS = {name.upper(): f"X{place}" for place, name in enumerate(RISCV_NAMES) if place}
"""Registers a user may set, as the emulator calls them."""

EBREAK, SEMIHOSTING, SLEEP = 0x00100073, (0x01F01013, 0x40705013), 0x10500073
"""`ebreak`, what stands around one that calls a debugger (RISC-V Semihosting 1.0), `wfi`."""


def ends_in_call(code: bytes) -> bool:
    """Whether a block ends in a jump that leaves its place in ra."""
    *_, last = _starts(code)
    word = int.from_bytes(code[last:last + 4], "little")
    if len(code) - last == 2:
        return (word >> 13 == 0b001 and word & 3 == 1) or (
            word & 0xF07F == 0x9002 and word != 0x9002)     # c.jal, c.jalr
    return word & 0x7F in (0x6F, 0x67) and word >> 7 & 31 == 1  # jal, jalr


def _starts(code: bytes) -> Iterator[int]:
    """Places of instructions: the two lowest bits say which are of two halfwords."""
    place = 0
    while place < len(code):
        yield place
        place += 4 if code[place] & 3 == 3 else 2


def measure_instructions(code: bytes) -> list[int]:
    """Return the bytes of each instruction of RV32IMC."""
    places = [*_starts(code), len(code)]
    return [after - place for place, after in pairwise(places)]


def find_calls(code: bytes, address: int) -> list[int]:
    """Return where calls (JAL ra, C.JAL, AUIPC with JALR ra) in code go; it runs at `address`."""
    code = code[:len(code) // 2 * 2]
    halves = np.frombuffer(code + bytes(4), "<u2").astype(np.int64)
    words = halves[:-1] | halves[1:] << 16
    at = np.array(list(_starts(code)), dtype=np.int64) // 2
    jal = at[words[at] & 0xFFF == 0x0EF]
    word = words[jal]
    far = (-(word >> 31) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11
           | (word >> 21 & 0x3FF) << 1)
    short = at[halves[at] & 0xE003 == 0x2001]
    half = halves[short]
    near = (-(half >> 12 & 1) << 11 | (half >> 8 & 1) << 10 | (half >> 9 & 3) << 8
            | (half >> 6 & 1) << 7 | (half >> 7 & 1) << 6 | (half >> 2 & 1) << 5
            | (half >> 11 & 1) << 4 | (half >> 3 & 7) << 1)
    upper = at[(words[at] & 0x7F == 0x17) & (at + 2 < len(words))]
    first, second = words[upper], words[upper + 2]
    pair = (second & 0x7FFF == 0x00E7) & (second >> 15 & 31 == first >> 7 & 31)
    upper, first, second = upper[pair], first[pair], second[pair]
    wide = (first & ~0xFFF) + (second >> 20) - (second >> 31 << 12)
    found: list[int] = np.unique(np.concatenate([
        address + 2 * at + offset for at, offset in ((jal, far), (short, near), (upper, wide))])
        & 0xFFFFFFFF).tolist()
    return found


_JUMPS = re.compile(r"^(c\.)?(b(eq|ne|lt|ge|gt|le)u?z?|j|jal|jr|jalr|ret|call|tail|[ms]ret)$")
_OFFSET = re.compile(r"(?<=[ ,])(-?(?:0x[0-9a-f]+|\d+))$")


def find_target(line: str, address: int) -> int | None:
    """Return where a jump goes, 0 where that is not known; None of what is not a jump.

    Parameters
    ----------
    line
        An instruction, its jump counted from itself as capstone has it.
    """
    mnemonic = line.partition(" ")[0]
    if not _JUMPS.match(mnemonic):
        return None
    offset = _OFFSET.search(line)
    return address + int(offset[1], 0) if offset else 0


def without_target(line: str) -> str:
    """Return a jump that leads nowhere: where a library was linked to makes no odds."""
    return _OFFSET.sub("0x0", line)


def read_csr(word: int) -> tuple[int, int, int, int] | None:
    """Return number, operation, source and target of an access to a control register.

    Parameters
    ----------
    word
        An instruction of four bytes.

    Returns
    -------
    tuple of int, or None
        Register's number; 1 write, 2 set, 3 clear, 4 more where the source is a number; the
        source; the register the old value goes to. None for any other instruction.
    """
    if word & 0x7F != 0x73 or word >> 12 & 3 == 0:
        return None
    return word >> 20, word >> 12 & 7, word >> 15 & 31, word >> 7 & 31
