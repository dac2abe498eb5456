"""Every shipped study is read and deploys; findings are computed from rows."""

from __future__ import annotations

import dataclasses
import math

import pytest

import twin
from calibration.fitting.intervals import Interval
from twin.reports.study_charts import chart_levels
from twin.studies.limits import Limits
from twin.studies.results import Table
from twin.studies.rows import Row
from twin.studies.study.definition import Budget, Claim, Finding, list_asked, read_figures
from twin.studies.study.figures import EDP, figure_of
from twin.studies.study.file import list_studies, load_study
from twin.studies.study.findings import list_effects, tell
from twin.studies.study.tasks import Task, compute, make_plan


@pytest.mark.parametrize("name", list_studies())
def test_a_shipped_study_names_what_there_is(name) -> None:
    study = load_study(name)
    asked = list_asked(study)
    assert study.question and asked and study.name == name
    if study.finding is not None and study.cases:
        assert study.finding.baseline in study.cases
        assert set(study.finding.efforts) <= set(study.cases)


@pytest.mark.parametrize("name", [one for one in list_studies() if load_study(one).cases])
def test_every_case_of_a_study_applies_somewhere_or_says_why(name) -> None:
    study = load_study(name)
    whole = list_asked(study)
    board = whole[0].point["board"]
    convolved = name in ("e2_fusion", "e4_tile_and_cache")  # what dense layers have none of
    small = "ad" if not convolved and any(one.point["model"] == "ad" for one in whole) else "kws"
    asked = [one for one in whole if (one.point["model"], one.point["board"]) == (small, board)]
    plan = make_plan(study)
    rows = compute(plan, Task(asked=tuple(asked), addresses=tuple(map(plan.address, asked))))
    table = Table(rows=rows, axes=study.axes)
    assert all(row.reason for row in table.failed)
    assert list_effects(table, study.finding), [row.reason for row in table.failed]


def made_row(case: str, model: str, **figures) -> Row:
    return Row(inputs=(("model", model), ("case", case)), model=model, board="b", **figures)


ROWS = (made_row("as it is", "a", time_us=10.0, energy_uj=4.0, clock_hz=2e6, voltage_scale="hi"),
        made_row("half", "a", time_us=20.0, energy_uj=3.0, clock_hz=1e6, voltage_scale="lo"),
        made_row("as it is", "b", time_us=100.0, energy_uj=10.0, clock_hz=2e6, voltage_scale="hi"),
        made_row("half", "b", time_us=150.0, energy_uj=12.0, clock_hz=1e6, voltage_scale="hi"),
        made_row("half", "c", failure="runtime", reason="why not"))


def test_an_effect_is_the_median_of_ratios_of_pairs() -> None:
    finding = Finding(vary="case", baseline="as it is", kind="clock")
    effects = {one.figure: one for one in list_effects(Table(rows=ROWS), finding)}
    assert effects["time_us"].ratios == (1.5, 2.0)
    assert effects["energy_uj"].ratios == (0.75, 1.2)
    assert effects[EDP].ratios == pytest.approx((1.5, 1.8))
    assert effects["time_us"].words == "time x1.75 (1.5 to 2 between rows)"


def test_errors_two_rows_share_cancel_as_they_do_in_advice() -> None:
    board = twin.deploy("kws", "nucleo_u575zi_q")
    table = twin.sweep("kws", "nucleo_u575zi_q", settings={"network.width": [1, 0.5]})
    finding = Finding(vary="network.width", baseline="1", figures=("time_us", "energy_uj"))
    time, energy = list_effects(table, finding)
    change = next(one for one in twin.advise(board, max_ms=15, pairs=False).changes
                  if one.settings == (("network.width", "0.5"),))
    assert (time.low, time.high) == pytest.approx((
        change.time_ratio_interval.low, change.time_ratio_interval.high), rel=1e-9)
    half, whole = sorted(table.rows, key=lambda row: row.time_us)
    alone = math.hypot(math.log(half.time.high / half.time_us),
                       math.log(whole.time_us / whole.time.low))
    assert 1 < time.high / time.median < energy.high / energy.median
    assert time.high / time.median < math.exp(alone)  # as if nothing were shared
    shared, apart = ("\n".join(tell(dataclasses.replace(
        load_study("e3_frequency"), finding=finding), Table(rows=rows))) for rows in (
            table.rows, [dataclasses.replace(row, draw=()) for row in table.rows]))
    assert "if rows share no error" in apart and "share no error" not in shared


def test_words_follow_from_rows() -> None:
    study = dataclasses.replace(load_study("e3_frequency"), finding=Finding(
        vary="case", baseline="as it is", kind="clock"))
    said = "\n".join(tell(study, Table(rows=ROWS)))
    assert "energy is least at half in 1, at as it is in 1 of 2" in said
    assert "energy-delay product is least at as it is in 2 of 2" in said
    assert "allows a lower voltage scale, its energy is x0.75" in said
    assert "as it is, its energy is x1.2" in said and "1 infeasible (runtime): why not" in said
    effort = dataclasses.replace(study, finding=Finding(
        vary="case", baseline="as it is", kind="return", efforts={"half": "setting"}))
    said = "\n".join(tell(effort, Table(rows=ROWS)))
    assert "no setting of these saves time in the median" in said
    assert "most for a setting: half, energy x0.975" in said


