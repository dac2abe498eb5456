"""Bundles and pipelined loops beside slow reference schedulers, on random operations."""

import itertools
import random

import pytest
from made_cases import for_each

from benchmarks.accuracy.bundles import (
    Edge,
    Operation,
    bound_recurrence,
    bound_resources,
    pipeline_loop,
)
from hwmodels.errors import KernelError
from tests.oracles.c6000_listing import list_edges, pack_block

UNITS = ("A", "B")


def draw_block(seed, most=6):
    rng = random.Random(seed)
    names = [f"r{number}" for number in range(4)]
    return [Operation(units=tuple(rng.sample(UNITS, rng.randrange(1, 3))),
                      latency_cycles=rng.choice((1, 1, 2, 4)),
                      reads=tuple(rng.sample(names, rng.randrange(0, 3))),
                      writes=(rng.choice(names),)) for _ in range(rng.randrange(1, most + 1))]


def is_sound(operations, edges, issue, interval=0):
    """Whether a schedule keeps every edge and has a unit for each operation, tried one by one."""
    if any(issue[e.source] + e.latency_cycles - interval * e.distance > issue[e.sink]
           for e in edges):
        return False
    for units in itertools.product(*(one.units for one in operations)):
        held = [(unit, at % interval if interval else at)
                for unit, at in zip(units, issue, strict=True)]
        if len(set(held)) == len(held):
            return True
    return False


def shortest(operations, edges):
    """Length of the shortest sound schedule, by trying every one, the shortest first."""
    for length in itertools.count(1):
        for issue in itertools.product(range(length), repeat=len(operations)):
            if is_sound(operations, edges, issue):
                return length
    return None


@for_each(range(60))
def test_blocks_are_packed_soundly_and_nearly_as_tight_as_can_be(seed):
    operations = draw_block(seed, most=5)
    edges = list_edges(operations)
    issue = pack_block(operations)
    assert is_sound(operations, edges, issue)
    assert max(issue) + 1 <= shortest(operations, edges) + 1


def test_most_blocks_are_packed_as_tight_as_can_be():
    tight = [max(pack_block(one)) + 1 == shortest(one, list_edges(one))
             for one in (draw_block(seed, most=5) for seed in range(60))]
    assert sum(tight) >= 54


def draw_loop(seed):
    rng = random.Random(1000 + seed)
    operations = [Operation(units=tuple(rng.sample(UNITS, rng.randrange(1, 3))))
                  for _ in range(rng.randrange(2, 6))]
    edges = [Edge(source, sink, rng.choice((1, 2, 4)))
             for source, sink in itertools.combinations(range(len(operations)), 2)
             if rng.random() < 0.4]
    edges += [Edge(rng.randrange(len(operations)), rng.randrange(len(operations)),
                   rng.choice((1, 3, 5)), rng.randrange(1, 3)) for _ in range(rng.randrange(0, 3))]
    return operations, edges


def shortest_interval(operations, edges, most):
    """The least interval of any sound schedule, by trying issue cycles up to a bound."""
    for interval in range(1, most + 1):
        for issue in itertools.product(range(4 * interval + 4), repeat=len(operations)):
            if issue[0] < 4 and is_sound(operations, edges, issue, interval):
                return interval
    return most + 1


@for_each(range(60))
def test_loops_are_sound_and_no_tighter_than_their_bounds(seed):
    operations, edges = draw_loop(seed)
    loop = pipeline_loop(operations, edges)
    assert is_sound(operations, edges, loop.issue_cycles, loop.interval_cycles)
    assert loop.interval_cycles >= max(loop.resource_cycles, loop.recurrence_cycles)
    assert loop.count_cycles(10) == loop.interval_cycles * (9 + loop.stages)


def test_most_loops_reach_the_larger_of_their_bounds():
    loops = [pipeline_loop(*draw_loop(seed)) for seed in range(60)]
    assert sum(loop.interval_cycles == max(loop.resource_cycles, loop.recurrence_cycles)
               for loop in loops) >= 55


@for_each(range(12))
def test_intervals_are_the_least_there_are(seed):
    operations, edges = draw_loop(seed)
    operations, edges = operations[:3], [e for e in edges if max(e.source, e.sink) < 3]
    loop = pipeline_loop(operations, edges)
    assert loop.interval_cycles == shortest_interval(operations, edges, loop.interval_cycles)


def test_bounds_of_units_and_of_cycles():
    one, any_of = Operation(units=("A",)), Operation(units=UNITS)
    assert bound_resources([one] * 3 + [any_of]) == 3
    assert bound_resources([any_of] * 5) == 3
    # 6 cycles round two trips, and 2 round one
    assert bound_recurrence(3, [Edge(0, 1, 4), Edge(1, 0, 2, 2), Edge(2, 2, 2, 1)]) == 3


def test_a_value_written_before_the_block_is_waited_for():
    assert pack_block([Operation(units=("A",), reads=("r1",))], {"r1": 3}) == (3,)


def test_circles_within_a_trip_are_refused():
    with pytest.raises(KernelError, match="circle"):
        pipeline_loop([Operation(), Operation()], [Edge(0, 1, 1), Edge(1, 0, 1)])
    with pytest.raises(KernelError, match="at least one"):
        pipeline_loop([], [])
