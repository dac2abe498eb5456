"""CSV files of oscilloscopes: names and units stand in rows above the numbers, or in facts.

- `Time (s),Channel 1 (V)`: Digilent, Saleae, LabVIEW ...
- `Second,Volt`, or `x-axis,1` above `second,Volt`: Keysight, Siglent
- `Horizontal Units,s` ... `TIME,CH1`: Tektronix
- `X,CH1,Start,Increment` above `Sequence,Volt,0,1e-6`: Rigol, whose rows are numbered
- `Time,Channel A` above `(ms),(mV)`: PicoScope
- `in s,C1 in V`: Rohde & Schwarz
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibration.errors import MeasurementError
from hwmodels.errors import did_you_mean
from hwmodels.frozen import frozen

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e-3, "u": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "n": 1e-9,
             "p": 1e-12}
_WORDS = {"second": "s", "seconds": "s", "sec": "s", "volt": "V", "volts": "V", "amp": "A",
          "amps": "A", "ampere": "A"}
_TIMES = ("time", "t", "x", "x-axis", "second", "seconds", "sequence", "source", "timestamp")
_UNIT = re.compile(r"\s*(?:[(\[]\s*)?([a-zA-Z\u00b5\u03bc]{1,7})\s*(?:[)\]]\s*)?$")
_BRACKET = re.compile(r"^(?P<name>[^(\[]*)[(\[](?P<unit>[^)\]]*)[)\]]\s*$")
_IN = re.compile(r"^(?P<name>.*)\bin (?P<unit>\S+)$")
_FACT = re.compile(r"^(?P<axis>horizontal|vertical) units?$", re.IGNORECASE)
_NUMBER = re.compile(r"^[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?$")
_HEAD = 60
"""Lines among which the numbers begin."""


@frozen
class Channel:
    """A column of a scope's file.

    Parameters
    ----------
    place
        From 0.
    symbol
        Of the SI unit: "s", "V" or "A"; "" where none is stated.
    scale
        From the file's unit to that of the SI.
    """

    place: int
    name: str
    symbol: str
    scale: float


@frozen
class ScopeHeader:
    """Where a file's numbers begin, and what its columns are.

    Parameters
    ----------
    line
        Of the names, from 1.
    rows_from
        Lines before the first row of numbers.
    separator
        Between cells.
    time
        First column; its scale is a row's length where rows are numbered.
    """

    line: int
    rows_from: int
    separator: str
    time: Channel
    channels: tuple[Channel, ...]

    def find(self, name: str | None, symbols: Sequence[str], path: Path) -> Channel:
        """Return a channel by name, or the first in one of these units.

        Raises
        ------
        MeasurementError
            When there is none, or its unit is not stated.
        """
        found = [one for one in self.channels if one.name.lower() == name.strip().lower()] \
            if name is not None else [
                *(one for one in self.channels if one.symbol in symbols), *self.channels]
        if not found:
            raise MeasurementError(f"{path}:{self.line}: no column {name or 'of a voltage'!r}; "
                                   + did_you_mean(name or "", [one.name for one in self.channels]))
        return found[0]


def read_header(lines: Sequence[str], path: Path) -> ScopeHeader:
    """Find the names, units and first row of a scope's file.

    Raises
    ------
    MeasurementError
        When there are no rows of numbers, or a time whose unit is not stated.
    """
    for separator in ("\t", ";", ","):
        table = [[cell.strip().strip('"').strip() for cell in line.split(separator)]
                 for line in lines[:_HEAD]]
        first = next((place for place, cells in enumerate(table) if _is_row(cells)), None)
        if first is not None:
            break
    else:
        raise MeasurementError(f"{path}: no rows of a time and a voltage in the first {_HEAD} "
                               "lines, such as a scope's CSV has them")
    names = first - 1
    while names >= 0 and not any(table[names]):
        names -= 1
    if names < 0:
        raise MeasurementError(f"{path}:1: no names above the numbers; write them there, such as "
                               "Time (s),Voltage (V)")
    units: list[str] = []
    if names and _are_units(table[names]) and (
            _are_bracketed(table[names]) or _are_names(table[names - 1], len(table[first]))):
        units, names = table[names], names - 1
    facts = _read_facts(table[:names])
    channels = [_channel(place, name, units[place] if place < len(units) else "", facts)
                for place, name in enumerate(table[names])
                if name or (place < len(units) and units[place])]
    numbered = _read_increment(table[names], units)
    time = channels[0] if numbered is None else replace(channels[0], symbol="s", scale=numbered)
    if time.symbol != "s":
        raise MeasurementError(f"{path}:{names + 1}: column {time.name!r} has no unit; write it "
                               f"behind the name, such as {time.name}(ms)")
    return ScopeHeader(line=names + 1, rows_from=first, separator=separator, time=time,
                       channels=tuple(one for one in channels[1:] if one.name.lower() not in
                                      ("start", "increment")))


def _is_row(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and bool(_NUMBER.match(cells[0])) and bool(_NUMBER.match(cells[1]))


def _are_units(cells: Sequence[str]) -> bool:
    words = [cell for cell in cells if cell and not _NUMBER.match(cell)]
    return bool(words) and all(cell.lower() == "sequence" or _parse_unit(cell)[0] for cell in words)


def _are_names(cells: Sequence[str], count: int) -> bool:
    return sum(bool(cell) for cell in cells) >= min(count, 2) and cells[0].lower() in _TIMES


def _are_bracketed(cells: Sequence[str]) -> bool:
    """Whether all a row has is units in brackets: names, in whatever language, stand above it."""
    return all(cell[0] + cell[-1] in ("()", "[]") for cell in cells if cell)


def _parse_unit(text: str) -> tuple[str, float]:
    """Return SI symbol and factor of a unit; "" where it is none."""
    match = _UNIT.match(text)
    word = match[1] if match else ""
    if word.lower() in _WORDS:
        return _WORDS[word.lower()], 1.0
    for symbol in ("s", "V", "A"):
        if word[-1:].lower() == symbol.lower() and word[:-1] in _PREFIXES:
            return symbol, _PREFIXES[word[:-1]]
    return "", 1.0


def _read_facts(rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return units that stand in lines of their own, by axis."""
    return {match["axis"].lower(): cells[1] for cells in rows
            if len(cells) > 1 and (match := _FACT.match(cells[0].rstrip(":")))}


def _channel(place: int, name: str, below: str, facts: dict[str, str]) -> Channel:
    match = _BRACKET.match(name) or _IN.match(name)
    plain = match["name"].strip() if match else name
    labels = (match["unit"] if match else "", below, name,
            facts.get("vertical" if place else "horizontal", ""))
    symbol, scale = next((found for text in labels if (found := _parse_unit(text))[0]), ("", 1.0))
    return Channel(place=place, name=plain or name, symbol=symbol, scale=scale)


def _read_increment(names: Sequence[str], values: Sequence[str]) -> float | None:
    """Return the seconds between two numbered rows; None where rows have times."""
    below = dict(zip((name.lower() for name in names), values, strict=False))
    text = below.get("increment", "")
    return float(text) if _NUMBER.match(text) else None
