"""Options several requests share, and how their text becomes values."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated

from twin.errors import UsageError
from twin.requests.request import Option, Request

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.network.graph import Graph

# Annotations of requests are looked at when a class is made, so none is postponed here.

AUTO = "auto"
"""The default of every command that prices."""

SETTINGS_HELP = (
    "A path of the board file, `runtime`, `placement.weights`, `placement.arena`, `network.width` "
    "and others of the network, `kernels.level` ... or, with an accelerator, `offload.host`; "
    "`twin explain paths BOARD` lists them all; may be given several times.")


def parse_quantity(text: str, dimension: str, option: str) -> float:
    """Read a number with a unit, as board files write them.

    Parameters
    ----------
    text : str
        "280MHz", "64KiB"; bytes may be a bare number.
    dimension : str
        Key of `hwmodels.quantities.UNITS`: "hz", "bytes" ...
    option : str
        Named in the error.

    Returns
    -------
    float
        In the base unit.

    Raises
    ------
    UsageError
        When it is not a positive number with one of the units.
    """
    from hwmodels.quantities import UNITS, read_quantity, suggest_unit

    number, unit = read_quantity(text, dimension) or (0.0, "")
    # A bare 280 could be meant as hertz or megahertz; bytes have one reading.
    if not 0 < number < math.inf or not (unit or dimension == "bytes"):
        raise UsageError(f"{option} {text!r} is not understood; accepted: a number above zero with "
                         f"one of {', '.join(UNITS[dimension])}{suggest_unit(text, dimension)}")
    return number


def parse_clock(clock: str | None, option: str = "--clock") -> float | None:
    """Read a clock; None where it is not given."""
    from hwmodels.quantities import FASTEST_HZ

    hertz = None if clock is None else parse_quantity(clock, "hz", option)
    if hertz is not None and hertz > FASTEST_HZ:
        raise UsageError(f"{option} {clock}: nothing here runs at that; accepted: up to "
                         f"{FASTEST_HZ / 1e9:g}GHz")
    return hertz


def parse_supply(supply: str | None) -> float | None:
    """Read volts, a bare number or one with a unit; None where not given."""
    from hwmodels.quantities import UNITS, read_quantity

    if supply is None:
        return None
    read = read_quantity(supply, "v")
    if read is None:
        raise UsageError(f"--supply {supply!r} is not understood; accepted: volts, or a number "
                         f"with one of {', '.join(UNITS['v'])}")
    return read[0]


def parse_settings(settings: list[str]) -> dict[str, object]:
    """Read PATH=VALUE words into a mapping.

    Raises
    ------
    UsageError
        When there is none, one has no path or value, or a path is set twice.
    """
    changes: dict[str, object] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        path, value = path.strip(), value.strip()
        if not (path and equals and value):
            raise UsageError(f"--set {setting!r}: PATH=VALUE is expected, such as "
                             "clocks.cpu.frequency_hz=80MHz")
        if path in changes:
            raise UsageError(f"--set {path}: is set twice")
        changes[path] = value
    if not changes:
        raise UsageError("nothing to change: give --set PATH=VALUE, such as "
                         "--set clocks.cpu.frequency_hz=80MHz or --set placement.arena=tcm")
    return changes


def parse_prices(texts: list[str]) -> dict[str, float]:
    """Read NAME=USD words."""
    from twin.studies.prices import read_prices

    return read_prices(texts)


def split_words(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return words, given as a list or as "a,b"."""
    if isinstance(given, str):
        return tuple(word.strip() for word in given.split(",") if word.strip())
    return tuple(given)


MODEL_FILES = (".tflite", ".onnx", ".json")
BOARD_FILES = OVERLAY_FILES = (".yaml", ".yml")

Words = str | Iterable[str]
Model = Annotated[str | PathLike[str], Option(
    "", "MODEL", "A .tflite or .onnx file, or a network of `twin models`.", text=str,
    files=MODEL_FILES)]
