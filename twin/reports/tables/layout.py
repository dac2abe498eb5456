"""How tables look: no frames, numbers to the right, readable with and without colour."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

BAR_CELLS = 24
"""Characters of the longest bar of a table."""


class NarrowingTable(Table):
    """A table that gives up columns, in the order of `drops`, where there is no room for all."""

    drops: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render without the columns there is no room for, and name those."""
        fitted, gone = self, list[str]()
        for header in self.drops:
            if natural_width(fitted, console) <= options.max_width:
                break
            if any(str(column.header) == header for column in self.columns):
                gone.append(header)
                fitted = self._without(gone)
        yield from Table.__rich_console__(fitted, console, options)
        if gone:
            names = "; ".join(gone).replace("\n", " ")
            yield Text(f"not shown at {options.max_width} columns: {names}", style="dim")

    def _without(self, gone: Sequence[str]) -> NarrowingTable:
        fitted = copy.copy(self)
        kept = [column for column in self.columns if str(column.header) not in gone]
        fitted.columns = [dataclasses.replace(column, _index=place)
                          for place, column in enumerate(kept)]
        return fitted


def new_table(headers: Iterable[str], numbers: Iterable[str] = (), title: str = "",
              drops: Sequence[str] = ()) -> Table:
    """Return an empty table.

    Parameters
    ----------
    headers : iterable of str
        Columns, left to right.
    numbers : iterable of str
        Those that hold numbers and are aligned to the right.
    title : str
        Printed above it; "" for none.
    drops : sequence of str
        Columns given up first where the console is too narrow for all.
    """
    right = set(numbers)
    table = NarrowingTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold",
                  title=Text(title, style="bold") if title else None, title_justify="left")
    table.drops = tuple(drops)
    for header in headers:
        table.add_column(Text(header), justify="right" if header in right else "left",
                         overflow="fold")
    return table


def add_row(table: Table, cells: Iterable[str], style: str = "") -> None:
    """Add a row; cells are plain text and never read as markup."""
    table.add_row(*(Text(cell) for cell in cells), style=style)


def new_pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return labels and what they stand for, one pair a line."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in pairs:
        table.add_row(Text(label), Text(text))
    return table


def natural_width(table: Table, console: Console) -> int:
    """Columns of text the table needs to fold nothing."""
    options = console.options.update(width=10_000)
    return Measurement.get(console, options, table).maximum


def draw_bar(share: float, console: Console, cells: int = BAR_CELLS) -> str:
    """Draw a share, 0 to 1, as a bar of text; any share above zero shows."""
    full, eighths = ("█", "▏▎▍▌▋▊▉") if console.encoding.startswith("utf") else ("#", "")
    if not eighths:
        return full * (max(1, round(share * cells)) if share > 0 else 0)
    steps = max(1, round(share * cells * 8)) if share > 0 else 0
    whole, rest = divmod(steps, 8)
    return full * whole + (eighths[rest - 1] if rest else "")


def spaced(parts: Sequence[RenderableType]) -> Group:
    """Put parts under each other with an empty line between."""
    lines: list[RenderableType] = []
    for position, part in enumerate(parts):
        lines += [Text(""), part] if position else [part]
    return Group(*lines)
