"""What is on a bus and what it asks: masters, slaves, streams of bursts.

`hwmodels.bus.events` says what the numbers mean and runs them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hwmodels.errors import BoardError, check_known
from hwmodels.frozen import NamedCounts, entity, frozen

ARBITRATIONS = {"fixed": 0, "round_robin": 1}
"""Ways to choose among masters, by the kernel's number."""

MAX_MASTERS = 15
"""More leave no room in the kernel's key of time and rank for times up to 2^50 ticks."""

PACINGS = {"finish": 0, "clock": 1}
"""What a master's think time counts from, by the kernel's number."""

MAX_DENOMINATOR = 1000
"""Clock ratios are fractions of whole numbers up to this."""

MAX_PERIOD = 1 << 20
"""Ticks of a cycle at most, so that 2^42 cycles fit into 62 bits."""


@frozen
class Master:
    """A port that asks: a core's instruction or data side, a DMA channel, an NPU interface.

    Parameters
    ----------
    clock_hz
        Its clock; None: the bus clock.
    outstanding
        Bursts in flight at once.
    pacing
        One of `PACINGS`.
    """

    name: str
    clock_hz: float | None = None
    outstanding: int = 1
    pacing: str = "finish"


@frozen
class Slave:
    """A memory or peripheral as the bus meets it.

    Parameters
    ----------
    latency_cycles
        Cycles of its clock a burst holds it before the first beat.
    beat_cycles
        Cycles of its clock per beat of the bus.
    pipeline_cycles
        Cycles of its clock the reply takes more, other bursts being served meanwhile.
    banks
        Banks that serve at once.
    clock_hz
        Its clock; None: the bus clock.
    """

    name: str
    latency_cycles: float = 0.0
    beat_cycles: float = 1.0
    pipeline_cycles: float = 0.0
    banks: int = 1
    clock_hz: float | None = None


@frozen
class Interconnect:
    """Masters, slaves and the arbiters between them.

    Parameters
    ----------
    masters
        In the order of fixed priority, the first wins.
    arbitration
        One of `ARBITRATIONS`.

    Raises
    ------
    BoardError
        When a name, number or arbitration is not one the model knows.
    """

    clock_hz: float
    masters: tuple[Master, ...]
    slaves: tuple[Slave, ...]
    arbitration: str = "round_robin"

    def __post_init__(self) -> None:
        """Refuse an arbitration that is not known, names given twice and clocks not above 0."""
        check_known("bus: arbitration", self.arbitration, ARBITRATIONS, BoardError)
        for parts, kind in ((self.masters, "master"), (self.slaves, "slave")):
            names = [part.name for part in parts]
            if not names or len(set(names)) < len(names):
                raise BoardError(f"bus: {kind}s {names}; accepted: one or more, each named once")
        if len(self.masters) > MAX_MASTERS:
            raise BoardError(f"bus: {len(self.masters)} masters; accepted: {MAX_MASTERS} at most")
        for clock_hz in (self.clock_hz, *(master.clock_hz for master in self.masters),
                         *(slave.clock_hz for slave in self.slaves)):
            if clock_hz is not None and not clock_hz > 0:
                raise BoardError(f"bus: clock of {clock_hz} Hz; accepted: above 0")
        for master in self.masters:
            _check_master(master)
        for slave in self.slaves:
            _check_slave(slave)

    @property
    def banks(self) -> NamedCounts:
        """(slave, bank) of every arbiter, in the order the arrays of a run number them."""
        return tuple((slave.name, bank) for slave in self.slaves for bank in range(slave.banks))

    def clock_periods(self) -> tuple[int, tuple[int, ...]]:
        """Return ticks of a bus cycle, and of a cycle of each master.

        Raises
        ------
        BoardError
            When the clocks have no common tick of a usable size.
        """
        ratios = [clock_ratio(master.clock_hz or self.clock_hz, self.clock_hz)
                  for master in self.masters]
        bus = math.lcm(*(ratio.numerator for ratio in ratios))
        periods = tuple(int(bus / ratio) for ratio in ratios)
        if max(bus, *periods) > MAX_PERIOD:
            raise BoardError(f"bus: clocks without a common tick of 1/{MAX_PERIOD} of a cycle or "
                             "more; accepted: clocks in ratios of small whole numbers")
        return bus, periods


@entity
class Stream:
    """The bursts of one master, in order; a single value holds for all of them.

    Parameters
    ----------
    slave : str or ndarray, (bursts,)
        Whom it asks: the name, or numbers among the interconnect's slaves.
    bank : int or ndarray of int, (bursts,)
        Bank of the slave.
    beats : int or ndarray of int, (bursts,)
        Of the bus.
    think_cycles : int or ndarray of int, (bursts,)
        Of the master's clock, before each burst; with pacing "clock": when it is due.
    count
        Bursts; None: as long as the longest array.
    """

    master: str
    slave: str | np.ndarray
    bank: int | np.ndarray = 0
    beats: int | np.ndarray = 1
    think_cycles: int | np.ndarray = 0
    count: int | None = None

    def __len__(self) -> int:
        """Count the bursts."""
        if self.count is not None:
            return self.count
        return max(map(np.size, (self.slave, self.bank, self.beats, self.think_cycles)))


def clock_ratio(clock_hz: float, other_hz: float) -> Fraction:
    """Return the ratio of two clocks as a fraction.

    Raises
    ------
    BoardError
        When they are not in a ratio of whole numbers up to `MAX_DENOMINATOR`.
    """
    if not (clock_hz > 0 and other_hz > 0):
        raise BoardError(f"bus: clocks {clock_hz} and {other_hz} Hz; accepted: above 0")
    ratio = Fraction(clock_hz / other_hz).limit_denominator(MAX_DENOMINATOR)
    if not ratio or abs(float(ratio) * other_hz / clock_hz - 1) > 1e-7:
        raise BoardError(f"bus: clocks {clock_hz:.0f} and {other_hz:.0f} Hz; accepted: a ratio "
                         f"of whole numbers up to {MAX_DENOMINATOR}")
    return ratio


def _check_master(master: Master) -> None:
    where = f"bus master {master.name!r}"
    check_known(f"{where}: pacing", master.pacing, PACINGS, BoardError)
    if master.outstanding < 1:
        raise BoardError(f"{where}: outstanding {master.outstanding}; accepted: 1 or more")


def _check_slave(slave: Slave) -> None:
    where = f"bus slave {slave.name!r}"
    if slave.banks < 1:
        raise BoardError(f"{where}: {slave.banks} banks; accepted: 1 or more")
    if slave.beat_cycles <= 0:
        raise BoardError(f"{where}: beat_cycles {slave.beat_cycles}; accepted: above 0")
    for key in ("latency_cycles", "pipeline_cycles"):
        if getattr(slave, key) < 0:
            raise BoardError(f"{where}: {key} {getattr(slave, key)}; accepted: 0 or more")
