"""What peripherals are that do more than hold what was written: a device, and one that counts.

A device owns registers: `read` returns None for one that only holds what was written. Time is the
core's modelled cycles; a counter's rate is its clock over the core's, as the board's file has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hwmodels.frozen import frozen

LOW_WORD = 0xFFFFFFFF


def quotient_of(first: int, second: int) -> int:
    """Return a quotient towards zero; 0 for a division by zero."""
    if not second:
        return 0
    return abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)


@frozen
class Surroundings:
    """What a device sees of the machine.

    Parameters
    ----------
    registers
        All there are, by address.
    cycles
        Modelled cycles of the core so far.
    pend
        Raises an interrupt, by its number at the interrupt controller.
    wake
        Has the machine look at the time before the next block.
    """

    registers: dict[int, int]
    cycles: Callable[[], int]
    frequency_hz: float
    pend: Callable[[int], None]
    wake: Callable[[], None]


class Device:
    """A peripheral.

    Parameters
    ----------
    words
        Base address, and what else its part's file states, separated by "/".
    """

    size_bytes: ClassVar[int] = 0x400
    timed: ClassVar[bool] = True
    """Whether it takes the time it takes on the chip."""

    def __init__(self, around: Surroundings, words: list[str]) -> None:
        self.around, self.base = around, int(words[0], 16)
        self.set_up(*words[1:])

    def set_up(self, *facts: Any, **named: Any) -> None:
        """Take what its part's file states besides the base address."""

    def __getitem__(self, offset: int) -> int:
        """Return what a register of its own holds."""
        return self.around.registers.get(self.base + offset, 0)

    def __setitem__(self, offset: int, value: int) -> None:
        """Have a register of its own hold a value."""
        self.around.registers[self.base + offset] = value

    def read(self, offset: int) -> int | None:
        """Return what a register answers; None where it answers what was written."""
        return None

    def write(self, offset: int, value: int) -> None:
        """Act on a write, before the register holds it."""

    def due(self) -> int | None:
        """Return the cycle at which it next raises an interrupt."""
        return None

    def turnover(self) -> int | None:
        """Return the cycle at which it next begins at 0 again, if that is soon."""
        return None

    def fire(self) -> None:
        """Act at that cycle."""


class Counter(Device):
    """A counter that runs at a rate of its own and interrupts where it meets a register."""

    channels: ClassVar[int] = 4
    bits = 32

    rate_hz, runs, start, count = 1e6, True, 0, 0

    def __init__(self, around: Surroundings, words: list[str]) -> None:
        self.alarms: dict[int, int] = {}
        super().__init__(around, words)

    def now(self) -> int:
        """Return what it counted so far."""
        if not self.runs:
            return self.count
        passed = self.around.cycles() - self.start
        return self.count + int(passed * self.rate_hz / self.around.frequency_hz)

    def restart(self, count: int, *, runs: bool) -> None:
        """Go on from a count; what was waited for is waited for again."""
        self.start, self.count, self.runs = self.around.cycles(), count, runs
        for channel in list(self.alarms):
            self.set_alarm(channel)

    def set_alarm(self, channel: int) -> None:
        """Wait for the count of a channel, which comes within one turn of the counter."""
        now, mask = self.now(), (1 << self.bits) - 1
        ahead = self.compare(channel) - now & mask
        self.alarms[channel] = now + (ahead or mask + 1)
        self.around.wake()

    def compare(self, channel: int) -> int:
        """Return the count a channel waits for."""
        raise NotImplementedError

    def reach(self, channel: int) -> None:
        """Act where the count of a channel is met."""
        raise NotImplementedError

    def due(self) -> int | None:
        """Return when the next channel is met."""
        if not self.alarms or not self.runs:
            return None
        counts = min(self.alarms.values()) - self.count
        return self.start + -int(-counts * self.around.frequency_hz // self.rate_hz)

    def fire(self) -> None:
        """Meet what is due."""
        now = self.now()
        for channel, count in sorted(self.alarms.items()):
            if count <= now:
                del self.alarms[channel]
                self.reach(channel)
