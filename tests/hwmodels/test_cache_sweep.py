"""All associativities in one pass: by hand, and equal to one simulation each."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from cache_cases import random_cache, random_kernel

from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.cache.ways import sweep_ways
from hwmodels.errors import BoardError
from hwmodels.kernel import Access, Loop, Operand

WAYS = 6


def test_by_hand():
    """Three lines of one set in turn, ten times: 1 or 2 ways miss all 30, 3 or 4 miss three."""
    cache = Cache(name="l1d", size_bytes=4 * 32, line_bytes=32, ways=4)
    row = Operand(name="a", role="input", memory="sram", address=0, size_bytes=96)
    nest = Loop(extent=10, body=(Loop(extent=3, body=(
        Access(operand="a", write=False, width_bytes=4, steps_bytes=(0, 32)),)),))
    (counts,), state = sweep_ways(cache, (nest,), (row,), new_state(cache))
    assert (counts.touches, counts.read_misses) == (30, (30, 30, 3, 3))
    assert counts.write_misses == (0, 0, 0, 0)
    (again,), _ = sweep_ways(cache, (nest,), (row,), state)
    assert again.read_misses == (30, 30, 0, 0)


def test_equals_one_simulation_each():
    """Random kernels, state carried: misses of every operand for one to six ways."""
    for case in range(60):
        rng = random.Random(f"sweep{case}")
        largest = replace(random_cache(rng, "lru"), allocate="read_write", ways=WAYS)
        largest = replace(largest, size_bytes=largest.line_bytes * WAYS * rng.choice((1, 2, 4, 8)))
        caches = [replace(largest, ways=ways, size_bytes=largest.size_bytes // WAYS * ways)
                  for ways in range(1, WAYS + 1)]
        swept, states = new_state(largest), [new_state(cache) for cache in caches]
        for _ in range(2):
            nests, operands = random_kernel(rng, 150)
            found, swept = sweep_ways(largest, nests, operands, swept)
            for place, cache in enumerate(caches):
                counts, states[place] = simulate_nests(cache, nests, operands, states[place])
                for one, many in zip(counts.operands, found, strict=True):
                    assert one.read_misses == many.read_misses[place], (case, place)
                    assert one.write_misses == many.write_misses[place], (case, place)


def test_only_lru_has_this_order():
    """Other policies are refused: their smaller caches hold other lines."""
    cache = Cache(name="l1d", size_bytes=1024, line_bytes=32, ways=4, replacement="plru")
    with pytest.raises(BoardError, match="lru"):
        sweep_ways(cache, (), (), new_state(cache))
