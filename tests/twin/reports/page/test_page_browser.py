"""The page in a browser, narrow and wide: drawn, quiet, offline, sortable, within reach."""

from dataclasses import replace

import pytest
from made_browser import MARKS, list_hindrances, listen_to, open_browser
from made_predictions import make_prediction
from made_studies import make_row, make_table

import twin
from twin.reports.page.deployment import Report, describe_report
from twin.reports.page.page import render_page
from twin.reports.page.results import describe_result
from twin.reports.page.variants import Made, describe_variants
from twin.studies.limits import Limits

LONG_NAME = ";".join(
    f"functional_1/separable_block_{place}/batch_normalization_{place}/FusedBatchNormV3"
    for place in range(3))
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

LAYERS = 100
"""Of the long page: most of its plots are far below the first screen."""

pytestmark = MARKS


@pytest.fixture(scope="module")
def context():
    with open_browser() as opened:
        yield opened.new_context()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name: of a core, of an accelerator, of several, and one with a hostile name."""
    folder = tmp_path_factory.mktemp("pages")
    made = make_prediction(LAYERS)
    layers = (replace(made.layers[0], name=HOSTILE), replace(made.layers[1], name=LONG_NAME),
              *made.layers[2:])
    texts = {
        "core": twin.report(twin.deploy("kws", "nucleo_l4r5zi"), changes=False, published=True),
        "npu": twin.report(twin.deploy("kws", "stm32n6570_dk", runtime="neural-art"),
                           changes=False),
        "several": render_page(describe_variants([Made(
            label=f"board {place} · library", prediction=one, row=make_row(
                f"board {place}", time_us=one.time_us, energy_uj=one.energy_uj))
            for place, one in enumerate((make_prediction(6), make_prediction(5)))], chain=True)),
        "table": render_page(describe_result(make_table(limits=Limits(max_time_us=60e3)))),
        "long": render_page(describe_report(Report(prediction=replace(made, layers=layers))))}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def opened():
    """Pages that are open already, with what they complained of and asked for."""
    return {}


@pytest.fixture
def visit(context, pages, opened):
    """Open a page, or turn to it again; what it complains of and asks for is held against it."""
    seen = []

    def go(name: str, width: int = 1280, scheme: str = "light", again: bool = True):
        key = (name, width, scheme) if again else object()
        if key not in opened:
            page = context.new_page()
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            opened[key] = page, *listen_to(page)
            page.goto((pages / f"{name}.html").as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
        seen.append(opened[key])
        return opened[key][0]

    yield go
    for _, told, asked in seen:
        assert told == []
        assert all(url.startswith(("file://", "data:", "blob:")) for url in asked), asked


def draw_all(page) -> None:
    """Scroll to each plot, as a reader does: it is drawn as it comes near."""
    for name in page.evaluate("[...document.querySelectorAll('.plot')].map(one => one.id)"):
        page.evaluate("name => document.getElementById(name).scrollIntoView()", name)
        page.wait_for_selector(f"#{name}[data-drawn]", state="attached")
    page.evaluate("scrollTo(0, 0)")


@pytest.mark.parametrize("width", [1280, 380])
@pytest.mark.parametrize("name", ["core", "npu", "several", "table", "long"])
def test_every_plot_is_drawn_with_its_data(visit, name, width) -> None:
    page = visit(name, width)
    assert page.get_attribute("html", "data-ready") == "yes"
    if name == "long":  # What is far below is left for later.
        assert page.locator("#layers-plot[data-drawn], #roofline-0[data-drawn]").count() == 0
    draw_all(page)
    drawn = page.evaluate("""() => [...document.querySelectorAll(".plot")].map(plot => [
        plot.id, plot.data.length, plot.getBoundingClientRect().width,
        plot.querySelectorAll(".point, .slice, path.js-line").length])""")
    assert len(drawn) >= (7 if name == "table" else 6)
    for name, traces, wide, marks in drawn:
        assert traces and marks and 0 < wide <= width, name
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_name_from_a_file_becomes_code(visit) -> None:
    page = visit("long")
    assert HOSTILE in page.inner_text("#layer-table tbody tr:first-child")
    assert page.evaluate("document.querySelectorAll('img, #layer-table script').length") == 0


@pytest.mark.parametrize("width", [1280, 400])
def test_a_long_name_is_cut_in_the_middle_and_hides_no_figure(visit, width) -> None:
    page = visit("long", width)
    row = page.locator("#layer-table tbody tr:not(.details)").nth(1)
    name, time = row.locator(".cut"), row.locator("td.number").nth(1)
    assert name.get_attribute("title") == name.text_content() == LONG_NAME  # copied whole
    head, tail = (name.locator("> span").nth(place) for place in (0, 1))
    assert head.evaluate("one => one.scrollWidth > one.clientWidth")
    assert tail.evaluate("one => one.scrollWidth <= one.clientWidth || one.clientWidth === 0")
    box, holder = time.bounding_box(), page.locator("#layer-table .wide").bounding_box()
    assert box["x"] + box["width"] <= holder["x"] + holder["width"]  # without scrolling sideways
    assert row.bounding_box()["height"] < 60


def test_a_table_sorts_by_number_both_ways_and_keeps_details_with_their_row(visit) -> None:
    page = visit("long")
    head = "#layer-table th:has-text('share') button"
    column = """() => [...document.querySelectorAll("#layer-table tbody tr:not(.details)")].map(
        row => Number(row.cells[4].dataset.value))"""
    before = page.evaluate(column)
    page.click(head)
    assert page.evaluate(column) == sorted(before, reverse=True) != before
    page.click(head)
    assert page.evaluate(column) == sorted(before)
    assert page.get_attribute("#layer-table th:has-text('share')", "aria-sort") == "ascending"
    assert page.evaluate("""() => [...document.querySelectorAll("#layer-table .details")].every(
        row => !row.previousElementSibling.classList.contains("details"))""")


def test_a_table_filters_and_counts(visit) -> None:
    page = visit("core")
    page.fill("input[data-table=layer-table]", "depthwise")
    assert page.inner_text("#layer-table .count") == "4 of 13 rows"
    assert page.locator("#layer-table tbody tr:not(.details):visible").count() == 4
    page.fill("input[data-table=layer-table]", "")
    assert page.locator("#layer-table tbody tr:not(.details):visible").count() == 13


def test_all_is_within_reach_of_the_keyboard(visit) -> None:
    page = visit("core", again=False)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#layer-table tbody .fold button")
    page.keyboard.press("Enter")
    assert page.locator("#layer-table .details:visible").count() == 1
    page.keyboard.press("Space")
    assert page.locator("#layer-table .details:visible").count() == 0
    page.focus("#layer-table th button")
    page.keyboard.press("Enter")
    assert page.locator("#layer-table th[aria-sort]").count() == 1
    page.focus("summary")
    page.keyboard.press("Enter")
    assert page.locator("details[open]").count() == 1


def test_the_dark_is_a_choice_and_paper_is_white(visit) -> None:
    page = visit("core", scheme="dark")
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.inner_text("#theme") == "Light"  # what a click turns to
    page.click("#theme")
    assert page.get_attribute("html", "data-theme") == "light"
    assert page.inner_text("#theme") == "Dark"
    page.click("#theme")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".plot:not([data-drawn])").count() == 0  # Never scrolled to, and printed.
    page.emulate_media(media="print")
    assert page.evaluate("""Math.max(...[...document.querySelectorAll(".plot .main-svg")].map(
        one => one.getBoundingClientRect().width))""") <= 690  # of A4, whatever the window's is
    assert page.evaluate("""[...document.querySelectorAll("table:has(tfoot)")].every(one => {
        const shown = row => [...row.cells].filter(
            cell => getComputedStyle(cell).display !== "none").length;
        return shown(one.tFoot.rows[0]) === shown(one.tHead.rows[0]); })""")  # so totals fit
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")


@pytest.mark.parametrize(("name", "width", "scheme"), [
    ("core", 1280, "light"), ("core", 380, "dark"), ("several", 1280, "light"),
    ("several", 380, "light"), ("table", 1280, "light"), ("core", 1280, "dark"),
    ("core", 380, "light")])
def test_nothing_stands_in_the_way_of_a_reader(visit, name, width, scheme) -> None:
    page = visit(name, width, scheme)
    assert list_hindrances(page, ("serious", "critical")) == []
