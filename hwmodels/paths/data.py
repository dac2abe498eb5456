"""Loads and stores on their way: which cache serves a memory, and what is met in caches.

What of it the core waits for is `hwmodels.paths.exposure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hwmodels.board.facts import Board, Cache
from hwmodels.cache import AccessCounts, OperandCounts
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
from hwmodels.paths.ways import data_cache, data_caches

ANY_LINE_BYTES = 32
"""Of what looks up no cache, on a board without caches."""


class DataPath:
    """Data caches and line buffers of a board, their contents carried from kernel to kernel.

    Parameters
    ----------
    states
        Contents by cache; shared with the code path, which is what makes a cache unified.
    """

    def __init__(self, board: Board, states: dict[str, CacheState]) -> None:
        self.board = board
        self.states = states
        self.buffers: dict[str, CacheState] = {}
        self.served: dict[str, Cache | None] = {}
        self.line_bytes = next((cache.line_bytes for cache in data_caches(board)), ANY_LINE_BYTES)

    def run(self, kernels: Sequence[Kernel],
            core_cycles: Sequence[float]) -> tuple[DataTraffic, ...]:
        """Run kernels' accesses, one kernel behind the other.

        Parameters
        ----------
        core_cycles
            The core's own cycles of each kernel; a cache that stops allocating for streams of
            stores asks how fast they are.

        Returns
        -------
        tuple of DataTraffic
            What those of each met.
        """
        rows = [self._serving(kernel) for kernel in kernels]
        # Of some caches what they do depends on more than what looked them up before.
        alone = any(cache.streaming_lines or cache.below for row in rows for cache in row if cache)
        found: list[DataTraffic] = []
        for first in range(len(kernels)) if alone else (0,):
            part = slice(first, first + 1) if alone else slice(None)
            met = {cache: self._look_up(cache, kernels[part], rows[part], core_cycles[first])
                   for cache in dict.fromkeys([cache for row in rows[part] for cache in row])}
            found += [self._join(kernel, row, {cache: met[cache][place] for cache in row})
                      for place, (kernel, row) in enumerate(zip(
                          kernels[part], rows[part], strict=True))]
        return tuple(found)

    def _join(self, kernel: Kernel, caches: Sequence[Cache | None],
              met: Mapping[Cache | None, tuple[AccessCounts, Mapping[Cache, AccessCounts]]],
              ) -> DataTraffic:
        """Put together what a kernel's operands met in the caches they look up."""
        operands = tuple([met[cache][0].operands[row] for row, cache in enumerate(caches)])
        lower = {under.name: (under.name, cache.name, counts)
                 for cache, (_, below) in met.items() if cache
                 for under, counts in below.items()}
        return DataTraffic(
            counts=AccessCounts(operands=operands, owners=tuple([
                owner for counts, _ in met.values() for owner in counts.owners])),
            lower=tuple(lower.values()),
            array_reads=tuple([
                operand.reads if cache else self._array_reads(kernel, operand)
                for operand, cache in zip(operands, caches, strict=True)]))

    def _serving(self, kernel: Kernel) -> list[Cache | None]:
        """Return the cache each operand of a kernel looks up."""
        for operand in kernel.operands:
            if operand.memory not in self.served:
                memory = self.board.memory(operand.memory)
                self.served[operand.memory] = data_cache(self.board, memory)
        return [self.served[operand.memory] for operand in kernel.operands]

    def _look_up(self, cache: Cache | None, kernels: Sequence[Kernel],
                 rows: Sequence[Sequence[Cache | None]], core_cycles: float,
                 ) -> list[tuple[AccessCounts, Mapping[Cache, AccessCounts]]]:
        """Run operands that look one cache up through it, and one kernel's misses through the next.

        Parameters
        ----------
        core_cycles
            Of the first kernel.
        """
        if cache is None:
            return [(self._count_directly(kernel), {}) for kernel in kernels]
        chosen = [tuple([one is cache for one in row]) for row in rows]
        state = self.states.get(cache.name) or new_state(cache)
        below = self.board.cache(cache.below)
        if cache.streaming_lines and self._streams(cache, kernels[0], chosen[0], core_cycles):
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
        counts = self._count_directly(kernel)
        for operand, mine in zip(counts.operands, chosen, strict=True):
            if not mine or not operand.writes:
                continue
            lines = operand.write_bytes / cache.line_bytes
            refill = refill_cycles(self.board, self.board.memory(operand.memory), cache.line_bytes)
            if lines >= cache.streaming_lines and core_cycles < lines * refill:
                return True
        return False

    def _array_reads(self, kernel: Kernel, operand: OperandCounts) -> int:
        """Array reads, through its memory's one-line buffer, of an operand no cache holds."""
        memory = self.board.memory(operand.memory)
        if (memory.role != "flash" or not memory.line_buffer
                or not (operand.reads or operand.writes)):
            return operand.reads
        buffer = line_buffer_of(memory)
        state = self.buffers.get(memory.name) or new_state(buffer)
        counts, self.buffers[memory.name] = simulate_nests(
            buffer, kernel.nests, kernel.operands, state,
            tuple(one.name == operand.operand for one in kernel.operands))
        return counts.total("read_misses")
