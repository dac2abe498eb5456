"""A RISC-V core with a program: control registers and traps the emulator leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodels.core.timing import Traits
from hwmodels.program import riscv
from hwmodels.program.elf import lies_in
from twin.errors import ProgramError
from twin.program.machine import Machine
from twin.program.peripherals import EXTERNAL
from twin.program.semihosting import Semihosting

CYCLES, INSTRUCTIONS, TIME, EVENTS = "cycles", "instructions", "time", "events"
COUNTERS = {0xB00: (CYCLES, 0), 0xB80: (CYCLES, 32), 0xC00: (CYCLES, 0), 0xC80: (CYCLES, 32),
            0xC01: (TIME, 0), 0xC81: (TIME, 32), 0xB02: (INSTRUCTIONS, 0),
            0xB82: (INSTRUCTIONS, 32), 0xC02: (INSTRUCTIONS, 0), 0xC82: (INSTRUCTIONS, 32),
            0x7E2: (EVENTS, 0)}
"""Control registers that show a counter, and its first bit there (The RISC-V Instruction Set
Manual, Volume II; 0x7e2: Espressif's mpccr). Time and mpccr's events are taken for cycles."""
LOW_WORD = 0xFFFFFFFF
ENVIRONMENT_CALL, ILLEGAL, INTERRUPT = 11, 2, 1 << 31
"""Causes of traps from machine mode."""
TRAP_CYCLES = 4
"""Into a handler: the pipeline flushed and refilled; assumed."""
LOADER_BYTES = 0x2000
"""At the end of RAM, which a loader keeps; its stack lies below where a program sets none up."""
_ECALLS, _MSTATUS_MIE, _MPP = (8, 9, 10, 11), 1 << 3, 3 << 11
_STACKS = ("stack_top", "__stack_top", "_stack_top", "__stack", "_stack", "_sp", "__stack_end",
           "z_interrupt_stacks")


class Traps:
    """Calls of the system, and interrupts of timers on parts whose interrupt matrix is modelled."""

    def __init__(self, machine: RiscvMachine) -> None:
        self.machine = machine
        self.active: list[int] = []
        self.taken: dict[int, int] = {}
        self.entries = self.returns = self.words_moved = 0

    def next(self) -> int | None:
        """Return the interrupt that may be taken now."""
        devices = self.machine.peripherals
        ready = devices.ready() if devices.pending and devices.matrix is not None else ()
        return min(ready, default=None) if self.machine.get("MSTATUS") & _MSTATUS_MIE else None

    def enter(self, cause: int, place: int) -> int:
        """Trap; return where the handler begins (Volume II, 3.1.6 and 3.1.7)."""
        core, vector = self.machine, 0
        matrix = core.peripherals.matrix
        if cause >= EXTERNAL and matrix is not None:
            core.peripherals.pending.discard(cause)
            vector = matrix.line(cause - EXTERNAL) or 0
            cause = INTERRUPT | vector
        status = core.get("MSTATUS")
        core.set("MSTATUS", status & ~(_MSTATUS_MIE | 1 << 7) | _MPP | (status & _MSTATUS_MIE) << 4)
        core.set("MEPC", place)
        core.set("MCAUSE", cause)
        self.taken[cause] = self.taken.get(cause, 0) + 1
        self.entries += 1
        handler = (core.get("MTVEC") & ~0xFF) + 4 * vector if vector else core.get("MTVEC") & ~3
        if not handler:
            core.fail(f"calls the system in {core.elf.name_place(place)}, and mtvec names no "
                      "handler; accepted: a --from behind it")
        return handler

    def take(self, core: Traits) -> tuple[int, int, float]:
        """Return entries, returns and their cycles since they were taken last.

        Returns are none: `mret` is an instruction, counted and billed where it runs.
        """
        entries, self.entries = self.entries, 0
        return entries, 0, float(entries * TRAP_CYCLES)


class RiscvMachine(Machine):
    """A RISC-V core of 32 bits; parameters as of `Machine`.

    Notes
    -----
    It starts where its file says. Counters of cycles and instructions answer modelled ones;
    a control register the emulator lacks answers as it was left, 0 at first.
    """

    accepts = "riscv"
    has_events = False

    def _find_start(self) -> tuple[int, int]:
        """Return where the stack begins, as its symbol says, and where the file begins."""
        if not lies_in(self.elf.entry, self.elf.code):
            raise ProgramError(f"{self.elf.path}: begins at 0x{self.elf.entry:08x}, where it has "
                               "no code; accepted: a linked program with an entry point")
        ram = [span for one in self.board.memories for span in one.spans]
        stack = next((self.elf.symbols[name] for name in _STACKS if name in self.elf.symbols
                      and any(low < self.elf.symbols[name] <= high for low, high in ram)),
                     max(high for low, high in ram[:1]) - LOADER_BYTES)
        return stack, self.elf.entry

    def _make_parts(self) -> None:
        self.exceptions: Any = Traps(self)
        self.semihosting = Semihosting(self.emulator, "A0", "A1")
        self.controls: dict[int, int] = {}
        self.set_ahead: dict[str, int] = {}

    def _hook(self) -> None:
        super()._hook()
        for address in self._find_counters():
            self.machine.hook_add(self.unicorn.UC_HOOK_CODE, self._count, begin=address,
                                  end=address)

    def _find_counters(self) -> list[int]:
        """Return where code may read or write a counter: those of the emulator follow this host."""
        found = []
        for _, runs, content in self.elf.pieces:
            halves = np.frombuffer(content[:len(content) // 2 * 2], "<u2").astype(np.int64)
            words = halves[:-1] | halves[1:] << 16
            system = (words & 0x7F == 0x73) & (words >> 12 & 3 != 0)
            for place in np.flatnonzero(system & np.isin(words >> 20, list(COUNTERS))).tolist():
                address = runs + 2 * place
                if lies_in(address, self.elf.code):
                    found.append(address)
        return found

    def _count(self, _: Any, address: int, size: int, data: Any) -> None:
        self._serve_control(int.from_bytes(self.read(address, 4), "little"))
        self.set("PC", address + 4)

    # ---- control registers ----

    def _serve_control(self, word: int) -> bool:
        """Do an access to a control register the emulator is not asked about."""
        access = riscv.read_csr(word)
        if access is None:
            return False
        number, operation, source, target = access
        old = self._read_control(number)
        value = source if operation & 4 else self.get(f"X{source}") if source else 0
        new = (value, old | value, old & ~value)[(operation & 3) - 1]
        if operation & 3 == 1 or source:
            self._write_control(number, new & 0xFFFFFFFF)
        if target:
            self.set(f"X{target}", old)
        return True

    def _read_counter(self, counter: str) -> int:
        so_far = (int(self.words[self.names.INSTRUCTIONS]) if counter == INSTRUCTIONS
                  else self.cycles())
        return so_far + self.set_ahead.get(counter, 0)

    def _read_control(self, number: int) -> int:
        if number not in COUNTERS:
            return self.controls.get(number, 0)
        counter, first = COUNTERS[number]
        return self.peripherals.note_clock(number, self._read_counter(counter) >> first & LOW_WORD)

    def _write_control(self, number: int, value: int) -> None:
        if number not in COUNTERS:
            self.controls[number] = value
            return
        counter, first = COUNTERS[number]
        now = self._read_counter(counter)
        wanted = now & ~(LOW_WORD << first) | value << first
        self.set_ahead[counter] = self.set_ahead.get(counter, 0) + wanted - now

    # ---- where the emulator stops ----

    def _go_on(self, place: int) -> None:
        """Serve what stopped the core: traps step past their instruction first."""
        self._spend(place)
        if self._stopped is None:
            if self.exceptions.next() is None and self.read(
                    place - 4, 4) == riscv.SLEEP.to_bytes(4, "little"):
                self.waiting.sleep(place - 4, for_event=False)
            self._interrupt(place)
        elif self._stopped in _ECALLS:
            self.next = self.exceptions.enter(ENVIRONMENT_CALL, place - 4)
        elif self._stopped == ILLEGAL and self._serve_control(
                int.from_bytes(self.read(place - 4, 4), "little")):
            self.next = place
        else:
            self.set("PC", place - 4)
            self._explain(f"trap {self._stopped}")

    def _explain(self, why: str) -> None:
        """Serve a breakpoint; else say where the emulator gave up."""
        place = self.get("PC")
        try:
            word = int.from_bytes(self.read(place, 2), "little")
            if word & 3 == 3:
                word = int.from_bytes(self.read(place, 4), "little")
        except self.unicorn.UcError:
            word = 0
        if word == riscv.EBREAK and self._is_semihosting(place) and not self.semihosting.serve():
            self.next = place + 4
        elif word in (riscv.EBREAK, 0x9002):
            self.fail(f"the program ended in {self.elf.name_place(place)} before what was asked "
                      "for was reached")
        else:
            self.fail(f"cannot go on in {self.elf.name_place(place)}: {why} at {word:08x}")

    def _is_semihosting(self, place: int) -> bool:
        try:
            around = [int.from_bytes(self.read(at, 4), "little") for at in (place - 4, place + 4)]
        except self.unicorn.UcError:
            return False
        return tuple(around) == riscv.SEMIHOSTING
