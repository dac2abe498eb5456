"""Loads and stores on their way: which cache serves a memory, and what is met in caches.

What of it the core waits for is `hwmodels.paths.exposure`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hwmodels.board.facts import Board, Cache
from hwmodels.cache import AccessCounts
from hwmodels.cache.counters import count_uncached
from hwmodels.cache.set_associative import (
    CacheState,
    line_buffer_of,
    new_state,
    simulate_kernels,
    simulate_nests,
)
from hwmodels.kernel import Kernel
from hwmodels.paths.refill import refill_cycles
from hwmodels.paths.traffic import DataTraffic
from hwmodels.paths.ways import count_policies, data_cache, data_caches

ANY_LINE_BYTES = 32
"""Of what looks up no cache, on a board without caches."""


class DataPath:
    """Data caches and line buffers of a board, their contents carried from kernel to kernel.

    Parameters
    ----------
    states
        Contents by cache; shared with the code path, which is what makes a cache unified.

    Attributes
    ----------
    in_turns : bool
        Whether what caches do depends on more than what looked them up before, kernel by kernel.
    """

    def __init__(self, board: Board, states: dict[str, CacheState]) -> None:
        self.board = board
        self.states = states
        self.buffers: dict[str, CacheState] = {}
        caches = data_caches(board)
        self.line_bytes = next((cache.line_bytes for cache in caches), ANY_LINE_BYTES)
        self.in_turns = any(cache.streaming_lines or cache.below for cache in caches)

    def run(self, kernels: Sequence[Kernel],
            core_cycles: Sequence[float]) -> tuple[DataTraffic, ...]:
        """Run kernels' accesses, one kernel behind the other.

        Parameters
        ----------
        kernels
            One, if `in_turns`.
        core_cycles
            The core's own cycles of each kernel; a cache that stops allocating for streams of
            stores asks how fast they are.

        Returns
        -------
        tuple of DataTraffic
            What those of each met, under one policy of the caches behind the other
            (`hwmodels.board.policies.policies_of`).
        """
        rows = [[data_cache(self.board, self.board.memory(operand.memory))
                 for operand in kernel.operands] for kernel in kernels]
        met = {cache: itertools.cycle(self._look_up(cache, kernels, rows, core_cycles))
               for cache in dict.fromkeys([cache for row in rows for cache in row])}
        reads = [self._read_arrays(kernel, row) for kernel, row in zip(kernels, rows, strict=True)]
        found = []
        for row, array_reads in list(zip(rows, reads, strict=True)) * count_policies(self.board):
            counts = {cache: next(counts) for cache, counts in met.items()}
            found.append(self._join({cache: counts[cache] for cache in row}, row, array_reads))
        return tuple(found)

    def _join(self, met: Mapping[Cache | None, tuple[AccessCounts, Mapping[Cache, AccessCounts]]],
              caches: Sequence[Cache | None], array_reads: tuple[int, ...]) -> DataTraffic:
        """Put together what a kernel's operands met in the caches they look up."""
        operands = tuple([met[cache][0].operands[row] for row, cache in enumerate(caches)])
        lower = {under.name: (under.name, cache.name, counts)
                 for cache, (_, below) in met.items() if cache
                 for under, counts in below.items()}
        return DataTraffic(
            counts=AccessCounts(operands=operands, owners=tuple([
                owner for counts, _ in met.values() for owner in counts.owners])),
            lower=tuple(lower.values()),
            array_reads=array_reads)

    def _look_up(self, cache: Cache | None, kernels: Sequence[Kernel],
                 rows: Sequence[Sequence[Cache | None]], core_cycles: Sequence[float],
                 ) -> list[tuple[AccessCounts, Mapping[Cache, AccessCounts]]]:
        """Run operands that look a cache up through it; one kernel's misses through the next."""
        if cache is None:
            return [(self._count_directly(kernel), {}) for kernel in kernels]
        chosen = [tuple([one is cache for one in row]) for row in rows]
        state = self.states.get(cache.name) or new_state(cache)
        below = self.board.cache(cache.below)
        if cache.streaming_lines and self._streams(cache, kernels[0], chosen[0], core_cycles[0]):
            cache = replace(cache, allocate="read")
        met, self.states[cache.name] = simulate_kernels(cache, kernels, state, chosen)
        if below is None or not below.enabled:
            return [(counts, {}) for counts in met]
        from hwmodels.cache.levels import look_below

        held = self.states.get(below.name) or new_state(below)
        lower, self.states[below.name] = look_below(self.board, cache, below, kernels[0], state,
                                                    held, chosen[0])
        return [(met[0], {below: lower})]

    def _count_directly(self, kernel: Kernel) -> AccessCounts:
        """Count accesses that look no cache up."""
        return count_uncached(kernel.nests, kernel.operands, self.line_bytes)

    def _streams(self, cache: Cache, kernel: Kernel, chosen: Sequence[bool],
                 core_cycles: float) -> bool:
        """Whether whole lines are stored in less time than one is filled.

        Judged by the kernel's mean pace: (core cycles) / (lines written) < refill.
        """
        for operand, mine in zip(self._count_directly(kernel).operands, chosen, strict=True):
            lines = operand.write_bytes / cache.line_bytes
            refill = refill_cycles(self.board, self.board.memory(operand.memory), cache.line_bytes)
            if mine and lines >= cache.streaming_lines and core_cycles < lines * refill:
                return True
        return False

    def _read_arrays(self, kernel: Kernel, caches: Sequence[Cache | None]) -> tuple[int, ...]:
        """Return each operand's reads; of flash no cache holds, those behind its line buffer."""
        found = []
        for place, (operand, cache) in enumerate(zip(
                self._count_directly(kernel).operands, caches, strict=True)):
            reads, memory = operand.reads, self.board.memory(operand.memory)
            if (cache is None and memory.role == "flash" and memory.line_buffer
                    and (reads or operand.writes)):
                buffer = line_buffer_of(memory)
                counts, self.buffers[memory.name] = simulate_nests(
                    buffer, kernel.nests, kernel.operands,
                    self.buffers.get(memory.name) or new_state(buffer),
                    [number == place for number in range(len(caches))])
                reads = counts.total("read_misses")
            found.append(reads)
        return tuple(found)
