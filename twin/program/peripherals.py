"""What is not memory: registers answer as they were left, ready bits come true, clocks count."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.core.file import load_core
from hwmodels.isa import load_isa
from hwmodels.program.elf import lies_in
from hwmodels.quantities import drop_none, list_by_key
from twin.program.device import Device, Surroundings
from twin.program.devices import KINDS, Stm32Crc
from twin.program.esp_devices import EspInterrupts
from twin.program.part import load_part
from twin.program.polling import Polling

MOST_TEXT = 1 << 16
CLOCK_READS = 8192
"""After so many it is looked whether a loop waits for a clock."""

SYSTICK_CTRL, SYSTICK_LOAD, SYSTICK_VAL = 0xE000E010, 0xE000E014, 0xE000E018
CYCCNT, CPUID, ICSR = 0xE0001004, 0xE000ED00, 0xE000ED04
VTOR, AIRCR = 0xE000ED08, 0xE000ED0C
RESET_MASK, RESET_VALUE = 0xFFFF0004, 0x05FA0004
"""Of AIRCR: the key and SYSRESETREQ (DDI 0403E, B3.2.6)."""
ENABLE_SET, ENABLE_CLEAR = 0xE000E100, 0xE000E180
PENDING_SET, PENDING_CLEAR, SOFTWARE = 0xE000E200, 0xE000E280, 0xE000EF00
NORDIC_SETS, NORDIC_CLEARS, NORDIC_EVENTS = (0x304, 0x344), (0x308, 0x348), 0x100
FLASH_KEY = 0xCDEF89AB
"""The second of the keys that open an STM32's flash to writes (RM0368, 3.5.1)."""
BIT_BAND, BIT_BAND_BYTES = 0x42000000, 0x02000000
SYSTICK, PENDSV, EXTERNAL = 15, 14, 16
CORE_REGISTERS = 0xE0000000
"""From here on registers are of the core, not of a part."""
_ENABLED, _INTERRUPTS, _WRAPPED = 1, 2, 1 << 16
_SERIAL = re.compile(r"(SEC_)?(LP)?(US?ART|SPI|I2C|I2S|SAI|USB)")

_PRIORITIES = (0xE000E400, 0xE000E7F0), (0xE000ED18, 0xE000ED24)


