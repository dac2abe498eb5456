"""Loads and stores on their way: caches, line buffers, memories, and what of it the core waits for.

A refill of T cycles whose first word comes after F lets a core with critical word first go on for
min(T - F, c), c being the core's own cycles between two refills of the kernel; a cache that takes
its lines from a flash that reads ahead waits max(0, 1 + w - c) instead of w. What is left of the
core's own cycles hides lines written back, which a buffer holds. Occurred is all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.board.memory import sequential_wait_cycles
from hwmodels.cache.set_associative import (
    AccessCounts,
    CacheState,
    OperandCounts,
    OwnerCounts,
    line_buffer_of,
    new_state,
    simulate_nests,
)
from hwmodels.counts import CountLine
from hwmodels.kernel import Kernel
from hwmodels.paths.refill import (
    clock_ratio,
    first_bytes,
    line_wait_cycles,
    refill_cycles,
    write_back_cycles,
)


def data_cache(board: Board, memory: Memory) -> Cache | None:
    """Return the cache loads and stores look up, None where they go straight to the memory.

    Parameters
    ----------
    board : Board
        Whose main core accesses.
    memory : Memory
        What it accesses.

    Returns
    -------
    Cache or None
        The first of the core's data caches that is enabled and may hold the memory's lines.
    """
    return _first(board, (board.core.dcache, *board.core.data_caches), memory)


def data_caches(board: Board) -> tuple[Cache, ...]:
    """Return the caches loads and stores of a board look up first."""
    found = dict.fromkeys(data_cache(board, memory) for memory in board.memories)
    return tuple(cache for cache in found if cache is not None)


def code_cache(board: Board, memory: Memory) -> Cache | None:
    """Return the cache instructions of a memory are fetched through, None for none."""
    return _first(board, (board.core.icache,), memory)


def lower_cache(board: Board, cache: Cache, memory: Memory) -> Cache | None:
    """Return the cache that misses of another one look up on the way to a memory."""
    return _first(board, (cache.below,), memory)


def is_unified(board: Board, cache: Cache) -> bool:
    """Whether the core looks the cache up for instructions and for data."""
    return cache.name == board.core.icache and cache.name in (
        board.core.dcache, *board.core.data_caches)


def _first(board: Board, names: Iterable[str | None], memory: Memory) -> Cache | None:
    for name in names:
        cache = board.cache(name)
        if cache is not None and cache.enabled and cache.may_hold(memory):
            return cache
    return None


EXACT = 64
"""Exposed shares are rounded to 1/64, so that sums of counts are exact."""

NO_CACHE = Cache(name="none", size_bytes=32, line_bytes=32, ways=1, enabled=False)
"""Counting needs no cache; any geometry serves."""

run_nests = lru_cache(maxsize=1024)(simulate_nests)
"""`simulate_nests`, kept by content: a second prediction, or one at another clock, is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRun:
    """What a kernel's loads and stores did.

    Parameters
    ----------
    counts : AccessCounts
        Per operand and owner, in the cache each operand looks up first.
    lines : tuple of CountLine
        Events.
    lower : tuple of (str, AccessCounts)
        By name of the caches below that were looked up.
    """

    counts: AccessCounts
    lines: tuple[CountLine, ...]
    lower: tuple[tuple[str, AccessCounts], ...] = ()


def count_line(event: str, place: str, operand: str, occurred: float,
               exposed: float) -> CountLine:
    """Return a line of counts, its exposed part in 64ths."""
    return CountLine(event=event, place=place, operand=operand, occurred=occurred,
                     exposed=math.floor(exposed * EXACT) / EXACT)


