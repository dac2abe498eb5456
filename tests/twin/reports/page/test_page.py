"""The page: what it says, that nothing on it comes from elsewhere, and what it refuses."""

import html
import itertools
import json
import re
import sys
from dataclasses import replace

import pytest
from made_predictions import make_prediction
from typer.testing import CliRunner

import twin
from twin.cli import app
from twin.errors import UsageError
from twin.pricing.requirement import Requirement
from twin.reports.page.bill import draw_waterfall, list_bill_plots
from twin.reports.page.deployment import Report, describe_refusal, describe_report, judge
from twin.reports.page.page import render_page
from twin.reports.page.parts import Cell, Column, Page, Row, Section, Table

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}\x1b[31m"


def read_plots(page: str) -> dict:
    return json.loads(re.search(r'id="plots">(.*?)</script>', page)[1])


@pytest.fixture(scope="module")
def page() -> str:
    return twin.report(twin.deploy("kws", "nucleo_l4r5zi"), changes=False, published=True,
                       limits={"max_ms": 100.0, "max_uj": None}, command="twin report kws")


def test_the_answer_comes_first(page) -> None:
    answer = page[page.index("<main>"):page.index("</section>", page.index("<main>"))]
    assert "meets every limit" in answer
    for name in ("time", "energy", "RAM", "flash"):
        assert f"<h2>{name}</h2>" in answer
    assert "90 % interval" in answer and " because " in answer
    assert re.search(r"\d of \d published times lie inside the 90 % intervals", page)


def test_nothing_is_loaded_from_anywhere(page) -> None:
    own = re.sub(r'<script type="text/plain" id="plotly">.*?</script>', "", page, flags=re.S)
    own = html.unescape(own)
    assert re.search(r'Content-Security-Policy" content="default-src \'none\'', own)
    assert "unsafe-eval" not in own and "script-src 'sha256-" in own
    assert not re.search(r'(src|href)="(?!#|data:,)', own)


def test_the_same_deployment_gives_the_same_page(page) -> None:
    again = twin.report(twin.deploy("kws", "nucleo_l4r5zi"), changes=False, published=True,
                        limits={"max_ms": 100.0}, command="twin report kws")
    assert again == page


def test_the_waterfall_is_the_bill() -> None:
    prediction = make_prediction()
    for plot, whole in zip([one for one in list_bill_plots(prediction)
                            if one.name.startswith("waterfall")],
                           (prediction.time_us, prediction.energy_uj), strict=True):
        bars = [trace for trace in plot.traces if trace["type"] == "bar"]
        assert sum(bar["x"][0] for bar in bars[:-1]) == pytest.approx(whole)
        assert bars[-1]["x"] == [pytest.approx(whole)]
        for before, bar in itertools.pairwise(bars[:-1]):
            assert bar["base"][0] == pytest.approx(before["base"][0] + before["x"][0])


def test_rings_of_the_sunburst_sum_to_their_parents() -> None:
    plot = next(one for one in list_bill_plots(make_prediction(40)) if one.name == "sunburst-time")
    trace = plot.traces[0]
    value = dict(zip(trace["ids"], trace["values"], strict=True))
    for name in value:
        children = [value[one] for one, parent in zip(trace["ids"], trace["parents"], strict=True)
                    if parent == name]
        assert sum(children) <= value[name] * (1 + 1e-9)
        if children and name.count("/") == 0:
            assert sum(children) == pytest.approx(value[name])


def test_a_cause_of_nothing_is_no_bar() -> None:
    plot = draw_waterfall("time", {"mac": 3.0, "alu": 0.0}, str)
    assert [trace["y"] for trace in plot.traces if trace["type"] == "bar"] == [["mac"], ["total"]]


def test_names_from_files_stay_text() -> None:
    prediction = make_prediction(3)
    first = replace(prediction.layers[0], name=HOSTILE)
    prediction = replace(prediction, layers=(first, *prediction.layers[1:]),
                         warnings=(HOSTILE,))
    page = render_page(describe_report(Report(prediction=prediction, command=HOSTILE)))
    own = page.replace("\x00", "")
    assert "<script>alert" not in own and "<img src=x" not in own and "\x1b" not in own
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in own and "{{7*7}}" in own
    texts = json.dumps(read_plots(page))
    assert "<img" not in texts and "&lt;img" in texts


def test_a_title_from_a_file_stays_text() -> None:
    page = render_page(Page(title=HOSTILE, subtitle=HOSTILE, verdict="x", sentence=HOSTILE,
                            sections=(Section(name="a", title=HOSTILE, items=(Table(
                                name="t", caption=HOSTILE, columns=(Column(header=HOSTILE),) * 2,
                                rows=(Row(cells=(Cell(text=HOSTILE),) * 2,
                                          details=((HOSTILE, HOSTILE),)),)),)),)))
    assert "<img src=x" not in page and page.count("<script") == 1


@pytest.mark.parametrize(("predicted", "limit", "verdict", "tone"), [
    (5.0, 10.0, "Fits and meets every limit", "good"),
    (15.0, 10.0, "Fits, but time over the limit", "bad"),
    (None, 10.0, "Fits; may meet the limits: time not known", "")])
def test_the_verdict_follows_the_limits(predicted, limit, verdict, tone) -> None:
    report = Report(prediction=make_prediction(), requirements=(
        Requirement(name="time", unit="ms", predicted=predicted, limit=limit),))
    assert judge(report) == (verdict, tone)


def test_without_energy_none_is_drawn() -> None:
    page = render_page(describe_report(Report(prediction=make_prediction(energy=False))))
    assert "waterfall-energy" not in read_plots(page) and "not known" in page


def test_three_hundred_layers_stay_small() -> None:
    page = render_page(describe_report(Report(prediction=make_prediction(300))))
    assert len(page.encode()) < 8e6
    assert len(re.findall(r'aria-label="details of', page)) == 300


def test_what_does_not_fit_has_a_page_too(tmp_path) -> None:
    target = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["report", "mobilenet_v2_1.0_224", "-b", "nucleo_l4r5zi", "-o",
                                      str(target)])
    assert result.exit_code == 1, result.output
    assert "Does not fit" in target.read_text() and "bytes" in target.read_text()
    assert "Does not fit" in render_page(describe_refusal("a", "b", "c"))


