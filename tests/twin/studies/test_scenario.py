"""Scenarios against closed forms: duty cycle, queues, heat, batteries, governors."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("simpy", reason="needs simpy")

import calibration.datasets
import twin
from twin.errors import ScenarioError
from twin.reports.tables.parts import lines_of
from twin.reports.tables.scenario import scenario_report
from twin.studies.scenario.heat import reach_us, settle_c, warm_c
from twin.studies.scenario.machine import Machine, Speed
from twin.studies.scenario.outcome import life_days, play
from twin.studies.scenario.scenario import (
    Battery,
    Load,
    Scenario,
    Sensor,
    Sleep,
    Thermal,
    list_scenarios,
    load_scenario,
)
from twin.studies.scenario.simulation import simulate
from twin.studies.scenario.warming import find_warming

FAST = Speed(clock_hz=100e6, inference_us=10_000.0, energy_uj=400.0, idle_mw=5.0,
             front_end_us=2_000.0)
SLOW = Speed(clock_hz=50e6, inference_us=20_000.0, energy_uj=300.0, idle_mw=2.5,
             front_end_us=4_000.0)


def machine(*speeds: Speed, sleep_mw: float | None = 0.01, wake_up_us: float = 100.0) -> Machine:
    """A device whose figures are stated, not predicted."""
    return Machine(speeds=speeds or (FAST,), sleep_mw=sleep_mw, wake_up_us=wake_up_us,
                   prediction=None)  # type: ignore[arg-type]


def scenario(**changes) -> Scenario:
    """A hop of 50 ms for 10 s, with sleep in between."""
    base = Scenario(name="made", model="kws", board="none", duration_us=10e6,
                    sensor=Sensor(hop_us=50_000.0), sleep=Sleep(clock_ramp_us=50.0))
    return replace(base, **changes)


def test_mean_power_of_a_duty_cycle_is_the_closed_form() -> None:
    # One hop in steady state: wake-up and ramp at idle power, front end and inference at run
    # power (400 uJ / 10 ms = 40 mW), asleep for the rest.
    run = simulate(scenario(sensor=Sensor(hop_us=50_000.0, power_mw=0.3)), machine())
    work_us, waking_us = 12_000.0, 150.0
    hops = 200
    asleep_us = 10e6 - hops * (work_us + waking_us)
    expected = (hops * (work_us * 40 + waking_us * 5) + asleep_us * 0.01) / 10e6 + 0.3
    assert run.mean_mw == pytest.approx(expected, rel=1e-9)
    assert run.duty == pytest.approx(hops * (work_us + waking_us) / 10e6, rel=1e-9)
    assert (run.late, run.lost, run.inferences) == (0, 0, hops)
    assert run.answers_us == pytest.approx([work_us + waking_us] * hops)
    assert sum(run.time_us.values()) == pytest.approx(10e6, rel=1e-12)


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize("every", [1, 7])
def test_means_hold_for_any_simulated_time(every, buffers) -> None:
    asked = scenario(every=every, sensor=Sensor(hop_us=50_000.0, buffers=buffers, power_mw=0.3))
    runs = [simulate(replace(asked, duration_us=hops * 50_000.0), machine())
            for hops in (1, 2, 2.5, 13, 1000)]
    assert [run.mean_mw for run in runs] == pytest.approx([runs[-1].mean_mw] * 5, rel=1e-9)
    assert all(run.inferences * every == len(run.answers_us) for run in runs)
    assert all(run.duration_us >= hops * 50_000 * (1 - 1e-9)
               for run, hops in zip(runs, (1, 2, 2.5, 13, 1000), strict=True))


def test_an_inference_every_few_hops_costs_the_others_the_front_end_only() -> None:
    run = simulate(scenario(every=5), machine())
    assert run.inferences == 40 and len(run.answers_us) == 200
    assert run.time_us["front end"] == pytest.approx(200 * 2_000.0)
    assert run.time_us["inference"] == pytest.approx(40 * 10_000.0)


def test_a_core_that_is_too_slow_loses_what_it_cannot_do() -> None:
    # Work of 12 ms every 8 ms: two buffers, so one hop in two is lost in the long run, as the
    # buffer is free again only 12 ms after it was full and the next full one comes at 16 ms.
    run = simulate(scenario(sensor=Sensor(hop_us=8_000.0)), machine(wake_up_us=0.0))
    assert run.lost / (run.lost + len(run.answers_us)) == pytest.approx(0.5, abs=0.01)
    # With deep queues it never rests: as many answers as fit into the time, all of them late.
    deep = simulate(scenario(sensor=Sensor(hop_us=8_000.0, buffers=8), deadline_us=8_000.0),
                    machine(wake_up_us=0.0))
    assert len(deep.answers_us) == pytest.approx(10e6 / 12_000, abs=2)
    assert deep.late == len(deep.answers_us)


def test_one_buffer_is_filled_only_after_it_was_worked_on() -> None:
    run = simulate(scenario(sensor=Sensor(hop_us=50_000.0, buffers=1)), machine())
    # A period is the hop, the wake-up, the ramp and the work; the last begun is run to its end.
    period_us = 50_000 + 150 + 12_000
    assert len(run.answers_us) == math.ceil(10e6 / period_us)
    assert run.duration_us == pytest.approx(period_us * len(run.answers_us))
    assert run.lost == 0


@pytest.mark.parametrize("governor, clock_hz", [
    ("fixed", 100e6), ("race_to_idle", 100e6), ("slowest", 50e6)])
def test_governors_choose_by_what_was_predicted(governor, clock_hz) -> None:
    asked = scenario(governor=governor, clocks_hz=(50e6, 100e6), deadline_us=30_000.0)
    run = simulate(asked, machine(SLOW, FAST))
    assert {span.clock_hz for span in run.spans} == {clock_hz}
    tight = replace(asked, deadline_us=20_000.0)
    assert {span.clock_hz for span in simulate(tight, machine(SLOW, FAST)).spans} == {100e6}


def test_ondemand_goes_down_when_quiet_and_up_when_busy() -> None:
    quiet = simulate(scenario(governor="ondemand", clocks_hz=(50e6, 100e6)), machine(SLOW, FAST))
    assert quiet.spans[-1].clock_hz == 50e6 and quiet.clock_changes == 1  # 12 of 50 ms < 30 %.
    busy = simulate(scenario(governor="ondemand", clocks_hz=(50e6, 100e6),
                             sensor=Sensor(hop_us=28_000.0)), machine(SLOW, FAST))
    assert busy.clock_changes == 0  # 12 of 28 ms is neither.


def test_racing_to_idle_wins_only_where_sleep_is_deep() -> None:
    # Slow: 300 uJ an inference; fast: 400 uJ and sleep. With deep sleep the rest is nothing.
    rest = {}
    for sleep_mw in (0.01, None):
        for name, clocks in (("race_to_idle", (SLOW, FAST)), ("slowest", (SLOW, FAST))):
            asked = scenario(governor=name, clocks_hz=(50e6, 100e6))
            rest[name, sleep_mw] = simulate(asked, machine(*clocks, sleep_mw=sleep_mw)).mean_mw
    assert rest["slowest", 0.01] < rest["race_to_idle", 0.01]
    assert rest["slowest", None] < rest["race_to_idle", None]
    assert rest["race_to_idle", 0.01] < rest["race_to_idle", None]


def test_other_masters_stretch_work_for_as_long_as_they_are_busy() -> None:
    # Busy all the time: every job takes 1.25 times as long.
    load = Load(master="dma", memory="sram", bytes_per_second=1e6, period_us=1e4, busy_us=1e4,
                power_mw=2.0)
    run = simulate(scenario(loads=(load,)), machine(replace(FAST, slowdowns=(1.25,))))
    assert run.answers_us == pytest.approx([1.25 * 12_000 + 150] * 200)
    assert run.energy_uj["other masters"] == pytest.approx(2.0 * 10e6 * 1e-3)
    # Busy for 5 ms of every 50, from the full buffer on: the first 5 ms do the work of 4 ms.
    short = replace(load, period_us=50_000.0, busy_us=5_000.0)
    part = simulate(scenario(loads=(short,)), machine(replace(FAST, slowdowns=(1.25,)),
                                                      wake_up_us=0.0, sleep_mw=None))
    assert part.answers_us[10] == pytest.approx(13_000.0)


def test_heat_follows_its_closed_form() -> None:
    thermal = Thermal(ambient_c=25, resistance_c_per_w=50, capacity_j_per_c=0.02, limit_c=500,
                      resume_c=400)
    assert settle_c(thermal, 1000) == 75
    # One time constant (1 s): 1 - 1/e of the way.
    assert warm_c(thermal, 25, 1000, 1e6) == pytest.approx(25 + 50 * (1 - math.exp(-1)))
    assert reach_us(thermal, 25, 1000, 50) == pytest.approx(1e6 * math.log(2))
    assert reach_us(thermal, 25, 1000, 80) == math.inf
    # Ten constants of always computing (work longer than the hop): what the power leads to.
    run = simulate(scenario(thermal=thermal, sensor=Sensor(hop_us=6_000.0, buffers=4)), machine())
    assert run.hottest_c == pytest.approx(settle_c(thermal, 40.0), abs=0.02)
    assert run.throttled_us == 0


def test_a_part_that_is_too_hot_is_held_down_until_it_has_cooled() -> None:
    thermal = Thermal(ambient_c=25, resistance_c_per_w=1000, capacity_j_per_c=0.0002, limit_c=60,
                      resume_c=45)
    # At 40 mW it would reach 65 degC, at 15 mW 40: it goes to and fro between the two limits.
    asked = scenario(thermal=thermal, sensor=Sensor(hop_us=6_000.0, buffers=4),
                     clocks_hz=(50e6, 100e6))
    run = simulate(asked, machine(SLOW, FAST))
    assert run.hottest_c == pytest.approx(60, abs=1e-6)
    assert 0.2 < run.throttled_us / run.duration_us < 0.9
    temperatures = [span.temperature_c for span in run.spans if span.start_us > 2e6]
    # Let up at 45 degC; the governor goes up when the job in hand is done, so it cools a little on.
    assert 43 < min(temperatures) < 46 and run.clock_changes > 4


def test_a_battery_lasts_its_energy_over_the_mean_power() -> None:
    battery = Battery(capacity_mah=1000, voltage_v=3.0, usable=0.8, regulator_efficiency=0.9)
    assert life_days(battery, 9.0) == pytest.approx(1000 * 3 * 0.8 / (9.0 / 0.9) / 24)
    leaking = replace(battery, self_discharge_per_year=0.5)
    alone = life_days(leaking, 1e-12)  # Half of it a year, of which 0.8 can be had.
    assert alone == pytest.approx(0.8 / 0.5 * 365.25)
    assert life_days(None, 1.0) is None


def test_the_published_streaming_row_has_the_duty_of_its_own_figures() -> None:
    # Rows of use `fit` only: power over a stream of 1,203 s, and processing time per hop.
    path = Path(calibration.datasets.__file__).parent / "mlperf_tiny" / "results.csv"
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file)
                if row["use"] == "fit" and row["benchmark"] == "sww"]
    row = next(row for row in rows if "duty 0.021792" in row["notes"])
    hop_us, work_us, mean_mw = 32_072.0, float(row["latency_ms"]) * 1e3, float(
        row["energy_power_mw"])
    most_mw = mean_mw / (work_us / hop_us)  # If nothing were drawn between hops.
    run = simulate(scenario(sensor=Sensor(hop_us=hop_us), duration_us=1000 * hop_us + 1_000),
                   machine(Speed(clock_hz=49.2e6, inference_us=work_us, front_end_us=0.0,
                                 energy_uj=most_mw * work_us * 1e-3, idle_mw=0.0),
                           sleep_mw=None, wake_up_us=0.0))
    assert run.duty == pytest.approx(0.021792, rel=1e-4)
    assert run.mean_mw * hop_us * 1e-3 == pytest.approx(16.25, rel=1e-3)  # uJ a hop, as derived.


def test_intervals_hold_the_prediction_where_only_it_loses_hops() -> None:
    # Answers after 12.15 ms miss hops of 12.1 ms by a little: one hop in two is lost, at half the
    # power of the fast end, which keeps up; the slow end loses as many and works longer.
    ends = ((0.8, 0.8), (1.3, 1.3))
    outcome = play(scenario(sensor=Sensor(hop_us=12_100.0)), replace(machine(), ends=ends))
    lost = [one.lost for one in (outcome.run, *outcome.ends)]
    low, high = outcome.mean_ends_mw
    assert lost[1] == 0 and lost[0] > 400
    assert low == outcome.run.mean_mw < min(one.mean_mw for one in outcome.ends)
    assert high == max(one.mean_mw for one in outcome.ends)
    assert outcome.missed_ends == (0, max(lost[0] + outcome.run.late,
                                          lost[2] + outcome.ends[1].late))
    assert outcome.loss.startswith("50% of the hops: no buffer was free")
    assert outcome.loss.endswith(f"; at the interval's ends 0 and {lost[2]} are lost")
    kept = play(scenario(), machine())
    assert kept.loss == "" and kept.mean_ends_mw is None and kept.missed_ends is None


def test_a_scenario_without_a_description_is_its_name_alone() -> None:
    outcome = twin.run_scenario("keyword_spotting", {"duration": "1s"})
    for described, end in ((outcome.scenario.description, outcome.scenario.description),
                           ("", "keyword_spotting")):
        one = replace(outcome, scenario=replace(outcome.scenario, description=described))
        line = lines_of([scenario_report(one)], 300)[0]
        assert line.startswith("scenario") and line.rstrip().endswith(end)


def test_what_if_paths_and_entries_of_lists_are_set() -> None:
    changed = load_scenario("keyword_spotting", {"set.network.width": "0.5",
                                                 "set.clocks.cpu.frequency_hz": "80MHz"})
    assert changed.changes == {"network.width": "0.5", "clocks.cpu.frequency_hz": "80MHz"}
    whole = twin.run_scenario("keyword_spotting", {"duration": "1s"}).machine.speeds[0]
    outcome = twin.run_scenario("keyword_spotting", {"duration": "1s", "set.network.width": "0.5"})
    assert outcome.machine.speeds[0].inference_us < 0.6 * whole.inference_us
    slower = twin.run_scenario("keyword_spotting", {"duration": "1s",
                                                    "set.clocks.cpu.frequency_hz": "80MHz"})
    assert slower.machine.speeds[0].clock_hz == 80e6
    assert load_scenario("anomaly_detection", {"loads.0.busy": "5ms"}).loads[0].busy_us == 5000


def test_a_scenario_takes_the_words_for_a_library() -> None:
    for key in ("runtime", "set.runtime"):
        best, default = (twin.run_scenario("keyword_spotting", {
            "board": "nucleo_l4r5zi", "clocks": ["80MHz"], "duration": "1s", key: word,
            }).machine.prediction for word in ("best", "default"))
        assert default.deployment.runtime == twin.deploy("kws", "nucleo_l4r5zi").runtime
        assert best.deployment.runtime.name != "unknown" and best.time_us <= default.time_us


@pytest.mark.parametrize("overrides, said", [
    ({"set.network.widht": "0.5"}, "set: .*no such path"),
    ({"set.clocks.cpu.frequency_hz": "80MHz"}, "set: .*chosen of clocks"),
    ({"clocks": ["500MHz", "80MHz"]}, "clocks: .*accepted: up to 120 MHz"),
    ({"loads.0.master": "dma9"}, "loads.0.master: .*no DMA controller 'dma9'; did you mean dma1"),
    ({"sensor.dma": "gdma"}, "sensor.dma: .*no DMA controller"),
    ({"loads.0.memory": "srm"}, "loads.0: .*did you mean sram"),
    ({"loads.1.memory": "sram"}, "loads.1.memory: '1' is no entry of a list; accepted: 0")])
def test_what_the_board_has_not_names_file_and_key(overrides, said) -> None:
    with pytest.raises(ScenarioError, match="^anomaly_detection.yaml:" + said):
        twin.run_scenario("anomaly_detection", {"duration": "1s", **overrides})


def test_shipped_scenarios_run_and_meet_their_deadlines() -> None:
    assert list_scenarios() == ("anomaly_detection", "keyword_spotting", "visual_wake_words")
    outcome = twin.run_scenario("anomaly_detection", {"duration": "2s"})
    assert outcome.met and len(outcome.ends) == 2
    low, high = outcome.life_ends_days
    assert low < outcome.life_days < high
    document = json.loads(json.dumps(twin.to_document(outcome)))
    assert document["hops"] == 20 and document["speeds"][0]["slowdowns"][0] > 1
    assert play(outcome.scenario, outcome.machine).run.energy_uj == outcome.run.energy_uj


@pytest.mark.parametrize("overrides, said", [
    ({"governor": "turbo"}, "governor: 'turbo'"), ({"sensor.hops": "1ms"}, "sensor.hops: unknown"),
    ({"sensor.hop": 20}, "sensor.hop: 20; accepted: a number with one of ns"),
    ({"duration": "1ns"}, "shorter than a hop"), ({"sensor.buffers": 0}, "sensor.buffers"),
    ({"duration": "100000000s"}, "more than 1,000,000 hops"),
    ({"clocks": []}, "chooses of several"),
    ({"schema": 2}, "schema"), ({"nothing": 1}, "nothing: unknown key"),
    ({"file": "mine"}, "file: unknown key"),
    ({"loads.0.bsy": "1ms"}, "loads.0.bsy: unknown key; did you mean busy"),
    ({"thermal": {"limt_c": 3}}, "thermal.limt_c: unknown key; did you mean limit_c"),
    ({"thermal": {"resistance_c_per_w": 1, "capacity_j_per_c": 1, "limit_c": 20, "resume_c": 30}},
     "ambient_c below")])
def test_a_wrong_file_names_its_key(overrides, said) -> None:
    with pytest.raises(ScenarioError) as refused:
        load_scenario("anomaly_detection", overrides)
    assert said in str(refused.value) and "anomaly_detection.yaml" in str(refused.value)


PICO = {"board": "rpi_pico", "runtime": "tflm-cmsis-nn@2023", "sensor.dma": None, "loads": [],
        "set": {}, "sensor.hop": "2s", "deadline": "2s", "duration": "4s"}


def test_a_sleep_current_is_taken_at_the_voltage_it_was_measured_at() -> None:
    asleep_mw = {state: twin.run_scenario("anomaly_detection", {
        **PICO, "sleep": {"state": state, "wake_up": "1ms"}}).machine.sleep_mw
        for state in ("sleep", "lightsleep")}
    assert asleep_mw["lightsleep"] == pytest.approx(1.5 * 5.0)  # At the board's USB port.
    assert asleep_mw["sleep"] == pytest.approx(0.39 * 3.3)


def test_what_nobody_knows_is_asked_for(tmp_path) -> None:
    with pytest.raises(ScenarioError, match=r"sleep.wake_up: not known of lightsleep of rpi_pico"):
        twin.run_scenario("anomaly_detection", {**PICO, "sleep": {"state": "lightsleep"}})
    with pytest.raises(ScenarioError, match=r"states no 'hibernate'; accepted: .*stop1"):
        twin.run_scenario("anomaly_detection", {"sleep": {"state": "hibernate"}})
    with pytest.raises(ScenarioError, match="no such scenario; did you mean keyword_spotting"):
        load_scenario("keyword_spoting")
    (tmp_path / "a.yaml").write_text("- 1\n")
    with pytest.raises(ScenarioError, match="a mapping is expected"):
        load_scenario(str(tmp_path / "a.yaml"))
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_scenario(str(tmp_path / "none.yaml"))


def test_the_timeline_is_a_picture(tmp_path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    from twin.reports.figures.canvas import save_figure
    from twin.reports.figures.power_states import draw_scenario

    outcome = twin.run_scenario("visual_wake_words", {"duration": "6s"})
    written = save_figure(draw_scenario(outcome), tmp_path / "states.svg")
    assert b"temperature, degC" in written.read_bytes() or written.stat().st_size > 10_000


@pytest.mark.parametrize("changes", [
    {"duration_us": 4e11},
    {"loads": (Load(master="d", memory="m", bytes_per_second=1, period_us=1e-3, busy_us=5e-4),)},
    {"governor": "ondemand", "thermal": Thermal(
        ambient_c=25, resistance_c_per_w=1e3, capacity_j_per_c=1e-15, limit_c=26,
        resume_c=25.9999999)}], ids=["long", "loads", "heat"])
def test_a_run_of_too_many_events_is_refused(changes, monkeypatch) -> None:
    monkeypatch.setattr("twin.studies.scenario.simulation.MOST_EVENTS", 20_000)
    slowed = [replace(speed, slowdowns=(1.1,) * len(changes.get("loads", ())))
              for speed in (SLOW, FAST)]
    with pytest.raises(ScenarioError, match="more than 20,000 events"):
        simulate(scenario(**changes), machine(*slowed))


@pytest.mark.parametrize("name,board,said", [
    ("keyword_spotting", "nucleo_h723zg", ("sensor.dma: dma1", "sleep.state: stop2")),
    ("keyword_spotting", "apollo510_evb", ("no bus master", "deep_sleep")),
    ("visual_wake_words", "nucleo_l4r5zi", ("sleep.state: stop of", "the same of its own 120 MHz")),
    ("anomaly_detection", "rpi_pico", ("loads.0.master: dma1", "sleep" * 0))])
def test_a_shipped_scenario_runs_on_another_board_and_says_what_moved(name, board, said):
    outcome = twin.run_scenario(name, {"board": board})
    assert outcome.run.mean_mw > 0 and outcome.ends
    notes = "\n".join(outcome.machine.notes)
    assert all(word in notes for word in said) and board in notes
    kept = twin.run_scenario(name).machine.notes
    assert not any("of the file's board" in note for note in kept)


def test_what_a_user_states_of_another_board_stays():
    with pytest.raises(ScenarioError, match="has no DMA controller 'dma9'"):
        twin.run_scenario("keyword_spotting", {"board": "nucleo_h723zg", "sensor.dma": "dma9"})
    outcome = twin.run_scenario("keyword_spotting", {
        "board": "nucleo_h723zg", "sleep.state": "own", "sleep.current": "1mA",
        "sleep.wake_up": "5us"})
    assert outcome.machine.sleep_mw == pytest.approx(3.3, rel=0.2)
    assert outcome.machine.wake_up_us == 5


def test_a_run_that_ends_warming_up_says_where_it_settles() -> None:
    """What it foretells is what a longer run comes to."""
    thermal = Thermal(ambient_c=25, resistance_c_per_w=1000, capacity_j_per_c=0.02, limit_c=66,
                      resume_c=45)
    busy = Sensor(hop_us=6_000.0, buffers=4)
    leaky = replace(FAST, leakage_mw=1.0)
    asked = scenario(thermal=thermal, sensor=busy, duration_us=4e6, clocks_hz=(50e6, 100e6))
    short, long = (simulate(replace(asked, duration_us=time_us), machine(SLOW, leaky))
                   for time_us in (4e6, 120e6))
    said = find_warming(asked, machine(SLOW, leaky), short)
    assert "after 4 s: the time constant is 20 s" in said and not short.throttled_us
    assert "66 degC is reached after about" in said and "held at 50 MHz until 45 degC" in said
    foretold_s = float(said.partition("about ")[2].split()[0])
    reached_s = next(span.end_us for span in long.spans if span.clock_hz == 50e6) * 1e-6
    assert foretold_s == pytest.approx(reached_s, rel=0.1)
    cool = replace(asked, thermal=replace(thermal, limit_c=300))
    said = find_warming(cool, machine(SLOW, leaky), simulate(cool, machine(SLOW, leaky)))
    settled = simulate(replace(cool, duration_us=200e6), machine(SLOW, leaky))
    assert f"settles at {settled.hottest_c:.1f} degC" in said and "no limit is reached" in said
    assert find_warming(cool, machine(SLOW, leaky), settled) == ""
    runs_away = find_warming(cool, machine(SLOW, replace(FAST, leakage_mw=20.0)), short)
    assert "leakage takes it above 300 degC" in runs_away
    half = replace(asked, duration_us=80e6)
    assert find_warming(half, machine(SLOW, leaky), simulate(half, machine(SLOW, leaky))) == (
        "its warm-up, of a time constant of 20 s, is in the means of these 80 s (--set duration=)")


def test_leakage_follows_the_temperature_to_its_fixed_point() -> None:
    """Always computing: T = ambient + R (P + L (2^((T - 25) / d) - 1)) in the end."""
    thermal = Thermal(ambient_c=45, resistance_c_per_w=50, capacity_j_per_c=0.02, limit_c=500,
                      resume_c=400, leakage_doubles_c=20)
    busy = Sensor(hop_us=6_000.0, buffers=4)
    leaky = machine(replace(FAST, leakage_mw=4.0))
    run = simulate(scenario(thermal=thermal, sensor=busy), leaky)
    end = thermal.ambient_c
    for _ in range(50):
        end = 45 + 0.05 * (40 + 4 * (2 ** ((end - 25) / 20) - 1))
    assert run.hottest_c == pytest.approx(end, abs=0.02)
    assert run.spans[-1].power_mw == pytest.approx(40 + 4 * (2 ** ((end - 25) / 20) - 1), rel=1e-3)
    still = simulate(scenario(thermal=replace(thermal, leakage_doubles_c=None), sensor=busy), leaky)
    assert still.hottest_c == pytest.approx(settle_c(thermal, 40.0), abs=0.02)
    assert still.hottest_c < run.hottest_c
    # Asleep for nearly all of it, at ambient: 0.01 mW doubles in 20 K; at 25 degC nothing changes.

    def rest(ambient_c: float) -> float:
        held = replace(thermal, ambient_c=ambient_c, resistance_c_per_w=1e-6)
        return simulate(scenario(thermal=held), leaky).energy_uj["asleep"]

    assert rest(45) == pytest.approx(2 * rest(25), rel=1e-6)


def test_a_leaky_part_is_throttled_at_its_limit() -> None:
    thermal = Thermal(ambient_c=25, resistance_c_per_w=1000, capacity_j_per_c=0.02, limit_c=60,
                      resume_c=45)
    asked = scenario(thermal=thermal, sensor=Sensor(hop_us=6_000.0, buffers=4), duration_us=120e6,
                     clocks_hz=(50e6, 100e6))
    cool, hot = (simulate(asked, machine(SLOW, replace(FAST, leakage_mw=leak)))
                 for leak in (0.0, 2.0))
    assert hot.hottest_c == pytest.approx(60, abs=1.0)
    assert hot.throttled_us > cool.throttled_us
