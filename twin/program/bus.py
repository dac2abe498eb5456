"""What a program reaches that is no plain memory: registers, bit-band aliases, flash, nothing."""

from __future__ import annotations

import struct
from typing import Any

from hwmodels.program.emulator import merge_pages
from twin.program.memory import PAGE, READ_WRITE_RUN
from twin.program.peripherals import BIT_BAND_BYTES, locate_bit

BITS = 0x22000000
"""The bit-band alias of memory."""
WRITE_PROTECTED = 22
"""Unicorn's number of a store to memory that is not written."""
_WHAT = {17: "write to", 20: "write to", 21: "jump to", 18: "jump to"}


class Bus:
    """Answers accesses of an emulated core that reach no memory it can read and write."""

    def __init__(self, machine: Any) -> None:
        self.machine, self.core = machine, machine.machine

    def map(self) -> None:
        """Give the emulator the callbacks: also for peripherals outside the usual addresses."""
        machine, part = self.machine, self.machine.peripherals.part
        usual = [(base, base + size) for base, size in machine.code.DEVICES]
        pages = [(base & ~(PAGE - 1), base + PAGE) for base in part.names]
        for low, high in (*usual, *(span for span in merge_pages(pages, PAGE) if not any(
                span[0] < end and start < span[1] for start, end in (*usual, *machine.spans)))):
            self.core.mmio_map(low, high - low, self._read, low, self._write, low)
        if part.bit_band:
            self.core.mmio_map(BITS, BIT_BAND_BYTES, self._read_bit, None, self._write_bit, None)
        self.core.hook_add(machine.unicorn.UC_HOOK_MEM_INVALID, self._on_invalid)

    def _read(self, _: Any, offset: int, size: int, base: int) -> int:
        machine = self.machine
        value = machine.peripherals.read(base + offset, size, machine.here())
        if machine.peripherals.polling.stuck is not None:
            word, block = machine.peripherals.polling.stuck
            machine.fail(
                f"{machine.elf.name_place(block)} waits for register "
                f"{machine.peripherals.part.name(word)}, and no value ends its loop; accepted: "
                f"--set-register 0x{word:08x}=VALUE, or a --from beyond")
        return value

    def _write(self, _: Any, offset: int, size: int, value: int, base: int) -> None:
        self.machine.peripherals.write(base + offset, size, value, self.machine.here())
        if self.machine.peripherals.reset_wanted:
            self.core.emu_stop()

    def _read_bit(self, _: Any, offset: int, size: int, data: Any) -> int:
        word, bit = locate_bit(BITS + offset)
        return int.from_bytes(self.machine.read(word, 4), "little") >> bit & 1

    def _write_bit(self, _: Any, offset: int, size: int, value: int, data: Any) -> None:
        word, bit = locate_bit(BITS + offset)
        held = int.from_bytes(self.machine.read(word, 4), "little")
        self.core.mem_write(word, (held & ~(1 << bit) | (value & 1) << bit).to_bytes(4, "little"))

    def _on_invalid(self, _: Any, kind: int, address: int, size: int, value: int,
                    data: Any) -> bool:
        machine = self.machine
        if address >= machine.code.RETURN_CODES:
            return False
        if kind == WRITE_PROTECTED:
            return self._write_flash(address)
        machine.fail(
            f"{_WHAT.get(kind, 'read of')} 0x{address & 0xFFFFFFFF:08x} in "
            f"{machine.elf.name_place(machine.here())}: {machine.board.name} has nothing there; "
            "accepted: --memory FILE@ADDRESS for what was read there")
        return False

    def _write_flash(self, address: int) -> bool:
        """Let a program write where it opened flash to writes; else it would fault."""
        machine = self.machine
        if machine.peripherals.flash_open:
            low, high = next(span for span in machine.spans if span[0] <= address < span[1])
            self.core.mem_protect(low, high - low, READ_WRITE_RUN)
            if machine.peripherals.polling.billed:
                machine.peripherals.untimed.add(low)
            return True
        machine.fail(
            f"write to 0x{address:08x} in {machine.elf.name_place(machine.here())}: flash of "
            f"{machine.board.name}, which a store does not write; accepted: a program whose "
            "variables lie in RAM")
        return False

    def has_coprocessor(self, place: int) -> bool:
        """Whether an instruction is of RP2350's pins (p0) or checks of flow (p7), or clears p4."""
        first, second = struct.unpack("<2H", self.machine.read(place, 4))
        return self.machine.peripherals.part.aliases == "rp2" and (
            second >> 8 & 15 in (0, 7) or (first, second & 0xFFF) == (0xEE10, 0x430))
