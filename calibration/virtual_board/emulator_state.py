"""The array the emulator's native callbacks count in, and what Python reads from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.virtual_board.costs import SCALE, Costs, Span
from hwmodels.board.facts import Cache
from hwmodels.board.policies import policy_of
from hwmodels.cache.set_associative import SEED, check_cache

CostOf = Callable[[int, int], tuple[int, float, float, float]]
"""(address, size) of a block -> instructions, cycles once, cycles again, cycles when taken."""


class EmulatorState:
    """Counts of an emulated core.

    Parameters
    ----------
    trace_limit
        Accesses there is room for.
    """

    def __init__(self, costs: Costs, code_start: int, code_end: int, trace_limit: int) -> None:
        from calibration.virtual_board.kernels import hooks

        self._names = hooks
        slots = (code_end - code_start) // 2 + 1
        blocks_at = hooks.HEAD
        seen_at = blocks_at + slots * hooks.SLOT
        regions_at = seen_at + slots
        data_at = regions_at + max(len(costs.spans), 1) * hooks.REGION
        fetch_at = data_at + _cache_words(costs.data)
        trace_at = fetch_at + _cache_words(costs.code)
        words = self.words = np.zeros(trace_at + max(trace_limit, 1), dtype=np.int64)
        words[[hooks.CODE_BASE, hooks.CODE_SLOTS, hooks.LAST_SLOT]] = code_start, slots, -1
        words[[hooks.BLOCKS_AT, hooks.SEEN_AT, hooks.REGIONS_AT, hooks.TRACE_AT]] = (
            blocks_at, seen_at, regions_at, trace_at)
        words[hooks.TRACE_LIMIT] = 0
        words[hooks.WRITE_BACK_COST] = round(costs.write_back_cycles * SCALE)
        self.blocks = words[blocks_at:seen_at].reshape(-1, hooks.SLOT)
        self.seen = words[seen_at:regions_at]
        spans = costs.spans or (Span(base=0, end=1 << 32),)
        for number, span in enumerate(spans):
            words[regions_at + number * hooks.REGION:][:hooks.REGION] = _region(span)
        words[hooks.REGION_COUNT] = len(spans)
        self._caches = tuple(_lay_out(words, head, at, cache) for head, at, cache in (
            (hooks.DATA, data_at, costs.data), (hooks.FETCH, fetch_at, costs.code)))
        self.empty_caches()
        self._known = np.zeros((0, 4))

    def __getattr__(self, name: str) -> int:
        """Return a counter of the state by its name in small letters."""
        field = {"traced": "TRACE_COUNT"}.get(name, name.upper())
        if name.startswith("_") or not hasattr(self._names, field):
            raise AttributeError(name)
        return int(self.words[getattr(self._names, field)])

    def empty_caches(self) -> None:
        """Invalidate both caches; a shift register of random replacement goes on."""
        for entries, bits in self._caches:
            entries[:] = -1
            bits[:] = 0
        self.words[self._names.FETCH + self._names.LAST_LINE] = -1

    def count(self, cost_of: CostOf) -> tuple[float, int]:
        """Return cycles and instructions so far; new blocks are asked for with `cost_of`."""
        hooks = self._names
        seen = int(self.words[hooks.SEEN_COUNT])
        slots = self.seen[:seen]
        counts = self.blocks[slots]
        if seen > len(self._known):
            base = int(self.words[hooks.CODE_BASE])
            fresh = [cost_of(base + 2 * int(slot), int(row[hooks.BYTES]))
                     for slot, row in zip(slots[len(self._known):], counts[len(self._known):],
                                          strict=True)]
            self._known = np.vstack((self._known, np.array(fresh).reshape(-1, 4)))
        again = counts[:, hooks.AGAIN]
        once = counts[:, hooks.COUNT] - again
        known = self._known
        cycles = float(once @ known[:, 1] + again @ known[:, 2]
                       + counts[:, hooks.TAKEN] @ known[:, 3])
        cycles += (self.stall + self.fetch_stall) / SCALE
        return cycles, int(counts[:, hooks.COUNT] @ known[:, 0])


def _cache_words(cache: Cache | None) -> int:
    return 2 if cache is None else cache.sets * (cache.ways + 1)


def _lay_out(words: np.ndarray, head: int, at: int,
             cache: Cache | None) -> tuple[np.ndarray, np.ndarray]:
    """Write a cache's geometry to the head; return views of its entries and tree bits."""
    if cache is not None:
        check_cache(cache)
    policy = policy_of("lru" if cache is None else cache.replacement)
    sets, ways = (1, 1) if cache is None else (cache.sets, cache.ways)
    line = 4 if cache is None else cache.line_bytes
    words[head:head + 8] = (
        at, sets, ways, line.bit_length() - 1, policy.number,
        cache is not None and cache.write == "back",
        cache is not None and cache.allocate == "read_write",
        SEED if policy.start is None else policy.start)
    return words[at:at + sets * ways], words[at + sets * ways:at + sets * (ways + 1)]


def _region(span: Span) -> list[int]:
    def scaled(cycles: float) -> int:
        return round(cycles * SCALE)

    shift, code = (max(size.bit_length() - 1, 0) for size in (span.buffer_bytes, span.fetch_bytes))
    return [span.base, span.end, int(span.cached), scaled(span.read_miss_cycles),
            scaled(span.write_miss_cycles), scaled(span.read_cycles), scaled(span.write_cycles),
            shift, -1, int(span.fetch_cached), scaled(span.fetch_miss_cycles),
            scaled(span.fetch_cycles), code, -1]
