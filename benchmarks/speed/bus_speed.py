"""Bus simulator: bursts a second of the kernel, the ticked and the SimPy specification, one run.

    python -m benchmarks.speed.bus_speed

One thread. The specifications run the beginning of the same streams; counts and checksums of the
finish times have to agree. Medians; the compiled ticked specification and the kernel are warm.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.oracles import bus_ticked
from benchmarks.oracles.bus import ReferenceBus
from hwmodels.bus.bursts import merge_streams
from hwmodels.bus.events import FINISH, run_bursts
from hwmodels.bus.interconnect import Interconnect, Master, Slave, Stream
from hwmodels.frozen import frozen

REPEATS = 5
TICKED_BURSTS, SIMPY_BURSTS = 25_000, 2_500
"""Per master, for the specifications."""


@frozen
class Load:
    """A bus and how hard its masters press it.

    Parameters
    ----------
    name : str
        As printed.
    masters, slaves : int
        How many.
    think_cycles : int
        At most, before each burst.
    bursts : int
        Per master.
    outstanding : int
        Of each master.
    apart : bool
        Each master keeps to a slave of its own.
    core_hz : float
        Of the masters; the bus runs at 200 MHz.
    """

    name: str
    masters: int = 4
    slaves: int = 4
    think_cycles: int = 20
    bursts: int = 250_000
    outstanding: int = 1
    apart: bool = False
    core_hz: float = 200e6

    def build(self) -> tuple[Interconnect, list[Stream]]:
        """Return the bus and its streams: 1 to 8 beats, uniform; the same every time."""
        draw = np.random.default_rng(0)
        masters = tuple(Master(name=f"m{row}", clock_hz=self.core_hz, outstanding=self.outstanding)
                        for row in range(self.masters))
        slaves = tuple(Slave(name=f"s{row}", latency_cycles=1) for row in range(self.slaves))
        streams = [Stream(
            master=master.name, beats=draw.integers(1, 9, self.bursts),
            slave=(slaves[row % self.slaves].name if self.apart
                   else draw.integers(0, self.slaves, self.bursts)),
            think_cycles=draw.integers(0, self.think_cycles + 1, self.bursts))
            for row, master in enumerate(masters)]
        return Interconnect(clock_hz=200e6, masters=masters, slaves=slaves), streams


LOADS = (
    Load(name="one master", masters=1, slaves=1, bursts=1_000_000),
    Load(name="four masters, slaves apart", apart=True),
    Load(name="two masters, light", masters=2, slaves=2, think_cycles=40, bursts=500_000),
    Load(name="four masters, moderate"),
    Load(name="four masters, one slave, full", slaves=1, think_cycles=8),
    Load(name="four masters, four in flight", outstanding=4),
    Load(name="four masters, clocks 7 to 5", core_hz=280e6),
)


def main() -> None:
    """Run every load and print a line for each."""
    run_ticks = compile_ticks()
    print(f"{'M bursts/s':32}{'kernel':>8}{'merged':>8}{'ticked':>8}{'SimPy':>8}{'waits':>7}")
    for load in LOADS:
        print(measure_load(load, run_ticks), flush=True)


def measure_load(load: Load, run_ticks: Callable) -> str:
    """Time one load three ways, hold their finish times against each other, return a line."""
    interconnect, streams = load.build()
    bursts = merge_streams(interconnect, streams)
    run, kernel_s = time_median(lambda: run_bursts(bursts))
    count = load.masters * load.bursts
    assert len(run.times) == count and (run.times[:, FINISH] > 0).all()
    _, merged_s = time_median(lambda: run_bursts(merge_streams(interconnect, streams)))
    rates = [count / kernel_s, count / merged_s]
    for length, simulate in ((TICKED_BURSTS, lambda parts: run_ticks(interconnect, parts)),
                             (SIMPY_BURSTS, lambda parts: simpy_times(interconnect, parts))):
        parts = [shorten_stream(stream, length) for stream in streams]
        started = time.perf_counter()
        times = simulate(parts)
        rates.append(len(times) / (time.perf_counter() - started))
        expected = run_bursts(merge_streams(interconnect, parts)).times
        assert len(times) == len(expected) == load.masters * length
        assert times[:, FINISH].sum() == expected[:, FINISH].sum()
        assert np.array_equal(times, expected)
    waiting = np.count_nonzero(run.times[:, 3]) / count
    return (f"{load.name:32}" + "".join(f"{rate / 1e6:8.2f}" for rate in rates)
            + f"{waiting:7.0%}")


def time_median(action: Callable):
    """Return what an action returns, and the median of its times in seconds."""
    seconds, result = [], action()
    for _ in range(REPEATS):
        started = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - started)
    return result, statistics.median(seconds)


def shorten_stream(stream: Stream, count: int) -> Stream:
    """Return the beginning of a stream."""
    slave = stream.slave if isinstance(stream.slave, str) else stream.slave[:count]
    return Stream(master=stream.master, slave=slave, beats=stream.beats[:count],
                  think_cycles=stream.think_cycles[:count])


def simpy_times(interconnect: Interconnect, streams: list[Stream]) -> np.ndarray:
    """Run the SimPy specification."""
    return np.array(ReferenceBus(interconnect, streams).run())


def compile_ticks() -> Callable:
    """Return the ticked specification, compiled, on merged streams."""
    import numba

    for name in ("deliver", "may_issue", "choose", "run_ticks"):
        setattr(bus_ticked, name, numba.njit(getattr(bus_ticked, name)))

    def run(interconnect: Interconnect, streams: list[Stream]) -> np.ndarray:
        return bus_ticked.tick_bus(merge_streams(interconnect, streams), 1 << 40)

    bus, streams = Load(name="warm-up", bursts=10).build()
    run(bus, streams)
    return run


if __name__ == "__main__":
    main()
