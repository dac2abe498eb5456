"""Table of a series of measurements."""

from __future__ import annotations

from twin.attribution.series import Series
from twin.reports.tables.parts import Content, Text, add_row, new_table, spaced


def series_report(series: Series) -> Content:
    """Return the median of each measurement of a series, and whether the level moved."""
    numbers = ("runs", f"median, {series.unit}", "% of the first")
    table = new_table(("measurement", *numbers), numbers)
    for one in series.stretches:
        add_row(table, (one.label, str(one.runs), f"{one.median:,.6g}", f"{100 * one.ratio:.2f}"))
    return spaced([table, Text(series.sentence)])
