"""The live page in a browser: quiet, within its own server, within reach, and saying what is so."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from made_browser import MARKS, list_hindrances, listen_to, open_browser

import twin

CLOCK = "clocks.cpu.frequency_hz"
SLIDER = "#c-clocks-cpu-frequency_hz"
DONE, REPRICED = "#status[data-mode=done]", "#status[data-mode=repriced]"

pytestmark = MARKS


@pytest.fixture(scope="module")
def context():
    with open_browser() as opened:
        yield opened.new_context()


@pytest.fixture(scope="module")
def address():
    process = subprocess.Popen(
        [sys.executable, "-m", "twin", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, cwd=Path(twin.__file__).parents[1], env=os.environ)
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


@pytest.fixture(scope="module")
def idle():
    """Pages no test has open, and what each complained of and asked for: a new one is a process."""
    return []


@pytest.fixture
def visit(context, address, idle):
    """Open the page at a state; what it complains of and asks for is held against it."""
    opened = []

    def go(query: str = "", width: int = 1280, scheme: str = "light", refused: bool = False):
        if not idle:
            page = context.new_page()
            idle.append((page, *listen_to(page)))
        page, messages, asked = idle.pop()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        messages.clear()
        asked.clear()
        opened.append((page, messages, asked, refused))
        page.goto(address + query)
        page.wait_for_selector("html[data-ready]" if refused else "html[data-primed]",
                               state="attached")
        return page

    yield go
    for page, messages, asked, refused in opened:
        idle.append((page, messages, asked))
        # A browser tells of every answer that is no success.
        assert not [text for text in messages
                    if not (refused and ("422" in text or "503" in text))]
        own = urlsplit(address)[:2]
        assert all(urlsplit(url)[:2] == own or url.startswith(("data:", "blob:"))
                   for url in asked), asked


def drag(page, share: float) -> None:
    """Take the slider of the clock and move it, without letting go."""
    page.locator(SLIDER).evaluate("one => one.scrollIntoView({block: 'center'})")
    box = page.locator(SLIDER).bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 8, middle)
    page.mouse.down()
    with page.expect_response("**/api/reprice"):
        page.mouse.move(box["x"] + share * box["width"], middle, steps=5)
    page.wait_for_selector(REPRICED)


@pytest.mark.parametrize("width", [1280, 380])
def test_a_drag_changes_the_figures_and_letting_go_predicts(visit, width) -> None:
    page = visit("", width)
    before = page.inner_text("#strip-time")
    assert page.locator("#layers tbody tr").count() == 13
    assert page.locator("#bars .bar").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#pin")
    drag(page, 0.6)
    assert "priced again" in page.inner_text("#status")
    assert page.inner_text("#strip-time") != before and "let go" in page.inner_text("#sentence")
    hertz = float(page.input_value(SLIDER))
    with page.expect_response("**/api/predict") as answered:
        page.mouse.up()
    page.wait_for_selector(DONE)
    made = twin.predict(twin.deploy("kws", "nucleo_l4r5zi").replace({CLOCK: hertz}))
    told = answered.value.json()
    assert told["time_us"]["value"] == pytest.approx(made.time_us, rel=1e-12)
    assert page.inner_text("#strip-time") == f"{made.time_us / 1e3:.1f} ms"
    assert page.inner_text("#sentence").startswith(f"{made.time_us / 1e3:.3g} ms because")
    assert f"set={CLOCK}={hertz / 1e6:g}MHz" in page.url
    page.wait_for_selector(f"#command:has-text('--set {CLOCK}={hertz / 1e6:g}MHz')")  # comes last
    rows = page.locator("#variants tbody tr")
    assert rows.count() == 2 and "moved: alu" in rows.nth(1).inner_text()
    assert "+" in page.inner_text("#cards .delta >> nth=0")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_large_step_is_a_ratio_and_no_round_hundred_per_cent(visit) -> None:
    page = visit()
    write = "import('/drawing.js').then((one) => one.difference({}, {}, String).text)"
    assert page.evaluate(write.format(10, 4000)) == "\u22123990 (400 times less)"
    assert page.evaluate(write.format(4000, 10)) == "+3990 (400 times as much)"
    assert page.evaluate(write.format(810, 10)) == "+800 (81 times as much)"
    assert page.evaluate(write.format(90, 100)) == "\u221210 (\u221210 %)"


def test_a_library_prices_and_cold_caches_are_changes_that_can_be_undone(visit) -> None:
    """The library stands once in the title, whether it was chosen or is the board's own."""
    page = visit()
    own = page.inner_text("#subject")
    library = page.locator("#runtime optgroup option").first.get_attribute("value")
    for place, (name, value) in enumerate((("runtime", library), ("temperature", "cold"),
                                           ("calibration", "none")), 1):
        page.select_option(f"#{name}", value)
        page.wait_for_selector(f"#changed li:nth-child({place}) code")
        page.wait_for_selector(DONE)
        assert f"{name}={value}" in page.inner_text("#changed")
    assert page.inner_text("#subject").count(library) == 1
    for _ in range(3):
        page.locator("#changed button").first.click()
        page.wait_for_selector(DONE)
    page.wait_for_selector("#changed .dim")
    assert page.inner_text("#subject") == own


