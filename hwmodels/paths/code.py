"""Instructions on their way: a cache that is touched once per call, or no cache at all.

What of it the core waits for is `hwmodels.paths.exposure`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from hwmodels.board.facts import Board, Memory
from hwmodels.board.memory import banks_of
from hwmodels.cache.set_associative import CacheState, new_state, simulate_kernels
from hwmodels.core.schedule import count_block
from hwmodels.core.timing import CoreTiming
from hwmodels.isa.instruction import parse_code
from hwmodels.kernel import Access, Kernel, Loop, Operand
from hwmodels.paths.traffic import HALFWORD_BYTES, CodeTraffic, DirectBlock
from hwmodels.paths.ways import code_cache, count_policies


class CodePath:
    """Where each library function's code lies, and what its instructions pass through.

    Parameters
    ----------
    kernels
        Whose functions are laid out, one after another, each once.
    address
        First byte of the code.
    memory
        What it is fetched from.
    states
        Contents by cache; shared with the data path.
    """

    def __init__(self, kernels: Sequence[Kernel], board: Board, address: int, memory: str,
                 states: dict[str, CacheState]) -> None:
        self.board = board
        self.states = states
        self.memory = board.memory(memory)
        self.cache = code_cache(board, self.memory)
        self.places: dict[str, Operand] = {}
        self.walks: dict[str, Kernel] = {}
        line_bytes = self.cache.line_bytes if self.cache is not None else 32
        for kernel in kernels:
            if kernel.name not in self.places and kernel.code_bytes:
                size = -(-kernel.code_bytes // line_bytes) * line_bytes
                self.places[kernel.name] = Operand(
                    name="code", role="code", memory=memory, address=address, size_bytes=size)
                address += size

    def run(self, kernels: Sequence[Kernel], timing: CoreTiming) -> tuple[CodeTraffic, ...]:
        """Fetch kernels' code, one kernel behind the other.

        Parameters
        ----------
        timing
            Of the core, for the time blocks take.

        Returns
        -------
        tuple of CodeTraffic
            Of each, lines filled, under one policy of the caches behind the other; without a cache
            the blocks that are fetched.

        Notes
        -----
        Through a cache the code is touched once per call, line by line: inner loops are taken to
        stay in it.
        """
        policies = count_policies(self.board)
        if self.cache is None:
            return tuple([self._fetch_directly(kernel, timing) for kernel in kernels] * policies)
        walks = [self.find_walk(kernel) for kernel in kernels]
        counts, self.states[self.cache.name] = simulate_kernels(
            self.cache, [walk for walk in walks if walk is not None],
            self.states.get(self.cache.name) or new_state(self.cache))
        misses = itertools.cycle([one.total("read_misses") for one in counts])
        return tuple([CodeTraffic(misses=0 if walk is None else next(misses))
                      for walk in walks * policies])

    def find_walk(self, kernel: Kernel) -> Kernel | None:
        """Return the walk over a kernel's code, line by line, as a kernel; None for none."""
        place = self.places.get(kernel.name)
        if place is None or self.cache is None:
            return None
        if kernel.name not in self.walks:
            line_bytes = self.cache.line_bytes
            fetch = Access(operand="code", write=False, width_bytes=min(4, line_bytes),
                           steps_bytes=(line_bytes,))
            loop = Loop(extent=place.size_bytes // line_bytes, body=(fetch,))
            self.walks[kernel.name] = Kernel(name=kernel.name, family="code", blocks=(),
                                             nests=(loop,), operands=(place,))
        return self.walks[kernel.name]

    def _fetch_directly(self, kernel: Kernel, timing: CoreTiming) -> CodeTraffic:
        memory, place = self.memory, self.places.get(kernel.name)
        if memory.role == "tcm":
            return CodeTraffic()
        sizes = [sum(HALFWORD_BYTES if one.narrow else 2 * HALFWORD_BYTES
                     for one in parse_code(block.code)) for block in kernel.blocks]
        blocks = tuple(
            DirectBlock(size_bytes=size, trips=block.trips, entries=block.entries,
                        pass_cycles=count_block(block, timing).cpu_cycles / block.trips)
            for block, size in zip(kernel.blocks, sizes, strict=True) if block.trips)
        if place is None or memory.role != "sram":
            return CodeTraffic(blocks=blocks)
        code = _bank_shares(memory, place)
        return CodeTraffic(
            blocks=blocks,
            fetched_bytes=sum(block.trips * size
                              for block, size in zip(kernel.blocks, sizes, strict=True)),
            shared=tuple(float(code @ _bank_shares(memory, operand))
                         if operand.memory == memory.name else 0.0
                         for operand in kernel.operands))


def _bank_shares(memory: Memory, operand: Operand) -> np.ndarray:
    """Share of an operand's bytes in each bank of its memory."""
    if memory.interleave_bytes and operand.size_bytes >= memory.banks * memory.interleave_bytes:
        return np.full(memory.banks, 1 / memory.banks)
    addresses = operand.address + np.linspace(0, operand.size_bytes - 1, 129).astype(np.int64)
    return np.bincount(banks_of(memory, addresses), minlength=memory.banks) / len(addresses)
