"""What plans share: trees over memories, programs over policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cache_layers import make_conv

from hwmodels.board.facts import Cache
from hwmodels.kernel import Access, Guard
from hwmodels.nest import plan
from hwmodels.nest.traffic import measure_access

NESTS, OPERANDS = make_conv(6, 6, 8, 12, 3, 1, 0x2400_0000)
AWAY = 0x10_0000


def cache_of(policy: str, size_bytes: int = 4096) -> Cache:
    """A cache of four ways and lines of 32 bytes."""
    return Cache(name="l1d", size_bytes=size_bytes, line_bytes=32, ways=4, replacement=policy)


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """Begin with nothing known of nests, trees and loops."""
    forget()


def forget() -> None:
    """Keep nothing of nests, trees and loops."""
    for kept in (plan.plan_nests, plan._read_nests, plan._make_compact, plan._flatten_kept):
        kept.cache_clear()


def count_calls(monkeypatch, module, name: str) -> list[str]:
    """Put a function in place of one of a module that notes each call of it."""
    calls, function = [], getattr(module, name)

    def note(*arguments, **named):
        calls.append(name)
        return function(*arguments, **named)

    monkeypatch.setattr(module, name, note)
    return calls


def plan_for(cache: Cache, operands=OPERANDS) -> plan.Plan:
    """The plan of one convolution, all of whose operands are looked up."""
    return plan.plan_nests(NESTS, operands, (True,) * len(operands), cache, "runs")


@pytest.mark.parametrize("policy", ["lru", "plru", "round_robin", "lfsr"])
def test_another_memory_makes_no_new_tree(monkeypatch, policy) -> None:
    trees = count_calls(monkeypatch, plan, "make_tree")
    programs = count_calls(monkeypatch, plan, "flatten_tree")
    moved = tuple(replace(operand, memory="elsewhere", role="other",
                          address=operand.address + AWAY) for operand in OPERANDS)
    plan_for(cache_of(policy))
    made = len(programs)
    there = plan_for(cache_of(policy), moved)
    assert len(trees) == 1
    assert len(programs) == made == 1
    forget()
    again = plan_for(cache_of(policy), moved)
    assert len(trees) == 2
    np.testing.assert_array_equal(again.program, there.program)


def test_policies_share_a_program(monkeypatch) -> None:
    programs = count_calls(monkeypatch, plan, "flatten_tree")
    found = {id(plan_for(cache_of(policy)).program)
             for policy in ("lru", "plru", "round_robin", "lfsr")}
    assert len(programs) == len(found) == 1
    plan_for(cache_of("plru", 8192))
    assert len(programs) == 2


def test_an_access_that_no_index_allows_touches_nothing() -> None:
    never = Access(operand="input", write=False, width_bytes=4, steps_bytes=(4,),
                   guards=(Guard(steps=(0,), offset=-1, limit=3),))
    span = measure_access(never, (8,), 0, 32)
    assert (span.accesses, span.touches) == (0, 0)
