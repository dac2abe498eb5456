"""A report as Markdown and PDF: what is on one page, what a whole one has, what is refused."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

import twin
from twin.cli import app
from twin.errors import UsageError
from twin.pricing.requirement import Requirement
from twin.reports.page.deployment import Report, judge
from twin.reports.page.parts import Answer, Cell, Column, Notes, Page, Row, Section, Table
from twin.reports.page.written import list_lines, render_markdown, render_pdf

COLUMNS = (Column(header="layer"), Column(header="ms", number=True))


def make_page(rows=12, name="made"):
    table = Table(name="layers", caption="Layers", columns=COLUMNS, rows=tuple(
        Row(cells=(Cell(text=f"{name}{place}"), Cell(text=f"{place}.5"))) for place in range(rows)),
        total=(Cell(text="total"), Cell(text="99")))
    return Page(title=name, subtitle="on a board", verdict="Fits", sentence="1 ms because",
                answers=(Answer(name="time", value="1 ms", range="0.9 to 1.1 ms"),),
                sections=(Section(name="layers", title="Layers", items=(table,)),))


def test_a_short_report_has_few_rows_and_says_how_many_more():
    short, full = (render_markdown(make_page(), length) for length in ("short", "full"))
    assert "4 more rows: --length full" in short and "more rows" not in full
    assert full.count("made") == 1 + 12 and "| total | 99 |" in short
    assert "**Fits.** 1 ms because" in short
    assert "| time | 1 ms (predicted) | 0.9 to 1.1 ms |" in short
    assert "| --- | ---: |" in full


def test_names_of_files_are_text_in_markdown():
    told = render_markdown(make_page(1, "<script>|[x](http://e)`\x1b"))
    assert "<script>" not in told and "\x1b" not in told and "[x](" not in told
    assert "\\|" in told


def test_pdf_is_the_same_twice_and_short_is_one_sheet():
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    pages = {length: render_pdf(make_page(200, "$x^2"), length) for length in ("short", "full")}
    assert pages["short"].startswith(b"%PDF") and pages["short"] == render_pdf(
        make_page(200, "$x^2"), "short")
    assert pages["short"].count(b"/Type /Page ") == 1 < pages["full"].count(b"/Type /Page ")


def test_a_deployment_and_a_table_are_written(tmp_path):
    deployment = twin.deploy("ad", "nucleo_l4r5zi")
    written = twin.write_report(deployment, tmp_path / "ad.md", length="short", changes=False)
    text = written.read_text(encoding="utf-8")
    assert "interval" in text and "set-up, once" in text and "A header sorts" not in text
    assert len(text.splitlines()) < 70
    held = Requirement(name="time", unit="ms", predicted=2.0, limit=3.0, decimals=1, measured=4.0)
    made = Report(prediction=twin.predict(deployment), requirements=(held,))
    assert judge(made) == (
        "Fits, but time (measured 4.0 ms, predicted 2.0 ms) over the limit", "bad")
    assert judge(replace(made, requirements=(replace(held, limit=5.0),)))[1] == "good"
    table = twin.sweep("ad", ["nucleo_l4r5zi", "nucleo_f401re"])
    assert "nucleo_f401re" in twin.write_report(table, tmp_path / "t.md").read_text()


def test_what_cannot_be_written_is_refused_before_the_model_is_read(tmp_path):
    for words, told in ((("-o", "a.docx"), ".html, .htm, .md, .pdf"),
                        (("-o", "a.md", "--length", "long"), "accepted: short, full"),
                        (("-o", "a.html", "--length", "short"), "a page is whole")):
        ended = CliRunner().invoke(app, ["report", "none.tflite", "-b", "nucleo_l4r5zi", *words])
        assert ended.exit_code == 2 and told in ended.stderr
    with pytest.raises(UsageError, match="a report ends in"):
        twin.write_report("x", tmp_path / "a.txt")


def make_lines(*items, length="full"):
    """Return the lines of items on paper, below the title of their section."""
    page = Page(title="made", subtitle="", verdict="", sentence="", sections=(
        Section(name="section", title="Section", items=items),))
    lines = list_lines(page, length)
    return lines[lines.index(("Section", True)) + 2:]


def make_items(headers, rows):
    return Table(name="table", caption="", columns=tuple(
        Column(header=header, number=header == "of") for header in headers), rows=tuple(
        Row(cells=tuple(Cell(text=text) for text in cells)) for cells in rows))


def test_long_text_is_folded_in_its_column_before_columns_fall_away():
    headers = ["if", "choose", "of"]
    rows = [["price limit above 8 USD, " * 6, "nucleo_f401re", "207"],
            ["always", "INFEASIBLE " * 9, "3"]]
    lines = make_lines(make_items(headers, rows))
    assert all(len(text) <= 98 for text, _ in lines)
    assert lines[1][0].split() == headers
    assert [bold for _, bold in lines[:3]] == [False, True, False]
    words = " ".join(text for text, _ in lines).split()
    assert words.count("INFEASIBLE") == 9 and words.count("price") == 6 and "207" in words
    # Six of 20 characters have no room: four stay.
    lines = make_lines(make_items(["a" * 20] * 6, [["b" * 20] * 6]))
    assert {len(text.split()) for text, _ in lines[1:]} == {4}


def test_a_short_report_says_what_it_cuts():
    lines = make_lines(make_items(["n"], [["1"]]), Notes(notes=tuple(map(str, range(30)))),
                       length="short")
    assert lines[-1] == ("- 20 more: --length full", False) and len(lines) == 4 + 10 + 1


def test_a_name_steers_no_printer():
    assert "\x1b" not in "".join(text for text, _ in make_lines(Notes(notes=("\x1b[2J[bold]x",))))
    assert make_lines(Notes(notes=("[bold]x[/bold] :smile:",)))[0][0] == "- [bold]x[/bold] :smile:"
