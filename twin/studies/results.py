"""Results of a study: a row for every point, with its figures, intervals and limits.

A row is flat, so that a table is one Parquet or CSV file anything can read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field, fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.fitting.intervals import LEVEL, Interval, name_ends
from hwmodels.errors import need_extra
from hwmodels.file_cache import read_yaml_once
from hwmodels.files import JsonObject, write_whole
from hwmodels.frozen import frozen
from twin.errors import UsageError
from twin.pricing.draw import read_draw
from twin.pricing.variables import COLD_START, PREFIXES, SETUP
from twin.studies.limits import LARGEST, Limits
from twin.studies.rows import OBJECTIVE_OF, QUANTITIES, Row, Rows, find_row

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".parquet", ".csv")


@frozen
class Table:
    """Rows of a study, in the order of its points.

    Parameters
    ----------
    limits
        They were held to.
    objectives
        Quantities the front is over.
    """

    rows: Rows
    limits: Limits = field(default_factory=Limits)
    objectives: tuple[str, ...] = ("time_us", "energy_uj")
    axes: tuple[str, ...] = ()

    @property
    def predicted(self) -> Rows:
        """Rows that did not fail."""
        return tuple(row for row in self.rows if not row.failure)

    @property
    def failed(self) -> Rows:
        """Rows that failed, each with its reason."""
        return tuple(row for row in self.rows if row.failure)

    @property
    def met(self) -> Rows:
        """Rows that meet every limit by their prediction, surest first."""
        return tuple(sorted((row for row in self.rows if row.met),
                            key=lambda row: -(row.probability or 0.0)))

    def all_met(self, *, sure: bool = False) -> bool:
        """Whether every row meets the limits; `sure`: by the whole interval."""
        return all(row.surely_met(self.limits) if sure else row.met for row in self.rows)

    def best(self, quantity: str = "time_us") -> Row | None:
        """Return the row with least of a quantity, of those that meet the limits; None: none."""
        return find_row((row for row in self.rows if row.met), quantity)

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table: a column a figure, `in.AXIS` for what varied."""
        return to_arrow(self)

    def write(self, path: str | Path) -> Path:
        """Write the rows as .parquet or .csv."""
        return write_table(self, path)


_NAMED: dict[str, dict[str, str]] = read_yaml_once(Path(__file__).with_name("columns.yaml"))
COLUMNS, FURTHER = _NAMED["every row"], _NAMED["some rows"]
"""Columns every row has, those only some have, and what is said where a name does not say it."""

_KINDS = {field.name: field.type for field in fields(Row)}
_TEXTS = (*(name for name, kind in _KINDS.items() if kind == "str"), "placement", "violations",
          "meets")
_WHOLE = ("ram_bytes", "flash_bytes", "ram_room_bytes", "flash_room_bytes")
_INTERVALS = {"time": "us", "energy": "uj"}
_OF_DUTY = {"mean": "mw", "life": "days"}


def list_columns(row: Row) -> JsonObject:
    """Return a row as one flat record: column name to value, None is not known."""
    record: JsonObject = {f"in.{axis}": value for axis, value in row.inputs}

    def take(*names: str) -> None:
        record.update((name, getattr(row, name)) for name in names)

    take("model", "board", "runtime", "clock_hz", "voltage_scale", "weights", "arena", "placement")
    for name, unit in (_INTERVALS | (_OF_DUTY if row.sleep else {})).items():
        take(f"{name}_{unit}")
        record |= name_ends(name, unit, getattr(row, name))
    if row.is_bound:
        record |= dict.fromkeys(("mean_mw", "mean_low_mw", "mean_high_mw", "mean_level")) | {
            "mean_least_mw": row.mean_mw}
    take(*(name for name in ("currents", "code", "life_basis") if getattr(row, name)))
    if row.accuracy_by:
        held = row.accuracy_range
        record |= {"accuracy": row.accuracy, "accuracy_low": held and held.low,
                   "accuracy_high": held and held.high, "accuracy_by": row.accuracy_by}
    if row.sleep:
        take("energy_day_j", "sleep", "wake_up_us", "wake_mw", "asleep_mw")
    take(*_WHOLE, "boundary", "overhead_us", "idle_mw", "price_usd", "price_of", "kit_usd", "basis",
         "calibration", "grade", "cell", "precision", "parameter_bytes", "failure", "reason")
    return record | {
        "violations": " ".join(row.violations), "meets": row.meets,
        "probability": row.probability, "front": row.front} | dict(row.variables)


def read_row(record: JsonObject) -> Row:
    """Return the row of a flat record of `list_columns`; raises `ValueError` for what is none."""
    for name, value in record.items():
        _check_value(name, value)
    if not record["failure"] and not 0 < (record["time_us"] or 0) < math.inf:
        raise ValueError(f"a row that is no failure has a time of {record['time_us']} us")
    figures: JsonObject = {}
    for name, kind in _KINDS.items():
        if kind in _READ:
            later = name in FURTHER or name == "idle_mw"
            figures[name] = _READ[kind](record.get(name) if later else record[name])
    figures |= {name: _read_interval(record, name, unit)
                for name, unit in (_INTERVALS | _OF_DUTY).items()}
    figures["mean_mw"] = record.get("mean_least_mw") or figures["mean_mw"]
    draw = tuple(map(float, record.get("draws") or ()))
    draw = draw if draw and all(map(math.isfinite, draw)) and read_draw(draw) else ()
    return Row(**figures, accuracy_range=_read_accuracy(record), draw=draw,
               inputs=tuple((name.removeprefix("in."), str(value)) for name, value in record.items()
                            if name.startswith("in.") and value is not None),
               violations=tuple((record["violations"] or "").split()),
               variables=tuple(sorted((name, float(value)) for name, value in record.items()
                                      if is_variable(name) and value is not None)))


