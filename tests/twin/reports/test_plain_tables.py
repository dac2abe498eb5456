"""Plain lines of a report are those rich would print."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from twin.cli.output import open_drawing, show
from twin.reports.tables.parts import (
    ONE_CELL,
    Column,
    Group,
    Page,
    Table,
    Text,
    lines_of,
    natural_width,
    new_pairs,
    new_table,
    spaced,
)


def some_table(**settings):
    table = new_table(("layer", "two\nlines", "ms", ""), ("layer", "ms"), **settings)
    table.add_row(("0", "conv_2d", "1,234.5 ", "████▍"))
    table.add_row(("11", "a\n bc ", "", ""), style="bold")
    return table


def plain_table(**settings):
    table = some_table()
    for name, value in settings.items():
        setattr(table, name, value)
    return table


PARTS = {
    "text": Text("of two\nlines, 5 µJ ± 3 ≤ 4", style="bold", rest=" and more", rest_style="dim"),
    "nothing": Text(""), "word": "[bold]as typed[/bold] :smile:", "table": some_table(),
    "titled": some_table(title="of 3"), "empty": new_table(("a", "b")),
    "narrow gap": plain_table(gap=1), "caption": plain_table(caption="ratio = before / after"),
    "styled caption": plain_table(caption=Text("* more", style="dim")),
    "no header": Table(columns=[Column(number=True), Column()], headed=False,
                       rows=[(("1", "b"), ""), (("22", ""), "dim")]),
    "no rows": new_pairs([]), "pairs": new_pairs([("board", "x"), ("", "of two\nlines")]),
    "blank column": Table(columns=[Column(header=name) for name in ("", "x", "")],
                          rows=[(("", "1", ""), "")]),
    "group": Group(Text("above"), spaced([some_table(), "below"]), Group()),
}


def drawn(monkeypatch, console, part):
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    show(console or open_drawing(), part)
    return out.getvalue()


@pytest.mark.parametrize("width", [1000, 60, 26, 21, 12])
@pytest.mark.parametrize("name", PARTS)
def test_plain_lines_are_those_rich_prints(monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", str(width))
    part = PARTS[name]
    assert drawn(monkeypatch, Page(width=width, encoding="utf-8"), part) == drawn(
        monkeypatch, None, part)
    assert width < 1000 or lines_of([part], width) is not None  # and rich had no part in it


@pytest.mark.parametrize("text", ["a\tb", "\x1b[2J", "漢字", "e\u0301", "soft\u00adhyphen", "☕"])
def test_what_is_not_surely_one_cell_wide_is_left_to_rich(monkeypatch, text):
    table = some_table()
    table.add_row(("1", text, "2", ""))
    assert lines_of([text], 100) is None and lines_of([table], 100) is None
    assert table.natural_width() is None and natural_width(table) > 0
    page = Page(width=100, encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "100")
    assert drawn(monkeypatch, page, table) == drawn(monkeypatch, None, table)


def test_every_character_known_is_printed_one_cell_wide():
    known = [chr(code) for code in range(0x3000) if re.fullmatch(ONE_CELL, chr(code))]
    assert len(known) > 1000
    assert all(one.isprintable() and cell_len(one) == 1 for one in known)


@pytest.mark.parametrize("name", [name for name, part in PARTS.items()
                                  if isinstance(part, Table) and part.rows])
def test_a_table_is_as_wide_as_rich_measures(name):
    from rich.measure import Measurement

    console = Console(width=10_000)
    found = Measurement.get(console, console.options, PARTS[name]).maximum
    assert natural_width(PARTS[name]) == found
