"""Random kernels and caches for the cache oracles: odd shapes, straddling words, guards."""

from __future__ import annotations

import random
from dataclasses import replace

from hwmodels.board.facts import Cache
from hwmodels.kernel import Access, Guard, Loop, Operand, walk_accesses
from hwmodels.nest.traffic import measure_access


def random_cache(rng: random.Random, replacement: str) -> Cache:
    """A small cache, so that small nests evict."""
    line_bytes = rng.choice((4, 8, 16, 32))
    ways = rng.choice((1, 2, 4, 8) if replacement == "plru" else (1, 2, 3, 4, 5, 8))
    sets = rng.choice((1, 2, 4, 8, 16, 3))
    return Cache(name="l1d", size_bytes=line_bytes * ways * sets, line_bytes=line_bytes,
                 ways=ways, replacement=replacement, write=rng.choice(("back", "through")),
                 allocate=rng.choice(("read", "read_write", "read_write")))


def random_kernel(rng: random.Random, accesses: int = 1500):
    """Nests of at most about `accesses` accesses, and operands that just hold them."""
    names = ["weights", "input", "output", "scratch"][:rng.randint(1, 4)]
    nests, room = [], accesses
    for _ in range(rng.randint(1, 3)):
        nest, size = _random_nest(rng, names, 0, max(1, room // 2), ())
        nests.append(nest)
        room -= size
    return _place(rng, names, tuple(nests))


def _random_nest(rng, names, depth, room, extents):
    if depth == 4 or room < 4 or (depth and rng.random() < 0.3):
        return _random_access(rng, names, extents), 1
    extent = rng.choice((0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 12, 16, 33))
    extent = min(extent, room) if rng.random() > 0.02 else 0
    body, size = [], 0
    parts = rng.choice((1, 1, 2, 3, 4))
    for _ in range(parts):
        inner, inner_size = _random_nest(rng, names, depth + 1, room // max(1, extent) // parts,
                                         (*extents, extent))
        body.append(inner)
        size += inner_size
    return Loop(extent=extent, body=tuple(body)), size * extent


def _random_access(rng, names, extents):
    width = rng.choice((1, 1, 2, 4, 4, 8, 16))
    unit = width if rng.random() < 0.7 else 1
    steps = tuple(unit * rng.choice((0, 0, 1, 1, -1, 2, 4, 7, 8, 16, 64, -8)) for _ in extents)
    guards = []
    while extents and rng.random() < 0.25:
        guards.append(Guard(steps=tuple(rng.choice((0, 0, 1, 1, 2, -1)) for _ in extents),
                            offset=rng.randint(-3, 3), limit=rng.randint(1, 12)))
    return Access(operand=rng.choice(names), write=rng.random() < 0.35, width_bytes=width,
                  offset_bytes=unit * rng.randint(0, 40), steps_bytes=steps,
                  guards=tuple(guards))


def _place(rng, names, nests):
    """Give each operand an odd address and just the extent its accesses need."""
    spans = {name: [0, 1] for name in names}
    for extents, access in walk_accesses(nests):
        if measured := measure_access(access, extents, 0, 16):
            (_, _, first, last), (low, end) = measured, spans[access.operand]
            spans[access.operand] = [min(low, first), max(end, last)]
    operands, address = [], 1 << 14
    for name in names:
        low, end = spans[name]
        address += rng.choice((0, 0, 1, 2, 4, 12, 32, 100))
        operands.append(Operand(
            name=name, role="arena" if name == "scratch" else name, address=address,
            memory="flash" if name == "weights" else "sram", size_bytes=end - low))
        address += end - low
    return tuple(_shift(nest, spans) for nest in nests), tuple(operands)


def _shift(nest, spans):
    if isinstance(nest, Access):
        return replace(nest, offset_bytes=nest.offset_bytes - spans[nest.operand][0])
    return replace(nest, body=tuple(_shift(inner, spans) for inner in nest.body))
