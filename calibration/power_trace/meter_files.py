"""Files of power meters: columns are found by their header, units by what stands in brackets.

A column without a unit is refused: its numbers could be a thousand times off either way. Joulescope
files are in SI units, and a column called Second, Volt or Watts names its own.

    ppk2          Timestamp(ms),Current(uA),D0-D7           nRF Connect Power Profiler
    joulescope    #time,current,voltage,power,charge,energy SI units
    stlink_v3pwr  a table of STM32CubeMonitor-Power, , or ; or tab between columns
    lpm01a        the same, or what the meter itself sends: 6409-07 for 6409e-7 A
    otii          Otii Arc and Ace: Timestamp, Main current, Main voltage in SI units, GPI1, GPI2
    ina226        (and ina228) as one logs it: time, shunt voltage or current, bus voltage or power
    scope         any scope's CSV (`scope_files`): volts across a shunt, or amperes of a probe
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy import ndarray

from calibration.errors import MeasurementError, MeterOptionError
from calibration.power_trace.scope_files import read_header
from calibration.power_trace.trace import METERS, Meter, PowerTrace
from hwmodels.errors import check_known, did_you_mean, reworded
from hwmodels.extensions import blamed, find_entries, take
from hwmodels.files import read_regular
from hwmodels.frozen import frozen, record

LARGEST_TRACE_BYTES = 1 << 28
"""A minute and a half of a PPK2's 100,000 samples a second, as text."""

METER_FILES = tuple(METERS)
"""Formats `read_meter_file` knows."""

GROUP = "twin.meters"
"""Entry points whose value is a module: `read_recording`, path to `PowerTrace`, and `ACCURACY`,
where its maker states how accurate it is."""

_SYMBOLS = {"time": "s", "current": "A", "voltage": "V", "power": "W", "shunt": "V"}
_PREFIXES = {"": 1.0, "m": 1e-3, "u": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "n": 1e-9}
_NAMED_BY_UNIT = ("second", "seconds", "amps", "volt", "volts", "watts")
_SI_METERS = ("joulescope", "otii")
_QUANTITIES = {"time": ("time", "timestamp", "t", "second", "seconds", "x-axis"),
               "current": ("current", "i", "amps", "main current", "arc main current",
                           "ace main current"),
               "voltage": ("voltage", "v", "volt", "volts", "vdd", "bus", "bus voltage", "vbus",
                           "main voltage", "arc main voltage", "ace main voltage"),
               "power": ("power", "p", "watts", "main power", "arc main power", "ace main power"),
               "shunt": ("shunt", "shunt voltage", "vshunt")}
_OTHERS = {
    "ppk2": (re.compile(r"^timestamp\s*\(ms\)", re.I), re.compile(r"\bcurrent\s*\(ua\)", re.I)),
    "otii": (re.compile(r"^timestamp\b(?!\s*\()", re.I), re.compile(r"\bmain current\b", re.I)),
    "joulescope": (re.compile(r"^#time\s*,", re.I), re.compile(r"\bcurrent\s*,\s*voltage\b", re.I))}
"""How headers of meters with columns of their own begin, and what else stands in them."""
_NAME = re.compile(r"^[#\s\"]*+([^(\[\"]++)(?:[(\[]([^)\]]*)[)\]])?[\"\s]*$")
_MARKS = re.compile(r"^(d\d(-d?\d)?|bits|gpio\d*|trigger|mark|logic|(arc|ace)?gpi\d*|in\d)$",
                    re.IGNORECASE)
_ASCII_DEC = re.compile(rb"^\s*(\d+)([+-]\d+)\s*$")
_TIME_STAMP = re.compile(rb"TimeStamp:\s*(\d{1,9})s\s+(\d{1,9})ms", re.IGNORECASE)
SUPPLY_SLACK = 0.05
"""How far a stated supply may be from a recording's own voltage, relative (assumed)."""
_MOST_DIGITS = 9
"""Of a mantissa the meter sends; it has four."""


@frozen
class _Column:
    place: int
    name: str
    unit: str


