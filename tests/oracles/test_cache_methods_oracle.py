"""Every way to simulate a cache gives the same counts and state, on layers of odd shapes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cache_cases import random_cache, random_kernel
from cache_layers import make_conv, make_dense, make_depthwise, make_pointwise, make_sum

from hwmodels.board import policies
from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
"""What other processes import is what is tested here."""
CASES = int(os.environ.get("TWIN_CACHE_CASES", "25"))
POLICIES = tuple(name for name in policies.POLICIES if name != "fifo")  # is round robin


def random_layer(rng):
    """A layer of an odd shape at an odd address, of up to some 50,000 accesses."""
    base_address = 0x2400_0000 + rng.choice((0, 4, 8, 32, 100, 1000))
    kind = rng.randrange(5)
    if kind == 0:
        return make_conv(rng.randint(1, 7), rng.randint(1, 7), rng.randint(1, 9),
                         rng.randint(1, 12), rng.choice((1, 3, 5)), rng.choice((1, 2)),
                         base_address)
    if kind == 1:
        return make_pointwise(2 * rng.randint(1, 20), 4 * rng.randint(1, 24),
                              2 * rng.randint(1, 24), base_address)
    if kind == 2:
        return make_depthwise(rng.randint(1, 8), rng.randint(1, 8), 4 * rng.randint(1, 20),
                              base_address)
    if kind == 3:
        return make_dense(4 * rng.randint(1, 90), 2 * rng.randint(1, 40), base_address)
    return make_sum(4 * rng.randint(1, 2000), base_address)


def random_geometry(rng, policy):
    """1 to 32 KiB."""
    line_bytes, ways = rng.choice((8, 16, 32, 64)), rng.choice((1, 2, 4, 8))
    size_bytes = max(line_bytes * ways, 1024 << rng.randrange(6))
    return Cache(name="l1d", size_bytes=size_bytes, line_bytes=line_bytes, ways=ways,
                 replacement=policy, write=rng.choice(("back", "through")),
                 allocate=rng.choice(("read", "read_write", "read_write")))


@pytest.mark.parametrize("policy", POLICIES)
def test_methods_agree(policy):
    """Networks of three layers, the state carried on: equal counts, equal final state."""
    misses = 0
    for case in range(CASES):
        rng = random.Random(f"{policy}/{case}")
        cache = random_geometry(rng, policy)
        state = new_state(cache)
        for _ in range(3):
            nests, operands = random_layer(rng)
            wanted = simulate_nests(cache, nests, operands, state, method="accesses")
            assert simulate_nests(cache, nests, operands, state) == wanted, case
            state = wanted[1]
            misses += wanted[0].total("read_misses")
    assert misses > (100 * CASES if CASES >= 10 else 0)  # a few may be small


def summarise(names=POLICIES):
    """Counts of a small convolution under each policy, as text."""
    found = {}
    for policy in names:
        cache = Cache(name="l1d", size_bytes=512, line_bytes=16, ways=4, replacement=policy)
        counts, state = simulate_nests(cache, *make_conv(3, 3, 3, 4, 3, 1), new_state(cache))
        found[policy] = [repr(counts), state.words.tolist()]
    return json.dumps(found)


def test_same_without_compilation():
    """The kernels are plain Python, too: interpreted, they give the same counts and state."""
    code = "import test_cache_methods_oracle as t; print(t.summarise())"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=HERE, capture_output=True, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(summarise())


def test_same_at_any_thread_count():
    """One trace is simulated by one thread, whatever numba is allowed."""
    code = "import test_cache_methods_oracle as t; print(t.summarise(('lru', 'lfsr')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)})
    assert json.loads(done.stdout) == json.loads(summarise(("lru", "lfsr")))


@pytest.mark.parametrize("policy", ["lru", "plru", "round_robin"])
def test_methods_agree_where_stores_allocate(policy):
    """Random kernels and layers through any cache, twice each: the same, with fewer look-ups."""
    touches = accesses = 0
    for case in range(6 * CASES):
        rng = random.Random(f"passes {policy}/{case}")
        if case % 2:
            cache = replace(random_cache(rng, policy), allocate="read_write")
            kernels = [random_kernel(rng, 1500) for _ in range(2)]
        else:
            cache = replace(random_geometry(rng, policy), allocate="read_write")
            kernels = [random_layer(rng) for _ in range(2)]
        state = new_state(cache)
        for nests, operands in kernels:
            wanted = simulate_nests(cache, nests, operands, state, method="accesses")
            found = simulate_nests(cache, nests, operands, state)
            assert found == wanted, case
            state = wanted[1]
            touches += found[0].simulated_touches
            accesses += wanted[0].simulated_touches
    assert touches < accesses


def test_many_owners():
    """Lines of twenty kernels, each with owners of its own, leave one after the other."""
    cache = Cache(name="l1d", size_bytes=4096, line_bytes=32, ways=4, replacement="plru")
    state = new_state(cache)
    for number in range(20):
        nests, operands = make_sum(64, 0x2400_0000 + 256 * number)
        named = tuple(replace(operand, role=f"{operand.role} {number}") for operand in operands)
        state = simulate_nests(cache, nests, named, state)[1]
    nests, operands = make_pointwise(2048, 16, 32)
    wanted = simulate_nests(cache, nests, operands, state, method="accesses")
    assert len(state.owners) == 60 and simulate_nests(cache, nests, operands, state) == wanted
    assert len(wanted[0].owners) > 16


@pytest.mark.parametrize("policy", ["lru", "plru", "round_robin", "lfsr"])
def test_a_layer_that_comes_again_elsewhere(policy):
    """Operands moved by whole lines, each by as many of its own, some onto others' lines.

    All of them share one shape; what moves it must leave it as it was.
    """
    cache = Cache(name="l1d", size_bytes=2048, line_bytes=32, ways=4, replacement=policy)
    nests, operands = make_pointwise(40, 24, 16)
    for case in range(6):
        rng = random.Random(f"elsewhere {case}")
        moved = tuple(replace(one, address=one.address + 32 * rng.choice((0, 1, 5, 200, -64)))
                      for one in operands)
        state = new_state(cache)
        for _ in range(2):
            wanted = simulate_nests(cache, nests, moved, state, method="accesses")
            assert simulate_nests(cache, nests, moved, state) == wanted, case
            state = wanted[1]
