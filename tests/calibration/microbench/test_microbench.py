"""Probes and what is read from them: made costs, whose truth is written beside them."""

import json
from dataclasses import replace

import pytest

from calibration.errors import MeasurementError
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from calibration.microbench.machine import Level, describe_machine, find_levels
from calibration.microbench.probes import (
    PROBES_KEY,
    RUNTIME,
    Probe,
    pack_probes,
    read_power,
    read_probes,
    unpack_probes,
)


def chase(extent, stride=8, few=8, many=16, group="chase", memory="flash"):
    return Probe(group=group, memory=memory, extent_bytes=extent, stride_bytes=stride, few=few,
                 many=many)


def measure(costs, runs=3, around=1000, counter="cpu_cycles", kind="measured"):
    """A measurement in which each probe costs what is said per unit, and `around` besides."""
    probes = tuple(costs)
    samples = [Sample(run=run, layer=1 + 2 * number + place, counter=counter, clock="cpu",
                      unit="cycles", value=around + run * 5 + laps * probe.units * costs[probe])
               for run in range(runs) for number, probe in enumerate(probes)
               for place, laps in enumerate((probe.few, probe.many))]
    header = Header(kind=kind, model=RUNTIME, board="b", runtime=RUNTIME, source="test",
                    temperature="warm", environment=((PROBES_KEY, pack_probes(probes)),))
    return Measurement(header=header, samples=tuple(samples))


def test_what_stands_around_the_laps_cancels():
    probe = chase(1024)
    (reading,) = read_probes(measure({probe: 7.25}, around=123456))
    assert reading.probe == probe and reading.cost == pytest.approx(7.25)


def test_the_least_disturbed_run_counts():
    probe = chase(1024)
    made = measure({probe: 7.0})
    late = [Sample(run=9, layer=layer, counter="cpu_cycles", clock="cpu", unit="cycles",
                   value=10**7) for layer in (1, 2)]
    spoilt = Measurement(header=made.header, samples=(*made.samples, *late))
    (reading,) = read_probes(spoilt)
    assert reading.cost == pytest.approx(7.0) and reading.sd > 100


@pytest.mark.parametrize("costs, levels", [
    ({64: 10, 128: 10, 256: 10}, [(256, 10)]),
    ({64: 10, 128: 10, 256: 15, 512: 15}, [(128, 10), (512, 15)]),
    # part of 256 stays under random replacement: it belongs to no level
    ({64: 10, 128: 10, 256: 13, 512: 18, 1024: 18}, [(128, 10), (1024, 18)]),
    ({4096: 3, 8192: 3, 16384: 12, 32768: 12, 65536: 90}, [(8192, 3), (32768, 12), (65536, 90)]),
    ({64: 10, 128: 10.2, 256: 9.9}, [(256, 10)])])
def test_levels(costs, levels):
    assert find_levels(costs) == tuple(Level(size_bytes=size, cost=cost) for size, cost in levels)


def made_cache(size, line, ways, hit=8.0, miss=20.0):
    """Costs of an LRU cache, by arithmetic: a cyclic walk hits always, or once per line."""
    costs = {}
    for extent in (64 << power for power in range(11)):
        costs[chase(extent)] = hit if extent <= size else hit + miss * min(1, 8 / line)
    for stride in (16, 32, 64, 128):
        costs[chase(65536, stride)] = hit if size >= 65536 else hit + miss * min(1, stride / line)
    for lines in (1, 2, 3, 4, 5, 8, 9, 16, 17):
        probe = chase(lines * 16384, 16384, group="conflict")
        costs[probe] = hit if lines <= ways else hit + miss
    return costs


@pytest.mark.parametrize("size, line, ways", [(8192, 16, 2), (16384, 32, 4), (4096, 64, 1),
                                              (2048, 8, 8)])
def test_geometry_is_found(size, line, ways):
    (memory,) = describe_machine(measure(made_cache(size, line, ways))).memories
    assert memory.levels[0].size_bytes == size and memory.ways == ways
    assert memory.line_bytes == line and memory.miss_cost == pytest.approx(20.0)


