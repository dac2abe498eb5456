"""What plans are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cache_layers import make_conv

from hwmodels.board.facts import Cache
from hwmodels.kernel import Access, Guard
from hwmodels.nest.plan import plan_nests
from hwmodels.nest.traffic import measure_access

NESTS, OPERANDS = make_conv(6, 6, 8, 12, 3, 1, 0x2400_0000)
CHOSEN = (True,) * len(OPERANDS)


def cache_of(policy: str) -> Cache:
    """A cache of four ways and lines of 32 bytes."""
    return Cache(name="l1d", size_bytes=4096, line_bytes=32, ways=4, replacement=policy)


@pytest.mark.parametrize("policy", ["lru", "plru", "round_robin", "lfsr"])
def test_a_plan_does_not_depend_on_the_policy_or_on_names_of_memories(policy) -> None:
    there = tuple(replace(one, memory="elsewhere", role="other") for one in OPERANDS)
    found = plan_nests(NESTS, there, CHOSEN, cache_of(policy), "runs")
    plain = plan_nests(NESTS, OPERANDS, CHOSEN, cache_of("lru"), "runs")
    np.testing.assert_array_equal(found.program, plain.program)
    assert found.traffic == plain.traffic


def test_an_access_that_no_index_allows_touches_nothing() -> None:
    never = Access(operand="input", write=False, width_bytes=4, steps_bytes=(4,),
                   guards=(Guard(steps=(0,), offset=-1, limit=3),))
    assert measure_access(never, (8,), 0, 32) is None
