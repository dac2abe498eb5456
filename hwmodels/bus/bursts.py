"""Streams of bursts laid out as the arrays the bus kernel runs, in ticks.

    bursts = merge_streams(interconnect, streams)

A tick divides a cycle of every clock; `hwmodels.bus.events` says what the numbers mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hwmodels.bus.interconnect import PACINGS, Interconnect, Slave, Stream, clock_ratio
from hwmodels.errors import KernelError, check_known
from hwmodels.frozen import entity

FIRST, LAST = 3, 4
"""Columns of `Bursts.ports`: where the bursts of a port lie."""

TARGET, HELD = 1, 2
"""Columns of `Bursts.bursts`: the bank asked, and ticks it is held."""


@entity
class Bursts:
    """Streams of all masters, master by master; columns as in `hwmodels.kernels.bus_events`.

    Parameters
    ----------
    bus_period
        Ticks of a bus cycle.
    ports : ndarray of int64, (masters, 5)
        What the kernel knows of a master.
    bursts : ndarray of int64, (bursts, 4)
        Think ticks, bank, ticks held, ticks the reply takes more.
    transfer : ndarray of int64, (bursts,)
        Ticks of its beats on the port's data lines.
    banks
        Arbiters, whom each burst names one of.
    """

    interconnect: Interconnect
    bus_period: int
    ports: np.ndarray
    bursts: np.ndarray
    transfer: np.ndarray
    banks: int

    def range_of(self, master: str) -> slice:
        """Return where the bursts of a master lie."""
        first, last = self.ports[self.row_of(master), FIRST:LAST + 1]
        return slice(int(first), int(last))

    def row_of(self, master: str) -> int:
        """Return the number of a master."""
        names = [port.name for port in self.interconnect.masters]
        check_known("bus: no master", master, names, KernelError)
        return names.index(master)


def merge_streams(interconnect: Interconnect, streams: Sequence[Stream]) -> Bursts:
    """Lay the bursts of all masters out for the kernel.

    Parameters
    ----------
    streams
        At most one per master; the others ask nothing.

    Returns
    -------
    Bursts
        In ticks.

    Raises
    ------
    KernelError
        When a stream names a master, slave or bank that does not exist, or a number is below what
        can be.
    """
    names = [master.name for master in interconnect.masters]
    by_master = {stream.master: stream for stream in streams}
    for stream in streams:
        if stream.master not in names or by_master[stream.master] is not stream:
            raise KernelError(f"bus: stream of master {stream.master!r}; accepted: at most one "
                              f"for each of {', '.join(names)}")
    sizes = [len(by_master[name]) if name in by_master else 0 for name in names]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    bus_period, periods = interconnect.clock_periods()
    ports = np.array([
        (period, master.outstanding, PACINGS[master.pacing], first, last)
        for master, period, first, last in zip(interconnect.masters, periods, starts[:-1],
                                               starts[1:], strict=True)], dtype=np.int64)
    total = int(starts[-1])
    bursts, transfer = np.empty((total, 4), np.int64), np.empty(total, np.int64)
    for row, name in enumerate(names):
        if not sizes[row]:
            continue
        stream, part = by_master[name], slice(starts[row], starts[row + 1])
        held, reply, bank = _serve(stream, interconnect)
        bursts[part, 0] = _whole(stream, "think_cycles", 0) * periods[row]
        bursts[part, TARGET], bursts[part, HELD] = bank, held * bus_period
        bursts[part, 3] = reply * bus_period
        transfer[part] = _whole(stream, "beats", 1) * bus_period
    return Bursts(interconnect=interconnect, bus_period=bus_period, ports=ports, bursts=bursts,
                  transfer=transfer, banks=len(interconnect.banks))


def bus_cycles(interconnect: Interconnect, slave: Slave, cycles: float) -> int:
    """Return cycles of a slave's clock as whole bus cycles, rounded up."""
    return math.ceil(Fraction(cycles).limit_denominator(1000) * _ratio(interconnect, slave))


def _ratio(interconnect: Interconnect, slave: Slave) -> Fraction:
    """Bus cycles in a cycle of a slave."""
    return clock_ratio(interconnect.clock_hz, slave.clock_hz or interconnect.clock_hz)


def _serve(stream: Stream, interconnect: Interconnect) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bus cycles held, bus cycles the reply takes more, and the bank asked, per burst."""
    slaves = interconnect.slaves
    slave, beats = _slave_numbers(stream, interconnect), _whole(stream, "beats", 1)
    banks = np.array([part.banks for part in slaves], dtype=np.int64)
    bank = _whole(stream, "bank", 0)
    if np.any(bank >= banks[slave]):
        worst = int(slave[np.argmax(bank >= banks[slave])] if slave.ndim else slave)
        raise KernelError(f"bus: stream of {stream.master!r}: bank {bank.max()}; accepted: 0 to "
                          f"{banks[worst] - 1} of {slaves[worst].name!r}")
    # held = ceil((latency + beats x beat) x ratio), exactly: (a + beats x b) / over.
    start, beat, over = _service_terms(interconnect)
    held = beats * beat[slave] + start[slave]
    if over > 1:
        held = -(-held // over)
    held = np.maximum(held, beats)
    reply = np.array([bus_cycles(interconnect, part, part.pipeline_cycles) for part in slaves],
                     dtype=np.int64)
    return held, reply[slave], (np.cumsum(banks) - banks)[slave] + bank


def _service_terms(interconnect: Interconnect) -> tuple[np.ndarray, np.ndarray, int]:
    """Return d times: latency, and cycles of a beat, per slave; and d.

    In bus cycles; d makes them whole.
    """
    terms = [[Fraction(cycles).limit_denominator(1000) * _ratio(interconnect, slave)
              for cycles in (slave.latency_cycles, slave.beat_cycles)]
             for slave in interconnect.slaves]
    over = math.lcm(*(term.denominator for row in terms for term in row))
    table = np.array([[int(term * over) for term in row] for row in terms], dtype=np.int64)
    return table[:, 0], table[:, 1], over


def _slave_numbers(stream: Stream, interconnect: Interconnect) -> np.ndarray:
    names = [slave.name for slave in interconnect.slaves]
    if isinstance(stream.slave, str):
        check_known(f"bus: stream of {stream.master!r}: slave", stream.slave, names, KernelError)
        return np.asarray(names.index(stream.slave))
    numbers = _whole(stream, "slave", 0)
    if numbers.max(initial=0) >= len(names):
        raise KernelError(f"bus: stream of {stream.master!r}: slave {numbers.max()}; accepted: "
                          f"0 to {len(names) - 1}")
    return numbers


def _whole(stream: Stream, key: str, least: int) -> np.ndarray:
    """Return a field of a stream as whole numbers of at least a bound."""
    values = np.asarray(getattr(stream, key))
    if values.ndim and values.shape != (len(stream),):
        raise KernelError(f"bus: stream of {stream.master!r}: {key} of shape {values.shape}; "
                          f"accepted: one value or ({len(stream)},)")
    if not np.issubdtype(values.dtype, np.integer) or (values.size and values.min() < least):
        raise KernelError(f"bus: stream of {stream.master!r}: {key}; accepted: whole numbers of "
                          f"{least} or more")
    return values.astype(np.int64, copy=False)
