"""`twin study` as a user meets it: run, show, pareto, diff, sensitivity, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

import twin
from twin.cli import app
from twin.reports.documents import load_schema
from twin.reports.figures.study import draw_tornado
from twin.reports.study_charts import chart_effects
from twin.studies.study.findings import list_effects, name_baseline
from twin.studies.study.sensitivity import Influence, Sensitivity

FILE = """
schema: 1
name: small
question: Which clock?
models: kws
boards: nucleo_h7a3zi_q
set:
  clocks.cpu.frequency_hz: [80MHz, 280MHz]
  caches.l1d.size_bytes: [4KiB, 16KiB]
finding: {vary: clocks.cpu.frequency_hz, figures: [time, energy], kind: clock}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.yaml").write_text(FILE)
    return folder


def call(*words: object):
    return CliRunner().invoke(app, ["study", *map(str, words)])


def test_a_study_runs_and_tells_what_it_found(folder) -> None:
    ended = call("run", folder / "small.yaml", "-o", folder / "out")
    assert ended.exit_code == 0, ended.output
    assert "280MHz beside 80MHz: time x0.28" in ended.output
    assert "energy is least at" in ended.output
    shown = call("show", folder / "out")
    assert "Which clock?" in shown.output and "4 of 4 configurations" in shown.output
    assert (folder / "out/finding.md").read_text().count("\n- ") >= 4
    assert (folder / "out/finding.png").is_file()
    front = call("pareto", folder / "out", "--over", "time")
    assert front.exit_code == 0 and "280" in front.output
    assert "0 of 4 configurations moved" in call("diff", folder / "out", folder / "out").output


@pytest.mark.parametrize(("words", "kind"), [
    (("run", "small.yaml", "-o", "out"), "study"), (("diff", "out", "out"), "study_diff"),
    (("sensitivity", "small.yaml"), "sensitivities")])
def test_what_studies_tell_is_a_document_too(words, kind, folder, monkeypatch) -> None:
    axis = Influence(axis="a", low_value="1", high_value="2", middle_value="1", low=3.0,
                     high=4.0, index=1.0, spread=0.1)
    monkeypatch.setattr(twin, "study_sensitivity", lambda *_, **__: (Sensitivity(
        study="s", model="m", board="b", quantity="time_us", method="morris", middle=3.5, points=9,
        influences=(axis,)),))
    ended = call(*(folder / word if word in ("small.yaml", "out") else word for word in words),
                 "--json")
    document = json.loads(ended.stdout)
    assert document["kind"] == kind
    jsonschema.Draft202012Validator(load_schema("study")).validate(document)
    assert kind != "study_diff" or (document["moved"], len(document["rows"])) == (0, 4)
    assert kind != "study_diff" or (document["gone"], document["new"]) == (0, 0)


def test_different_studies_are_refused_and_rows_of_one_alone_are_counted(folder) -> None:
    other = folder / "other"
    shutil.copytree(folder / "out", other)
    done = twin.open_study(other)
    rows = [replace(row, ram_bytes=row.ram_bytes + 1024) for row in done.load_results().rows[:3]]
    done.save_results(replace(done.load_results(), rows=tuple(rows)), ["a", "b", "c"])
    told = call("diff", folder / "out", other)
    assert "4 of 4 configurations moved, 1 of which are in one of them only" in told.output
    assert told.output.count("RAM +1,024 B") == 3
    head = (other / "session.json").read_text()
    (other / "session.json").write_text(re.sub(r'("kws": ")\w{4}', r"\1beef", head))
    assert "kws: is another file in" in call("diff", folder / "out", other).stderr
    (other / "study.yaml").write_text(FILE.replace("name: small", "name: large"))
    told = call("diff", folder / "out", other)
    assert told.exit_code == 3 and "different studies (small and large), with 3 of 4" in told.stderr


def test_sensitivity_ranks_axes_and_draws_a_tornado(folder) -> None:
    ended = call("sensitivity", folder / "small.yaml", "-n", "4", "--plot", folder / "t.png")
    assert ended.exit_code == 0, ended.output
    lines = [line for line in ended.output.splitlines() if line.startswith(("clocks", "caches"))]
    assert "clocks.cpu.frequency_hz 80MHz, caches.l1d.size_bytes 4KiB" in " ".join(
        ended.output.split())
    assert lines[0].startswith("clocks.cpu.frequency_hz") and (folder / "t.png").is_file()
    sobol = call("sensitivity", folder / "small.yaml", "-n", "4", "--method", "sobol")
    assert "alone" in sobol.output


def test_a_tornado_is_in_the_unit_of_tables_and_its_legend_has_what_is_drawn() -> None:
    axis = Influence(axis="network.width", low_value="1", high_value="0.5", middle_value="1",
                     low=3000.0, high=1000.0, index=1.0, spread=0.1)
    figure = draw_tornado([Sensitivity(
        study="s", model="m", board="b", quantity="time_us", method="morris", middle=3000.0,
        points=9, influences=(axis,))])
    axes, = figure.axes
    assert axes.get_xlabel() == "time, ms"
    (bar,) = axes.patches
    assert (bar.get_x(), bar.get_width()) == (3.0, -2.0)
    assert axes.get_xlim()[1] > 3.0  # nothing begins at the edge
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["at its last value"]
    sides = {text.get_text().strip(): text.get_ha() for text in axes.texts}
    assert sides == {"1": "left", "0.5": "right"}


def test_a_number_that_others_are_set_beside_is_named_with_its_axis(tmp_path) -> None:
    (tmp_path / "s.yaml").write_text(
        "schema: 1\nname: s\nmodels: ad\nboards: nucleo_h7a3zi_q\nset: {network.width: [1, 0.5]}"
        "\nfinding: {vary: network.width, figures: [time]}\n")
    assert call("run", tmp_path / "s.yaml", "-o", tmp_path / "out").exit_code == 0
    done = twin.open_study(tmp_path / "out")
    table, finding = done.load_results(), done.study.finding
    assert name_baseline(table, finding) == "width 1"
    assert chart_effects(list_effects(table, finding), finding, table).x.label == (
        "times that of width 1")
    assert name_baseline(table, replace(finding, baseline="own")) == "own"


@pytest.mark.parametrize("words", [
    ("show", "nowhere"), ("run", "e9", "-o", "x"),
    ("sensitivity", "SMALL", "-n", "3", "--method", "sobol")])
def test_what_is_wrong_is_said_in_a_line(words, folder) -> None:
    ended = call(*(folder / "small.yaml" if word == "SMALL" else word for word in words))
    assert ended.exit_code in (2, 3) and "Traceback" not in ended.output
