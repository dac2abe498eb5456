"""Every fact a board file may hold, as rows, and the page docs/boards.md made of them.

python -m hwmodels.board.catalogue > docs/boards.md
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from hwmodels.board.declaration import (
    ByScale,
    Choice,
    Declared,
    Kind,
    Part,
    Plain,
    Quantity,
    Reference,
    Several,
    Table,
    keys_of_part,
)
from hwmodels.board.facts import Board
from hwmodels.board.file import paths_of
from hwmodels.board.schema import BOARD_FILE
from hwmodels.frozen import frozen
from hwmodels.quantities import UNITS

HEADING = Path(__file__).with_name("catalogue.md")
"""What the page begins with."""


@frozen
class FactRow:
    """One key of a board file.

    Parameters
    ----------
    path
        Dotted, words in capitals standing for names: "caches.NAME.size_bytes".
    units
        A value may be written in; empty: a number without a unit, or no number.
    accepted
        Bounds, words, or the kind of part it names.
    absent
        What it is when omitted: "required", a default, or "".
    whole
        Whether it is a whole number.
    """

    path: str
    units: tuple[str, ...]
    accepted: str
    absent: str
    doc: str
    whole: bool = False

    @property
    def takes(self) -> str:
        """What is accepted, units included."""
        return self.accepted + (f"; in {', '.join(self.units)}" if self.units else "")


def list_facts() -> tuple[FactRow, ...]:
    """Return every key a board file may hold, in the order of the file.

    Returns
    -------
    tuple of FactRow
        Sections are listed by their keys.
    """
    return tuple(_rows(BOARD_FILE, ""))


def list_facts_of(board: Board) -> tuple[FactRow, ...]:
    """Return every key of a board a what-if may set, with the board's own names in the paths.

    Parameters
    ----------
    board
        Whose caches, memories, clocks ... the words in capitals stand for.

    Returns
    -------
    tuple of FactRow
        In the order of the file; of what the board has none of, nothing.
    """
    known = [fact.path.split(".") for fact in board.facts]
    able = paths_of(board)
    return tuple(one for row in list_facts() for one in _name(row, known, 0) if one.path in able)


@cache
def find_fact(path: str) -> FactRow | None:
    """Return what a path of any board may be set to; None for a path that is of no board file."""
    parts = path.split(".")
    return next((row for row in list_facts() if len(own := row.path.split(".")) == len(parts)
                 and all(one.isupper() or one == part
                         for one, part in zip(own, parts, strict=True))), None)


def _name(row: FactRow, known: list[list[str]], start: int) -> Iterator[FactRow]:
    parts = row.path.split(".")
    at = next((at for at in range(start, len(parts)) if parts[at].isupper()), None)
    if at is None:
        yield row
        return
    for name in dict.fromkeys(path[at] for path in known
                              if len(path) > at and path[:at] == parts[:at]):
        path = ".".join((*parts[:at], name, *parts[at + 1:]))
        yield from _name(replace(row, path=path), known, at + 1)


def write_reference() -> str:
    """Return the page of all facts, as docs/boards.md holds it."""
    sections = {key.name: key.doc for key in keys_of_part(BOARD_FILE)}
    lines = [HEADING.read_text(encoding="utf-8").rstrip()]
    for name, rows in itertools.groupby(list_facts(), lambda row: row.path.partition(".")[0]):
        lines += ["", f"## `{name}`", "", " ".join(sections[name].split()), "",
                  "| key | takes | omitted | meaning |", "|---|---|---|---|"]
        for row in rows:
            lines.append(f"| `{row.path}` | {row.takes} | {row.absent} | {row.doc} |")
    return "\n".join(lines) + "\n"


def _rows(part: Part, prefix: str) -> Iterator[FactRow]:
    for key in keys_of_part(part):
        path, kind, listed = f"{prefix}{key.name}", key.kind, ""
        if isinstance(kind, Table | ByScale):
            path += f".{kind.by if isinstance(kind, Table) else 'SCALE'}"
            kind = kind.of
        if isinstance(kind, Part):
            yield from _rows(kind, f"{path}.")
            continue
        if isinstance(kind, Several):
            kind, listed = kind.of, "a list, each "
        units = tuple(UNITS[kind.dimension]) if isinstance(kind, Quantity) else ()
        yield FactRow(path=path, units=units, accepted=listed + _accepted(kind),
                      absent=_absent(key), doc=key.doc,
                      whole=isinstance(kind, Quantity) and kind.whole)


def _accepted(kind: Kind) -> str:
    match kind:
        case Quantity():
            return kind.bounds()
        case Choice(words, _):
            return ", ".join(map(str, words))
        case Reference(part):
            return f"the name of a {part}"
        case Plain(of, _) if of is bool:
            return "true, false"
    return "text"


def _absent(key: Declared) -> str:
    if key.required:
        return "required"
    if isinstance(key.default, bool):
        return str(key.default).lower()
    return "" if key.default in (None, (), "") else f"{key.default}"


if __name__ == "__main__":
    print(write_reference(), end="")
