"""Options of requests' fields, and their values, read from what a user typed."""

import math
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, TypeVar

from hwmodels.frozen import record
from hwmodels.quantities import FASTEST_HZ, UNITS, Settings, read_quantity, suggest_unit
from twin.errors import UsageError

Given = TypeVar("Given")

FIELD = object()
"""The command line's default is that of the field."""


@record
class Option:
    """How a field of a request is given.

    Parameters
    ----------
    names : str
        "--board -b"; empty for an argument that goes by its place.
    metavar, help : str or None
        As the help shows them.
    text : type or None
        What the command line takes; by default a text where `parse` reads it, several
        of a mapping, the field's own type
        else, or a text in place of one that no command line has.
    parse : callable or None
        Makes the field's value of it; raises `UsageError`.
    default : object
        Of the command line, where the field's is not of its type.
    least, most : float or None
        The range of a number.
    files : tuple of str or None
        Endings of files the value may name; empty: it is always a file or a folder.
    """

    names: str = ""
    metavar: str | None = None
    help: str | None = None
    text: Any = None
    parse: Callable[[Any], Any] | None = None
    default: Any = FIELD
    least: float | None = None
    most: float | None = None
    files: tuple[str, ...] | None = None

    def read(self, text: Any) -> Any:
        """Return the field's value of what was typed."""
        return text if self.parse is None else self.parse(text)


def option(default: Given, /, names: str, metavar: str | None = None, help: str | None = None,
           **further: Any) -> Given:
    """Return a field of a request with its default and its `Option`."""
    given: Given = field(default=default, metadata={
        Option: Option(names, metavar, help, **further)})
    return given


def required(names: str = "", metavar: str | None = None, help: str | None = None,
             **further: Any) -> Any:
    """Return a field that every request has to be given, with its `Option`."""
    return field(metadata={Option: Option(names, metavar, help, **further)})


def parse_quantity(text: str, dimension: str, option: str) -> float:
    """Read a number with a unit, as board files write them.

    Parameters
    ----------
    text : str
        "280MHz", "64KiB"; bytes may be a bare number.
    dimension : str
        Key of `hwmodels.quantities.UNITS`: "hz", "bytes" ...

    Returns
    -------
    float
        In the base unit.

    Raises
    ------
    UsageError
        When it is not a positive number with one of the units.
    """
    number, unit = read_quantity(text, dimension) or (0.0, "")
    # A bare 280 could be meant as hertz or megahertz; bytes have one reading.
    if not 0 < number < math.inf or not (unit or dimension == "bytes"):
        raise UsageError(f"{option} {text!r} is not understood; accepted: a number above zero with "
                         f"one of {', '.join(UNITS[dimension])}{suggest_unit(text, dimension)}")
    return number


class Frequency(float):
    """Hertz, and how a user wrote them: a column of a table shows what was typed."""

    text: str = ""


def parse_clock(clock: str, option: str = "--clock") -> Frequency:
    """Read a clock; raises `UsageError`."""
    hertz = Frequency(parse_quantity(clock, "hz", option))
    if hertz > FASTEST_HZ:
        raise UsageError(f"{option} {clock}: nothing here runs at that; accepted: up to "
                         f"{FASTEST_HZ / 1e9:g}GHz")
    hertz.text = clock
    return hertz


def parse_plain(text: str, dimension: str, option: str) -> float:
    """Read a bare number in the first unit of a dimension, or one with a unit; `UsageError`."""
    read = read_quantity(text, dimension)
    if read is None:
        raise UsageError(f"{option} {text!r} is not understood; accepted: a number, bare or with "
                         f"one of {', '.join(UNITS[dimension])}")
    return read[0]


def read_pairs(settings: Iterable[str], form: str, example: str) -> dict[str, str]:
    """Read the words of --set; raises `UsageError` for one of another form, and one set twice."""
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        name, value = name.strip(), value.strip()
        if not (name and equals and value):
            raise UsageError(f"--set {setting!r}: {form} is expected, such as {example}")
        if name in found:
            raise UsageError(f"--set {name}: is set twice")
        found[name] = value
    return found


def parse_settings(settings: list[str]) -> Settings:
    """Read PATH=VALUE words, and names of features, into a mapping.

    Raises
    ------
    UsageError
        When there is none, one has no path or value, or a path is set twice.
    """
    features = [name for word in settings if "=" not in word for name in split_words(word)]
    if features:
        from twin.deployment.features import switch_on

        settings = [*(word for word in settings if "=" in word),
                    *(f"{path}={value}" for path, value in switch_on(
                        features, "--set: PATH=VALUE is expected, or a feature").items())]
    changes: Settings = {**read_pairs(settings, "PATH=VALUE", "clocks.cpu.frequency_hz=80MHz")}
    if not changes:
        raise UsageError("nothing to change: give --set PATH=VALUE, such as "
                         "--set clocks.cpu.frequency_hz=80MHz or --set placement.arena=tcm")
    return changes


def parse_prices(texts: list[str]) -> dict[str, float]:
    """Read NAME=USD words."""
    from twin.studies.limits import read_prices

    return read_prices(texts)


def parse_named(texts: list[str], *form: str) -> dict[str, str]:
    """Read NAME=VALUE words; `form` is the option, the form of a value, an example."""
    from twin.studies.limits import read_named

    return read_named(texts, *form)


def split_words(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return words, given as a list or as "a,b"; numbers are hertz."""
    if isinstance(given, str):
        return tuple(word.strip() for word in given.split(",") if word.strip())
    return tuple(word if isinstance(word, str) else f"{word}Hz"
                 for word in (given if isinstance(given, Iterable) else [given]))
