"""Accesses of a program seen without a hook at each: its blocks are read once instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hwmodels.program.emulator import HOOK_CODE, Emulator
from twin.program.addresses import Reader, find_stretches
from twin.program.counters import Counters
from twin.program.riscv_addresses import RiscvReader
from twin.program.thumb_addresses import ThumbReader

_READERS: dict[str, type[Reader]] = {one.machine: one for one in (ThumbReader, RiscvReader)}


class Watch:
    """Has callbacks know what each block accesses.

    Parameters
    ----------
    emulator
        The emulated core.
    hook
        Has native code called from one address to another.
    """

    def __init__(self, emulator: Emulator, counters: Counters,
                 hook: Callable[[int, Any, int, int], None]) -> None:
        self.core, self.counters, self.hook = emulator.core, counters, hook
        self.reader = _READERS[counters.listing.machine]
        self.until = -1
        self.odd: set[str] = set()
        self.numbers = {place + 1: emulator.number(f"{self.reader.letter}{place}")
                        for place in self.reader.registers.values()}
        self.hooked: set[int] = set()
        self.stale: list[tuple[int, int]] = []

    def read_block(self, address: int, size: int, loads: bool) -> int:
        """Find out what a block accesses; 1 where it is to be translated again before it runs.

        `loads`: whether words of memory are to be trusted as they are when it begins.
        """
        stretches, odd = find_stretches(
            self.reader, address, bytes(self.core.mem_read(address, size)),
            lambda place: int.from_bytes(self.core.mem_read(place, 4), "little"), loads)
        self.odd.update(odd)
        self.counters.explain(address, stretches, self.numbers)
        for one in stretches[1:]:
            if one.address not in self.hooked:
                self.hooked.add(one.address)
                self.hook(HOOK_CODE, self.counters.names.on_stretch, one.address, one.address)
        if len(stretches) == 1:
            return 0
        self.stale.append((address, size))
        self.core.emu_stop()
        return 1

    def stop_at(self, until: int) -> None:
        """Drop translations made before it was known where to stop: that is part of them."""
        if until != self.until:
            self.core.ctl_flush_tb()
            self.until = until

    def translate_anew(self) -> bool:
        """Drop translations made before their instructions were hooked; whether there were any."""
        for address, size in self.stale:
            self.core.ctl_remove_cache(address, address + size)
        found = bool(self.stale)
        self.stale.clear()
        return found
