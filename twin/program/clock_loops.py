"""Loops that wait for a clock: their turns are counted, not emulated, up to the one that leaves.

Such a turn uses no register but those of clocks. Where a trial shows that a turn leaves the same
registers, memory and counts whether the turn before it ran or only passed on the clock, all but the
last need not run. Which one is the last is found by halving: a clock only goes up until it turns
over, so turns before one that comes back come back, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST_TURNS = 8
MOST_CYCLES = 1 << 31
"""Passed in one step: a difference of two readings of 32 bits is not taken for a negative one."""
_NOWHERE = 0xFFFFFFFE

State = tuple[Any, ...]


class ClockLoop:
    """A loop at its first block, with all that is needed to come back there.

    Parameters
    ----------
    machine
        The program, stopped before that block.
    change
        What a turn adds to `Waiting.arrays`.
    """

    def __init__(self, machine: Any, path: tuple[int, ...], change: list[np.ndarray]) -> None:
        self.machine, self.path, self.change = machine, path, change
        self.arrays = machine.waiting.arrays()
        self.counts = [one.copy() for one in self.arrays]
        self.head = machine.words[:machine.names.HEAD].copy()
        self.context, self.contents = machine.machine.context_save(), machine.waiting.contents()
        self.devices = machine.peripherals.keep()
        self.step, self.back = 0, False

    def pass_turns(self) -> int:
        """Let all turns pass but the one that is the last to come back; return how many."""
        low, high = 0, self._most_turns() if self._repeats() else 0
        probe = high
        while low < probe:
            if self._try(probe):
                low = probe
            else:
                high = probe
            probe = (low + high) // 2
        self._set_ahead(low)
        return low

    def follow(self, address: int) -> bool:
        """Take note of a block of a trial turn; whether to stop before it."""
        at, self.step = self.step, self.step + 1
        if at < len(self.path):
            return address != self.path[at]
        self.back = address == self.path[0]
        return True

    def _repeats(self) -> bool:
        """Whether two turns do the same as one that begins a turn later."""
        machine, names = self.machine, self.machine.names
        events = {int(machine.words[names.RETURN]), *machine.counters.marked}
        if events & set(self.path) or self._most_turns() < LEAST_TURNS:
            return False
        ran = self._turn() and self._turn()
        run = ran and self._state()
        return bool(run and self._try(1) and self._state() == run)

    def _most_turns(self) -> int:
        """Return turns before an interrupt, a turnover or the limit of instructions."""
        machine, names = self.machine, self.machine.names
        instructions, cycles = (int(one) for one in self.change[1])
        now, ran = int(self.counts[1][1]), int(self.counts[1][0])
        due = machine.peripherals.next_event(machine.peripherals.clocks)
        most = MOST_CYCLES * names.SCALE
        left = most if due is None else min(due * names.SCALE - now, most)
        return min(left // max(cycles, 1), (machine.limit - ran) // max(instructions, 1)) - 2

    def _set_ahead(self, turns: int) -> None:
        """Have the machine stand before the loop's first block, so many turns later."""
        machine = self.machine
        machine.machine.context_restore(self.context)
        for (_, pages), content in zip(machine.writable, self.contents, strict=True):
            if pages[:] != content:
                pages[:] = content
        machine.peripherals.bring_back(self.devices)
        machine.words[:machine.names.HEAD] = self.head
        for array, count, change in zip(self.arrays, self.counts, self.change, strict=True):
            array[:] = count + turns * change

    def _try(self, turns: int) -> bool:
        self._set_ahead(turns)
        return self._turn()

    def _turn(self) -> bool:
        """Run a turn; whether it comes back to its first block."""
        machine = self.machine
        self.step, self.back, machine.waiting.trial = 0, False, self
        machine.wake()
        try:
            machine.machine.emu_start(self.path[0] | machine.code.MODE, _NOWHERE)
        except machine.unicorn.UcError:
            self.back = False
        machine.waiting.trial = None
        machine.watch.translate_anew()
        return self.back

    def _state(self) -> State:
        """Return all a turn may change."""
        machine = self.machine
        arrays = [one.tolist() for one in machine.waiting.arrays()]
        return (machine.emulator.get_all(), machine.waiting.contents(),
                machine.peripherals.keep(), arrays)