class DataPath:
    """Data caches and line buffers of a board, their contents carried from kernel to kernel.

    Parameters
    ----------
    board : Board
        The machine.
    states : dict of str to CacheState
        Contents by cache; shared with the code path, which is what makes a cache unified.
    """

    def __init__(self, board: Board, states: dict[str, CacheState]) -> None:
        self.board = board
        self.states = states
        self.buffers: dict[str, CacheState] = {}

    def access(self, kernel: Kernel, core_cycles: float) -> DataRun:
        """Run a kernel's accesses.

        Parameters
        ----------
        kernel : Kernel
            What is asked.
        core_cycles : float
            The core's own cycles of the kernel, which can hide waiting.

        Returns
        -------
        DataRun
            Counts and events.
        """
        caches = [data_cache(self.board, self.board.memory(operand.memory))
                  for operand in kernel.operands]
        rows: dict[int, OperandCounts] = {}
        owners: list[OwnerCounts] = []
        lower: dict[Cache, tuple[Cache, AccessCounts]] = {}
        for cache in dict.fromkeys(caches):
            chosen = tuple(one is cache for one in caches)
            counts, below = self._look_up(cache, kernel, chosen, core_cycles)
            owners += counts.owners
            lower |= {under: (cache, of_it) for under, of_it in below.items() if cache}
            rows |= {row: counts.operands[row] for row, mine in enumerate(chosen) if mine}
        merged = AccessCounts(operands=tuple(rows[row] for row in sorted(rows)),
                              owners=tuple(owners))
        budget = _Budget(core_cycles, merged.total("read_misses"))
        lines = [line for operand, cache in zip(merged.operands, caches, strict=True)
                 if operand.reads or operand.writes
                 for line in (self._direct(operand, kernel) if cache is None
                              else self._looked_up(operand, cache, budget))]
        lines += self._write_backs(merged, budget)
        for cache, (first, counts) in lower.items():
            lines += self._below(cache, counts, budget, first)
        return DataRun(counts=merged, lines=tuple(lines), lower=tuple(
            (cache.name, counts) for cache, (_, counts) in lower.items()))

    def _look_up(self, cache: Cache | None, kernel: Kernel, chosen: tuple[bool, ...],
                 core_cycles: float) -> tuple[AccessCounts, dict[Cache, AccessCounts]]:
        """Run the operands that look one cache up through it, and its misses through the next."""
        if cache is None:
            return run_nests(NO_CACHE, kernel.nests, kernel.operands, new_state(NO_CACHE))[0], {}
        state = self.states.get(cache.name) or new_state(cache)
        if cache.streaming_lines and self._streams(cache, kernel, chosen, core_cycles):
            cache = replace(cache, allocate="read")
        counts, self.states[cache.name] = run_nests(
            cache, kernel.nests, kernel.operands, state, chosen)
        below = self.board.cache(cache.below)
        if below is None or not below.enabled:
            return counts, {}
        from hwmodels.cache.levels import look_below

        held = self.states.get(below.name) or new_state(below)
        lower, self.states[below.name] = look_below(self.board, cache, below, kernel, state, held,
                                                    chosen)
        return counts, {below: lower}

    def _streams(self, cache: Cache, kernel: Kernel, chosen: Sequence[bool],
                 core_cycles: float) -> bool:
        """Whether whole lines are stored in less time than one is filled.

        Judged by the kernel's mean pace: (core cycles) / (lines written) < refill.
        """
        counts = run_nests(NO_CACHE, kernel.nests, kernel.operands, new_state(NO_CACHE))[0]
        for operand, mine in zip(counts.operands, chosen, strict=True):
            if not mine or not operand.writes:
                continue
            lines = operand.write_bytes / cache.line_bytes
            refill = refill_cycles(self.board, self.board.memory(operand.memory),
                                   cache.line_bytes)
            if lines >= cache.streaming_lines and core_cycles < lines * refill:
                return True
        return False

    def _looked_up(self, operand: OperandCounts, cache: Cache,
                   budget: _Budget) -> list[CountLine]:
        """Events of an operand in the first cache, and of its misses where nothing is below."""
        place, role = operand.memory, operand.role
        touches = operand.read_touches + operand.write_touches
        lines = [count_line("dcache_access", cache.name, role, touches,
                            touches * cache.hit_cycles)]
        if operand.write_throughs:
            lines.append(count_line("write_through", place, role, operand.write_throughs, 0))
        below = lower_cache(self.board, cache, self.board.memory(place))
        if below is None:
            return lines + self._refills(operand, cache, budget, cache)
        for event, misses in (("dcache_read_refill", operand.read_misses),
                              ("dcache_write_refill", operand.write_misses)):
            if misses:
                waited = event == "dcache_read_refill" or _waits_for_stores(cache)
                lines.append(count_line(event, below.name, role, misses, misses if waited else 0))
        return lines

    def _refills(self, operand: OperandCounts, cache: Cache, budget: _Budget,
                 first: Cache) -> list[CountLine]:
        """Lines filled from memory: their beats, and wait states apart.

        `first` is the cache the core looks up, which says whether a store waits for its line.
        """
        board, memory = self.board, self.board.memory(operand.memory)
        place, role = operand.memory, operand.role
        lines = []
        if operand.write_misses:
            lines.append(count_line("dcache_write_refill", place, role, operand.write_misses,
                                    operand.write_misses if _waits_for_stores(first) else 0))
        if not operand.read_misses:
            return lines
        waits = line_wait_cycles(board, memory, cache.line_bytes)
        whole = refill_cycles(board, memory, cache.line_bytes)
        base = whole - waits
        waited = min(waits, self._read_ahead(cache, memory, budget))
        hidden = 0.0
        if cache.critical_word_first:
            word = refill_cycles(board, memory, min(cache.line_bytes,
                                                    first_bytes(board, memory)))
            hidden = budget.hide(operand.read_misses, max(0.0, base + waited - word))
        exposed = base + waited - hidden
        waited = min(waited, exposed)
        lines.append(count_line("dcache_read_refill", place, role, operand.read_misses,
                                operand.read_misses * (exposed - waited) / base if base else 0))
        if waits:
            lines.append(count_line("flash_wait", place, role, operand.read_misses * waits,
                                    operand.read_misses * waited))
        return lines

    def _read_ahead(self, cache: Cache, memory: Memory, budget: _Budget) -> float:
        """Core cycles a line waits for an array that reads the next one ahead."""
        if not memory.prefetch or not is_unified(self.board, cache):
            return math.inf
        ratio = clock_ratio(self.board, memory)
        return ratio * sequential_wait_cycles(memory, budget.between / ratio)

    def _write_backs(self, counts: AccessCounts, budget: _Budget) -> list[CountLine]:
        """Dirty lines that had to leave, as far as the core's own cycles hide them."""
        lines = []
        for owner in counts.owners:
            if not owner.write_backs:
                continue
            memory = self.board.memory(owner.memory)
            cache = data_cache(self.board, memory)
            assert cache is not None, f"a line of {memory.name} was in a cache"
            below = lower_cache(self.board, cache, memory)
            if below is not None:
                lines.append(count_line("write_back", below.name, owner.role, owner.write_backs,
                                        0))
                continue
            lines.append(self._write_back(owner, memory, cache, budget))
        return lines

    def _write_back(self, owner: OwnerCounts, memory: Memory, cache: Cache,
                    budget: _Budget) -> CountLine:
        cost = write_back_cycles(self.board, memory, cache.line_bytes)
        hidden = budget.hide(owner.write_backs, cost, even=False)
        return count_line("write_back", memory.name, owner.role, owner.write_backs,
                          owner.write_backs * (1 - hidden / cost) if cost else 0)

    def _below(self, cache: Cache, counts: AccessCounts, budget: _Budget,
               first: Cache) -> list[CountLine]:
        """Events of the cache below: its own misses and the lines it writes back."""
        lines = [line for operand in counts.operands
                 if operand.read_misses or operand.write_misses
                 for line in self._refills(operand, cache, budget, first)]
        return lines + [self._write_back(owner, self.board.memory(owner.memory), cache, budget)
                        for owner in counts.owners if owner.write_backs]

    def _direct(self, operand: OperandCounts, kernel: Kernel) -> list[CountLine]:
        """Events of an operand no cache holds."""
        memory, role = self.board.memory(operand.memory), operand.role
        accesses = operand.reads + operand.writes
        if memory.role == "tcm":
            return [count_line("tcm_access", memory.name, role, accesses, 0)]
        if memory.role in ("external_ram", "external_flash"):
            return [count_line("external_wait", memory.name, role, accesses, accesses)]
        if memory.role == "flash":
            reads = (self._array_reads(kernel, operand.operand, memory) if memory.line_buffer
                     else operand.reads)
            # Every access crosses the bus; only those that leave the latched line read the array.
            waits = clock_ratio(self.board, memory) * (
                reads * memory.wait_states + accesses * memory.latency_cycles)
            return [count_line("flash_wait", memory.name, role, waits, waits)] if waits else []
        lines = [count_line("sram_access", memory.name, role, accesses, 0)]
        if memory.latency_cycles:
            lines.append(count_line("sram_wait", memory.name, role, accesses, accesses))
        return lines

    def _array_reads(self, kernel: Kernel, name: str, memory: Memory) -> int:
        """Array reads of one operand through the memory's one-line buffer."""
        buffer = line_buffer_of(memory)
        state = self.buffers.get(memory.name) or new_state(buffer)
        counts, self.buffers[memory.name] = run_nests(
            buffer, kernel.nests, kernel.operands, state,
            tuple(operand.name == name for operand in kernel.operands))
        return counts.total("read_misses")


def _waits_for_stores(first: Cache) -> bool:
    """Whether the core waits while a line is filled for a store, at whatever level.

    A write-back cache takes a store that misses into its buffer; one that does not allocate
    passes it on behind the core.
    """
    return first.write == "through" and first.allocate == "read_write"


class _Budget:
    """The core's own cycles of a kernel, each of which can hide one cycle of a transfer."""

    def __init__(self, core_cycles: float, refills: int) -> None:
        self.between = core_cycles / refills if refills else math.inf
        self.left = core_cycles

    def hide(self, events: int, cycles: float, even: bool = True) -> float:
        """Return how many of an event's cycles are hidden, on average; they are used up.

        Even: an event hides behind the cycles up to the next refill only.
        """
        most = min(cycles, self.between) if even else cycles
        hidden = min(most, self.left / events)
        self.left -= hidden * events
        return hidden
