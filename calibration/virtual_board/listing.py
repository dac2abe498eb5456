"""The instructions of a binary's blocks, and what they cost on a core."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from hwmodels.core.schedule import schedule
from hwmodels.core.timing import CoreTiming
from hwmodels.errors import KernelError, extra_missing

if TYPE_CHECKING:
    from capstone import Cs


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCost:
    """One block.

    Parameters
    ----------
    instructions : int
        All of them run each time.
    single_cycles : float
        Run once after another block, its own jumps and calls refilled, falling through at a
        closing conditional branch.
    again_cycles : float
        Run once more as the body of a loop, its branch back taken.
    taken_cycles : float
        Added to `single_cycles` when its closing conditional branch goes elsewhere.
    loads_bytes, known : bool
        `known` is False when the core's table does not know an instruction: one cycle each.
    """

    instructions: int
    single_cycles: float
    again_cycles: float
    taken_cycles: float
    known: bool = True


@dataclass(slots=True, kw_only=True)
class Listing:
    """Disassembles blocks as they are met, and schedules them.

    Parameters
    ----------
    timing : CoreTiming or None
        None: every instruction takes one cycle.
    isa : str
        "thumb" or "riscv".
    costs : dict of (int, int) to BlockCost
        By address and size, of what was asked so far.
    """

    timing: CoreTiming | None = None
    isa: str = "thumb"
    costs: dict[tuple[int, int], BlockCost] = field(default_factory=dict)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)

    def text(self, address: int, code: bytes) -> str:
        """Return the assembly text of a block."""
        key = (address, len(code))
        if key not in self.texts:
            self.texts[key] = "\n".join(
                f"{one.mnemonic} {one.op_str}".strip()
                for one in disassembler(self.isa).disasm(code, address))
        return self.texts[key]

    def cost(self, address: int, code: bytes) -> BlockCost:
        """Return what a block costs; worked out once."""
        key = (address, len(code))
        if key not in self.costs:
            self.costs[key] = self._work_out(self.text(address, code))
        return self.costs[key]

    def _work_out(self, text: str) -> BlockCost:
        count = text.count("\n") + 1 if text else 0
        plain = BlockCost(instructions=count, single_cycles=count, again_cycles=count,
                          taken_cycles=0.0, known=self.timing is None)
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
def disassembler(isa: str, *, detail: bool = False) -> Cs:
    """Return capstone for "thumb" or "riscv"; `detail` says which registers are written.

    Raises
    ------
    ToolMissingError
        Without the boards extra.
    """
    try:
        import capstone
    except ImportError as error:
        raise extra_missing("timings of emulated cores", "capstone", "boards") from error
    made = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32
                       | capstone.CS_MODE_RISCVC) if isa == "riscv" else capstone.Cs(
                           capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS
                           | capstone.CS_MODE_V8)
    made.detail = detail
    return made