Models = Annotated["str | PathLike[str] | Graph | Iterable[str | PathLike[str] | Graph]", Option(
    "", "MODEL...", "Files .tflite or .onnx, or networks of `twin models`.", text=list[str])]
BoardNames = Annotated[
    "str | PathLike[str] | Board | Iterable[str | PathLike[str] | Board]", Option(
        "--board -b", "BOARD", "A board of `twin boards`, or a board file; may be given several "
        "times.", text=list[str])]
BoardName = Annotated[str, Option(
    "--board -b", "BOARD", "A board of `twin boards`, or a board file.", files=BOARD_FILES)]
Runtime = Annotated[str | None, Option(
    "--runtime", "NAME", "A kernel library of `twin runtimes`, as name@version.")]
Clock = Annotated[float | None, Option(
    "--clock", "FREQUENCY", "CPU clock, such as 80MHz, at the lowest voltage scale that allows it.",
    text=str, parse=parse_clock)]
Weights = Annotated[str | None, Option(
    "--weights", "ROLE", "Memory of the weights: flash, sram, tcm ..., its name, or an NPU's "
    "pool.")]
Arena = Annotated[str | None, Option(
    "--arena", "ROLE", "Memory of the arena: sram, tcm ..., its name, or an NPU's pool.")]
AssumeUnsupported = Annotated[str | None, Option(
    "--assume-unsupported", "copy",
    "Price operators nobody knows as memory copies, marked as assumed.")]
Temperature = Annotated[str, Option(
    "--cold", None, "First inference, caches empty.", text=bool, default=False,
    parse=lambda cold: "cold" if cold else "warm")]
Calibration = Annotated[str | PathLike[str], Option(
    "--calibration", "auto|none|FILE", "Learnt prices: those shipped for this board and runtime, "
    "none (what datasheets say), or an overlay of `twin calibrate`.", text=str,
    files=OVERLAY_FILES)]
Changes = Annotated[Mapping[str, object] | None, Option(
    "--set", "PATH=VALUE", SETTINGS_HELP, text=list[str], parse=parse_settings)]
Prices = Annotated[Mapping[str, float] | None, Option(
    "--price", "NAME=USD", "Your own price of a board or chip; may be given several times.",
    text=list[str], parse=parse_prices)]
Anyway = Annotated[bool, Option(
    "--anyway", None, "Compare even what is of another network, board or clock.")]
Limit = float | str | None


@dataclass(frozen=True, kw_only=True)
class Placed(Request):
    """Which library runs a network, at which clock, from which memories."""

    runtime: Runtime = None
    clock_hz: Clock = None
    weights: Weights = None
    arena: Arena = None


@dataclass(frozen=True, kw_only=True)
class Deployed(Placed):
    """Where a network is put, and with which changes."""

    assume_unsupported: AssumeUnsupported = None
    changes: Changes = None


@dataclass(frozen=True, kw_only=True)
class Priced(Request):
    """Which prices a bill has, and whether caches are empty."""

    temperature: Temperature = "warm"
    calibration: Calibration = AUTO


@dataclass(frozen=True, kw_only=True)
class Limited(Request):
    """Limits of an inference: bare numbers in ms, uJ and bytes, or texts with a unit."""

    max_ms: Annotated[Limit, Option(
        "--max-ms", "MS", "Longest time of an inference, in milliseconds, or as 0.2s.",
        text=str)] = None
    max_uj: Annotated[Limit, Option(
        "--max-uj", "UJ", "Most energy of an inference, in microjoules, or as 5mJ.",
        text=str)] = None
    max_ram: Annotated[Limit, Option(
        "--max-ram", "SIZE", "Most RAM, such as 64KiB.", text=str)] = None
    max_flash: Annotated[Limit, Option(
        "--max-flash", "SIZE", "Most flash for weights and code, such as 512KiB.",
        text=str)] = None


@dataclass(frozen=True, kw_only=True)
class LimitedAndPriced(Limited):
    """Limits of an inference and of the board's price."""

    max_usd: Annotated[Limit, Option(
        "--max-usd", "USD", "Highest price, in US dollars.", text=str)] = None
