"""What streams through a cache under LRU is counted, not simulated: equal to access by access."""

from __future__ import annotations

import os
import random

from cache_layers import load, loop, make_pointwise, store
from test_cache_oracle import compare, contents

from benchmarks.oracles.cache import ReferenceCache
from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.kernel import Operand
from hwmodels.nest.plan import plan_nests

CASES = int(os.environ.get("TWIN_CACHE_CASES", "12"))


def random_cache(rng):
    """A cache of a few hundred bytes, so that short streams fill it."""
    line_bytes, ways = rng.choice((8, 16, 32)), rng.choice((2, 3, 4, 4, 5, 8))
    return Cache(name="c", size_bytes=line_bytes * ways * (sets := rng.choice((8, 16, 32))),
                 line_bytes=line_bytes, ways=sets and ways, write=rng.choice(("back", "through")),
                 allocate=rng.choice(("read_write", "read_write", "read")))


def random_streams(rng, cache):
    """Products of resident weights and inputs that stream by; outputs go on or far apart.

    Operands lie anywhere in the sets, some next to each other; weights sometimes have more lines
    than a set has ways, or move with the loop around.
    """
    size = cache.line_bytes
    turns = 4 * cache.sets * cache.ways // rng.choice((1, 1, 2)) + rng.randrange(20)
    inner, words = rng.randint(9, 24), rng.randint(9, 24)
    steps = {"input": rng.choice((4 * words, 4 * words, size, 2 * size, 4 * words + 4)),
             "output": rng.choice((1, 2, size, 3 * size, 2 * size + 4))}
    around = {name: rng.choice((0, 0, 1, 4, size)) for name in ("weights", "input", "output")}
    body = [loop(inner, load("weights", 4, 0, around["weights"], 0, 4)),
            loop(words, load("input", 4, 0, around["input"], steps["input"], 4)),
            load("bias", 4, 0, rng.choice((0, 4)), 0)]
    for lane in range(rng.randint(1, 2)):
        body.append(store("output", 1, lane * rng.choice((1, size)), around["output"],
                          steps["output"]))
    if rng.random() < 0.3:
        body.append(rng.choice((load, store))("input", 2, 0, around["input"], steps["input"]))
    operands, address = [], 0x4000
    for name in ("input", "weights", "bias", "output"):
        room = 8 * size + 64 + (turns * steps[name] + 4 * words if name in steps else 0)
        operands.append(Operand(name=name, role=name, memory="sram", address=address,
                                size_bytes=room))
        address += room + rng.choice((0, 4, size, 100, 333))
    return (loop(rng.randint(1, 3), loop(turns, *body)),), tuple(operands)


def test_streams_are_counted():
    """Counts and contents, cold and from what others left; half of the cases leave lines out.

    The second run of a kernel is in the memory of the first.
    """
    fired = left_out = filled = 0
    for case in range(CASES):
        rng = random.Random(f"streams {case}")
        cache = random_cache(rng)
        state, oracle = new_state(cache), ReferenceCache(cache=cache, seed=1)
        first, second = (random_streams(rng, cache) for _ in range(2))
        for nests, operands in (first, second, first):
            oracle.counts.clear()
            oracle.run(nests, operands)
            found = simulate_nests(cache, nests, operands, state, method="phases")
            counts, state = simulate_nests(cache, nests, operands, state)
            assert found == (counts, state), case
            compare(counts, oracle, case)
            assert contents(state) == oracle.contents(), case
            plan = plan_nests(nests, operands, (True,) * len(operands), cache, "phases")
            fired += bool(plan.program.skipped)
            left_out += sum(lines for *_, lines in plan.program.skipped)
            filled += counts.total("read_misses") + counts.total("write_misses")
    assert fired > CASES // 2 and left_out > filled // 5


def test_cost_of_streams_follows_the_cache():
    """Sixteen times the pixels of a product that streams by: no more look-ups; all misses equal."""
    cache = Cache(name="c", size_bytes=4096, line_bytes=32, ways=4)

    def look_ups(pixels):
        nests, operands = make_pointwise(pixels, 32, 8)
        wanted = simulate_nests(cache, nests, operands, new_state(cache), method="runs")
        found = simulate_nests(cache, nests, operands, new_state(cache), method="phases")
        assert found == wanted
        assert simulate_nests(cache, nests, operands, new_state(cache)) == wanted
        return found[0].simulated_touches

    assert look_ups(32768) <= 1.1 * look_ups(2048)
