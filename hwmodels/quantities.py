"""Quantities as people write and read them: a number with a unit, `not known` where nobody knows.

`280MHz`, `32KiB` and `5 mJ` are read into the unit a name ends in (_hz, _bytes, _pj); written, the
unit is chosen by size, and parts are rounded so that they still add up. What has a key is listed
or summed by it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

Value = TypeVar("Value")

Amount = TypeVar("Amount", int, float)

Ends = tuple[float, float]
"""Of an interval: low and high."""

UNITS: dict[str, dict[str, str]] = {
    "hz": {"Hz": "1", "kHz": "1e3", "MHz": "1e6", "GHz": "1e9"},
    "bytes": {"B": "1", "KiB": "1024", "MiB": "1048576", "GiB": "1073741824"},
    "v": {"V": "1", "mV": "1e-3"},
    "ns": {"ns": "1", "us": "1e3", "ms": "1e6", "s": "1e9"},
    "period": {"us": "1e3", "ms": "1e6", "s": "1e9", "min": "6e10", "h": "3.6e12", "d": "8.64e13"},
    "mah": {"mAh": "1", "Ah": "1e3"},
    "j": {"J": "1", "kJ": "1e3", "mWh": "3.6", "Wh": "3600"},
    "mw": {"mW": "1", "uW": "1e-3", "W": "1e3"},
    "days": {"d": "1", "h": "0.041666666666666664", "y": "365.25"},
    "ma": {"mA": "1", "uA": "1e-3", "A": "1e3"},
    "ma_per_mhz": {"mA/MHz": "1", "uA/MHz": "1e-3"},
    "pc": {"pC": "1", "nC": "1e3"},
    "pj": {"pJ": "1", "fJ": "1e-3", "nJ": "1e3", "uJ": "1e6", "mJ": "1e9"},
    "": {},
}
"""Units a value may be written in, by what the name of its key ends in, as factors to that."""

SLOWEST_HZ = 32e3
"""No part computes below its watch crystal: a lower number lacks its unit."""
FASTEST_HZ = 20e9
"""Nor above this."""

_CASELESS = ("hz", "bytes")
"""Dimensions whose units may be in any case, but for mHz, millihertz; and MJ is not mJ."""

_WRITTEN = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)"
                      r"(?:\s*([A-Za-z/]+))?\s*")

Cell = str | int | float | None
"""Of a table; None is not known and stays empty."""

Record = dict[str, Cell]
"""A row of a table, by column."""

NOT_KNOWN = "not known"
"""How a missing value prints; never 0."""

_TIME_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))
_ENERGY_UNITS = ((1e6, "J"), (1e3, "mJ"), (1.0, "uJ"), (1e-3, "nJ"))
_POWER_UNITS = ((1e3, "W"), (1.0, "mW"), (1e-3, "uW"))
_FREQUENCY_UNITS = ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz"))
_SIZE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_COUNT_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def read_quantity(text: str, dimension: str) -> tuple[float, str] | None:
    """Read a number, with or without a unit.

    Parameters
    ----------
    text
        "280MHz", "0.28 GHz", "64KiB", "7"; units of frequency and size in upper or lower case,
        others as `UNITS` has them.
    dimension
        Key of `UNITS`.

    Returns
    -------
    tuple of (float, str) or None
        The number in the dimension's own unit, exact as the decimal fraction written, and the
        unit as `UNITS` has it, "" for none; None when the text is no such quantity. Whether a
        number may go without a unit is the caller's to say.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    if not match[2]:
        return float(Decimal(match[1])), ""
    for unit, factor in UNITS[dimension].items():
        if unit == match[2] or (dimension in _CASELESS and match[2] != "mHz"
                                and unit.lower() == match[2].lower()):
            return float(Decimal(match[1]) * Decimal(factor)), unit
    return None


def suggest_unit(text: str, dimension: str) -> str:
    """Return a hint naming the unit that was nearly written, to end a refusal; "" for none.

    Parameters
    ----------
    text
        What was refused: "256KB", "2MJ".
    dimension
        Key of `UNITS`.
    """
    match = _WRITTEN.fullmatch(text)
    written = (match[2] or "") if match else ""
    for unit in UNITS[dimension]:
        low = unit.lower()
        if written != unit and written.lower() in (low, low.replace("i", ""),
                                                   low.removesuffix("ib")):
            return f"; {written} is none of them, did you mean {unit}?"
    return ""


def format_time(time_us: float | None) -> str:
    """Write a time in microseconds with the unit that suits it: "12.3 ms"."""
    return _with_unit(time_us, _TIME_UNITS)


def format_energy(energy_uj: float | None) -> str:
    """Write an energy in microjoules with the unit that suits it: "1.25 mJ"."""
    return _with_unit(energy_uj, _ENERGY_UNITS)


def format_power(power_mw: float | None) -> str:
    """Write a power in milliwatts with the unit that suits it: "1.07 mW"."""
    return _with_unit(power_mw, _POWER_UNITS)


def format_frequency(frequency_hz: float | None) -> str:
    """Write a frequency in hertz with the unit that suits it: "120 MHz"."""
    return _with_unit(frequency_hz, _FREQUENCY_UNITS)