class Peripherals:
    """All registers of a part, its core's among them.

    Parameters
    ----------
    cycles
        Modelled cycles so far.
    text_of
        Address of a block -> its assembly text.
    wake
        Asks the machine to look for interrupts before the next block.
    """

    def __init__(self, board: Board, cycles: Callable[[], int], text_of: Callable[[int], str],
                 wake: Callable[[], None]) -> None:
        core, self.part = board.core, load_part(board.soc)
        self.cycles, self.wake = cycles, wake
        self.registers: dict[int, int] = {**self.part.reset,
                                          CPUID: load_core(core.model).traits.cpuid}
        bits = core.priority_bits or load_isa(core.isa).priority_bits
        self.priority_mask = (0xFF00 >> bits & 0xFF) * 0x01010101
        self.polling = Polling(text_of)
        self.text: dict[int, bytearray] = {}
        self.sent: Counter[int] = Counter()
        self.pending: set[int] = set()
        self.touched: dict[int, int] = {}
        self.fixed: dict[int, int] = {}
        self.tick_start, self.count_start, self.ticks_seen = 0, 0, 0
        self.reads, self.clock_reads, self.clocks = 0, 0, set[int]()
        self.flash_open = self.reset_wanted = False
        self.last_read: tuple[int, int, int] | None = None
        self.untimed: set[int] = set()
        self._add_devices(board.clock(core.clock).frequency_hz)

    def _add_devices(self, frequency_hz: float) -> None:
        """Make what of the part does more than hold values, and know which fields follow others."""
        around = Surroundings(
            registers=self.registers, cycles=self.cycles, frequency_hz=frequency_hz,
            pend=lambda number: self._pend(EXTERNAL + number), wake=self.wake)
        self.devices = [KINDS[kind](around, word.split("/"))
                        for kind, words in self.part.devices.items() for word in words]
        self.owners: dict[int, Device] = {
            base >> 10: device for device in self.devices
            for base in range(device.base, device.base + device.size_bytes, 0x400)}
        self.matrix = next((one for one in self.devices if isinstance(one, EspInterrupts)), None)
        self.followers = list_by_key(
            (word, one) for one in self.part.followers for word in dict.fromkeys(
                (one.field.word, *((one.source.word,) if one.source else ()))))
        for word in self.followers:
            self._follow(word)
        self.first = dict(self.registers)

    def _pend(self, number: int) -> None:
        self.pending.add(number)
        self.wake()

    def _place(self, address: int) -> tuple[int, str]:
        """Return the register an address is of, and what a write there does with its bits."""
        if self.part.aliases == "rp2" and 0x40000000 <= address < 0x60000000:
            return address & ~0x3003, ("", "toggle", "set", "clear")[address >> 12 & 3]
        return address & ~3, ""

    # ---- what the program reads ----

    def read(self, address: int, size: int, block: int) -> int:
        """Return what a read gives; `block` is where the program is."""
        if self.part.bit_band and 0 <= address - BIT_BAND < BIT_BAND_BYTES:
            word, bit = locate_bit(address)
            return self.read(word, 4, block) >> bit & 1
        word, _ = self._place(address)
        self.touched.setdefault(word, block)
        value: int | None
        if word in self.fixed:
            value = self.fixed[word]
            self.reads += 1
        elif word in (SYSTICK_CTRL, SYSTICK_VAL, CYCCNT, ICSR):
            value = self.note_clock(word, self._read_core(word))
        else:
            owner = self.owners.get(word >> 10)
            value = owner.read(word - owner.base) if owner is not None else None
            if value is not None:
                self.note_clock(word, value)
            else:
                held = 0 if word in self.part.silent else self.registers.get(word, 0)
                value = self.polling.answer(word, block, held)
                self.reads += 1
        self.last_read = word, value, block
        return value >> 8 * (address & 3) & ((1 << 8 * size) - 1)

    def note_clock(self, word: int, value: int) -> int:
        """Write down that a clock was read, and have a loop that may wait for it looked at."""
        self.clocks.add(word)
        self.clock_reads += 1
        if self.clock_reads % CLOCK_READS == 0:
            self.wake()
        return value

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

    # ---- what the program writes ----

    def write(self, address: int, size: int, value: int, block: int) -> None:
        """Keep what is written, and do what the core's own registers do."""
        if self.part.bit_band and 0 <= address - BIT_BAND < BIT_BAND_BYTES:
            word, bit = locate_bit(address)
            held = self.registers.get(word, 0)
            return self.write(word, 4, held & ~(1 << bit) | (value & 1) << bit, block)
        (word, how), shift = self._place(address), 8 * (address & 3)
        self.touched.setdefault(word, block)
        self.polling.writes += 1
        self.sent[word] += self.polling.billed
        self.flash_open |= value == FLASH_KEY or (value in (1, 2) and word in self.part.opens_flash)
        if 8 <= value < 256:
            text = self.text.setdefault(address, bytearray())
            if len(text) < MOST_TEXT:
                text.append(value)
        mask = ((1 << 8 * size) - 1) << shift
        held, written = self.registers.get(word, 0), value << shift & mask
        new = {"": held & ~mask | written, "toggle": held ^ written, "set": held | written,
               "clear": held & ~written}[how]
        self.reset_wanted |= word == AIRCR and new & RESET_MASK == RESET_VALUE
        if word in (ICSR, SYSTICK_VAL, CYCCNT, SYSTICK_CTRL, SYSTICK_LOAD, SOFTWARE) \
                or PENDING_SET <= word < PENDING_CLEAR + 0x40:
            self._write_core(word, new)
        if lies_in(word, _PRIORITIES):
            new &= self.priority_mask
        if word not in (CPUID, ICSR) and not PENDING_SET <= word < PENDING_CLEAR + 0x40:
            self._hold(word, new, written, mask, size)

    def _hold(self, word: int, new: int, written: int, mask: int, size: int) -> None:
        """Have a register of the part or the core hold what a write leaves in it."""
        owner = self.owners.get(word >> 10)
        if isinstance(owner, Stm32Crc) and word == owner.base:
            return owner.feed(written, 8 * size)
        if owner is not None:
            owner.write(word - owner.base, new)
        held = self.registers.get(word, 0)
        zeros, ones = self.part.keeps.get(word, 0) & mask, self.part.clears.get(word, 0) & mask
        new = new & ~(zeros | ones) | held & written & zeros | held & ~written & ones
        pair = self._pair(word)
        if pair is not None:
            word, sets = pair
            held = self.registers.get(word, 0)
            new = held | written if sets else held & ~written
        self.registers[word] = new & 0xFFFFFFFF
        if word >= CORE_REGISTERS:
            self.wake()
        self._follow(word)
        if written & 1 and word in self.part.triggers:
            self._trigger(word)

    def _pair(self, word: int) -> tuple[int, bool] | None:
        """Return the register bits are set in, of one that sets or clears them; None for others."""
        if ENABLE_SET <= word < PENDING_SET:
            return word & ~(ENABLE_CLEAR - ENABLE_SET), word < ENABLE_CLEAR
        if self.part.triggers and word < CORE_REGISTERS:
            if word & 0xFFF in NORDIC_SETS:
                return word, True
            if word & 0xFFF in NORDIC_CLEARS:
                return word - 4, False
        return None

    def _follow(self, word: int) -> None:
        """Set the fields that follow those of a register."""
        for one in self.followers.get(word, ()):
            field = one.field
            held = self.registers.get(field.word, 0) & ~(field.mask << field.first)
            self.registers[field.word] = held | one.value(self.registers) << field.first

    def _trigger(self, task: int) -> None:
        """Do a task at once: its events come, and interrupt where they may."""
        if self.polling.billed:
            self.untimed.add(task)
        for event in self.part.triggers[task]:
            self.registers[event] = 1
            base = event & ~0xFFF
            if self.registers.get(base + NORDIC_SETS[0], 0) >> (event - base - NORDIC_EVENTS
                                                                >> 2) & 1:
                self._pend(EXTERNAL + (base >> 12 & 0xFF))

    def _write_core(self, word: int, value: int) -> None:
        cycles = self.cycles()
        if word == CYCCNT:
            self.count_start = cycles - value
        elif word in (SYSTICK_VAL, SYSTICK_CTRL, SYSTICK_LOAD):
            if word != SYSTICK_LOAD:
                self.tick_start, self.ticks_seen = cycles, 0
            self.tick_due = None
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

    def next_event(self, clocks: Collection[int] = ()) -> int | None:
        """Modelled cycle at which a clock interrupts next, or one of those read turns over."""
        owners = [self.owners.get(word >> 10) for word in clocks]
        times = [self.next_tick(), *(device.due() for device in self.devices),
                 *(owner.turnover() for owner in owners if owner is not None)]
        if {SYSTICK_CTRL, SYSTICK_VAL}.intersection(clocks):
            times.append(self._tick_turnover())
        return min(drop_none(times), default=None)

    def fire(self) -> None:
        """Pend what is due by now."""
        now = self.cycles()
        if self.tick_due is not None and now >= self.tick_due:
            self.pending.add(SYSTICK)
            self.tick_due = None
        for device in self.devices:
            time = device.due()
            if time is not None and now >= time:
                device.fire()

    def ready(self) -> set[int]:
        """Exceptions that are pending and enabled."""
        enabled = self.registers
        if self.matrix is not None:
            return {one for one in self.pending if self.matrix.line(one - EXTERNAL) is not None}
        return {one for one in self.pending if one < EXTERNAL or enabled.get(
            ENABLE_SET + (one - EXTERNAL >> 5) * 4, 0) >> (one - EXTERNAL & 31) & 1}

    tick_due: int | None = None

    def next_tick(self) -> int | None:
        """Modelled cycle at which SysTick interrupts next; None where it does not."""
        control = self.registers.get(SYSTICK_CTRL, 0)
        if control & (_ENABLED | _INTERRUPTS) != _ENABLED | _INTERRUPTS:
            self.tick_due = None
        elif self.tick_due is None:
            self.tick_due = self._tick_turnover()
        return self.tick_due

    def _tick_turnover(self) -> int:
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

    def reset(self) -> None:
        """Have registers hold what they do after reset; interrupts that were pending are gone."""
        self.registers.clear()
        self.registers.update(self.first)
        self.pending.clear()
        self.tick_due, self.reset_wanted = None, False

    # ---- for a second pass ----

    def keep(self) -> tuple[Any, ...]:
        """Return all that decides how registers answer from here on, for `bring_back`."""
        return copy.deepcopy((
            self.registers, self.pending, self.tick_start, self.count_start, self.ticks_seen,
            self.tick_due, [{name: value for name, value in vars(device).items()
                             if name != "around"} for device in self.devices]))

    def bring_back(self, kept: tuple[Any, ...]) -> None:
        """Have registers answer as they did when they were kept."""
        (registers, self.pending, self.tick_start, self.count_start, self.ticks_seen,
         self.tick_due, devices) = copy.deepcopy(kept)
        self.registers.clear()
        self.registers.update(registers)
        for device, state in zip(self.devices, devices, strict=True):
            vars(device).update(state)

    # ---- what was learnt ----

    def name_untimed(self) -> list[str]:
        """Return what took no time here: tasks, memory that is programmed, what serial lines sent.

        A register of a serial line written four times in a pass is taken to send.
        """
        sent = [self.part.name(word) for word, count in self.sent.items() if count >= 8]
        return sorted({*(self.part.name(place) if place in self.part.triggers else
                         "programming of flash" for place in self.untimed),
                       *(f"what was sent to {name}" for name in sent if _SERIAL.match(name))})

    def printed(self) -> str:
        """Text the program wrote to the register that got most of it, "" for none."""
        found = [bytes(text) for text in self.text.values() if len(text) >= 4 and all(
            32 <= one < 127 or one in (8, 9, 10, 13, 27) for one in text)]
        return max(found, key=len, default=b"").decode("ascii")


def locate_bit(address: int) -> tuple[int, int]:
    """Return the word and its bit an address of a bit-band alias stands for (DDI 0403E, B3.1)."""
    offset = address & BIT_BAND_BYTES - 1
    byte = (address & 0xF0000000) + (offset >> 5)
    return byte & ~3, (offset >> 2 & 7) + 8 * (byte & 3)
