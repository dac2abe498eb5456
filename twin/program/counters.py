"""What native callbacks count in: one array, blocks and accesses in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hwmodels.board.facts import Span
from hwmodels.frozen import frozen
from hwmodels.program.listing import Listing
from hwmodels.quantities import list_by_key
from twin.errors import ProgramError
from twin.program.addresses import Stretch
from twin.program.elf import Elf
from twin.program.recorder import MOST_FUNCTIONS, Recorder

MOST_BLOCKS = 1 << 16
ROOM = 1 << 19
LARGEST_CODE = 8 << 20
"""Of a memory code may be put into, in bytes."""
STEP_ROOM = 1 << 22
"""Words for how blocks' addresses are worked out."""


@frozen
class BlockRun:
    """A block and how often it ran, followed itself, and was left by a branch."""

    address: int
    size_bytes: int
    count: int
    again: int
    taken: int


class Counters:
    """Counts of a program, by block and function.

    Parameters
    ----------
    recorder
        Regions accesses are counted by, and the caches that look them up.
    limit
        Instructions after which callbacks tell of an overrun.
    code
        What the bytes of a block tell.
    further : sequence of (int, int)
        Memory code may be put into, and constants that may be code: first addresses, and those
        behind the last.

    Notes
    -----
    `words` is the array, which `twin.program.kernels.hooks` (`names`) describes.
    """

    def __init__(self, elf: Elf, listing: Listing, recorder: Recorder, limit: int,
                 code: ModuleType, further: Sequence[Span]) -> None:
        from twin.program.kernels import hooks

        self.code = code
        self.elf, self.listing, self.recorder, self.names = elf, listing, recorder, hooks
        self.spans = (*elf.code, *(one for one in further if one[1] - one[0] <= LARGEST_CODE))
        self.functions: dict[str, int] = {}
        self.marked: frozenset[int] = frozenset()
        self.used = 0
        self._lay_out(limit)

    def _lay_out(self, limit: int) -> None:
        """Make the array the callbacks count in."""
        names, regions = self.names, self.recorder.regions
        index_at = [names.HEAD + len(self.spans) * names.SPAN]
        for low, high in self.spans:
            index_at.append(index_at[-1] + (high - low + 1) // 2)
        blocks_at = index_at[-1]
        regions_at = blocks_at + (MOST_BLOCKS + 1) * names.BLOCK
        accesses_at = regions_at + len(regions) * names.REGION
        calls_at = accesses_at + MOST_FUNCTIONS * len(regions) * names.COUNTS
        values_at = calls_at + names.MOST_CALLS
        room_at = values_at + names.MOST_VALUES
        self.free_at = room_at + 2 * ROOM
        words = self.words = np.zeros(self.free_at + STEP_ROOM, dtype=np.int64)
        for place, (low, high) in enumerate(self.spans):
            at = names.HEAD + place * names.SPAN
            words[at:at + names.SPAN] = low, high, index_at[place]
        for place, region in enumerate(regions):
            at = regions_at + place * names.REGION
            code = self.recorder.code[place]
            words[at:at + names.REGION] = (
                region.start, region.end, *self.recorder.keeps(place),
                code.line_bytes.bit_length() - 1 if code is not None else 0)
        words[[names.SPANS_AT, names.SPAN_COUNT, names.BLOCKS_AT, names.REGIONS_AT,
               names.REGION_COUNT, names.COUNTS_AT, names.ROOM_AT, names.ROOM, names.LIMIT,
               names.ALARM, names.RETURN, names.FETCH_LINE, names.CALLS_AT, names.VALUES_AT]] = (
            names.HEAD, len(self.spans), blocks_at, regions_at, len(regions), accesses_at,
            room_at, ROOM, limit, 1 << 62, -1, -1, calls_at, values_at)
        unified = {cache for cache in self.recorder.data if cache is not None}
        words[names.FETCH_KEEPS] = not any(code in unified for code in self.recorder.code)
        self.accesses = words[accesses_at:calls_at].reshape(
            MOST_FUNCTIONS, len(regions), names.COUNTS)
        self.room = words[room_at:self.free_at].reshape(-1, 2)
        self.blocks = words[blocks_at:regions_at].reshape(-1, names.BLOCK)

    def add_spaces(self, held: Iterable[tuple[int, int, int]]) -> None:
        """Have callbacks read memory: first addresses, those behind the last, and where it is."""
        rows = list(held)
        self.words[[self.names.SPACES_AT, self.names.SPACE_COUNT]] = self.free_at, len(rows)
        self.words[self.free_at:][:self.names.SPACE * len(rows)] = [
            word for row in rows for word in row]
        self.free_at += self.names.SPACE * len(rows)

    def mark(self, addresses: frozenset[int]) -> None:
        """Have callbacks tell when a block at one of these addresses runs."""
        self.marked = addresses
        for row in self.blocks[1:self.used + 1]:
            row[self.names.MARKED] = int(row[self.names.ADDRESS]) in addresses

    def add_block(self, address: int, code: bytes) -> int:
        """Write down what a new block costs and whose it is; return its place.

        Raises
        ------
        ProgramError
            When there is no room for another.
        """
        if self.used >= MOST_BLOCKS:
            raise ProgramError(f"more than {MOST_BLOCKS:,} basic blocks")
        names = self.names
        self.used += 1
        at = int(self.words[names.BLOCKS_AT]) + self.used * names.BLOCK
        cost = self.listing.cost(address, code)
        self.words[at:at + names.BLOCK] = (
            address, len(code), 0, 0, 0, self._number_function(address), address in self.marked,
            len(self.code.measure_instructions(code)), round(cost.single_cycles * names.SCALE),
            round(cost.again_cycles * names.SCALE), round(cost.taken_cycles * names.SCALE),
            self._fetch_region(address), self.code.ends_in_call(code), 0,
            self._stays(address, len(code)))
        for place in range(len(self.spans)):
            low, high, index = self.words[names.HEAD + place * names.SPAN:][:names.SPAN].tolist()
            if low <= address < high:
                self.words[index + (address - low >> 1)] = at
        return at

    def explain(self, address: int, stretches: Sequence[Stretch],
                numbers: Mapping[int, int]) -> None:
        """Have callbacks work out what a block accesses.

        Parameters
        ----------
        stretches
            As `find_stretches` returns them.
        numbers
            The emulator's number of each register of the core, by its own + 1.

        Raises
        ------
        ProgramError
            When there is no room for another.
        """
        names, words = self.names, self.words
        at = self.free_at
        head = at + 1 + len(stretches) * names.STRETCH
        steps = [[*((names.ENTRY, one, 0, 0, numbers[one], 0) for one in stretch.registers),
                  *stretch.making, *stretch.accesses] for stretch in stretches]
        self.free_at = head + sum(map(len, steps)) * names.STEP
        if self.free_at > len(words):
            raise ProgramError("more code than there is room for")
        words[at] = len(stretches)
        for place, (one, rows) in enumerate(zip(stretches, steps, strict=True)):
            words[at + 1 + place * names.STRETCH:][:names.STRETCH] = (
                one.address, head, len(rows) - len(one.accesses), len(one.accesses))
            words[head:head + len(rows) * names.STEP] = [word for row in rows for word in row]
            head += len(rows) * names.STEP
        blocks = self.blocks[1:self.used + 1]
        blocks[np.flatnonzero(blocks[:, names.ADDRESS] == address)[-1], names.STRETCHES_AT] = at

    def size_at(self, address: int) -> int | None:
        """Return the bytes of the block at an address; None where none ran."""
        row = next((one for one in self.blocks[1:self.used + 1]
                    if one[self.names.ADDRESS] == address), None)
        return None if row is None else int(row[self.names.BYTES])

    def _number_function(self, address: int) -> int:
        found = self.elf.function_at(address)
        name = found.symbol if found is not None else "code without a symbol"
        if name not in self.functions and len(self.functions) >= MOST_FUNCTIONS:
            name = next(iter(self.functions))
        return self.functions.setdefault(name, len(self.functions))

    def _fetch_region(self, address: int) -> int:
        for place, region in enumerate(self.recorder.regions):
            if region.start <= address < region.end:
                return place if self.recorder.code[place] is not None else -1
        return -1

    def _stays(self, address: int, size: int) -> bool:
        """Whether a block that follows itself evicts none of its lines, and nothing else does."""
        place = self._fetch_region(address)
        if place < 0 or not self.words[self.names.FETCH_KEEPS]:
            return False
        cache = self.recorder.code[place]
        assert cache is not None, "a region that is fetched through one"
        lines = (address + size - 1) // cache.line_bytes - address // cache.line_bytes + 1
        return lines <= (cache.sets * cache.ways if cache.replacement == "lru" else cache.sets)

    def begins_function(self, address: int) -> bool:
        """Whether the block that ran last ended in a call, or no function is known here."""
        last = self.words[self.names.LAST_BLOCK]
        return bool(last and self.words[last + self.names.CALLING]) or (
            self.elf.function_at(address) is None)

    def drain(self) -> None:
        """Give the caches what was written down."""
        count = int(self.words[self.names.WRITTEN])
        if count:
            self.recorder.meet(self.room[:count])
            self.words[self.names.WRITTEN] = 0

    def take(self) -> tuple[Any, ...]:
        """Return what was counted, for `restore`, and start again; caches keep their contents."""
        self.drain()
        columns = [self.names.COUNT, self.names.AGAIN, self.names.TAKEN]
        rows = self.blocks[:self.used + 1]
        taken = rows[:, columns].copy(), self.accesses[:len(self.functions)].copy()
        rows[:, columns] = 0
        self.accesses[:len(self.functions)] = 0
        return (*taken, self.recorder.take())

    def restore(self, taken: tuple[Any, ...]) -> None:
        """Go on counting where `take` left off."""
        self.take()
        blocks, accesses, met = taken
        self.blocks[:len(blocks), [self.names.COUNT, self.names.AGAIN, self.names.TAKEN]] = blocks
        self.accesses[:len(accesses)] = accesses
        self.recorder.restore(met)

    def ran(self) -> dict[int, list[BlockRun]]:
        """Return blocks that ran since the counts were cleared, by function."""
        rows = self.blocks[1:self.used + 1]
        return list_by_key((row[self.names.FUNCTION], BlockRun(
            address=row[0], size_bytes=row[1], count=row[2], again=row[3], taken=row[4]))
            for row in rows[rows[:, self.names.COUNT] > 0].tolist())
