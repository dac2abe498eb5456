"""The one disassembler: capstone by blocks, and binutils where capstone lacks instructions (MVE).

A `Listing` also says what a block costs on a core.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.core.schedule import schedule
from hwmodels.core.timing import CoreTiming
from hwmodels.errors import KernelError, ToolMissingError, need_extra
from hwmodels.frozen import frozen
from hwmodels.isa import MACHINES
from hwmodels.program.elf import ElfError

if TYPE_CHECKING:
    from capstone import Cs


_LINE = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f ]+)\t\s*(\S+)\s*([^@<]*)")


@frozen
class Listed:
    """One disassembled instruction."""

    address: int
    size_bytes: int
    mnemonic: str
    operands: str

    @property
    def text(self) -> str:
        """As an assembler would read it."""
        return f"{self.mnemonic} {self.operands}".strip()


@frozen
class BlockCost:
    """One block.

    Parameters
    ----------
    instructions
        All of them run each time.
    single_cycles
        Run once after another block, its own jumps and calls refilled, falling through at a
        closing conditional branch.
    again_cycles
        Run once more as the body of a loop, its branch back taken.
    taken_cycles
        Added to `single_cycles` when its closing conditional branch goes elsewhere.
    """

    instructions: int
    single_cycles: float
    again_cycles: float
    taken_cycles: float


@dataclass(slots=True, kw_only=True)
class Listing:
    """Disassembles blocks as they are met, and schedules them.

    Parameters
    ----------
    timing
        None: every instruction takes one cycle.
    machine
        Kind of machine code.
    instructions
        By address, as binutils write them; capstone reads blocks that are not among them.
    costs : dict of (int, int) to BlockCost
        By address and size, of what was asked so far.
    """

    timing: CoreTiming | None = None
    machine: str
    instructions: Mapping[int, Listed] = field(default_factory=dict)
    costs: dict[tuple[int, int], BlockCost] = field(default_factory=dict)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)

    def text(self, address: int, code: bytes) -> str:
        """Return the assembly text of a block."""
        key = (address, len(code))
        if key not in self.texts:
            self.texts[key] = "\n".join(self._lines(address, code))
        return self.texts[key]

    def _lines(self, address: int, code: bytes) -> list[str]:
        lines, place = [], address
        while (one := self.instructions.get(place)) is not None and place < address + len(code):
            lines.append(one.text)
            place += one.size_bytes
        if place >= address + len(code):
            return lines
        return [f"{one.mnemonic} {one.op_str}".strip()
                for one in disassembler(self.machine).disasm(code, address)]

    def cost(self, address: int, code: bytes) -> BlockCost:
        """Return what a block costs; worked out once."""
        key = (address, len(code))
        if key not in self.costs:
            self.costs[key] = self._work_out(self.text(address, code))
        return self.costs[key]

    def _work_out(self, text: str) -> BlockCost:
        count = text.count("\n") + 1 if text else 0
        plain = BlockCost(instructions=count, single_cycles=count, again_cycles=count,
                          taken_cycles=0.0)
        if self.timing is None or not count:
            return plain
        try:
            timed = schedule(text, self.timing)
        except KernelError:
            return plain
        return BlockCost(
            instructions=timed.instructions,
            single_cycles=timed.single.cycles + timed.single.refill_cycles,
            again_cycles=timed.steady.cycles + timed.steady.refill_cycles,
            taken_cycles=self.timing.refills.taken_cycles if timed.closes_loop else 0.0)


@lru_cache(maxsize=4)
def disassembler(machine: str, *, detail: bool = False) -> Cs:
    """Return capstone for a kind of machine code; `detail` says which registers are written.

    Raises
    ------
    ToolMissingError
        Without the boards extra.
    """
    with need_extra("timings of emulated cores", "capstone", "boards"):
        import capstone
    facts = MACHINES[machine].capstone
    made = capstone.Cs(getattr(capstone, facts["arch"]), sum(
        getattr(capstone, mode) for mode in facts["modes"]))
    made.detail = detail
    return made


def disassemble(path: Path, machine: str) -> Mapping[int, Listed]:
    """Return a program's instructions by address: capstone 5 knows no MVE, binutils does.

    Raises
    ------
    ToolMissingError
        Without binutils for the kind of machine code.
    ElfError
        When they do not read the file.
    """
    facts = MACHINES[machine].objdump
    tool, *options = facts["command"]
    if shutil.which(tool) is None:
        raise ToolMissingError(f"{tool} is not installed: apt-get install {facts['package']}")
    answer = subprocess.run([tool, "-d", *options, str(path)], capture_output=True,
                            text=True, check=False)
    if answer.returncode:
        raise ElfError(f"{path}: {tool} fails: {answer.stderr.strip()}")
    found = {}
    for text in answer.stdout.splitlines():
        match = _LINE.match(text)
        if match and not match[3].startswith("."):
            address = int(match[1], 16)
            found[address] = Listed(address=address, size_bytes=len(match[2].replace(" ", "")) // 2,
                                    mnemonic=match[3], operands=match[4].strip())
    return found
