"""Tables where the terminal is narrow: columns are given up and named, digits never broken."""

import pytest
from rich.console import Console

from twin.reports.tables.layout import add_row, new_table

ROWS = (("conv_2d", "12,345,678", "+1,234,567", "perf counter"),
        ("depthwise_conv_2d", "2,345,678", "-234,567", ""))


def shown(width):
    table = new_table(("cause", "before", "gap", "counted by"), ("before", "gap"),
                      drops=("counted by", "gap"))
    for row in ROWS:
        add_row(table, row)
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


@pytest.mark.parametrize(("width", "gone"), [
    (80, []), (50, ["counted by"]), (32, ["counted by", "gap"])])
def test_columns_are_given_up_in_order_and_named(width, gone):
    text = shown(width)
    first = text.splitlines()[0]
    for header in ("before", "gap", "counted by"):
        assert (header in first) == (header not in gone)
    last = f"not shown at {width} columns: {'; '.join(gone)}"
    assert (" ".join(text.split()).endswith(last)) == bool(gone)
    for label, before, gap, _ in ROWS:
        line, = (line for line in text.splitlines() if label in line and before in line)
        assert (gap in line) == ("gap" not in gone)
    assert max(map(len, text.splitlines())) <= width
