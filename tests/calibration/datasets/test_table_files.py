"""Published tables as files are read: cells as text, ragged and missing ones refused by path."""

from __future__ import annotations

import pytest

from calibration.datasets import tables
from calibration.datasets.tables import read_csv, read_table
from calibration.errors import MeasurementError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    return tmp_path


def test_cells_are_text_whatever_they_hold(folder):
    (folder / "a.csv").write_bytes('name,µs,note\r\none,1.5,"a, b\nc"\r\ntwo,,\r\n'.encode())
    assert read_csv("a.csv") == ({"name": "one", "µs": "1.5", "note": "a, b\nc"},
                                 {"name": "two", "µs": "", "note": ""})


@pytest.mark.parametrize(("row", "number"), [("three,4", 2), ("three,4,,5", 2)])
def test_a_row_of_another_number_of_cells_is_refused_by_its_number(folder, row, number):
    (folder / "a.csv").write_text(f"name,us,note\none,1,x\n{row}\n")
    with pytest.raises(MeasurementError, match=(
            rf"^{folder}/a\.csv: row {number} has another number of cells than the header$")):
        read_csv("a.csv")


def test_a_file_that_is_not_there_is_named(folder):
    with pytest.raises(MeasurementError, match=(
            rf"^{folder}/b\.csv: cannot be read \(No such file or directory\)$")):
        read_csv("b.csv")


def test_a_table_is_typed_without_the_columns_that_must_not_be_used(folder):
    (folder / "tables.yaml").write_text("""
tables:
  made: {file: a.csv, board: b, trust: full, about: what it is, exclude: [stale]}
  other: {file: a.csv, board: null, trust: some, about: more}
""")
    (folder / "a.csv").write_text("name,us,stale,source\none,\"1,500\",9,s\n")
    read_table.cache_clear()
    try:
        made, other = read_table("made"), read_table("other")
    finally:
        read_table.cache_clear()
    assert made.rows == ({"name": "one", "us": 1500, "source": "s"},)
    assert (made.name, made.board, made.trust, made.about) == ("made", "b", "full", "what it is")
    assert made.columns == ("name", "us", "source")
    assert (other.columns, other.board) == (("name", "us", "stale", "source"), None)
    assert tables.list_tables() == ("made", "other")
