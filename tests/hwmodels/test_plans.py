"""What plans share: trees over memories, sketches over sizes, blocks and pieces over policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cache_layers import make_conv

from hwmodels.board.facts import Cache
from hwmodels.nest import blocks, flattening, plan

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
    for kept in (plan.plan_nests, plan._read_nests, plan._make_compact, plan._mark_tree,
                 plan._flatten_tree, flattening._sketch_loop, blocks.find_blocks,
                 blocks.find_pieces):
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
    return plan.plan_nests(NESTS, operands, (True,) * len(operands), cache, "phases")


@pytest.mark.parametrize("policy", ["lru", "plru", "round_robin", "lfsr"])
def test_another_memory_makes_no_new_tree(monkeypatch, policy) -> None:
    trees = count_calls(monkeypatch, plan, "make_tree")
    sketches = count_calls(monkeypatch, flattening, "_make_sketch")
    moved = tuple(replace(operand, memory="elsewhere", role="other",
                          address=operand.address + AWAY) for operand in OPERANDS)
    plan_for(cache_of(policy))
    made = len(sketches)
    there = plan_for(cache_of(policy), moved)
    assert len(trees) == 1
    # What phases were cut of is put together again, of loops that are known.
    assert made and len(sketches) - made == (policy == "lru")
    forget()
    anew = plan_for(cache_of(policy), moved)
    assert len(trees) == 2
    np.testing.assert_array_equal(anew.program.front, there.program.front)


def test_loops_are_sketched_once_for_all_sizes(monkeypatch) -> None:
    sketches = count_calls(monkeypatch, flattening, "_make_sketch")
    found = count_calls(monkeypatch, blocks, "join_runs")
    plan_for(cache_of("plru"))
    made, joined = len(sketches), len(found)
    for size_bytes in (2048, 8192, 16384):
        plan_for(cache_of("plru", size_bytes))
    assert made > 1 and joined
    assert len(sketches) == made + 3, "each program is put together of the same loops"
    assert len(found) == joined


def test_blocks_and_pieces_are_found_once_for_policies_of_sets_apart(monkeypatch) -> None:
    found = count_calls(monkeypatch, blocks, "join_runs")
    pieces = count_calls(monkeypatch, blocks, "class_of_lines")
    plan_for(cache_of("round_robin"))
    known = len(found), len(pieces)
    assert all(known)
    plan_for(cache_of("plru"))
    assert (len(found), len(pieces)) == known
    plan_for(cache_of("lfsr"))
    assert len(found) > known[0], "where sets are not apart, what mixes is told apart otherwise"
