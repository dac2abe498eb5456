"""How often a network is right, before and after changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.reports.columns import Column, number
from twin.reports.tables.parts import Table, tabulate

if TYPE_CHECKING:
    from twin.studies.accuracy import Accuracy


def accuracy_table(before: Accuracy, after: Accuracy | None) -> Table:
    """Return one row for the network as it is, one for the changed one."""
    return tabulate((
        Column("network", lambda one: "as it is" if one is before else "changed"),
        number("right", "right", "{}"), number("of", "samples", "{}"),
        number("accuracy", "share", "{:.2%}"),
        Column("90 % interval", lambda one: f"{one.low:.2%} to {one.high:.2%}"),
        Column("run by", "by")), [before] if after is None else [before, after])
