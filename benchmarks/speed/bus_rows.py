"""The bus simulator beside its specification in SimPy."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.speed.bus_speed import LOADS, SIMPY_BURSTS, shorten_stream, simpy_times
from benchmarks.speed.processor_time import median_cpu_s
from benchmarks.speed.row import Row
from hwmodels.bus.bursts import merge_streams
from hwmodels.bus.events import FINISH, run_bursts


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
