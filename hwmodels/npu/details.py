"""What an epoch did, part by part: made of columns when it is first asked for."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hwmodels.board.npu import Npu
from hwmodels.columns import ColumnCounts, CountColumns
from hwmodels.counts import Counts
from hwmodels.npu.bill import Asked, show_exposed
from hwmodels.npu.epoch import EngineRun, Epoch, Exposed, InterfaceRun, NpuCacheRun, PoolRun
from hwmodels.npu.machine import Ints
from hwmodels.npu.streams import Bursts, Stream, count_cache, show_streams

NO_BURSTS: Bursts = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunColumns:
    """What epochs did that ran in one go.

    Parameters
    ----------
    epochs : tuple of Epoch
        What was asked.
    asked : Asked
        The same as columns.
    compute : ndarray of int, (epochs,)
        Cycles with ideal memory.
    counts : CountColumns
        Their events.
    npu : Npu
        The machine.
    """

    epochs: tuple[Epoch, ...]
    asked: Asked
    compute: Ints
    counts: CountColumns
    npu: Npu


class Ran:
    """What one of several epochs did, part by part, made when it is first asked for.

    Parameters
    ----------
    table : RunColumns
        All of them.
    place : int
        Which.
    """

    def __init__(self, table: RunColumns, place: int) -> None:
        self.table, self.place = table, place

    @functools.cached_property
    def streams(self) -> tuple[Stream, ...]:
        """Traffic of its engines."""
        asked, place = self.table.asked, self.place
        first, last = asked.engines.first[place:place + 2].tolist()
        return show_streams(self.table.epochs[place].engines, asked.streams, range(first, last),
                            self.table.npu)

    @functools.cached_property
    def engines(self) -> tuple[EngineRun, ...]:
        """Its stream engines."""
        core, start, compute = (int(column[self.place]) for column in (
            self.table.asked.core, self.table.asked.start, self.table.compute))
        return tuple(_run_engine(stream, core, compute, start) for stream in self.streams)

    @functools.cached_property
    def interfaces(self) -> tuple[InterfaceRun, ...]:
        """All interfaces of the machine; none without engines and units."""
        epoch = self.table.epochs[self.place]
        return tuple(_run_interface(port.name, self.engines) for port in (
            self.table.npu.interfaces if epoch.engines or epoch.units else ()))

    @functools.cached_property
    def pools(self) -> tuple[PoolRun, ...]:
        """The pools its engines walk."""
        return _run_pools(self.streams, self.table.npu, int(self.table.asked.core[self.place]))

    @functools.cached_property
    def cache(self) -> NpuCacheRun:
        """Counters of the NPU cache."""
        return count_cache(self.streams)

    @functools.cached_property
    def exposed(self) -> tuple[Exposed, ...]:
        """Resources by cycles."""
        return show_exposed(self.table.counts, self.place)

    @functools.cached_property
    def counts(self) -> Counts:
        """Events."""
        return ColumnCounts(self.table.counts, self.place)


def _run_engine(stream: Stream, core: int, compute: int, start: int) -> EngineRun:
    """Return an engine's counters.

    Notes
    -----
    An engine in is active while it fetches and while the units take what it fetched, and stalled
    while its buffer is full; an engine out is active while it is open, as it waits for data:

        in   min(core, start + latency + fetch + max(compute, hand))        out   core
    """
    engine, width = stream.engine, stream.interface.width_bytes
    active = core
    if engine.direction == "in":
        own = stream.latency_cycles + stream.fetch_cycles + max(compute, stream.hand_cycles)
        active = min(core, start + math.ceil(own))
    return EngineRun(index=engine.index, direction=engine.direction, interface=engine.interface,
                     pool=engine.pool, buffer_bytes=engine.buffer_bytes, active_cycles=active,
                     bytes=stream.beats * width, bursts=stream.bursts)


def _run_interface(name: str, engines: Sequence[EngineRun]) -> InterfaceRun:
    bursts = {"in": NO_BURSTS, "out": NO_BURSTS}
    moved = {"in": 0, "out": 0}
    for engine in engines:
        if engine.interface == name:
            a, b, c, d = bursts[engine.direction]
            e, f, g, h = engine.bursts
            bursts[engine.direction] = (a + e, b + f, c + g, d + h)
            moved[engine.direction] += engine.bytes
    return InterfaceRun(name=name, read_bytes=moved["in"], write_bytes=moved["out"],
                        read_bursts=bursts["in"], write_bursts=bursts["out"])


def _run_pools(streams: Sequence[Stream], npu: Npu, core: int) -> tuple[PoolRun, ...]:
    moved: dict[str, list[int]] = {}
    for stream in streams:
        sums = moved.setdefault(stream.engine.pool, [0, 0])
        sums[stream.engine.direction == "out"] += stream.wanted_bytes
    seconds = core / npu.frequency_hz
    return tuple(PoolRun(name=name, read_bytes=reads, write_bytes=writes,
                         mb_per_s=(reads + writes) / seconds / 1e6 if core else 0.0)
                 for name, (reads, writes) in moved.items())
