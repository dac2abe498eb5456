"""The commands a newcomer types, on the keyword-spotting network and real boards."""

import json
import re

import jsonschema
import pytest
from typer.testing import CliRunner

import twin
from hwmodels.counts import CAUSES
from hwmodels.quantities import format_energy, format_time
from twin.attribution.document import load_schema as load_comparison_schema
from twin.cli import app
from twin.errors import UsageError
from twin.pricing.document import load_schema

KWS = ("kws", "-b", "nucleo_l4r5zi")


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture(scope="module")
def document():
    result = run("predict", *KWS, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_document_of_kws_conforms_and_sums(document):
    jsonschema.Draft202012Validator(load_schema()).validate(document)
    # MLPerf Tiny's keyword-spotting model: 2,656,768 MACs, 22,604 parameters (its model table).
    assert (document["model"]["macs"], document["model"]["parameters"]) == (2_656_768, 22_604)
    assert document["board"] == "nucleo_l4r5zi"
    for layer in document["layers"]:
        assert layer["cycles"] == sum(line["cycles"] for line in layer["bill"])
    total = document["total"]
    assert total["cycles"]["cpu"] == sum(layer["cycles"] for layer in document["layers"])
    assert total["cycles"]["cpu"] == sum(line["cycles"] for line in total["bill"])
    time, sure = total["time_us"], total["time_interval_us"]
    assert sure["low"] < time < sure["high"] and sure["level"] == 0.9  # learnt prices
    assert document["calibration"]["basis"] == "conformal"
    assert time == pytest.approx(sum(line["time_us"] for line in total["bill"]))
    clock_hz = document["clocks_hz"]["cpu"]
    assert time * clock_hz * 1e-6 == pytest.approx(total["cycles"]["cpu"], abs=0.51)


def test_same_command_gives_the_same_bytes():
    assert run("predict", *KWS, "--json").stdout == run("predict", *KWS, "--json").stdout


def test_report_of_kws_reads_as_promised(document):
    result = run("predict", *KWS, "--details")
    assert result.exit_code == 0
    text = result.stdout
    for words in ("sha256", "architecture", "2,656,768 MACs, 22,604 parameters", "cortex-m4 at "
                  "120 MHz", "depthwise_conv_2d", "fully_connected", "set-up, once"):
        assert words in text
    assert f"{document['total']['cycles']['cpu']:,} cpu cycles" in text
    assert document["explanation"] in text
    shares = re.findall(r"(\d+) % [a-z]", document["explanation"])
    assert sum(int(share) for share in shares) == 100
    for layer in document["layers"]:
        assert f"{layer['cycles']:,}" in text


def test_cold_costs_more_than_warm():
    # 16 KiB instruction cache: warm, it still holds code of the inference before.
    on = ("predict", "kws", "-b", "nucleo_h7a3zi_q", "--calibration", "none", "--json")
    warm, cold = json.loads(run(*on).stdout), json.loads(run(*on, "--cold").stdout)
    assert (warm["temperature"], cold["temperature"]) == ("warm", "cold")
    assert cold["total"]["time_us"] > warm["total"]["time_us"]


def test_slower_clock_takes_longer_and_needs_fewer_wait_states(document):
    result = run("whatif", *KWS, "--set", "clocks.cpu.frequency_hz=80MHz", "--set",
                 "supply.voltage_scale=range1", "--json")
    assert result.exit_code == 0
    what_if = json.loads(result.stdout)
    jsonschema.Draft202012Validator(load_schema()).validate(what_if["after"])
    assert what_if["before"]["total"] == document["total"]
    jsonschema.Draft202012Validator(load_comparison_schema()).validate(what_if)
    totals = {account["quantity"]: account["total"] for account in what_if["accounts"]}
    assert totals["time"]["gap"] > 0
    # Three wait states instead of five: fewer cycles at 80 MHz, though more time.
    assert totals["cycles"]["gap"] < 0
    moves = [move for move in totals["time"]["causes"] if move["gap"]]
    assert {cause for move in moves for cause in move["causes"]} <= set(CAUSES)
    shown = run("whatif", *KWS, "--set", "clocks.cpu.frequency_hz=80MHz", "--set",
                "supply.voltage_scale=range1").stdout.splitlines()
    start = next(i for i, line in enumerate(shown) if line.startswith("cause, ns"))
    gaps = [abs(int(line.split()[3].replace(",", "")))
            for line in shown[start + 1:start + 1 + len(moves)]]
    assert gaps == sorted((abs(move["gap"]) for move in moves), reverse=True)


@pytest.mark.parametrize(("setting", "words"), [
    ("clocks.cpu.frequency_hz=240MHz", "accepted: up to 120 MHz"),
    ("clocks.cpu.frequency_hy=80MHz", "nearest: clocks.cpu.frequency_hz"),
    ("placement.arena=tcm", "no memory of role 'tcm'"),
    ("runtime=cmsis", "did you mean cmsis-nn"),
])
def test_impossible_points_are_refused_with_the_rule(setting, words):
    result = run("whatif", *KWS, "--set", setting)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr


def test_placement_by_role_moves_memory_causes():
    result = run("whatif", "kws", "-b", "nucleo_h7a3zi_q", "--set", "placement.arena=sram")
    assert result.exit_code == 0
    assert "placement.arena = sram" in result.stdout
    assert "data_refill" in result.stdout


def test_check_of_kws_answers_with_its_exit_code():
    assert run("check", *KWS).exit_code == 0
    assert run("check", *KWS, "--max-ms", "1").exit_code == 1


def test_check_names_the_doubt_and_fails_for_it_where_asked():
    sure = json.loads(run("predict", *KWS, "--json").stdout)["total"]["time_interval_us"]
    inside = ("--max-ms", str((sure["high"] - 1) / 1e3))
    told = run("check", *KWS, *inside)
    assert told.exit_code == 0
    assert "ok, may exceed" in told.stdout and "90 % interval" in told.stdout
    asked = run("check", *KWS, *inside, "--sure")
    assert asked.exit_code == 1 and "--sure: time may exceed its limit" in asked.stderr
    assert run("check", *KWS, "--max-ms", str((sure["high"] + 1) / 1e3), "--sure").exit_code == 0
    stated = run("check", *KWS, "--max-ms", "900", "--sure", "--calibration", "none")
    assert stated.exit_code == 2 and "no interval of time is known" in stated.stderr


def test_whatif_shows_the_intervals_of_both_sides():
    result = run("whatif", *KWS, "--set", "clocks.cpu.frequency_hz=80MHz")
    before = json.loads(run("predict", *KWS, "--json").stdout)["total"]
    bounds = [line for line in result.stdout.splitlines() if "90 % interval" in line]
    assert len(bounds) == 4  # from and to, of time and of energy
    ends = [(quantity, end) for quantity in ("time", "energy") for end in ("low", "high")]
    for line, (quantity, end) in zip(bounds, ends, strict=True):
        value = before["time_interval_us" if quantity == "time" else "energy_interval_uj"][end]
        write = format_time if quantity == "time" else format_energy
        assert write(value) in line and f"of {quantity}" in line
        assert f"interval {'from' if end == 'low' else 'to'}" in line
    stated = run("whatif", *KWS, "--set", "clocks.cpu.frequency_hz=80MHz", "--calibration", "none")
    assert "interval" not in stated.stdout


def test_compare_sets_published_rows_beside():
    result = run("compare", *KWS, "--published", "--calibration", "none")
    assert result.exit_code == 0
    assert result.stdout.startswith("calibration: none: stated prices")
    learnt = run("compare", *KWS, "--published")  # as every verb: shipped prices
    assert learnt.stdout.startswith("calibration: auto; rows of use fit")
    for words in ("STMicroelectronics", "published, ms", "median", "n = "):
        assert words in result.stdout
    nothing = run("compare", "squeezenet1.1", "-b", "rpi_pico", "--published")
    assert nothing.exit_code == 0
    assert "no published result" in nothing.stdout


@pytest.mark.parametrize(("arguments", "words"), [
    (("predict", "kw", "-b", "nucleo_l4r5zi"), "kws"),
    (("predict", "kws", "-b", "nucleo_l4r5z"), "nucleo_l4r5zi"),
    (("predict", "kws.tflite", "-b", "nucleo_l4r5zi"), "kws.tflite"),
    (("predict", *KWS, "--runtime", "tflm"), "tflm-cmsis-nn"),
    (("models", "export", "kwz", "out.tflite"), "kws"),
])
def test_refusals_end_with_three_and_name_what_is_there(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_models_are_listed_and_exported(tmp_path):
    row = next(line for line in run("models").stdout.splitlines() if line.startswith("kws "))
    assert row.split() == ["kws", "13", "2,656,768", "22,604"]
    target = tmp_path / "kws.tflite"
    assert run("models", "export", "kws", str(target)).exit_code == 0
    again = run("predict", str(target), "-b", "nucleo_l4r5zi")
    assert again.exit_code == 0
    assert "2,656,768 MACs" in again.stdout


def test_a_name_is_no_deployment():
    with pytest.raises(UsageError, match=r"accepted: twin\.deploy\(model, board\)"):
        twin.predict("kws")


@pytest.mark.parametrize("arguments,named", [
    (("whatif", "kws", "-b", "nucleo_l4r5zi", "-b", "rpi_pico"), "--board/-b"),
    (("cache", "kws", "--board=nucleo_l4r5zi", "-b", "nucleo_l4r5zi"), "--board/-b"),
    (("check", "kws", "-b", "nucleo_l4r5zi", "--max-ms", "5", "--max-ms", "6"), "--max-ms")])
def test_an_option_given_twice_is_refused(arguments, named):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error: {named} is given 2 times; accepted: once" in result.stderr
