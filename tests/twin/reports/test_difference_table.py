"""The causes of a difference as printed: every column sums to its total, time and energy alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

import twin
from twin.attribution.difference import Row
from twin.reports.tables.difference import _causes, _shorten, _totals

CHANGES = ({"clocks.cpu.frequency_hz": "80MHz"}, {"memories.flash.read_bytes": "16"},
           {"placement.weights": "sram"})


def cells_by_header(table):
    headers = [column.header for column in table.columns]
    return dict(zip(headers, zip(*(cells for cells, _ in table.rows), strict=True), strict=True))


def whole(text: str) -> int:
    return int(str(text).replace(",", "").replace("+", "") or 0)


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: next(iter(changes)))
def test_columns_of_a_what_if_sum_to_their_totals(changes):
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0")
    table = _causes(twin.what_if(deployment, changes).difference)
    by_name = cells_by_header(table)
    for name in ("gap", "gap of energy, nJ"):
        *rows, total = (whole(cell) for cell in by_name[name])
        assert sum(rows) == total, name


def test_ratios_are_headed_by_what_is_divided_by_what():
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0")
    changed = twin.what_if(deployment, {"clocks.cpu.frequency_hz": "60MHz"})
    cells = cells_by_header(_totals(changed.difference))
    before, after = (next(cell for cell in cells[name] if cell.count(",") == 2)
                     for name in ("before", "after"))
    ratio = float(cells["before /\nafter"][0])
    assert ratio == pytest.approx(whole(before) / whole(after), 0.01)


def test_a_layer_made_of_several_is_called_by_one_short_name():
    row = Row(index=1, name="net/activation/Relu;net/conv2d/Conv2D1", unit="ns", first=1, second=1)
    assert _shorten(row) == "1 activation"
    assert _shorten(replace(row, name="", op="conv_2d")) == "1 conv_2d"
