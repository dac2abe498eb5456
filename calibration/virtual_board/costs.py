"""What an emulated board is made to cost: a core's timing, caches, and what each miss waits for.

The costs are planted: a calibration that works finds them again. The core is
`hwmodels.core.schedule`'s table applied to the blocks of the real binary; the caches are those
predictions simulate (`hwmodels.kernels.touch_stream`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from calibration.errors import MeasurementError
from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.frozen import frozen
from hwmodels.paths.refill import clock_ratio, line_wait_cycles
from hwmodels.paths.ways import code_cache, data_cache
from hwmodels.prices import derive_prices

SCALE = 64
"""Costs are kept as multiples of 1/64 cycle."""


@frozen
class Span:
    """A piece of address space and what accesses to it wait for, beyond their own cycle.

    Parameters
    ----------
    base, end
        First address, and the one after the last.
    cached, fetch_cached
        Whether the data or the instruction cache is looked up.
    read_miss_cycles, write_miss_cycles, fetch_miss_cycles
        Per line filled for a load, a store, an instruction.
    read_cycles, write_cycles
        Per access that looks up no cache; with `buffer_bytes`, per array read of a load.
        A write-through cache passes each store on at `write_cycles`.
    fetch_cycles
        Per word of code fetched past the cache; with `fetch_bytes`, per array read.
    fetch_bytes
        Code comes by so many bytes at a time into a buffer of one, a power of two; 0: by words.
    buffer_bytes
        Line buffer in front of the array, a power of two; 0 is none.
    """

    base: int
    end: int
    cached: bool = False
    fetch_cached: bool = False
    read_miss_cycles: float = 0.0
    write_miss_cycles: float = 0.0
    fetch_miss_cycles: float = 0.0
    read_cycles: float = 0.0
    write_cycles: float = 0.0
    fetch_cycles: float = 0.0
    fetch_bytes: int = 0
    buffer_bytes: int = 0


@frozen
class Disturbance:
    """What goes on beside the work: interrupts at random times, a clock that slows down.

    Parameters
    ----------
    gap_cycles
        Mean distance of interrupts, exponentially distributed; 0: there are none.
    service_cycles
        Each takes so long.
    slowing
        By how much longer the same work takes after 1e9 cycles, as a share.
    """

    gap_cycles: float = 0.0
    service_cycles: float = 0.0
    slowing: float = 0.0
    seed: int = 0

    def interrupt_cycles(self, cycles: float) -> float:
        """Cycles interrupts took within so many cycles of work."""
        if not self.gap_cycles:
            return 0.0
        arrivals = _arrivals(self.gap_cycles, self.seed)
        return self.service_cycles * int(np.searchsorted(arrivals, cycles))

    def extra_cycles(self, cycles: float) -> float:
        """Cycles that pass besides so many cycles of work; never falls."""
        return self.interrupt_cycles(cycles) + self.slowing * cycles * cycles / 2e9


@lru_cache(maxsize=4)
def _arrivals(gap_cycles: float, seed: int) -> np.ndarray:
    """Return the times of 2^16 interrupts, in cycles of work; none come after."""
    return np.cumsum(np.random.default_rng(seed).exponential(gap_cycles, 1 << 16))


@frozen
class Costs:
    """A hidden board.

    Parameters
    ----------
    core
        Timing table of `hwmodels/cores`; None: every instruction takes a cycle.
    spans
        What is not in one of them costs nothing beyond the access.
    write_back_cycles
        Per dirty line that leaves.
    disturbance
        What goes on beside the work.
    """

    core: str | None = None
    clock_hz: float = 100e6
    data: Cache | None = None
    code: Cache | None = None
    spans: tuple[Span, ...] = ()
    write_back_cycles: float = 0.0
    disturbance: Disturbance = Disturbance()

    def __post_init__(self) -> None:
        """Refuse a cached span without a cache and a buffer that is not a power of two."""
        for span in self.spans:
            if (span.cached and self.data is None) or (span.fetch_cached and self.code is None):
                raise MeasurementError(f"span 0x{span.base:08x} is cached, and there is no cache")
            for size_bytes in (span.buffer_bytes, span.fetch_bytes):
                if size_bytes & (size_bytes - 1):
                    raise MeasurementError(f"span 0x{span.base:08x}: a buffer of {size_bytes} "
                                           "bytes; accepted: a power of two")


def costs_of(board: Board) -> Costs:
    """Return the costs of a board's facts at its clock.

    Parameters
    ----------
    board
        Any with a Cortex-M4, M7 or M33.

    Returns
    -------
    Costs
        Lower caches, prefetch and critical word first are omitted: each miss waits for its line.
    """
    spans = tuple(_span(board, memory) for memory in board.memories)
    prices = derive_prices(board)
    caches = [board.cache(name) for name in (board.core.dcache, board.core.icache)]
    data, code = (cache if cache is not None and cache.enabled else None for cache in caches)
    backs = [prices.price("write_back", memory.name).cycles for memory in board.memories
             if data is not None and data_cache(board, memory) is data and data.write == "back"]
    return Costs(core=board.core.model, data=data, code=code, spans=spans,
                 clock_hz=board.core_clock.frequency_hz, write_back_cycles=max(backs, default=0.0))


def _span(board: Board, memory: Memory) -> Span:
    prices = derive_prices(board)
    data, code = data_cache(board, memory), code_cache(board, memory)
    wait = (memory.wait_states + memory.latency_cycles) * clock_ratio(board, memory)
    waits = memory.wait_states > 0
    other = prices.price("external_wait" if memory.role.startswith("external") else "sram_wait",
                         memory.name).cycles
    read_miss = 0.0
    if data is not None:
        read_miss = (prices.price("dcache_read_refill", memory.name).cycles
                     + line_wait_cycles(board, memory, data.line_bytes))
    return Span(
        base=memory.address, end=memory.address + memory.size_bytes,
        cached=data is not None, fetch_cached=code is not None, read_miss_cycles=read_miss,
        write_miss_cycles=0.0 if data is not None and data.write == "back" else read_miss,
        fetch_miss_cycles=prices.price("icache_refill", memory.name).cycles if code else 0.0,
        read_cycles=wait if waits else other, write_cycles=0.0 if data is not None else other,
        fetch_cycles=wait if waits and code is None else 0.0,
        buffer_bytes=memory.read_bytes if memory.line_buffer and waits else 0,
        fetch_bytes=memory.read_bytes if memory.line_buffer else 0)


@frozen
class Stated:
    """Stated waits of one memory, in cycles of the core beyond an access that hits.

    Parameters
    ----------
    miss_cycles
        A load that misses, or that waits where there is no cache.
    fetch_cycles
        Per byte of straight code that no cache holds.
    fetch_cached
        Whether a cache holds code of this memory, so that loops do not wait for it.
    """

    miss_cycles: float
    fetch_cycles: float
    fetch_cached: bool


def state_memories(board: Board) -> dict[str, Stated]:
    """Return what a board's facts say of each memory.

    Notes
    -----
    A miss of a cache waits for its line; without a cache a load waits for the array, or for as
    long as the memory takes. Prefetch and critical word first are omitted, as of dependent loads.
    """
    costs = costs_of(board)
    found = {}
    for memory, span in zip(board.memories, costs.spans, strict=True):
        fetch = 0.0
        if span.fetch_cached and costs.code is not None:
            fetch = span.fetch_miss_cycles / costs.code.line_bytes
        elif span.fetch_cycles:
            fetch = span.fetch_cycles / (span.fetch_bytes or 4)  # a word of code
        found[memory.name] = Stated(
            miss_cycles=span.read_miss_cycles if span.cached else span.read_cycles,
            fetch_cycles=fetch, fetch_cached=span.fetch_cached)
    return found
