"""Laws every bus keeps, on random interconnects; and one that looks like a law and is none."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_buses import finish_cycles, lost_cycles
from made_cases import for_each

from hwmodels.bus.bursts import HELD, merge_streams
from hwmodels.bus.events import (
    FINISH,
    GRANT,
    ISSUE,
    WAIT,
    run_bursts,
    simulate_bus,
)
from hwmodels.bus.interconnect import ARBITRATIONS, Interconnect, Master, Slave, Stream

sys.path.insert(0, str(Path(__file__).parents[1] / "oracles"))
from bus_cases import random_interconnect, random_streams

CASES = 60


def make_case(case, **fields):
    """A random interconnect and its streams; fields replace those of all masters."""
    rng = random.Random(f"law{case}")
    bus = random_interconnect(rng)
    bus = replace(bus, masters=tuple(replace(master, **fields) for master in bus.masters))
    return rng, bus, random_streams(rng, bus)


@for_each(range(CASES))
def test_busy_cycles_are_those_of_the_bursts(case):
    """Per bank: the sum over its bursts of latency + beats x cycles as whole bus cycles; no two of
    them at once; nobody waits for a bank that is idle."""
    _, bus, streams = make_case(case)
    bursts = merge_streams(bus, streams)
    run = run_bursts(bursts)
    for bank, busy in enumerate(run.busy):
        mine = np.flatnonzero(bursts.bursts[:, 1] == bank)
        mine = mine[np.argsort(run.times[mine, GRANT])]
        held = bursts.bursts[mine, HELD]
        assert busy == held.sum()
        ends = run.times[mine, GRANT] + held
        assert np.all(run.times[mine[1:], GRANT] >= ends[:-1])
        waited = run.times[mine, WAIT] > 0
        assert np.array_equal(run.times[mine[1:], GRANT][waited[1:]], ends[:-1][waited[1:]])


@for_each(range(CASES))
def test_sharing_never_helps(case):
    """No burst of any master finishes earlier than without the others, or waits without them."""
    _, bus, streams = make_case(case)
    run = simulate_bus(bus, streams)
    for stream in streams:
        mine = run.bursts.range_of(stream.master)
        alone = simulate_bus(bus, [stream]).times
        assert np.all(run.times[mine, FINISH] >= alone[:, FINISH])
        assert not alone[:, WAIT].any()


@for_each(range(CASES))
def test_blocking_masters_expose_every_wait(case):
    """One clock, one in flight, think time from the finish: exposed = sum of waits."""
    _, bus, streams = make_case(case, outstanding=1, pacing="finish", clock_hz=None)
    run = simulate_bus(bus, streams)
    for stream in streams:
        assert lost_cycles(run, streams, stream.master) == run.wait_cycles(stream.master).sum()


@for_each(range(CASES))
def test_a_dma_on_another_bank_costs_nothing(case):
    rng, bus, streams = make_case(case)
    quiet = simulate_bus(bus, streams)
    index = rng.randrange(len(bus.slaves))
    slave = bus.slaves[index]
    wider = replace(
        bus, masters=(Master(name="dma", outstanding=4), *bus.masters),
        slaves=(*bus.slaves[:index], replace(slave, banks=slave.banks + 1),
                *bus.slaves[index + 1:]))
    dma = Stream(master="dma", slave=slave.name, bank=slave.banks, beats=8, count=200)
    noisy = simulate_bus(wider, [*streams, dma])
    for master in bus.masters:
        assert np.array_equal(finish_cycles(noisy, master.name), finish_cycles(quiet, master.name))
        assert not noisy.wait_cycles("dma").any()


@for_each(range(CASES))
def test_a_second_master_never_speeds_up_the_first(case):
    """Of two masters, whatever the arbitration; of three it is no law, see below."""
    _, bus, streams = make_case(case)
    by_name = {stream.master: stream for stream in streams}
    names = [master.name for master in bus.masters][:2]
    pair = replace(bus, masters=bus.masters[:2])
    both = simulate_bus(pair, [by_name[name] for name in names])
    for name in names:
        alone = simulate_bus(pair, [by_name[name]])
        assert np.all(finish_cycles(both, name) >= finish_cycles(alone, name))


@pytest.mark.parametrize("arbitration", ARBITRATIONS)
def test_a_third_master_may_speed_up_the_second(arbitration):
    """Not a law, as in any scheduling without preemption (Graham's anomalies): c holds x while a
    wants it, so a comes late to y, and b, which had waited out a's long burst there, is first."""
    bus = Interconnect(clock_hz=1e8, arbitration=arbitration, slaves=(Slave(name="x"),
                                                                      Slave(name="y")),
                       masters=tuple(Master(name=name) for name in "abc"))
    a = Stream(master="a", slave=np.array([0, 1]), beats=np.array([1, 10]),
               think_cycles=np.array([1, 0]))
    b = Stream(master="b", slave="y", think_cycles=3, count=1)
    c = Stream(master="c", slave="x", beats=5, count=1)
    # Alone with a: x in [1, 2), y in [2, 12), then b: 13. With c: x is free at 5, b at 3.
    assert finish_cycles(simulate_bus(bus, [a, b]), "b").tolist() == [13]
    assert finish_cycles(simulate_bus(bus, [a, b, c]), "b").tolist() == [4]


@for_each(range(CASES))
def test_time_scales_with_all_clocks(case):
    """Every clock doubled: the same cycles everywhere."""
    _, bus, streams = make_case(case)
    double = replace(
        bus, clock_hz=2 * bus.clock_hz,
        masters=tuple(replace(part, clock_hz=part.clock_hz and 2 * part.clock_hz)
                      for part in bus.masters),
        slaves=tuple(replace(part, clock_hz=part.clock_hz and 2 * part.clock_hz)
                     for part in bus.slaves))
    assert np.array_equal(simulate_bus(bus, streams).times, simulate_bus(double, streams).times)


@for_each(range(CASES))
def test_a_faster_core_alone_is_never_slower(case):
    """Its clock doubled, everything else kept: every edge is still one, so no burst is later."""
    _, bus, streams = make_case(case)
    master = replace(bus.masters[0], clock_hz=bus.masters[0].clock_hz or bus.clock_hz)
    stream = next(part for part in streams if part.master == master.name)
    finishes = []
    for factor in (1, 2):
        clock_hz = factor * master.clock_hz
        faster = replace(bus, masters=(replace(master, clock_hz=clock_hz),))
        finishes.append(finish_cycles(simulate_bus(faster, [stream]), master.name) / clock_hz)
    assert np.all(finishes[1] <= finishes[0] * (1 + 1e-12))


@for_each(range(CASES))
def test_waits_are_bounded_by_the_arbitration(case):
    """Blocking masters. Fixed: the first waits for at most one burst of others. Round robin:
    anyone waits for at most one burst of each of the others."""
    _, bus, streams = make_case(case, outstanding=1)
    for arbitration in ("fixed", "round_robin"):
        bursts = merge_streams(replace(bus, arbitration=arbitration), streams)
        run = run_bursts(bursts)
        longest = [bursts.bursts[bursts.range_of(master.name), 2].max(initial=0)
                   for master in bus.masters]
        for row, master in enumerate(bus.masters):
            others = longest[:row] + longest[row + 1:]
            bound = max(others, default=0) if arbitration == "fixed" else sum(others)
            if arbitration != "fixed" or row == 0:
                assert run.times[bursts.range_of(master.name), WAIT].max() <= bound


@for_each(range(CASES))
def test_bursts_of_a_master_stay_in_order(case):
    _, bus, streams = make_case(case)
    run = simulate_bus(bus, streams)
    for master in bus.masters:
        times = run.times[run.bursts.range_of(master.name)]
        assert np.all(np.diff(times[:, [ISSUE, GRANT, FINISH]], axis=0) >= 0)
        late = times[master.outstanding:, ISSUE] - times[:-master.outstanding, FINISH]
        assert np.all(late >= 0)  # never more in flight than may be