def test_what_cannot_be_told_is_none():
    costs = made_cache(1 << 30, 32, 4)
    (memory,) = describe_machine(measure({p: c for p, c in costs.items()
                                          if p.group == "chase"})).memories
    assert (memory.line_bytes, memory.ways, memory.read_bytes) == (None, None, None)
    assert len(memory.levels) == 1
    # more ways than were tried
    (memory,) = describe_machine(measure(made_cache(8192, 16, 64))).memories
    assert memory.ways is None and memory.ways_tried == 17


def test_loops_are_taken_off_arithmetic_and_control():
    mac = Probe(group="mac", dtype="int8", code="x", macs=128, few=16, many=272)
    found = describe_machine(measure({
        mac: (64 + 4) / 128, Probe(group="loop", few=2, many=8): 4.0,
        Probe(group="branch", few=2, many=8): (8 * 3 + 4) / 8,
        Probe(group="call", few=2, many=8): 4 + 9.0}))
    assert found.macs == {"int8": pytest.approx(2.0)}
    assert found.branch == pytest.approx(3.0) and found.call == pytest.approx(9.0)


def test_rates_are_those_of_the_widest_extent_streamed():
    read, write = (Probe(group=group, memory="flash", extent_bytes=extent)
                   for group, extent in (("read", 4096), ("write", 4096)))
    costs = {chase(64): 3.0, replace(read, extent_bytes=512): 0.1, read: 0.5, write: 0.25,
             replace(write, extent_bytes=1024): 2.0, replace(read, memory="ram"): 9.0,
             chase(64, memory="ram"): 1.0}
    flash, ram = describe_machine(measure(costs)).memories
    assert (flash.name, flash.read_bytes, flash.write_bytes) == ("flash", 2.0, 4.0)
    assert (ram.name, ram.read_bytes, ram.write_bytes) == ("ram", 1 / 9, None)
    nothing = describe_machine(measure({chase(64): 3.0, read: 0.0})).memories[0]
    assert nothing.read_bytes is None  # compiled to nothing, so no rate


@pytest.mark.parametrize(("held", "found"), [(2048, 2048), (2560, 4096)])
def test_code_is_held_by_a_cache_of_a_power_of_two(held, found):
    """A byte costs a quarter while a slide fits, and a half beyond: a step a word would not be."""
    sizes = sorted({512, 1024, held, 8192, 16384})
    costs = {Probe(group="fetch", memory="flash", extent_bytes=size):
             0.25 if size <= held else 0.5 for size in sizes}
    machine = describe_machine(measure(costs))
    (code,) = machine.code
    assert machine.memories == () and code.name == "flash"
    assert code.levels == (Level(size_bytes=found, cost=0.25), Level(size_bytes=16384, cost=0.5))
    assert (code.miss_cost, code.read_bytes, code.write_bytes) == (0.25, 2.0, None)
    assert (code.line_bytes, code.ways, code.ways_tried) == (None, None, 0)


@pytest.mark.parametrize(("counter", "levels"), [("cpu_cycles", 2), ("timer_ticks", 1)])
def test_a_timer_is_believed_larger_steps_only(counter, levels):
    """A tenth more is a level by cycles; by a timer of a busy machine a quarter would be."""
    costs = {chase(64): 10.0, chase(128): 10.0, chase(256): 11.0, chase(512): 11.0}
    (memory,) = describe_machine(measure(costs, counter=counter)).memories
    assert len(memory.levels) == levels


@pytest.mark.parametrize(("miss", "line_bytes"), [(0.2, None), (0.35, None), (0.45, 32)])
def test_a_miss_is_noticed_from_a_share_of_a_hit_and_of_a_count(miss, line_bytes):
    """Of a hit of 20 cycles the fiftieth, 0.4, must be waited for; of none less than 0.3."""
    costs = made_cache(8192, 32, 4, hit=20.0, miss=miss)
    (memory,) = describe_machine(measure(costs)).memories
    assert memory.line_bytes == line_bytes
    assert memory.miss_cost == pytest.approx(miss if line_bytes else 0.0)