def test_an_address_opens_what_its_sender_saw(visit) -> None:
    page = visit()
    page.fill("#label", "before <b>& after</b>")
    page.click("#pin")
    page.focus("#c-caches-art_d-size_bytes")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(DONE)
    page.wait_for_selector("#changed code")
    page.select_option("#c-placement-weights", "sram")
    page.wait_for_selector("#changed li:nth-child(2)")
    page.wait_for_selector(DONE)
    table = page.inner_text("#variants")
    other = visit(page.url[page.url.index("?"):])
    assert other.inner_text("#variants") == table and "before <b>& after</b>" in table
    assert other.locator("#variants b").count() == 0
    assert other.input_value("#c-placement-weights") == "sram"
    with other.expect_download() as saved:
        other.click("#studies button")
    text = Path(saved.value.path()).read_text()
    assert "caches.art_d.size_bytes: '512'" in text and "before <b>& after</b>" in text
    other.click("#variants button:has-text('show')")
    other.wait_for_selector("#changed .dim")
    other.wait_for_selector(DONE)
    assert other.inner_text("#changed") == "nothing"
    other.click("#variants button:has-text('unpin')")
    assert not other.is_visible("#variants")


def test_a_variant_of_another_network_says_so(visit) -> None:
    """Nothing moved from one network to the other: their causes are not one beside the other."""
    page = visit("?pin=model%3Dad%26board%3Dnucleo_l4r5zi")
    page.wait_for_function("document.querySelectorAll('#variants tbody tr').length === 2")
    pinned, now = page.locator("#variants tbody tr").all()
    assert "another network than the baseline" in now.inner_text()
    assert "moved:" not in now.inner_text() and "another network" not in pinned.inner_text()


def test_energies_hold_the_idle_draw_and_compare_at_one_boundary_only(visit) -> None:
    page = visit("?model=kws&board=stm32n6570_dk")
    kit, = twin.sweep("kws", "stm32n6570_dk").rows
    card = page.inner_text("#cards li:nth-child(2)")
    assert f"{kit.energy_uj:.0f} uJ" in card and "above idle" in card
    assert f"{kit.energy.low:.0f} uJ to {kit.energy.high:.0f} uJ, of a board" in card
    assert "Energy above idle" in page.inner_text("#bars")  # not the headline's
    assert "ENERGY ABOVE IDLE" in page.inner_text("#bill thead").upper()
    page.click("#pin")
    page.click("#pin")
    assert "this state is pinned as kws" in page.inner_text("#problem")
    assert page.locator("#variants tbody tr").count() == 2
    assert "of a board" not in page.inner_text("#variants")
    page.select_option("#board", "nucleo_l4r5zi")
    page.wait_for_selector("#operating:has-text('120 MHz')")
    page.wait_for_selector(DONE)
    board, chip = (page.inner_text(f"#variants tbody tr:nth-child({row}) td:nth-child(3)")
                   for row in (1, 2))
    assert board == f"{kit.energy_uj:.0f} uJ of a board"
    assert chip.endswith("mJ of a chip\nnot compared with one of a board")
    assert page.inner_text("#cards li:nth-child(2) .delta").strip() == (
        "not compared with one of a board")
    assert "times as much" in page.inner_text("#cards li:nth-child(1) .delta")


def test_no_wait_states_is_not_said_beside_waits_for_a_memory_with_a_latency(visit) -> None:
    page = visit("?model=ad&board=alif_e7_devkit")
    assert "flash_wait" in page.inner_text("body")
    assert page.inner_text("#operating").endswith("400 MHz, voltage scale default")
    page.select_option("#board", "rpi_pico")
    page.wait_for_selector("#operating:has-text('125 MHz')")
    page.wait_for_selector(DONE)
    assert "no wait states" in page.inner_text("#operating")


