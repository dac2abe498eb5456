"""Which cache loads, stores and instruction fetches of a memory look up."""

from __future__ import annotations

from collections.abc import Iterable

from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.board.policies import policies_of


def data_cache(board: Board, memory: Memory) -> Cache | None:
    """Return the cache loads and stores look up, None where they go straight to the memory.

    Parameters
    ----------
    board
        Whose main core accesses.

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


def count_policies(board: Board) -> int:
    """Return under how many policies the caches of a board are counted together."""
    return max([len(policies_of(cache.replacement)) for cache in board.caches], default=1)


def _first(board: Board, names: Iterable[str | None], memory: Memory) -> Cache | None:
    for name in names:
        cache = board.cache(name)
        if cache is not None and cache.enabled and cache.may_hold(memory):
            return cache
    return None
