"""The causes of a difference as printed: every column sums to its total, time and energy alike."""

from __future__ import annotations

import pytest

import twin
from twin.reports.tables.difference import _causes, _totals

CHANGES = ({"clocks.cpu.frequency_hz": "80MHz"}, {"memories.flash.read_bytes": "16"},
           {"placement.weights": "sram"})


def whole(text: str) -> int:
    return int(str(text).replace(",", "").replace("+", "") or 0)


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: next(iter(changes)))
def test_columns_of_a_what_if_sum_to_their_totals(changes):
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0")
    table = _causes(twin.what_if(deployment, changes).difference)
    by_name = {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}
    for name in ("gap", "gap of energy, nJ"):
        *rows, total = (whole(cell) for cell in by_name[name])
        assert sum(rows) == total, name


def test_ratios_are_headed_by_what_is_divided_by_what():
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0")
    changed = twin.what_if(deployment, {"clocks.cpu.frequency_hz": "60MHz"})
    table = _totals(changed.difference)
    column, = (one for one in table.columns if str(one.header) == "before /\nafter")
    before, after = (next(str(cell) for cell in one.cells if str(cell).count(",") == 2)
                     for one in table.columns if str(one.header) in ("before", "after"))
    ratio = float(str(next(iter(column.cells))))
    assert ratio == pytest.approx(whole(before) / whole(after), 0.01)