def test_without_an_empty_loop_control_is_not_known_and_arithmetic_has_it_in():
    mac = Probe(group="mac", dtype="int8", code="x", macs=128)
    dot = Probe(group="dot", dtype="int8", macs=64)
    found = describe_machine(measure({
        mac: 0.5, dot: 0.25, replace(mac, dtype="int16"): 5e-4, Probe(group="branch"): 3.0,
        Probe(group="call"): 9.0}))
    assert (found.branch, found.call) == (None, None)
    assert found.macs == {"int8": pytest.approx(2.0)}  # int16 was compiled to nothing
    assert found.fed_macs == pytest.approx(4.0)
    alone = describe_machine(measure({Probe(group="loop"): 4.0}, kind="simulated"))
    assert (alone.branch, alone.call, alone.fed_macs, alone.macs) == (None, None, None, {})
    assert alone.kind == "simulated"


@pytest.mark.parametrize(("probe", "name", "units"), [
    (chase(4096, 32, memory="ram"), "chase ram 4096/32", 128),
    (Probe(group="read", memory="ram", extent_bytes=4096), "read ram 4096", 4096),
    (Probe(group="mac", dtype="int8", macs=128), "mac int8", 128),
    (Probe(group="branch"), "branch", 8), (Probe(group="call"), "call", 1)])
def test_a_probe_is_called_by_what_it_repeats_and_counts_it(probe, name, units):
    assert (probe.name, probe.units) == (name, units)


@pytest.mark.parametrize(("settings", "said"), [
    ({"group": "tea"}, "probe group 'tea'; accepted: chase, shuffled, conflict"),
    ({"group": "loop", "few": 0}, "loop: 0 and 8 laps; accepted: few above 0, many above few"),
    ({"group": "loop", "few": 8}, "loop: 8 and 8 laps")])
def test_a_probe_that_is_none_is_refused(settings, said):
    with pytest.raises(MeasurementError, match=said):
        Probe(**settings)


def test_the_counter_that_is_there_is_used():
    assert describe_machine(measure({chase(64): 3.0}, counter="instructions")).counter \
        == "instructions"
    with pytest.raises(MeasurementError, match="counts neither of cpu_cycles"):
        describe_machine(measure({chase(64): 3.0}, counter="energy"))


def test_probes_survive_their_text():
    probes = (chase(4096), Probe(group="mac", dtype="int8", code="smlad r4, r0, r1, r4", macs=64))
    assert unpack_probes(pack_probes(probes), "x") == probes


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"group": "tea"}]', '[{"grp": "chase"}]',
                                  '[{"group": "loop", "few": 9}]',
                                  '[{"group": "loop", "few": "a"}]'])
def test_other_texts_are_refused(text):
    with pytest.raises(MeasurementError):
        unpack_probes(text, "x")


def test_other_measurements_are_refused():
    made = measure({chase(64): 3.0})
    with pytest.raises(MeasurementError, match="was not run to its end"):
        read_probes(Measurement(header=made.header, samples=made.samples[:1]))
    header = Header(kind="measured", model="kws", board="b", runtime="firmware", source="test",
                    temperature="warm")
    with pytest.raises(MeasurementError, match="holds no micro-benchmarks"):
        read_probes(Measurement(header=header))
    assert json.loads(dict(made.header.environment)[PROBES_KEY])[0]["extent_bytes"] == 64


def test_power_of_a_step_is_what_was_planted():
    """Energies of made layers: 30 mW while one thing is repeated, and edges that cancel."""
    probe = chase(1024)
    made = measure({probe: 7.0})
    header = replace(made.header, clocks_hz=(("cpu", 100e6),))
    timed = Measurement(header=header, samples=made.samples)
    around_uj = 4.0
    samples = [Sample(run=0, layer=layer, counter=counter, unit="uj", value=value)
               for layer, laps in ((1, probe.few), (2, probe.many))
               for counter, value in (
                   ("energy", around_uj + 30e-3 * 7.0 * probe.units * laps / 100e6 * 1e6),
                   ("energy_sd", 0.3))]
    (step,) = read_power(timed, Measurement(header=header, samples=tuple(samples)))
    assert step.power_mw == pytest.approx(30.0)
    time_us = 7.0 * probe.units * (probe.many - probe.few) / 100
    assert step.sd_mw == pytest.approx(0.3 * 2**0.5 / time_us * 1e3)
    with pytest.raises(MeasurementError, match="no energy of probe"):
        read_power(timed, Measurement(header=header))
    with pytest.raises(MeasurementError, match="of no known clock"):
        read_power(made, made)
