"""A bus under several loads: the kernel's bursts a second beside those of the SimPy specification.

The specification runs the beginning of the same streams.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.oracles.bus import ReferenceBus
from benchmarks.speed.row import Row, median_cpu_s
from hwmodels.bus.bursts import merge_streams
from hwmodels.bus.events import FINISH, run_bursts
from hwmodels.bus.interconnect import Interconnect, Master, Slave, Stream
from hwmodels.frozen import frozen

BURSTS, SIMPY_BURSTS = 250_000, 2_500
"""Per master, and for the specification."""


@frozen
class Load:
    """A bus and how hard its masters press it.

    Parameters
    ----------
    name : str
        As printed.
    outstanding : int
        Of each master.
    core_hz : float
        Of the masters; the bus runs at 200 MHz.
    limit : float
        Million bursts a second asked of it; None: only shown.
    """

    name: str
    outstanding: int = 1
    core_hz: float = 200e6
    limit: float | None = None

    def build(self) -> tuple[Interconnect, list[Stream]]:
        """Return the bus and its streams: 1 to 8 beats, uniform; the same every time."""
        draw = np.random.default_rng(0)
        masters = tuple(Master(name=f"m{row}", clock_hz=self.core_hz, outstanding=self.outstanding)
                        for row in range(4))
        slaves = tuple(Slave(name=f"s{row}", latency_cycles=1) for row in range(4))
        streams = [Stream(master=master.name, beats=draw.integers(1, 9, BURSTS),
                          slave=draw.integers(0, 4, BURSTS),
                          think_cycles=draw.integers(0, 21, BURSTS)) for master in masters]
        return Interconnect(clock_hz=200e6, masters=masters, slaves=slaves), streams


LOADS = (
    Load(name="four masters, moderate"),
    Load(name="four masters, four in flight", outstanding=4, limit=40.0),
    Load(name="four masters, clocks 7 to 5", core_hz=280e6, limit=40.0),
)


def shorten_stream(stream: Stream, count: int) -> Stream:
    """Return the beginning of a stream."""
    return Stream(master=stream.master, slave=stream.slave[:count], beats=stream.beats[:count],
                  think_cycles=stream.think_cycles[:count])


def simpy_times(interconnect: Interconnect, streams: list[Stream]) -> np.ndarray:
    """Run the SimPy specification."""
    return np.array(ReferenceBus(interconnect, streams).run())


def measure() -> Iterator[Row]:
    """Yield the rows of the bus."""
    for load in LOADS:
        interconnect, streams = load.build()
        bursts = merge_streams(interconnect, streams)
        run = run_bursts(bursts)
        parts = [shorten_stream(stream, SIMPY_BURSTS) for stream in streams]
        started = time.process_time()
        expected = simpy_times(interconnect, parts)
        theirs = len(expected) / (time.process_time() - started) / 1e6
        assert (run_bursts(merge_streams(interconnect, parts)).times == expected).all()
        seconds = median_cpu_s(lambda bursts=bursts: run_bursts(bursts), 5)
        yield Row(name=f"bus, {load.name}", unit="M/s", figure=len(run.times) / seconds / 1e6,
                  peer="SimPy", theirs=theirs,
                  limit=load.limit,
                  events={"bursts": len(run.times), "finish": int(run.times[:, FINISH].sum())})