def test_every_soft_limit_is_counted_and_what_no_row_knows_has_its_reason() -> None:
    rows = tuple(dataclasses.replace(row, mean_mw=(row.time_us or 0) / 100) for row in ROWS[:4])
    study = dataclasses.replace(
        load_study("e3_frequency"), budgets=(Budget("violates_latency_15us", "time_us", 15.0),),
        limits=Limits(max_time_us=12.0, max_mean_mw=0.5), finding=Finding(
            vary="case", baseline="as it is", figures=read_figures(("time", "cold_start"))))
    said = tell(study, Table(rows=rows))
    assert said[1].startswith("half beside as it is: time x1.75")  # what it asked comes first
    assert said[-2:] == ("violates_latency_15us: 3 of 4 known, time above 15 us",
                         "violates_power: 2 of 4 known, mean power above 500 uW")
    assert "first answer after sleep: not known of any row: it is of cold rows " in "\n".join(said)


def test_overhead_is_told_as_a_share_of_the_time() -> None:
    rows = tuple(dataclasses.replace(row, overhead_us=(row.time_us or 0) / 20 or None)
                 for row in ROWS)
    study = dataclasses.replace(load_study("e3_frequency"), finding=Finding(
        vary="case", baseline="as it is", figures=("time_us", "overhead_us")))
    assert "calls of kernels take 5.00% of the time with half" in "\n".join(
        tell(study, Table(rows=rows)))
    made = twin.sweep("kws", "nucleo_l4r5zi").rows[0]
    bill = twin.predict(twin.deploy("kws", "nucleo_l4r5zi")).bill
    assert made.overhead_us == pytest.approx(bill.cycles("cpu", "kernel_call") / 120)


def test_the_list_has_the_founding_experiments() -> None:
    assert {"e1_quantisation", "e2_fusion", "e3_frequency", "e4_tile_and_cache", "a_libraries",
            "b_schedules", "impact"} <= set(twin.list_studies())


def test_figures_of_caches_are_told_by_level_and_hypotheses_are_tested() -> None:
    def row(case: str, board: str, misses: float, time_us: float, accuracy: float) -> Row:
        return Row(inputs=(("board", board), ("case", case)), board=board, cell="counted",
                   time_us=time_us, time=Interval(low=time_us / 2, high=time_us * 2, level=0.9),
                   accuracy=accuracy, accuracy_by="x", variables=(
                       ("bytes.flash", 64.0), ("lookups.l1d", 1000.0), ("misses.l1d", misses),
                       ("setup_us", 7.0), ("us.flash_wait", 3.0), ("us.mac", 5.0)))

    table = Table(rows=(row("off", "a", 100, 10, 0.9), row("on", "a", 50, 3, 0.89),
                        row("off", "b", 0, 10, 0.9), row("on", "b", 0, 5, 0.8)))
    finding = Finding(vary="case", baseline="off", within="board", figures=read_figures(
        ("time", "misses", "miss_rate", "stalls", "setup", "traffic", "us.mac")), claims=(
        Claim(value="on", figure="time_us", at_most=0.4),
        Claim(value="on", figure="error", at_most=0.05, by="difference"),
        Claim(value="on", figure="energy_uj", at_most=0.5)))
    said = "\n".join(tell(dataclasses.replace(load_study("e2_fusion"), finding=finding), table))
    assert "data-cache misses x0.5; " not in said
    assert "data-cache misses: off 50 (0 to 100 between rows)" in said
    assert "data-cache miss rate: off 5 % (0 % to 10 % between rows); on 2.5 % (" in said
    # ends of both times are a factor of 2 away: exp(hypot(log 2, log 2)) is 2.67
    assert "pairs; 90 % of the median pair, if rows share no error: time x0.15 to x1.07\n" in said
    assert all(text in said for text in (
        "memory stalls: off 3 us; on 3 us", "set-up: off 7 us; on 7 us",
        "time x0.4 (0.3 to 0.5 between rows) in 2, data-cache misses x0.5 in 1, "))
    # b has no misses
    assert "board a: least data-cache misses at on in 1 of 1" in said
    assert "board b: least data-cache misses nowhere; the same at all in 1" in said
    assert "time at most x0.4: holds in 1 of 2 pairs, median x0.4; in 0 by the whole" in said
    assert "error rate by at most 5 %: holds in 1 of 2 pairs, median 5.5 %" in said
    assert "energy at most x0.5: cannot be tested: no pair of rows knows it" in said
    assert figure_of(table.rows[0], "bandwidth") == 6.4
    assert chart_levels(finding, table).curves[0].y == [10.0, 5.0]


def test_what_is_assumed_is_compared_with_nothing() -> None:
    rows = tuple(dataclasses.replace(row, cell="assumed" if dict(row.inputs)["case"] == "half"
                                     else "counted") for row in ROWS)
    finding = Finding(vary="case", baseline="as it is", cells=True)
    assert not list_effects(Table(rows=rows), finding)
    said = "\n".join(tell(dataclasses.replace(load_study("a_libraries"), finding=finding),
                          Table(rows=rows)))
    assert "cells of half: 2 assumed (compared with nothing)" in said
    made = {runtime: twin.sweep("kws", "nucleo_l4r5zi", runtimes=runtime).rows[0].cell
            for runtime in ("tflm-cmsis-nn@2026", "cmsis-nn@6.0", "x-cube-ai@9.0.0-time",
                            "st-edge-ai@4.0.0")}
    assert [*made.values()] == ["counted", "lowered", "measured", "assumed"]
