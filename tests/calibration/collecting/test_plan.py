"""What a board is asked for: passes of its event counters, runs of each, cold and warm."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from made_session import COUNTERS, MadeSession

from calibration.collecting.plan import (
    EVENT_RUNS,
    MOST_RUNS,
    MOST_RUNS_ASKED,
    Pass,
    choose_events,
    make_plans,
)
from calibration.collecting.wire import payloads as wire
from calibration.errors import MeasurementError

EVENTS = tuple(wire.Counter(id=number, clock=0, bits=8, name=name) for number, name in (
    (0x10, "dwt cpi"), (0x11, "dwt exc"), (0x12, "dwt sleep"), (0x13, "dwt lsu"),
    (0x14, "dwt fold")))
LISTED = (*(one for one in COUNTERS if one.id < 0x10), *EVENTS)


def identity(*features, at_once=2):
    made = MadeSession(features=sum(wire.FEATURES[name] for name in features)).identity
    return replace(made, counters_at_once=at_once)


def test_events_are_chosen_by_the_boards_name_or_ours():
    assert choose_events(LISTED, None) == [0x10, 0x11, 0x12, 0x13, 0x14]
    assert choose_events(LISTED, ["dwt lsu", "dwt_cpi"]) == [0x13, 0x10]
    assert choose_events(LISTED, []) == []
    with pytest.raises(MeasurementError, match="the board counts no 'dwt_ls'; did you mean dwt"):
        choose_events(LISTED, ["dwt_ls"])
    with pytest.raises(MeasurementError, match="counts no 'cycles'"):  # each run leaves them
        choose_events(LISTED, ["cycles"])
    with pytest.raises(MeasurementError, match=r"counts no 'x'; it lists no event counters$"):
        choose_events(LISTED[:len(LISTED) - 5], ["x"])


@pytest.mark.parametrize(("at_once", "groups"), [
    (2, [(0x10, 0x11), (0x12, 0x13), (0x14,)]), (5, [(0x10, 0x11, 0x12, 0x13, 0x14)]), (0, [()])])
def test_a_pass_counts_as_many_events_as_the_board_can_at_once(at_once, groups):
    (plan,) = make_plans(identity(at_once=at_once), LISTED, runs=1000, warmup=7)
    assert plan.passes == (Pass(events=groups[0], runs=1000), *(
        Pass(events=group, runs=EVENT_RUNS) for group in groups[1:]))
    assert EVENT_RUNS < 1000 and plan.runs == 1000 + EVENT_RUNS * (len(groups) - 1)
    assert (plan.temperature, plan.warmup, plan.most_runs) == ("warm", 7, MOST_RUNS * 1000)
    few = make_plans(identity(at_once=at_once), LISTED, runs=3, adaptive=False)[0]
    assert {one.runs for one in few.passes} == {3} and few.most_runs == 3 and few.warmup == 10


def test_a_board_that_can_empty_its_caches_is_asked_cold_first():
    cold, warm = make_plans(identity("COLD", "MASK"), LISTED, runs=20, warmup=4, mask=True,
                            events=["dwt lsu"])
    assert (cold.temperature, cold.warmup, cold.most_runs) == ("cold", 0, 20)
    assert (warm.temperature, warm.warmup, warm.most_runs) == ("warm", 4, MOST_RUNS * 20)
    assert cold.passes == warm.passes == (Pass(events=(0x13,), runs=20),)
    flags = wire.CONFIG_FLAGS
    assert warm.flags == flags["LAYERS"] | flags["MASK"]
    assert cold.flags == warm.flags | flags["COLD"]
    assert replace(warm, mask=False).flags == flags["LAYERS"]
    with pytest.raises(MeasurementError, match="port made port cannot mask interrupts"):
        make_plans(identity("COLD"), LISTED, mask=True)


@pytest.mark.parametrize(("runs", "warmup", "fits"), [
    (1, 0, True), (MOST_RUNS_ASKED, MOST_RUNS_ASKED, True), (0, 0, False), (1, -1, False),
    (MOST_RUNS_ASKED + 1, 0, False), (1, MOST_RUNS_ASKED + 1, False)])
def test_numbers_of_runs_are_bounded(runs, warmup, fits):
    if fits:
        assert make_plans(identity(), LISTED, runs=runs, warmup=warmup)[0].passes[0].runs == runs
        return
    with pytest.raises(MeasurementError, match=f"{runs} runs after {warmup} warm-up runs; accep"):
        make_plans(identity(), LISTED, runs=runs, warmup=warmup)
