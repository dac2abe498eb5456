"""Boards ranked: a score of predicted quantities, winners, reasons, prices that are not guessed."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import twin
from calibration.fitting.intervals import Interval
from hwmodels.board.file import list_boards, load_board
from twin.api.commands.sweep import list_hardware
from twin.cli import app
from twin.errors import UsageError
from twin.reports.page.selection import describe_selection
from twin.reports.tables.selection import (
    say_mostly,
    say_pick,
    say_picks,
    selection_report,
)
from twin.studies.limits import Limits, describe_price, name_boards, price_of, read_prices
from twin.studies.penalties import (
    Penalty,
    describe_miss,
    draw_least,
    find_least,
    is_far,
    list_penalties,
)
from twin.studies.rows import Row, judge
from twin.studies.selection import Choice, find_winners

BOARDS = ["nucleo_h7a3zi_q", "nucleo_u575zi_q", "nucleo_f401re"]


def row(time: float, sd: float = 0.2, **more: object) -> Row:
    return Row(**{"inputs": (), "time_us": time, "ram_bytes": 10, "ram_room_bytes": 100,
                  "flash_bytes": 10, "flash_room_bytes": 100, "probability": 1.0,
                  "time": Interval(low=time * np.exp(-sd), high=time * np.exp(sd), level=0.9),
                  **more})


@pytest.fixture(scope="module")
def selection():
    return twin.select("ad", BOARDS, runtimes="best", max_ms="8ms", max_uj="100uJ",
                       prices={"nucleo_h7a3zi_q": 30.0})


def test_every_board_has_a_choice_and_the_best_is_first(selection) -> None:
    assert {one.row.board for one in selection.choices} == set(BOARDS)
    scores = [one.score for one in selection.choices]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 100 for score in scores)
    assert selection.feasible[0].row.board == "nucleo_u575zi_q"


def test_what_fails_says_why_and_what_would_help(selection) -> None:
    missed = {one.row.board: one for one in selection.infeasible}
    assert "energy" in missed["nucleo_h7a3zi_q"].reason
    # Its lowest clock takes 93 uJ in 3.8 ms: both limits are met.
    assert missed["nucleo_h7a3zi_q"].advice.best.settings[0][0] == "clocks.cpu.frequency_hz"
    text = Console(width=80, record=True)
    text.print(selection_report(selection, text))
    assert "not nucleo_h7a3zi_q" in text.export_text()


def test_the_largest_cause_stands_in_the_table_or_beneath_it(selection) -> None:
    mostly = say_mostly(selection.feasible[0].row)
    assert mostly and say_mostly(row(1.0)) == ""
    beneath = f"mostly {mostly.split()[0]}: nucleo_u575zi_q"
    for width, text in ((140, "flash  USD meets mostly"), (60, beneath)):
        console = Console(width=width)
        with console.capture() as shown:
            console.print(selection_report(selection, console))
        assert " ".join(text.split()) in " ".join(shown.get().split())


def test_the_score_is_the_documented_sum() -> None:
    limits = Limits(max_time_us=1.0)
    penalties = {one.name: one.points for one in list_penalties(
        row(1.0, probability=0.5, ram_bytes=75, flash_bytes=100), limits)}
    assert penalties == pytest.approx({"limits": 35.0, "RAM": 5.0, "flash": 10.0,
                                       "interval": 10 * 0.4 / np.log(4)})
    assert sum(one.points for one in list_penalties(row(1.0, failure="runtime"), limits)) == 100


def test_who_is_least_has_a_probability() -> None:
    chances = draw_least([row(10.0), row(10.0), row(100.0)], "time_us")
    assert chances == pytest.approx([0.5, 0.5, 0.0], abs=0.03)
    assert draw_least([row(1.0), row(2.0)], "ram_bytes") is None


def test_prices_come_from_the_board_or_the_user_and_never_from_nowhere() -> None:
    for name in list_boards():
        board = load_board(name)
        facts = {fact.path: fact for fact in board.facts}
        said = describe_price(board)
        for price, key, what in ((board.price_usd, "price_usd", "the board"),
                                 (board.part_price_usd, "part_price_usd", "the chip alone")):
            assert (f"{price} USD for {what}".replace(".0 ", " ") in said) == (price is not None)
            if price is not None:
                fact = facts[f"board.{key}"]
                assert fact.source and any(char.isdigit() for char in fact.source)  # its date
        assert said.startswith("not known: no public list") == (
            board.price_usd is None and board.part_price_usd is None)
    board = load_board("nucleo_h7a3zi_q")
    assert price_of(board) == (board.part_price_usd, "chip, assumed")
    assert price_of(board, {"stm32h7a3zi": 9.0}) == (9.0, "as stated")
    bare = dataclasses.replace(board, price_usd=27.0, part_price_usd=None)
    assert price_of(bare) == (None, "")  # a kit's is not a price of a chip
    given = read_prices(["h7a3=30", "stm32u575zi=$9"])
    assert name_boards("--price", given, [load_board("nucleo_u575zi_q")]) == {
        "nucleo_h7a3zi_q": 30.0, "stm32u575zi": 9.0}
    with pytest.raises(UsageError, match="neither a board nor a chip"):
        name_boards("--price", read_prices(["anychip=9"]), [])
    with pytest.raises(UsageError, match="BOARD=USD"):
        read_prices(["30"])


def test_progress_is_of_all_boards_and_advice_of_each_is_its_own() -> None:
    told: list[tuple[int, int, int]] = []
    names = [*BOARDS[:2], BOARDS[0].upper()]  # an alias is the same board
    found = twin.select("ad", names, runtimes="best", max_ms="2ms",
                        on_progress=lambda *step: told.append(step))
    assert told == [(1, 3, 0), (2, 3, 0), (3, 3, 0)]
    assert {(one.row.board, one.others) for one in found.choices} == {
        (BOARDS[0], 1), (BOARDS[1], 0)}
    assert all(one.advice is None or one.advice.before.board == one.row.board
               for one in found.choices) and any(one.advice for one in found.choices)


def test_your_price_counts(selection) -> None:
    prices = {one.row.board: one.row.price_usd for one in selection.choices}
    assert prices["nucleo_h7a3zi_q"] == 30.0


def test_the_command_ranks_and_ends_with_one_where_nothing_does() -> None:
    words = ("select", "ad", "-b", "nucleo_u575zi_q", "--runtime", "best", "--no-advice")
    ended = CliRunner().invoke(app, [*words, "--max-ms", "100", "--json"])
    document = json.loads(ended.stdout)
    assert ended.exit_code == 0 and document["choices"][0]["met"]
    assert document["winners"]["ad"][0]["metric"] == "fastest"
    none = CliRunner().invoke(app, [*words, "--max-ms", "1us"])
    assert none.exit_code == 1 and "nucleo_u575zi_q (time 3,2" in none.stdout


def test_a_board_that_a_setting_makes_meet_is_a_candidate() -> None:
    """Weights of the Apollo510 lie in DTCM by default, which counts as RAM."""
    found = twin.select("vww", ["apollo510_evb", "nucleo_l4r5zi"], runtimes="default",
                        max_ram="192KiB", max_ms=100)
    apollo = next(one for one in found.choices if one.row.board == "apollo510_evb")
    assert apollo.row.met and apollo.advice is None and "RAM" in apollo.setting
    assert dict(apollo.row.inputs)["placement.weights"] == "flash"
    assert apollo.setting.startswith("--set placement.weights=flash; without it RAM")
    same = twin.check(twin.deploy("vww", "apollo510_evb").replace({"placement.weights": "flash"}))
    assert apollo.row.time_us == pytest.approx(same.prediction.time_us)
    text = Console(width=300, record=True)
    text.print(selection_report(found, text))
    assert "apollo510_evb: with --set placement.weights=flash" in text.export_text()


def test_the_default_library_under_a_free_setting_comes_before_another() -> None:
    chosen, = twin.select("kws", ["alif_e8_devkit"], max_ram="64KiB", max_ms=100,
                          runtimes=["ethos-u-vela", "cmsis-nn"]).choices
    assert chosen.row.runtime.startswith("ethos-u-vela@") and chosen.row.sure
    assert chosen.setting.startswith("--set placement.code=mram") and chosen.others == 1


def test_a_library_that_is_no_default_is_named_where_it_takes_less() -> None:
    found = twin.select("kws", ["esp32s3_devkitc"], runtimes="each", max_ms=20)
    assert found.choices[0].row.runtime.startswith("tflm-esp-nn@")
    text = Console(width=300, record=True)
    text.print(selection_report(found, text))
    assert re.search("fastest, least energy: in the table esp32s3_devkitc, tflm-esp-nn@"
                     ".*; less with a library that is not in it: esp32s3_devkitc, esp-dl@",
                     text.export_text())
    cards = {card.name: card.range for card in describe_selection(found).answers}
    assert "with a library that is not chosen: esp-dl@" in cards["fastest"]
    named = twin.select("kws", ["esp32s3_devkitc"], runtimes=["tflm-esp-nn", "esp-dl"], max_ms=20)
    assert named.choices[0].row.runtime.startswith("esp-dl@")  # of named ones none is a default


def test_what_meets_with_a_change_comes_before_what_is_nearest() -> None:
    found = twin.select("ad", ["nucleo_u575zi_q", "nucleo_l4r5zi"], runtimes="default", max_ms=2)
    last = say_pick(found, "ad")
    assert "no board meets as it is; with a change" in last and "--set network." in last


def test_a_placement_that_somebody_states_stays_and_a_far_miss_of_memory_is_settled() -> None:
    asked = {"runtimes": "default", "max_ram": "80KiB"}
    moved, = twin.select("ad", ["apollo510_evb"], **asked).choices  # 4.3 times that by default
    assert moved.row.met and dict(moved.row.inputs)["placement.weights"] == "flash"
    doubtful, = twin.select("ad", ["apollo510_evb"], **asked,
                            max_uj=1.05 * moved.row.energy_uj).choices
    assert doubtful.row.probability < 0.9 and doubtful.setting == moved.setting
    kept, = twin.select("ad", ["apollo510_evb"], **asked,
                        settings={"placement.weights": ["dtcm"]}).choices
    assert not kept.row.met and kept.row.weights == "dtcm" and not kept.setting


def test_mean_power_counts_without_bound_and_a_miss_that_is_not_known_is_no_gain() -> None:
    lasting, brief = (row(1.0, sleep="stop", mean_mw=mw) for mw in (1.0, 256.0))
    least = find_least([lasting, brief])
    points = {one.name: one.points for one in list_penalties(brief, Limits(), least)}
    assert points["mean power"] == pytest.approx(40.0)
    limits = Limits(max_time_us=1.0, max_energy_uj=1.0)
    known, unknown = (list_penalties(judge(row(2.0, energy_uj=uj), limits), limits)[0].points
                      for uj in (1.5, None))
    assert unknown > known


def test_a_chance_needs_known_rivals() -> None:
    best, worse = row(1.0, board="a"), row(2.0, board="b")
    assert find_winners([best])[0].probability is None
    assert find_winners([best, worse])[0].probability > 0.9
    unknown = row(3.0, board="c", energy_uj=None)
    known = dataclasses.replace(best, energy_uj=1.0, energy=best.time)
    time, energy = find_winners([known, unknown])[:2]
    assert time.probability > 0.9 and not time.unknown
    assert energy.words == "least energy of those known" and energy.probability is None
    may = dataclasses.replace(row(0.5, board="d"), violations=("price_usd",))
    won = find_winners([best, may])[0]
    assert won.unknown == ("d",) and won.less is may
    assert won.words == "fastest of those that meet the limits"
    over = dataclasses.replace(may, violations=("ram_bytes",))
    assert find_winners([best, over])[0].words == won.words
    assert find_winners([best, worse])[0].words == "fastest"


def test_a_period_that_is_too_short_is_no_limit_that_was_not_asked() -> None:
    late = row(45e3, sleep="stop", wake_up_us=0.0)
    asked = Limits(max_time_us=100e3, every_us=40e3)
    assert describe_miss(judge(late, asked), asked, 0.0) == "time 1.125 periods"
    both = Limits(max_time_us=30e3, every_us=40e3)
    assert describe_miss(judge(late, both), both, 0.0) == "time 1.5 times its limit"


def test_what_misses_by_far_has_no_advice_and_one_question_one_answer() -> None:
    far = twin.select("ad", ["nucleo_f401re"], runtimes="default", max_ms="0.1ms")
    assert far.choices[0].advice is None
    cost = twin.select("ad", ["nucleo_f401re"], runtimes="default", max_ms="8ms", max_usd=0.1)
    assert cost.choices[0].advice is None  # no change lowers a price
    limit = ("ad", "-b", "nucleo_f401re", "--max-ms", "6ms")
    reports = [" ".join(CliRunner().invoke(app, [command, *limit]).stdout.split())
            for command in ("select", "check", "advise")]
    best = twin.advise(twin.deploy("ad", "nucleo_f401re"), max_ms="6ms").best
    assert best is not None and all(best.words in text for text in reports)
    assert best.row.sure == all("cheapest" in text for text in reports)


def test_a_board_that_meets_at_even_odds_is_no_winner_and_unknown_figures_are_not_far() -> None:
    doubtful, sure = row(1.0, board="a", probability=0.5), row(2.0, board="b")
    assert [one.row.board for one in find_winners([doubtful, sure])] == ["b"] * 2
    assert find_winners([doubtful])[0].row.board == "a"  # the best where none is sure
    limits = Limits(max_time_us=1.0, max_energy_uj=1.0)
    assert not is_far(judge(row(2.0), limits), limits)
    assert not is_far(judge(row(3.0, energy_uj=3.0), limits), limits)
    assert is_far(judge(row(0.5, energy_uj=4.0), limits), limits)


def test_a_pick_is_not_doubted_by_an_energy_counted_elsewhere() -> None:
    found = twin.select("kws", ["stm32n6570_dk", "apollo510_evb"], runtimes="default", max_ms=20)
    assert {one.row.boundary for one in found.choices} == {"board", "chip"}
    assert "its energy is lower" not in say_pick(found, "kws")
    # a price that is not known costs 10 points: of the pick it decides nothing, of another it may
    first, second = found.choices

    def lose(choice: Choice, name: str, **changed: None) -> Choice:
        return dataclasses.replace(
            choice, row=dataclasses.replace(choice.row, **changed), penalties=(
                *choice.penalties, Penalty(name=name, points=10.0, reason="made")))

    def say(*choices: Choice) -> str:
        return say_pick(dataclasses.replace(found, choices=choices), "kws")

    unpriced = lose(second, "price", price_usd=None)
    assert say(lose(first, "price", price_usd=None), second).endswith(
        "are known but its price, which counts as the most expensive")
    assert "would decide" not in say(first, unpriced)  # 95.5 beside 95.0 at most
    assert say(lose(first, "RAM"), unpriced).endswith(
        f"would decide: price of {second.row.board}")
    least = first.row.energy_uj / 10
    thrifty = dataclasses.replace(second, row=dataclasses.replace(
        second.row, boundary=first.row.boundary, energy_uj=least,
        energy=Interval(low=0.9 * least, high=1.1 * least, level=0.9)))
    text = say(first, thrifty)
    assert f"{second.row.board} has less energy with >99.9%; other points" in text
    assert "would decide" not in text


def test_models_of_hardware_and_this_machine_are_no_choice() -> None:
    names = list_hardware()
    assert {"nucleo_l4r5zi", "stm32n6570_dk"} < {*names}
    assert not {"host", "corstone300_fvp", "corstone320_fvp"} & {*names}


def test_each_network_has_its_answer_on_the_page() -> None:
    page = describe_selection(twin.select(["kws", "ad"], ["nucleo_l4r5zi"], runtimes="default",
                                          max_ms="5ms", advise=False))
    assert page.tone == "bad" and page.verdict.startswith("kws: 0 of 1 board meets 5 ms")
    assert ". ad: " in page.verdict and page.sentence.startswith(
        "kws: no board surely meets; nearest is nucleo_l4r5zi: ")
    both = describe_selection(twin.select(["kws", "ad"], ["nucleo_l4r5zi"], runtimes="default"))
    assert {one.name.partition(": ")[0] for one in both.answers} == {"kws", "ad"}
    assert both.tone == "good" and "2 configurations predicted" in both.subtitle


def test_a_board_of_ones_own_is_one_board_though_a_library_does_not_run_there(tmp_path) -> None:
    path = tmp_path / "file.json"
    path.write_text(load_board("nucleo_f401re").document.replace('"nucleo_f401re"', '"mine"'))
    found = twin.select("kws", [str(path), "nucleo_l4r5zi"], max_ms=500, advise=False)
    assert sorted(one.row.board for one in found.choices) == ["mine", "nucleo_l4r5zi"]
    assert any(row.failure and row.board == "mine" for row in found.table.rows)
    shown = CliRunner().invoke(app, ["select", "kws", "-b", str(path), "--max-ms", "500",
                                     "--runtime", "default"])
    assert shown.exit_code == 0 and "of 1 board " in shown.stdout


def test_one_board_is_named_that_does_all_networks_best() -> None:
    found = twin.select(["kws", "ad"], BOARDS, runtimes="default", max_ms=50)
    *picks, together = say_picks(found)
    assert picks == [say_pick(found, "kws"), say_pick(found, "ad")]
    ranked = {model: [one.row.board for one in found.feasible if one.row.model == model]
              for model in ("kws", "ad")}
    able = {*ranked["kws"]} & {*ranked["ad"]}
    best = min(able, key=lambda board: sum(mine.index(board) for mine in ranked.values()))
    assert len(able) > 1 and together.startswith(
        f"both: pick {best}, of {len(able)} that do the one whose places add up to least; kws ")
    assert all(f"(place {1 + mine.index(best)})" in together for mine in ranked.values())
    assert describe_selection(found).sentence == ". ".join((*picks, together)) + "."
    none = twin.select(["kws", "ad"], BOARDS[:1], runtimes="default", max_ms="2ms", advise=False)
    assert say_picks(none)[-1] == "both: no board meets the limits of both"
    energy = twin.select(["kws", "ad"], BOARDS[:2], runtimes="default", by="energy")
    rows = [max(one.row.energy_uj for one in energy.choices if one.row.board == board)
            for board in BOARDS[:2]]
    assert BOARDS[rows.index(min(rows))] in say_picks(energy)[-1]


def test_a_board_that_does_not_fit_is_advised_on_as_check_advises() -> None:
    limits = {"max_ms": "1s", "max_uj": "40mJ", "max_ram": "96KiB"}
    chosen = twin.select("mobilenet_v2_0.35_96", ["nucleo_f401re", "rpi_pico"], **limits)
    unfit = next(one for one in chosen.choices if one.row.board == "nucleo_f401re")
    assert unfit.row.failure and unfit.advice.best.row.sure
    said = say_pick(chosen, "mobilenet_v2_0.35_96")
    assert "no board meets as it is; with a change nucleo_f401re: " in said
    assert "cheapest change that meets them: --set network.width=0.3 " in said
    far = twin.select("mobilenet_v2_1.0_224", "nucleo_f401re", **limits).choices[0]
    assert far.row.failure and far.advice is None  # Fifteen times its RAM.
    buffers = twin.select("mobilenet_v2_0.35_96", ["launchxl_f28p55x", "nucleo_h723zg"]).choices
    (pooled,) = [one for one in buffers if one.row.board == "launchxl_f28p55x"]
    assert pooled.row.failure and pooled.advice is None  # No pool holds one of its buffers.
