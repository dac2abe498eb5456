"""Interrupts of a Cortex-M: which is taken, how it is entered, how it is left."""

from __future__ import annotations

import struct

from hwmodels.core.timing import Traits
from hwmodels.program.emulator import Emulator
from twin.program.peripherals import VTOR, Peripherals

SVC = 11
_FRAME = ("R0", "R1", "R2", "R3", "R12", "LR")
_FLOATS = 18
_USES_FLOATS, _PROCESS_STACK = 1 << 2, 1 << 1

RETURN_CYCLES = 10
"""Back to what was interrupted: eight words popped, two to refill; assumed."""


class Exceptions:
    """The part of a core that Unicorn leaves out: entry, return, priorities.

    Parameters
    ----------
    peripherals
        Who pends what, and at which priority.

    Notes
    -----
    As the Armv7-M manual has it (DDI 0403E, B1.5): eight words, with floating point in use 26, on
    the stack in use; SVC and faults are taken at once. No lazy stacking, no tail chaining.
    """

    def __init__(self, emulator: Emulator, peripherals: Peripherals) -> None:
        self.machine, self.peripherals = emulator.core, peripherals
        self._get, self._set = emulator.get, emulator.set
        self.active: list[int] = []
        self.taken: dict[int, int] = {}
        self.entries = self.returns = self.words_moved = 0
        self.vectors = 0

    def next(self) -> int | None:
        """Return the exception that may be taken now."""
        ready = self.peripherals.ready() if self.peripherals.pending else ()
        if not ready or self._get("PRIMASK") & 1:
            return None
        rank = self.peripherals.priority
        number = min(ready, key=lambda one: (rank(one), one))
        limit = min([256, *(rank(one) for one in self.active)])
        base = self._get("BASEPRI") & 0xFF
        if rank(number) >= limit or (base and rank(number) >= base):
            return None
        return number

    def enter(self, number: int, back: int) -> int:
        """Push a frame and return where the handler begins.

        Parameters
        ----------
        back
            Address the program goes on at.
        """
        self.peripherals.pending.discard(number)
        control = self._get("CONTROL")
        process = bool(control & _PROCESS_STACK) and not self.active
        floats = bool(control & _USES_FLOATS)
        stack = self._get("SP")
        size = 32 + 4 * _FLOATS * floats
        frame = (stack - size) & ~7
        status = self._get("XPSR") | (1 << 9 if (stack - size) & 4 else 0) | 1 << 24
        words = [self._get(name) for name in _FRAME] + [back & ~1, status]
        if floats:
            words += [self._get(f"S{place}") for place in range(16)] + [self._get("FPSCR"), 0]
        self.machine.mem_write(frame, struct.pack(f"<{len(words)}I", *words))
        self._set("SP", frame)
        self.active.append(number)
        self.taken[number] = self.taken.get(number, 0) + 1
        self.entries += 1
        self.words_moved += len(words)
        nested = len(self.active) > 1
        self._set("IPSR", number)
        if process:
            main = self._get("MSP")
            self._set("CONTROL", control & ~(_PROCESS_STACK | _USES_FLOATS))
            self._set("PSP", frame)
            self._set("SP", main)
        elif floats:
            self._set("CONTROL", control & ~_USES_FLOATS)
        self._set("LR", 0xFFFFFFE1 | (not floats) << 4 | (not nested) << 3 | process << 2)
        vectors = self.peripherals.registers.get(VTOR, self.vectors)
        return int(struct.unpack("<I", self.machine.mem_read(vectors + 4 * number, 4))[0])

    def leave(self, code: int) -> int:
        """Pop the frame an EXC_RETURN names and return where the program goes on."""
        if self.active:
            self.active.pop()
        self.returns += 1
        control = self._get("CONTROL") & ~(_PROCESS_STACK | _USES_FLOATS)
        process, floats = bool(code & 4), not code & 0x10
        frame = self._get("PSP" if process else "SP")
        count = 8 + _FLOATS * floats
        words = struct.unpack(f"<{count}I", self.machine.mem_read(frame, 4 * count))
        for name, value in zip(_FRAME, words, strict=False):
            self._set(name, value)
        if floats:
            for place in range(16):
                self._set(f"S{place}", words[8 + place])
            self._set("FPSCR", words[24])
        top = frame + 4 * count + (4 if words[7] >> 9 & 1 else 0)
        self._set("IPSR", words[7] & 0x1FF)
        if process:
            self._set("CONTROL", control | _PROCESS_STACK)
            self._set("PSP", top)
        else:
            self._set("CONTROL", control)
        self._set("SP", top)
        if floats:
            self._set("CONTROL", self._get("CONTROL") | _USES_FLOATS)
        self._set("XPSR", words[7] & ~(1 << 9) & 0xFF0001FF | 1 << 24)
        return words[6]

    def take(self, core: Traits) -> tuple[int, int, float]:
        """Return entries, returns and their cycles since they were taken last."""
        entries, returns = self.entries, self.returns
        # What floating point adds to a frame is pushed a word a cycle.
        cycles = (entries * core.entry_cycles + returns * RETURN_CYCLES
                  + max(0, self.words_moved - 8 * entries))
        self.entries = self.returns = self.words_moved = 0
        return entries, returns, float(cycles)
