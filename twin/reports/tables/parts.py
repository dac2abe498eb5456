"""What a report is made of: text, tables, and several of them under each other.

On a terminal rich draws them. Piped, they are lines: where nothing is folded and every character
takes one cell those are written here, which takes a tenth of the time and imports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hwmodels.frozen import frozen, record
from hwmodels.quantities import drop_none
from twin.reports.columns import Column, write_cells

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text as DrawnText

BAR_CELLS = 24
"""Characters of the longest bar of a table."""

ONE_CELL = "[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u22ff\u2580-\u259f]"
"""Characters that are printed, each one cell wide, in any terminal and by rich."""

_KNOWN = re.compile(f"(?:{ONE_CELL}|\n)*").fullmatch


class Console(Protocol):
    """Where a report is printed: what tables ask of it."""

    @property
    def width(self) -> int:
        """Columns of text."""

    @property
    def encoding(self) -> str:
        """Name of the encoding, small letters."""

    @property
    def is_terminal(self) -> bool:
        """Whether it has styles."""


@frozen
class Page:
    """A file or pipe that takes plain lines."""

    width: int
    encoding: str
    is_terminal: bool = False


@record
class Text:
    """Lines of text, never read as markup; what follows on the last may have another style."""

    text: str
    style: str = ""
    rest: str = ""
    rest_style: str = ""

    def __rich__(self) -> DrawnText:
        """Return it as rich draws it."""
        from rich.text import Text as Drawn

        drawn = Drawn(self.text, style=self.style)
        return drawn if not self.rest else Drawn.assemble(drawn, (self.rest, self.rest_style))

    def lines(self, width: int) -> list[str] | None:
        """Return it as lines; None where one has to be folded or a character is not known."""
        lines = _split(self.text + self.rest)
        return lines if lines is not None and max(map(len, lines)) <= width else None


@dataclass(slots=True, kw_only=True)
class Table:
    """Rows of cells without a frame.

    Parameters
    ----------
    columns
        Left to right; a number is aligned to the right.
    gap
        Blanks between two columns.
    title, caption : Text or str, optional
        Above and below it.
    drops
        Columns given up first where there is no room for all.
    headed
        Whether it begins with the columns' headers.
    rows
        Cells of each and its style.
    """

    columns: list[Column]
    gap: int = 2
    title: Text | None = None
    caption: Text | str | None = None
    drops: Sequence[str] = ()
    headed: bool = True
    rows: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def add_row(self, cells: Iterable[str], style: str = "") -> None:
        """Add a row, the last cells of which may be missing."""
        given = tuple(cells)
        self.rows.append((given + ("",) * (len(self.columns) - len(given)), style))

    def __rich__(self) -> RenderableType:
        """Return it as rich draws it."""
        from twin.reports.tables.drawn import NarrowingTable

        title, caption = (part.__rich__() if isinstance(part, Text) else part
                          for part in (self.title, self.caption))
        drawn = NarrowingTable(
            box=None, pad_edge=False, padding=(0, self.gap, 0, 0), header_style="bold",
            show_header=self.headed, collapse_padding=not self.headed,
            title=title, title_justify="left", caption=caption, caption_justify="left")
        drawn.drops = tuple(self.drops)
        for column in self.columns:
            overflow: Any = column.overflow
            drawn.add_column(
                Text(column.header).__rich__(), justify="right" if column.number else "left",
                style=column.style, no_wrap=column.no_wrap, overflow=overflow)
        for cells, style in self.rows:
            drawn.add_row(*(Text(cell).__rich__() for cell in cells), style=style)
        return drawn

    def lines(self, width: int) -> list[str] | None:
        """Return it as lines; None where one has to be folded or a character is not known."""
        found = self._cells()
        if found is None or not self.columns:
            return None
        cells, widths = found
        widths = [room or 1 for room in widths]
        room = sum(widths)
        texts = [[] if part is None else lines_of([part], room)
                 for part in (self.title, self.caption)]
        if room > width or None in texts:
            return None
        lines = [line for part in texts[:1] for line in part or ()]
        for place, row in enumerate(cells):
            height = max(map(len, row))
            lines += ["".join(
                self._place(cell, step - (height - len(cell) if self.headed and not place else 0),
                            column, room)
                for cell, column, room in zip(row, range(len(row)), widths, strict=True))
                for step in range(height)]
        return lines + [line for part in texts[1:] for line in part or ()]

    def natural_width(self) -> int | None:
        """Columns of text in which nothing is folded; None where that is not known here."""
        found = self._cells()
        return None if found is None or not found[0] else sum(found[1])

    def _cells(self) -> tuple[list[list[list[str]]], list[int]] | None:
        """Lines of each cell, by row, and the width of each column with the gap behind it."""
        rows = [cells for cells, _ in self.rows]
        if self.headed:
            rows.insert(0, tuple(column.header for column in self.columns))
        cells: list[list[list[str]]] = []
        for row in rows:
            split = [_split(cell) for cell in row]
            known = drop_none(split)
            if len(known) < len(self.columns):
                return None
            cells.append(known)
        widths = [max((len(line) for row in cells for line in row[place]), default=0)
                  for place in range(len(self.columns))]
        return cells, [width + self.gap for width in widths[:-1]] + widths[-1:]

    def _place(self, cell: Sequence[str], step: int, place: int, room: int) -> str:
        line = cell[step] if 0 <= step < len(cell) else ""
        if not self.columns[place].number:
            return line.ljust(room)
        gap = self.gap if place < len(self.columns) - 1 else 0
        return line.rstrip().rjust(room - gap) + " " * gap


class Group:
    """Parts under each other; a part that is None is omitted."""

    def __init__(self, *parts: Content | None) -> None:
        self.parts: list[Content] = drop_none(parts)

    def __rich__(self) -> RenderableType:
        """Return it as rich draws it."""
        from rich.console import Group as Drawn

        return Drawn(*self.parts)

    def lines(self, width: int) -> list[str] | None:
        """Return it as lines; None where one has to be folded or a character is not known."""
        return lines_of(self.parts, width)


Content = Text | Table | Group | str


def lines_of(parts: Iterable[Any], width: int) -> list[str] | None:
    """Return parts as lines at most `width` wide; None where only rich can draw them."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            part = Text(part)
        drawn = part.lines(width) if isinstance(part, Text | Table | Group) else None
        if drawn is None:
            return None
        lines += drawn
    return lines


