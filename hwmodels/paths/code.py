"""Instructions on their way: a cache that is touched once per call, or no cache at all.

Without a cache the core fetches lines into a buffer of one: U bytes, the line of the cache that is
switched off, else what the memory delivers at a time. A block of B bytes at any alignment spans
N = 1 + (B - 2)/U lines. A loop body within the buffered line is fetched once, so a body of at most
U bytes is fetched with probability (B - 2)/U, and then both its lines each trip. Every block is
taken to be jumped to; the line jumped into is read from the target on, which leaves out half of
its other words on average. With e core cycles a pass, s cycles from request to a line's last word
and f to its first, r of them an access without wait, n lines fetched a pass:

    wait = max(n s - (n/N) (s - f)/2 - e, (n/N) (f - r), 0)

so the next line comes while the last one is run, and a first word is always waited for. That
uncached reads do not wrap and end with the line is as Cortex-R4 does it (DDI 0363E, 9.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.board.memory import banks_of, sequential_wait_cycles
from hwmodels.cache.set_associative import AccessCounts, CacheState, new_state
from hwmodels.core.schedule import count_block
from hwmodels.core.timing import CoreTiming
from hwmodels.counts import CountLine
from hwmodels.isa.instruction import parse_code
from hwmodels.kernel import Access, Block, Kernel, Loop, Operand
from hwmodels.paths.data import code_cache, count_line, run_nests
from hwmodels.paths.refill import (
    beat_bytes,
    clock_ratio,
    first_bytes,
    line_wait_cycles,
    refill_cycles,
)

HALFWORD = 2
"""Instructions of T32 begin at multiples of it; a narrow one is that long."""


class CodePath:
    """Where each library function's code lies, and what its instructions pass through.

    Parameters
    ----------
    kernels : sequence of Kernel
        Whose functions are laid out, one after another, each once.
    board : Board
        The machine.
    address : int
        First byte of the code.
    memory : str
        What it is fetched from.
    states : dict of str to CacheState
        Contents by cache; shared with the data path.
    """

    def __init__(self, kernels: Sequence[Kernel], board: Board, address: int, memory: str,
                 states: dict[str, CacheState]) -> None:
        self.board = board
        self.states = states
        self.memory = board.memory(memory)
        self.cache = code_cache(board, self.memory)
        self.places: dict[str, Operand] = {}
        line_bytes = self.cache.line_bytes if self.cache is not None else 32
        for kernel in kernels:
            if kernel.name not in self.places and kernel.code_bytes:
                size = -(-kernel.code_bytes // line_bytes) * line_bytes
                self.places[kernel.name] = Operand(
                    name="code", role="code", memory=memory, address=address, size_bytes=size)
                address += size

    def fetch(self, kernel: Kernel, timing: CoreTiming) -> list[CountLine]:
        """Fetch a kernel's code.

        Parameters
        ----------
        kernel : Kernel
            What is called.
        timing : CoreTiming
            Of the core, for the time its blocks take.

        Returns
        -------
        list of CountLine
            Lines filled and read ahead, or cycles waited without a cache.

        Notes
        -----
        Through a cache the code is touched once per call, line by line: inner loops are taken to
        stay in it.
        """
        if self.cache is None:
            return self._fetch_directly(kernel, timing)
        walk = self.walk(kernel)
        return [] if walk is None else self._touch(*walk, self.cache)

    def walk(self, kernel: Kernel) -> tuple[Loop, Operand] | None:
        """Return the walk over a kernel's code, line by line, and where it lies; None for none."""
        place = self.places.get(kernel.name)
        if place is None or self.cache is None:
            return None
        line_bytes = self.cache.line_bytes
        fetch = Access(operand="code", write=False, width_bytes=min(4, line_bytes),
                       steps_bytes=(line_bytes,))
        return Loop(extent=place.size_bytes // line_bytes, body=(fetch,)), place

    def conflicts(self, kernel: Kernel, data: AccessCounts,
                  core_cycles: float) -> list[CountLine]:
        """Return what fetches and data accesses wait for each other in a bank they share.

        Parameters
        ----------
        kernel : Kernel
            What is run.
        data : AccessCounts
            Of its operands.
        core_cycles : float
            Its own.

        Returns
        -------
        list of CountLine
            Core cycles by memory and role; none where code comes from a cache or elsewhere.

        Notes
        -----
        A data access meets a fetch in the same bank with the share of cycles in which the bank
        serves one, r (code bytes / bus bytes) / cycles, and one of the two then waits r cycles.
        """
        memory, place = self.memory, self.places.get(kernel.name)
        if self.cache is not None or place is None or memory.role != "sram" or not core_cycles:
            return []
        ratio = clock_ratio(self.board, memory)
        fetched = sum(block.trips * _size_of(block) for block in kernel.blocks)
        busy = min(1.0, ratio * fetched / beat_bytes(self.board, memory) / core_cycles)
        code = _bank_shares(memory, place)
        lines = []
        for operand, counts in zip(kernel.operands, data.operands, strict=True):
            if operand.memory == memory.name and not counts.cached:
                same = float(code @ _bank_shares(memory, operand))
                waits = (counts.reads + counts.writes) * same * busy * ratio
                if waits:
                    lines.append(count_line("sram_conflict", memory.name, operand.role, waits,
                                            waits))
        return lines

    def _touch(self, walk: Loop, place: Operand, cache: Cache) -> list[CountLine]:
        counts, self.states[cache.name] = run_nests(
            cache, (walk,), (place,), self.states.get(cache.name) or new_state(cache))
        refills = counts.total("read_misses")
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

    def _fetch_directly(self, kernel: Kernel, timing: CoreTiming) -> list[CountLine]:
        memory = self.memory
        if memory.role == "tcm":
            return []
        line_bytes = self._buffer_bytes()
        ratio = clock_ratio(self.board, memory)
        last = refill_cycles(self.board, memory, line_bytes) + ratio
        first = refill_cycles(self.board, memory, min(
            line_bytes, first_bytes(self.board, memory))) + ratio
        if last <= 1.0:
            return []
        waits = math.fsum(
            _wait_for_block(block, timing, line_bytes, (ratio, first, last))
            for block in kernel.blocks if block.trips)
        return [count_line("fetch_wait", memory.name, "", waits, waits)] if waits else []

    def _buffer_bytes(self) -> int:
        unused = self.board.cache(self.board.core.icache)
        return unused.line_bytes if unused is not None else self.memory.read_bytes


def _bank_shares(memory: Memory, operand: Operand) -> np.ndarray:
    """Share of an operand's bytes in each bank of its memory."""
    if memory.interleave_bytes and operand.size_bytes >= memory.banks * memory.interleave_bytes:
        return np.full(memory.banks, 1 / memory.banks)
    addresses = operand.address + np.linspace(0, operand.size_bytes - 1, 129).astype(np.int64)
    return np.bincount(banks_of(memory, addresses), minlength=memory.banks) / len(addresses)


def _size_of(block: Block) -> int:
    return sum(HALFWORD if one.narrow else 2 * HALFWORD for one in parse_code(block.code))


def _wait_for_block(block: Block, timing: CoreTiming, line_bytes: int,
                    cycles: tuple[float, float, float]) -> float:
    """Core cycles a block waits for its instructions, over all its passes.

    `cycles` are those of an access without wait, and those to a line's first and last word.
    """
    own, first, last = cycles
    size = _size_of(block)
    run = count_block(block, timing).cpu_cycles / block.trips
    spanned = 1 + (size - HALFWORD) / line_bytes

    def wait(lines: float) -> float:
        share = lines / spanned
        return max(lines * last - share * (last - first) / 2 - run,
                   share * (first - own), 0.0)

    again = spanned if size > line_bytes else 2 * (size - HALFWORD) / line_bytes
    return block.entries * wait(spanned) + (block.trips - block.entries) * wait(again)