@pytest.mark.parametrize(("query", "said"), [
    ("?model=/etc/passwd", "model '/etc/passwd'"),
    ("?board=%3Cimg src=x onerror=alert(1)%3E", "board '<img"),
    ("?set=no.such=1&model=kws", "no such path"),
    ("?model=mobilenet_v1_1.0_224", "does not fit"),
    ("?evil=1", "evil, which means nothing here"),
])
def test_an_address_that_means_nothing_is_told_and_mended(visit, query, said) -> None:
    page = visit(query, refused=True)
    page.wait_for_selector("#problem:visible")
    assert said in page.inner_text("#problem") and page.locator("#problem *").count() == 0
    assert page.is_visible("#verdict") == bool(page.text_content("#verdict"))
    page.click("#reset")
    page.select_option("#board", "nucleo_f401re")
    page.select_option("#model", "ad")
    page.wait_for_selector("#subject:has-text('ad, nucleo_f401re')")
    page.wait_for_selector(DONE)
    assert not page.is_visible("#problem")


def test_what_cannot_be_leaves_the_figures_before_it_dimmed(visit) -> None:
    page = visit("", refused=True)
    before = page.inner_text("#strip-time")
    page.fill("#path", "placement.arena")
    page.fill("#value", "flash")
    page.keyboard.press("Enter")
    page.wait_for_selector("#problem:visible")
    assert "the arena cannot be in flash" in page.inner_text("#problem")
    assert "the arena cannot be in flash" in page.inner_text("#path-help")
    assert page.inner_text("#strip-time") == before
    assert page.locator(".stale").count() == 2  # below, and in the bar at the top
    assert page.locator("#changed button").count() == 0  # what is refused is no change
    page.click("#pin")  # Nor does it keep what stands from being pinned.
    page.wait_for_selector("#variants-part:visible")
    assert not page.is_visible("#problem") and page.locator(".stale").count() == 0
    page.fill("#path", "clocks.cpu.frequency_hz")
    page.fill("#value", "80MHz")
    page.keyboard.press("Enter")
    page.wait_for_selector(DONE)
    assert page.locator(".stale").count() == 0 and page.inner_text("#strip-time") != before
    assert page.text_content("#path-help") == ""


def test_what_is_taken_along_gives_the_figures_shown(visit) -> None:
    """A slider that goes too far is refused: figures, command and link are of the state before."""
    page = visit("?set=clocks.cpu.frequency_hz=26MHz", refused=True)
    page.wait_for_selector("#command:not(:empty)")  # it is asked for after the figures stand
    shown = page.inner_text("#command"), page.url
    with page.expect_response("**/api/export"):
        page.press("#c-load-dma1-bytes_per_second", "End")
    page.wait_for_selector("#problem:visible")
    assert "load.dma1" in page.inner_text("#changed")
    assert (page.inner_text("#command"), page.url) == shown


def test_another_library_is_asked_for_and_shown(visit) -> None:
    page = visit()
    assert "tflm" not in page.inner_text("#subject")
    with page.expect_request("**/api/predict") as sent:
        page.select_option("#runtime", label="tflm-cmsis-nn@2026")
    assert sent.value.post_data_json["state"]["runtime"] == "tflm-cmsis-nn@2026"
    page.wait_for_selector("#subject:has-text('tflm-cmsis-nn@2026')")
    page.wait_for_selector(DONE)
    assert page.input_value("#runtime") == "tflm-cmsis-nn@2026"
    assert page.url.endswith("runtime=tflm-cmsis-nn%402026")
    page.select_option("#model", "ad")  # The library stays with its board.
    page.wait_for_selector("#subject:has-text('ad, nucleo_l4r5zi, tflm-cmsis-nn@2026')")
    page.select_option("#board", "nucleo_f401re")
    page.wait_for_selector("#subject:has-text('nucleo_f401re')")
    assert page.input_value("#runtime") == "" and "runtime" not in page.url