def read_meter_file(path: str | Path, meter: str, *, supply_v: float | None = None,
                    shunt_ohm: float | None = None, mark_bit: int | None = None,
                    sample_hz: float | None = None, column: str | None = None,
                    mark_column: str | None = None) -> PowerTrace:
    """Read a recording of a power meter.

    Parameters
    ----------
    meter
        One of `METER_FILES`, or of an installed package.
    supply_v
        Needed where the file has neither voltage nor power.
    shunt_ohm
        For "scope" and INA chips: the voltage column is across it.
    mark_bit
        Digital input that carried the board's mark; by default the first that changes.
    sample_hz
        Rate of a "lpm01a" stream without time stamps.
    column
        For "scope": name of the channel to read; by default the first in V or A.
    mark_column
        Name of the column of the board's mark, split midway between its extremes.

    Returns
    -------
    PowerTrace
        With the edges of the mark.

    Raises
    ------
    MeasurementError
        Naming file, line and what is missing.
    """
    path = Path(path)
    if meter not in METER_FILES:
        check_known("no meter", meter, (*METER_FILES, *find_entries(GROUP)), MeterOptionError)
        with blamed(GROUP, meter):
            trace: PowerTrace = take(GROUP, meter, "read_recording")(path)
        return trace
    for what, value, unit in (("--supply", supply_v, "V"), ("--shunt", shunt_ohm, "ohm"),
                              ("--rate", sample_hz, "Hz")):
        if value is not None and not 0 < value < float("inf"):
            raise MeterOptionError(f"{what} of {value:g} {unit}; accepted: above 0")
    with reworded(OSError, MeasurementError, f"{path}: cannot be read (", ")"):
        data = read_regular(path, LARGEST_TRACE_BYTES)
    if meter == "lpm01a" and any(map(_ASCII_DEC.match, data.split(b"\n", 200))):
        time_s, amps = _read_stream(data, path, sample_hz)
        volts = _need(supply_v, f"{path}: has no voltage; give the supply (--supply VOLT)")
        return _trace(time_s, amps * volts, meter, volts)
    text = data.decode("utf-8-sig", "replace")
    if meter == "scope":
        return _read_scope(text, path, supply_v, shunt_ohm, mark_bit, (column, mark_column))
    if column is not None:
        raise MeasurementError(f"{path}: columns are named for a scope; those of {meter} are "
                               "known, but the mark's (--mark-column)")
    return _read_table(text, path, meter, supply_v, shunt_ohm, (mark_bit, mark_column))


def _need(value: float | None, message: str) -> float:
    if value is None:
        raise MeterOptionError(message)
    return value


def _read_table(text: str, path: Path, meter: str, supply_v: float | None,
                shunt_ohm: float | None, mark: tuple[int | None, str | None]) -> PowerTrace:
    lines = text.splitlines()
    start, columns, marks, separator = _find_header(lines, path)
    _check_meter(lines[start - 1], meter, path, start)
    rows = _read_rows(lines, start, separator, path)
    si = meter in _SI_METERS
    wanted = {quantity: rows.numbers(column.place) * _scale(quantity, column, si, path, start)
              for quantity, column in columns.items()}
    if "shunt" in wanted and "current" not in wanted:
        wanted["current"] = wanted["shunt"] / _need(
            shunt_ohm, f"{path}: give the resistance of the shunt (--shunt OHM)")
    own_v = float(np.mean(wanted["voltage"])) if "voltage" in wanted else supply_v
    if supply_v and own_v and abs(own_v / supply_v - 1) > SUPPLY_SLACK:
        raise MeterOptionError(f"{path}: --supply {supply_v:g} V, but its voltage column is "
                               f"{own_v:.4g} V in the mean; accepted: none, or within "
                               f"{SUPPLY_SLACK:.0%} of it")
    if "power" in wanted:
        watts, volts = wanted["power"], own_v or 1.0
    elif "current" in wanted:
        volts = _need(own_v, f"{path}: has no voltage column; give the supply (--supply VOLT)")
        watts = wanted["current"] * wanted.get("voltage", volts)
    else:
        raise MeasurementError(f"{path}:{start}: no column of current or power")
    read = {column.place for column in columns.values()}
    others = {name: place for place, cell in enumerate(
        lines[start - 1].split(separator)) if place not in read and (name := _plain_name(cell))}
    if mark[1] is None:
        edges = _find_edges(rows, marks, mark[0], wanted["time"])
    else:
        edges = _split_edges(rows.numbers(_find_mark(mark[1], others, path, start)), wanted["time"])
    return _trace(wanted["time"], watts, meter, volts, edges, tuple(others))


def _plain_name(cell: str) -> str:
    match = _NAME.match(cell)
    return match[1].strip() if match else ""


def _find_mark(name: str, others: Mapping[str, int], path: Path, line: int) -> int:
    found = {one.lower(): place for one, place in others.items()}.get(name.strip().lower())
    if found is None:
        raise MeasurementError(f"{path}:{line}: no column {name!r}; "
                               + (did_you_mean(name, list(others)) if others else
                                  "it has none besides time and power"))
    return found


def _split_edges(values: ndarray, time_s: ndarray) -> ndarray:
    """Return the times at which a channel passed midway between its extremes."""
    return _edges_of(values > (values.min() + values.max()) / 2, time_s)


