"""The INA226 current monitor over I2C: a value only counts when the chip says it is new."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from calibration.errors import LinkError, MeasurementError
from calibration.power_trace.trace import Meter, PowerTrace
from hwmodels.errors import need_extra, reworded
from hwmodels.frozen import frozen

# Texas Instruments, INA226 data sheet SBOS547, section 7.6 (registers) and 6.5 (characteristics).
CONFIGURATION, SHUNT, BUS, MASK, MANUFACTURER, DIE = 0x00, 0x01, 0x02, 0x06, 0xFE, 0xFF
MANUFACTURER_ID, DIE_ID = 0x5449, 0x2260
RESET = 0x8000
CONTINUOUS = 0b111
READY = 1 << 3
SHUNT_LSB_V, BUS_LSB_V = 2.5e-6, 1.25e-3
SHUNT_LIMIT_V = 81.92e-3
GAIN_LIMIT = 1e-3
SHUNT_OFFSET_V = 10e-6
AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
CONVERSIONS_US = (140, 204, 332, 588, 1100, 2116, 4156, 8244)


class SlowMeterWarning(UserWarning):
    """The meter makes fewer values than are asked for."""


@frozen
class Reading:
    """One conversion: the host's time, shunt and bus voltage, and whether the shunt clipped."""

    time_us: float
    shunt_v: float
    bus_v: float

    @property
    def clipped(self) -> bool:
        """Whether the shunt voltage is at the end of the range."""
        return abs(self.shunt_v) >= SHUNT_LIMIT_V - SHUNT_LSB_V


class Ina226:
    """A configured INA226, converting without pause.

    Parameters
    ----------
    bus
        With `read_word_data` and `write_word_data` of smbus2's `SMBus`.
    address
        7-bit I2C address.
    averages
        One of `AVERAGES`.
    conversion_us
        One of `CONVERSIONS_US`, of shunt and of bus voltage.
    clock
        Seconds of a monotonic clock.

    Raises
    ------
    LinkError
        When no INA226 answers.
    MeasurementError
        When a setting does not exist.

    Notes
    -----
    A new value comes every averages x 2 x conversion time; a faster reader gets the same value
    again. The conversion-ready flag (cleared by reading it) marks new values.
    """

    def __init__(self, bus: Any, *, shunt_ohm: float, address: int = 0x40, averages: int = 1,
                 conversion_us: int = 140, clock: Callable[[], float] = time.monotonic) -> None:
        if averages not in AVERAGES or conversion_us not in CONVERSIONS_US:
            raise MeasurementError(
                f"INA226: {averages} averages of {conversion_us} us; accepted: averages "
                f"{', '.join(map(str, AVERAGES))}; us {', '.join(map(str, CONVERSIONS_US))}")
        if not shunt_ohm > 0:
            raise MeasurementError(f"INA226: a shunt of {shunt_ohm} ohm; accepted: above 0")
        self.bus, self.address, self.shunt_ohm, self.clock = bus, address, shunt_ohm, clock
        self.period_us = averages * 2 * conversion_us
        if (self._read(MANUFACTURER), self._read(DIE)) != (MANUFACTURER_ID, DIE_ID):
            raise LinkError(f"I2C address 0x{address:02x}: what answers there is no INA226")
        self._write(CONFIGURATION, RESET)
        field = CONVERSIONS_US.index(conversion_us)
        self._write(CONFIGURATION,
                    AVERAGES.index(averages) << 9 | field << 6 | field << 3 | CONTINUOUS)

    @classmethod
    def open(cls, path: str, **settings: Any) -> Ina226:
        """Open a Linux I2C bus, such as "/dev/i2c-1"."""
        with need_extra("readings of an INA226", "smbus2", "boards"):
            from smbus2 import SMBus
        with reworded(OSError, LinkError, f"{path}: "):
            return cls(SMBus(path), **settings)

    def _read(self, register: int) -> int:
        with reworded(OSError, LinkError,
                      f"I2C address 0x{self.address:02x} does not answer (", ")"):
            word = self.bus.read_word_data(self.address, register)
        value: int = (word & 0xFF) << 8 | word >> 8  # the chip sends the high byte first
        return value

    def _write(self, register: int, value: int) -> None:
        with reworded(OSError, LinkError,
                      f"I2C address 0x{self.address:02x} does not answer (", ")"):
            self.bus.write_word_data(self.address, register, (value & 0xFF) << 8 | value >> 8)

    def read(self, timeout_s: float | None = None) -> Reading:
        """Wait for the next conversion and return it.

        Raises
        ------
        LinkError
            When no conversion ends within the timeout (by default five periods).
        """
        deadline = self.clock() + (timeout_s or 5e-6 * self.period_us + 0.05)
        while not self._read(MASK) & READY:
            if self.clock() > deadline:
                raise LinkError(f"INA226 at 0x{self.address:02x}: no conversion within "
                                f"{5 * self.period_us} us")
        shunt = self._read(SHUNT)
        shunt -= (shunt & 0x8000) << 1
        return Reading(time_us=self.clock() * 1e6, shunt_v=shunt * SHUNT_LSB_V,
                       bus_v=self._read(BUS) * BUS_LSB_V)

    def readings(self, asked_period_us: float) -> Iterator[Reading]:
        """Yield conversions for ever; warn when they come slower than asked."""
        if self.period_us > asked_period_us:
            warnings.warn(
                f"INA226: averages x conversion times give one value every {self.period_us} us; a "
                f"sample every {asked_period_us:g} us would repeat each "
                f"{self.period_us / asked_period_us:.1f} times. Fewer averages or shorter "
                "conversions are faster", SlowMeterWarning, stacklevel=2)
        while True:
            yield self.read()

    def meter(self, bus_v: float) -> Meter:
        """Describe this instrument at a supply; a shunt of 1 % has a deviation of half of it."""
        per_volt = bus_v / self.shunt_ohm * 1e3
        return Meter(name="ina226", kind="average", resolution_mw=SHUNT_LSB_V * per_volt,
                     offset_mw=SHUNT_OFFSET_V / 2 * per_volt,
                     gain_rel_sd=float(np.hypot(GAIN_LIMIT / 2, 0.005)))

    def trace(self, readings: list[Reading]) -> PowerTrace:
        """Make a trace of readings; refuses readings that clipped."""
        clipped = sum(reading.clipped for reading in readings)
        if clipped:
            raise MeasurementError(f"INA226: {clipped} of {len(readings)} readings are at the "
                                   f"limit of {SHUNT_LIMIT_V * 1e3:g} mV; take a smaller shunt "
                                   f"than {self.shunt_ohm:g} ohm")
        if len(readings) < 2:
            raise MeasurementError(f"INA226: {len(readings)} readings; two or more are needed")
        power = [r.shunt_v / self.shunt_ohm * r.bus_v * 1e3 for r in readings]
        return PowerTrace(time_us=np.array([r.time_us for r in readings]),
                          power_mw=np.array(power),
                          meter=self.meter(float(np.median([r.bus_v for r in readings]))))
