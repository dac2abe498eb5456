"""Accesses of a program seen without a hook at each: its blocks are read once instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.program.riscv_addresses import RiscvReader
from twin.program.stretches import BEHIND_STORES, Reader, find_stretches
from twin.program.thumb_addresses import ThumbReader

if TYPE_CHECKING:
    from twin.program.machine import Machine

_READERS: dict[str, type[Reader]] = {"thumb": ThumbReader, "riscv": RiscvReader}
_HOOK_CODE = 4


def _number(reader: type[Reader]) -> dict[int, int]:
    """Return the emulator's numbers of registers, by those instructions give them."""
    from unicorn import arm_const, riscv_const

    constants, prefix = ((arm_const, "UC_ARM_REG_R") if reader.isa == "thumb"
                         else (riscv_const, "UC_RISCV_REG_X"))
    return {place: getattr(constants, f"{prefix}{place}") for place in reader.registers.values()}


class Watch:
    """Has callbacks know what each block accesses.

    Parameters
    ----------
    machine : Machine
        What runs the program.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.reader = _READERS[machine.listing.isa]
        self.numbers = _number(self.reader)
        self.hooked: set[int] = set()
        self.doubts: dict[int, int] = {}
        self.stale: list[tuple[int, int]] = []

    def read_block(self, address: int, size: int, *, doubted: bool) -> int:
        """Find out what a block accesses; 1 where it is to be translated anew before it runs.

        Parameters
        ----------
        address, size : int
            Of the block.
        doubted : bool
            A pointer it loads is one it has stored itself, or of a peripheral.
        """
        machine = self.machine
        if doubted:
            self.doubts[address] = min(self.doubts.get(address, 0) + 1, BEHIND_STORES)
        stretches, odd = find_stretches(self.reader, address, machine.read(address, size),
                                        BEHIND_STORES - self.doubts.get(address, 0))
        machine.unknown.update(odd)
        machine.counters.explain(address, stretches, self.numbers)
        for one in stretches[1:]:
            if one.address not in self.hooked:
                self.hooked.add(one.address)
                machine.add_hook(_HOOK_CODE, machine.names.on_stretch, one.address, one.address)
        if len(stretches) == 1 and not doubted:
            return 0
        self.stale.append((address, size))
        machine.machine.emu_stop()
        return 1

    def translate_anew(self) -> bool:
        """Drop translations made before their instructions were hooked; whether there were any."""
        for address, size in self.stale:
            self.machine.machine.ctl_remove_cache(address, address + size)
        found = bool(self.stale)
        self.stale.clear()
        return found