def _split(text: str) -> list[str] | None:
    return text.split("\n") if _KNOWN(text) else None


def new_table(headers: Iterable[str], numbers: Iterable[str] = (), title: str = "",
              drops: Sequence[str] = (), rows: Iterable[Iterable[str]] = ()) -> Table:
    """Return a table of cells that are written already.

    Parameters
    ----------
    headers
        Columns, left to right.
    numbers
        Those that hold numbers and are aligned to the right.
    title
        Printed above it; "" for none.
    drops
        Columns given up first where the console is too narrow for all.
    rows
        The first ones; the last cells of each may be missing.
    """
    right = set(numbers)
    table = tabulate([Column(header, number=header in right) for header in headers], (), title,
                     drops)
    for cells in rows:
        table.add_row(cells)
    return table


def tabulate(columns: Iterable[Column | None], nouns: Iterable[Any], title: str = "",
             drops: Sequence[str] = (), gap: int = 2,
             style: Callable[[Any], str] = lambda noun: "") -> Table:
    """Return a table with a row for each noun; a column may be None; others as of `new_table`."""
    shown = drop_none(columns)
    return Table(columns=shown, title=Text(title, "bold") if title else None, drops=drops,
                 gap=gap, rows=[(write_cells(shown, noun), style(noun)) for noun in nouns])


Pairs = list[tuple[str, str]]
"""Rows of a table of names and values."""


def new_pairs(pairs: Iterable[tuple[str, str] | None]) -> Table:
    """Return labels and what they stand for, one pair a line; a pair may be None."""
    return Table(columns=[Column(style="dim", no_wrap=True, overflow="ellipsis"), Column()],
                 headed=False, rows=[(pair, "") for pair in pairs if pair is not None])


def natural_width(table: Table) -> int:
    """Columns of text the table needs to fold nothing."""
    width = table.natural_width()
    if width is None:
        from twin.reports.tables.drawn import measure

        width = measure(table)
    return width


def draw_bar(share: float, console: Console, cells: int = BAR_CELLS) -> str:
    """Draw a share, 0 to 1, as a bar of text; any share above zero shows."""
    full, eighths = ("█", "▏▎▍▌▋▊▉") if console.encoding.startswith("utf") else ("#", "")
    if not eighths:
        return full * (max(1, round(share * cells)) if share > 0 else 0)
    steps = max(1, round(share * cells * 8)) if share > 0 else 0
    whole, rest = divmod(steps, 8)
    return full * whole + (eighths[rest - 1] if rest else "")


def spaced(parts: Iterable[Content | None]) -> Group:
    """Put parts under each other with an empty line between; a part may be None."""
    return Group(*[line for part in Group(*parts).parts for line in (Text(""), part)][1:])
