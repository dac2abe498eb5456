"""Results of a study: a row for every point, with its figures, intervals and limits.

A row is flat, so that a table is one Parquet or CSV file anything can read.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.fitting.intervals import LEVEL, Interval
from hwmodels.errors import need_extra
from hwmodels.files import write_whole
from twin.errors import UsageError
from twin.pricing.variables import COLD_START, PREFIXES, SETUP
from twin.studies.duty import SECONDS_A_DAY
from twin.studies.limits import LARGEST, Limits, probability_of_all, probability_within

if TYPE_CHECKING:
    import pyarrow

WORDS = {"time_us": "time", "energy_uj": "energy", "ram_bytes": "RAM", "flash_bytes": "flash",
         "price_usd": "price", "mean_mw": "mean power", "error": "error rate",
         "parameter_bytes": "parameters"}
QUANTITIES = tuple(WORDS)
"""What limits and objectives are of."""

UNCERTAIN = ("time_us", "energy_uj", "mean_mw", "error")
"""Those that have intervals."""

VERDICTS = ("yes", "may", "no")
"""Whether a row meets every limit; "may": only figures that are not known decide."""

SURE = 0.9
"""Probability of meeting the limits from which a row surely meets them."""

CELLS = {"built": "machine code read from a program", "counted": "instructions counted of the "
         "library's own code", "lowered": "loops lowered from the library's sources",
         "measured": "loops assumed, prices learnt from runs of this library on this board",
         "assumed": "loops assumed, no run of this library on this board"}
"""How well the code behind a row is known, best first."""

OBJECTIVE_OF = {"time": "time_us", "latency": "time_us", "energy": "energy_uj", "ram": "ram_bytes",
                "flash": "flash_bytes", "price": "price_usd", "usd": "price_usd",
                "power": "mean_mw", "days": "mean_mw", "parameters": "parameter_bytes",
                "accuracy": "error", "error": "error"}
"""Names of objectives as people give them."""

SUFFIXES = (".parquet", ".csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One point of a study, predicted or failed.

    Parameters
    ----------
    inputs : tuple of (str, str)
        Label by axis, as asked.
    model, board, runtime
        As deployed; of a failed row as asked.
    time_us, energy_uj
        Predicted; None is not known.
    overhead_us
        Of the time, what calls of kernels and launches take; set-up is in no figure.
    idle_mw
        Draw of the idle board that was added to an energy predicted above it; None: none was.
    basis
        What the intervals rest on: a key of `calibration.fitting.intervals.BASES`, "" for none.
    calibration
        Which learnt prices; "" for stated ones.
    accuracy
        Share of right answers, 0 to 1, where data or a function of the user's were given.
    accuracy_by
        What ran the network, or why its accuracy is not known.
    cell
        Key of `CELLS`; "" where it failed.
    precision
        Type of the network's weights: "int8", "mixed", "none"; "" where it cannot be read.
    parameter_bytes
        Of its constants, as stored; None where it cannot be read.
    ram_room_bytes, flash_room_bytes
        What the memories in use have.
    price_usd
        Of the chip, or as the user states it; None is not known.
    price_of
        What that is: "chip" and the kind of source, "as stated", "" where it is not known.
    kit_usd
        Of the whole board, which is compared with nothing; None is not known.
    boundary
        Where its energy is counted: "chip" at its rail, or "board" at its input.
    currents
        "as stated": its run current is drawn in every cycle as it is typed; "" for its file's.
    code
        Memory of the code, where it is not the one the board's file puts it in; else "".
    sleep
        State between inferences, "not known", or "" where no duty was asked.
    wake_up_us
        From that state, before an inference.
    mean_mw, life_days
        Of the duty: mean power, and days its cell lasts.
    variables : tuple of (str, float)
        What caches and memories were asked, time by cause, set-up: named by
        `twin.pricing.variables`, by name; what is not known is absent.
    failure, reason
        Kind of refusal ("does not fit", "runtime", ...) and its message; "" for none.
    violations
        Limited quantities whose prediction is above its limit, or not known.
    probability
        That all limits are met; None where that is not known.
    front
        `sweep.MARKS`: whether no row of its network is better in everything; "" where one is.
    """

    inputs: tuple[tuple[str, str], ...]
    model: str = ""
    board: str = ""
    runtime: str = ""
    clock_hz: float | None = None
    voltage_scale: str = ""
    weights: str = ""
    arena: str = ""
    time_us: float | None = None
    time: Interval | None = None
    energy_uj: float | None = None
    energy: Interval | None = None
    overhead_us: float | None = None
    idle_mw: float | None = None
    basis: str = ""
    calibration: str = ""
    accuracy: float | None = None
    accuracy_range: Interval | None = None
    accuracy_by: str = ""
    cell: str = ""
    precision: str = ""
    parameter_bytes: int | None = None
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    ram_room_bytes: int | None = None
    flash_room_bytes: int | None = None
    price_usd: float | None = None
    price_of: str = ""
    kit_usd: float | None = None
    boundary: str = ""
    currents: str = ""
    code: str = ""
    sleep: str = ""
    wake_up_us: float = 0.0
    mean_mw: float | None = None
    mean: Interval | None = None
    life_days: float | None = None
    life: Interval | None = None
    variables: tuple[tuple[str, float], ...] = ()
    failure: str = ""
    reason: str = ""
    violations: tuple[str, ...] = ()
    probability: float | None = None
    front: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Limited quantities that are not known."""
        return tuple(name for name in self.violations if getattr(self, name) is None)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.failure or len(self.unknown) < len(self.violations):
            return "no"
        return "may" if self.violations else "yes"

    @property
    def met(self) -> bool:
        """Whether it was predicted and every limit is met by the prediction."""
        return not self.failure and not self.violations

    @property
    def sure(self) -> bool:
        """Whether it meets its limits with a probability of `SURE`, or by figures known exactly."""
        return self.met and (self.probability is None or self.probability >= SURE)

    def surely_met(self, limits: Limits) -> bool:
        """Whether every limit is met by the whole interval; never without one of time or energy."""
        for name, limit in limits.after(self.wake_up_us).list_limits():
            bounds = self.bounds_of(name)
            if bounds is None or bounds[2] > limit or (
                    name in UNCERTAIN and not self.interval_of(name)):
                return False
        return self.met

    @property
    def placement(self) -> str:
        """Memories of weights and arena, "flash/sram", and of code that moved; "" if it failed."""
        return "/".join(filter(None, (self.weights, self.arena, self.code)))

    @property
    def error(self) -> float | None:
        """Share of wrong answers: what limits and objectives are of, as less is better."""
        return None if self.accuracy is None else 1 - self.accuracy

    def interval_of(self, quantity: str) -> Interval | None:
        """Return the interval of a quantity; None where there is none."""
        if quantity == "error":
            held = self.accuracy_range
            return held and Interval(low=1 - held.high, high=1 - held.low, level=held.level)
        return {"time_us": self.time, "energy_uj": self.energy, "mean_mw": self.mean,
                "life_days": self.life}.get(quantity)

    @property
    def energy_day_j(self) -> float | None:
        """Energy a day of the duty."""
        return None if self.mean_mw is None else self.mean_mw * SECONDS_A_DAY * 1e-3

    def compared_as(self, quantity: str) -> str:
        """Return what a quantity compares as: energies of an inference where they are counted."""
        return f"{quantity} of a {self.boundary}" * (quantity == "energy_uj") or quantity

    def competes(self, quantity: str, kind: str) -> bool:
        """Whether it meets its limits with a known quantity that compares as `kind`."""
        return (self.met and getattr(self, quantity) is not None
                and self.compared_as(quantity) == kind)

    def bounds_of(self, quantity: str) -> tuple[float, float, float] | None:
        """Return low, predicted and high of a quantity; None where it is not known."""
        point = getattr(self, quantity)
        if point is None:
            return None
        interval = self.interval_of(quantity)
        return (point, point, point) if interval is None else (interval.low, point, interval.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of a study, in the order of its points.

    Parameters
    ----------
    limits
        They were held to.
    objectives
        Quantities the front is over.
    """

    rows: tuple[Row, ...]
    limits: Limits = field(default_factory=Limits)
    objectives: tuple[str, ...] = ("time_us", "energy_uj")
    axes: tuple[str, ...] = ()

    @property
    def predicted(self) -> tuple[Row, ...]:
        """Rows that did not fail."""
        return tuple(row for row in self.rows if not row.failure)

    @property
    def failed(self) -> tuple[Row, ...]:
        """Rows that failed, each with its reason."""
        return tuple(row for row in self.rows if row.failure)

    @property
    def met(self) -> tuple[Row, ...]:
        """Rows that meet every limit by their prediction, surest first."""
        return tuple(sorted((row for row in self.rows if row.met),
                            key=lambda row: -(row.probability or 0.0)))

    def all_met(self, *, sure: bool = False) -> bool:
        """Whether every row meets the limits; `sure`: by the whole interval."""
        return all(row.surely_met(self.limits) if sure else row.met for row in self.rows)

    def best(self, quantity: str = "time_us") -> Row | None:
        """Return the row with least of a quantity, of those that meet the limits; None: none."""
        known = [row for row in self.rows if row.met and getattr(row, quantity) is not None]
        return min(known, key=lambda row: float(getattr(row, quantity)), default=None)

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table: a column a figure, `in.AXIS` for what varied."""
        return to_arrow(self)

    def write(self, path: str | Path) -> Path:
        """Write the rows as .parquet or .csv."""
        return write_table(self, path)


def judge(row: Row, limits: Limits) -> Row:
    """Return a row with what it violates and the probability of meeting every limit."""
    if row.failure:
        return dataclasses.replace(row, violations=(), probability=None)
    limits = limits.after(row.wake_up_us)
    broken = tuple(name for name, limit in limits.list_limits()
                   if (value := getattr(row, name)) is None or value > limit)
    return dataclasses.replace(row, violations=broken, probability=_chance(row, limits, broken))


def _chance(row: Row, limits: Limits, broken: Sequence[str]) -> float | None:
    if not limits or row.time_us is None:
        return None
    exact = [name for name in broken if name not in UNCERTAIN]
    if any(getattr(row, name) is not None for name in exact):
        return 0.0
    if exact:
        return None
    right = probability_within(limits.max_error, row.error, row.interval_of("error"))
    rest = probability_of_all(limits, time_us=row.time_us, energy_uj=row.energy_uj,
                              time=row.time, energy=row.energy, mean_mw=row.mean_mw,
                              mean=row.mean)
    return None if right is None or rest is None else right * rest


_WHOLE = ("ram_bytes", "flash_bytes", "ram_room_bytes", "flash_room_bytes")
_ACCURACY = ("accuracy", "accuracy_low", "accuracy_high")
_NUMBERS = (*_WHOLE, *_ACCURACY, "parameter_bytes", "clock_hz", "overhead_us", "idle_mw",
            "price_usd", "kit_usd", "probability", "energy_day_j", "wake_up_us",
            *(f"{name}_{part}" for name, unit in (
                ("time", "us"), ("energy", "uj"), ("mean", "mw"), ("life", "days"))
              for part in (unit, f"low_{unit}", f"high_{unit}", "level")))
_INTERVALS = (("time", "us"), ("energy", "uj"))
_OF_DUTY = (("mean", "mw"), ("life", "days"))
_LATER = ("boundary", "currents", "code", "sleep", "price_of", "cell", "accuracy_by",
          "precision")
"""Words that files of earlier versions do not have."""
_WORDS = ("model", "board", "runtime", "voltage_scale", "weights", "arena", "basis",
          "calibration", "failure", "reason", "front", *_LATER)


def list_columns(row: Row) -> dict[str, Any]:
    """Return a row as one flat record: column name to value, None is not known."""
    record: dict[str, Any] = {f"in.{axis}": value for axis, value in row.inputs}
    record |= {name: getattr(row, name) for name in (
        "model", "board", "runtime", "clock_hz", "voltage_scale", "weights", "arena", "placement")}
    for name, unit in (*_INTERVALS, *(_OF_DUTY if row.sleep else ())):
        interval: Interval | None = getattr(row, name)
        record |= {f"{name}_{unit}": getattr(row, f"{name}_{unit}"),
                   f"{name}_low_{unit}": None if interval is None else interval.low,
                   f"{name}_high_{unit}": None if interval is None else interval.high,
                   f"{name}_level": None if interval is None else interval.level}
    record |= {name: value for name in ("currents", "code") if (value := getattr(row, name))}
    if row.accuracy_by:
        held = row.accuracy_range
        record |= {"accuracy": row.accuracy, "accuracy_low": held and held.low,
                   "accuracy_high": held and held.high, "accuracy_by": row.accuracy_by}
    if row.sleep:
        record |= {"energy_day_j": row.energy_day_j, "sleep": row.sleep,
                   "wake_up_us": row.wake_up_us}
    last = ("boundary", "overhead_us", "idle_mw", "price_usd", "price_of", "kit_usd", "basis",
            "calibration", "cell", "precision", "parameter_bytes", "failure", "reason")
    return record | {name: getattr(row, name) for name in (*_WHOLE, *last)} | {
        "violations": " ".join(row.violations), "meets": row.verdict,
        "probability": row.probability, "front": row.front} | dict(row.variables)


def read_row(record: dict[str, Any]) -> Row:
    """Return the row of a flat record of `list_columns`; raises `ValueError` for what is none."""
    for name, value in record.items():
        _check_value(name, value)

    def interval(name: str, unit: str) -> Interval | None:
        low, high = (record.get(f"{name}_{end}_{unit}") for end in ("low", "high"))
        if low is None:
            return None
        if high is None or not low <= high or not 0 < (record[f"{name}_level"] or 0) < 1:
            raise ValueError(f"{name}: from {low} to {high} is not an interval")
        return Interval(low=low, high=high, level=record[f"{name}_level"])

    def whole(name: str) -> int | None:
        value = record.get(name) if name == "parameter_bytes" else record[name]
        return None if value is None else int(value)

    if not record["failure"] and not 0 < (record["time_us"] or 0) < math.inf:
        raise ValueError(f"a row that is no failure has a time of {record['time_us']} us")
    words: dict[str, Any] = {name: (record.get(name) if name in _LATER else record[name]) or ""
                             for name in _WORDS}
    sizes: dict[str, Any] = {name: whole(name) for name in (*_WHOLE, "parameter_bytes")}
    inputs = tuple((name.removeprefix("in."), str(value)) for name, value in record.items()
                   if name.startswith("in.") and value is not None)
    return Row(inputs=inputs, **words, **sizes, clock_hz=record["clock_hz"],
               time_us=record["time_us"], energy_uj=record["energy_uj"],
               time=interval("time", "us"), energy=interval("energy", "uj"),
               accuracy=record.get("accuracy"), accuracy_range=_read_accuracy(record),
               wake_up_us=record.get("wake_up_us") or 0.0, mean_mw=record.get("mean_mw"),
               mean=interval("mean", "mw"),
               life_days=record.get("life_days"), life=interval("life", "days"),
               overhead_us=record.get("overhead_us"), idle_mw=record.get("idle_mw"),
               price_usd=record["price_usd"], kit_usd=record.get("kit_usd"),
               probability=record["probability"],
               violations=tuple((record["violations"] or "").split()),
               variables=tuple(sorted((name, float(value)) for name, value in record.items()
                                      if is_variable(name) and value is not None)))


def _read_accuracy(record: dict[str, Any]) -> Interval | None:
    share, low, high = map(record.get, _ACCURACY)
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
    if name in _WORDS or name == "violations":
        if not isinstance(value, str):
            raise ValueError(f"{name}: {value!r} is not text")
        if name == "violations" and not {*value.split()} <= {*QUANTITIES}:
            raise ValueError(f"{name}: {value!r}; accepted: {' '.join(QUANTITIES)}")
    elif (name in _NUMBERS or is_variable(name)) and (
            isinstance(value, bool) or not isinstance(value, int | float)
            or not 0 <= value < LARGEST):
        raise ValueError(f"{name}: {value!r} is not a number from 0 on")


def to_arrow(table: Table) -> pyarrow.Table:
    """Return a table as Arrow; its limits, objectives and axes are metadata."""
    arrow = import_arrow()
    records = [list_columns(row) for row in table.rows]
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: arrow.array([record.get(name) for record in records], type_of(name))
               for name in names}
    return arrow.table(columns).replace_schema_metadata({"twin": json.dumps(list_settings(table))})


def list_settings(table: Table) -> dict[str, Any]:
    """Return what a table is beside its rows."""
    return {"limits": dataclasses.asdict(table.limits), "objectives": table.objectives,
            "axes": table.axes, "schema": 1}


def type_of(name: str) -> str:
    """Return the type of a column by its name, as Arrow calls it."""
    if name.startswith("in.") or name in (*_WORDS, "placement", "violations", "meets"):
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
    content = _as_csv(table) if check_file(path) == ".csv" else _as_parquet(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return path


def _as_parquet(table: Table) -> bytes:
    arrow = to_arrow(table)
    from pyarrow import parquet

    content = BytesIO()
    parquet.write_table(arrow, content)
    return content.getvalue()


def _as_csv(table: Table) -> bytes:
    """Return rows as CSV: texts in quotes, what is not known empty."""
    records = [list_columns(row) for row in table.rows]
    names = [*dict.fromkeys(name for record in records for name in record)]
    lines: list[list[object]] = [[*names], *([record.get(name) for name in names]
                                             for record in records)]
    return "".join(",".join(map(_as_cell, line)) + "\n" for line in lines).encode()


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
