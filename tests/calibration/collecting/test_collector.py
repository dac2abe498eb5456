"""The collector loses no sample and ends in time, whatever the board or the line does."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from made_board import CAPACITY, COUNTERS, CYCLES, MadeBoard
from made_relay import Faults, Relay

from calibration.collecting import collector, plan
from calibration.collecting.collector import Campaign
from calibration.collecting.link import Link
from calibration.collecting.plan import Pass, Plan, choose_events, make_plans
from calibration.collecting.resumption import count_runs
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.session import Session
from calibration.errors import (
    IncompleteWarning,
    LinkError,
    LinkTimeoutError,
    MeasurementError,
)
from calibration.measurement.measurement import read_measurement

RUNS = 24


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(plan, "BLOCK_S", 0.02)
    monkeypatch.setattr(collector, "BLOCK_S", 0.02)
    monkeypatch.setattr(collector, "LEAST_TIMEOUT_S", 2.0)
    monkeypatch.setattr(collector, "FIRST_RUN_S", 4.0)


def campaign(link: Link, folder, **more) -> Campaign:
    session = Session(link)
    session.open()
    return Campaign(session=session, folder=folder, board="made", model="made",
                    runtime="none", **more)


def warm_plan(made: Campaign, runs: int = RUNS, **more) -> Plan:
    return make_plans(made.identity, made.counters, runs=runs, warmup=2, **more)[-1]


def check_complete(folder, runs: int = RUNS) -> None:
    """Every run has every value, and each is what the board makes."""
    measured = read_measurement(folder)
    assert measured.header.kind == "simulated"
    for layer, cycles in enumerate(CYCLES):
        values = {s.run: s.value for s in measured.samples
                  if s.counter == "cpu_cycles" and s.layer == layer}
        assert values == {run: cycles + run % 3 for run in range(runs)}
    whole = measured.values("cpu_cycles")
    assert list(whole) == [sum(CYCLES) + 3 * (run % 3) for run in range(runs)]
    assert set(measured.values("output_checksum")) == {0xC0FFEE}
    assert measured.values("setup")[0] == 5000 and measured.values("read_overhead")[0] == 5
    assert measured.count("first_cpu_cycles") == 1


def test_cold_and_warm_apart_with_everything_a_reader_needs(tmp_path):
    seen = []
    with MadeBoard(features=0x521, cycles_of=lambda run, layer, cold:
                   CYCLES[layer] + run % 3 + 500 * cold) as board, Link(board.port) as link:
        made = campaign(link, tmp_path, on_progress=seen.append)
        made.prepare()
        cold, warm = make_plans(made.identity, made.counters, runs=RUNS, warmup=2)
        measured = made.collect(cold)
        made.collect(warm)
    check_complete(tmp_path / "warm")
    assert measured.percentile("cpu_cycles", 0, 0) == CYCLES[0] + 500
    header = json.loads((tmp_path / "warm" / "header.json").read_text())
    assert header["temperature"] == "warm" and header["clocks_hz"] == {"cpu": 1e8}
    assert header["environment"]["firmware_sha256"] == (b"b" * 32).hex()
    assert header["environment"]["clock_source"] == "crystal"
    assert measured.values("die_temperature")[0] == 31.5
    assert measured.values("supply")[0] == pytest.approx(3.3)
    assert seen[-1].done == seen[-1].total == RUNS and seen[-1].left_s == 0


@pytest.mark.parametrize("mismatched", [0, 1, 3])
def test_outputs_unlike_the_first_are_counted(tmp_path, mismatched):
    """The board tells how many there were so far; the last word is what the campaign keeps."""
    with MadeBoard(mismatched=mismatched) as board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        made.collect(warm_plan(made, adaptive=False))
    assert made.mismatches == mismatched


@pytest.mark.parametrize("faults", [
    Faults(drop=3e-4, seed=1), Faults(flip=3e-4, seed=2), Faults(duplicate=3e-4, seed=3),
    Faults(stall=1e-4, stall_s=0.1, seed=4)], ids=["drop", "flip", "duplicate", "stall"])
def test_a_bad_line_loses_no_sample(tmp_path, faults):
    with MadeBoard() as board, Relay(board.port, faults) as relay, Link(relay.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        made.collect(warm_plan(made, adaptive=False))
    check_complete(tmp_path / "warm")


def test_a_pulled_cable_loses_no_sample(tmp_path):
    to_lose = {10, 25}

    def lose_the_line(run, layer, cold):
        if run in to_lose:
            to_lose.remove(run)
            relay.cut()
            threading.Timer(0.1, relay.restore).start()
        return CYCLES[layer] + run % 3

    with MadeBoard(run_s=0.01, cycles_of=lose_the_line) as board, \
            Relay(board.port) as relay, Link(relay.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        made.collect(warm_plan(made, runs=40, adaptive=False))
        assert made.session.resumptions == 2
    check_complete(tmp_path / "warm", 40)


def test_a_reboot_repeats_the_runs_that_were_lost(tmp_path):
    with MadeBoard(reboot_at_run=15) as board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        made.collect(warm_plan(made, adaptive=False))
        assert made.restarts == 1
    measured = read_measurement(tmp_path / "warm")
    assert [s.run for s in measured.samples if s.counter == "cpu_cycles" and s.layer is None] \
        == list(range(RUNS))


def test_a_board_that_reboots_for_ever_is_given_up(tmp_path):
    board = MadeBoard()
    board._on_run = lambda payload: board._error(wire.TYPES["RUN"], "INPUT", 0)
    with board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        with pytest.raises(LinkError, match="restarted 6 times"):
            made.collect(warm_plan(made))


def test_a_hang_ends_with_the_samples_so_far(tmp_path, monkeypatch):
    monkeypatch.setattr(collector, "LEAST_TIMEOUT_S", 0.5)
    with MadeBoard() as board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()

        def hang(progress):
            if progress.done > 4:
                monkeypatch.setenv("TWIN_PATIENCE", "1")
                board.hang_at = wire.TYPES["RUN"]

        made.on_progress = hang
        with pytest.raises(LinkTimeoutError, match="RUN"):
            made.collect(warm_plan(made))
    with pytest.warns(IncompleteWarning):
        assert 4 < read_measurement(tmp_path / "warm").count("cpu_cycles") < RUNS


def test_ctrl_c_leaves_the_board_idle_and_keeps_the_samples(tmp_path):
    with MadeBoard(run_s=0.01) as board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()

        def interrupt(progress):
            if progress.done >= 6:
                raise KeyboardInterrupt

        made.on_progress = interrupt
        with pytest.raises(KeyboardInterrupt):
            made.collect(warm_plan(made))
        assert board.served[-2] == wire.TYPES["IDLE"]
        made.session.stop()
        assert board.session == 0
    with pytest.warns(IncompleteWarning):
        assert read_measurement(tmp_path / "warm").count("cpu_cycles") >= 6


@pytest.mark.filterwarnings("error")
def test_an_interrupted_measurement_says_so_and_is_gone_on_with(tmp_path):
    def interrupt(progress):
        if progress.done >= 6:
            raise KeyboardInterrupt

    with MadeBoard(run_s=0.01) as board:
        with Link(board.port) as link:
            made = campaign(link, tmp_path, on_progress=interrupt)
            made.prepare()
            with pytest.raises(KeyboardInterrupt):
                made.collect(warm_plan(made, adaptive=False))
            made.session.stop()
        with pytest.warns(IncompleteWarning, match=rf"of {RUNS} runs are missing"):
            before = read_measurement(tmp_path / "warm").count("cpu_cycles")
        assert 6 <= before < RUNS
        with Link(board.port) as link:
            made = campaign(link, tmp_path, resume=True)
            made.prepare()
            with pytest.raises(MeasurementError, match="runs asked was 24, now 30"):
                made.collect(warm_plan(made, runs=30, adaptive=False))
            measured = made.collect(warm_plan(made, adaptive=False))
            again = made.collect(warm_plan(made, adaptive=False))
    assert measured.missing_runs == 0 and again.count("cpu_cycles") == RUNS
    check_complete(tmp_path / "warm")


def test_runs_of_passes_that_are_there_are_not_made_again(tmp_path):
    """Two passes, interrupted in the second: each ends with the runs it was to have."""
    with MadeBoard(run_s=0.005) as board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        passes = (Pass(events=(0x10,), runs=8), Pass(events=(), runs=6))
        short = Plan(temperature="warm", warmup=1, passes=passes, most_runs=8)
        made.collect(short)
        there = read_measurement(tmp_path / "warm")
        assert count_runs(there, passes[0], made.counters) == there.count("dwt_cpi") == 8
        assert count_runs(None, passes[0], made.counters) == 0


def test_another_board_after_a_restart_is_refused(tmp_path):
    with MadeBoard(reboot_at_run=15) as board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        made.identity = replace(made.identity, unique_id=b"another board's!")
        with pytest.raises(MeasurementError, match="another board is on the line"):
            made.collect(warm_plan(made, adaptive=False))


def test_two_boards_never_cross(tmp_path):
    def one(index: int) -> None:
        with MadeBoard(cycles_of=lambda run, layer, cold: 1000 * (index + 1)) as board, \
                Link(board.port) as link:
            made = campaign(link, tmp_path / str(index))
            made.prepare()
            made.collect(warm_plan(made, adaptive=False))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(2):
        values = read_measurement(tmp_path / str(index) / "warm").values("cpu_cycles", 1)
        assert len(values) == RUNS and set(values) == {1000.0 * (index + 1)}


def test_a_spread_asks_for_more_runs(tmp_path):
    wide = MadeBoard(cycles_of=lambda run, layer, cold: 1000 + (run * 7919) % 97 * 10)
    with wide as board, Link(board.port) as link:
        made = campaign(link, tmp_path)
        made.prepare()
        plan_made = warm_plan(made, runs=10)
        made.collect(plan_made)
    done = read_measurement(tmp_path / "warm").count("cpu_cycles")
    assert 10 + 10 < done <= plan_made.most_runs


def test_passes_cover_every_event(tmp_path):
    events = tuple(wire.Counter(id=0x1000 + i, clock=0, bits=32, name=f"event {i}")
                   for i in range(10))
    identity = wire.Identity.parse(MadeBoard()._on_identify(b""))
    listed = [wire.Counter(id=i, clock=c, bits=b, name=n) for i, c, b, n in COUNTERS]
    *_, one = make_plans(identity, [*listed[:2], *events], runs=50, warmup=1)
    assert [p.events for p in one.passes] == [(e.id,) for e in events]
    assert [p.runs for p in one.passes] == [50] + [10] * 9
    assert choose_events([*listed, *events], ["event 3"]) == [0x1003]
    assert choose_events([*listed, *events], ["event_3"]) == [0x1003]  # as every table has it
    assert len(choose_events(events, None)) == len(events)
    with pytest.raises(MeasurementError, match="did you mean event"):
        choose_events(events, ["evnt 3"])
    with pytest.raises(MeasurementError, match="cannot mask"):
        make_plans(identity, listed, mask=True)
    assert one.passes[0] == Pass(events=(0x1000,), runs=50) and CAPACITY > 9


def test_one_run_without_warming_up_is_a_plan_and_none_is_not():
    identity = wire.Identity.parse(MadeBoard()._on_identify(b""))
    *_, warm = make_plans(identity, [], runs=1, warmup=0)
    assert (warm.warmup, [one.runs for one in warm.passes]) == (0, [1])
    for wrong in ({"runs": 0}, {"warmup": -1}):
        with pytest.raises(MeasurementError, match="accepted: from 1, from 0"):
            make_plans(identity, [], **wrong)


def test_another_model_is_refused(tmp_path):
    with MadeBoard() as board, Link(board.port) as link:
        made = campaign(link, tmp_path, model_sha256="00" * 32)
        with pytest.raises(MeasurementError, match="twin firmware build"):
            made.prepare()
        made.model_sha256 = None
        with pytest.raises(MeasurementError, match="takes 1000"):
            made.prepare(b"short")
