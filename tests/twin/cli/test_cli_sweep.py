"""`twin sweep` and the verbs that take several models and boards, as a user types them."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import twin
from hwmodels.board.file import change_board, load_board
from hwmodels.quantities import format_energy
from twin.cli import GROUPS, VERBS, app
from twin.cli.studying import Pareto
from twin.errors import UsageError
from twin.pricing.ledger import name_energies
from twin.reports.tables.studies import list_columns

BOARDS = ("-b", "nucleo_l4r5zi", "-b", "rpi_pico")
STATED = ("--calibration", "none")


def run(*words: str, columns: int = 80):
    return CliRunner().invoke(app, list(words), env={"COLUMNS": str(columns)})


def test_a_sweep_prints_a_row_for_every_combination_and_writes_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # a table as text needs no more than the core
    refused = run("sweep", "ad", *BOARDS, "-o", str(tmp_path / "sweep.parquet"))
    assert refused.exit_code == 5 and "'study'" in refused.stderr and not refused.stdout
    target = tmp_path / "out" / "sweep.csv"
    ended = run("sweep", "ad", *BOARDS, "--clock", "own,48MHz", "--max-ms", "10ms", "--max-ram",
                "64KiB", *STATED, "-o", str(target))
    assert ended.exit_code == 0, ended.stderr
    assert "4 configurations; 1 meets 10 ms, 64 KiB of RAM" in ended.stdout
    assert f"wrote {target}" in ended.stderr
    header, *rows = target.read_text().splitlines()
    assert len(rows) == 4 and "in.clock" in header


def test_json_is_the_table_the_function_returns() -> None:
    ended = run("sweep", "ad", *BOARDS, *STATED, "--json")
    table = twin.sweep("ad", ["nucleo_l4r5zi", "rpi_pico"], calibration="none")
    assert json.loads(ended.stdout) == json.loads(json.dumps(twin.to_document(table)))


def test_what_cannot_be_is_said_and_the_rest_goes_on() -> None:
    ended = run("sweep", "ad", *BOARDS, "--set", "placement.arena=sram,dtcm", *STATED)
    assert ended.exit_code == 0
    assert "4 configurations, 2 infeasible" in ended.stdout
    assert "1 infeasible (setting): rpi_pico has no memory 'dtcm'" in ended.stdout


def test_a_sweep_of_the_npus_clock_shows_it_in_every_row_and_beside_the_best() -> None:
    ended = run("sweep", "ad", "-b", "stm32n6570_dk", "--runtime", "neural-art", "--set",
                "clocks.npu.frequency_hz=400MHz,1GHz")
    table = ended.stdout.split("\n\n")[1].splitlines()
    assert "npu.frequency_hz" in table[0]
    assert [line.split()[1] for line in table[1:]] == ["1GHz", "400MHz"]
    assert "clocks.npu.frequency_hz 1GHz: " in " ".join(ended.stdout.split())
    own = run("sweep", "ad", *BOARDS, *STATED, "--set", "clocks.cpu.frequency_hz=48MHz,24MHz")
    assert "cpu.frequency_hz" not in own.stdout and "MHz" in own.stdout  # its own column


def test_a_figure_that_is_not_known_has_a_mark_of_its_own() -> None:
    ended = run("sweep", "ad", "-b", "max78000evkit", "-b", "rpi_pico", columns=120)
    assert "\n? not known\n" in ended.stdout and "~" not in ended.stdout
    known = run("sweep", "ic", "-b", "nucleo_l4r5zi", "--set", "placement.weights=flash,sram",
                columns=120).stdout
    assert "~ for some values" in known and "? not known" not in known


def test_a_share_that_is_no_number_is_refused_before_anything_is_predicted() -> None:
    ended = run("sweep", "ad", *BOARDS, "--set", "network.width=0.5,x")
    assert ended.exit_code == 2 and "network.width: 'x'; accepted" in ended.stderr


def test_a_sweep_of_nothing_but_refusals_ends_with_three() -> None:
    ended = run("sweep", "nothing.tflite", "-b", "rpi_pico")
    assert ended.exit_code == 3 and "nothing.tflite" in ended.stdout


@pytest.mark.parametrize("verb", ["sweep", "select", "check", "predict"])
@pytest.mark.parametrize("beside", [(), ("-b", "rpi_pico")])
def test_a_board_that_is_none_is_refused_as_predict_refuses_it(verb, beside) -> None:
    ended = run(verb, "ad", "-b", "nucleo_l4r5z", *beside)
    assert ended.exit_code == 3 and ended.stdout == ""
    assert "board 'nucleo_l4r5z' is not known; did you mean nucleo_l4r5zi" in ended.stderr


def test_an_unknown_runtime_is_refused_before_anything_is_predicted(tmp_path) -> None:
    (tmp_path / "s.yaml").write_text("schema: 1\nname: s\nquestion: Which?\nmodels: ad\n"
                                     "boards: rpi_pico\nruntimes: [best, tensorflw]\n")
    for words in (("sweep", "ad", "-b", "rpi_pico", "--runtime", "best,tensorflw"),
                  ("select", "ad", "--runtime", "tensorflw"),
                  ("study", "run", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "out")),
                  ("serve", "ad", "--runtime", "tensorflw", "--port", "0")):
        ended = run(*words)
        assert ended.exit_code == 3 and ended.stdout == "" and ended.stderr.count("\n") == 1
        assert "runtime 'tensorflw' is not known" in ended.stderr
        assert ended.stderr.startswith("error: " + "s.yaml:runtimes: " * (words[0] == "study"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("clock", "said"), [
    ("ech", "did you mean each?"), ("10..120:3", "a range is --set")])
def test_a_clock_that_is_none_is_refused(clock, said) -> None:
    ended = run("sweep", "ad", "-b", "nucleo_l4r5zi", "--clock", clock)
    assert ended.exit_code == 2 and ended.stdout == "" and said in ended.stderr


def test_energy_above_idle_is_compared_with_the_idle_board_in_it() -> None:
    ended = run("sweep", "kws", "-b", "stm32n6570_dk", "-b", "nucleo_l4r5zi", "--json")
    kit, other = json.loads(ended.stdout)["rows"]
    alone = twin.predict(twin.deploy("kws", "stm32n6570_dk"))
    idle_mw = alone.deployment.board.power.idle_mw
    assert kit["idle_mw"] == idle_mw and other["idle_mw"] is None
    assert kit["energy_uj"] == pytest.approx(alone.energy_uj + idle_mw * alone.time_us * 1e-3)
    ends, times = alone.certainty.energy_uj, alone.certainty.time_us
    assert kit["energy_low_uj"] == pytest.approx(ends.low + idle_mw * times.low * 1e-3)
    limit = str(kit["energy_uj"] * 0.999)
    checked = run("check", "kws", "-b", "stm32n6570_dk", "--max-uj", limit, "--no-advice",
                  columns=120)
    assert checked.exit_code == 1 and "energy with idle" in checked.stdout
    assert "held to its limit with idle" in checked.stderr
    assert "above idle:" not in checked.stderr
    changed = run("whatif", "kws", "-b", "stm32n6570_dk", "--set", "placement.weights=npu_ram")
    assert "energy   above idle; with the board's 565 mW" in changed.stdout
    shown = run("sweep", "kws", "-b", "stm32n6570_dk", "-b", "nucleo_l4r5zi", columns=120)
    assert "energy of stm32n6570_dk includes 565 mW of the idle board" in shown.stdout
    with_idle = f"{format_energy(kit['energy_uj'])} with idle"
    assert with_idle in shown.stdout
    alone = run("predict", "kws", "-b", "stm32n6570_dk", columns=120).stdout
    assert " above idle, 90 % interval" in alone and f"; {with_idle}, 90 % interval" in alone


def test_an_idle_draw_is_as_uncertain_as_the_share_of_it_that_follows_the_clocks() -> None:
    kit = load_board("stm32n6570_dk")
    for changes, low, high in (
            ({}, 1, 1), ({"clocks.cpu.frequency_hz": "1MHz"}, 1 / 800, 1),
            ({"clocks.npu.frequency_hz": "500MHz"}, 0.5, 1),
            ({"clocks.cpu.frequency_hz": "400MHz", "clocks.nic.frequency_hz": "90MHz"}, 0.1, 1)):
        idle = change_board(kit, changes).idle()
        assert (idle.low_mw, idle.high_mw) == pytest.approx((565 * low, 565 * high))
    assert load_board("nucleo_l4r5zi").idle() is None
    ended = run("sweep", "kws", "-b", "stm32n6570_dk", "--clock", "1MHz,800MHz", "--json")
    slow, fast = json.loads(ended.stdout)["rows"]
    if slow["clock_hz"] > fast["clock_hz"]:
        slow, fast = fast, slow
    own = json.loads(run("sweep", "kws", "-b", "stm32n6570_dk", "--json").stdout)["rows"][0]
    names = ("idle_mw", "energy_uj", "energy_low_uj", "energy_high_uj")
    assert [fast[name] for name in names] == pytest.approx([own[name] for name in names])
    assert fast["idle_mw"] == 565
    changed = {"clocks.cpu.frequency_hz": 1e6}
    alone = twin.predict(twin.deploy("kws", "stm32n6570_dk").replace(changed))
    above, whole = name_energies(alone).values()
    time = alone.certainty.time_us
    assert whole[1].low == pytest.approx(above[1].low + 565 / 800 * time.low * 1e-3)
    assert whole[1].high == pytest.approx(above[1].high + 565 * time.high * 1e-3)
    assert [slow[name] for name in names[1:]] == pytest.approx(
        [whole[0], whole[1].low, whole[1].high])
    assert alone.energy_uj == pytest.approx(sum(one.energy_uj for one in alone.layers))
    assert any("283 mW (0.706 to 565: " in text for text in alone.warnings)
    shown = run("whatif", "kws", "-b", "stm32n6570_dk", "--set", "clocks.cpu.frequency_hz=1MHz",
                columns=300).stdout
    ends = " to ".join(map(format_energy, (whole[1].low, whole[1].high)))
    assert "565 mW -> 283 mW (0.706" in shown and f"{format_energy(whole[0])} ({ends})" in shown


@pytest.mark.parametrize(("words", "said"), [
    (("--set", "x=1..2"), "LOW..HIGH:COUNT"), (("--max-ms", "5mJ"), "is not a limit"),
    (("--clock", "80MHz", "--set", "clocks.cpu.frequency_hz=80MHz,100MHz"), "set the same"),
    (("--sample", "sobol"), "sobol:500"), (("--over", "beauty"), "accepted: time"),
    (("-o", "table.xlsx"), ".parquet or .csv"), (("--plot", "a.bmp"), "a picture ends in")])
def test_wrong_options_are_refused_in_one_line(words, said) -> None:
    ended = run("sweep", "ad", "-b", "nucleo_l4r5zi", *words)
    assert ended.exit_code == 2 and ended.stdout == ""
    assert said in ended.stderr and len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [("predict", "ad", "--set", f"{'a' * 5000}=1"),
                                   ("check", "ad", "--max-ms", "9" * 5000)])
def test_a_refusal_of_long_words_is_under_500_characters(words) -> None:
    ended = run(*words, "-b", "nucleo_l4r5zi")
    assert ended.exit_code in (2, 3) and 300 < len(ended.stderr.rstrip("\n")) < 500


@pytest.mark.parametrize("verb", ["predict", "check"])
def test_several_boards_give_a_row_each_and_none_is_dropped(verb: str) -> None:
    ended = run(verb, "ad", *BOARDS, *STATED)
    assert ended.exit_code == 0, ended.stderr
    assert all(board in ended.stdout for board in ("nucleo_l4r5zi", "rpi_pico"))


def test_check_of_several_fails_where_one_does() -> None:
    assert run("check", "ad", *BOARDS, *STATED, "--max-ms", "10").exit_code == 1
    assert run("check", "ad", *BOARDS, *STATED, "--max-ms", "1000").exit_code == 0
    # Stated prices have no interval, of which nothing is sure.
    assert run("check", "ad", *BOARDS, *STATED, "--max-ms", "1000", "--sure").exit_code == 1


def test_predict_refuses_a_board_twice_and_tables_of_one_network() -> None:
    twice = run("predict", "ad", "-b", "rpi_pico", "-b", "rpi_pico")
    assert twice.exit_code == 2 and "is given twice" in twice.stderr
    beside = run("predict", "ad", *BOARDS, "--per-operand")
    assert beside.exit_code == 2 and "--per-operand: not with several" in beside.stderr


def test_check_has_json_and_a_limit_of_flash() -> None:
    ended = run("check", "ad", "-b", "nucleo_l4r5zi", *STATED, "--max-flash", "200KiB", "--json")
    document = json.loads(ended.stdout)
    assert ended.exit_code == 1 and not document["met"]
    flash = next(one for one in document["requirements"] if one["name"] == "flash")
    assert flash["predicted"] > flash["limit"] == 204800


def test_compare_takes_several_and_seals_what_is_sealed() -> None:
    ended = run("compare", "ad", *BOARDS, "--published", *STATED, columns=200)
    assert ended.exit_code == 0, ended.stderr
    assert "no published result of ad on rpi_pico is known to this command" in ended.stdout
    assert re.search(r"^ad +nucleo_l4r5zi ", ended.stdout, re.MULTILINE)


def test_the_help_lists_every_verb_once_in_its_group() -> None:
    text = run("--help").stdout
    assert [f"{group}:" in text for group in GROUPS] == [True] * len(GROUPS)
    assert all(len(re.findall(rf"^  {verb}  ", text, re.MULTILINE)) == 1 for verb in VERBS)


@pytest.mark.parametrize("place", ["-o", "--plot"])
def test_a_place_nothing_can_be_written_to_is_refused_before_anything_is_predicted(
        place: str, tmp_path) -> None:
    (tmp_path / "folder.csv").write_text("a file, not a folder")
    suffix = "csv" if place == "-o" else "png"
    ended = run("sweep", "ad", *BOARDS, place, str(tmp_path / "folder.csv" / f"x.{suffix}"))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "cannot be written" in ended.stderr


def test_pictures_go_into_a_folder_that_is_there(tmp_path) -> None:
    Pareto(plot=f"{tmp_path}/").check()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file"):
        Pareto(plot=f"{tmp_path}/file/").check()


def test_what_no_library_runs_is_said_once_and_ends_with_three() -> None:
    ended = CliRunner().invoke(app, ["select", "ad", "-b", "nucleo_f401re", "-b", "nucleo_l4r5zi",
                                     "--runtime", "tflm-esp-nn@2026"])
    assert ended.exit_code == 3 and "none of 2 configurations was predicted" in ended.stderr
    assert ended.stdout.count("ESP-NN was not counted on a core of 'armv7e-m'") == 1
    assert "not nucleo_f401re, nucleo_l4r5zi" in ended.stdout
    assert "ad: no board runs it" in ended.stdout


@pytest.mark.parametrize("verb", ["sweep", "select", "predict"])
def test_the_release_a_bare_name_stands_for_is_named(verb, tmp_path) -> None:
    said = run(verb, "ad", "-b", "nucleo_l4r5zi", "--runtime", "nnom").stderr
    assert "nnom is taken as nnom@local, plain C; nnom@cmsis" in said
    said = run(verb, "ad", "-b", "nucleo_l4r5zi", "--runtime", "tflm-cmsis-nn").stderr
    assert "is taken as tflm-cmsis-nn@2.3.1" in said and "may be faster: @" in said
    if verb == "predict":
        page = tmp_path / "both.md"
        run("report", "ad", "-b", "nucleo_l4r5zi", "--runtime", "nnom", "--runtime",
            "tflm-cmsis-nn", "-o", str(page))
        assert "| nnom@local |" in page.read_text() and "| tflm-cmsis-nn@2" in page.read_text()


def test_a_clock_the_part_does_not_have_is_named_and_none_is_proposed() -> None:
    for verb in ("sweep", "select"):
        said = run(verb, "ad", "-b", "esp32c3_devkitm", "--clock", "120MHz").stderr
        assert "cpu at 120 MHz is no clock of the esp32c3: it has 10 MHz, " in said
    advised = run("advise", "ad", "-b", "esp32c3_devkitm", "--clock", "70MHz", "--effort",
                  "setting", "--max-ms", "50", "--json")
    assert "is no clock of the esp32c3" in advised.stderr
    assert {"160MHz"} <= {one["settings"].get("clocks.cpu.frequency_hz", "80MHz")
                          for one in json.loads(advised.stdout)["changes"]} <= {"160MHz", "80MHz"}


def test_boards_compared_by_different_releases_are_said_to_be() -> None:
    said = run("sweep", "ad", "-b", "nucleo_l4r5zi", "-b", "nucleo_f401re", "--runtime",
               "tflm-cmsis-nn").stderr
    assert "boards are compared by different releases of tflm-cmsis-nn; name one: --runtime" in said
    said = run("sweep", "ad", "-b", "nucleo_l4r5zi", "--runtime", "tflm-cmsis-nn").stderr
    assert "different releases" not in said


def test_the_network_is_a_column_where_one_of_those_asked_about_alone_is_feasible():
    table = twin.sweep(["kws", "ad"], ["nucleo_f401re"], clocks=["84MHz", "42MHz"])
    rows = [replace(row, failure="rejected", reason="too large") if row.model == "kws" else row
            for row in table.rows]
    part = replace(table, rows=tuple(rows))
    shown = list_columns(part.predicted, part, wide=True)
    assert "model" in [column.header for column in shown]
