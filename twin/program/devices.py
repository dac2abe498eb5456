"""Peripherals with a behaviour of their own: timers, checksums, what RP2040 and RP2350 share."""

from __future__ import annotations

from collections.abc import Mapping

from twin.program.device import LOW_WORD, Counter, Device, quotient_of
from twin.program.esp_devices import EspClock, EspFlash, EspInterrupts, EspSoftware, EspSystimer
from twin.program.part import read_field


class Stm32Timer(Device):
    """A timer of STM32 that counts up: CNT, UIF, and its update interrupt.

    Notes
    -----
    Its clock is that of its bus, twice that where the bus is divided (RM0368, 6.2); each turn takes
    (PSC + 1)(ARR + 1) of them. Channels, other directions and external clocks are not modelled.
    """

    CR1, DIER, SR, EGR, CNT, PSC, ARR = 0, 0x0C, 0x10, 0x14, 0x24, 0x28, 0x2C

    start = count = turns = prescaler = 0

    def set_up(self, interrupt: str, *dividers: str) -> None:
        """Take its interrupt and the fields that divide its clock."""
        self.interrupt, self.dividers = int(interrupt), [*map(read_field, dividers)]

    def _cycles_each(self) -> int:
        """Return the core cycles of one count."""
        held = [self.around.registers.get(one.word, 0) >> one.first & one.mask
                for one in self.dividers]
        bus = 1 << held[0] - 4 if held[0] >= 4 else 1
        if len(held) > 1 and held[1] >= 8:  # the core's clock over that of all buses
            bus *= (2, 4, 8, 16, 64, 128, 256, 512)[held[1] - 8]
        return bus * (self.prescaler + 1)

    def _counted(self) -> int:
        """Return what it counted since it was set last."""
        if not self[self.CR1] & 1:
            return self.count
        return self.count + (self.around.cycles() - self.start) // self._cycles_each()

    def _period(self) -> int:
        return (self[self.ARR] or LOW_WORD) + 1

    def read(self, offset: int) -> int | None:
        """Return CNT and SR as time has left them."""
        counted = self._counted()
        if offset == self.CNT:
            return counted % self._period()
        if offset == self.SR:
            self._turn(counted)
            return self[self.SR]
        return None

    def _turn(self, counted: int) -> None:
        if counted // self._period() > self.turns:
            self.turns = counted // self._period()
            self[self.SR] |= 1
            self.prescaler = self[self.PSC]

    def write(self, offset: int, value: int) -> None:
        """Begin to count again from where it is, or from what is written."""
        if offset == self.SR:
            self._turn(self._counted())
        if offset not in (self.CR1, self.EGR, self.CNT, self.ARR):
            return
        count = self._counted() % self._period()
        if offset == self.EGR and value & 1:
            count, self.prescaler = 0, self[self.PSC]
            self[self.SR] |= 1
        if offset == self.CNT:
            count = value
        if offset == self.CR1 and value & 1 and not self[self.CR1] & 1:
            self.prescaler = self[self.PSC]
        self.start, self.count, self.turns = self.around.cycles(), count, 0
        self.around.wake()

    def due(self) -> int | None:
        """Return when it turns over, where that interrupts."""
        return self._after(self.turns + 1) if self[self.CR1] & self[self.DIER] & 1 else None

    def turnover(self) -> int | None:
        """Return when it turns over."""
        return self._after(self._counted() // self._period() + 1) if self[self.CR1] & 1 else None

    def _after(self, turns: int) -> int:
        """Return the cycle at which so many turns end."""
        return self.start + (turns * self._period() - self.count) * self._cycles_each()

    def fire(self) -> None:
        """Turn over."""
        self._turn(self._counted())
        self.around.pend(self.interrupt)


class RpTimer(Counter):
    """The timer of RP2040 and RP2350: microseconds in 64 bits, four alarms (datasheet, 4.6)."""

    LATCH, ARMED, HIGH, LOW = 0x08, 0x20, 0x24, 0x28

    def set_up(self, interrupt: str, raw: str) -> None:
        """Take its first interrupt, and the offset of what is raised."""
        self.interrupt, self.raw = int(interrupt), int(raw, 16)

    def read(self, offset: int) -> int | None:
        """Return the time, and which alarms are armed or raised."""
        if offset in (0x0C, self.LOW):
            now = self.now()
            if offset == 0x0C:
                self[self.LATCH] = now >> 32
            return now & LOW_WORD
        if offset == self.HIGH:
            return self.now() >> 32
        if offset == self.ARMED:
            return sum(1 << channel for channel in self.alarms)
        if offset == self.raw + 12:
            return (self[self.raw] | self[self.raw + 8]) & self[self.raw + 4]
        return None

    def write(self, offset: int, value: int) -> None:
        """Arm and disarm alarms, and raise those that are forced."""
        if 0x10 <= offset < self.ARMED:
            self[offset] = value
            self.set_alarm(offset - 0x10 >> 2)
        elif offset == self.ARMED:
            self.alarms = {channel: count for channel, count in self.alarms.items()
                           if not value >> channel & 1}
        elif offset in (self.raw + 4, self.raw + 8):
            self[offset] = value
            self._raise()

    def _raise(self) -> None:
        for channel in range(self.channels):
            if (self[self.raw] | self[self.raw + 8]) & self[self.raw + 4] & 1 << channel:
                self.around.pend(self.interrupt + channel)

    def compare(self, channel: int) -> int:
        """Return the alarm's microsecond."""
        return self[0x10 + 4 * channel]

    def reach(self, channel: int) -> None:
        """Raise an alarm."""
        self[self.raw] |= 1 << channel
        self._raise()


class NrfCounter(Counter):
    """RTC or TIMER of an nRF: counter, compare events, capture (product specification).

    Notes
    -----
    RTC counts 24 bits at 32,768 Hz / (PRESCALER + 1), TIMER 32 bits at 16 MHz / 2^PRESCALER; other
    widths of a TIMER, and its counter mode, are not modelled.
    """

    size_bytes = 0x1000
    channels = 6
    START, STOP, CLEAR, CAPTURE, EVENTS, SHORTS = 0, 4, 8, 0x40, 0x140, 0x200
    INTENSET, INTENCLR, COUNTER, CC, PRESCALER_RTC, PRESCALER = (0x304, 0x308, 0x504, 0x540, 0x508,
                                                                 0x510)

    def set_up(self, interrupt: str, clock_hz: str) -> None:
        """Take its interrupt and clock, by which it is an RTC or a TIMER."""
        self.interrupt, self.clock_hz, self.runs = int(interrupt), float(clock_hz), False
        self.slow = self.clock_hz < 1e6
        self.stop_offset, self.clear_offset = (4, 8) if self.slow else (4, 0x0C)
        self.bits = 24 if self.slow else 32

    def read(self, offset: int) -> int | None:
        """Return the counter of an RTC."""
        return self.now() & (1 << self.bits) - 1 if self.slow and offset == self.COUNTER else None

    def write(self, offset: int, value: int) -> None:
        """Do tasks, and wait for what compares."""
        if offset == self.START and value:
            held = self[self.PRESCALER_RTC] if self.slow else self[self.PRESCALER]
            self.rate_hz = self.clock_hz / (held + 1 if self.slow else 1 << held)
            if not self.runs:
                self.restart(self.count, runs=True)
        elif offset == self.stop_offset and value:
            self.restart(self.now(), runs=False)
        elif offset == self.clear_offset and value:
            self.restart(0, runs=self.runs)
        elif not self.slow and self.CAPTURE <= offset < self.CAPTURE + 4 * self.channels and value:
            self[self.CC + offset - self.CAPTURE] = self.now() & LOW_WORD
        elif self.CC <= offset < self.CC + 4 * self.channels:
            self[offset] = value
            self.set_alarm(offset - self.CC >> 2)

    def compare(self, channel: int) -> int:
        """Return a channel's CC."""
        return self[self.CC + 4 * channel]

    def reach(self, channel: int) -> None:
        """Set a compare event, clear the counter where a shortcut asks for it, and interrupt."""
        self[self.EVENTS + 4 * channel] = 1
        if self[self.SHORTS] >> channel & 1:
            self.restart(0, runs=True)
        self.set_alarm(channel)
        if self[self.INTENSET] >> 16 + channel & 1:
            self.around.pend(self.interrupt)


class Stm32Crc(Device):
    """The CRC unit of STM32: polynomial, start and reversal as programmed, 32 bits (RM0432, 17)."""

    timed = False
    DR, CR, INIT, POLYNOMIAL = 0, 8, 0x10, 0x14

    def _reverse(self, value: int, bits: int) -> int:
        return int(f"{value:0{bits}b}"[::-1], 2)

    def read(self, offset: int) -> int | None:
        """Return the checksum."""
        if offset == self.DR and self[self.CR] & 0x80:
            return self._reverse(self[self.DR], 32)
        if offset == self.CR:
            return self[self.CR] & ~1
        return None

    def feed(self, value: int, bits: int) -> None:
        """Take what is written to the data register, so many bits at once."""
        kind = self[self.CR] >> 5 & 3
        if kind:
            width = min(4 << kind, bits)
            value = sum(self._reverse(value >> at & (1 << width) - 1, width) << at
                        for at in range(0, bits, width))
        state = self[self.DR] ^ value << 32 - bits
        polynomial = self[self.POLYNOMIAL] or 0x04C11DB7
        for _ in range(bits):
            state = (state << 1 ^ (polynomial if state >> 31 else 0)) & LOW_WORD
        self[self.DR] = state

    def write(self, offset: int, value: int) -> None:
        """Start again where asked to."""
        if offset == self.CR and value & 1:
            self[self.DR] = self.around.registers.get(self.base + self.INIT, LOW_WORD)
        elif offset == self.INIT:
            self[self.DR] = value


class Stm32Semaphores(Device):
    """Hardware semaphores of STM32H7 (RM0399, 11): a read of RLR takes one that is free.

    Notes
    -----
    Only one core runs, the Cortex-M7 (number 3): none is ever held by the other.
    """

    READ_LOCK, TAKEN_BY_M7 = 0x80, 1 << 31 | 3 << 8

    def read(self, offset: int) -> int | None:
        """Take a semaphore, and return who holds it."""
        if not self.READ_LOCK <= offset < 2 * self.READ_LOCK:
            return None
        if not self[offset - self.READ_LOCK] >> 31:
            self[offset - self.READ_LOCK] = self.TAKEN_BY_M7
        return self[offset - self.READ_LOCK]


class RpSio(Device):
    """What a core of RP2040 or RP2350 has at hand: its number, divider, spinlocks, mailbox.

    Notes
    -----
    The other core never runs: its mailbox echoes, as its boot ROM does while it is being started.
    """

    size_bytes = 0x1000
    FIFO_STATE, FIFO_WRITE, FIFO_READ, DIVIDER, LOCKS = 0x50, 0x54, 0x58, 0x60, 0x100

    def set_up(self) -> None:
        """Begin with every lock free and nothing in the mailbox."""
        self.locked: set[int] = set()
        self.mailbox: list[int] = []

    def read(self, offset: int) -> int | None:
        """Return the core's number, the mailbox, a lock that was free."""
        if offset == 0:
            return 0
        if offset == self.FIFO_STATE:
            return 2 | bool(self.mailbox)
        if offset == self.FIFO_READ:
            return self.mailbox.pop(0) if self.mailbox else 0
        if offset == self.DIVIDER + 0x18:
            return 3
        if self.LOCKS <= offset < self.LOCKS + 0x80:
            free = offset not in self.locked
            self.locked.add(offset)
            return free << (offset - self.LOCKS >> 2)
        return None

    def write(self, offset: int, value: int) -> None:
        """Divide, unlock, send."""
        if offset == self.FIFO_WRITE:
            self.mailbox.append(value)
        elif self.LOCKS <= offset < self.LOCKS + 0x80:
            self.locked.discard(offset)
        elif self.DIVIDER <= offset < self.DIVIDER + 0x10:
            self[offset] = self[offset ^ 8] = value  # signed and unsigned are one register
            self._divide(signed=offset >= self.DIVIDER + 8)

    def _divide(self, *, signed: bool) -> None:
        """Quotient and remainder (RP2040 datasheet, 2.3.1.5); by zero all ones, or its sign."""
        above, below = self[self.DIVIDER], self[self.DIVIDER + 4]
        if signed:
            above, below = (one - (one >> 31 << 32) for one in (above, below))
        quotient = quotient_of(above, below) if below else -1 if above >= 0 else 1
        self[self.DIVIDER + 0x10] = quotient & LOW_WORD
        self[self.DIVIDER + 0x14] = above - quotient * below & LOW_WORD


KINDS: Mapping[str, type[Device]] = {
    "stm32_timer": Stm32Timer, "stm32_crc": Stm32Crc,
    "stm32_semaphores": Stm32Semaphores, "rp_timer": RpTimer, "rp_sio": RpSio,
    "nrf_counter": NrfCounter, "esp_systimer": EspSystimer, "esp_interrupts": EspInterrupts,
    "esp_clock": EspClock, "esp_flash": EspFlash, "esp_software": EspSoftware}
"""Kinds of devices, as files of parts name them."""
