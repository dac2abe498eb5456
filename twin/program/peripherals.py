"""What is no memory: registers answer as they were left, ready bits come true, clocks count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hwmodels.board.facts import Core
from hwmodels.core.file import load_core
from hwmodels.isa import load_isa

PATIENCE = 32
"""Reads of a register at one place, nothing written meanwhile, before its loop is taken to wait."""
TRIES = 16
"""Reads a value is given to end the loop."""
MOST_TEXT = 1 << 16

SYSTICK_CTRL, SYSTICK_LOAD, SYSTICK_VAL = 0xE000E010, 0xE000E014, 0xE000E018
CYCCNT, CPUID, ICSR = 0xE0001004, 0xE000ED00, 0xE000ED04
VTOR = 0xE000ED08
PENDING_SET, PENDING_CLEAR, SOFTWARE = 0xE000E200, 0xE000E280, 0xE000EF00
SYSTICK, PENDSV, EXTERNAL = 15, 14, 16
_ENABLED, _INTERRUPTS, _WRAPPED = 1, 2, 1 << 16

_PRIORITIES = (0xE000E400, 0xE000E7F0), (0xE000ED18, 0xE000ED24)

_MASKS = re.compile(r"^(?:(?:tst|ands?)(?:\.w)?\s.*#|(?:c\.)?andi\s.*, )(0x[0-9a-f]+|\d+)$", re.M)
_SHIFTS = re.compile(r"^(?:lsls?(?:\.w)?\s.*#|(?:c\.)?slli\s.*, )(0x[0-9a-f]+|\d+)$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """A loop that waited for a register.

    Parameters
    ----------
    register : int
        Its address.
    block : int
        Of the code that reads it.
    value : int
        What ended the loop.
    """

    register: int
    block: int
    value: int


@dataclass(slots=True)
class _Wait:
    """Reads of one register at one place of the program since anything was last written.

    `since` is how much had been written when they began.
    """

    reads: int = 0
    since: int = 0
    tried: int = 0
    values: list[int] = field(default_factory=list)
    answer: int | None = None


class Peripherals:
    """All registers of a part, its core's among them.

    Parameters
    ----------
    core : Core
        The board's.
    cycles : callable
        Modelled cycles so far.
    text_of : callable
        Address of a block -> its assembly text.
    wake : callable
        Asks the machine to look for interrupts before the next block.
    """

    def __init__(self, core: Core, cycles: Callable[[], int], text_of: Callable[[int], str],
                 wake: Callable[[], None]) -> None:
        self.cycles, self.text_of, self.wake = cycles, text_of, wake
        self.registers: dict[int, int] = {CPUID: load_core(core.model).traits.cpuid}
        bits = core.priority_bits or load_isa(core.isa).priority_bits
        self.priority_mask = (0xFF00 >> bits & 0xFF) * 0x01010101
        self.waits: dict[tuple[int, int], _Wait] = {}
        self.text: dict[int, bytearray] = {}
        self.pending: set[int] = set()
        self.touched: dict[int, int] = {}
        self.tick_start, self.count_start, self.ticks_seen = 0, 0, 0
        self.stuck: tuple[int, int] | None = None
        self.writes = 0
        self.last: tuple[_Wait, int, int] | None = None

    # ---- what the program reads ----

    def read(self, address: int, size: int, block: int) -> int:
        """Return what a read gives; `block` is where the program is."""
        word, shift = address & ~3, 8 * (address & 3)
        self.touched.setdefault(word, block)
        if word in (SYSTICK_CTRL, SYSTICK_VAL, CYCCNT, ICSR):
            value = self._read_core(word)
        else:
            value = self._answer(word, block)
        return value >> shift & ((1 << 8 * size) - 1)

    def _read_core(self, word: int) -> int:
        cycles = self.cycles()
        if word == CYCCNT:
            return cycles - self.count_start & 0xFFFFFFFF
        if word == ICSR:
            return (SYSTICK in self.pending) << 26 | (PENDSV in self.pending) << 28
        control = self.registers.get(SYSTICK_CTRL, 0)
        period = (self.registers.get(SYSTICK_LOAD, 0) & 0xFFFFFF) + 1
        passed = cycles - self.tick_start if control & _ENABLED else 0
        if word == SYSTICK_VAL:
            return (period - 1 - passed % period) & 0xFFFFFF
        wrapped = passed // period > self.ticks_seen
        self.ticks_seen = passed // period
        return control & 7 | (_WRAPPED if wrapped else 0)

    def _answer(self, word: int, block: int) -> int:
        wait = self.waits.setdefault((block, word), _Wait())
        if wait.since != self.writes:
            wait.reads, wait.since = 0, self.writes
        wait.reads += 1
        self.last = wait, word, block
        held = self.registers.get(word, 0)
        if wait.reads >= PATIENCE and wait.reads % TRIES == 0:
            if not wait.values or wait.tried >= len(wait.values):
                if wait.values:
                    self.stuck = word, block
                wait.values, wait.tried = list(self._guesses(held, block)), 0
            wait.answer = wait.values[wait.tried]
            wait.tried += 1
        return held if wait.answer is None else wait.answer

    def _guesses(self, held: int, block: int) -> Iterator[int]:
        """Values that may end a loop: what its code tests, each bit, fields echoed, all, none."""
        text = self.text_of(block)
        masks = [int(one, 0) for one in _MASKS.findall(text)]
        masks += [1 << 31 - int(one, 0) for one in _SHIFTS.findall(text) if int(one, 0) < 32]
        for mask in masks:
            yield held | mask & 0xFFFFFFFF
            yield held & ~mask
        yield from (held ^ 1 << bit for bit in range(32))
        yield from ((held | held << by) & 0xFFFFFFFF for by in (2, 1, 3, 4, 8, 16))
        yield from (0xFFFFFFFF, 0)

    # ---- what the program writes ----

    def write(self, address: int, size: int, value: int, block: int) -> None:
        """Keep what is written, and do what the core's own registers do."""
        word, shift = address & ~3, 8 * (address & 3)
        self.touched.setdefault(word, block)
        self.writes += 1
        if 8 <= value < 256:
            text = self.text.setdefault(address, bytearray())
            if len(text) < MOST_TEXT:
                text.append(value)
        mask = ((1 << 8 * size) - 1) << shift
        new = self.registers.get(word, 0) & ~mask | value << shift & mask
        if word in (ICSR, SYSTICK_VAL, CYCCNT, SYSTICK_CTRL, SYSTICK_LOAD, SOFTWARE) \
                or PENDING_SET <= word < PENDING_CLEAR + 0x40:
            self._write_core(word, new)
        if any(low <= word < high for low, high in _PRIORITIES):
            new &= self.priority_mask
        if word not in (CPUID, ICSR) and not PENDING_SET <= word < PENDING_CLEAR + 0x40:
            self.registers[word] = new

    def _write_core(self, word: int, value: int) -> None:
        cycles = self.cycles()
        if word == CYCCNT:
            self.count_start = cycles - value
        elif word in (SYSTICK_VAL, SYSTICK_CTRL, SYSTICK_LOAD):
            if word != SYSTICK_LOAD:
                self.tick_start, self.ticks_seen = cycles, 0
        elif word == ICSR:
            for bit, number, on in ((28, PENDSV, True), (27, PENDSV, False), (26, SYSTICK, True),
                                    (25, SYSTICK, False)):
                if value >> bit & 1:
                    self.pending.add(number) if on else self.pending.discard(number)
        elif word == SOFTWARE:
            self.pending.add(EXTERNAL + (value & 0x1FF))
        else:
            clear = word >= PENDING_CLEAR
            first = EXTERNAL + 8 * (word - (PENDING_CLEAR if clear else PENDING_SET))
            numbers = {first + bit for bit in range(32) if value >> bit & 1}
            self.pending = self.pending - numbers if clear else self.pending | numbers
        self.wake()

    # ---- the tick ----

    def next_tick(self) -> int | None:
        """Modelled cycle at which SysTick interrupts next; None where it does not."""
        control = self.registers.get(SYSTICK_CTRL, 0)
        if control & (_ENABLED | _INTERRUPTS) != _ENABLED | _INTERRUPTS:
            return None
        period = (self.registers.get(SYSTICK_LOAD, 0) & 0xFFFFFF) + 1
        passed = max(self.cycles() - self.tick_start, 0)
        return self.tick_start + (passed // period + 1) * period

    def priority(self, number: int) -> int:
        """Priority of an exception; lower goes first."""
        if number < 4:
            return number - 4
        base, place = (0xE000ED18, number - 4) if number < EXTERNAL else (0xE000E400,
                                                                          number - EXTERNAL)
        return self.registers.get(base + place // 4 * 4, 0) >> 8 * (place % 4) & 0xFF

    # ---- what was learnt ----

    def waiting(self, here: int) -> int | None:
        """Register the block at an address reads again and again; None where it does not."""
        if self.last is None:
            return None
        wait, word, block = self.last
        waits = block == here and wait.reads >= PATIENCE and wait.since == self.writes
        return word if waits else None

    def polls(self) -> tuple[Poll, ...]:
        """Loops that waited, and what ended them."""
        return tuple(Poll(register=word, block=block, value=wait.answer)
                     for (block, word), wait in self.waits.items() if wait.answer is not None)

    def printed(self) -> str:
        """Text the program wrote to the register that got most of it, "" for none."""
        found = [bytes(text) for text in self.text.values() if len(text) >= 4 and all(
            32 <= one < 127 or one in (8, 9, 10, 13, 27) for one in text)]
        return max(found, key=len, default=b"").decode("ascii")