_READ: Mapping[Any, Callable[[Any], object]] = {
    "str": lambda value: value or "", "float": lambda value: value or 0.0,
    "int | None": lambda value: None if value is None else int(value),
    "float | None": lambda value: value}
"""What a value of a column becomes, by the type of the row's field."""


def _read_interval(record: JsonObject, name: str, unit: str) -> Interval | None:
    low, high = (record.get(f"{name}_{end}_{unit}") for end in ("low", "high"))
    if low is None:
        return None
    if high is None or not low <= high or not 0 < (record[f"{name}_level"] or 0) < 1:
        raise ValueError(f"{name}: from {low} to {high} is not an interval")
    return Interval(low=low, high=high, level=record[f"{name}_level"])


def _read_accuracy(record: JsonObject) -> Interval | None:
    share, low, high = map(record.get, ("accuracy", "accuracy_low", "accuracy_high"))
    if low is None or high is None or share is None:
        return None
    if not 0 <= low <= share <= high <= 1:
        raise ValueError(f"accuracy: {share} from {low} to {high} is not a share with its interval")
    return Interval(low=low, high=high, level=LEVEL)


def is_variable(name: str) -> bool:
    """Whether a column is of what caches and memories were asked, of a cause or of set-up."""
    head, dot, _ = name.partition(".")
    return name in (SETUP, COLD_START) or (bool(dot) and head in PREFIXES)


def _check_value(name: str, value: Any) -> None:
    """Refuse what a column cannot hold: a file of another's making may hold anything."""
    if value is None or name.startswith("in."):
        return
    if name in _TEXTS:
        if not isinstance(value, str):
            raise ValueError(f"{name}: {value!r} is not text")
        if name == "violations" and not {*value.split()} <= {*QUANTITIES}:
            raise ValueError(f"{name}: {value!r}; accepted: {' '.join(QUANTITIES)}")
    elif (name in COLUMNS or name in FURTHER or is_variable(name)) and (
            isinstance(value, bool) or not isinstance(value, int | float)
            or not 0 <= value < LARGEST):
        raise ValueError(f"{name}: {value!r} is not a number from 0 on")


def to_arrow(table: Table) -> pyarrow.Table:
    """Return a table as Arrow; its limits, objectives and axes are metadata."""
    arrow = import_arrow()
    columns = {name: arrow.array(values, type_of(name))
               for name, values in _list_values(table).items()}
    return arrow.table(columns).replace_schema_metadata({"twin": json.dumps(list_settings(table))})


def list_settings(table: Table) -> JsonObject:
    """Return what a table is beside its rows."""
    return {"limits": asdict(table.limits), "objectives": table.objectives,
            "axes": table.axes, "schema": 1}


def type_of(name: str) -> str:
    """Return the type of a column by its name, as Arrow calls it."""
    if name.startswith("in.") or name in _TEXTS:
        return "string"
    return "int64" if name in _WHOLE else "float64"


def write_table(table: Table, path: str | Path) -> Path:
    """Write a table as Parquet or CSV by its suffix; the file appears whole or not at all.

    Raises
    ------
    UsageError
        For another suffix.
    ToolMissingError
        For Parquet without pyarrow.
    """
    path = Path(path)
    content = _as_csv(table) if check_file(path) == ".csv" else as_parquet(to_arrow(table))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return path


def as_parquet(arrow: pyarrow.Table) -> bytes:
    """Return the file of an Arrow table."""
    from pyarrow import parquet

    content = BytesIO()
    parquet.write_table(arrow, content)
    return content.getvalue()


def _as_csv(table: Table) -> bytes:
    """Return rows as CSV: texts in quotes, what is not known empty."""
    values = _list_values(table)
    return "".join(",".join(map(_as_cell, line)) + "\n" for line in (
        values, *zip(*values.values(), strict=True))).encode()


def _list_values(table: Table) -> dict[str, list[object]]:
    """Return the columns of all rows; None is not known."""
    records = [list_columns(row) for row in table.rows]
    return {name: [record.get(name) for record in records]
            for name in dict.fromkeys(name for record in records for name in record)}


def _as_cell(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else f"{value}"


def check_file(path: str | Path) -> str:
    """Return the suffix of a table's path; raises `UsageError` for one nothing is written as."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: a table ends in {' or '.join(SUFFIXES)}")
    return suffix


def read_objectives(names: Iterable[str]) -> tuple[str, ...]:
    """Return quantities by the names people give them: "time", "energy", "ram", ..."""
    found = []
    for name in names:
        quantity = OBJECTIVE_OF.get(str(name).strip().lower(), str(name).strip())
        if quantity not in QUANTITIES:
            raise UsageError(f"objective {name!r}; accepted: {', '.join(OBJECTIVE_OF)}")
        found.append(quantity)
    return tuple(dict.fromkeys(found))


def import_arrow() -> Any:
    """Return pyarrow; raises `ToolMissingError` without it."""
    with need_extra("tables of studies", "pyarrow", "study"):
        import pyarrow
    return pyarrow
