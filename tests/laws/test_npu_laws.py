"""Laws of the stream-engine model on random epochs and machines."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_tasks import run_task

from hwmodels.schedule import Task, Transfer, UnitWork
from hwmodels.schedule.traffic import run_transfers
from twin.runtimes.neural_art.profile import describe_runs

sys.path.append(str(Path(__file__).parents[1] / "oracles"))
import npu_cases

SEEDS = range(200)


def cases():
    for seed in SEEDS:
        rng = random.Random(seed)
        yield npu_cases.make_npu(rng), npu_cases.make_epoch(rng)


def test_exposed_cycles_sum_to_the_core_exactly():
    for npu, epoch in cases():
        run = run_task(epoch, npu)
        assert all(isinstance(item.npu_cycles, int) and item.npu_cycles > 0
                   for item in run.exposed)
        assert sum(item.npu_cycles for item in run.exposed) == run.core_npu_cycles
        timed = [line for line in run.counts.lines if line.event != "epoch_host_cycle"]
        assert sum(line.exposed for line in timed) == run.core_npu_cycles


def test_an_epoch_is_never_shorter_than_any_of_its_resources():
    for npu, epoch in cases():
        run = run_task(epoch, npu)
        body = run.core_npu_cycles - npu.start_cycles
        assert body >= run.compute_cycles
        lanes, ports = {}, {}
        for stream in run_transfers(epoch.transfers, npu):
            assert body >= stream.fetch_cycles - 1
            way = stream.transfer.direction
            lane = stream.port.name, way
            lanes[lane] = lanes.get(lane, 0) + stream.channel_cycles
            port = (stream.pool.name, "" if stream.pool.shared else way,
                    0 if stream.pool.serialises else stream.transfer.channel)
            ports[port] = ports.get(port, 0) + stream.pool_cycles
        assert body >= max([*lanes.values(), *ports.values()]) - 1


def test_nor_longer_than_all_of_them_one_after_another():
    for npu, epoch in cases():
        run = run_task(epoch, npu)
        streams = run_transfers(epoch.transfers, npu)
        alone = sum(max(s.fetch_cycles, s.hand_cycles) + s.latency_cycles for s in streams)
        units = sum((work.compute_cycles or 0) + npu.unit(work.kind).fill_cycles
                    for work in epoch.units)
        assert run.core_npu_cycles <= npu.start_cycles + 2 * (alone + units) + 1000


def test_bytes_are_conserved_from_engines_to_interfaces_and_pools():
    for npu, epoch in cases():
        run = run_task(epoch, npu)
        for way, word in (("in", "read"), ("out", "write")):
            (told,) = describe_runs([run])
            engines = [one for one in told["engines"] if one["direction"] == way]
            assert sum(one["bytes"] for one in engines) == sum(
                part[f"{word}_bytes"] for part in told["busif"])
            for part in told["busif"]:
                bursts = part[f"{word}_bursts"]
                beats = sum(n * length for n, length in zip(bursts, (1, 2, 4, 8), strict=True))
                assert 8 * beats == part[f"{word}_bytes"]
            wanted = sum(one.bytes * one.repeats for one in epoch.transfers if one.direction == way)
            assert wanted == sum(getattr(pool, f"{word}_bytes") for pool in run.pools)


def test_every_line_a_cached_walk_touches_is_a_hit_or_a_miss():
    for npu, epoch in cases():
        on = replace(npu, cache=replace(npu.cache, enabled=True))
        off = replace(npu, cache=replace(npu.cache, enabled=False))
        (told,) = describe_runs([run_task(epoch, off)])
        assert (told["npu_cache"]["read_hit"], told["npu_cache"]["read_miss"]) == (0, 0)
        touched = 0
        for one in epoch.transfers:
            if one.pool == "flash":
                run = one.bytes if one.pattern == "contiguous" else one.run_bytes
                touched += -(-one.bytes // run) * -(-run // 64) * one.repeats
        (told,) = describe_runs([run_task(epoch, on)])
        assert told["npu_cache"]["read_hit"] + told["npu_cache"]["read_miss"] == touched


def chain(rng, scale=1):
    """One stream in, one unit, one stream out: nothing to arbitrate."""
    return Task(name="chain", units=(UnitWork(kind="CONV_ACC",
                                               compute_cycles=scale * rng.randrange(1, 9000)),),
                 transfers=(npu_cases.make_engine(rng, 0, "in"),
                          replace(npu_cases.make_engine(rng, 1, "out"), pool="ram0")))


@pytest.mark.parametrize("faster", [
    lambda npu: replace(npu, pools=tuple(
        replace(pool, clock_ratio=pool.clock_ratio / 2) for pool in npu.pools)),
    lambda npu: replace(npu, interfaces=tuple(
        replace(part, write_gap_cycles=0.0) for part in npu.interfaces)),
    lambda npu: replace(npu, engine_buffer_bytes=8 * npu.engine_buffer_bytes),
    lambda npu: replace(npu, engine_outstanding=2 * npu.engine_outstanding),
], ids=["pool clock", "write gap", "buffers", "outstanding"])
def test_a_better_part_never_slows_a_single_chain(faster):
    for seed in SEEDS:
        rng = random.Random(seed)
        npu, epoch = npu_cases.make_npu(rng), chain(rng)
        # One cycle: shares of steps are rounded to ticks.
        assert (run_task(epoch, faster(npu)).core_npu_cycles
                <= run_task(epoch, npu).core_npu_cycles + 1)


def test_time_scales_with_every_clock_at_once():
    """Twice as slow a pool, rate, latency and unit takes twice as long, but for the start."""
    rng = random.Random(5)
    for _ in range(50):
        npu = replace(npu_cases.make_npu(rng), start_cycles=0)
        slow = replace(
            npu, engine_bytes_per_cycle=npu.engine_bytes_per_cycle / 2,
            units=tuple(replace(unit, fill_cycles=2 * unit.fill_cycles) for unit in npu.units),
            pools=tuple(replace(pool, clock_ratio=2 * pool.clock_ratio) for pool in npu.pools))
        # The interface keeps its beat of one cycle: choose walks it never limits.
        epoch = Task(name="chain", transfers=(
            Transfer(channel=0, direction="in", port="busif0", pool="flash", bytes=4096),
            Transfer(channel=1, direction="out", port="busif1", pool="ram0", bytes=64)),
            units=(UnitWork(kind="CONV_ACC", compute_cycles=100),))
        double = replace(epoch, units=(UnitWork(kind="CONV_ACC", compute_cycles=200),))
        assert run_task(double, slow).core_npu_cycles == pytest.approx(
            2 * run_task(epoch, npu).core_npu_cycles, abs=4)


def test_running_twice_gives_the_same():
    for npu, epoch in cases():
        assert run_task(epoch, npu) == run_task(epoch, npu)
