"""The cache simulator against the time-stamp specification, on random kernels."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cache_cases import random_cache, random_kernel

from hwmodels.cache import METHODS, STATE_HEAD, new_state, simulate_nests
from hwmodels.reference.cache import ReferenceCache

CASES = 300
FIELDS = ("reads", "writes", "read_touches", "write_touches", "read_misses", "write_misses",
          "write_bypasses")


def contents(state):
    """Per set (line, dirty, owner) of a state, as `ReferenceCache.contents`."""
    sets, ways = state.shape[:2]
    entries = state.words[STATE_HEAD:STATE_HEAD + sets * ways].reshape(sets, ways).tolist()
    return tuple(tuple((entry >> 8, bool(entry & 1), state.owners[entry >> 1 & 127])
                       for entry in row if entry >= 0) for row in entries)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("policy", ["lru", "plru", "round_robin", "fifo", "lfsr"])
def test_equals_time_stamps(policy, method):
    """Counts and contents equal the specification, state carried through two kernels."""
    accesses = 0
    for case in range(CASES):
        rng = random.Random(f"{policy}{case}")
        cache = random_cache(rng, policy)
        seed = rng.randint(1, 65535)
        state, oracle = new_state(cache, seed), ReferenceCache(cache=cache, seed=seed)
        for _ in range(2):
            nests, operands = random_kernel(rng, 250)
            oracle.counts.clear()
            oracle.run(nests, operands)
            before = state.words.copy()
            counts, after = simulate_nests(cache, nests, operands, state, method=method)
            assert np.array_equal(before, state.words)
            state = after
            for operand in counts.operands:
                for name in FIELDS:
                    assert getattr(operand, name) == oracle.counts[operand.operand, name], (
                        case, operand.operand, name)
                accesses += operand.reads + operand.writes
            for owner in counts.owners:
                key = (owner.memory, owner.role)
                assert owner.evictions == oracle.counts[key, "evictions"], case
                assert owner.write_backs == oracle.counts[key, "write_backs"], case
            assert counts.evictions == sum(
                number for (_, event), number in oracle.counts.items() if event == "evictions")
            assert contents(state) == oracle.contents(), case
            if policy == "lfsr":
                assert state.words[0] == oracle.seed
    assert accesses > 20_000