@pytest.mark.parametrize(("words", "said"), [
    (["-o", "page.txt"], "a report ends in .html"),
    (["--measured", "nowhere"], "nowhere"),
    (["--max-ms", "fast"], "--max-ms 'fast'")])
def test_wrong_words_are_refused(words, said) -> None:
    result = CliRunner().invoke(app, ["report", "kws", "-b", "nucleo_l4r5zi", "--no-changes",
                                      *words])
    assert result.exit_code in (2, 3) and said in str(result.output) + str(result.exception)


@pytest.mark.parametrize(("package", "arguments"), [
    ("matplotlib", ("predict", "kws", "--plot", "x.png")),
    ("matplotlib", ("predict", "kws", "--plot", "pictures/")),
    ("matplotlib", ("report", "kws", "-o", "x.pdf"))])
def test_a_missing_extra_is_named_before_anything_is_printed(monkeypatch, tmp_path, package,
                                                             arguments) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    done = CliRunner().invoke(app, [*arguments, "-b", "nucleo_l4r5zi"])
    assert done.exit_code == 5 and not done.stdout and f"need {package}" in done.stderr


def test_another_name_than_html_is_refused() -> None:
    from twin.cli.options import Paged

    with pytest.raises(UsageError, match=r"ends in \.html"):
        Paged(page="report.txt").check()


def test_what_helps_most_is_what_meets_limits_that_are_missed():
    page = twin.report(twin.deploy("ad", "nucleo_f401re"), limits={"max_ms": 6.0})
    best = twin.advise(twin.deploy("ad", "nucleo_f401re"), max_ms=6.0).best
    advice, = re.findall(r"What helps most</strong>([^<]*)", page)
    assert f"change that meets them: {best.words}" in advice
