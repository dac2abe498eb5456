"""`twin transform`, `twin accuracy` and `twin scenario` from the command line."""

import json
import shlex
import textwrap
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from twin.cli import app


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_what_applies_is_listed_and_the_rest_has_its_reason() -> None:
    ended = run("transform", "ic", "-b", "nucleo_l4r5zi")
    assert ended.exit_code == 0 and "network.width" in ended.stdout
    assert "ic has no dead channels" in ended.stdout and "does not apply here" in ended.stdout
    document = json.loads(run("transform", "ic", "-b", "nucleo_l4r5zi", "--json").stdout)
    assert {"path", "values", "reason", "effort"} <= set(document["transformations"][0])


def test_a_changed_network_is_written_and_read_again(tmp_path) -> None:
    target = tmp_path / "half.tflite"
    ended = run("transform", "ic", "--set", "network.width=0.5", "-o", str(target))
    assert ended.exit_code == 0 and target.is_file()
    assert run("predict", str(target), "-b", "nucleo_l4r5zi").exit_code == 0
    assert run("transform", "ic").exit_code == 2
    assert run("transform", "ic", "--set", "placement.arena=sram", "-o", str(target)).exit_code == 2


def test_accuracy_is_a_table_or_json(tmp_path) -> None:
    pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 49, 10, 1), np.int8), y=np.zeros(4, int))
    ended = run("accuracy", "kws", "--data", str(tmp_path / "d.npz"))
    assert ended.exit_code == 0 and "LiteRT" in ended.stdout
    document = json.loads(run("accuracy", "kws", "--data", str(tmp_path / "d.npz"), "--set",
                              "network.weights=int4", "--json").stdout)
    assert document["after"]["samples"] == document["before"]["samples"] == 4
    assert run("accuracy", "kws", "--data", str(tmp_path / "no.npz")).exit_code == 2


def test_a_scenario_is_a_report_a_document_and_a_picture(tmp_path) -> None:
    pytest.importorskip("simpy", reason="needs simpy")
    assert "keyword_spotting" in run("scenario", "list").stdout
    listed = json.loads(run("scenario", "list", "--json").stdout)
    assert {"anomaly_detection", "keyword_spotting"} < {one["name"] for one in listed["scenarios"]}
    assert listed["kind"] == "scenarios" and listed["scenarios"][0]["sensor"]["hop_us"] == 1e5
    picture = tmp_path / "s.png"
    ended = run("scenario", "run", "keyword_spotting", "--set", "duration=1s", "--plot",
                str(picture))
    assert ended.exit_code == 0 and "battery" in ended.stdout and picture.is_file()
    document = json.loads(run("scenario", "run", "keyword_spotting", "--set", "duration=1s",
                              "--json").stdout)
    assert document["kind"] == "scenario" and document["life_days"] > 0
    assert run("scenario", "run", "keyword_spotting", "--set", "duration").exit_code == 2
    assert run("scenario", "run", "nothing").exit_code == 3
    assert "sensor.hop" in run("scenario", "run", "keyword_spotting", "--set",
                               "sensor.hop=5").stderr


def test_the_examples_of_the_scenario_page_run(tmp_path, monkeypatch) -> None:
    pytest.importorskip("simpy", reason="needs simpy")
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    page = (Path(__file__).parents[3] / "docs" / "scenario.md").read_text(encoding="utf-8")
    example = page.partition("## The file\n")[2].partition("Unknown keys")[0]
    monkeypatch.chdir(tmp_path)
    Path("my_device.yaml").write_text(textwrap.dedent(example), encoding="utf-8")
    assert run("scenario", "run", "my_device.yaml").exit_code == 0
    shown = [shlex.split(line, comments=True)[1:] for line in page.splitlines()
             if line.startswith("    twin scenario")]
    assert len(shown) >= 5
    for arguments in shown:
        ended = run(*arguments)
        assert ended.exit_code == 0, (arguments, ended.output)
    moved = run("scenario", "run", "my_device.yaml", "-b", "nucleo_u575zi_q")
    assert moved.exit_code == 0
    assert "gpdma1" in moved.stderr
