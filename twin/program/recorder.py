"""Accesses of a program through the board's caches and line buffers, a chunk at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hwmodels.board.facts import FLASH_ROLES, Board, Cache, Memory
from hwmodels.cache import AccessCounts, OperandCounts
from hwmodels.cache.lookup import Lookup, count_owners
from hwmodels.cache.set_associative import line_buffer_of, new_state
from hwmodels.frozen import frozen
from hwmodels.kernels.access_stream import (
    FETCH,
    FETCH_MISSES,
    FILL,
    MOST_OWNERS,
    READ,
    WRITE,
)
from hwmodels.paths.traffic import DataTraffic
from hwmodels.paths.ways import code_cache, data_cache, lower_cache
from hwmodels.program.elf import lies_in

if TYPE_CHECKING:
    from twin.program.elf import Elf

MOST_FUNCTIONS = 1024


@frozen
class Region:
    """A piece of memory whose accesses are counted together.

    Parameters
    ----------
    role
        "constants", "data" or "stack".
    """

    memory: Memory
    role: str
    start: int
    end: int

    @property
    def operand(self) -> str:
        """What its accesses are called: a further window on a memory by its address."""
        further = lies_in(self.start, self.memory.spans[1:])
        return (f"{self.role} in {self.memory.name}"
                + (f" at 0x{self.start:08x}" if further else ""))


def list_regions(board: Board, elf: Elf, stack_top: int) -> tuple[Region, ...]:
    """Return the pieces of a board's memories, those that lie inside others first.

    Parameters
    ----------
    elf
        The program: sections named after a stack, and where its variables end.
    stack_top
        Where the stack begins: between the last variable and it nothing else is taken to lie.
    """
    named = [span for name, span in elf.sections.items() if "stack" in name]
    found = []
    for memory in board.memories:
        if memory.role in FLASH_ROLES:
            found += [Region(memory=memory, role="constants", start=start, end=end)
                      for start, end in memory.spans]
            continue
        start, end = memory.spans[0]
        inside = [span for span in named if start <= span[0] < span[1] <= end]
        if not inside and start <= elf.data_end < stack_top <= end:
            inside = [(elf.data_end, stack_top)]
        found += [Region(memory=memory, role="stack", start=low, end=high) for low, high in inside]
        found += [Region(memory=memory, role="data", start=low, end=high)
                  for low, high in memory.spans]
    return tuple(found)


class Recorder:
    """Caches of a board while a program runs.

    Parameters
    ----------
    regions
        Pieces of memory, as the emulator numbers them.
    """

    def __init__(self, board: Board, regions: tuple[Region, ...]) -> None:
        self.board, self.regions = board, regions
        self.owners = tuple(dict.fromkeys((one.memory.name, one.role) for one in regions))
        numbers = np.array([self.owners.index((one.memory.name, one.role)) for one in regions],
                           dtype=np.int64)
        self.data: list[Cache | None] = [data_cache(board, one.memory) for one in regions]
        self.code: list[Cache | None] = [code_cache(board, one.memory) for one in regions]
        self.buffers = [None if cache is not None or not one.memory.line_buffer
                        or one.memory.role != "flash" else f"{one.memory.name} line buffer"
                        for one, cache in zip(regions, self.data, strict=True)]
        self.lookups: dict[str, Lookup] = {}
        self.lower: dict[str, Cache] = {}
        for cache in dict.fromkeys((*self.data, *self.code)):
            if cache is not None:
                self._add(cache.name, cache, numbers)
        for one, buffer in zip(regions, self.buffers, strict=True):
            if buffer is not None and buffer not in self.lookups:
                self._add(buffer, line_buffer_of(one.memory), numbers)

    def _add(self, name: str, cache: Cache, numbers: np.ndarray) -> None:
        serves = np.zeros(4 * len(self.regions), dtype=np.int64)
        for place in range(len(self.regions)):
            for kind in (READ, WRITE):
                serves[4 * place + kind] = self.data[place] is cache or (
                    self.buffers[place] == name and kind == READ)
            serves[4 * place + FETCH] = self.code[place] is cache
        self.lookups[name] = Lookup(cache, serves, numbers, self._add_below(cache, numbers),
                                    MOST_FUNCTIONS)

    def _add_below(self, upper: Cache, numbers: np.ndarray) -> Lookup | None:
        """Return what misses of a cache look up, as far as there is something."""
        lower = self.board.cache(upper.below)
        if lower is None or not lower.enabled:
            return None
        serves = np.zeros(4 * len(self.regions), dtype=np.int64)
        for place, region in enumerate(self.regions):
            if lower_cache(self.board, upper, region.memory) is lower:
                serves[[4 * place + kind for kind in (READ, WRITE, FILL)]] = 1
        name = f"{lower.name} below {upper.name}"
        self.lookups[name] = Lookup(lower, serves, numbers, None, MOST_FUNCTIONS)
        self.lower[name] = upper
        return self.lookups[name]

    def keeps(self, place: int) -> tuple[bool, bool]:
        """Whether reads and writes of a region have to be written down."""
        looked_up = self.data[place] is not None
        return looked_up or self.buffers[place] is not None, looked_up

    def meet(self, accesses: np.ndarray) -> None:
        """Take a chunk of accesses as the emulator wrote them down."""
        for name, lookup in self.lookups.items():
            if name not in self.lower:
                lookup.meet(accesses)

    def clear(self) -> None:
        """Begin to count again; contents stay."""
        for lookup in self.lookups.values():
            lookup.clear()

    def arrays(self, functions: int) -> list[np.ndarray]:
        """Return what is counted in for the first functions."""
        return [array for lookup in self.lookups.values() for array in (
            lookup.sums[:, :functions * len(self.regions)],
            lookup.leaving[:, :functions * MOST_OWNERS])]

    def take(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return what was counted and start again; contents stay."""
        taken = [(lookup.sums, lookup.leaving) for lookup in self.lookups.values()]
        self.clear()
        return taken

    def restore(self, taken: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Go on counting where `take` left off."""
        for lookup, (sums, leaving) in zip(self.lookups.values(), taken, strict=True):
            lookup.sums, lookup.leaving = sums, leaving

    def empty(self) -> None:
        """Invalidate every cache."""
        for lookup in self.lookups.values():
            lookup.words = new_state(lookup.cache).words.copy()

    def fetched(self, function: int) -> int:
        """Lines of code a function filled."""
        regions = slice(function * len(self.regions), (function + 1) * len(self.regions))
        return int(sum(lookup.sums[FETCH_MISSES, regions].sum()
                       for lookup in self.lookups.values()))

    def traffic(self, function: int, accesses: np.ndarray) -> DataTraffic:
        """Return what a function's loads and stores met.

        Parameters
        ----------
        function
            As the emulator numbers it.
        accesses : ndarray of int64, (regions, at least 4)
            Its reads, writes, and bytes of both.
        """
        rows, array_reads = [], []
        for place, region in enumerate(self.regions):
            reads, writes, read_bytes, write_bytes = (int(one) for one in accesses[place, :4])
            if not (reads or writes):
                continue
            cache = self.data[place]
            met = self._met(function, place, cache.name if cache is not None else None)
            through = 0
            if cache is not None:
                through = met[1] if cache.write == "through" else met[4]
            rows.append(OperandCounts(
                operand=region.operand, role=region.role,
                memory=region.memory.name, cached=cache is not None, reads=reads, writes=writes,
                read_bytes=read_bytes, write_bytes=write_bytes, read_touches=met[0],
                write_touches=met[1], read_misses=met[2], write_misses=met[3],
                write_bypasses=met[4], write_throughs=through))
            buffer = self.buffers[place]
            array_reads.append(reads if buffer is None else self._met(function, place, buffer)[2])
        names = sorted({cache.name for cache in self.data if cache is not None})
        regions = [(one.operand, one.memory.name, one.role) for one in self.regions]
        return DataTraffic(
            counts=AccessCounts(operands=tuple(rows), owners=count_owners(
                [self.lookups[name] for name in names], function, self.owners)),
            lower=tuple((self.lookups[name].cache.name, upper.name,
                         self.lookups[name].count_lower(function, regions, self.owners))
                        for name, upper in self.lower.items()),
            array_reads=tuple(array_reads))

    def _met(self, function: int, place: int, name: str | None) -> list[int]:
        return [0] * 5 if name is None else self.lookups[name].met(function, place)