def _check_meter(header: str, meter: str, path: Path, line: int) -> None:
    """Refuse columns that are those of another meter: its accuracy is another one."""
    if meter.startswith("ina") and "d0" not in header.lower():
        return  # a log of one's own may call its columns anything
    for name, patterns in _OTHERS.items():
        if name != meter and all(one.search(header.strip()) for one in patterns):
            raise MeasurementError(f"{path}:{line}: the columns are those of {name}, not of "
                                   f"{meter}; accepted: --meter {name}")


def _read_scope(text: str, path: Path, supply_v: float | None, shunt_ohm: float | None,
                mark_bit: int | None, names: tuple[str | None, str | None]) -> PowerTrace:
    lines = text.splitlines()
    header = read_header(lines, path)
    _check_meter(lines[header.line - 1], "scope", path, header.line)
    channel = header.find(names[0], ("V", "A"), path)
    if not channel.symbol or channel.symbol == "s":
        raise MeasurementError(f"{path}:{header.line}: column {channel.name!r} has no unit; write "
                               f"it behind the name, such as {channel.name}(mV)")
    volts = _need(supply_v, f"{path}: give the supply voltage at the rail (--supply VOLT)")
    rows = _read_rows(lines, header.rows_from, header.separator, path)
    time_s = rows.numbers(header.time.place) * header.time.scale
    amps = rows.numbers(channel.place) * channel.scale
    if channel.symbol == "V":
        amps = amps / _need(shunt_ohm, f"{path}: give the resistance of the shunt the scope is "
                                       "across (--shunt OHM)")
    if names[1] is not None:
        edges = _split_edges(rows.numbers(header.find(names[1], ("V",), path).place), time_s)
    else:
        marks = [one.place for one in header.channels if _MARKS.match(one.name.replace(" ", ""))]
        edges = _find_edges(rows, marks, mark_bit, time_s)
    return _trace(time_s, amps * volts, "scope", volts, edges, tuple(
        one.name for one in header.channels if one is not channel))


def _find_header(lines: Sequence[str],
                 path: Path) -> tuple[int, dict[str, _Column], list[int], str]:
    """Return the header's line number, its columns, digital columns and the separator."""
    for number, line in enumerate(lines[:50], start=1):
        for separator in ("\t", ";", ","):
            columns, marks = {}, []
            for place, cell in enumerate(line.split(separator)):
                match = _NAME.match(cell)
                if match is None:
                    continue
                name, unit = match[1].strip().lower(), (match[2] or "").strip().lower()
                if _MARKS.match(name.replace(" ", "")):
                    marks.append(place)
                for quantity, names in _QUANTITIES.items():
                    if name in names and quantity not in columns:
                        columns[quantity] = _Column(place=place, name=name, unit=unit)
            if "time" in columns and len(columns) > 1:
                return number, columns, marks, separator
    raise MeasurementError(f"{path}: no header with a time and a current, voltage or power column "
                           "in the first 50 lines, such as Timestamp(ms),Current(uA)")


def _scale(quantity: str, column: _Column, si: bool, path: Path, line: int) -> float:
    """Return the factor from a column's unit to the one of the SI."""
    symbol = _SYMBOLS[quantity]
    units = {prefix + symbol.lower(): scale for prefix, scale in _PREFIXES.items()}
    if not column.unit and (si or column.name in _NAMED_BY_UNIT):
        return 1.0
    if not column.unit:
        raise MeasurementError(f"{path}:{line}: column {column.name!r} has no unit; write it "
                               f"behind the name, such as {column.name}(m{symbol})")
    check_known(f"{path}:{line}: column {column.name!r}: unit", column.unit, units,
                MeasurementError)
    return units[column.unit]


_WORD = np.dtype("U64")
"""Of a cell of text: longer ones are cut, for every row would be as wide as the widest."""


@record
class _Rows:
    lines: list[str]
    separator: str
    path: Path
    first_line: int

    def numbers(self, place: int) -> ndarray:
        """Return a column of numbers; refuses the first cell that is none, by its line."""
        with contextlib.suppress(ValueError):
            return self._column(place, np.float64)
        for number, line in enumerate(self.lines, start=self.first_line):
            try:
                float(line.split(self.separator)[place])
            except (IndexError, ValueError) as error:
                raise MeasurementError(f"{self.path}:{number}: column {place + 1} is not a "
                                       "number") from error
        raise MeasurementError(f"{self.path}: column {place + 1} is not a column of numbers")

    def words(self, place: int) -> ndarray:
        """Return a column of text; a cell that is not there is "0"."""
        with contextlib.suppress(ValueError):
            return np.char.strip(self._column(place, _WORD))
        rows = [line.split(self.separator) for line in self.lines]
        return np.array([row[place].strip() if place < len(row) else "0" for row in rows], _WORD)

    def _column(self, place: int, kind: type[np.generic] | np.dtype[np.str_]) -> ndarray:
        return np.loadtxt(self.lines, kind, delimiter=self.separator, usecols=place,
                          comments=None, ndmin=1)


