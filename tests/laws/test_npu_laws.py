"""Laws of the stream-engine model on random epochs and machines."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hwmodels.npu import Epoch, StreamEngine, UnitWork
from hwmodels.npu.run import run_epoch
from hwmodels.npu.streams import form_streams

sys.path.append(str(Path(__file__).parents[1] / "oracles"))
import npu_cases

SEEDS = range(200)


def cases():
    for seed in SEEDS:
        rng = random.Random(seed)
        yield npu_cases.make_npu(rng), npu_cases.make_epoch(rng)


def test_exposed_cycles_sum_to_the_core_exactly():
    for npu, epoch in cases():
        run = run_epoch(epoch, npu)
        assert all(isinstance(item.npu_cycles, int) and item.npu_cycles > 0
                   for item in run.exposed)
        assert sum(item.npu_cycles for item in run.exposed) == run.core_npu_cycles
        timed = [line for line in run.counts.lines if line.event != "epoch_host_cycle"]
        assert sum(line.exposed for line in timed) == run.core_npu_cycles


def test_an_epoch_is_never_shorter_than_any_of_its_resources():
    for npu, epoch in cases():
        run = run_epoch(epoch, npu)
        body = run.core_npu_cycles - npu.start_cycles
        assert body >= run.compute_cycles
        lanes, ports = {}, {}
        for stream in form_streams(epoch.engines, npu):
            assert body >= stream.fetch_cycles - 1
            way = stream.engine.direction
            lane = stream.interface.name, way
            lanes[lane] = lanes.get(lane, 0) + stream.channel_cycles
            port = (stream.pool.name, "" if stream.pool.shared else way,
                    0 if stream.pool.serialises else stream.engine.index)
            ports[port] = ports.get(port, 0) + stream.pool_cycles
        assert body >= max([*lanes.values(), *ports.values()]) - 1


def test_nor_longer_than_all_of_them_one_after_another():
    for npu, epoch in cases():
        run = run_epoch(epoch, npu)
        streams = form_streams(epoch.engines, npu)
        alone = sum(max(s.fetch_cycles, s.hand_cycles) + s.latency_cycles for s in streams)
        units = sum((work.compute_cycles or 0) + npu.unit(work.kind).fill_cycles
                    for work in epoch.units)
        assert run.core_npu_cycles <= npu.start_cycles + 2 * (alone + units) + 1000


def test_bytes_are_conserved_from_engines_to_interfaces_and_pools():
    for npu, epoch in cases():
        run = run_epoch(epoch, npu)
        for way, word in (("in", "read"), ("out", "write")):
            engines = [one for one in run.engines if one.direction == way]
            assert sum(one.bytes for one in engines) == sum(
                getattr(part, f"{word}_bytes") for part in run.interfaces)
            for part in run.interfaces:
                bursts = getattr(part, f"{word}_bursts")
                beats = sum(n * length for n, length in zip(bursts, (1, 2, 4, 8), strict=True))
                assert 8 * beats == getattr(part, f"{word}_bytes")
            wanted = sum(one.bytes * one.repeats for one in epoch.engines if one.direction == way)
            assert wanted == sum(getattr(pool, f"{word}_bytes") for pool in run.pools)


def test_every_line_a_cached_walk_touches_is_a_hit_or_a_miss():
    for npu, epoch in cases():
        on = replace(npu, cache=replace(npu.cache, enabled=True))
        off = replace(npu, cache=replace(npu.cache, enabled=False))
        counters = run_epoch(epoch, off).cache
        assert (counters.read_hit, counters.read_miss) == (0, 0)
        touched = 0
        for one in epoch.engines:
            if one.pool == "flash":
                run = one.bytes if one.pattern == "contiguous" else one.run_bytes
                touched += -(-one.bytes // run) * -(-run // 64) * one.repeats
        counters = run_epoch(epoch, on).cache
        assert counters.read_hit + counters.read_miss == touched


def chain(rng, scale=1):
    """One stream in, one unit, one stream out: nothing to arbitrate."""
    return Epoch(name="chain", units=(UnitWork(kind="CONV_ACC",
                                               compute_cycles=scale * rng.randrange(1, 9000)),),
                 engines=(npu_cases.make_engine(rng, 0, "in"),
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
        assert (run_epoch(epoch, faster(npu)).core_npu_cycles
                <= run_epoch(epoch, npu).core_npu_cycles + 1)


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
        epoch = Epoch(name="chain", engines=(
            StreamEngine(index=0, direction="in", interface="busif0", pool="flash", bytes=4096),
            StreamEngine(index=1, direction="out", interface="busif1", pool="ram0", bytes=64)),
            units=(UnitWork(kind="CONV_ACC", compute_cycles=100),))
        double = replace(epoch, units=(UnitWork(kind="CONV_ACC", compute_cycles=200),))
        assert run_epoch(double, slow).core_npu_cycles == pytest.approx(
            2 * run_epoch(epoch, npu).core_npu_cycles, abs=4)


def test_running_twice_gives_the_same():
    for npu, epoch in cases():
        assert run_epoch(epoch, npu) == run_epoch(epoch, npu)
