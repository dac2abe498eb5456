"""Published tables finer than a network: layers, kernels, tasks of accelerators, currents."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from calibration.errors import MeasurementError
from hwmodels import files
from hwmodels.errors import check_known, reworded
from hwmodels.frozen import frozen

FOLDER = Path(__file__).parent
Cell = str | int | float | None

_INTEGER = re.compile(r"[-+]?\d{1,3}(,\d{3})+|[-+]?\d+")
_REAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?")


@frozen
class Table:
    """A published table, its rows typed and otherwise as published.

    Parameters
    ----------
    name
        One of `list_tables()`.
    board
        Our board, when all rows are of one we have.
    trust
        How far to trust it.
    about
        What it is, and traps.
    rows
        Cells by column; numbers as int or float, an empty cell as None, "source" always there.
        Columns that must not be used are omitted.
    """

    name: str
    board: str | None
    trust: str
    about: str
    rows: tuple[Mapping[str, Cell], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in file order."""
        return tuple(self.rows[0])


def read_yaml(relative: str) -> Mapping[str, Any]:
    """Read a YAML file of this folder."""
    document: Mapping[str, Any] = files.read_yaml(FOLDER / relative)
    return document


def read_csv(relative: str) -> tuple[dict[str, str], ...]:
    """Read a CSV file of this folder as text; an empty cell is an empty string.

    Raises
    ------
    MeasurementError
        When it cannot be read or a row is ragged.
    """
    path = FOLDER / relative
    with reworded(OSError, MeasurementError, f"{path}: cannot be read (", ")"), open(
            path, newline="", encoding="utf-8") as stream:
        rows = tuple(csv.DictReader(stream))
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise MeasurementError(f"{path}: row {number} has another number of cells than the "
                                   "header")
    return rows


def list_tables() -> tuple[str, ...]:
    """Return the names of the tables, sorted."""
    return tuple(sorted(read_yaml("tables.yaml")["tables"]))


@lru_cache(maxsize=4)
def read_table(name: str) -> Table:
    """Read a published table.

    Parameters
    ----------
    name
        One of `list_tables()`.

    Returns
    -------
    Table
        With typed rows.

    Raises
    ------
    MeasurementError
        When there is no such table.
    """
    tables = read_yaml("tables.yaml")["tables"]
    check_known("no published table", name, tables, MeasurementError)
    facts = tables[name]
    excluded = set(facts.get("exclude", ()))
    rows = tuple({column: parse_cell(text) for column, text in row.items()
                  if column not in excluded} for row in read_csv(facts["file"]))
    return Table(name=name, board=facts["board"], trust=facts["trust"], about=facts["about"],
                 rows=rows)


def parse_cell(text: str) -> Cell:
    """Return a cell as int, float or text, None when empty; "1,234" is a thousand and more."""
    if not text:
        return None
    if _INTEGER.fullmatch(text):
        return int(text.replace(",", ""))
    return float(text) if _REAL.fullmatch(text) else text
