"""The documentation as a site, and the tutorial as a newcomer types it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from made_browser import BROWSER, list_hindrances, listen_to, open_browser
from typer.testing import CliRunner

import twin
from twin.cli import app

ROOT = Path(__file__).parents[1]
LONG = ("measure ic", "out/both.yaml", "report")
"""Lines of the tutorial that take a minute, or rest on one that does; other tests run the verbs."""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"})
    assert ended.returncode == 0, ended.stderr
    return folder


def test_every_page_is_found_from_the_menu(site) -> None:
    menu = (site / "index.html").read_text(encoding="utf-8")
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"}
    assert len(pages) >= 35
    assert not {page for page in pages if f'href="{page}"' not in menu} - {"index.html"}


def test_nothing_is_loaded_from_elsewhere(site) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="https?://[^"]*"[^>]*', text
                              ), page.name


def test_the_reference_and_the_glossary_are_whole(site) -> None:
    reference = (site / "reference.html").read_text(encoding="utf-8")
    assert not {name for name in twin.__all__ if f'<h2 id="{name.lower()}"' not in reference}
    glossary = (site / "glossary.html").read_text(encoding="utf-8")
    for term in (*twin.list_terms(), "Pareto front", "operator fusion", "TinyML",
                 "arithmetic intensity", "im2col", "racing to idle"):
        assert term.lower() in glossary.lower(), term


def test_the_truth_board_stands_without_a_script(site) -> None:
    kept = json.loads((ROOT / "benchmarks/accuracy/results/truth.json").read_text())
    text = (site / "truth.html").read_text(encoding="utf-8")
    assert {row["row"] for row in kept} <= {*re.findall(r"<td>([^<]+)</td></tr>", text)}
    assert text.count("<tr>") + text.count("<tr class=truth-outside>") == len(kept) + 1
    assert f"{len(kept)} of {len(kept)} rows: median error" in text
    assert text.count("rows, median error") == 3


@pytest.mark.skipif(BROWSER is None, reason="chromium not installed")
def test_the_truth_board_filters_and_sorts(site) -> None:
    kept = json.loads((ROOT / "benchmarks/accuracy/results/truth.json").read_text())
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 400, "height": 800})
        told, _ = listen_to(page)
        page.goto((site / "truth.html").as_uri())
        count, shown = page.locator(".truth-count"), page.locator("tbody tr:not([hidden])")
        assert shown.count() == len(kept)
        assert {*shown.locator("td:last-child").all_inner_texts()} == {row["row"] for row in kept}
        assert count.inner_text().startswith(f"{len(kept)} of {len(kept)} rows: median error")
        for name, value in (("board", "nucleo_l4r5zi"), ("quantity", "energy")):
            page.locator(f"select[data-column={name}]").select_option(value)
        wanted = [row for row in kept
                  if (row["board"], row["quantity"]) == ("nucleo_l4r5zi", "energy")]
        assert shown.count() == len(wanted) and f"{len(wanted)} of" in count.inner_text()
        assert {*shown.locator("td:first-child").all_inner_texts()} == {"nucleo_l4r5zi"}
        error = shown.first.locator("td").nth(4)
        ends = []
        for _ in range(2):
            page.get_by_role("button", name="error").click()
            ends.append(abs(float(error.inner_text()[:-2])))
        assert ends == sorted(ends) and ends[0] < ends[1]
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.locator("select[data-column=board]").select_option("stm32n6570_dk")
        assert count.inner_text() == f"0 of {len(kept)} rows: choose fewer filters"
        sealed = page.locator("#truth-sealed").inner_text()
        assert re.match(r"Sealed rows are shown as medians only, last judged on \d{4}-\d\d-\d\d: "
                        "board and release known: ", sealed)
        assert sealed.count("median error") == 3
        assert not told and not list_hindrances(page, ["critical"])


def test_the_tutorial_runs_as_it_is_typed(tmp_path, monkeypatch) -> None:
    """Its first line in a process of its own, the others in this one, which has the imports."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    twin ")]
    assert len(lines) >= 12
    first, *others = [shlex.split(line, comments=True)[1:] for line in lines
                      if not any(word in line for word in LONG)]
    ended = subprocess.run([sys.executable, "-m", "twin", *first], capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ended.returncode == 0 and ended.stdout and "Traceback" not in ended.stderr, ended.stderr
    assert len(others) >= 8
    for words in others:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0 and done.output, f"{words}\n{done.output}"
