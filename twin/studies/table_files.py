"""Tables of studies, read from files of others: bounded before they are unpacked."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hwmodels.files import MISSHAPEN, DocumentError, JsonObject, open_regular, parse_json
from twin.errors import UsageError
from twin.studies.limits import LARGEST, Limits
from twin.studies.results import Table, check_file, import_arrow, read_objectives, read_row, type_of

if TYPE_CHECKING:
    import pandas
    import pyarrow

LARGEST_TABLE_BYTES = 1 << 28
"""Of a file of rows."""

MOST_TABLE_BYTES = 1 << 27
"""Of what a Parquet file unpacks to, and of its words."""

MOST_TABLE_VALUES = 4_000_000
"""Beyond one a byte of the file."""

MOST_TABLE_COLUMNS = 1000


def read_table(path: str | Path) -> Table:
    """Read a table `write_table` wrote; of a CSV file, limits and objectives are lost.

    Raises
    ------
    UsageError
        For a file that is none.
    """
    path = Path(path)
    suffix = check_file(path)
    arrow = import_arrow()
    try:
        with open_regular(path, LARGEST_TABLE_BYTES) as stream:
            if suffix == ".csv":
                return _make_table(_read_csv(stream), {})
            found = read_parquet(stream)
        return _make_table(found.to_pylist(), parse_json(
            (found.schema.metadata or {}).get(b"twin", b"{}").decode()))
    except (OSError, arrow.ArrowException, csv.Error, *MISSHAPEN, DocumentError) as error:
        raise UsageError(f"{path}: is not a table of a study: {error}") from error


def read_frame(frame: pandas.DataFrame) -> Table:
    """Return the table of a data frame with the columns `twin.to_pandas` gives one.

    Raises
    ------
    UsageError
        For another one.
    """
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    try:
        return _make_table(records, frame.attrs)
    except (*MISSHAPEN, DocumentError) as error:
        raise UsageError(f"data frame: is not a table of a study: {error}") from error


def _make_table(records: Iterable[JsonObject], head: JsonObject) -> Table:
    return Table(rows=tuple(map(read_row, records)), limits=_read_limits(head.get("limits", {})),
                 objectives=read_objectives(head.get("objectives", ("time_us", "energy_uj"))),
                 axes=_read_axes(head.get("axes", ())))


def _read_limits(document: JsonObject) -> Limits:
    for name, limit in document.items():
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)
                                  or not 0 < limit < LARGEST):
            raise ValueError(f"limits: {name} of {limit!r}")
    return Limits(**document)


def _read_axes(names: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(axis, str) for axis in names):
        raise ValueError(f"axes: {names!r} are no names")
    return tuple(names)


def _read_csv(stream: BinaryIO) -> list[JsonObject]:
    lines = csv.reader(TextIOWrapper(stream, newline=""))
    names = next(lines, [])
    if not names:
        raise ValueError("it has no header")
    _check_size(stream, columns=len(names), rows=0)
    read = [_CELLS[type_of(name)] for name in names]
    return [{name: made(cell) if cell or made is str else None
             for name, made, cell in zip(names, read, line, strict=True)} for line in lines if line]


_CELLS: JsonObject = {"string": str, "int64": int, "float64": float}


def read_parquet(stream: BinaryIO) -> pyarrow.Table:
    """Return a table whose words, written out, are no bomb: a file holds each once.

    Raises
    ------
    ValueError, OSError, pyarrow.ArrowException
        For one that is, or is damaged.

    Notes
    -----
    Read by this thread alone: one of Arrow's pool that lets go of a Python object while the
    interpreter ends aborts the process.
    """
    from pyarrow import compute, parquet

    arrow = import_arrow()
    names = parquet.read_schema(stream).names
    words = [name for name in names if type_of(name) == "string"]
    file = parquet.ParquetFile(stream, read_dictionary=words, pre_buffer=False)
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    _check_size(stream, columns=len(names), rows=sum(group.num_rows for group in groups))
    packed = sum(group.total_byte_size for group in groups)
    found = file.read(use_threads=False) if packed <= MOST_TABLE_BYTES else None
    letters = 0
    for chunk in (chunk for name in words if found is not None
                  for chunk in found[name].chunks if isinstance(chunk, arrow.DictionaryArray)):
        lengths = compute.take(compute.binary_length(chunk.dictionary), chunk.indices)
        letters += compute.sum(compute.cast(lengths, arrow.int64())).as_py() or 0
    if found is None or letters > MOST_TABLE_BYTES:
        raise ValueError(f"unpacks to {max(packed, letters):,} bytes; at most "
                         f"{MOST_TABLE_BYTES:,} are read")
    return found


def _check_size(stream: BinaryIO, *, columns: int, rows: int) -> None:
    """Refuse a table of too many columns, or of more values than its file is of bytes."""
    most = MOST_TABLE_VALUES + os.fstat(stream.fileno()).st_size
    if columns > MOST_TABLE_COLUMNS or columns * rows > most:
        raise ValueError(f"{columns:,} columns and {rows:,} rows; at most "
                         f"{MOST_TABLE_COLUMNS:,} columns and {most:,} values are read")
