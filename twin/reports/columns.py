"""Columns of tables, each described once: the terminal and the page write their cells by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any

from hwmodels.frozen import record

Write = Callable[[Any], str]
"""What a noun, or a value of it, is as text."""


@record
class Cell:
    """A cell of a table.

    Parameters
    ----------
    value
        What it is sorted by; None: its text.
    tone
        "good", "bad", "dim" or "": how it is set.
    """

    text: str
    value: float | None = None
    tone: str = ""


@record
class Column:
    """A column: its header, where its cells come from, how they are written and set.

    Parameters
    ----------
    header
        "" for none.
    take : str or callable
        Attribute of a row's noun, as "row.board", or a function of it; what it returns is the
        value, or a `Cell`. "": the attribute its header names.
    write : str or callable
        Template of values that are known, as "{:,.1f}", or their writer.
    number
        Whether it is aligned to the right and sorted by its values.
    kind
        What its figures are, as "measured"; "" for any.
    tone : str or callable
        How its cells are set on a page, by their noun where that differs.
    style, no_wrap, overflow
        As rich draws it.
    """

    header: str = ""
    take: str | Callable[[Any], Any] = ""
    write: str | Write = "{}"
    number: bool = False
    kind: str = ""
    tone: str | Write = ""
    style: str = ""
    no_wrap: bool = False
    overflow: str = "fold"

    def cell(self, noun: Any) -> Cell:
        """Return the cell of a noun."""
        value = self.take(noun) if callable(self.take) else _read(self.take or self.header)(noun)
        if isinstance(value, Cell):
            return value
        text = self.write(value) if callable(self.write) else (
            "" if value is None else self.write.format(value))
        return Cell(text, value if self.number else None,
                    tone=self.tone(noun) if callable(self.tone) else self.tone)


_read = cache(attrgetter)


def number(header: str, take: str | Callable[[Any], Any], write: str | Write = "{:,}", *,
           kind: str = "", tone: str | Write = "") -> Column:
    """Return a column of numbers."""
    return Column(header, take, write, number=True, kind=kind, tone=tone)


def write_cells(columns: Iterable[Column], noun: Any) -> tuple[str, ...]:
    """Return the texts of a noun, a cell for each column."""
    return tuple(column.cell(noun).text for column in columns)
