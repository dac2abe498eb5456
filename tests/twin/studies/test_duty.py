"""The duty of a battery product: closed form against the simulation, limits, typed figures."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from typer.testing import CliRunner

import twin
from calibration.fitting.intervals import Interval
from hwmodels.board.file import change_board, load_board
from hwmodels.board.power import SleepState
from hwmodels.quantities import format_power
from twin.cli import app
from twin.errors import UsageError
from twin.network.writers import write_model
from twin.network.zoo.networks import start
from twin.reports.page.rival_plots import draw_dashboard
from twin.reports.page.rivals import head_figures, list_least, row_details, say_best_mark, say_lead
from twin.reports.rivals import chart_quantity, name_rivals
from twin.reports.tables.studies import list_figures, summarise
from twin.reports.tables.study_sentences import say_cell, say_duty, say_life
from twin.studies.duty import (
    SLEEP_SD,
    Battery,
    Duty,
    Rest,
    current_paths,
    find_rest,
    idle_power_mw,
    life_days,
    mean_mw_of,
    mean_power_mw,
    read_currents,
    read_duty,
    read_sleep,
)
from twin.studies.filling import add_duty
from twin.studies.limits import Limits, probability_of_all, read_limits
from twin.studies.penalties import list_penalties
from twin.studies.points import Deployer
from twin.studies.results import list_columns, read_row
from twin.studies.rows import Row, judge
from twin.studies.selection import list_metrics
from twin.studies.sweep import mark_front

SECOND = Duty(every_us=1e6, cell=Battery(capacity_mah=1000, voltage_v=3.7))


def run(*words: str, columns: int = 200):
    return CliRunner().invoke(app, [*words], env={"COLUMNS": str(columns)})


def row(board: str = "a", time_us: float = 1e4, energy_uj: float | None = 500.0,
        **more: object) -> Row:
    return Row(**{"inputs": (), "model": "m", "board": board, "time_us": time_us,
                  "clock_hz": 1e8, "energy_uj": energy_uj, "boundary": "chip", **more})


def test_the_simulated_mean_power_is_the_closed_form() -> None:
    pytest.importorskip("simpy", reason="needs simpy")
    outcome = twin.run_scenario("keyword_spotting", {
        "sensor.hop": "200ms", "sensor.power_mw": 0, "sensor.dma": None, "duration": "2s",
        "inference_every": 1, "front_end_cycles": 0, "deadline": "200ms", "governor": "fixed",
        "clocks": [], "loads": [], "thermal": None,
        "sleep": {"state": "stop2", "current": "1.2uA", "wake_up": "10us"}})
    speed, machine = outcome.machine.speeds[0], outcome.machine
    rest = Rest(state="stop2", sleep_mw=machine.sleep_mw, wake_up_us=10.0)
    mean_mw = mean_power_mw(200e3, speed.inference_us, speed.energy_uj, rest, speed.idle_mw)
    assert outcome.run.mean_mw == pytest.approx(mean_mw, rel=1e-9)
    low, high = (mean_power_mw(200e3, speed.inference_us * time, speed.energy_uj * energy, rest,
                               speed.idle_mw) for time, energy in machine.ends)
    assert outcome.mean_ends_mw == pytest.approx((low, high), rel=1e-9)


def test_a_row_has_the_power_and_life_a_scenario_would() -> None:
    board = load_board("nucleo_l4r5zi")
    sleep = {"nucleo_l4r5zi": (0.0012, 10.0)}
    plain = row(time=Interval(low=8e3, high=1.2e4, level=0.9),
                energy=Interval(low=400.0, high=650.0, level=0.9))
    found = add_duty(plain, board, SECOND, sleep)
    rest = find_rest(board, sleep)
    idle = idle_power_mw(board, 1e8)
    assert found.mean_mw == mean_power_mw(1e6, 1e4, 500.0, rest, idle)
    assert found.mean.low == pytest.approx(mean_power_mw(1e6, 8e3, 400.0, rest, idle))
    assert found.mean.high == pytest.approx(mean_power_mw(1e6, 1.2e4, 650.0, rest, idle))
    assert found.life_days == life_days(SECOND.cell, found.mean_mw)
    assert found.life.low < found.life_days < found.life.high
    assert mean_mw_of(SECOND.cell, found.life_days) == pytest.approx(found.mean_mw)
    assert found.energy_day_j == pytest.approx(found.mean_mw * 86.4)
    assert read_row({**list_columns(found)}) == found


def test_an_unsure_sleep_current_widens_the_life() -> None:
    board = load_board("nucleo_l4r5zi")
    state = SleepState(name="stop9", current_ma=0.1, wake_up_ns=5e3)
    fact = dataclasses.replace(board.facts[0], path="sleep.stop9.current_ma", rel_sd=0.5)
    unsure = dataclasses.replace(board, sleep=(state,), facts=(*board.facts, fact))
    sure = dataclasses.replace(board, sleep=(state,))
    plain = row(time=Interval(low=1e4, high=1e4, level=0.9),
                energy=Interval(low=500.0, high=500.0, level=0.9))
    wide, narrow = (add_duty(plain, one, SECOND, {}) for one in (unsure, sure))
    slept = 0.1 * board.power.voltage_v * (1 - (1e4 + 5.0) / 1e6)
    for found, sd in ((wide, 0.5), (narrow, SLEEP_SD)):
        assert found.mean.high - found.mean_mw == pytest.approx(
            slept * (math.exp(sd * 1.6448536) - 1), rel=1e-6)


def test_what_outlasts_its_period_meets_nothing_and_has_no_power() -> None:
    limits = read_limits(min_days=90, duty=SECOND)
    assert limits.every_us == 1e6 and limits.max_mean_mw == pytest.approx(3700 / 24 / 90)
    board = load_board("nucleo_l4r5zi")
    late = judge(add_duty(row(time_us=1.2e6), board, SECOND, {"nucleo_l4r5zi": (0.001, 1.0)}),
                 limits)
    assert late.mean_mw is None and "time_us" in late.violations and late.verdict == "no"
    assert not Limits()


def test_mean_power_takes_part_in_the_probability() -> None:
    mean = Interval(low=0.8, high=1.25, level=0.9)
    asked = {"time_us": 1e4, "energy_uj": 500.0, "mean_mw": 1.0, "mean": mean,
             "time": Interval(low=9e3, high=1.1e4, level=0.9), "energy": None}
    at_end = probability_of_all(Limits(max_mean_mw=1.25), **asked)
    assert at_end == pytest.approx(0.95)
    assert probability_of_all(Limits(max_mean_mw=1.25), **{**asked, "mean_mw": None}) is None
    assert probability_of_all(Limits(max_mean_mw=1.25, max_time_us=1e4), **asked) < 0.51


def test_energies_compare_within_one_boundary_and_mean_powers_across() -> None:
    kit = row("kit", energy_uj=100.0, boundary="board", idle_mw=565.0, ram_bytes=1)
    chips = [row("a", energy_uj=500.0), row("b", energy_uj=300.0)]
    assert [one for one in list_metrics([kit, *chips]) if "energy" in one[0]] == [
        ("least energy (of a chip)", "energy_uj", "energy_uj of a chip"),
        ("least energy (of a board)", "energy_uj", "energy_uj of a board")]
    marked = mark_front([kit, *chips], ("energy_uj",))
    assert [bool(one.front) for one in marked] == [True, False, True]
    power = [dataclasses.replace(one, mean_mw=mean) for one, mean in zip(
        (kit, *chips), (565.0, 0.5, 0.3), strict=True)]
    assert [bool(one.front) for one in mark_front(power, ("mean_mw",))] == [False, False, True]


def test_failing_boards_are_ordered_by_their_distance_and_unknown_before_known_misses() -> None:
    limits = Limits(max_time_us=50e3, max_energy_uj=3e3)
    rows = [judge(one, limits) for one in (
        row("unknown", 14.9e3, None), row("near", 50.7e3), row("far", 661e3),
        row("meets", 30e3, time=Interval(low=29e3, high=31e3, level=0.9),
            energy=Interval(low=450.0, high=550.0, level=0.9)))]
    scores = {one.board: 100 - sum(lost.points for lost in list_penalties(one, limits))
              for one in rows}
    assert [one.verdict for one in rows] == ["may", "no", "no", "yes"]
    assert scores["meets"] > scores["unknown"] > scores["near"] > scores["far"]
    assert scores["near"] == pytest.approx(25 / 1.014)
    assert scores["far"] == pytest.approx(25 / 13.22)


def test_stated_currents_give_an_energy_and_assumed_ones_can_be_left_out() -> None:
    known = twin.sweep("ad", "nrf52840dk", currents={"nrf52840dk": "52uA/MHz"},
                       sleep={"nrf52840": "1.5uA,8us"}, every="1s", cell="1000mAh").rows[0]
    assert known.energy_uj and known.life_days and known.sleep == "as stated at 3 V"
    board = load_board("nrf52840dk")
    changed = change_board(board, current_paths(board, 0.052))
    assert idle_power_mw(changed, 64e6) < 0.052 * 64 * 3.0
    for name in ("nucleo_l4r5zi", "nucleo_h7a3zi_q", "esp32c3_devkitm"):
        assumed = {fact.path for fact in load_board(name).facts if fact.kind == "assumed"
                   and fact.path.endswith(".current_ma")}
        for state in Deployer(known_only=True).read_board(name).sleep:
            assert f"sleep.{state.name}.current_ma" not in assumed or state.current_ma is None
    assert Deployer(known_only=True).read_board("nucleo_l4r5zi").power.activity_ma_per_mhz


def test_every_command_takes_stated_currents_as_a_single_check_does() -> None:
    board, own = "nucleo_l4r5zi", {"currents": {"nucleo_l4r5zi": "300uA/MHz"}}
    words = ("-b", board, "--currents", "nucleo_l4r5zi=300uA/MHz")
    checked = run("check", "ad", *words, "--max-uj", "1000mJ")
    assert "currents you state give" in " ".join(checked.stderr.split())
    asked = twin.check(twin.deploy("ad", board), max_uj="1000mJ", **own).prediction.energy_uj
    assert asked > 1.5 * twin.predict(twin.deploy("ad", board)).energy_uj
    two = ("-b", "nucleo_f401re", "--json")
    for found in (json.loads(run(*each, *words, *two).stdout) for each in (
            ("select", "ad", "--runtime", "default"), ("sweep", "ad"),
            ("check", "ad", "--max-ms", "1s"))):
        energies = {row["board"]: row["energy_uj"] for row in found.get(
            "rows", [one["row"] for one in found.get("choices", ())])}
        assert energies[board] == pytest.approx(asked, rel=1e-9) and len(energies) == 2
    for rows in (twin.sweep("ad", board, clocks=["120MHz", "80MHz", "40MHz", "20MHz"], **own).rows,
                 [twin.select("ad", [board], runtimes="default", **own).choices[0].row],
                 twin.sweep("ad", load_board(board), **own).rows):
        assert rows[0].energy_uj == pytest.approx(asked, rel=1e-9)


def test_every_command_leaves_out_what_is_assumed() -> None:
    asked = {"known_only": True, "every": "1s"}
    chosen = twin.select("ad", ["rpi_pico2", "nucleo_l4r5zi"], runtimes="default", **asked)
    assert {one.row.board: one.row.energy_uj for one in chosen.choices}["rpi_pico2"] is None
    swept = twin.sweep("ad", ["rpi_pico2", "nucleo_l4r5zi"], **asked)
    assert swept.rows[0].energy_uj is None and swept.rows[1].sleep == "not known"
    several = json.loads(run("check", "ad", "-b", "rpi_pico2", "-b", "nucleo_l4r5zi", "--max-ms",
                             "1s", "--known-only", "--json").stdout)
    assert several["rows"][0]["energy_uj"] is None


def test_names_beside_figures_are_of_boards_or_chips_and_given_once() -> None:
    words = ("sweep", "ad", "-b", "nucleo_u575zi_q", "--every", "1s")
    for option, value in (("--price", "3"), ("--currents", "190uA/MHz"), ("--sleep", "1uA")):
        for name in ("nosuch", "stm32u575zit6q"):
            refused = run(*words, option, f"{name}={value}")
            assert refused.exit_code == 2 and f"{option} '{name}'" in refused.stderr
        for twice in ("nucleo_u575zi_q", "NUCLEO-U575ZI-Q"):
            refused = run(*words, option, f"nucleo_u575zi_q={value}", option, f"{twice}={value}")
            assert refused.exit_code == 2 and "given twice" in refused.stderr
    refused = run(*words, "--price", "nucleo_u575zi_q=3EUR")
    assert refused.exit_code == 2 and "--price nucleo_u575zi_q '3EUR'" in refused.stderr
    for known in ("NUCLEO-U575ZI-Q", "stm32u575zi", "nucleo_f401re"):
        twin.sweep("ad", "nucleo_u575zi_q", sleep={known: "1uA"})
    with pytest.raises(UsageError, match="did you mean stm32u575zi"):
        twin.select("ad", ["nucleo_u575zi_q"], currents={"stm32u575z": "1uA/MHz"})


def test_a_wake_up_that_outlasts_the_period_meets_nothing() -> None:
    words = ("-b", "nucleo_u575zi_q", "--every", "1s", "--cell", "1000mAh", "--sleep")
    for wake_up, code in (("10us", 0), ("10s", 1), ("999.5ms", 1)):
        sleep = f"nucleo_u575zi_q=1.2uA,{wake_up}"
        checked = run("check", "ad", *words, sleep, "--no-advice")
        assert checked.exit_code == code and "within its period" in checked.stdout
        chosen = run("select", "ad", *words, sleep, "--no-advice", "--runtime", "default")
        swept = twin.sweep("ad", "nucleo_u575zi_q", every="1s",
                           sleep={"nucleo_u575zi_q": f"1.2uA,{wake_up}"}).rows[0]
        assert chosen.exit_code == code and swept.met == (not code)
        assert ("periods" in chosen.stdout) == bool(code)
        assert (swept.probability > 0.99) == (not code)
        assert read_row({**list_columns(swept)}) == swept
    assert "wake-up and time 10" in " ".join(run(
        "select", "ad", *words, "nucleo_u575zi_q=1.2uA,10s", "--runtime", "default").stdout.split())


def test_a_selection_of_a_model_that_is_refused_is_refused() -> None:
    refused = run("select", "nosuch.tflite")
    assert refused.exit_code == 3 and refused.stdout == ""
    assert refused.stderr.count("nosuch.tflite: no such file") == 1


def test_sentences_of_a_choice_say_what_their_figures_are_of() -> None:
    words = ("-b", "nucleo_u575zi_q", "-b", "nucleo_l4r5zi", "--every", "1s", "--cell", "1000mAh",
             "--sleep", "nucleo_u575zi_q=4uA,10us", "--runtime", "default", "--by", "days,price")
    said = " ".join(run("select", "ad", *words).stdout.split())
    assert "sleep: as stated at 1.8 V (nucleo_u575zi_q); in stop2 (nucleo_l4r5zi)" in said
    assert "ordered by mean power, then price, not by score" in said and "% likely)" in said
    assert said.count("all usable, without regulator losses or self-discharge") == 1
    missed = run("advise", "ad", *words[:2], "--max-ms", "0.05ms").stdout
    assert " times its limit" in missed.partition("nearest: --set")[2]
    may = run("select", "ad", *words[2:], "--max-usd", "99", "--known-only").stdout
    assert "would decide;" not in may
    assert say_life(row(mean_mw=1.0, life_days=1.0)) == "1 day"
    assert ("asleep", "as stated at 3 V") in row_details(row(sleep="as stated at 3 V"))
    checked = run("check", "ad", "-b", "nucleo_l4r5zi", "--max-ms", "20")
    assert "P(exceeds)" in checked.stdout


def test_a_life_names_what_it_takes_as_exact_or_assumes_and_nothing_else() -> None:
    board = load_board("nucleo_l4r5zi")
    assumed = "sleep currents at 25 °C, 30% apart between parts (assumed)"
    typed = "sleep current as stated, without a spread"
    for cell, sleep, taken in (
            ("1Ah@3V", {}, (assumed,)), ("3.7Wh", {"nucleo_l4r5zi": (0.002, None)}, (typed,)),
            ("1Ah", {}, ("a cell in mAh without @VOLTS has 3 V (assumed)", assumed))):
        found = add_duty(row(), board, read_duty("1s", cell), sleep)
        assert found.life_basis == "; ".join(taken) and found.life_basis in say_cell(found)
        assert read_row(list_columns(found)).life_basis == found.life_basis
    spread = dataclasses.replace(board, facts=tuple(
        dataclasses.replace(fact, rel_sd=0.3) if fact.path == "sleep.stop2.current_ma" else fact
        for fact in board.facts))
    assert add_duty(row(), spread, read_duty("1s", "1Ah@3V"), {}).life_basis == (
        "sleep current assumed, unsure by 30% (one deviation)")
    chosen = run("select", "ad", "-b", "nucleo_h7a3zi_q", "-b", "nucleo_l4r5zi", "--runtime",
                 "default", "--max-ms", "20", "--every", "1s", "--cell", "1Ah").stdout
    days = " ".join(chosen.split())
    assert "3 V (assumed); sleep current" in days
    assert "assumed, unsure by 70% (one deviation) (nucleo_h7a3zi_q)" in days
    assert "apart between parts (assumed) (nucleo_l4r5zi)" in days


def test_a_scenario_is_as_unsure_as_the_duty_where_sleep_is_a_guess() -> None:
    pytest.importorskip("simpy", reason="needs simpy")
    outcome = twin.run_scenario("anomaly_detection", {
        "model": "ad", "board": "nucleo_h7a3zi_q", "runtime": None, "set": {}, "duration": "4s",
        "sensor": {"hop": "1s", "buffers": 2}, "inference_every": 1, "front_end_cycles": 0,
        "deadline": "1s", "governor": "fixed", "clocks": [], "loads": [], "thermal": None,
        "sleep": {"state": "stop"}, "battery": {"capacity_mah": 1000, "voltage_v": 3.7}})
    prediction, speed = outcome.machine.prediction, outcome.machine.speeds[0]
    sure = prediction.certainty
    duty = add_duty(row(time_us=prediction.time_us, energy_uj=prediction.energy_uj,
                        time=sure.time_us, energy=sure.energy_uj, clock_hz=speed.clock_hz),
                    load_board("nucleo_h7a3zi_q"), SECOND, {})
    assert outcome.mean_ends_mw == pytest.approx((duty.mean.low, duty.mean.high), rel=1e-6)
    assert outcome.life_ends_days == pytest.approx((duty.life.low, duty.life.high), rel=1e-6)
    assert duty.life.high > 2.5 * duty.life.low and outcome.machine.spread[1] == duty.life_basis


def test_a_life_that_is_all_sleep_is_as_unsure_as_sleep_currents_are() -> None:
    """90 % of a normal logarithm of deviation 0.3 are within exp(+-0.49): 0.61 and 1.64."""
    once = Interval(low=1.0, high=1.0, level=0.9)
    seldom = add_duty(dataclasses.replace(row(), time=once, energy=once),
                      load_board("nucleo_l4r5zi"), read_duty("365d", "1Ah@3V"), {})
    assert seldom.life.low / seldom.life_days == pytest.approx(1 / 1.64, rel=0.02)
    assert seldom.life.high / seldom.life_days == pytest.approx(1 / 0.61, rel=0.02)


def test_a_board_without_sleep_current_is_not_known_not_zero() -> None:
    board = dataclasses.replace(load_board("nucleo_l4r5zi"), sleep=())
    found = add_duty(row(), board, SECOND, {})
    assert found.sleep == "not known" and found.mean_mw is None and found.life_days is None
    kit = load_board("stm32n6570_dk")
    assert find_rest(dataclasses.replace(kit, sleep=()), {}) == Rest(
        state="idle", sleep_mw=565, wake_up_us=0.0, rel_sd=0.05, basis="")


def test_duties_are_read_with_units_only() -> None:
    assert read_duty("5min", "3.7Wh") == Duty(every_us=3e8, cell=Battery(
        capacity_mah=3700, voltage_v=1.0))
    assert read_duty("1s", "1Ah").cell == Battery(capacity_mah=1000, voltage_v=3.0)
    assert read_duty("1s", "1Ah").assumes_volts
    assert not read_duty("1s", "1Ah@3V").assumes_volts
    assert read_sleep({"a": "1.2uA,10us"}) == {"a": (pytest.approx(0.0012), 10.0)}
    assert read_currents({"a": "52uA/MHz"}) == {"a": pytest.approx(0.052)}
    for wrong in (("1", None), ("10Hz", None), ("2/min", None), ("-1s", None), ("1s", "1000"),
                  ("1s", "1000mAh@"), ("1s", "3.7Wh@3V"), ("1s", "mAh"), ("1e9d", None)):
        with pytest.raises(UsageError, match="accepted"):
            read_duty(*wrong)
    for words in ({"cell": "1000mAh"}, {"min_days": 90}, {"every": "1s", "min_days": 90},
                  {"max_mw": "5mJ", "every": "1s"}, {"currents": {"nrf52840dk": "52uA"}},
                  {"sleep": {"nrf52840dk": "52"}}):
        with pytest.raises(UsageError, match="accepted"):
            twin.sweep("ad", "nrf52840dk", **words)


def test_a_life_is_named_where_it_is_the_stricter_limit_of_mean_power() -> None:
    duty = read_duty("1s", "1000mAh@3.7V")
    for max_mw, days, most in (("1mW", None, 1.0), ("2mW", 90, 3700 / 24 / 90)):
        limits = read_limits(max_mw=max_mw, min_days=90, duty=duty)
        assert limits.min_life_days == days and limits.max_mean_mw == pytest.approx(most)


def test_a_mean_power_without_sleep_is_predicted_as_at_least() -> None:
    words = ("predict", "kws", "-b", "alif_e7_devkit", "--every", "1s")
    energy = json.loads(run(*words, "--json").stdout)["duty"]
    assert energy["mean_mw"] is None
    least = format_power(energy["energy_uj"] * 1e-3)
    assert f"duty     at least {least} on average whatever it sleeps at (--sleep " in run(
        *words).stdout


def test_a_bound_of_mean_power_is_not_in_the_column_of_the_mean_power() -> None:
    """Inferences alone draw E / T, more than the limit; what sleep adds is not known."""
    board = dataclasses.replace(load_board("nucleo_l4r5zi"), sleep=())
    table = twin.sweep("kws", board, every="1s", max_mw=0.1)
    found, = table.rows
    record = list_columns(found)
    least = pytest.approx(found.energy_uj * 1e-3)
    assert record["mean_least_mw"] == least and found.is_bound
    assert all(record[name] is None for name in (
        "mean_mw", "mean_low_mw", "mean_high_mw", "mean_level", "energy_day_j"))
    assert read_row(record).mean_mw == least and found.verdict == "no"
    figure = next(column for column in list_figures(table.rows, table, wide=True)
                  if column.header == "mW")
    text = figure.cell(found).text
    assert text.startswith(">") and text.endswith("!")


@pytest.mark.parametrize(("max_mw", "meets"), [
    (20, "no, may be within"), (1, "no"), (1000, "yes")])
def test_a_sweep_says_of_a_limit_what_check_says(max_mw: float, meets: str) -> None:
    asked = {"every": "100ms", "max_mw": max_mw}
    table = twin.sweep("kws", "rpi_pico2", **asked)
    checked = twin.check(twin.deploy("kws", "rpi_pico2"), **asked).requirements[-1]
    assert list_columns(table.rows[0])["meets"] == meets
    assert checked.verdict == {"yes": "ok"}.get(meets, meets.replace("no", "not met"))
    assert summarise(table)[0].endswith("; 1 does not (1 may be within)") is ("within" in meets)


def test_commands_take_a_duty_and_show_days() -> None:
    words = ("ad", "-b", "nucleo_u575zi_q", "--every", "1s", "--cell", "1000mAh@3.7V",
             "--sleep", "nucleo_u575zi_q=4uA,10us")
    checked = run("check", *words, "--min-days", "90")
    assert checked.exit_code == 0 and "mean power for 90 days" in checked.stdout
    assert "days" in checked.stdout and "as stated" in checked.stdout
    document = json.loads(run("check", *words, "--json").stdout)
    assert document["duty"]["life_days"] > 90
    assert document["duty"]["sleep"].startswith("as stated at ")
    swept = json.loads(run("sweep", *words, "--over", "days,time", "--json").stdout)
    assert swept["rows"][0]["life_days"] == document["duty"]["life_days"]
    assert swept["objectives"] == ["mean_mw", "time_us"] and swept["limits"]["every_us"] == 1e6
    slow = run("check", *words[:3], "--every", "1ms", "--no-advice")
    assert slow.exit_code == 1 and "within its period" in slow.stdout
    refused = run("check", *words[:3], "--cell", "1000mAh")
    assert refused.exit_code == 2 and "--every" in refused.output


def test_the_last_line_names_pick_runner_up_and_what_decides() -> None:
    words = ("select", "ad", "-b", "nucleo_u575zi_q", "-b", "nucleo_l4r5zi", "--runtime", "best",
             "--no-advice", "--every", "1s", "--cell", "1000mAh", "--by", "days", "--sleep",
             "nucleo_u575zi_q=4uA,10us", "--sleep", "nucleo_l4r5zi=1.2uA,10us")
    told = run(*words)
    assert told.exit_code == 0
    last = " ".join(told.stdout.split()).rpartition("ad: pick ")[2]
    assert last.startswith("nucleo_u575zi_q") and "runner-up nucleo_l4r5zi" in last
    assert "days" in last


def test_advice_bisects_to_the_smallest_width_that_is_sure() -> None:
    found = twin.advise(twin.deploy("ad", "nucleo_l4r5zi"), max_ms=5.4, pairs=False,
                        efforts=("retraining",), thorough=True)
    widths = {float(one.settings[0][1]): (one.row.probability or 0.0) >= 0.9
              for one in found.changes if one.settings[0][0] == "network.width"}
    sure = max(width for width, is_sure in widths.items() if is_sure)
    assert sure not in (0.25, 0.5, 0.75) and sure > 0.5
    assert found.best is not None and found.best.row.probability >= 0.9


def test_advice_bisects_rows_and_columns_and_shares_are_handy(tmp_path) -> None:
    net = start("spectrogram")
    body = net.conv(net.input((1, 49, 40, 1)), 64, (6, 4), 2)
    for _ in range(3):
        body = net.conv(net.depthwise(body, 3), 64, 1)
    graph = net.finish(net.softmax(net.fully_connected(net.flatten(net.mean(body)), 12)))
    write_model(graph, tmp_path / "net.tflite")
    found = twin.advise(twin.deploy(tmp_path / "net.tflite", "nucleo_u575zi_q"), max_ms=50,
                        pairs=False, efforts=("retraining",))
    sure = {path: value for one in reversed(found.changes) if (one.row.probability or 0.0) >= 0.9
            for path, value in one.settings}
    assert found.best.settings == (("network.resolution", "32x24"),)  # tried: 40x32, 24x16
    assert 0.25 < float(sure["network.width"]) < 0.5
    assert float(sure["network.width"]) * 40 == pytest.approx(
        round(float(sure["network.width"]) * 40))


def test_with_a_period_the_front_is_of_mean_power_and_an_energy_names_its_boundary() -> None:
    table = twin.sweep("ad", ["nucleo_u575zi_q", "stm32n6570_dk"], every="1s")
    assert table.objectives == ("mean_mw", "time_us")
    assert twin.sweep("ad", ["nucleo_u575zi_q"]).objectives == ("time_us", "energy_uj")
    assert twin.sweep("ad", ["nucleo_u575zi_q"], every="1s", objectives="time").objectives == (
        "time_us",)


def test_a_lead_compares_energies_at_one_boundary() -> None:
    kit = row("kit", time_us=1e3, energy_uj=100.0, boundary="board")
    chips = [row("a", energy_uj=500.0), row("b", energy_uj=300.0)]
    rivals = name_rivals([kit, *chips])
    lead = say_lead(rivals)
    assert "b needs least energy (chip at its rail), 300 uJ" in lead
    assert lead.count("least energy") == 1 and "1.67 times as much energy" in lead
    assert list_least(rivals)["energy_uj of a chip"] == 300.0
    assert "energy_uj of a board" not in list_least(rivals)  # alone: nothing to be lower than
    power = name_rivals([dataclasses.replace(one, mean_mw=mean) for one, mean in zip(
        (kit, *chips), (565.0, 0.5, 0.3), strict=True)])
    lasting = [dataclasses.replace(one, row=dataclasses.replace(one.row, life_days=9.0))
               for one in power]
    assert all(" (9 days)" in bar.text for bar in chart_quantity(lasting, "mean_mw").bars)
    assert "energy" not in say_lead(power) and "b has the lowest mean power" in say_lead(power)


def test_the_last_line_names_a_cheaper_board_with_a_change_and_that_prices_are_assumed() -> None:
    told = run("select", "kws", "-b", "nucleo_u575zi_q", "-b", "nucleo_f401re", "--runtime",
               "default", "--max-ms", "50", "--by", "price", "--price", "nucleo_f401re=2")
    last = " ".join(told.stdout.split()).rpartition("kws: pick ")[2]
    assert last.startswith("nucleo_u575zi_q") and "8.5 USD" in last
    assert "lower price with a change: nucleo_f401re, --set network." in last
    assert "prices are assumed: quotes would decide" in last


def test_check_holds_the_chips_price_and_a_stated_one_wins() -> None:
    def price(*words: str) -> dict:
        ended = run("check", "kws", "-b", "nucleo_u575zi_q", "--max-usd", "10", "--json", *words)
        found = json.loads(ended.stdout)["requirements"]
        return next(one for one in found if one["name"] == "price")

    assert price()["predicted"] == load_board("nucleo_u575zi_q").part_price_usd
    assert price("--price", "u575=11")["predicted"] == 11 and not price("--price", "u575=11")["met"]
    assert price("--known-only")["predicted"] is None
    ended = run("check", "kws", "-b", "nucleo_u575zi_q", "--max-usd", "10", "--known-only")
    assert ended.exit_code == 1 and "advise" not in ended.output


def test_pages_show_power_days_and_boundary_where_a_duty_was_asked() -> None:
    plain = [row("a"), row("kit", boundary="board")]
    asked = [dataclasses.replace(one, sleep="stop", mean_mw=1.0, life_days=9.0) for one in plain]

    def heads(rows: list[Row]) -> list[str]:
        return [one.header for one in head_figures(lambda one: {}, rows)]

    assert set(heads(asked)) - set(heads(plain)) == {"energy of", "mean power", "days"}
    assert [plot.name for plot in draw_dashboard(name_rivals(asked))][-1] == "bars-mean"
    assert ("battery life", "9 days") in row_details(asked[0])
    assert "among chips or among boards" in say_best_mark(plain)
    assert "among" not in say_best_mark(plain[:1])


def test_a_narrow_terminal_says_which_columns_of_a_choice_have_no_room() -> None:
    words = ("select", "kws", "-b", "nucleo_u575zi_q", "-b", "nucleo_l4r5zi", "--runtime",
             "default", "--max-usd", "9", "--every", "1s", "--cell", "1000mAh")
    narrow = run(*words, columns=80).stdout
    assert "columns: J/day" in narrow and " USD " in narrow and " score " in narrow
    assert "not shown at" not in run(*words).stdout


def test_options_that_change_nothing_say_so() -> None:
    def warned(*words: str) -> str:
        ended = run("sweep", "ad", "-b", "nucleo_u575zi_q", *words)
        assert ended.exit_code == 0
        return ended.stderr

    assert "--sleep: changes nothing without --every PERIOD" in warned(
        "--sleep", "nucleo_u575zi_q=1uA,8us")
    assert "--currents nucleo_l4r5zi: changes nothing: no board or chip asked about" in warned(
        "--currents", "nucleo_l4r5zi=100uA/MHz")
    assert "--price stm32u575zi: changes nothing: its board has a value of its own" in warned(
        "--price", "stm32u575zi=3", "--price", "nucleo_u575zi_q=7")
    assert "changes nothing" not in warned("--price", "stm32u575zi=3")
    priced = ("check", "ad", "-b", "nucleo_u575zi_q", "--price", "nucleo_u575zi_q=3")
    assert "--price: changes nothing without --max-usd USD" in run(*priced).stderr
    assert "changes nothing" not in run(*priced, "--max-usd", "5").stderr
    for option in ("--by", "--over"):
        refused = run("select", "ad", "-b", "nucleo_u575zi_q", option, "days")
        assert refused.exit_code == 2 and "--every PERIOD" in refused.stderr


def test_a_slip_of_the_unit_is_refused_where_it_stands_and_prices_are_no_limits() -> None:
    words = ("sweep", "ad", "-b", "nucleo_u575zi_q", "--every", "1s")
    for option, value, said in (
            ("--currents", "1e9uA/MHz", "is above the largest accepted, 100 mA/MHz"),
            ("--sleep", "10A", "is above the largest accepted, 1000 mA"),
            ("--price", "3EUR", "is not a price")):
        refused = run(*words, option, f"nucleo_u575zi_q={value}")
        assert refused.exit_code == 2 and f"{option} nucleo_u575zi_q" in refused.stderr
        assert said in refused.stderr


def test_every_table_says_that_an_energy_is_of_stated_currents() -> None:
    own = ("-b", "nucleo_u575zi_q", "--currents", "nucleo_u575zi_q=190uA/MHz")
    for command in ("select", "sweep", "check"):
        more = ("--max-ms", "99") if command == "check" else ("-b", "nucleo_l4r5zi")
        told = run(command, "ad", *own, *more)
        text = " ".join((told.stdout + told.stderr).split())
        assert "what the currents you state give, in every cycle" in text, command
        assert "nucleo_l4r5zi: what the currents" not in text


def test_predict_and_report_say_what_check_says_of_a_duty(tmp_path) -> None:
    words = ("ad", "-b", "nucleo_u575zi_q", "--every", "1s", "--cell", "1000mAh@3V")
    row = json.loads(run("check", *words, "--json").stdout)["duty"]
    told = run("predict", *words)
    assert f"\nduty     {format_power(row['mean_mw'])} on average" in told.stdout
    assert json.loads(run("predict", *words, "--json").stdout)["duty"] == row
    assert "asleep in stop3" in " ".join(run("predict", *words, "--details").stdout.split())
    assert "not with --keep" in run("predict", *words, "--keep", str(tmp_path)).stderr
    several = run("predict", "ad", *words[3:]).stdout
    assert several.splitlines()[2].split() == ["board", "ms", "90", "%", "mJ", "mW", "days",
                                               "fits", "in", "library"]
    page = tmp_path / "duty.md"
    missed = run("report", *words, "--min-days", "3000", "-o", str(page))
    assert missed.exit_code == 1
    text = page.read_text(encoding="utf-8")
    assert f"| mean power | {format_power(row['mean_mw'])} (predicted)" in text
    assert "mean power for 3,000 days over the limit" in text
    assert "cheapest change that meets" in text
    refused = run("report", str(tmp_path), "--every", "1s", "-o", str(page))
    assert refused.exit_code == 2 and "accepted: with -b BOARD" in refused.stderr
    beside = tmp_path / "both.html"
    assert not run("report", *words, "-b", "nucleo_l4r5zi", "-o", str(beside)).exit_code
    assert "lowest mean power" in beside.read_text(encoding="utf-8")


def test_a_stated_sleep_current_is_drawn_where_energies_are_counted() -> None:
    """A kit's are at its input of 5 V, whatever its chip runs at; a chip's at its rail."""
    for name, volts in (("stm32n6570_dk", 5.0), ("nucleo_l4r5zi", 1.8)):
        row, = twin.sweep("ad", name, every="10s", sleep={name: "10mA"}).rows
        assert row.sleep == f"as stated at {volts:g} V"
        assert row.asleep_mw == pytest.approx(10 * volts, rel=0.01)
        assert f"asleep as stated at {volts:g} V" in say_duty(row)
