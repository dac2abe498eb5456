"""Layers that Valgrind has seen, their traces, and LRU by order of last touch on a trace."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

import cache_layers
from reference_cache import walk_addresses

from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import STATE_HEAD, CacheState
from hwmodels.kernel import Nest, Operand

LAYERS = {
    "conv 9x7x3 to 8, 3x3/1": ("make_conv", (9, 7, 3, 8, 3, 1)),
    "conv 8x8x4 to 6, 5x5/2": ("make_conv", (8, 8, 4, 6, 5, 2)),
    "conv 5x5x8 to 4, 1x1/1": ("make_conv", (5, 5, 8, 4, 1, 1)),
    "pointwise 30 x 32 to 16": ("make_pointwise", (30, 32, 16)),
    "depthwise 9x7x20": ("make_depthwise", (9, 7, 20)),
    "dense 420 to 10": ("make_dense", (420, 10)),
    "sum 6000": ("make_sum", (6000,)),
}


def count_dirty(state: CacheState) -> int:
    """Lines a write-back cache still holds that memory does not have."""
    entries = state.words[STATE_HEAD:STATE_HEAD + state.shape[0] * state.shape[1]]
    return int(((entries >= 0) & (entries & 1 == 1)).sum())


def make_layer(name: str, base_address: int) -> tuple[tuple[Nest, ...], tuple[Operand, ...]]:
    """Nests and operands of a layer at an address."""
    maker, shape = LAYERS[name]
    return getattr(cache_layers, maker)(*shape, base_address)


def stamp_lines(accesses: Iterable[tuple[bool, int, int]],
                cache: Cache) -> tuple[list[int], list[int], int]:
    """LRU by order of last touch: misses by line, by access, and write-backs at the end of all.

    Returns
    -------
    misses, refs, write_backs
        (reads, writes) of lines filled and of accesses that missed at least one line, as
        cachegrind counts; dirty lines that left, those left at the end included.
    """
    sets: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(cache.sets)]
    misses, refs, write_backs = [0, 0], [0, 0], 0
    for store, address, size in accesses:
        missed = False
        last = (address + size - 1) // cache.line_bytes
        for line in range(address // cache.line_bytes, last + 1):
            held = sets[line % cache.sets]
            dirty = held.pop(line, None)
            if dirty is None:
                missed = True
                misses[store] += 1
                if len(held) == cache.ways:
                    write_backs += held.popitem(last=False)[1]
            held[line] = bool(dirty) or store
        refs[store] += missed
    write_backs += sum(dirty for held in sets for dirty in held.values())
    return misses, refs, write_backs


def hash_trace(accesses: Iterable[tuple[bool, int, int]]) -> str:
    """Digest of a trace."""
    digest = hashlib.sha256()
    for store, address, size in accesses:
        digest.update(f"{'S' if store else 'L'}{address:x},{size};".encode())
    return digest.hexdigest()[:16]


def list_accesses(nests: tuple[Nest, ...],
                  operands: tuple[Operand, ...]) -> list[tuple[bool, int, int]]:
    """Accesses of a nest as a trace has them."""
    by_name = {operand.name: operand for operand in operands}
    return [(access.write, address, access.width_bytes)
            for access, address in walk_addresses(nests, by_name)]
