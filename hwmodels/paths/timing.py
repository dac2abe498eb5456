"""Clocks, waits and bandwidths of a board as the numbers exposure depends on, and nothing else.

Two boards that give the same numbers expose the same counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.board.memory import at_least, sequential_wait_cycles
from hwmodels.frozen import NamedTexts, frozen
from hwmodels.paths.refill import (
    beat_bytes,
    clock_ratio,
    first_bytes,
    line_wait_cycles,
    refill_cycles,
    uncached_cycles,
    write_back_cycles,
)
from hwmodels.paths.ways import code_cache

MEMORY_COLUMNS = ("ratio", "wait_states", "latency_cycles")
"""Of a memory: core cycles in one of its own, and both of `Memory`."""

FILL_COLUMNS = ("whole", "waits", "first")
"""Of lines filled from a memory into a cache, in core cycles: all of it, its wait states, and its
first word, infinite where the core waits for the whole line."""

CODE_COLUMNS = ("saved", "ratio", "first", "last", "line_bytes", "beat_bytes")
"""Of code: share of a cache's refill that reading ahead saves; without a cache core cycles of an
access, to a line's first and last word, bytes of the buffer and of a beat."""

Floats = NDArray[np.float64]


@frozen
class Places:
    """What a network uses of a board, by name: what its timing is asked of.

    Parameters
    ----------
    fills, write_backs : tuple of (str, str)
        Cache and memory, between which lines move.
    caches
        Looked up first.
    """

    memories: tuple[str, ...]
    fills: NamedTexts
    write_backs: NamedTexts
    caches: tuple[str, ...]
    code: str

    @property
    def width(self) -> int:
        """How many numbers there are."""
        return (len(MEMORY_COLUMNS) * len(self.memories) + len(FILL_COLUMNS) * len(self.fills)
                + len(self.write_backs) + len(self.caches) + len(CODE_COLUMNS))

    def split(self, timing: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return timings, shape (boards, width), by memory, fill, write-back, cache and code.

        Returns
        -------
        tuple of ndarray
            Shapes (boards, columns, memories), (boards, columns, fills), (boards, write-backs),
            (boards, caches), (boards, columns).
        """
        counts = (len(MEMORY_COLUMNS) * len(self.memories), len(FILL_COLUMNS) * len(self.fills),
                  len(self.write_backs), len(self.caches))
        memory, fill, back, hits, code = np.split(timing, np.cumsum(counts), axis=1)
        boards = len(timing)
        return (memory.reshape(boards, len(MEMORY_COLUMNS), -1) if self.memories else
                np.zeros((boards, len(MEMORY_COLUMNS), 0)),
                fill.reshape(boards, len(FILL_COLUMNS), -1) if self.fills else
                np.zeros((boards, len(FILL_COLUMNS), 0)), back, hits, code)


def read_timing(board: Board, places: Places) -> Floats:
    """Return the numbers of a board, shape (places.width,), or of many, shape (n, places.width).

    Parameters
    ----------
    board
        That has these places; of `spread_clocks` where there are many.
    """
    memories = [board.memory(name) for name in places.memories]
    columns: list[Any] = [clock_ratio(board, memory) for memory in memories]
    columns += [memory.wait_states for memory in memories]
    columns += [memory.latency_cycles for memory in memories]
    fills = [_fill(board, _cache(board, cache), board.memory(memory))
             for cache, memory in places.fills]
    columns += [fill[column] for column in range(len(FILL_COLUMNS)) for fill in fills]
    columns += [write_back_cycles(board, board.memory(memory), _cache(board, cache).line_bytes)
                for cache, memory in places.write_backs]
    columns += [_cache(board, name).hit_cycles for name in places.caches]
    return stack_columns([*columns, *_code(board, board.memory(places.code))])


def stack_columns(values: Sequence[Any]) -> Floats:
    """Return numbers as one array, or as rows of it where some stand for many boards.

    Parameters
    ----------
    values : sequence of float or ndarray of float, (n,)
        Columns.

    Returns
    -------
    ndarray of float, (columns,) or (n, columns)
    """
    if any(isinstance(value, np.ndarray) for value in values):
        return np.stack(np.broadcast_arrays(*values), axis=-1)
    return np.array([*values], np.float64)


def _cache(board: Board, name: str) -> Cache:
    cache = board.cache(name)
    assert cache is not None, f"{name} was looked up"
    return cache


def _fill(board: Board, cache: Cache, memory: Memory) -> tuple[Any, Any, Any]:
    whole = refill_cycles(board, memory, cache.line_bytes)
    waits = line_wait_cycles(board, memory, cache.line_bytes)
    first: Any = math.inf
    if cache.critical_word_first:
        first = refill_cycles(board, memory, min(cache.line_bytes, first_bytes(board, memory)))
    return whole, waits, first


def _code(board: Board, memory: Memory) -> tuple[Any, ...]:
    cache, ratio = code_cache(board, memory), clock_ratio(board, memory)
    if cache is not None:
        whole = refill_cycles(board, memory, cache.line_bytes)
        saved = _read_ahead_cycles(board, memory, cache) / whole if np.any(whole) else 0.0
        return saved, ratio, 0.0, 0.0, float(cache.line_bytes), 0.0
    unused = board.cache(board.core.icache)
    line_bytes = unused.line_bytes if unused is not None else memory.read_bytes
    last = uncached_cycles(board, memory, line_bytes) + ratio
    first = uncached_cycles(board, memory, min(line_bytes, first_bytes(board, memory))) + ratio
    return 0.0, ratio, first, last, float(line_bytes), beat_bytes(board, memory)


def _read_ahead_cycles(board: Board, memory: Memory, cache: Cache) -> Any:
    """Core cycles of wait states that reading ahead saves a line of straight code."""
    if not memory.prefetch:
        return 0.0
    ratio = clock_ratio(board, memory)
    waits = line_wait_cycles(board, memory, cache.line_bytes)
    # An instruction is at most a word and takes a cycle at least.
    run = cache.line_bytes / 4 / ratio
    return at_least(0.0, waits - ratio * sequential_wait_cycles(memory, run))
