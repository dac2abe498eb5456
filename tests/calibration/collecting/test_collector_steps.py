"""What the collector asks a board for, in which order and for how long, and what it writes down."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from made_session import COUNTERS, MadeSession

from calibration.collecting import collector, environment
from calibration.collecting.clock_check import ClockCheck
from calibration.collecting.collector import Campaign, Progress
from calibration.collecting.plan import Pass, Plan
from calibration.collecting.wire import payloads as wire
from calibration.errors import (
    BoardRefusedError,
    BoardRestartedError,
    LinkError,
    LinkResumedError,
    MeasurementError,
)
from calibration.measurement.measurement import read_measurement
from calibration.measurement.sample import Header, Sample

ENVIRONMENT, MASK, MARK, SIMULATED = (
    wire.FEATURES[name] for name in ("ENVIRONMENT", "MASK", "MARK", "SIMULATED"))
HEADER_AND_BOARD = {"board": "made board", "model": "made model", "runtime": "made runtime"}
CHECK = ClockCheck(ratio=1.25, uncertainty=0.5)
pytestmark = pytest.mark.filterwarnings("ignore::calibration.errors.IncompleteWarning")


@pytest.fixture
def session(monkeypatch) -> MadeSession:
    made = MadeSession(features=SIMULATED)
    monkeypatch.setattr(collector, "time", SimpleNamespace(
        monotonic=lambda: made.now_s, strftime=time.strftime, gmtime=lambda: time.gmtime(0)))
    monkeypatch.setattr(environment, "platform", SimpleNamespace(
        platform=lambda: "made host", python_version=lambda: "3.99"))
    monkeypatch.setattr(collector, "check_clock", lambda one: CHECK if one is made else None)
    return made


def prepared(session: MadeSession, folder, **more) -> Campaign:
    one = Campaign(session=session, folder=folder, **HEADER_AND_BOARD, **more)
    one.prepare(b"inputs")
    session.log.clear()
    return one


def test_a_layer_the_model_lacks_is_refused_before_anything_runs(session, tmp_path):
    with pytest.raises(MeasurementError, match="names layer 11; made model has layers 0 to 9"):
        prepared(session, tmp_path, model_layers=10)
    assert prepared(session, tmp_path, model_layers=12).identity


def warm(runs: int = 12, *, most: int | None = None, warmup: int = 2,
         events: tuple[int, ...] = (16,), **more) -> Plan:
    return Plan(temperature="warm", warmup=warmup, passes=(Pass(events=events, runs=runs),),
                most_runs=most or runs, **more)


def written(folder) -> list[tuple[object, ...]]:
    """Run, layer, counter and value of every sample, in the order written."""
    return [(one.run, one.layer, one.counter, one.value)
            for one in read_measurement(folder / "warm", growing=True).samples]


def run_lines(*runs: int, prefix: str = "") -> list[tuple[object, ...]]:
    """What the made board leaves of some runs."""
    return [line for run in runs for line in (
        (run, 11, f"{prefix}cpu_cycles", 1000 + run), (run, None, f"{prefix}cpu_cycles",
                                                       1050 + run),
        (run, None, f"{prefix}output_checksum", 1009 + run))]


def test_preparing_identifies_loads_and_checks_the_clock(session, tmp_path):
    made = Campaign(session=session, folder=tmp_path, **HEADER_AND_BOARD)
    made.prepare()
    noise = np.random.default_rng(0).bytes(6)
    assert session.log == [("identify",), ("counters",), ("load", noise)]
    assert made.clock is None and made.identity is session.identity and made.counters == COUNTERS
    session.identity = MadeSession(features=0).identity
    made.model_sha256 = (b"m" * 32).hex()
    made.prepare(b"inputs")
    assert made.clock == CHECK and session.log[-1] == ("load", b"inputs")
    assert made.folder_of("cold") == tmp_path / "cold"
    for data in (b"input", b"inputs!"):
        with pytest.raises(MeasurementError, match="takes 6"):
            made.prepare(data)
    made.model_sha256 = "00" * 32
    with pytest.raises(MeasurementError, match="twin firmware build"):
        made.prepare(b"inputs")
    assert (made.mismatches, made.restarts, made.run_s, made.source) == (0, 0, 0.0, "twin measure")


@pytest.mark.parametrize(("features", "source", "told"), [
    (SIMULATED, 1, {}), (SIMULATED | ENVIRONMENT, 1, {"clock_source": "crystal"}),
    (ENVIRONMENT, 0, {"clock_by_host": "1.25000 +- 0.50000",
                      "clock_source": "internal oscillator"}),
    (SIMULATED | ENVIRONMENT, 2, {"clock_source": "external"}),
    (SIMULATED | ENVIRONMENT, 9, {"clock_source": "9"}),
    (SIMULATED | ENVIRONMENT, wire.UNKNOWN, {})])
def test_the_header_says_what_ran_where_and_how(session, tmp_path, features, source, told):
    session.identity = MadeSession(features=features).identity
    session.environment = wire.Environment(temperature_mc=0, supply_mv=0, clock_source=source,
                                           cpu_hz=1)
    made = prepared(session, tmp_path, source="made source", architecture_id="made id",
                    placement=(("arena", "ram"),), supply_v=3.3, environment={"room": "22"})
    assert made.header(warm()) == Header(
        kind="simulated" if features & SIMULATED else "measured", model="made model",
        model_sha256=(b"m" * 32).hex(), architecture_id="made id", board="made board",
        runtime="made runtime", temperature="warm", supply_v=3.3, source="made source",
        clocks_hz=(("cpu", 1e8), ("timer", 1e6)), placement=(("arena", "ram"),),
        environment=tuple({
            "firmware_sha256": (b"b" * 32).hex(), "port": "made port", "compiler": "made cc",
            "unique_id": (b"u" * 16).hex(), "link": "made line", "host": "made host",
            "python": "3.99", "warmup": "2", "runs_asked": "12", "interrupts": "counted",
            "started": "1970-01-01T00:00:00Z", **told, "room": "22"}.items()))
    masked = dict(made.header(warm(mask=True)).environment)
    assert masked["interrupts"] == "masked"
    session.identity = MadeSession(timer_hz=0).identity
    made.identity = session.identity
    assert made.header(warm()).clocks_hz == (("cpu", 1e8),)


def test_runs_are_asked_for_in_blocks_of_a_second(session, tmp_path):
    """A run is taken to last an eighth of a second, then 0.7 of that and 0.3 of a quarter."""
    seen: list[Progress] = []
    session.run_s = [0.125, 0.25, 0.25]
    made = prepared(session, tmp_path, on_progress=seen.append)
    measured = made.collect(warm())
    flags, overhead = wire.CONFIG_FLAGS["LAYERS"], ("OVERHEAD", b"\x64\0\0\0")
    assert session.log == [
        ("configure", {"warmup": 0, "flags": flags, "events": (16,), "timeout_s": 120.0}),
        overhead, ("run", 0, 1, 120.0, 30.0), ("samples", 0),
        ("configure", {"warmup": 2, "flags": flags, "events": (16,), "timeout_s": 120.0}),
        overhead, ("run", 0, 8, 10.0, 1.25), ("samples", 0),
        ("run", 8, 4, 7.6, 0.65), ("samples", 25)]
    assert [(one.temperature, one.done, one.total, pytest.approx(one.left_s)) for one in seen] == [
        ("warm", 8, 12, 0.65), ("warm", 12, 12, 0.0)]
    assert made.run_s == pytest.approx(0.7 * 0.1625 + 0.3 * 0.25)
    assert written(tmp_path) == [
        *run_lines(0, prefix="first_"), (0, None, "setup", 5000), (0, None, "read_overhead", 5),
        *run_lines(*range(12))]
    assert measured.header.environment == made.header(warm()).environment
    assert measured.samples[3] == Sample(run=0, counter="setup", clock="cpu", unit="cycles",
                                         value=5000)


def test_passes_follow_each_other_and_quick_runs_come_many_at_a_time(session, tmp_path):
    session.run_s = [0.0]
    made = prepared(session, tmp_path)
    made.collect(Plan(temperature="warm", warmup=0, most_runs=3, passes=(
        Pass(events=(16,), runs=3), Pass(events=(), runs=2))))
    assert session.runs() == [(0, 1), (0, 3), (3, 2)]
    assert [entry[1]["events"] for entry in session.log if entry[0] == "configure"] == [
        (16,), (16,), ()]
    assert (3, None, "setup", 5000) in written(tmp_path)
    session.overhead = wire.Overhead(reads=0, clock=1, least=4, most=6, sum=7)
    prepared(session, tmp_path / "other").collect(warm(1))
    assert (0, None, "read_overhead", 7) in written(tmp_path / "other")


@pytest.mark.parametrize(("runs", "most", "blocks"), [
    (4, 10, [(0, 4), (4, 2), (6, 2), (8, 2)]), (4, 7, [(0, 4), (4, 2), (6, 1)]),
    (3, 5, [(0, 3), (3, 1), (4, 1)]), (4, 4, [(0, 4)])])
def test_a_spread_asks_for_half_as_many_again(session, tmp_path, runs, most, blocks):
    session.value_of = lambda run: 1000 + 700 * (run % 2)
    seen: list[Progress] = []
    made = prepared(session, tmp_path, on_progress=seen.append)
    made.collect(warm(runs, most=most, warmup=0))
    assert session.runs()[1:] == blocks
    assert [one.done for one in seen] == [first + count for first, count in blocks]
    assert seen[-1].total == blocks[-1][0] + blocks[-1][1]


def test_steady_runs_ask_for_no_more(session, tmp_path):
    made = prepared(session, tmp_path)
    made.collect(warm(4, most=40))
    assert session.runs() == [(0, 1), (0, 4)]


def test_what_the_board_feels_is_written_with_each_block(session, tmp_path):
    session.identity = MadeSession(features=SIMULATED | ENVIRONMENT).identity
    made = prepared(session, tmp_path)
    made.collect(warm(1, warmup=0))
    assert [line for line in read_measurement(tmp_path / "warm").samples
            if line.counter in ("die_temperature", "supply")] == [
        Sample(run=0, counter="die_temperature", value=31.5, unit="degC"),
        Sample(run=0, counter="supply", value=3.3000000000000003, unit="V")]
    session.environment = wire.Environment(temperature_mc=wire.UNKNOWN, supply_mv=wire.UNKNOWN,
                                           clock_source=1, cpu_hz=1)
    prepared(session, tmp_path / "other").collect(warm(1))
    assert [line[2] for line in written(tmp_path / "other")][3:] == [
        "setup", "read_overhead", "cpu_cycles", "cpu_cycles", "output_checksum"]


def test_gauges_grow_over_blocks_without_warm_up(session, tmp_path):
    """The meter reads the clock: four runs of 0.125 s grow it by 0.5, an eighth each."""
    made = prepared(session, tmp_path, gauges=lambda: {"charge": (session.now_s, "C")})
    made.collect(warm())
    found = [one for one in read_measurement(tmp_path / "warm").samples
             if one.counter.startswith("block_")]
    assert found == [Sample(run=8, counter="block_charge", unit="C", value=0.125)]


def test_scales_derive_counters(session, tmp_path):
    made = prepared(session, tmp_path, scales={"cpu_cycles": ("instructions", 2.0)})
    made.collect(warm(1))
    assert (0, None, "instructions", 2100) in written(tmp_path)


def test_mismatches_are_the_most_the_board_told(session, tmp_path):
    session.mismatches = [0, 3, 1]
    made = prepared(session, tmp_path)
    made.collect(warm())
    assert made.mismatches == 3


@pytest.mark.parametrize("trouble", [
    BoardRestartedError("made"), BoardRefusedError("made", wire.ERRORS["INPUT"], 0)])
def test_a_restart_configures_again_and_repeats_what_was_lost(session, tmp_path, trouble):
    """Five samples of the lost block are a run and a part of one: both are made again."""
    session.trouble, session.leaves = [None, None, trouble], 5
    made = prepared(session, tmp_path)
    made.collect(warm())
    assert made.restarts == 1 and session.runs() == [(0, 1), (0, 8), (8, 4), (8, 4)]
    again = session.log[session.log.index(("open",)):]
    assert again[:3] == [("open",), ("identify",), ("load", b"inputs")]
    assert again[3][1]["warmup"] == 2 and again[5] == ("run", 8, 4, 8.0, 0.75)
    assert [line for line in written(tmp_path) if line[2] == "cpu_cycles"] == [
        line for line in run_lines(*range(12)) if line[2] == "cpu_cycles"]


def test_a_restart_before_the_first_run_is_survived(session, tmp_path):
    session.trouble = [BoardRestartedError("made")]
    session.reopening = [BoardRestartedError("again")]
    made = prepared(session, tmp_path)
    made.collect(warm(1))
    assert made.restarts == 2 and session.runs() == [(0, 1), (0, 1), (0, 1)]


def test_a_board_that_restarts_for_ever_is_given_up(session, tmp_path):
    session.trouble = [BoardRestartedError("made")] * 5 + [None]
    prepared(session, tmp_path / "five").collect(warm(1))
    session.trouble = [BoardRestartedError("made")] * 6
    with pytest.raises(LinkError, match="restarted 6 times: made"):
        prepared(session, tmp_path).collect(warm(1))


@pytest.mark.parametrize(("change", "said"), [
    ({"build_sha256": b"c" * 32}, "runs another image"), ({"unique_id": b"v" * 16}, "another board")
])
def test_another_image_or_board_after_a_restart_is_refused(session, tmp_path, change, said):
    made = prepared(session, tmp_path)
    session.trouble = [BoardRestartedError("made")]
    session.identity = MadeSession(features=SIMULATED, **change).identity
    with pytest.raises(MeasurementError, match=said):
        made.collect(warm(1))


def test_another_refusal_is_not_a_restart(session, tmp_path):
    session.trouble = [BoardRefusedError("made", wire.ERRORS["ARGUMENT"], 0)]
    with pytest.raises(BoardRefusedError):
        prepared(session, tmp_path).collect(warm(1))


def test_a_line_that_came_back_leaves_what_was_made_meanwhile(session, tmp_path):
    """Nine samples are three runs; the block goes on after them."""
    session.trouble, session.leaves = [None, None, LinkResumedError("made")], 9
    made = prepared(session, tmp_path)
    made.collect(warm())
    assert session.runs() == [(0, 1), (0, 8), (8, 4), (11, 1)] and made.restarts == 0
    assert written(tmp_path)[5:] == run_lines(*range(12))


@pytest.mark.parametrize("gone", [False, True])
def test_an_interruption_idles_the_board_and_keeps_what_was_made(session, tmp_path, gone):
    """Four samples are a run and a part of the next; both are kept, unless the line is gone."""
    session.trouble, session.leaves = [None, None, KeyboardInterrupt()], 4
    made = prepared(session, tmp_path)
    if gone:
        session.request = lambda name, timeout_s: (_ for _ in ()).throw(LinkError("gone"))
    with pytest.raises(KeyboardInterrupt):
        made.collect(warm())
    assert gone or session.log[-2:] == [("IDLE", 5.25), ("samples", 25)]
    kept = [] if gone else [*run_lines(8), run_lines(9)[0]]
    assert written(tmp_path)[5:] == [*run_lines(*range(8)), *kept]


def test_what_is_there_is_not_made_again(session, tmp_path):
    plan = warm(events=())
    prepared(session, tmp_path).collect(plan)
    before = written(tmp_path)
    assert len(session.runs()) == 3
    prepared(session, tmp_path, resume=True).collect(plan)
    assert session.runs() == [(0, 1)] and written(tmp_path) == before
    prepared(session, tmp_path).collect(plan)
    assert session.runs() == [(0, 1), (0, 8), (8, 4)]


@pytest.mark.parametrize(("value", "said"), [
    (-50, "run 0: first_cpu_cycles is 0 of a whole inference: the counter stands still"),
    (2**32 - 1, "run 0: first_cpu_cycles is 4,294,967,295: all bits are set")])
def test_counts_no_clock_makes_are_not_believed(session, tmp_path, value, said):
    session.value_of = lambda run: value
    with pytest.raises(MeasurementError, match=f"made line: {said}"):
        prepared(session, tmp_path).collect(warm())
    assert written(tmp_path) == []


class CountingSession(MadeSession):
    """Leaves a sample of each event that is counted, too; there are two."""

    def counters(self) -> tuple[wire.Counter, ...]:
        return (*COUNTERS, wire.Counter(id=0x11, clock=0, bits=8, name="dwt exc"))

    def configure(self, **asked: object) -> wire.ConfigReply:
        self.events = asked["events"]
        return super().configure(**asked)

    def samples_of(self, run: int) -> list[wire.RawSample]:
        *values, checksum = super().samples_of(run)
        return [*values, *(wire.RawSample(run=run, layer=wire.LAYER_INFERENCE, counter=event - 14,
                                          clock=0, value=event) for event in self.events), checksum]


@pytest.mark.parametrize("passes", [
    (Pass(events=(0x10,), runs=4),), (Pass(events=(0x10,), runs=2), Pass(events=(0x11,), runs=2))])
def test_killed_anywhere_and_resumed_it_has_the_runs_asked_for(session, tmp_path, passes):
    """Cut ahead of each line, within it, and ahead of its end."""
    plan = Plan(temperature="warm", warmup=1, passes=passes, most_runs=passes[0].runs)
    made = CountingSession(features=SIMULATED)
    prepared(made, tmp_path).collect(plan)
    samples = tmp_path / "warm" / "samples.jsonl"
    whole, runs = samples.read_bytes(), [
        line for line in written(tmp_path) if line[2] not in ("setup", "read_overhead")]
    assert len(runs) == 4 + 4 * 4
    for end in (place + cut for place, byte in enumerate(b"\n" + whole) if byte == ord("\n")
                for cut in (-1, 0, 1, 30)):
        samples.write_bytes(whole[:max(end, 0)])
        prepared(made, tmp_path, resume=True).collect(plan)
        resumed = written(tmp_path)
        assert [line for line in resumed if line[2] not in ("setup", "read_overhead")] == runs, end
        assert {line[0] for line in resumed} == {*range(4)}, end


@pytest.mark.parametrize(("features", "more", "flags", "repeats"), [
    (0, {}, 0, 1), (MARK, {}, 16, 1), (MARK, {"layers": True}, 32, 1), (MASK, {}, 2, 1),
    (MARK | MASK, {"mask": False}, 16, 1), (MASK | MARK, {"repeat_layer": 4, "repeat": 3}, 18, 3)])
def test_a_power_window_is_one_block_between_two_times(session, tmp_path, features, more, flags,
                                                       repeats):
    """Four runs and a warm-up one of 1 ms at least, each with its repeats: the time expected."""
    session.identity = MadeSession(features=SIMULATED | features).identity
    made = prepared(session, tmp_path)
    begin, end = made.power_window(4, **more)
    expected = 5 * 1e-3 * (1 + repeats)
    assert session.log == [
        ("configure", {"warmup": 1, "flags": flags, "repeat_layer": more.get(
            "repeat_layer", wire.NO_LAYER), "repeat": repeats, "timeout_s": 120.0}),
        ("run", 0, 4, round(5 + 4 * expected, 6), round(expected, 6))]
    assert (begin, end) == (100e6, 100e6 + 5 * 0.125e6)
    made.run_s = 0.5
    made.power_window(4, **more)
    assert session.log[-1] == ("run", 0, 4, 5 + 10.0 * (1 + repeats), 2.5 * (1 + repeats))


def test_a_power_window_the_board_cannot_hold_is_refused(session, tmp_path):
    made = prepared(session, tmp_path)
    session.most_done = 3
    with pytest.raises(MeasurementError, match="made 3 of 4 runs"):
        made.power_window(4)


def test_a_board_of_which_no_run_comes_is_given_up(session, tmp_path):
    made = prepared(session, tmp_path)
    session.samples_of = lambda run: []
    with pytest.raises(LinkError, match="made line: no whole run came of 5 blocks; 0 of 12 came"):
        made.collect(warm())


def test_an_input_larger_than_any_is_not_made_up(session, tmp_path):
    session.identity = MadeSession(input_bytes=2**32 - 1).identity
    with pytest.raises(MeasurementError, match="made takes 4294967295"):
        prepared(session, tmp_path)
