"""Semihosting calls of a program: text is kept, nothing else reaches this machine."""

from __future__ import annotations

import struct

from hwmodels.program.emulator import Emulator

OPEN, WRITEC, WRITE0, WRITE, EXIT, EXIT_EXTENDED = 1, 3, 4, 5, 0x18, 0x20
MOST_TEXT = 1 << 16
_CONSOLE = 1


class Semihosting:
    """Answers to `bkpt 0xab` (Arm, Semihosting for AArch32 and AArch64, 2.0) and its like.

    Parameters
    ----------
    emulator
        The emulated core.
    first, second
        Registers that hold the call and its argument.

    Notes
    -----
    Only the console can be opened. Files, time, commands and the like fail as a host that has
    none would let them.
    """

    def __init__(self, emulator: Emulator, first: str, second: str) -> None:
        self.machine = emulator.core
        self.first, self.second = emulator.number(first), emulator.number(second)
        self.text = bytearray()

    def serve(self) -> bool:
        """Do a call; return whether the program asked to end."""
        call = int(self.machine.reg_read(self.first))
        at = int(self.machine.reg_read(self.second))
        result = 0xFFFFFFFF
        if call in (EXIT, EXIT_EXTENDED):
            return True
        if call == WRITEC:
            self.keep(bytes(self.machine.mem_read(at, 1)))
        elif call == WRITE0:
            self.keep(self._string(at))
        elif call == OPEN:
            name, _, length = struct.unpack("<3I", self.machine.mem_read(at, 12))
            if bytes(self.machine.mem_read(name, min(length, 3))) == b":tt":
                result = _CONSOLE
        elif call == WRITE:
            handle, start, length = struct.unpack("<3I", self.machine.mem_read(at, 12))
            if handle == _CONSOLE:
                self.keep(bytes(self.machine.mem_read(start, min(length, MOST_TEXT))))
                result = 0
        self.machine.reg_write(self.first, result)
        return False

    def _string(self, at: int) -> bytes:
        found = bytearray()
        while len(found) < MOST_TEXT:
            one = self.machine.mem_read(at + len(found), 1)
            if not one[0]:
                break
            found += one
        return bytes(found)

    def keep(self, text: bytes) -> None:
        """Keep text of a console, up to a limit."""
        self.text += text[:max(MOST_TEXT - len(self.text), 0)]
