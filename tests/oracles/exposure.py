"""What the core waits for, line by line and kernel by kernel: the specification of `exposure`.

The equations are those of `hwmodels.paths.exposure`, which works them out for all lines and many
clocks at once; here they are read one after another.
"""

from __future__ import annotations

import math

from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.board.memory import sequential_wait_cycles
from hwmodels.cache import AccessCounts, OperandCounts, OwnerCounts
from hwmodels.counts import EXACT, CountLine, Counts, merge_counts
from hwmodels.paths.refill import (
    beat_bytes,
    clock_ratio,
    first_bytes,
    line_wait_cycles,
    refill_cycles,
    uncached_cycles,
    write_back_cycles,
)
from hwmodels.paths.traffic import HALFWORD_BYTES, DataTraffic, DirectBlock, KernelTraffic
from hwmodels.paths.ways import code_cache, data_cache, lower_cache


def expose_kernel(traffic: KernelTraffic, board: Board, code_memory: str) -> Counts:
    """Return the events of a kernel on a board."""
    data = _Data(board).expose(traffic.data, traffic.core_cycles)
    code = _Code(board, board.memory(code_memory)).expose(traffic)
    return merge_counts([traffic.issued, Counts(tuple(data)),
                         Counts((*code, *traffic.waits))])


def count_line(event: str, place: str, operand: str, occurred: float,
               exposed: float) -> CountLine:
    """Return a line of counts, its exposed part in 64ths."""
    return CountLine(event=event, place=place, operand=operand, occurred=occurred,
                     exposed=math.floor(exposed * EXACT) / EXACT)


class _Data:
    """Loads and stores."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def expose(self, data: DataTraffic, core_cycles: float) -> list[CountLine]:
        """Return the events of a kernel's data."""
        merged = data.counts
        budget = _Budget(core_cycles, merged.total("read_misses"))
        lines = []
        for operand, reads in zip(merged.operands, data.array_reads, strict=True):
            cache = data_cache(self.board, self.board.memory(operand.memory))
            if operand.reads or operand.writes:
                lines += (self._direct(operand, reads) if cache is None
                          else self._looked_up(operand, cache, budget))
        lines += self._write_backs(merged, budget)
        for name, upper, counts in data.lower:
            cache, first = self.board.cache(name), self.board.cache(upper)
            assert cache is not None and first is not None
            lines += self._below(cache, counts, budget, first)
        return lines

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
        hidden = 0.0
        if cache.critical_word_first:
            word = refill_cycles(board, memory, min(cache.line_bytes,
                                                    first_bytes(board, memory)))
            hidden = budget.hide(operand.read_misses, max(0.0, whole - word))
        exposed = whole - hidden
        waited = min(waits, exposed)
        lines.append(count_line("dcache_read_refill", place, role, operand.read_misses,
                                operand.read_misses * (exposed - waited) / base if base else 0))
        if waits:
            lines.append(count_line("flash_wait", place, role, operand.read_misses * waits,
                                    operand.read_misses * waited))
        return lines

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

    def _direct(self, operand: OperandCounts, array_reads: int) -> list[CountLine]:
        """Events of an operand no cache holds."""
        memory, role = self.board.memory(operand.memory), operand.role
        accesses = operand.reads + operand.writes
        if memory.role == "tcm":
            return [count_line("tcm_access", memory.name, role, accesses, 0)]
        if memory.role in ("external_ram", "external_flash"):
            return [count_line("external_wait", memory.name, role, accesses, accesses)]
        if memory.role == "flash":
            # Every access crosses the bus; only those that leave the latched line read the array.
            waits = clock_ratio(self.board, memory) * (
                array_reads * memory.wait_states + accesses * memory.latency_cycles)
            return [count_line("flash_wait", memory.name, role, waits, waits)] if waits else []
        lines = [count_line("sram_access", memory.name, role, accesses, 0)]
        if memory.latency_cycles:
            lines.append(count_line("sram_wait", memory.name, role, accesses, accesses))
        return lines


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


class _Code:
    """Instructions."""

    def __init__(self, board: Board, memory: Memory) -> None:
        self.board, self.memory = board, memory
        self.cache = code_cache(board, memory)

    def expose(self, traffic: KernelTraffic) -> list[CountLine]:
        """Return the events of a kernel's code, and of data in its bank."""
        if self.cache is not None:
            return self._refills(traffic.code.misses, self.cache)
        return self._directly(traffic.code.blocks) + self._conflicts(traffic)

    def _refills(self, refills: int, cache: Cache) -> list[CountLine]:
        if not refills:
            return []
        whole = refill_cycles(self.board, self.memory, cache.line_bytes)
        # Lines after the first have been read ahead while the one before them was run.
        saved = self._read_ahead_cycles(cache) / whole if whole else 0.0
        return [count_line("icache_refill", self.memory.name, "", refills,
                           refills - (refills - 1) * saved)]

    def _read_ahead_cycles(self, cache: Cache) -> float:
        """Core cycles of wait states that reading ahead saves a line of straight code."""
        if not self.memory.prefetch:
            return 0.0
        ratio = clock_ratio(self.board, self.memory)
        waits = line_wait_cycles(self.board, self.memory, cache.line_bytes)
        # An instruction is at most a word and takes a cycle at least.
        run = cache.line_bytes / 4 / ratio
        return waits - min(waits, ratio * sequential_wait_cycles(self.memory, run))

    def _directly(self, blocks: tuple[DirectBlock, ...]) -> list[CountLine]:
        memory = self.memory
        if memory.role == "tcm":
            return []
        unused = self.board.cache(self.board.core.icache)
        line_bytes = unused.line_bytes if unused is not None else memory.read_bytes
        ratio = clock_ratio(self.board, memory)
        last = uncached_cycles(self.board, memory, line_bytes) + ratio
        first = uncached_cycles(self.board, memory, min(
            line_bytes, first_bytes(self.board, memory))) + ratio
        if last <= 1.0:
            return []
        waits = math.fsum(_wait_for_block(block, line_bytes, (ratio, first, last))
                          for block in blocks)
        return [count_line("fetch_wait", memory.name, "", waits, waits)] if waits else []

    def _conflicts(self, traffic: KernelTraffic) -> list[CountLine]:
        memory, cycles = self.memory, traffic.core_cycles
        if memory.role != "sram" or not cycles:
            return []
        ratio = clock_ratio(self.board, memory)
        busy = min(1.0, ratio * traffic.code.fetched_bytes / beat_bytes(self.board, memory)
                   / cycles)
        lines = []
        for operand, same in zip(traffic.data.counts.operands, traffic.code.shared, strict=False):
            if operand.memory == memory.name and not operand.cached:
                waits = (operand.reads + operand.writes) * same * busy * ratio
                if waits:
                    lines.append(count_line("sram_conflict", memory.name, operand.role, waits,
                                            waits))
        return lines


def _wait_for_block(block: DirectBlock, line_bytes: int,
                    cycles: tuple[float, float, float]) -> float:
    """Core cycles a block waits for its instructions, over all its passes.

    `cycles` are those of an access without wait, and those to a line's first and last word.
    """
    own, first, last = cycles
    size, run = block.size_bytes, block.pass_cycles
    spanned = 1 + (size - HALFWORD_BYTES) / line_bytes

    def wait(lines: float) -> float:
        share = lines / spanned
        return max(lines * last - share * (last - first) / 2 - run,
                   share * (first - own), 0.0)

    again = spanned if size > line_bytes else 2 * (size - HALFWORD_BYTES) / line_bytes
    return block.entries * wait(spanned) + (block.trips - block.entries) * wait(again)
