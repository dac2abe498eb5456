"""Pages, pictures and tables whole: every header, cell, mark and place is as kept.

After a change that is meant, TWIN_KEEP=1 writes them again.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from made_outlines import compare_kept, outline, outline_text
from made_predictions import make_prediction
from made_studies import make_row, make_table
from test_diagnosis_table import diagnose

import twin
from hwmodels.board.file import load_board
from twin.attribution.accounts import compare_sides
from twin.attribution.compatibility import NOTE, Finding
from twin.attribution.diagnosis.faults import DECLARED
from twin.attribution.predicted import side_of_prediction
from twin.attribution.views import View
from twin.pricing.requirement import Requirement
from twin.reports import ci
from twin.reports.page.deployment import Report, describe_report, list_layers
from twin.reports.page.results import describe_result
from twin.reports.page.variants import Made, Variant, describe_variants
from twin.reports.palette import lightness
from twin.reports.tables.brief import brief_report
from twin.reports.tables.catalogue import board_report, boards_table, runtime_report
from twin.reports.tables.diagnosis import diagnosis_report
from twin.reports.tables.difference import (
    attribute_report,
    compare_report,
    difference_report,
    what_if_report,
)
from twin.reports.tables.limits import requirement_table
from twin.reports.tables.report import report
from twin.reports.tables.selection import selection_report
from twin.reports.tables.studies import sweep_report
from twin.reports.tables.tasks import task_table
from twin.runtimes.file import load_runtime
from twin.studies.limits import Limits
from twin.studies.penalties import Penalty
from twin.studies.results import Table
from twin.studies.selection import Choice, Selection

KEPT = Path(__file__).parent / "kept"
LIMITS = Limits(max_time_us=60e3, max_ram_bytes=90_000)
REQUIREMENTS = (Requirement(name="time", unit="us", predicted=15e3, limit=12e3),
                Requirement(name="fits flash", unit="bytes", predicted=50_000, limit=500_000))


@cache
def small():
    return make_prediction(3)


@cache
def grown():
    return compare_sides(side_of_prediction(make_prediction(2, seed=2)),
                         side_of_prediction(make_prediction(3, seed=1)), anyway=True)


@cache
def accelerated():
    return twin.predict(twin.deploy("ad", "stm32n6570_dk"))


@cache
def changed():
    return twin.what_if(twin.deploy("ad", "nucleo_l4r5zi"), {"placement.weights": "sram"})


def studied():
    return make_table(limits=LIMITS)


def refused():
    return replace(make_row("v9"), failure="does not fit", reason="short of 5 bytes")


def selected():
    """Two that run, one of them too slow, and one that does not fit."""
    rows = studied().rows
    choices = (
        Choice(row=rows[1], penalties=(Penalty(name="RAM", points=4.0, reason="70 % of it"),),
               others=2),
        Choice(row=rows[2], penalties=(
            Penalty(name="limits", points=70.0, reason="80 ms over 60 ms"),
            Penalty(name="interval", points=1.5, reason="1.2 x wide"))),
        Choice(row=replace(rows[2], board="e", probability=None), penalties=()),
        Choice(row=rows[3], penalties=(Penalty(name="limits", points=100.0, reason="none"),)))
    return Selection(choices=choices, table=studied())


def diagnosed():
    return diagnose(("clock", 0.6, 96.0), ("SIMD", 0.3, 97.0), (DECLARED, 0.1, 50.0))


def beside():
    return [*(Made(label=f"v{place}", prediction=one, row=make_row(
        f"v{place}", time_us=one.time_us, energy_uj=one.energy_uj))
        for place, one in enumerate((make_prediction(3, seed=1), make_prediction(2, seed=2)))),
        Variant(label="v9", row=refused())]


PAGES = {
    "report": lambda: describe_report(Report(
        prediction=small(), command="twin report made", requirements=REQUIREMENTS,
        remarks=("a remark",))),
    "accelerated": lambda: describe_report(Report(prediction=accelerated())),
    "sweep": lambda: describe_result(studied(), "twin sweep"),
    "widths": lambda: describe_result(Table(rows=tuple(
        make_row(board, time_us=time_us * float(width), **{"network.width": width})
        for board, time_us in (("a", 4e4), ("b", 2e4)) for width in ("0.5", "1")),
        axes=("board", "network.width"))),
    "select": lambda: describe_result(selected(), "twin select"),
    "difference": lambda: describe_result(grown(), "twin diff"),
    "view": lambda: describe_result(View(difference=grown(), remarks=("a remark",))),
    "whatif": lambda: describe_result(changed(), "twin whatif"),
    "diagnosis": lambda: describe_result(diagnosed()),
    "variants": lambda: describe_variants(beside()),
    "stages": lambda: describe_variants(beside(), chain=True),
}


def test_lines_of_a_layer_on_two_clocks_sum_to_it() -> None:
    rows = list_layers(accelerated()).rows
    assert len(rows) == len(accelerated().layers)
    for row, layer in zip(rows, accelerated().layers, strict=True):
        times = [text.split(",")[0] for name, text in row.details if "(" in name]
        assert len(times) > 2 and all(time.endswith(" us") for time in times)
        assert sum(float(time.removesuffix(" us")) for time in times) == pytest.approx(
            layer.time_us, rel=0.01)


@pytest.mark.parametrize("name", PAGES)
def test_pages(name) -> None:
    compare_kept(KEPT / f"page-{name}.txt", outline(PAGES[name]()))


TABLES = {
    "report": lambda: lambda console: report(small(), console),
    "brief": lambda: lambda console: brief_report(small(), console),
    "accelerated": lambda: lambda console: brief_report(accelerated(), console),
    "epochs": lambda: task_table(accelerated()),
    "accelerated-report": lambda: lambda console: report(accelerated(), console),
    "sweep": lambda: lambda console: sweep_report(studied(), console),
    "select": lambda: lambda console: selection_report(selected(), console),
    "difference": lambda: difference_report(grown(), 0.1),
    "attribute": lambda: attribute_report(View(difference=grown(), diagnosis=diagnosed())),
    "compare": lambda: compare_report(View(difference=grown())),
    "whatif": lambda: what_if_report(changed()),
    "diagnosis": lambda: diagnosis_report(diagnosed()),
    "requirements": lambda: requirement_table(REQUIREMENTS),
    "boards": lambda: boards_table([load_board("nucleo_l4r5zi")], ["x.yaml: broken"]),
    "board": lambda: board_report(load_board("nucleo_l4r5zi"), sources=False),
    "runtime": lambda: runtime_report(load_runtime("cmsis-nn")),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name) -> None:
    part = TABLES[name]()
    compare_kept(KEPT / f"table-{name}.txt",
                 "\n".join(outline_text(part, width) for width in (80, 160)))


@pytest.mark.parametrize("limit", [0.1, 100.0])
def test_what_continuous_integration_reads(limit, tmp_path) -> None:
    noted = replace(grown(), findings=(Finding(level=NOTE, what="runtime", text="a -> b"),))
    whole = ci.write_junit_file(noted, tmp_path / "a.xml", limit, with_parts=True).read_text()
    totals = ci.write_junit_file(noted, tmp_path / "b.xml", None).read_text()
    metrics = ci.write_bencher(noted, tmp_path / "c.json").read_text()
    checked = ci.write_check_junit(small(), REQUIREMENTS, sure=False).decode()
    judged = ci.judge_limit(noted, limit, with_parts=True)
    compare_kept(KEPT / f"ci-{limit:g}.txt", "\n".join([
        whole, totals, metrics, checked, outline(judged)]))


@pytest.mark.parametrize(("colour", "light"), [
    ("#FFFFFF", 1.0), ("#000000", 0.0), ("#FF0000", 0.299), ("#00FF00", 0.587),
    ("#0000FF", 0.114), ("#102030", (0.299 * 16 + 0.587 * 32 + 0.114 * 48) / 255)])
def test_how_light_a_colour_is(colour, light) -> None:
    assert lightness(colour) == pytest.approx(light)
