"""Tables where the terminal is narrow: columns are given up and named, digits never broken."""

import pytest
from rich.console import Console

from calibration.fitting.intervals import Interval
from twin.pricing.requirement import Requirement
from twin.reports.tables.limits import requirement_table
from twin.reports.tables.parts import new_table

ROWS = (("conv_2d", "12,345,678", "+1,234,567", "perf counter"),
        ("depthwise_conv_2d", "2,345,678", "-234,567", ""))


def shown(width):
    table = new_table(("cause", "before", "gap", "counted by"), ("before", "gap"),
                      drops=("counted by", "gap"))
    for row in ROWS:
        table.add_row(row)
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_columns_that_are_empty_are_given_up_first():
    table = new_table(("name", "MHz", "V", "ratio"), ("MHz", "V", "ratio"), drops=("V", "MHz"))
    for hertz in ("240", "370"):
        table.add_row(("gap@2024", hertz, "1.8", ""))
    console = Console(width=16, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    assert captured.get().split("\n")[:3] == ["name      MHz", "gap@2024  240", "gap@2024  370"]
    assert captured.get().split()[-2:] == ["columns:", "V"]


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


def test_no_figure_of_a_check_is_broken_at_eighty_columns():
    interval = Interval(low=10_827.8, high=24_012.6, level=0.9)
    table = requirement_table([
        Requirement(name="energy with idle", unit="uJ", predicted=15_089.8, limit=12_500.0,
                    interval=interval, decimals=1),
        Requirement(name="fits flash", unit="bytes", predicted=3_738_440, limit=134_217_728)])
    console = Console(width=80, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    for whole in ("15,089.8", "10,828", "24,013", "134,217,728 bytes", "not met, may"):
        assert whole in captured.get()
    assert max(map(len, captured.get().splitlines())) <= 80
