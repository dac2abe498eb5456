"""Options the verbs share, and how their text becomes values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from twin.errors import UsageError

if TYPE_CHECKING:
    from twin import Deployment

Model = Annotated[str, typer.Argument(
    metavar="MODEL", help="A .tflite or .onnx file, or a network of `twin models`.")]
Models = Annotated[list[str], typer.Argument(
    metavar="MODEL...", help="Files .tflite or .onnx, or networks of `twin models`.")]
ModelsOrNone = Annotated[list[str] | None, typer.Argument(
    metavar="MODEL...", help="Files .tflite or .onnx, or networks of `twin models`; none with "
                             "--elf.")]
BoardNames = Annotated[list[str], typer.Option(
    "--board", "-b", metavar="BOARD", help="A board of `twin boards`, or a board file; may be "
                                           "given several times.")]
BoardName = Annotated[str, typer.Option(
    "--board", "-b", metavar="BOARD", help="A board of `twin boards`, or a board file.")]
RuntimeName = Annotated[str | None, typer.Option(
    "--runtime", metavar="NAME", help="A kernel library of `twin runtimes`, as name@version.")]
ClockText = Annotated[str | None, typer.Option(
    "--clock", metavar="FREQUENCY", help="CPU clock, such as 80MHz, at the lowest voltage scale "
                                      "that allows it.")]
WeightsRole = Annotated[str | None, typer.Option(
    "--weights", metavar="ROLE", help="Memory of the weights: flash, sram, tcm ..., its name, or "
                                    "an NPU's pool.")]
ArenaRole = Annotated[str | None, typer.Option(
    "--arena", metavar="ROLE", help="Memory of the arena: sram, tcm ..., its name, or an "
                                  "NPU's pool.")]
AssumeUnsupported = Annotated[str | None, typer.Option(
    "--assume-unsupported", metavar="copy",
    help="Price operators nobody knows as memory copies, marked as assumed.")]
Cold = Annotated[bool, typer.Option("--cold", help="First inference, caches empty.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to stdout instead of tables.")]
CalibrationChoice = Annotated[str, typer.Option(
    "--calibration", metavar="auto|none|FILE",
    help="Learnt prices: those shipped for this board and runtime, none (what datasheets say), or "
         "an overlay of `twin calibrate`.")]
AUTO = "auto"
"""The default of every verb that prices."""

MaxMs = Annotated[str | None, typer.Option(
    "--max-ms", metavar="MS", help="Longest time of an inference, in milliseconds, or as 0.2s.")]
MaxUj = Annotated[str | None, typer.Option(
    "--max-uj", metavar="UJ", help="Most energy of an inference, in microjoules, or as 5mJ.")]
MaxRam = Annotated[str | None, typer.Option(
    "--max-ram", metavar="SIZE", help="Most RAM, such as 64KiB.")]
MaxFlash = Annotated[str | None, typer.Option(
    "--max-flash", metavar="SIZE", help="Most flash for weights and code, such as 512KiB.")]
MaxUsd = Annotated[str | None, typer.Option(
    "--max-usd", metavar="USD", help="Highest price, in US dollars.")]

PlotFile = Annotated[str | None, typer.Option(
    "--plot", metavar="FILE", help="Write a picture: .png, .svg or .pdf.")]

Anyway = Annotated[bool, typer.Option(
    "--anyway", help="Compare even what is of another network, board or clock.")]

ElfFile = Annotated[str | None, typer.Option(
    "--elf", metavar="FILE", help="Instead of MODEL: a linked program of a Cortex-M or of "
                                  "RISC-V, run under emulation and billed as it is.")]
Begin = Annotated[str | None, typer.Option(
    "--from", metavar="SYMBOL", help="With --elf: where the billed part begins; ends where that "
                                     "function returns.")]
End = Annotated[str | None, typer.Option(
    "--to", metavar="SYMBOL", help="With --from: where it ends instead.")]
Call = Annotated[str | None, typer.Option(
    "--call", metavar="SYMBOL", help="With --elf: a function called once main is reached, or "
                                     "--from in a file without symbols.")]
Nth = Annotated[str | None, typer.Option(
    "--nth", metavar="N", help="With --from: which time it is reached.")]
LayersBy = Annotated[str, typer.Option(
    "--layers", metavar="PATTERNS", help="With --elf: functions whose calls are layers, such as "
                                         "'run_*,pool*', a shipped set, auto or none.")]
MemoryFiles = Annotated[list[str] | None, typer.Option(
    "--memory", metavar="FILE@ADDRESS", help="With --elf: what is found at an address; may be "
                                             "given several times.")]
Registers = Annotated[list[str] | None, typer.Option(
    "--set-register", metavar="REG=VALUE", help="With --elf: r0, sp, a0 (RISC-V) ... as the billed "
                                                "part begins, or 0xADDRESS of a peripheral's.")]
Limit = Annotated[str | None, typer.Option(
    "--limit", metavar="N", help="With --elf: instructions after which it is given up.")]
Flames = Annotated[str | None, typer.Option(
    "--flamegraph", metavar="FILE", help="With --elf: layers, functions and causes as .svg, or as "
                                         ".speedscope.json.")]

SETTINGS_HELP = (
    "A path of the board file, `runtime`, `placement.weights`, `placement.arena`, `network.width` "
    "and others of the network, `kernels.level` ... or, with an accelerator, `offload.host`; "
    "`twin explain paths BOARD` lists them all; may be given several times.")


def deploy(model: str, board: str, *, runtime: str | None, clock: str | None, weights: str | None,
           arena: str | None, assume_unsupported: str | None,
           settings: list[str] | None = None, calibration: str = AUTO) -> Deployment:
    """Put a model on a board as the options of a command say."""
    from twin.verbs.deploying import deploy_as_told

    return deploy_as_told(
        model, board, runtime=runtime, clock_hz=parse_clock(clock), weights=weights, arena=arena,
        assume_unsupported=assume_unsupported, calibration=calibration,
        changes=parse_settings(settings) if settings else None)


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


def parse_limit(name: str, text: str | None) -> float | None:
    """Read a limit, a bare number in the unit of its option; None where not given.

    Parameters
    ----------
    name : str
        Key of `twin.studies.limits.UNIT_OF`.
    text : str or None
        "200" or "0.2s" of --max-ms.
    """
    from twin.verbs.check import read_limit

    return None if text is None else read_limit(name, text)


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


def check_picture(plot: str | None) -> None:
    """Refuse a picture that could not be written, before anything is computed."""
    if plot is not None:
        from pathlib import Path

        from twin.reports.figures.canvas import check_suffix

        check_suffix(Path(plot))
        check_outputs(plot)


def check_outputs(*files: str | None, folder: str | None = None) -> None:
    """Refuse files and a folder that could not be written, before anything is computed."""
    if folder is None and not any(files):
        return
    from twin.reports.export import check_place

    for file in filter(None, files):
        check_place(file)
    if folder is not None:
        check_place(folder, folder=True)


Keep = Annotated[str | None, typer.Option(
    "--keep", metavar="DIR", help="Keep what was read, what stood between and the result in a new "
                                  "folder below DIR; `twin sessions`, `twin bundle`.")]
SetPaths = Annotated[list[str] | None, typer.Option(
    "--set", metavar="PATH=VALUE", help=SETTINGS_HELP)]


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