def _read_rows(lines: Sequence[str], start: int, separator: str, path: Path) -> _Rows:
    filled = [line for line in lines[start:] if line.strip()]
    if len(filled) < 2:
        raise MeasurementError(f"{path}: {len(filled)} samples; two or more are needed")
    if separator == ";" and "," in filled[0]:  # a decimal comma
        filled = [line.replace(",", ".") for line in filled]
    return _Rows(filled, separator, path, start + 1)


def _find_edges(rows: _Rows, marks: Sequence[int], bit: int | None,
                time_s: ndarray) -> ndarray:
    """Return the times at which the mark changed, in the middle between two samples."""
    lanes: list[ndarray] = []
    for place in marks:
        cells = rows.words(place)
        width = cells.dtype.itemsize // np.dtype("U1").itemsize
        letters = np.ascontiguousarray(cells).view("U1").reshape(len(cells), width)
        if width >= 8 and np.isin(letters, ["0", "1", "-", ""]).all():  # D0 stands first
            lanes += [letters[:, i] == "1" for i in range(8)]
        else:
            with reworded(ValueError, MeasurementError,
                          f"{rows.path}: column {place + 1} is not a digital input (", ")"):
                values = np.where(cells == "", "0", cells).astype(np.float64)
                if not (np.abs(values) < 1 << 32).all():
                    raise ValueError("accepted: whole numbers of 32 bits")
                words = values.astype(np.int64)
            lanes += [words != 0] if words.max(initial=0) <= 1 else \
                [(words >> i & 1) != 0 for i in range(8)]
    moving = [lane for lane in lanes if lane.any() and not lane.all()]
    if bit is not None:
        if not 0 <= bit < len(lanes):
            raise MeasurementError(f"{rows.path}: {len(lanes)} digital inputs, none of number "
                                   f"{bit}")
        moving = [lanes[bit]]
    if not moving:
        return np.array([])
    return _edges_of(moving[0], time_s)


def _edges_of(level: ndarray, time_s: ndarray) -> ndarray:
    places = np.flatnonzero(np.diff(level.astype(int)))
    between: ndarray = (time_s[places] + time_s[places + 1]) / 2
    return between


def _read_stream(data: bytes, path: Path, sample_hz: float | None) -> tuple[ndarray, ndarray]:
    """Read what an X-NUCLEO-LPM01A sends in format ascii_dec (ST UM2269)."""
    amps: list[float] = []
    stamps: list[tuple[int, float]] = []
    for line in data.splitlines():
        if match := _ASCII_DEC.match(line):
            if len(match[1]) > _MOST_DIGITS or len(match[2]) > 3:
                raise MeasurementError(f"{path}: {len(match[0])} bytes of digits are no current; "
                                       "expected such as 6409-07")
            amps.append(int(match[1]) * 10.0 ** int(match[2]))
        elif stamp := _TIME_STAMP.search(line):
            stamps.append((len(amps), int(stamp[1]) + int(stamp[2]) * 1e-3))
    if sample_hz is None:
        samples, spans = np.subtract(stamps[-1], stamps[0]) if stamps else (0, 0)
        if not samples or spans <= 0:
            raise MeterOptionError(f"{path}: fewer than two time stamps; give the sampling "
                                   "frequency (--rate)")
        sample_hz = float(samples / spans)
    return np.arange(1, len(amps) + 1) / sample_hz, np.array(amps)


def _trace(time_s: ndarray, watts: ndarray, name: str, volts: float,
           edges_s: ndarray | None = None, columns: tuple[str, ...] = ()) -> PowerTrace:
    known = METERS[name]
    facts = Meter(name=name, kind=known.kind, gain_rel_sd=known.gain_rel_sd,
                  resolution_mw=(known.resolution_a or 0.0) * volts * 1e3)
    marks = tuple(edges_s * 1e6) if edges_s is not None else ()
    period = float(np.median(np.diff(time_s))) * 1e6 if len(time_s) > 1 else 0.0
    return PowerTrace(time_us=time_s * 1e6, power_mw=watts * 1e3, meter=facts, marks_us=marks,
                      mark_sd_us=period / np.sqrt(12), columns=columns)
