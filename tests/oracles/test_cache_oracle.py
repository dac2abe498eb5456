"""The cache simulator against the time-stamp specification, on random kernels.

TWIN_CACHE_CASES sets the cases per policy (2,000 for the record in benchmarks/exactness).
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
import pytest
from cache_cases import random_cache, random_kernel
from reference_cache import ReferenceCache

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.cache.set_associative import (
    METHODS,
    STATE_HEAD,
    new_state,
    simulate_kernels,
    simulate_nests,
)
from hwmodels.kernel import Kernel

CASES = int(os.environ.get("TWIN_CACHE_CASES", "300"))
FIELDS = ("reads", "writes", "read_touches", "write_touches", "read_misses", "write_misses",
          "write_bypasses")


def contents(state):
    """Per set (line, dirty, owner) of a state, as `ReferenceCache.contents`."""
    sets, ways = state.shape[:2]
    entries = state.words[STATE_HEAD:STATE_HEAD + sets * ways].reshape(sets, ways).tolist()
    return tuple(tuple((entry >> 8, bool(entry & 1), state.owners[entry >> 1 & 127])
                       for entry in row if entry >= 0) for row in entries)


def compare(counts, oracle, note):
    """Every count of a kernel, per operand and per owner."""
    for operand in counts.operands:
        for name in FIELDS:
            assert getattr(operand, name) == oracle.counts[operand.operand, name], (
                note, operand.operand, name)
    for event in ("evictions", "write_backs"):
        found = {(owner.memory, owner.role): getattr(owner, event) for owner in counts.owners}
        wanted = {owner: number for (owner, name), number in oracle.counts.items()
                  if name == event}
        assert {k: v for k, v in found.items() if v} == {k: v for k, v in wanted.items() if v}, (
            note, event)


@pytest.mark.parametrize("policy", POLICIES)
def test_equals_time_stamps(policy):
    """Counts and contents by every method, state carried through two kernels."""
    accesses = 0
    for case in range(CASES):
        rng = random.Random(f"{policy}{case}")
        cache = random_cache(rng, policy)
        seed = rng.randint(1, 65535)
        state, oracle = new_state(cache, seed), ReferenceCache(cache=cache, seed=seed)
        for _ in range(2):
            nests, operands = random_kernel(rng, 100)
            oracle.counts.clear()
            oracle.run(nests, operands)
            before, ends = state.words.copy(), []
            for method in METHODS:
                counts, after = simulate_nests(cache, nests, operands, state, method=method)
                assert np.array_equal(before, state.words)
                compare(counts, oracle, (case, method))
                assert contents(after) == oracle.contents(), (case, method)
                if policy == "lfsr":
                    assert after.words[0] == oracle.seed
                ends.append(after)
            assert all(end == ends[0] for end in ends), case
            state = after
            accesses += counts.total("reads") + counts.total("writes")
    assert accesses > 20 * CASES


def test_kernels_come_again():
    """Kernels known from one run, in any order, on whatever others left."""
    hits = 0
    for case in range(max(1, CASES // 4)):
        rng = random.Random(f"again {case}")
        cache = random_cache(rng, "lru")
        state, oracle = new_state(cache), ReferenceCache(cache=cache, seed=1)
        kernels = [random_kernel(rng, rng.choice((3, 20, 100))) for _ in range(3)]
        for number in (0, 1, 0, 2, 1, 1, 2, 0):
            nests, operands = kernels[number]
            oracle.counts.clear()
            oracle.run(nests, operands)
            before = simulate_nests(cache, nests, operands, new_state(cache))[0]
            counts, state = simulate_nests(cache, nests, operands, state)
            compare(counts, oracle, case)
            assert contents(state) == oracle.contents(), case
            hits += before.total("read_misses") - counts.total("read_misses")
    assert hits > CASES // 2  # of what was there


def test_policies_at_once():
    """A cache counted under several policies: what each counts and leaves, as of each alone."""
    for case in range(CASES // 10):
        rng = random.Random(f"policies {case}")
        cache, kernels = random_cache(rng, "plru"), []
        for _ in range(rng.randint(1, 3)):
            nests, operands = random_kernel(rng, 30)
            kernels.append(Kernel(name="k", family="k", blocks=(), nests=nests, operands=operands))
        alone = [replace(cache, replacement=name) for name in rng.sample([*POLICIES], 3)]
        both = replace(cache, replacement=" ".join(one.replacement for one in alone))
        states, joined = [new_state(one) for one in alone], new_state(both)
        for _ in range(2):
            found, joined = simulate_kernels(both, kernels, joined)
            ran = [simulate_kernels(*row) for row in zip(
                alone, [kernels] * 3, states, strict=True)]
            assert found == sum((counts for counts, _ in ran), ()), case
            states = [state for _, state in ran]
            assert joined.words.tolist() == [
                word for state in states for word in state.words.tolist()], case


@pytest.mark.parametrize("policy", ["lru", "plru", "lfsr"])
def test_kernels_at_once(policy):
    """Kernels by one call: what each counts, and what is left, as of one call each."""
    for case in range(CASES // 10):
        rng = random.Random(f"at once {policy} {case}")
        cache, kernels, flags = random_cache(rng, policy), [], []
        for _ in range(rng.randint(0, 4)):
            nests, operands = random_kernel(rng, 30)
            kernels.append(Kernel(name="k", family="k", blocks=(), nests=nests, operands=operands))
            flags.append(tuple(rng.random() < 0.8 for _ in operands))
        chosen = flags if case % 2 else None
        for start in range(len(kernels) + 1):
            state = new_state(cache)
            for kernel in kernels[:start]:
                state = simulate_nests(cache, kernel.nests, kernel.operands, state)[1]
            found, after = simulate_kernels(cache, kernels, state, chosen)
            for method in 2 * METHODS:
                assert (found, after) == simulate_kernels(cache, kernels, state, chosen, method)
            for place, kernel in enumerate(kernels):
                counts, state = simulate_nests(cache, kernel.nests, kernel.operands, state,
                                               chosen[place] if chosen else None)
                assert counts == found[place], (case, place)
            assert after == state, case


PARTS = {  # bytes, bytes a line, ways, policy, write, allocate
    "L4 ART, instructions": (1024, 32, 32, "lru", "through", "read"),
    "L4 ART, data": (256, 32, 8, "lru", "through", "read"),
    "F7 ART": (2048, 32, 64, "lru", "through", "read"),
    "U5 ICACHE": (8192, 16, 2, "plru", "through", "read"),
    "U5 DCACHE": (4096, 16, 2, "plru", "back", "read_write"),
    "RP2040 XIP": (16384, 8, 2, "lru", "through", "read"),
    "ESP32-S3 DCACHE": (32768, 32, 8, "round_robin", "back", "read_write"),
    "N6 CACHEAXI": (262144, 64, 8, "plru", "back", "read_write"),
    "M7 L1D": (16384, 32, 4, "lfsr", "back", "read_write"),
}


@pytest.mark.parametrize("name", PARTS)
def test_the_geometries_of_parts(name):
    """Caches as microcontrollers have them, on kernels that fill them."""
    size, line, ways, policy, write, allocate = PARTS[name]
    cache = Cache(name="l1d", size_bytes=size, line_bytes=line, ways=ways, replacement=policy,
                  write=write, allocate=allocate)
    misses = 0
    for case in range(3):
        rng = random.Random(f"{name}{case}")
        state, oracle = new_state(cache, 7), ReferenceCache(cache=cache, seed=7)
        for _ in range(2):
            nests, operands = random_kernel(rng, 4000)
            oracle.counts.clear()
            oracle.run(nests, operands)
            counts, state = simulate_nests(cache, nests, operands, state)
            compare(counts, oracle, case)
            assert contents(state) == oracle.contents(), case
            misses += counts.total("read_misses")
    assert misses > 0
