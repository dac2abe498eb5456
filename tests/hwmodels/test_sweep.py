"""Stripped touches: every geometry misses as often as it does over all touches."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from cache_cases import random_kernel

from hwmodels.board.facts import Cache
from hwmodels.cache.geometries import Walked, fewest_sets, strip_touches, sweep_misses
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.errors import BoardError

CACHE = Cache(name="l1d", size_bytes=256, line_bytes=16, ways=2)


def all_misses(kernels, cache: Cache) -> int:
    """Misses of the second of two passes, by the fast simulation."""
    state = new_state(cache)
    for _ in range(2):
        misses = 0
        for nests, operands in kernels:
            counts, state = simulate_nests(cache, nests, operands, state)
            misses += counts.total("read_misses") + counts.total("write_misses")
    return misses


@pytest.mark.parametrize("policy", ["lru", "plru", "round_robin", "lfsr"])
def test_every_geometry_misses_as_without_stripping(policy):
    for case in range(15):
        rng = random.Random(f"{policy}{case}")
        kernels = [random_kernel(rng, 300) for _ in range(2)]
        shapes = [replace(CACHE, size_bytes=16 * ways * sets, ways=ways, replacement=policy)
                  for ways in (1, 2, 4) for sets in (2, 4, 8, 16)]
        stripped = strip_touches(
            [Walked(nests=nests, operands=operands, chosen=(True,) * len(operands))
             for nests, operands in kernels], 16, fewest_sets(shapes))
        assert sweep_misses(stripped, shapes) == tuple(
            all_misses(kernels, shape) for shape in shapes), case


def test_what_is_not_counted_still_takes_its_place():
    rng = random.Random(5)
    nests, operands = random_kernel(rng, 300)
    walk = Walked(nests=nests, operands=operands, chosen=(True,) * len(operands))
    silent = replace(walk, counted=False)
    one, = sweep_misses(strip_touches([walk, silent], 16, 2), [CACHE])
    other, = sweep_misses(strip_touches([silent, walk], 16, 2), [CACHE])
    both, = sweep_misses(strip_touches([walk, walk], 16, 2), [CACHE])
    assert one + other == both


def test_caches_the_filter_does_not_serve_are_refused():
    stripped = strip_touches([], 16, 8)
    with pytest.raises(BoardError, match="multiple of 8 sets"):
        sweep_misses(stripped, [replace(CACHE, size_bytes=64)])
