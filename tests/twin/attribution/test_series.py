"""A series of measurements: a level that moved is dated, a steady one is left alone."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from calibration.measurement.measurement import Measurement, write_measurement
from calibration.measurement.sample import Header, Sample
from twin.attribution.series import follow_series
from twin.cli import app
from twin.errors import UsageError
from twin.reports.documents import load_schema

HEADER = Header(kind="measured", model="kws", board="nucleo_l4r5zi", runtime="firmware",
                clocks_hz=(("cpu", 120e6),), temperature="warm", source="test", placement=())


def take(seed, level, runs=20):
    """Runs of a board that scatter by 0.1 %."""
    values = level * np.exp(np.random.default_rng(seed).normal(0, 1e-3, runs))
    return Measurement(header=HEADER, samples=tuple(
        Sample(run=run, counter="cpu_cycles", unit="cycles", value=float(value), clock="cpu")
        for run, value in enumerate(values)))


def test_a_steady_series_holds():
    series = follow_series([(f"day{day}", take(day, 1e6)) for day in range(4)])
    assert series.change is None and series.since == ""
    assert "holds over 80 runs" in series.sentence
    assert [one.runs for one in series.stretches] == [20] * 4


def test_a_moved_level_is_dated():
    series = follow_series([("a", take(1, 1e6)), ("b", take(2, 1e6)), ("c", take(3, 1.03e6))])
    assert series.change is not None and series.change.position == 40
    assert series.since == "run 0 of c"
    assert series.change.shift == pytest.approx(np.log(1.03), abs=1e-3)
    assert series.stretches[2].ratio == pytest.approx(1.03, abs=1e-3)


@pytest.mark.parametrize(("levels", "runs", "change", "holds", "says"), [
    ((1e6, 1e6, 1.5338e6), 2, 4, False, "moved by +53"),
    ((1e6, 1.0756e6), 5, 5, False, "run 0 of 1 (p < 0.001"),
    ((1e6, 1e6), 5, None, True, "holds over 10 runs, by medians: a move of less than 0."),
    ((1e6, 1.5e6), 1, None, False, "runs do not say how well they repeat; take 6 or more each")])
def test_few_runs_are_judged_by_medians_or_not_at_all(levels, runs, change, holds, says):
    """Six runs of two boards hold by no test of single runs, whatever the third one shows."""
    series = follow_series([(str(day), take(day, level, runs)) for day, level in enumerate(levels)])
    assert (series.change and series.change.position) == change
    assert series.holds == holds and says in series.sentence


@pytest.mark.parametrize(("name", "value"), [("board", "nucleo_u575zi_q"), ("model", "ad"),
                                             ("temperature", "cold"), ("runtime", "cmsis-nn")])
def test_other_things_are_no_series(name, value):
    other = take(1, 1e6)
    with pytest.raises(UsageError, match=f"no series: {name}"):
        follow_series([("a", take(1, 1e6)), ("b", replace(
            other, header=replace(HEADER, **{name: value})))])


def test_the_verb_exits_1_when_the_level_moved(tmp_path):
    for name, seed, level in (("a", 1, 1e6), ("b", 2, 1e6), ("c", 3, 1.03e6)):
        write_measurement(tmp_path / name / "warm", take(seed, level))

    def run(*words):
        return CliRunner().invoke(app, ["diff", *(str(word) for word in words)])

    places = [tmp_path / name for name in "abc"]
    moved = run(*places)
    assert moved.exit_code == 1 and "run 0 of" in " ".join(moved.stdout.split())
    assert "moved by +3.0" in moved.stdout or "moved by +2.9" in moved.stdout
    steady = run(*places[:2], "--series")
    assert steady.exit_code == 0 and "holds over 40 runs" in steady.stdout
    told = run(*places, "--json")
    document = json.loads(told.stdout)
    assert told.exit_code == 1 and document["kind"] == "series"
    jsonschema.Draft202012Validator(load_schema("series")).validate(document)
    assert document["change"]["position"] == 40 and len(document["stretches"]) == 3
    refused = run(*places, "--max-increase", "2%")
    assert refused.exit_code == 2 and "two" in refused.stderr


def test_the_same_folder_twice_is_refused(tmp_path):
    write_measurement(tmp_path / "a", take(1, 1e6))
    write_measurement(tmp_path / "b", take(2, 1e6))
    names = [str(tmp_path / name) for name in ("a", "b", "a")]
    found = CliRunner().invoke(app, ["diff", *names])
    assert found.exit_code == 2 and "given twice" in found.stderr
