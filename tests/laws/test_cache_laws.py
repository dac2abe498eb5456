"""What must hold of any cache, whatever the layer."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from cache_traces import count_dirty

from hwmodels.board.facts import Cache
from hwmodels.board.policies import POLICIES
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.kernel import Access, Guard, Loop, Operand

SEEDS = range(12)
L1D = Cache(name="l1d", size_bytes=2048, line_bytes=32, ways=4)


def layer(seed):
    """A windowed copy and a blocked product of random shape over four operands."""
    rng = random.Random(seed)
    rows, width, channels, outputs = (rng.randint(2, 9) for _ in range(4))
    channels, depth = 4 * channels, 12 * channels
    pad = Guard(steps=(1, 1, 0), offset=-1, limit=width)
    gather = Loop(extent=width, body=(Loop(extent=3, body=(Loop(extent=channels, body=(
        Access(operand="input", write=False, width_bytes=4, offset_bytes=-4 * channels,
               steps_bytes=(4 * channels, 4 * channels, 4), guards=(pad,)),
        Access(operand="scratch", write=True, width_bytes=4,
               steps_bytes=(0, 4 * channels, 4)))),)),))
    product = Loop(extent=rows, body=(Loop(extent=outputs, body=(
        Loop(extent=depth // 4, body=(
            Access(operand="weights", write=False, width_bytes=4, steps_bytes=(0, depth, 4)),
            Access(operand="scratch", write=False, width_bytes=4, steps_bytes=(0, 0, 4)))),
        Access(operand="output", write=True, width_bytes=1, steps_bytes=(outputs, 1)))),))
    sizes = {"input": 4 * channels * width, "scratch": 12 * channels, "weights": depth * outputs,
             "output": rows * outputs}
    operands, address = [], 0x2400_0000 + rng.randrange(0, 256, 4)
    for name, size in sizes.items():
        operands.append(Operand(name=name, role=name, memory="sram", address=address,
                                size_bytes=size))
        address += size + rng.randrange(0, 64, 4)
    return (gather, product), tuple(operands)


def run(cache, nests, operands, state=None):
    """Counts and state of a cold run, or of one that goes on."""
    return simulate_nests(cache, nests, operands, state or new_state(cache))


def misses(counts):
    """Lines filled."""
    return counts.total("read_misses") + counts.total("write_misses")


@pytest.mark.parametrize("seed", SEEDS)
def test_more_ways_never_miss_more_under_lru(seed):
    """At equal sets LRU caches include one another: misses fall or stay with each way added."""
    found = [misses(run(replace(L1D, ways=ways, size_bytes=2 * 32 * ways), *layer(seed))[0])
             for ways in range(1, 13)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_fits_misses_once(policy):
    """Where no set sees more lines than ways, each line touched misses once, and none leaves."""
    for seed in SEEDS:
        nests, operands = layer(seed)
        cache = replace(L1D, ways=64 if policy != "plru" else 32, size_bytes=1 << 20,
                        replacement=policy)
        cold, state = run(cache, nests, operands)
        lines = {line for operand in operands for line in range(
            operand.address // 32, (operand.address + operand.size_bytes - 1) // 32 + 1)}
        assert misses(cold) == len(lines)
        assert cold.evictions == cold.write_backs() == 0
        assert misses(run(cache, nests, operands, state)[0]) == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_lines_are_conserved(policy):
    """Lines filled are lines held or evicted; each line written leaves once dirty at least."""
    for seed in SEEDS:
        cache = replace(L1D, replacement=policy)
        nests, operands = layer(seed)
        counts, state = run(cache, nests, operands)
        held = int((state.words[8:8 + cache.sets * cache.ways] >= 0).sum())
        assert misses(counts) == held + counts.evictions
        touches = counts.total("read_touches") + counts.total("write_touches")
        assert misses(counts) <= touches
        written = {line for operand in operands if operand.name in ("scratch", "output")
                   for line in range(operand.address // 32, (
                       operand.address + operand.size_bytes - 1) // 32 + 1)}
        assert counts.write_backs() <= counts.evictions
        assert len(written) <= counts.write_backs() + count_dirty(state)


@pytest.mark.parametrize("policy", POLICIES)
def test_kernels_add_up(policy):
    """Two kernels one after the other are one kernel of both nests."""
    for seed in SEEDS:
        cache = replace(L1D, replacement=policy)
        nests, operands = layer(seed)
        both, end = run(cache, nests, operands)
        first, state = run(cache, nests[:1], operands)
        second, after = run(cache, nests[1:], operands, state)
        assert misses(first) + misses(second) == misses(both)
        assert first.evictions + second.evictions == both.evictions
        assert after == end


@pytest.mark.parametrize("policy", POLICIES)
def test_moving_all_by_a_way_changes_nothing(policy):
    """Sets repeat every sets x line bytes."""
    for seed in SEEDS:
        cache = replace(L1D, replacement=policy)
        nests, operands = layer(seed)
        moved = tuple(replace(operand, address=operand.address + 7 * 16 * 32)
                      for operand in operands)
        assert run(cache, nests, operands)[0] == run(cache, nests, moved)[0]


def test_one_way_leaves_no_choice():
    """Direct mapped, all policies are one; round robin and FIFO always are."""
    for seed in SEEDS:
        for ways, policies in ((1, POLICIES), (4, ("round_robin", "fifo"))):
            caches = [replace(L1D, ways=ways, replacement=policy) for policy in policies]
            found = {repr(run(cache, *layer(seed))[0]) for cache in caches}
            assert len(found) == 1


def test_write_through_stores_all_pass():
    """What is stored is passed on, line touch by line touch, and never written back."""
    for seed in SEEDS:
        cache = replace(L1D, write="through", allocate="read")
        counts, state = run(cache, *layer(seed))
        assert counts.total("write_throughs") == counts.total("write_touches") > 0
        assert counts.write_backs() == count_dirty(state) == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_cost_follows_lines_not_accesses(policy):
    """What stays in the cache costs the simulation nothing more: passes over it are skipped.

    Twice the passes over 64 lines, which a loop does not move, are twice the accesses and no more
    look-ups; twice the lines are at most twice the look-ups and what one try costs.
    """
    def passes(count, lines):
        operand = Operand(name="weights", role="weights", memory="sram", address=0x2400_0000,
                          size_bytes=32 * lines)
        nest = Loop(extent=count, body=(Loop(extent=8 * lines, body=(Access(
            operand="weights", write=False, width_bytes=4, steps_bytes=(0, 4)),)),
            Access(operand="weights", write=False, width_bytes=4, steps_bytes=(0,))))
        return run(replace(L1D, size_bytes=16384, replacement=policy), (nest,), (operand,))[0]

    once, twice, larger = passes(500, 64), passes(1000, 64), passes(500, 128)
    assert twice.total("reads") == 2 * once.total("reads") == 2 * 500 * (8 * 64 + 1)
    assert twice.simulated_touches == once.simulated_touches <= 4 * 64
    assert larger.simulated_touches <= 2.2 * once.simulated_touches
