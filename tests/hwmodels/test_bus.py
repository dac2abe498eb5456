"""The bus by hand: small cases whose every cycle can be counted, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_buses import finish_cycles, lost_cycles

from hwmodels.board.facts import Dma
from hwmodels.board.file import load_board
from hwmodels.board.memory import burst_cycles
from hwmodels.bus.bursts import merge_streams
from hwmodels.bus.events import (
    FINISH,
    GRANT,
    ISSUE,
    build_interconnect,
    make_slave,
    simulate_bus,
)
from hwmodels.bus.interconnect import Interconnect, Master, Slave, Stream, clock_ratio
from hwmodels.errors import BoardError, KernelError


def make_bus(masters="ab", slaves="s", arbitration="fixed", **master) -> Interconnect:
    """Masters and slaves of one letter each, one clock, a cycle a beat."""
    return Interconnect(clock_hz=1e8, masters=tuple(Master(name=name, **master)
                                                    for name in masters),
                        slaves=tuple(Slave(name=name) for name in slaves),
                        arbitration=arbitration)


def ask(master, slave="s", **fields) -> Stream:
    return Stream(master=master, slave=slave, **fields)


def test_one_burst():
    """Latency 3 and 4 beats of 2 cycles: held 11 cycles; 1 back."""
    bus = Interconnect(clock_hz=1e8, masters=(Master(name="a"),), slaves=(
        Slave(name="s", latency_cycles=3, beat_cycles=2, pipeline_cycles=1),))
    run = simulate_bus(bus, [ask("a", beats=4, think_cycles=np.array([5]))])
    assert run.times.tolist() == [[5, 5, 17, 0]]
    assert run.busy.tolist() == [11]


def test_fixed_priority_and_waits():
    """Both at 0, a first: b waits 4. a again at 6, when b holds until 8: waits 2."""
    run = simulate_bus(make_bus(), [ask("a", beats=4, think_cycles=np.array([0, 2])),
                                    ask("b", beats=4, count=1)])
    assert finish_cycles(run, "a").tolist() == [4, 12]
    assert run.wait_cycles("a").tolist() == [0, 2]
    assert finish_cycles(run, "b").tolist() == [8]
    assert run.wait_cycles("b").tolist() == [4]


@pytest.mark.parametrize(("arbitration", "order"), [
    ("fixed", "aababb"),        # a thinks 1 cycle between bursts, b gets in after a's second
    ("round_robin", "ababab"),
])
def test_order_of_grants(arbitration, order):
    """Bursts of 4; a asks at once, b from the start."""
    streams = [ask("a", beats=4, think_cycles=np.array([0, 0, 1])), ask("b", beats=4, count=3)]
    run = simulate_bus(make_bus(arbitration=arbitration), streams)
    granted = np.argsort(run.times[:, GRANT])
    assert "".join("aaabbb"[row] for row in granted) == order


def test_banks_serve_at_once():
    bus = replace(make_bus(), slaves=(Slave(name="s", banks=2),))
    apart = simulate_bus(bus, [ask("a", beats=8, count=9), ask("b", beats=8, bank=1, count=9)])
    assert not apart.times[:, 3].any()
    assert apart.end_ticks == 72
    shared = simulate_bus(bus, [ask("a", beats=8, count=9), ask("b", beats=8, count=9)])
    assert shared.end_ticks == 144


def test_outstanding_bursts_hide_the_pipeline():
    """One beat and 4 cycles of pipeline: one burst every 5 cycles; with 4 in flight 4 bursts every
    5 cycles, the last of the fifth 4 at 4 x 5 + 3 + 5; with 5 in flight one a cycle."""
    for outstanding, end in ((1, 20 * 5), (4, 28), (5, 20 + 4)):
        bus = replace(make_bus("a", outstanding=outstanding),
                      slaves=(Slave(name="s", pipeline_cycles=4),))
        run = simulate_bus(bus, [ask("a", count=20)])
        assert run.end_ticks == end, outstanding
        assert not run.times[:, 3].any()


def test_replies_come_in_order():
    """A slow read of 10, then a fast one of 2 issued a cycle later: its 2 beats follow at 12."""
    bus = replace(make_bus("a", outstanding=2),
                  slaves=(Slave(name="slow", latency_cycles=9), Slave(name="fast")))
    run = simulate_bus(bus, [ask("a", np.array([0, 1]), beats=np.array([1, 2]))])
    assert run.times[:, [ISSUE, GRANT, FINISH]].tolist() == [[0, 0, 10], [1, 1, 12]]


def test_pacing():
    """Bursts of 4, think 6: after the finish every 10, or due at 6 and 7."""
    run = simulate_bus(make_bus("a"), [ask("a", beats=4, think_cycles=6, count=2)])
    assert run.times[:, ISSUE].tolist() == [6, 16]
    due = ask("a", beats=4, think_cycles=np.array([6, 7]))
    assert simulate_bus(make_bus("a", pacing="clock"), [due]).times[:, ISSUE].tolist() == [6, 10]


def test_clock_domains():
    """Core 480, bus 200 MHz: 12 core cycles are 5 bus cycles are 60 ticks, periods 5 and 12.

    Think 1: issued at 5, on the bus at 12, held 2 x 12, back at 36, next core edge 40. Then
    issued at 45, on the bus at 48, back at 72, next core edge 75.
    """
    bus = replace(make_bus("a", clock_hz=480e6), clock_hz=200e6)
    assert bus.clock_periods() == (12, (5,))
    run = simulate_bus(bus, [ask("a", beats=2, think_cycles=1, count=2)])
    assert run.times.tolist() == [[5, 12, 40, 0], [45, 48, 75, 0]]
    assert finish_cycles(run, "a").tolist() == [8, 15]


def test_a_slaves_own_clock():
    """24 + 16 cycles at 200 MHz on a bus of 400 MHz are 80 cycles of the bus; at 300: 60."""
    for bus_hz, held in ((400e6, 80), (300e6, 60), (200e6, 40), (100e6, 20)):
        bus = Interconnect(clock_hz=bus_hz, masters=(Master(name="a"),), slaves=(
            Slave(name="s", clock_hz=200e6, latency_cycles=24, beat_cycles=4),))
        assert simulate_bus(bus, [ask("a", beats=4, count=1)]).busy.tolist() == [held]


def test_exposed_is_what_think_time_did_not_hide():
    """Ten bursts of 1 due every 10 cycles: b's bursts of 3 delay some, only the last is exposed."""
    bus = replace(make_bus(),
                  masters=(Master(name="a", pacing="clock"), Master(name="b")))
    streams = [ask("a", think_cycles=10 * np.arange(10)),
               ask("b", beats=3, think_cycles=1, count=30)]
    run = simulate_bus(bus, streams)
    late = finish_cycles(run, "a") - (10 * np.arange(10) + 1)
    assert run.wait_cycles("a").sum() == late.sum() > lost_cycles(run, streams, "a") == late[-1]
    # A core that blocks hides nothing.
    streams[0] = ask("a", think_cycles=10, count=10)
    run = simulate_bus(make_bus(), streams)
    assert lost_cycles(run, streams, "a") == run.wait_cycles("a").sum() > 0


