"""The bus kernel against the SimPy specification, on random cases."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from bus_cases import random_interconnect, random_streams

from hwmodels.bus.bursts import merge_streams
from hwmodels.bus.events import run_bursts
from hwmodels.bus.interconnect import ARBITRATIONS, Interconnect, Master, Slave, Stream
from hwmodels.errors import BoardError
from hwmodels.kernels import bus_events

CASES = 30
"""Per arbitration, so 60 together."""


def cases(arbitration, bursts=25):
    for case in range(CASES):
        rng = random.Random(f"{arbitration}{case}")
        interconnect = random_interconnect(rng, arbitration)
        yield case, interconnect, random_streams(rng, interconnect, bursts)


@pytest.mark.parametrize("arbitration", ARBITRATIONS)
def test_equals_the_simpy_specification(arbitration):
    """Issue, grant, finish and wait of every burst."""
    pytest.importorskip("simpy", reason="the specification needs the extra 'test'")
    from benchmarks.oracles.bus import ReferenceBus

    waited = 0
    for case, interconnect, streams in cases(arbitration):
        run = run_bursts(merge_streams(interconnect, streams))
        assert np.array_equal(run.times, ReferenceBus(interconnect, streams).run()), case
        waited += np.count_nonzero(run.times[:, 3])
    assert waited > 250


@pytest.mark.parametrize("arbitration", ARBITRATIONS)
@pytest.mark.parametrize("masters", [1, 2, 15])
def test_any_number_of_masters_equals_the_specification(masters, arbitration):
    """One and two go ways of their own in the loop; more than fifteen have no room in its keys."""
    pytest.importorskip("simpy", reason="the specification needs the extra 'test'")
    from benchmarks.oracles.bus import ReferenceBus

    for outstanding in (1, 3):
        rng = random.Random(f"{masters} {arbitration} {outstanding}")
        drawn = random_interconnect(rng, arbitration)
        interconnect = replace(drawn, masters=tuple(
            Master(name=f"m{row}", outstanding=outstanding,
                   clock_hz=rng.choice((None, 100e6, 280e6))) for row in range(masters)))
        streams = random_streams(rng, interconnect, 40)
        run = run_bursts(merge_streams(interconnect, streams))
        assert np.array_equal(run.times, ReferenceBus(interconnect, streams).run())
    with pytest.raises(BoardError, match="16 masters; accepted: 15"):
        replace(drawn, masters=tuple(Master(name=f"m{row}") for row in range(16)))


@pytest.mark.parametrize("arbitration", ARBITRATIONS)
def test_compiled_equals_interpreted(arbitration, monkeypatch):
    for _, interconnect, streams in itertools.islice(cases(arbitration), 6):
        bursts = merge_streams(interconnect, streams)
        run = run_bursts(bursts)
        with monkeypatch.context() as patched:
            patched.setattr(bus_events, "grant_bursts", bus_events.grant_bursts.py_func)
            other = run_bursts(bursts)
        assert np.array_equal(run.times, other.times) and np.array_equal(run.busy, other.busy)


@pytest.mark.parametrize("outstanding", [1, 4])
def test_long_thinking_at_odd_clocks_equals_the_specification(outstanding):
    pytest.importorskip("simpy", reason="the specification needs the extra 'test'")
    from benchmarks.oracles.bus import ReferenceBus

    rng = random.Random(outstanding)
    masters = tuple(Master(name=name, clock_hz=hertz, outstanding=outstanding)
                    for name, hertz in (("a", 33e6), ("b", 280e6), ("c", 7e6)))
    interconnect = Interconnect(clock_hz=200e6, masters=masters,
                                slaves=(Slave(name="s", latency_cycles=2),))
    streams = [Stream(master=one.name, slave="s", beats=np.array([rng.randrange(1, 9)
                                                                  for _ in range(60)]),
                      think_cycles=np.array([rng.choice((0, 3, 10**6, 10**9))
                                             for _ in range(60)])) for one in masters]
    run = run_bursts(merge_streams(interconnect, streams))
    assert np.array_equal(run.times, ReferenceBus(interconnect, streams).run())
