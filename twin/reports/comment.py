"""A difference as one Markdown comment of a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hwmodels.quantities import format_energy, format_size, format_time
from twin.attribution.difference import Difference, Line, Row
from twin.reports.columns import Column
from twin.reports.export import write_file
from twin.reports.page.page import Ours
from twin.reports.page.written import fill_markdown

MOST_ROWS = 15
"""Causes, and layers or functions, that are shown: those that changed most."""

NOTABLE = 0.02
"""Growth from which a figure stands in the heading where no limit is given."""

WRITERS: Mapping[str, Callable[[int], str]] = {
    "ns": lambda value: format_time(value / 1e3), "bytes": format_size,
    "nJ": lambda value: format_energy(value / 1e3)}
"""How a quantity is written, by its unit; others as whole numbers."""

Moves = tuple[str, list[Column], list[tuple[str, ...]]]
"""What changed most: title, columns and rows."""


def write_comment(difference: Difference, limit: float | None = None, *,
                  with_parts: bool = False) -> str:
    """Return Markdown: totals, causes, layers or functions, and what to know of them.

    Its first line is a comment nobody sees; a later run finds by it what it replaces.

    Parameters
    ----------
    difference
        Before and after.
    limit
        Largest relative increase.
    with_parts
        Whether the limit holds for every layer, too.
    """
    after, main = difference.second, difference.main
    title = f"{after.model} on {after.board}"
    over = difference.exceeding(limit, with_parts=with_parts) if limit is not None else ()
    figures = "1 figure grows" if len(over) == 1 else f"{len(over)} figures grow"
    parts = sorted((row for row in main.parts if row.gap), key=lambda row: -abs(row.gap))
    interval = after.interval_us
    notes = [f"{after.kind}, {after.runtime}" + ("" if interval is None else
             f"; {100 * (after.level or 0.9):.0f} % interval of the time after: "
             f"{format_time(interval[0])} to {format_time(interval[1])}"),
             *map(str, difference.findings), *difference.notes,
             *(f"exceeds: {row.label}" for row in over if row.index is not None)]
    return fill_markdown(
        "comment.md", mark=Ours(re.sub(r"[^\w.]+", "_", title)), title=title,
        summary=Ours(_sum_up(difference, NOTABLE if limit is None else limit)),
        verdict="" if limit is None else f"**{figures} by more than {100 * limit:g} %**" if over
        else f"No figure grows by more than {100 * limit:g} %.",
        total_columns=[*_head("", *["limit"] * (limit is not None))], totals=[
            (*_total_cells(row), *([] if limit is None else
                                   ["exceeds" if row.exceeds(limit) else "ok"]))
            for row in difference.totals],
        moves=[_list_moves("By cause", "cause", main.unit, main.total.moved),
               _list_moves(f"By {after.part}", after.part, main.unit, parts)],
        notes=dict.fromkeys(notes))


def write_comment_file(difference: Difference, path: str | Path, limit: float | None, *,
                       with_parts: bool) -> Path:
    """Write the comment to a file."""
    return write_file(path, write_comment(difference, limit, with_parts=with_parts).encode())


def _sum_up(difference: Difference, least: float) -> str:
    account = difference.main
    total, unit = account.total, account.unit
    besides = [*map(_total_cells, difference.besides(account.quantity, least))]
    share = "" if total.increase is None else f" ({100 * total.increase:+.2f} %)"
    first = f"{total.gap:+,} {unit}{share}" if total.gap else "no change" + (
        f" in {account.quantity}" if besides else "")
    return ", ".join((first, *(f"{name} {change}" for name, _, _, change in besides)))


def _total_cells(row: Row) -> tuple[str, ...]:
    return _cells(row.name.removesuffix("_bytes"), row.unit, row.first, row.second)


def _cells(name: str, unit: str, first: int, second: int) -> tuple[str, ...]:
    write = WRITERS.get(unit, "{:,}".format)
    change = "new" if not first and second else (
        f"{100 * (second - first) / first:+.2f} %" if first != second else "0")
    return name, write(first), write(second), change


def _head(head: str, *more: str, numbers: bool = False) -> list[Column]:
    """Return columns of what a row is, of both sides, and of their change."""
    return [Column(head), *(Column(name, number=True) for name in ("before", "after", "change")),
            *(Column(name, number=numbers) for name in more)]


def _list_moves(title: str, head: str, unit: str, moves: Sequence[Row | Line]) -> Moves:
    """Return what changed most: its title, columns and rows."""
    more = f", {MOST_ROWS} of {len(moves)}" if len(moves) > MOST_ROWS else ""
    return title + more, _head(head, unit, numbers=True), [
        (*_cells(one.label, unit, one.first, one.second or 0), f"{one.gap:+,}")
        for one in moves[:MOST_ROWS]]
