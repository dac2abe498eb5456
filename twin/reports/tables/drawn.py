"""Tables as rich draws them: on a terminal, and wherever something has to be folded."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


class NarrowingTable(Table):
    """A table that gives up columns where there is no room for all: empty ones, then `drops`."""

    drops: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render without the columns there is no room for, and name those."""
        fitted, gone = self, list[str]()
        empty = [str(column.header) for column in self.columns
                 if column.header and not any(map(str, column.cells))]
        for header in dict.fromkeys((*empty, *self.drops)):
            if measure(fitted) <= options.max_width:
                break
            if any(str(column.header) == header for column in self.columns):
                gone.append(header)
                fitted = self._without(gone)
        yield from Table.__rich_console__(fitted, console, options)
        if names := "; ".join(one for one in gone if one not in empty).replace("\n", " "):
            yield Text(f"not shown at {options.max_width} columns: {names}", style="dim")

    def _without(self, gone: Sequence[str]) -> NarrowingTable:
        fitted = copy.copy(self)
        kept = [column for column in self.columns if str(column.header) not in gone]
        fitted.columns = [replace(column, _index=place) for place, column in enumerate(kept)]
        return fitted


def measure(table: RenderableType) -> int:
    """Columns of text a table needs to fold nothing."""
    console = Console(width=10_000)
    return Measurement.get(console, console.options, table).maximum