def test_each_control_changes_what_is_asked(visit) -> None:
    board = "nucleo_h7a3zi_q"
    page = visit(f"?model=ad&board={board}", refused=True)
    names = page.evaluate("""[...document.querySelectorAll(
        '#controls select, #controls input[type=range], #controls input[type=checkbox]')].filter(
        one => one.checkVisibility()).map(one => one.id)""")
    assert {"model", "board", "runtime", "temperature", "calibration"} < set(names)
    start = {"model": "ad", "board": board, "runtime": None, "temperature": "warm",
             "calibration": "auto", "set": {}}
    silent = []
    for name in names:
        control = page.locator(f"#{name}")
        if control.evaluate("one => one.tagName") == "SELECT":
            values = control.evaluate("one => [...one.options].map(option => option.value)")
            others = [value for value in values if value != control.input_value()]
            if not others:
                continue
            press = partial(control.select_option, others[0])
        elif control.get_attribute("type") == "checkbox":
            press = control.click
        else:
            lowest = control.evaluate("one => one.value === one.min")
            press = partial(control.press, "ArrowRight" if lowest else "ArrowLeft")
        with page.expect_request("**/api/predict") as sent:
            press()
        if sent.value.post_data_json["state"] == start and not name.startswith("c-load-"):
            silent.append(name)  # A master that moves nothing yet has no memory to change.
        page.wait_for_selector(f"{DONE}, #status[data-mode=refused]")
        page.goto(f"{page.url.split('?')[0]}?model=ad&board={board}")
        page.wait_for_selector("html[data-primed]", state="attached")
    assert silent == []


def test_each_button_does_what_it_says(visit, tmp_path) -> None:
    page = visit("?model=ad&board=nucleo_f401re")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#link")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.click("#copy-command")
    assert page.evaluate("navigator.clipboard.readText()").startswith("twin predict ad")
    for kind in ("model", "board"):
        with page.expect_file_chooser():
            page.click(f"#{kind}-upload")
    for by in page.locator("#layers button[data-by]").evaluate_all(
            "buttons => buttons.map(one => one.dataset.by)"):
        page.click(f"#layers button[data-by={by}]")
        assert page.locator("#layers th[aria-sort]").count() == 1
    page.fill("#path", "memories.flash.read_bytes")
    page.fill("#value", "8")
    page.click("#set")
    page.wait_for_selector("#changed code")
    page.wait_for_selector(DONE)
    page.click("#changed button")
    page.wait_for_selector("#changed .dim")
    page.wait_for_selector(DONE)
    page.click("#pin")
    page.click("#variants button:has-text('unpin')")
    assert not page.is_visible("#variants-part")


def test_a_file_is_uploaded_and_its_name_is_text(visit, tmp_path) -> None:
    page = visit()
    twin.export_model("ad", tmp_path / "ad.tflite")
    file = tmp_path / "<img src=x>.tflite"
    shutil.copy(tmp_path / "ad.tflite", file)
    page.set_input_files("#model-file", file)
    page.wait_for_selector("#subject:has-text('_img_src_x_.tflite')")
    page.wait_for_selector(DONE)
    made = twin.predict(twin.deploy(str(tmp_path / "ad.tflite"), "nucleo_l4r5zi"))
    assert page.inner_text("#strip-time") == f"{made.time_us / 1e3:.2f} ms"
    page.wait_for_selector("#command:has-text('twin predict _img_src_x_.tflite')")  # comes last


def test_a_long_name_makes_the_page_no_wider(visit, tmp_path) -> None:
    page = visit("", 400)
    twin.export_model("sww", tmp_path / f"{'long_name' * 9}.tflite")
    page.set_input_files("#model-file", tmp_path / f"{'long_name' * 9}.tflite")
    page.wait_for_selector("#studies button:has-text('long_name')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_busy_server_is_asked_again(visit) -> None:
    page = visit("", refused=True)
    page.route("**/api/predict", lambda route: route.fulfill(
        status=503, json={"error": "busy with newer requests; ask again"}), times=1)
    page.select_option("#model", "ad")
    page.wait_for_selector("#subject:has-text('ad, nucleo_l4r5zi')")
    page.wait_for_selector(DONE)
    assert not page.is_visible("#problem")


def test_all_is_within_reach_of_the_keyboard(visit) -> None:
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"model", "board", "runtime", "c-clocks-cpu-frequency_hz", "temperature", "path",
            "pin", "link", "copy-command"} <= reached
    page.focus(SLIDER)
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#changed code")
    page.wait_for_selector(DONE)
    assert page.input_value(SLIDER) == "119000000"
    assert page.evaluate("document.activeElement.id") == SLIDER[1:]
    page.focus("#layers button[data-by=time_us]")
    page.keyboard.press("Enter")
    assert page.get_attribute("#layers th:has-text('time')", "aria-sort") == "descending"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (380, "dark")])
def test_nothing_stands_in_the_way_of_a_reader(visit, width, scheme) -> None:
    page = visit(f"?set={CLOCK}=40MHz&pin=model%3Dad%26board%3Dnucleo_f401re", width, scheme)
    assert list_hindrances(page, ("serious", "critical", "moderate")) == []