def test_nothing_asked_nothing_done():
    run = simulate_bus(make_bus(), [])
    assert run.end_ticks == 0
    assert not len(run.times) and not run.busy.any()


@pytest.mark.parametrize("name", ["nucleo_h7a3zi_q", "stm32n6570_dk", "stm32h747i_disco",
                                  "nucleo_f401re", "b_u585i_iot02a"])
def test_boards_as_interconnects(name):
    """A core alone gets whole lines as fast as `burst_cycles` says, rounded up to the bus."""
    board = load_board(name)
    bus = build_interconnect(board, board.buses[0].name)
    assert bus.masters[0].name == "main"
    for memory in board.memories:
        if memory.bus is None:
            continue
        size = max(32, memory.read_bytes)
        beats = size // board.buses[0].width_bytes
        run = simulate_bus(replace(bus, masters=(Master(name="a"),)), [
            ask("a", memory.name, beats=beats, count=1)])
        ratio = bus.clock_hz / board.clock(memory.clock).frequency_hz
        cycles = float(burst_cycles(memory, size, board.buses[0].width_bytes)) * ratio
        # The access's own cycle is a cycle of the memory there and the first beat here.
        assert cycles - ratio <= run.end_ticks <= cycles + 2


def test_a_boards_dma_becomes_a_master():
    board = load_board("nucleo_h7a3zi_q")
    (bus,) = board.buses
    board = replace(board, buses=(replace(bus, masters=("main", "dma1")),), dma=(
        Dma(name="dma1", bus=bus.name, clock=bus.clock, setup_cycles=200),))
    made = build_interconnect(board, bus.name, npu=Master(name="npu", outstanding=8))
    assert [master.name for master in made.masters] == ["main", "dma1", "npu"]
    assert made.masters[0].clock_hz == board.clock("cpu").frequency_hz
    with pytest.raises(BoardError, match="is not on a bus"):
        make_slave(board, board.memory("dtcm"))


