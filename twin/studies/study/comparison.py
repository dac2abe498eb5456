"""Two tables of one study, row by row: what was asked in both, and which figures moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twin.studies.results import Table
from twin.studies.rows import Row, ratio_of

UNMOVED = 5e-4
"""The same between two tables of one study."""

MOVING = ("time_us", "energy_uj", "ram_bytes", "flash_bytes")
"""Figures of a row that are compared between two tables of one study."""


class RowPair(NamedTuple):
    """A configuration in two tables; None where one does not have it."""

    before: Row | None
    after: Row | None

    @property
    def time_ratio(self) -> float | None:
        """After / before; None where one is not known."""
        return ratio_of(self.after, self.before, "time_us")

    @property
    def energy_ratio(self) -> float | None:
        """After / before; None where one is not known."""
        return ratio_of(self.after, self.before, "energy_uj")

    @property
    def has_moved(self) -> bool:
        """Whether it is in one table only, or its reason of refusal or one of `MOVING` differs.

        Figures differ by `UNMOVED` or more, or where one of the two is not known.
        """
        if self.before is None or self.after is None:
            return True
        return self.before.reason != self.after.reason or bool(self.figures)

    @property
    def figures(self) -> tuple[str, ...]:
        """Which of `MOVING` differ."""
        return tuple(name for name in MOVING if self._differs(name))

    def _differs(self, name: str) -> bool:
        before, after = (getattr(row, name, None) for row in self)
        if before is None or after is None:
            return before is not after
        return bool(abs(after - before) >= UNMOVED * abs(before) and after != before)


def diff_tables(before: Table, after: Table) -> Sequence[RowPair]:
    """Return rows of two tables by what was asked, those of only one beside None."""
    first = {row.inputs: row for row in before.rows}
    second = {row.inputs: row for row in after.rows}
    return [RowPair(first.get(inputs), second.get(inputs)) for inputs in {**first, **second}]
