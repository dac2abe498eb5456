"""Every way to simulate a cache gives the same counts and state, on layers of odd shapes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest
from cache_layers import make_conv, make_dense, make_depthwise, make_pointwise, make_sum

from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests

CASES = int(os.environ.get("TWIN_CACHE_CASES", "25"))
POLICIES = ("lru", "plru", "round_robin", "lfsr")


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
            for method in ("runs", "auto"):
                assert simulate_nests(cache, nests, operands, state, method=method) == wanted, (
                    case, method)
            state = wanted[1]
            misses += wanted[0].total("read_misses")
    assert misses > 100 * CASES


def summarise(policies=POLICIES):
    """Counts of a small convolution under each policy, as text."""
    found = {}
    for policy in policies:
        cache = Cache(name="l1d", size_bytes=512, line_bytes=16, ways=4, replacement=policy)
        counts, state = simulate_nests(cache, *make_conv(3, 3, 3, 4, 3, 1), new_state(cache))
        found[policy] = [repr(counts), state.words.tolist()]
    return json.dumps(found)


def test_same_without_compilation():
    """The kernels are plain Python, too: interpreted, they give the same counts and state."""
    here = os.path.dirname(__file__)
    code = "import test_cache_methods_oracle as t; print(t.summarise())"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=here, capture_output=True, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(summarise())


def test_same_at_any_thread_count():
    """One trace is simulated by one thread, whatever numba is allowed."""
    code = "import test_cache_methods_oracle as t; print(t.summarise(('lru', 'lfsr')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=os.path.dirname(__file__), capture_output=True,
        text=True, env={**os.environ, "NUMBA_NUM_THREADS": "2"}, check=True)
    assert json.loads(done.stdout) == json.loads(summarise(("lru", "lfsr")))
