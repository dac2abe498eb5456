"""More load never costs less: over rates in fine steps, boards, networks and arbiters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_graphs import separable

from hwmodels.board.file import list_boards, load_board
from hwmodels.bus.bursts import merge_streams
from hwmodels.bus.contention import Load, check_loads
from hwmodels.bus.events import run_bursts, simulate_bus
from hwmodels.bus.interconnect import Interconnect, Master, Slave, Stream
from hwmodels.bus.waiting import Demand, expect_waits
from hwmodels.errors import BoardError
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict

CORE_BURSTS = 2000
CASES = [(cycles, load, think) for cycles, load in ((1, 4), (4, 4), (8, 4), (1, 16), (16, 8))
         for think in (0, 1, 2, 3, 5, 9, 30)]
"""Bus cycles of the core's bursts, of the load's, and between two of the core's."""


def make_bus(arbitration="round_robin", first="core"):
    names = ("core", "load") if first == "core" else ("load", "core")
    return Interconnect(clock_hz=1e8, slaves=(Slave(name="ram"),), arbitration=arbitration,
                        masters=tuple(Master(name=name, pacing="clock" if name == "load"
                                             else "finish") for name in names))


def run_core(bus, cycles, think):
    core = Stream(master="core", slave="ram", beats=cycles, think_cycles=think, count=CORE_BURSTS)
    return core, simulate_bus(bus, [core])


def run_load(bus, core, load, rate, seed):
    """Mean wait beside a load whose bursts come within half a period of even distances."""
    count = int((CORE_BURSTS * (int(core.think_cycles) + int(core.beats) + load)) * rate) + 1
    shift = np.random.default_rng(seed).uniform(-0.5, 0.5, count)
    due = np.maximum(0, np.floor((np.arange(count) + 1 + shift) / rate)).astype(np.int64)
    stream = Stream(master="load", slave="ram", beats=load, think_cycles=np.sort(due), count=count)
    return simulate_bus(bus, [core, stream]).wait_cycles("core").mean()


@pytest.mark.parametrize("arbitration", ["round_robin", "fixed"])
@pytest.mark.parametrize("first", ["core", "load"])
def test_a_higher_rate_never_waits_less(arbitration, first):
    """In fine steps up to all the bank can serve, for gaps of any length."""
    steps, think = 150, np.random.default_rng(1).integers(0, 40, CORE_BURSTS)
    for cycles, load, _ in CASES[::7]:
        _, alone = run_core(make_bus(arbitration, first), cycles, think)
        ahead = first == "load"
        one = Demand(bursts_per_cycle=0.0, held_cycles=load, shares=((0, 1.0),),
                     first=None if arbitration == "round_robin" else ahead)
        waits = np.array([expect_waits(alone, "core", [
            replace(one, bursts_per_cycle=step / steps / load)]) for step in range(steps + 1)])
        assert not waits[0].any() and np.all(np.diff(waits, axis=0) >= -1e-12)
        if arbitration != "fixed" or not ahead:
            assert waits.max() <= load  # of the load one burst is waited for, at most


@pytest.mark.parametrize(("cycles", "load", "think"), CASES)
def test_the_expected_wait_is_the_mean_of_runs(cycles, load, think):
    """Of runs whose load comes irregularly, where both together leave the bank time: else they
    keep step, and what a gap of T cycles waits is fixed by T alone."""
    bus = make_bus()
    core, alone = run_core(bus, cycles, think)
    for share in (0.1, 0.3, 0.5):
        if think >= load and cycles / (cycles + think) + share > 0.9:
            continue
        demand = Demand(bursts_per_cycle=share / load, held_cycles=load, shares=((0, 1.0),))
        expected = expect_waits(alone, "core", [demand]).mean()
        found = np.mean([run_load(bus, core, load, share / load, seed) for seed in range(6)])
        assert expected == pytest.approx(found, rel=0.4, abs=0.03)


@pytest.mark.parametrize("phase", range(8))
def test_in_every_phase_the_kernel_equals_the_specification(phase):
    pytest.importorskip("simpy", reason="the specification needs the extra 'test'")
    from benchmarks.oracles.bus import ReferenceBus

    bus = make_bus()
    core = Stream(master="core", slave="ram", beats=2, think_cycles=3, count=40)
    due = phase + 8 * np.arange(40)
    streams = [core, Stream(master="load", slave="ram", beats=4, count=40, think_cycles=due)]
    run = run_bursts(merge_streams(bus, streams))
    assert np.array_equal(run.times, ReferenceBus(bus, streams).run())


SMALL = separable("small", (8, 8), (8, 16), 64)


def loaded_memories():
    """Every memory another master of a board reaches."""
    for name in list_boards():
        board = load_board(name)
        for dma in board.dma[:1]:
            for memory in board.memories:
                if memory.bus == dma.bus and memory.role in ("sram", "flash"):
                    yield SMALL, name, dma.name, memory.name, memory.role
    yield "sww", "nucleo_h7a3zi_q", "mdma", "sram", "sram"
    yield "sww", "nucleo_u575zi_q", "gpdma1", "sram", "sram"


@pytest.mark.parametrize(("network", "name", "master", "memory", "role"), [*loaded_memories()])
def test_more_megabytes_a_second_never_cost_less(network, name, master, memory, role):
    board = load_board(name)
    most = highest_rate(board, master, memory)
    place = {"weights": memory} if role == "flash" else {"arena": memory}
    deployment = deploy(network, board, runtime="cmsis-nn", **place)
    path = f"load.{master}"
    cycles = [predict(deployment).cycles]
    cycles += [predict(deployment.replace({
        f"{path}.memory": memory, f"{path}.bytes_per_second": most * step / 12})).cycles
        for step in range(1, 12)]
    assert cycles == sorted(cycles)
    assert cycles[-1] > cycles[0]


def highest_rate(board, master, memory):
    """What the memory can serve, by the refusal of a rate that is too high."""
    low, high = 1e3, 1e12
    while high / low > 1.001:
        rate = (low * high) ** 0.5
        try:
            check_loads(board, [Load(master=master, memory=memory, bytes_per_second=rate)])
            low = rate
        except BoardError:
            high = rate
    return low
