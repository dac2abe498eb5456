"""Time that passes without work: sleep, and loops whose turns change nothing.

A loop that comes back to where it was with equal registers and memory, having used no register of a
peripheral, goes on so until an interrupt. Its turns up to the next one are counted, not emulated:
counts of one turn times their number, exactly what the emulator would have counted. Loops that read
clocks are those of `twin.program.clock_loops`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from twin.program.clock_loops import ClockLoop

LEAST_CYCLES, MOST_CYCLES = 4096, 1 << 22
"""Between two looks whether a loop waits."""
MOST_BLOCKS = 64
"""Of a turn of such a loop."""
MOST_INTERRUPTS = 1000
"""After which a jump to itself is one for ever."""
MOST_EVENTS = 1000
"""WFE at one place without anything that could end the loop around it."""
_ERRORS = re.compile(r"error|(?<!de)fault|assert|abort|panic|^_*exit$|default_?handler|"
                     r"^svc_handler$", re.IGNORECASE)
"""Names of functions that never return: their loops are the end of a program."""


class Waiting:
    """What of a machine's time is waiting."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.slept_cycles = self.sleeps = 0
        self.event = False
        self.interrupts = self.without_end = 0
        self.patience = LEAST_CYCLES
        self.path: list[int] = []
        self.registers: tuple[int, ...] = ()
        self.turn: Any = None
        self.trial: ClockLoop | None = None
        self.loop: ClockLoop | None = None
        self.skipped: dict[int, tuple[int, int]] = {}

    # ---- sleep ----

    def sleep(self, place: int, *, for_event: bool) -> None:
        """Let time pass up to the next interrupt: WFI, or WFE where no event came before."""
        machine = self.machine
        taken = sum(machine.exceptions.taken.values())
        if for_event and (self.event or taken != self.interrupts):
            self.event, self.interrupts, self.without_end = False, taken, 0
            return
        devices = machine.peripherals
        if devices.ready():
            return
        due = devices.next_event()
        if due is None:
            self.without_end += 1
            if not for_event or self.without_end > MOST_EVENTS:
                machine.fail(f"sleeps in {machine.elf.name_place(place)} for an interrupt, which "
                             "nobody sends; accepted: --call SYMBOL of what it waits to run")
            return
        now = machine.cycles()
        machine.words[machine.names.CYCLES] = max(due, now) * machine.names.SCALE
        self.slept_cycles += max(due - now, 0)
        self.sleeps += 1
        devices.fire()
        machine.set_alarm()

    def take(self) -> tuple[int, int]:
        """Return sleeps and the cycles they took since they were taken last."""
        taken = self.sleeps, self.slept_cycles
        self.sleeps = self.slept_cycles = 0
        return taken

    # ---- loops ----

    @property
    def watched(self) -> bool:
        """Whether a turn of a loop is being looked at, block by block."""
        return bool(self.path) or self.trial is not None

    def look(self, address: int) -> bool:
        """Look whether a loop waits; called before a block, in turns and while one is watched.

        Returns whether to stop before it, for `pass_turns` or as the end of a trial.
        """
        if self.trial is not None:
            return self.trial.follow(address)
        devices = self.machine.peripherals
        if not self.path:
            devices.clocks.clear()
            self._begin(address, None)
        elif (devices.reads, devices.polling.writes) != self.uses or len(self.path) > MOST_BLOCKS:
            self.leave()
        elif address != self.path[0]:
            self.path.append(address)
        elif not devices.clocks and self.machine.emulator.get_all() != self.registers:
            self.leave()
        elif self.turn is None:
            self._begin(address, (self._count(), self.contents(), self.path))
        elif not devices.clocks:
            self._skip(address)
        elif self.path != self.turn[2]:
            self.leave()
        else:
            change = [now - before for now, before in zip(self.arrays(), self.turn[0], strict=True)]
            self.loop = ClockLoop(self.machine, tuple(self.path), change)
            return True
        return False

    def _begin(self, address: int, turn: Any) -> None:
        """Watch a turn from a block on; the one before it is known, or None."""
        devices = self.machine.peripherals
        self.path, self.turn, self.registers = [address], turn, self.machine.emulator.get_all()
        self.uses = devices.reads, devices.polling.writes

    def pass_turns(self) -> bool:
        """Let the turns of a loop that waits for a clock pass; whether there was one."""
        loop, self.loop = self.loop, None
        if loop is None:
            return False
        self.leave()
        if loop.pass_turns():
            self.patience = LEAST_CYCLES
        self.machine.set_alarm()
        return True

    def leave(self) -> None:
        """Watch no longer, and wait longer before the next look."""
        self.path, self.turn = [], None
        self.patience = min(2 * self.patience, MOST_CYCLES)

    def contents(self) -> list[bytes]:
        """Return what is in memories a program writes."""
        return [bytes(pages) for _, pages in self.machine.writable]

    def arrays(self) -> list[np.ndarray]:
        """Return the arrays that count: of blocks, of accesses, of caches."""
        machine, names = self.machine, self.machine.names
        machine.counters.drain()
        rows = machine.counters.blocks[:machine.counters.used + 1, names.COUNT:names.FUNCTION]
        found = [rows, machine.words[names.INSTRUCTIONS:names.CYCLES + 1]]
        if machine.words[names.RECORDING]:
            functions = len(machine.counters.functions)
            found += [machine.counters.accesses[:functions], *machine.recorder.arrays(functions)]
        return found

    def _count(self) -> list[np.ndarray]:
        return [one.copy() for one in self.arrays()]

    def _skip(self, address: int) -> None:
        """Count the turns up to the next interrupt, if the last one left memory as it was."""
        counted, contents, _ = self.turn
        if self.contents() != contents:
            return self.leave()
        machine, names, words = self.machine, self.machine.names, self.machine.words
        self.path, self.patience = [], LEAST_CYCLES
        arrays = self.arrays()
        changes = [now - before for now, before in zip(arrays, counted, strict=True)]
        instructions, cycles = changes[1].tolist()
        taken = sum(machine.exceptions.taken.values())
        times, seen = self.skipped.get(address, (0, -1))
        self.skipped[address] = times + 1, taken
        due = machine.peripherals.next_event()
        blocked = taken == seen and machine.peripherals.ready()
        if due is None or blocked or self.is_error(address) or (
                times > MOST_INTERRUPTS and self.is_endless(address)):
            return self.fail_in_loop(address)
        turns = max(0, min((due * names.SCALE - int(words[names.CYCLES])) // max(cycles, 1),
                           (machine.limit - int(words[names.INSTRUCTIONS]))
                           // max(instructions, 1) + 1))
        for array, change in zip(arrays, changes, strict=True):
            array += turns * change
        return None

    def is_error(self, address: int) -> bool:
        """Whether an address is of a function that programs end in when they fail."""
        function = self.machine.elf.function_at(address)
        return bool(function and _ERRORS.search(function.name))

    def is_endless(self, address: int) -> bool:
        """Whether a jump to itself lies at an address."""
        endless: bytes = self.machine.code.ENDLESS
        return bool(self.machine.read(address, len(endless)) == endless)

    def fail_in_loop(self, address: int) -> None:
        """Stop in a loop nothing ends; say who called it and which register was read before."""
        machine, elf = self.machine, self.machine.elf
        link, last = machine.get("LR") & ~machine.code.MODE, machine.here()
        here, caller = elf.function_at(address), elf.function_at(link)
        called = caller is not None and here is not None and caller is not here
        came = link if called and here.start <= last < here.end else last
        read = machine.peripherals.last_read
        text = "" if read is None else (
            f"; the register read last is {machine.peripherals.part.name(read[0])}, which answered "
            f"0x{read[1]:x} in {elf.name_place(read[2])}")
        machine.fail(f"stays in {elf.name_place(address)} for ever, come from "
                     f"{elf.name_place(came)}{text}{machine.sought and '; '}{machine.sought}")