def format_count(count: float | None) -> str:
    """Write a count with a metric suffix and three digits: "2.66M"."""
    return _with_unit(count, _COUNT_UNITS, gap="")


def format_size(size_bytes: float | None) -> str:
    """Write a size in bytes with a binary unit: "23.4 KiB"."""
    return _with_unit(size_bytes, _SIZE_UNITS)


def format_number(value: float | None, decimals: int = 0) -> str:
    """Write a number with thousands separated and fixed decimals; None is `not known`."""
    return NOT_KNOWN if value is None else f"{value:,.{decimals}f}"


def format_used(used_bytes: int, size_bytes: int) -> str:
    """Write bytes of a room, and their share of it."""
    return f"{used_bytes:,} of {size_bytes:,} bytes ({format_share(used_bytes, size_bytes)})"


def format_share(part: float, whole: float) -> str:
    """Write a share in percent: "4.2 %"; of nothing it is "0 %"."""
    return f"{significant(100 * part / whole)} %" if whole else "0 %"


def significant(value: float, digits: int = 3) -> str:
    """Write a number to so many significant digits, never in powers of ten."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{round(value, decimals):,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


Settings = Mapping[str, object]
"""Changes of a what-if: values by path, as `clocks.cpu.frequency_hz`."""


def write_setting(path: str, value: object) -> str:
    """Write a change as a command takes it, PATH=VALUE: a frequency in megahertz."""
    hertz = isinstance(value, int | float) and path.endswith("frequency_hz")
    return f"{path}={value / 1e6:.12g}MHz" if hertz else f"{path}={value}"  # type: ignore[operator]


def join_words(words: Sequence[str]) -> str:
    """List words as a sentence does: "a, b and c"."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def _with_unit(value: float | None, units: tuple[tuple[float, str], ...], gap: str = " ") -> str:
    if value is None:
        return NOT_KNOWN
    # 999.6 k must read 1 M: a unit is chosen when the rounded figure reaches one of it.
    factor, unit = next((pair for pair in units if float(f"{abs(value) / pair[0]:.3g}") >= 1),
                        units[-1])
    return f"{significant(value / factor)}{gap}{unit}".strip()


def list_first(names: Iterable[object], most: int) -> str:
    """List the first names and say how many more there are."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def read_count(text: str, most: int) -> int | None:
    """Return a whole number from 0 to `most` written in digits alone; None for anything else."""
    digits = text.lstrip("0") or text[:1]
    if not (text.isascii() and text.isdigit()) or len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if number <= most else None


def drop_none(values: Iterable[Value | None]) -> list[Value]:
    """Return the values that are known, in their order."""
    return [value for value in values if value is not None]


def sum_known(values: Sequence[float | None]) -> float | None:
    """Return the sum of values; None where one of them is not known."""
    return None if None in values else math.fsum(drop_none(values))


def list_by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key in their order, keys in the order they are first seen."""
    lists: dict[Key, list[Value]] = {}
    for key, value in pairs:
        lists.setdefault(key, []).append(value)
    return lists


def sum_by_key(pairs: Iterable[tuple[Key, Amount]]) -> dict[Key, Amount]:
    """Return the sum of amounts of each key, keys in the order they are first seen."""
    sums: dict[Key, Amount] = {}
    for key, amount in pairs:
        sums[key] = sums.get(key, 0) + amount
    return sums


def apportion(values: Iterable[float], total: int | None = None, *, alike: bool = False,
              ) -> list[int]:
    """Round non-negative values to integers that sum to the rounded sum (largest remainder).

    Parameters
    ----------
    total
        The sum to reach; by default the rounded sum of the values.
    alike
        Whether equal values stay equal where others can take the difference instead.

    Returns
    -------
    list of int
        As many as values, none below zero, summing to `total`; a zero stays zero where it can.

    Raises
    ------
    ValueError
        When the total is negative.
    """
    numbers = list(values)
    floors = [math.floor(number) for number in numbers]
    target = round(math.fsum(numbers)) if total is None else total
    by_remainder = sorted(range(len(numbers)), key=lambda i: (floors[i] - numbers[i], i))
    short = target - sum(floors)
    if alike:
        groups = list_by_key((f"{numbers[i]:.9g}", i) for i in by_remainder)
        whole: list[int] = []
        for group in sorted(groups.values(), key=lambda group: (
                numbers[group[0]] - floors[group[0]] < 0.5, -len(group))):
            if len(whole) + len(group) <= short and numbers[group[0]] > floors[group[0]]:
                whole += group
        by_remainder = [*whole, *(i for i in by_remainder if i not in whole)]
    if numbers and short > 0:
        for turn in range(short):
            floors[by_remainder[turn % len(numbers)]] += 1
    elif numbers and short < 0:
        if target < 0:
            raise ValueError(f"no non-negative integers sum to {target}")
        for _ in range(-short):
            floors[max((i for i, floor in enumerate(floors) if floor),
                       key=lambda i: (floors[i] - numbers[i], -i))] -= 1
    return floors
