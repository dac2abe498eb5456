"""How something is measured, on what, and what is printed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.board.file import change_board, load_board
from twin.api.requests.measurement import MeasureOptions
from twin.errors import UsageError

if TYPE_CHECKING:
    from calibration.collecting.collector import Progress
    from calibration.measurement.measurement import Measurement
    from calibration.virtual_board import Launched
    from hwmodels.board.facts import Board
    from twin.attribution.measured_layers import MeasuredNetwork

HOST = "host"
"""This machine, as a board."""


class Watcher:
    """Called as a measurement goes on; this one prints nothing."""

    def progress(self, progress: Progress, describe: Callable[[], MeasuredNetwork] | None) -> None:
        """Take how far it is; `describe`, which takes a while, says what was found so far."""

    def remark(self, text: str) -> None:
        """Take what to know: trouble on the line, what the quality of samples says."""

    def keep(self, folder: Path, resumable: bool) -> None:
        """Take where samples are of a measurement that ends early."""

    def energy(self, measurement: Measurement, folder: Path) -> None:
        """Take what a power meter saw, and where it was written."""


def aim(board: str, options: MeasureOptions | None, *, reads_image: bool = False) -> MeasureOptions:
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
    if virtual != HOST and (options.backend is not None or options.cpu is not None):
        raise UsageError("--backend and --cpu are of this machine; accepted: -b host")
    if options.backend is not None and (options.image or options.resume or options.power
                                        or options.mask or options.counters):
        raise UsageError("--backend: runs no firmware; accepted beside it: --runs, --warmup, "
                         "--input, --cpu, -o")
    if options.port is not None and virtual is not None:
        raise UsageError("--port and --virtual exclude each other")
    if options.image is not None and virtual is None and not reads_image:
        raise UsageError("--image is for --virtual, or a network on a real board, which is "
                         "flashed: twin firmware flash")
    if clock_hz is not None and virtual is not None and not virtual.startswith("unicorn"):
        raise UsageError(f"--clock {clock_hz * 1e-6:g}MHz: {virtual} runs at a clock of its own; "
                         "accepted: a unicorn-* board, or no --clock")
    return options


@contextmanager
def launch_virtual(name: str | None, board: Board | None,
                   make: Callable[[str], Path]) -> Iterator[Launched | None]:
    """Start a virtual board with an image; None for a real one.

    Parameters
    ----------
    board : Board or None
        Whose memories it gets.
    make : callable
        Returns the image for it.
    """
    if name is None:
        yield None
        return
    from calibration.virtual_board import check_virtual_board, launch

    check_virtual_board(name)
    elf = make(name)
    with launch(name, elf, board=board) as made:
        yield replace(made, image=elf)


def find_machine(board: str, options: MeasureOptions) -> Board | None:
    """Return the board at its clock; None for this machine."""
    if options.virtual == HOST:
        return None
    loaded = load_board(board)
    return loaded if options.clock_hz is None else change_board(
        loaded, {f"clocks.{loaded.core.clock}.frequency_hz": options.clock_hz})
