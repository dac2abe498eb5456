"""How something is measured, on what, and what is told meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.board.file import load_board
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.collecting.collector import Progress
    from calibration.measurement.measurement import Measurement
    from hwmodels.board.facts import Board
    from twin.attribution.measured_layers import MeasuredNetwork

HOST = "host"
"""This machine, as a board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRuns:
    """Silent runs for a power meter, marked by the pin.

    Parameters
    ----------
    runs : int
        Of the network.
    layers : bool
        Toggle the pin at every layer.
    repeat : bool
        Then each layer by itself, repeated for a second; needs `bus`.
    bus : str, optional
        Read an INA226 meanwhile, such as "/dev/i2c-1".
    shunt_ohm : float, optional
        Of the INA226.
    """

    runs: int
    layers: bool = False
    repeat: bool = False
    bus: str | None = None
    shunt_ohm: float | None = None

    def __post_init__(self) -> None:
        """Refuse meters that exclude each other."""
        check_power(self.runs, self.bus, self.shunt_ohm, repeat=self.repeat)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """How a network is measured, and on what.

    Parameters
    ----------
    port : str, optional
        Serial device, pty, or socket://HOST:PORT; by default the only board that is plugged in.
    virtual : str, optional
        A virtual board instead, or "host".
    image : str or path, optional
        Firmware for the virtual board; by default it is built. Of a real one what was flashed, to
        read from it where things lie; by default looked for where images are built.
    runs, warmup : int
        Runs that are kept (None: 100, of micro-benchmarks 5); runs before the warm ones.
    counters : tuple of str, optional
        Event counters; by default all, in passes.
    input_file : str or path, optional
        Raw bytes of the network's input; by default seeded noise.
    mask, fixed : bool
        Mask interrupts instead of counting them; exactly `runs` runs, whatever their spread.
    baud : int
        Rate of a serial device.
    clock_hz, supply_v : float, optional
        Of the core, by default the board's; supply voltage, for the record.
    power : PowerRuns, optional
        Then silent runs for a power meter.
    output : str or path, optional
        Folder for cold/ and warm/; by default under out/.
    resume : bool
        Go on with a measurement in `output` that was interrupted.
    probe : bool
        Listen to a program of your own that times itself with twin_probe.h; `runs` inferences (by
        default 20) are waited for.
    """

    port: str | None = None
    virtual: str | None = None
    image: str | PathLike[str] | None = None
    runs: int | None = None
    warmup: int = 10
    counters: tuple[str, ...] | None = None
    input_file: str | PathLike[str] | None = None
    mask: bool = False
    fixed: bool = False
    baud: int = 115200
    clock_hz: float | None = None
    supply_v: float | None = None
    power: PowerRuns | None = None
    output: str | PathLike[str] | None = None
    resume: bool = False
    probe: bool = False


class Watcher:
    """Told of a measurement as it goes on; this one keeps silent."""

    def progress(self, progress: Progress, describe: Callable[[], MeasuredNetwork] | None) -> None:
        """Take how far it is; `describe`, which takes a while, says what was found so far."""

    def remark(self, text: str) -> None:
        """Take what to know: trouble on the line, what the quality of samples says."""

    def keep(self, folder: Path, resumable: bool) -> None:
        """Take where samples are of a measurement that ends early."""

    def energy(self, measurement: Measurement, folder: Path) -> None:
        """Take what a power meter saw, and where it was written."""


def check_power(runs: int | None, bus: str | None, shunt_ohm: float | None, *,
                repeat: bool) -> None:
    """Refuse a power meter that lacks what it needs; raises `UsageError`."""
    from calibration.measurement.measurement import MOST_RUNS_ASKED

    if bus is not None and (shunt_ohm is None or runs is None):
        raise UsageError("--ina226 needs --shunt OHM and --power RUNS")
    if repeat and bus is None:
        raise UsageError("--power-repeat needs --ina226 BUS")
    if runs is not None and not 1 <= runs <= MOST_RUNS_ASKED:
        raise UsageError(f"--power {runs}: accepted: from 1 to {MOST_RUNS_ASKED:,}")


def aim(board: str, options: MeasureOptions | None, *,
        reads_image: bool = False) -> MeasureOptions:
    """Return options with the virtual board `host` means; refuse what contradicts itself.

    Parameters
    ----------
    board : str
        Name or file of the board, or "host".
    options : MeasureOptions, optional
        As they were asked for.
    reads_image : bool
        Whether an image of a real board is read.
    """
    options = options or MeasureOptions()
    if board == HOST and options.port is None:
        options = replace(options, virtual=HOST)
    virtual, clock_hz = options.virtual, options.clock_hz
    if options.port is not None and virtual is not None:
        raise UsageError("--port and --virtual exclude each other")
    if options.image is not None and virtual is None and not reads_image:
        raise UsageError("--image is for --virtual, or a network on a real board, which is "
                         "flashed: twin firmware flash")
    if clock_hz is not None and virtual is not None and not virtual.startswith("unicorn"):
        raise UsageError(f"--clock {clock_hz * 1e-6:g}MHz: {virtual} runs at a clock of its own; "
                         "accepted: a unicorn-* board, or no --clock")
    return options


def find_machine(board: str, options: MeasureOptions) -> Board | None:
    """Return the board at its clock; None for this machine."""
    if options.virtual == HOST:
        return None
    loaded = load_board(board)
    if options.clock_hz is None:
        return loaded
    name = f"clocks.{loaded.core.clock}.frequency_hz"
    return load_board(board, overrides={name: options.clock_hz})
