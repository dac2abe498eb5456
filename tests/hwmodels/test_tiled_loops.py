"""Tiled loops, and cores on a banked memory, beside slow references."""

import random

import pytest

from hwmodels.board.file import load_board
from hwmodels.schedule import Task, Transfer, UnitWork
from hwmodels.schedule.cluster import share_work, wait_of_access
from hwmodels.schedule.run import run_tasks
from hwmodels.schedule.tiles import Tile, cut_rows, pipeline_tiles

NPU = load_board("gap9evk").npu
START = 30


def moved(size, way):
    return Transfer(channel=0, direction=way, port="dma", pool="L2", bytes=size)


def tile(compute, read, written):
    return Tile(units=(UnitWork(kind="NE16", macs=1, compute_cycles=compute),), start_cycles=START,
                reads=(moved(read, "in"),), writes=(moved(written, "out"),))


def transfer_cycles(*sizes):
    (run,) = run_tasks([Task(name="", transfers=tuple(
        Transfer(channel=place, direction=way, port="dma", pool="L2", bytes=size, overlaps="task")
        for place, (size, way) in enumerate(sizes)))], NPU)
    return run.core_npu_cycles


def wait(compute, *sizes):
    """Cycles of work and transfers side by side: the longer."""
    return START + max(compute, transfer_cycles(*sizes))


@pytest.mark.parametrize("seed", range(20))
def test_a_tiled_loop_is_its_recurrence(seed):
    rng = random.Random(seed)
    tiles = [(rng.randrange(200, 4000), 8 * rng.randrange(10, 900), 8 * rng.randrange(10, 900))
             for _ in range(rng.randrange(1, 6))]
    runs = run_tasks(pipeline_tiles(Task(name="t"), [tile(*one) for one in tiles], 2), NPU)
    total = START + transfer_cycles((tiles[0][1], "in")) + transfer_cycles((tiles[-1][2], "out"))
    for place, (compute, _, _) in enumerate(tiles):
        beside = ([(tiles[place - 1][2], "out")] if place else []) + (
            [(tiles[place + 1][1], "in")] if place + 1 < len(tiles) else [])
        total += wait(compute, *beside) if beside else START + compute
    # the prologue starts what it transfers, the epilogue nothing
    assert sum(run.core_npu_cycles for run in runs) == pytest.approx(total - START, rel=0.01)


def test_one_buffer_does_one_thing_at_a_time():
    tasks = pipeline_tiles(Task(name="t", host_before_cycles=5, host_after_cycles=7),
                           [tile(1000, 800, 400)] * 3, 1)
    assert [bool(task.units) for task in tasks] == [False, True, False] * 3
    assert [tasks[0].host_before_cycles, tasks[-1].host_after_cycles] == [5, 7]
    both = [sum(run.core_npu_cycles for run in run_tasks(pipeline_tiles(
        Task(name="t"), [tile(1000, 800, 400)] * 3, buffers), NPU)) for buffers in (1, 2)]
    assert both[0] > both[1]


def test_rows_of_tiles_cover_the_output_and_what_their_windows_reach():
    assert cut_rows(5, 2, 3, 1, 1, 5) == [(2, 3), (2, 4), (1, 2)]
    assert cut_rows(4, 4, 3, 2, 0, 9) == [(4, 9)]


@pytest.mark.parametrize(("cores", "banks", "often"), [
    (8, 16, 0.3), (8, 16, 0.7), (4, 16, 0.5), (8, 8, 0.5), (2, 4, 0.9)])
def test_accesses_wait_as_cores_that_are_stepped_cycle_by_cycle(cores, banks, often):
    assert wait_of_access(cores, banks, often) == pytest.approx(
        step_cores(cores, banks, often), abs=0.05, rel=0.2)


def step_cores(cores, banks, often, cycles=20_000):
    """Cycles an access waits: cores that draw a bank, and whether they access at all."""
    rng, waiting, waited, done = random.Random(0), [None] * cores, 0, 0
    for _ in range(cycles):
        waiting = [one if one is not None else rng.randrange(banks) if rng.random() < often
                   else None for one in waiting]
        for bank in {one for one in waiting if one is not None}:
            asking = [core for core, one in enumerate(waiting) if one == bank]
            waiting[rng.choice(asking)] = None
            waited, done = waited + len(asking) - 1, done + 1
    return waited / done


def test_a_core_alone_and_a_memory_without_banks_never_wait():
    assert wait_of_access(1, 16, 0.9) == wait_of_access(8, 0, 0.9) == 0
    assert (share_work(16, 8), share_work(9, 8), share_work(5, 8)) == (1, 16 / 9, 1.6)