@pytest.mark.parametrize("fields", [
    {"arbitration": "lottery"}, {"masters": ()}, {"slaves": (Slave(name="s"),) * 2},
    {"masters": (Master(name="a", outstanding=0),)},
    {"masters": (Master(name="a", pacing="slowly"),)},
    {"slaves": (Slave(name="s", banks=0),)}, {"slaves": (Slave(name="s", beat_cycles=0),)},
    {"slaves": (Slave(name="s", latency_cycles=-1),)}, {"clock_hz": 0.0},
    {"masters": (Master(name="a", clock_hz=0.0),)},
])
def test_interconnects_that_cannot_be_are_refused(fields):
    with pytest.raises(BoardError, match=r"accepted|did you mean"):
        replace(make_bus(), **fields)


@pytest.mark.parametrize("stream", [
    ask("c", count=1), ask("a", "x", count=1), ask("a", bank=1, count=1), ask("a", beats=0),
    ask("a", think_cycles=np.array([-1])), ask("a", think_cycles=np.array([0.5])),
    ask("a", beats=np.ones((2, 2), np.int64)), ask("a", beats=np.ones(2, np.int64), count=3),
])
def test_streams_that_cannot_be_are_refused(stream):
    with pytest.raises(KernelError, match=r"accepted|did you mean"):
        merge_streams(make_bus(), [stream])


def test_two_streams_of_one_master_are_refused():
    with pytest.raises(KernelError, match="at most one"):
        merge_streams(make_bus(), [ask("a", count=1), ask("a", count=2)])


def test_clocks_without_a_ratio_are_refused():
    assert clock_ratio(280e6, 200e6) == clock_ratio(7, 5)
    assert float(clock_ratio(1e8 / 3, 1e8)) == pytest.approx(1 / 3)
    for clocks in ((1e8, 0.0), (141_421_356.0, 1e8), (1.0, 1e6)):
        with pytest.raises(BoardError, match="accepted"):
            clock_ratio(*clocks)
    odd = tuple(Master(name=f"m{clock}", clock_hz=clock * 1e5) for clock in (997, 991, 983))
    with pytest.raises(BoardError, match="common tick"):
        replace(make_bus(), masters=odd).clock_periods()


def test_a_slave_by_a_number_beyond_the_last_is_refused():
    bus = make_bus(slaves="st")
    merge_streams(bus, [ask("a", np.array([0, 1]))])
    with pytest.raises(KernelError, match="slave 2; accepted: 0 to 1"):
        merge_streams(bus, [ask("a", np.array([0, 2]))])


def test_a_bank_beyond_those_of_its_own_slave_names_that_slave():
    bus = replace(make_bus(), slaves=(Slave(name="s", banks=4), Slave(name="t", banks=2)))
    with pytest.raises(KernelError, match="bank 2; accepted: 0 to 1 of 't'"):
        merge_streams(bus, [ask("a", np.array([0, 1]), bank=np.array([2, 2]))])
