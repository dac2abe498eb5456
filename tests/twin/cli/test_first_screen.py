"""What a prediction answers first, and what stands there where no board is named."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from typer.testing import CliRunner

import twin
from calibration.fitting.cell import SHIPPED, list_measured
from hwmodels.board.file import SHIPPED as BOARDS
from twin.api.commands.predict import FIRST_BOARDS, suggest_setting
from twin.cli import app
from twin.pricing.document import load_schema
from twin.reports.tables.header import MOST_NOTES, name_tasks, place_warnings

EXPORTS = Path(__file__).parents[2] / "exports"
COMPILED = Path(__file__).parents[2] / "made/ethos_u/kws_u55-128.tflite"


def run(*words: str):
    return CliRunner().invoke(app, ["predict", *words], env={"COLUMNS": "80"})


def read_pairs(stdout: str) -> dict[str, str]:
    """Return the lines of the first screen by name, continued lines joined."""
    pairs: dict[str, str] = {}
    for line in stdout.partition("\n\n")[0].splitlines():
        name, text = line[:9].strip(), line[9:]
        last = name or list(pairs)[-1]
        pairs[last] = f"{pairs[last]} {text}" if last in pairs else text
    return pairs


def test_the_first_screen_answers() -> None:
    ended = run("kws", "-b", "nucleo_l4r5zi")
    pairs = read_pairs(ended.stdout)
    assert list(pairs) == ["model", "board", "time", "energy", "fits", "arena", "library", "prices",
                           "mostly", "helps"]
    assert "90 % interval" in pairs["time"] and "90 % interval" in pairs["energy"]
    assert pairs["fits"].startswith("RAM ") and " of 640 KiB, flash " in pairs["fits"]
    assert pairs["arena"] == "AI_NETWORK_DATA_ACTIVATIONS_SIZE >= 10,560 bytes"
    assert pairs["library"].startswith("x-cube-ai@9.0.0-time, ") and "its loops" in pairs["library"]
    assert pairs["mostly"] == "33 % alu: requantisation and addresses of depthwise convolutions"
    command = pairs["helps"].rpartition("; ")[2].strip("`")
    assert command == "twin advise kws -b nucleo_l4r5zi --runtime x-cube-ai@9.0.0-time --max-ms 37"
    ran = CliRunner().invoke(app, command.split()[1:])
    assert ran.exit_code == 0, ran.stderr
    lines = ended.stdout.partition("\n\n")[0].splitlines()
    assert len(lines) <= 14 and max(map(len, ended.stdout.splitlines())) <= 80
    assert not ended.stderr, "what the screen says is not said again"


def test_no_command_is_offered_that_would_take_other_prices() -> None:
    shipped = SHIPPED / "x-cube-ai" / "nucleo_l4r5zi.yaml"
    words = ("kws", "-b", "nucleo_l4r5zi")
    for calibration, is_offered in (("auto", True), ("none", False), (str(shipped), False)):
        ended = run(*words, "--calibration", calibration)
        assert ("twin advise" in ended.stdout) is is_offered, ended.stderr
    assert "twin advise" in run("vww", "-b", "alif_e7_devkit").stdout
    assert "twin advise" not in run("vww", "-b", "alif_e7_devkit", "--calibration", "none").stdout


def test_the_command_offered_finds_the_file_of_a_board_elsewhere(tmp_path, monkeypatch) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text((BOARDS / "nucleo_l4r5zi.yaml").read_text().replace(
        "name: nucleo_l4r5zi", "name: mine"))
    monkeypatch.chdir(tmp_path)
    # A lower clock takes its voltage scale with it, in the command as on the screen.
    for named, more, found in ((str(path), (), str(path)), ("./mine.yaml", (), "mine.yaml"),
                               (str(path), ("--clock", "80MHz"), str(path))):
        ended = CliRunner().invoke(app, ["predict", "kws", "-b", named, *more],
                                   env={"COLUMNS": "500"})
        said = read_pairs(ended.stdout)
        words = shlex.split(said["helps"].rpartition("; ")[2].strip("`"))
        assert words[words.index("-b") + 1] == found
        ran = CliRunner().invoke(app, words[1:])
        assert ran.exit_code in (0, 1) and "cannot be read" not in ran.stderr, ran.stderr
        assert said["time"].split(",")[0].removeprefix("predicted ") in ran.stdout


def test_every_warning_is_said_beside_its_figure_in_the_details_or_apart() -> None:
    words = ("ic", "-b", "rpi_pico2")
    prediction = twin.predict(twin.deploy(*words[::2]))
    notes = place_warnings(prediction)
    assert 0 < len(notes.beside) <= MOST_NOTES and notes.rest
    brief, details = run(*words), run(*words, "--details")
    assert f"{len(notes.rest)} more warning" in brief.stdout and not brief.stderr
    said = " ".join(details.stdout.split())
    for warning in prediction.warnings:
        assert warning.partition(": none was asked")[0][-30:] in said


def test_without_an_interval_the_time_says_why_and_the_rest_is_said_apart() -> None:
    ended = run(str(EXPORTS / "torch_cnn.onnx"), "-b", "esp32s3_devkitc", "--calibration", "none")
    said = read_pairs(ended.stdout)["time"]
    assert "90 % interval" not in said and "assumed: no source" in said
    assert ended.stderr == "warning: input: batch 'batch' of 'x' is open and taken to be 1\n"


@pytest.mark.parametrize(("model", "cause", "text"), [
    ("torch_cnn.onnx", "alu", "arithmetic and addresses of 3x3 convolutions"),
    ("kws", "alu", "requantisation and addresses of depthwise convolutions")])
def test_the_largest_cause_is_that_of_the_bill(model, cause, text) -> None:
    path = str(EXPORTS / model) if model.endswith("onnx") else model
    document = json.loads(run(path, "-b", "nucleo_l4r5zi", "--json").stdout)
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    largest, total = document["largest"], document["total"]
    line = max(total["bill"], key=lambda line: line["time_us"])
    assert (largest["cause"], largest["text"]) == (line["cause"], text) and line["cause"] == cause
    assert largest["share"] == pytest.approx(line["time_us"] / total["time_us"])


def test_without_a_board_five_are_listed() -> None:
    ended = run("ad")
    assert ended.exit_code == 0, ended.stderr
    assert max(map(len, ended.stdout.splitlines())) <= 80
    for board in FIRST_BOARDS:
        row = next(line for line in ended.stdout.splitlines() if line.startswith(board))
        assert "KiB" in row and "@" in row
    assert "twin predict ad -b stm32n6570_dk" in ended.stdout and "twin select ad" in ended.stdout
    never, = (line for line in ended.stdout.splitlines() if ": not measured" in line)
    assert never.startswith("esp32s3_devkitc: not measured with this library")
    rows = json.loads(run("ad", "--json").stdout)["rows"]
    assert {row["board"] for row in rows} == set(FIRST_BOARDS)


def test_boards_it_does_not_fit_are_rows_with_what_is_missing() -> None:
    ended = run("ad", "--set", "placement.arena=dtcm")
    assert ended.exit_code == 0
    row = next(line for line in ended.stdout.splitlines() if line.startswith("nucleo_l4r5zi "))
    assert row.split()[1:] == ["?", "?", "no"]
    assert "nucleo_l4r5zi: nucleo_l4r5zi has no memory 'dtcm'" in " ".join(ended.stdout.split())


def test_a_file_that_is_none_is_refused_once() -> None:
    ended = run("nothing.tflite")
    assert ended.exit_code == 3 and ended.stderr == "error: nothing.tflite: no such file\n"
    assert run("--elf", "app.elf").exit_code == 2


def test_each_first_board_is_the_one_of_its_core_with_most_measured_rows() -> None:
    rows = Counter[tuple[str, str]]()
    for measured in list_measured():
        rows[measured.core, measured.board] += measured.rows
    cores = {twin.show_board(name).core.model: name for name in FIRST_BOARDS}
    assert len(cores) == len(FIRST_BOARDS)
    for core, board in cores.items():
        assert rows[core, board] == max(
            (count for (each, _), count in rows.items() if each == core), default=0)


def test_a_file_compiled_for_an_accelerator_is_listed_on_the_boards_that_have_one() -> None:
    rows = json.loads(run(str(COMPILED), "--json").stdout)["rows"]
    families = {twin.show_board(row["board"]).npu.family for row in rows}
    assert families == {"ethos-u"} and any(row["time_us"] for row in rows)
    assert "accelerator of the family" in run(str(COMPILED)).stdout


def test_without_a_verb_the_whole_help_is_shown() -> None:
    ended = CliRunner().invoke(app, [], env={"COLUMNS": "80"})
    assert ended.exit_code == 2 and "\nDecide:\n" in ended.output


def test_a_cold_inference_that_takes_no_longer_says_why() -> None:
    ended = run("ad", "-b", "nucleo_l4r5zi", "--cold")
    assert "cold is as warm here: filling art_d (256 B) and art_i (1 KiB)" in ended.stderr


def test_no_command_is_offered_that_would_answer_of_another_set_up() -> None:
    assert "twin advise" in run("kws", "-b", "nucleo_l4r5zi").stdout
    assert "twin advise" not in run("kws", "-b", "nucleo_l4r5zi", "--set",
                                    "network.width=0.5").stdout


@pytest.mark.parametrize(("board", "words"), [
    ("nucleo_l4r5zi", ("--weights", "sram")),
    ("stm32n6570_dk", ("--set", "clocks.npu.frequency_hz=500MHz"))])
def test_the_command_offered_is_of_what_was_set(board, words) -> None:
    pairs = read_pairs(run("ad", "-b", board, *words).stdout)
    command = pairs["helps"].rpartition("; ")[2].strip("`").split()
    assert {*words} <= {*command}
    told = CliRunner().invoke(app, command[1:]).stdout
    assert f": {pairs['time'].removeprefix('predicted ').partition(', ')[0]}, " in told


def test_layers_name_the_tasks_of_every_compiler() -> None:
    for name, number in (("conv@328", "328"), ("EpochBlock_1", "1"), ("rest", "rest")):
        assert name_tasks(SimpleNamespace(tasks=(name,))) == number


@pytest.mark.parametrize(("words", "setting"), [
    (("ad", "-b", "rpi_pico2"), "placement.weights=sram"),
    (("kws", "-b", "stm32n6570_dk"), "npu.epoch_controller=true")])
def test_the_setting_that_helps_most_is_named_where_few_are_to_be_tried(words, setting) -> None:
    helps = read_pairs(run(*words).stdout)["helps"]
    assert f"--set {setting}: 0." in helps and " of the time; `twin advise " in helps
    path, _, value = setting.partition("=")
    deployment = twin.deploy(*words[::2])
    ratio = twin.predict(deployment.replace({path: value})).time_us / twin.predict(
        deployment).time_us
    assert f"{setting}: {ratio:.2f} (" in helps
    for more in (("--set", setting), ("--calibration", "none"), ("--cold",)):
        assert f"--set {setting}: " not in run(*words, *more).stdout


def test_no_setting_is_tried_against_what_the_core_computes() -> None:
    assert suggest_setting(twin.predict(twin.deploy("kws", "nucleo_l4r5zi"))) is None
    assert suggest_setting(twin.predict(twin.deploy(
        "ad", "rpi_pico2", weights="flash"))) is None  # It was placed there.
