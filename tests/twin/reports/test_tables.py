"""What people read: columns, sums, widths, and unknown values."""

import dataclasses
import io
import re

import pytest
from made_predictions import make_prediction
from rich.console import Console

from hwmodels.board.file import load_board
from hwmodels.counts import Bill
from hwmodels.quantities import (
    format_count,
    format_energy,
    format_share,
    format_size,
    format_time,
    significant,
)
from twin.attribution.views import set_what_if
from twin.pricing.requirement import Requirement
from twin.reports.glossary import find_entry
from twin.reports.tables.catalogue import board_report, boards_table, entry_report
from twin.reports.tables.difference import what_if_report
from twin.reports.tables.limits import requirement_table
from twin.reports.tables.report import report

HEADERS = ("op", "output", "MACs", "bytes moved", "cycles", "ms", "%", "cum %", "uJ", "MAC/B",
           "bound", "largest cause")


def text_of(part, width: int = 1000) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    console.print(part(console) if callable(part) else part)
    return console.file.getvalue()


def report_of(prediction, width: int = 1000) -> str:
    return text_of(lambda console: report(prediction, console), width)


def numbers_of(line: str) -> list[float]:
    return [float(word.replace(",", "")) for word in re.findall(r"(?<!\S)[\d,]+\.?\d*(?!\S)", line)]


def test_report_has_every_promised_column_and_part():
    text = report_of(make_prediction())
    header = next(line for line in text.splitlines() if "largest cause" in line)
    for name in HEADERS:
        assert name in header
    for part in ("model", "sha256 000000000000", "architecture", "MACs", "parameters", "cortex-m4 "
                 "at 120 MHz", "made@1.0", "weights in flash", "arena in sram", "RAM", "flash",
                 "bill", "set-up, once", "because"):
        assert part in text


def test_set_up_without_a_known_cost_is_not_known_rather_than_nothing():
    known = make_prediction()
    none = dataclasses.replace(known, setup=Bill(()))
    assert "set-up, once, not included above: not known" in report_of(none)
    assert "not included above: 12,346 cpu cycles" in report_of(known)


def test_shown_cycles_milliseconds_and_percentages_sum_to_the_shown_totals():
    lines = report_of(make_prediction(9)).splitlines()
    start = next(i for i, line in enumerate(lines) if "largest cause" in line)
    rows = [numbers_of(line) for line in lines[start + 1:start + 10]]
    total = numbers_of(lines[start + 10])
    # index, MACs, bytes, cycles, ms, %, cumulative %, uJ, MAC/B
    assert sum(row[3] for row in rows) == total[1]
    assert sum(round(1000 * row[4]) for row in rows) == round(1000 * total[2])
    assert sum(round(10 * row[5]) for row in rows) == 1000
    assert rows[-1][6] == 100.0
    assert sum(round(10 * row[7]) for row in rows) == round(10 * total[4])


def test_bill_sums_to_its_total_and_to_the_layers():
    lines = report_of(make_prediction()).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("bill"))
    end = next(i for i, line in enumerate(lines) if i > start and line.startswith("total"))
    rows = [numbers_of(line.rstrip(" ▏▎▍▌▋▊▉█")) for line in lines[start + 1:end]]
    total = numbers_of(lines[end])
    for column, scale in ((0, 1), (1, 1000), (2, 10), (3, 10)):
        assert sum(round(scale * row[column]) for row in rows) == round(scale * total[column])
    layer_total = next(line for line in lines if line.split()[:1] == ["total"])
    assert numbers_of(layer_total)[1] == total[0]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_layer_row_is_folded_on_a_terminal(width):
    lines = report_of(make_prediction(30), width).splitlines()
    assert max(len(line) for line in lines) <= width
    start = next(i for i, line in enumerate(lines) if " op " in line)
    for index in range(30):
        assert lines[start + 1 + index].split()[0] == str(index)


