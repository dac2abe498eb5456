"""Tables of two predictions or two measurements."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from twin.attribution.change import Move, SideDifference
from twin.reports.tables.layout import add_row, new_pairs, new_table, spaced


def difference_report(difference: SideDifference, limit: float | None = None) -> RenderableType:
    """Return set-ups, totals, parts and causes, before and after; `limit` marks what exceeds it."""
    before, after = difference.before, difference.after
    sides = new_pairs((("before", f"{before.kind}: {before.label}"),
                       ("after", f"{after.kind}: {after.label}"),
                       *(("set up", line) for line in difference.setup)))
    parts: list[RenderableType] = [sides, _table("one inference", difference.totals, limit)]
    if difference.parts:
        parts.append(_table(after.part, difference.parts, None))
    if difference.causes:
        parts.append(_table("cause", difference.causes, None))
    return spaced(parts)


def _table(title: str, moves: Sequence[Move], limit: float | None) -> Table:
    numbers = ("before", "after", "change", "%")
    reasons = any(move.reason for move in moves)
    headers = (title, "unit", *numbers, *(("mostly",) if reasons else ()),
               *(("verdict",) if limit is not None else ()))
    table = new_table(headers, numbers)
    for move in moves:
        share = "" if move.increase is None else f"{100 * move.increase:+.2f}"
        cells = [move.name, move.unit, f"{move.before:,}", f"{move.after:,}", f"{move.change:+,}",
                 share, *((move.reason,) if reasons else ())]
        exceeded = limit is not None and move.exceeds(limit)
        if limit is not None:
            cells.append("exceeds" if exceeded else "ok")
        add_row(table, cells, style="bold red" if exceeded else "")
    return table
