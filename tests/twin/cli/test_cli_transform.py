"""`twin transform`, `twin accuracy` and `twin scenario` from the command line."""

import json

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