def test_columns_a_terminal_has_no_room_for_are_named():
    assert "not shown at 80 columns: cum %" in report_of(make_prediction(), 80)
    assert "not shown" not in report_of(make_prediction(), 100)


def test_energy_that_is_not_known_is_never_zero():
    text = report_of(make_prediction(energy=False))
    assert "energy not known" in text
    row = next(line for line in text.splitlines() if line.strip().startswith("0 "))
    assert "not known" in row


def test_assumed_layers_are_marked_and_the_mark_explained():
    text = report_of(make_prediction())
    assert "conv_2d *" in text
    assert "* assumed: no data stands behind" in text


def test_names_are_never_read_as_markup():
    # "layer [2]" would lose its brackets if it were.
    assert "[bold]" in text_of(requirement_table([
        Requirement(name="[bold]", unit="ms", predicted=1.0, limit=2.0)]))


def test_an_unknown_figure_meets_no_limit():
    unknown = Requirement(name="energy", unit="uJ", predicted=None, limit=1e9)
    assert not unknown.met
    assert "not known" in text_of(requirement_table([unknown]))
    assert Requirement(name="time", unit="ms", predicted=2.0, limit=2.0).met


def test_what_if_lists_only_causes_that_moved_largest_first():
    before, after = make_prediction(seed=1), make_prediction(seed=2)
    text = text_of(what_if_report(set_what_if(
        before, after, {"clocks.cpu.frequency_hz": "80MHz"})))
    assert "clocks.cpu.frequency_hz = 80MHz" in text
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("cause, cycles"))
    moves = []
    for line in lines[start + 1:]:
        if line.startswith("total"):
            break
        moves.append(abs(float(line.split()[3].replace(",", ""))))
    assert moves == sorted(moves, reverse=True)
    assert "no cause moved" in text_of(
        what_if_report(set_what_if(before, before, {"a": "b"})))


def test_boards_are_listed_with_core_clock_and_memory():
    board = load_board("nucleo_l4r5zi")
    row = text_of(boards_table([board])).splitlines()[1]
    for cell in ("nucleo_l4r5zi", "cortex-m4", "120 MHz", "640 KiB", "2 MiB"):
        assert cell in row


def test_sources_show_every_number_of_a_board():
    board = load_board("nucleo_l4r5zi")
    text = text_of(board_report(board, sources=True))
    for fact in board.facts:
        assert fact.path in text
        assert fact.source in text
    assert "not known" in text or all(fact.value is not None for fact in board.facts)


def test_a_board_says_what_its_silicon_can_count():
    text = text_of(board_report(load_board("nucleo_h7a3zi_q"), sources=False))
    assert "CYCCNT" in text
    # A Cortex-M7 has no PMU (that is Armv8.1-M only).
    assert re.search(r"^PMU +none *$", text, re.MULTILINE)
    for level in ("L4", "L3", "L2", "L1"):
        assert re.search(rf"^{level} +\w", text, re.MULTILINE)


def test_glossary_entry_shows_myth_and_equation():
    text = text_of(entry_report(find_entry("energy")))
    assert "beware" in text
    assert "equation" in text


def test_a_unit_is_explained_by_the_name_a_board_gives_it():
    assert find_entry("CONV_ACC").term == find_entry("arith acc").term == "processing unit"


@pytest.mark.parametrize(("text", "expected"), [
    (format_time(0.5), "0.5 us"), (format_time(1500.0), "1.5 ms"), (format_time(999.6), "1 ms"),
    (format_time(2.5e6), "2.5 s"), (format_time(None), "not known"),
    (format_energy(1250.0), "1.25 mJ"), (format_size(655360), "640 KiB"), (format_size(7), "7 B"),
    (format_size(1 << 30), "1 GiB"),
    (format_count(2_656_768), "2.66M"), (format_count(0), "0"), (format_share(1, 3), "33.3 %"),
    (format_share(0, 0), "0 %"), (significant(1234.5), "1,234"), (significant(0.00123), "0.00123"),
])
def test_quantities_read_well(text, expected):
    assert text == expected
