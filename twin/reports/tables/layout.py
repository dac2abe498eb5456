"""How tables look: no frames, numbers to the right, readable with and without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twin.reports.tables.parts import Column, Console, Content, Group, Table, Text

BAR_CELLS = 24
"""Characters of the longest bar of a table."""


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
    return Table(columns=[Column(header=header, number=header in right) for header in headers],
                 title=Text(title, style="bold") if title else None, drops=tuple(drops))


def add_row(table: Table, cells: Iterable[str], style: str = "") -> None:
    """Add a row, the last cells of which may be missing."""
    given = tuple(cells)
    table.rows.append((given + ("",) * (len(table.columns) - len(given)), style))


def new_pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return labels and what they stand for, one pair a line."""
    return Table(columns=[Column(style="dim", no_wrap=True, overflow="ellipsis"), Column()],
                 headed=False, rows=[(pair, "") for pair in pairs])


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


def spaced(parts: Sequence[Content]) -> Group:
    """Put parts under each other with an empty line between."""
    lines: list[Content] = []
    for position, part in enumerate(parts):
        lines += [Text(""), part] if position else [part]
    return Group(*lines)
