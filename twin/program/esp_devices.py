"""Peripherals of the ESP32-C3 that programs of ESP-IDF need to start: clocks, flash, interrupts."""

from __future__ import annotations

from twin.program.device import LOW_WORD, Counter, Device


class EspSystimer(Counter):
    """The system timer of an ESP32-C3: 16 MHz, three targets, once or again and again."""

    size_bytes = 0x1000
    channels, bits = 3, 52
    OPERATE, TARGETS, CONFIGURE, VALUES, LOAD = 0x04, 0x1C, 0x34, 0x40, 0x50
    ENABLE, RAW, CLEAR, STATE = 0x64, 0x68, 0x6C, 0x70

    rate_hz = 16e6

    def set_up(self, source: str) -> None:
        """Take the first of its interrupts."""
        self.source = int(source)

    def read(self, offset: int) -> int | None:
        """Return that a value may be read, and which targets were met."""
        if offset in (self.OPERATE, self.OPERATE + 4):
            return self[offset] | 1 << 29
        return self[self.RAW] & self[self.ENABLE] if offset == self.STATE else None

    def write(self, offset: int, value: int) -> None:
        """Latch the count, wait for a target where it is loaded, and forget what was met."""
        if offset in (self.OPERATE, self.OPERATE + 4):
            place = self.VALUES + 2 * (offset - self.OPERATE)
            self[place], self[place + 4] = self.now() >> 32, self.now() & LOW_WORD
        elif self.LOAD <= offset < self.LOAD + 4 * self.channels:
            self.set_alarm(offset - self.LOAD >> 2)
        elif offset == self.CLEAR:
            self[self.RAW] &= ~value

    def _period(self, channel: int) -> int:
        """Return the counts after which a target is met again; 0 for once."""
        held = self[self.CONFIGURE + 4 * channel]
        return held & 0x3FFFFFF if held >> 30 & 1 else 0

    def compare(self, channel: int) -> int:
        """Return the count of a target."""
        high, low = (self[self.TARGETS + 8 * channel + place] for place in (0, 4))
        period = self._period(channel)
        return self.now() + period if period else high << 32 | low

    def reach(self, channel: int) -> None:
        """Meet a target."""
        self[self.RAW] |= 1 << channel
        if self._period(channel):
            self.set_alarm(channel)
        if self[self.ENABLE] >> channel & 1:
            self.around.pend(self.source + channel)


class EspClock(Counter):
    """The slow clock of an ESP32-C3 while it is awake: 136 kHz, read where it was latched."""

    UPDATE, LOW, HIGH = 0x0C, 0x10, 0x14
    rate_hz = 136e3

    def write(self, offset: int, value: int) -> None:
        """Latch the time."""
        if offset == self.UPDATE and value >> 31:
            self[self.LOW], self[self.HIGH] = self.now() & LOW_WORD, self.now() >> 32


class EspFlash(Device):
    """The controller of an ESP32-C3's serial flash: it says who it is, and reads as erased."""

    COMMAND, OPCODE, DATA, USER, IDENTIFY = 0x00, 0x20, 0x58, 1 << 18, 1 << 28
    READ_ID, READS = 0x9F, (0x03, 0x0B, 0x3B, 0x6B, 0xBB, 0xEB)

    def set_up(self, identity: str) -> None:
        """Take what it says it is."""
        self.identity = int(identity, 16)

    def read(self, offset: int) -> int | None:
        """Return that a command is done."""
        return 0 if offset == self.COMMAND else None

    def write(self, offset: int, value: int) -> None:
        """Do a command at once."""
        if offset == self.COMMAND and value:
            code = self[self.OPCODE] & 0xFF if value & self.USER else None
            if code == self.READ_ID or value & self.IDENTIFY:
                self[self.DATA] = self.identity
            else:
                erased = LOW_WORD if code in self.READS else 0
                for place in range(16):
                    self[self.DATA + 4 * place] = erased


class EspSoftware(Device):
    """Interrupts an ESP32-C3's program raises itself, by four registers."""

    size_bytes = 0x400

    def set_up(self, first: str, source: str) -> None:
        """Take the offset of the first register, and its interrupt."""
        self.first, self.source = int(first, 16), int(source)

    def write(self, offset: int, value: int) -> None:
        """Raise one."""
        if value & 1 and 0 <= offset - self.first < 16:
            self.around.pend(self.source + (offset - self.first >> 2))


class EspInterrupts(Device):
    """The interrupt matrix of an ESP32-C3: sources to lines of the core, with priorities."""

    size_bytes = 0x1000
    ENABLE, PRIORITY, THRESHOLD = 0x104, 0x114, 0x194

    def write(self, offset: int, value: int) -> None:
        """Have what is pending looked at again."""
        self.around.wake()

    def route(self, name: str, first: int, second: int, third: int) -> tuple[int, int] | None:
        """Return which register a function of the boot ROM writes, and what; None for others."""
        enabled = self[self.ENABLE]
        place = {"intr_matrix_set": (4 * second, third), "route_intr_matrix": (4 * second, third),
                 "esprv_int_enable": (self.ENABLE, enabled | first),
                 "esprv_int_disable": (self.ENABLE, enabled & ~first),
                 "esprv_int_set_priority": (self.PRIORITY + 4 * first, second),
                 "esprv_int_set_threshold": (self.THRESHOLD, first),
                 }.get(name.replace("_intc_", "_"))
        return place and (self.base + place[0], place[1])

    def line(self, source: int) -> int | None:
        """Return the line a source interrupts on; None where it does not."""
        line = self[4 * source] & 31
        priority = self[self.PRIORITY + 4 * line]
        return line if line and self[self.ENABLE] >> line & 1 and (
            priority >= self[self.THRESHOLD]) else None
