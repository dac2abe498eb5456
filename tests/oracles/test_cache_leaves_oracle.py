"""Leaves by first and last touches, and what falls back from them, equal to access by access."""

from __future__ import annotations

import random

import pytest
from cache_layers import load, loop, store
from reference_cache import ReferenceCache
from test_cache_oracle import compare, contents

from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import METHODS, new_state, simulate_nests
from hwmodels.kernel import Operand

POLICIES = ("lru", "plru", "round_robin", "lfsr", "global_round_robin")
NAMES = ("weights", "input", "output", "scratch")


def make_operands(rng, size_bytes=4096):
    """Operands that lie in each other's sets, some on one line, each with room on both sides."""
    return tuple(Operand(name=name, role=name, memory="flash" if name == "weights" else "sram",
                         address=0x4000 * (place + 1) + rng.choice((0, 4, 6, 32, 100)),
                         size_bytes=size_bytes) for place, name in enumerate(NAMES))


def random_leaf(rng, streams, extent):
    """A loop of accesses that move by any step, forwards and back, over a loop that moves all."""
    outer = rng.choice((1, 2, 3))
    body = []
    for _ in range(streams):
        step = rng.choice((0, 0, 1, 2, 4, 4, 6, 16, 24, 32, -4, -1, -32))
        width = rng.choice((1, 2, 4, 8))
        start = rng.randrange(0, 200) if step >= 0 else -step * extent + rng.randrange(0, 100)
        make = store if rng.random() < 0.3 else load
        body.append(make(rng.choice(NAMES), width, start, rng.choice((0, 4, 32, 48)), step))
    return (loop(outer, loop(extent, *body)),)


def check(cache, nests, operands, state, oracle):
    """Every method against the time stamps, one in the memory of a run before; the state after."""
    oracle.counts.clear()
    oracle.run(nests, operands)
    for method in METHODS:
        counts, after = simulate_nests(cache, nests, operands, state, method=method)
        compare(counts, oracle, method)
        assert contents(after) == oracle.contents(), method
    return after


@pytest.mark.parametrize("policy", POLICIES)
def test_leaves_of_any_kind(policy):
    """Straddling, backward, still and written streams; sets of any number, ways from 1 to 16."""
    for case in range(60):
        rng = random.Random(f"leaf {policy} {case}")
        line_bytes, sets = rng.choice((8, 16, 32)), rng.choice((1, 2, 3, 5, 8, 16))
        ways = rng.choice((1, 2, 4, 8, 16) if policy == "plru" else (1, 2, 3, 4, 5, 7, 8, 16))
        cache = Cache(name="c", size_bytes=line_bytes * sets * ways, line_bytes=line_bytes,
                      ways=ways, replacement=policy, write=rng.choice(("back", "through")),
                      allocate=rng.choice(("read", "read_write", "read_write")))
        state = new_state(cache, 7)
        oracle = ReferenceCache(cache=cache, seed=7)
        operands = make_operands(rng)
        for _ in range(2):
            state = check(cache, random_leaf(rng, rng.randint(2, 12), rng.choice((2, 3, 9, 31))),
                          operands, state, oracle)


@pytest.mark.parametrize("policy", ["lru", "lfsr"])
@pytest.mark.parametrize("streams", [20, 63, 90])
def test_more_streams_than_are_followed(policy, streams):
    """More in a set than are put in order, and more in a leaf than a word has bits."""
    rng = random.Random(streams)
    for sets, ways in ((1, 32), (2, 4), (16, 4)):
        cache = Cache(name="c", size_bytes=16 * sets * ways, line_bytes=16, ways=ways,
                      replacement=policy)
        check(cache, random_leaf(rng, streams, 20), make_operands(rng), new_state(cache, 9),
              ReferenceCache(cache=cache, seed=9))


@pytest.mark.parametrize("policy", POLICIES)
def test_ranges_that_are_apart(policy):
    """Few long streams in sets of their own, then one set further: they meet, or just do not."""
    cache = Cache(name="c", size_bytes=4096, line_bytes=32, ways=4, replacement=policy)
    for gap_lines in (7, 8, 9, 24, 25, 32):
        operands = tuple(Operand(name=name, role=name, memory="sram", address=address,
                                 size_bytes=4096) for name, address in (
            ("input", 0x1_0000), ("output", 0x2_0000 + 32 * gap_lines)))
        nests = (loop(3, loop(64, load("input", 4, 0, 256, 4), store("output", 4, 0, 256, 4))),)
        check(cache, nests, operands, new_state(cache, 5), ReferenceCache(cache=cache, seed=5))


def test_same_nests_changed_owners():
    """A plan found again has the marks of the state it meets, not of the one before."""
    cache = Cache(name="c", size_bytes=512, line_bytes=32, ways=2)
    rng = random.Random(3)
    operands, nests = make_operands(rng), random_leaf(rng, 6, 30)
    other = (Operand(name="x", role="first", memory="ram", address=64, size_bytes=64),)
    for before in (False, True, False):
        state, oracle = new_state(cache), ReferenceCache(cache=cache, seed=1)
        if before:
            first = (loop(8, store("x", 4, 0, 4)),)
            state = simulate_nests(cache, first, other, state)[1]
            oracle.run(first, other)
        check(cache, nests, operands, state, oracle)
