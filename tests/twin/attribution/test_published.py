"""Published rows beside predictions: matching, refusals, ratios, and the accuracy report."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from rich.console import Console

import twin
from calibration.datasets import board_settings, published_rows, stand_in
from calibration.datasets.published import read_names
from hwmodels.errors import TwinError
from twin.attribution.document import load_schema, published_document
from twin.attribution.published import (
    FEWEST_SEALED,
    Comparison,
    compare_published,
    compare_row,
    describe_sealed,
    find_refusal,
    match_rows,
    predict_row,
    row_predictor,
)
from twin.attribution.views import compare_with_published
from twin.network import zoo
from twin.reports.documents import load_schema as load_published_schema
from twin.reports.tables.published import published_report, several_report
from twin.runtimes import list_runtimes

ROOT = Path(twin.__file__).parents[1]


@pytest.fixture(scope="module")
def kws():
    return zoo.build("kws")


def predicted_by(runtime):
    """A prediction of 10 ms and 100 uJ."""
    return SimpleNamespace(runtime=SimpleNamespace(identity=runtime),
                           time_us=10_000.0, certainty=None, time_interval=None, energy_uj=100.0,
                           placement=SimpleNamespace(arena_bytes=1000))


def fake_predictor(row, graph):
    """10 ms and 100 uJ for anything; refuses microTVM."""
    if row.runtime.startswith("microtvm"):
        raise TwinError("no such runtime here")
    return predicted_by(row.runtime)


def test_rows_match_by_architecture_not_by_name(kws):
    rows = match_rows(kws, board="nucleo_l4r5zi")
    expected = [row for row in published_rows(use="all")
                if row.board == "nucleo_l4r5zi" and row.model == "kws"]
    assert list(rows) == expected and len(rows) > 10
    other = zoo.build("resnet8")  # the network of "ic" under another name
    assert {row.model for row in match_rows(other, board="nucleo_l4r5zi")} == {"ic"}
    assert match_rows(zoo.build("mobilenet_v1_0.25_96"), board="ek_ra6m4") == ()


def test_compare_gives_every_row_a_figure_or_a_reason(kws):
    compared = compare_published(kws, "nucleo_l4r5zi", predictor=fake_predictor)
    assert [c.row for c in compared] == list(match_rows(kws, board="nucleo_l4r5zi"))
    for one in compared:
        if one.row.runtime.startswith("microtvm"):
            assert one.reason == "no such runtime here" and one.latency_ratio is None
        else:
            assert one.latency_ratio == pytest.approx(10.0 / one.row.latency_ms)
            assert not one.reason


def test_real_predictions_are_of_the_right_size(kws):
    """Nothing is fitted, yet all are within a factor of three of what was measured."""
    compared = [one for one in compare_published(kws, "nucleo_l4r5zi") if one.row.use == "fit"]
    ratios = {(one.row.edition, one.row.runtime): one.latency_ratio for one in compared
              if one.latency_ratio is not None}
    assert {("v1.0", "x-cube-ai@7.3.0"), ("v1.0", "microtvm-cmsis-nn@2022")} <= set(ratios)
    assert all(1 / 3 < ratio < 3 for ratio in ratios.values()), ratios
    assert all(one.prediction.placement.arena_bytes > 0 for one in compared if one.runtime)


def test_energy_ratio_only_where_energy_can_be_trusted(kws):
    row = next(row for row in published_rows() if row.judges_energy)
    suspect = replace(row, flags=(*row.flags, "energy_suspect"))
    assert compare_row(row, kws, fake_predictor).energy_ratio == pytest.approx(
        100.0 / row.energy_uj)
    assert compare_row(suspect, kws, fake_predictor).energy_ratio is None
    assert compare_row(replace(row, energy_uj=None), kws, fake_predictor).energy_ratio is None


def test_only_a_runtime_without_a_file_has_a_stand_in():
    """A release that exists predicts itself; a stand-in exists."""
    known = list_runtimes()
    assert not set(read_names()["stand_ins"]) & set(known)
    assert set(read_names()["stand_ins"].values()) <= set(known)
    for row in published_rows():
        if row.runtime in known:
            assert stand_in(row.runtime) == row.runtime


def test_a_row_says_at_which_settings_it_was_deployed():
    row = next(row for row in published_rows() if row.board == "nucleo_l4r5zi"
               and row.supply_v is not None and "Single Bank" in row.board_note)
    table = published_report("kws", "nucleo_l4r5zi", [
        Comparison(row=row, prediction=predicted_by(row.runtime))])
    console = Console(width=400)
    with console.capture() as captured:
        console.print(table)
    text = captured.get()
    assert f"at {row.supply_v:g} V" in text and "flash read by 128 bits" in text


def test_an_interval_of_another_release_holds_how_far_releases_lie_apart(kws):
    rows = [row for row in match_rows(kws, board="xg24_dk2601b") if row.use == "fit"]
    older = next(row for row in rows if row.runtime == "mvp@2022")
    predictor = row_predictor("auto")
    before, after = (compare_row(row, kws, predictor).prediction for row in (
        replace(older, runtime="mvp@2023"), older))
    assert after.time_us == before.time_us and after.layers == before.layers
    assert not before.certainty.time_us.holds(older.latency_ms * 1e3)
    assert after.certainty.time_us.holds(older.latency_ms * 1e3)
    spread = after.deployment.runtime.offload.spread
    assert after.certainty.time_us.high > after.time_us * math.exp(spread.reach * spread.releases)
    assert after.certainty.energy_uj.low < before.certainty.energy_uj.low


def test_rows_of_gap9_and_xg24_are_shown_and_enter_no_fit():
    rows = [row for row in published_rows() if row.board in ("gap9evk", "xg24_dk2601b")]
    assert len(rows) == 12 and not any(row.judges_latency or row.judges_energy for row in rows)
    assert {find_refusal(row) for row in rows} == {""}
    fast = next(row for row in rows if row.clock_hz == 370e6 and row.model == "kws")
    assert board_settings(fast)["supply.voltage_scale"] == "high"
    made = predict_row(fast, zoo.build("kws"))
    assert made.time_us / 1e3 == pytest.approx(fast.latency_ms, rel=0.15)
    assert {stand_in(row.runtime) for row in rows} == {"gap@2024", "mvp@2023"}
    older = next(row for row in rows if row.runtime == "mvp@2022" and row.model == "kws")
    compared = Comparison(row=older, prediction=predict_row(older, zoo.build("kws")))
    for table in (published_report("kws", "xg24_dk2601b", [compared]),
                  several_report([("kws", "xg24_dk2601b", [compared])] * 2)):
        console = Console(width=200)
        with console.capture() as captured:
            console.print(table)
        assert captured.get().count("mvp@2022 is predicted as mvp@2023, the nearest release") == 1


def test_stand_ins_are_marked():
    row = next(row for row in published_rows(use="all") if row.runtime == "tflm-cmsis-nn@2021")
    assert Comparison(row=row, prediction=predicted_by("tflm-cmsis-nn@2023")).stood_in
    assert not Comparison(row=replace(row, runtime="x-cube-ai@9.0.0"),
                          prediction=predicted_by("x-cube-ai@9.0.0")).stood_in


def judged(kws, count, use, ms):
    """A prediction of 10 ms beside so many rows of a use, all published at `ms`."""
    row = next(row for row in published_rows() if row.board == "nucleo_l4r5zi")
    return [Comparison(row=replace(row, use=use, latency_ms=ms, energy_uj=None,
                                   submitter=f"{use} {place}"), prediction=predicted_by("x"))
            for place in range(count)]


def shown(comparisons) -> str:
    console = Console(width=400)
    with console.capture() as captured:
        console.print(published_report("kws", "nucleo_l4r5zi", comparisons))
    return captured.get()


def test_a_row_that_is_not_predicted_says_why_at_any_width(kws):
    one, other = judged(kws, 2, "fit", 10.0)
    console = Console(width=60)
    with console.capture() as captured:
        console.print(published_report("kws", "nucleo_l4r5zi", [
            replace(one, prediction=None, reason="published in precision 'other'"), other]))
    assert f"{one.row.runtime} is not predicted: published in precision 'other'" in " ".join(
        captured.get().split())


def test_sealed_rows_are_never_shown_singly(kws):
    """8 ms published, 10 ms predicted: 25 % off; open rows at 10 ms are not."""
    text = shown([*judged(kws, 2, "fit", 10.0), *judged(kws, FEWEST_SEALED, "test", 8.0)])
    assert "fit 0" in text and "fit 1" in text and "test 0" not in text
    assert "n = 2" in text and "1.00 to 1.00" in text  # no ratio of a sealed row in the range
    assert "5 sealed rows only judge and are not shown" in text
    assert "latency: 5 sealed rows, median error 25.0 %" in text and "energy" not in text.split(
        "latency: predicted")[1]


def test_few_sealed_rows_have_no_figure_at_all(kws):
    text = shown(judged(kws, FEWEST_SEALED - 1, "test", 8.0))
    assert "4 sealed rows only judge and are not shown; 4 can be compared, a median needs 5" in text
    assert "error" not in text and "%" not in text and "8.00" not in text
    assert describe_sealed(judged(kws, 3, "fit", 8.0)) == ()


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "nucleo_u575zi_q"])
def test_the_command_shows_open_rows_only(kws, board):
    rows = match_rows(kws, board=board)
    told = {use: {f"{row.submitter} {row.edition}" for row in rows if row.use == use}
            for use in ("fit", "test")}
    own = replace(kws, name="no_zoo_network")  # of a file: its graph is taken, not its name
    view = compare_with_published(own, board, calibration="none")
    document = published_document(view)
    assert len(document["rows"]) == sum(row.use == "fit" for row in rows)
    assert {one["published_by"] for one in document["rows"]} == told["fit"]
    text = json.dumps(document)
    assert not any(who in text for who in told["test"] - told["fit"])
    published = load_published_schema("published")
    for one in document["rows"]:
        if one["comparison"]:
            jsonschema.Draft202012Validator(load_schema()).validate(one["comparison"])
        one["comparison"] = None
    jsonschema.Draft202012Validator(published).validate(document)
    for place, difference in view.differences.items():
        one, time = view.comparisons[place], difference.account("time").total
        assert not one.sealed
        assert time.ratio == pytest.approx(one.latency_ratio, rel=1e-6)


@pytest.mark.parametrize(("changes", "reason"), [
    ({}, ""),
    ({"board": None}, "no board file"),
    ({"runtime": None}, "no runtime"),
    ({"flags": ("npu",)}, "accelerator"),
    ({"model": None}, "not known"),
    ({"precision": "float32"}, "float32"),
])
def test_refusals(changes, reason):
    row = next(row for row in published_rows() if row.board == "nucleo_l4r5zi")
    found = find_refusal(replace(row, **changes))
    assert (reason in found) and bool(found) == bool(reason)


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setattr("twin.attribution.published.build_published", zoo.build)
    from benchmarks.accuracy import judgement, report

    yield SimpleNamespace(judgement=judgement, report=report)
    for name in [name for name in sys.modules if name.startswith("benchmarks")]:
        del sys.modules[name]


def test_report_tells_fit_from_test_and_hides_sealed_rows(report, monkeypatch):
    mlperf = [row for row in published_rows(use="all") if row.dataset == "mlperf_tiny"]
    monkeypatch.setattr(report.judgement, "published_rows", lambda use: mlperf)
    monkeypatch.setattr(report.judgement, "build_published", zoo.build)
    judged = report.judgement.judge(predictor=fake_predictor)
    fit = [case for case in judged.cases if case.row.use == "fit"]
    test = [case for case in judged.cases if case.row.use == "test"]
    assert len(fit) + len(test) + sum(judged.left_out.values()) == len(mlperf)
    errors = report.judgement.latency_errors(fit)
    ratios = [10.0 / case.row.latency_ms for case in fit if case.comparison.runtime]
    assert errors.count == len(ratios)
    assert errors.worst_pct == pytest.approx(max(abs(ratio - 1) for ratio in ratios) * 100)
    text = report.report.make_summary(judged) + report.report.make_details(judged, {})
    assert f"| latency | {errors.count} |" in text
    assert not any(f"mlperf_tiny:{case.row.line} " in text for case in test)
    assert text == report.report.make_summary(judged) + report.report.make_details(judged, {})


def test_markers_of_the_readme(report):
    from benchmarks.accuracy import __main__ as command

    text = f"a\n{command.BEGIN}\nold\n{command.END}\nb\n"
    once = command.replace_between(text, "new\n")
    assert once == f"a\n{command.BEGIN}\nnew\n{command.END}\nb\n"
    assert command.replace_between(once, "new\n") == once
    with pytest.raises(ValueError, match="once"):
        command.replace_between("no markers", "new")


@pytest.mark.parametrize(("code", "beats"), [
    ("ldrb r0, [r1]", 1), ("ldr r0, [r1]", 1), ("ldrd r0, r1, [r2]", 2), ("ldm r0, {r4-r7}", 4),
    ("vldrb.u8 q0, [r0]", 4), ("vstrw.32 q0, [r0]", 4), ("add r0, r0, r1", 0),
])
def test_tightly_coupled_memory_counts_words(report, code, beats):
    # PMU event DTCM_ACCESS: a 128-bit vector takes four 32-bit banks, a byte takes one.
    from benchmarks.accuracy.instructions import count_beats
    from hwmodels.kernel import Block

    assert count_beats(Block(name="x", code=code, trips=3, entries=3)) == 3 * beats
