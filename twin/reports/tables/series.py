"""Table of a series of measurements."""

from __future__ import annotations

from twin.attribution.series import Series
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, Text, spaced, tabulate


def series_report(series: Series) -> Content:
    """Return the median of each measurement of a series, and whether the level moved."""
    return spaced([tabulate((
        Column("measurement", "label"), number("runs", "runs", "{}"),
        number(f"median, {series.unit}", "median", "{:,.6g}"),
        number("% of the first", lambda one: 100 * one.ratio, "{:.2f}")), series.stretches),
        Text(series.sentence)])
