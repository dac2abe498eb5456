"""Boards one can run today: emulated cores and spoilt lines, launched and ended by the toolkit.

    with launch("unicorn-m4", "firmware.elf", board=load_board("nucleo_l4r5zi")) as made:
        with open_link(made.port) as link: ...

Every counter of theirs is simulated and says so.
"""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from calibration.collecting.deadline import Deadline
from calibration.errors import LinkError, LinkLostError
from calibration.virtual_board.host import describe_host, run_host
from calibration.virtual_board.image_file import check_image
from calibration.virtual_board.qemu import MACHINES, run_qemu
from hwmodels.board.facts import Board
from hwmodels.errors import ToolMissingError, check_known, say_install
from hwmodels.extensions import blamed, find_entries, take
from hwmodels.frozen import frozen

GROUP = "twin.emulators"
"""Entry points whose value is a module: `PORT`, the firmware's port whose images it runs, and
`run`, a context manager of image and board that yields `Launched`."""

ENDING_S = 0.2
"""A line is gone a moment before its process has ended."""

Scales = Mapping[str, tuple[str, float]]


@frozen
class VirtualBoard:
    """A board that can be launched.

    Parameters
    ----------
    name
        As asked for; also the firmware's port for it.
    emulator
        "qemu", "unicorn" or "none".
    counts
        What its counters are, and whether simulated or measured.
    missing
        What has to be installed; "" when it can run.
    """

    name: str
    core: str
    emulator: str
    counts: str
    missing: str


@frozen
class Launched:
    """A running virtual board.

    Parameters
    ----------
    port
        Its serial line.
    scales
        Timer frequency in Hz -> counters derived from the board's, for a `Campaign`.
    failure
        What went wrong inside, or None.
    gauges
        Values that only grow and unit by name, for a `Campaign`.
    environment
        What else a header should say.
    clocked
        Whether its clock is the board's: QEMU's is of no board.
    """

    port: str
    scales: Callable[[int], Scales] = field(default=lambda timer_hz: {})
    failure: Callable[[], str | None] = field(default=lambda: None)
    gauges: Callable[[], Mapping[str, tuple[float, str]]] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    image: Path | None = None
    clocked: bool = True


def list_virtual_boards() -> tuple[VirtualBoard, ...]:
    """Return every virtual board and this machine, those that can run first."""
    from calibration.virtual_board.unicorn_board import list_emulated

    def missing(*names: str) -> str:
        there = all(find_spec(name) for name in ("serial", "cobs", *names))
        return "" if there else f"the extra 'boards': {say_install('boards')}"

    found = [VirtualBoard(name=name, emulator="unicorn", core=core,
                          counts="cycles of planted costs, 8-bit DWT events (simulated)",
                          missing=missing("unicorn", "capstone"))
             for name, core in list_emulated().items()]
    for machine in MACHINES.values():
        there = which(machine.program) is not None
        found.append(VirtualBoard(name=machine.port, emulator="qemu", core=machine.core,
                                  counts="exact instructions (simulated)",
                                  missing=missing() if there else machine.advice))
    found += [VirtualBoard(name=name, core=take(GROUP, name, "PORT"), emulator="extension",
                           counts="as its package says (simulated)", missing=missing())
              for name in find_entries(GROUP)]
    found.append(VirtualBoard(
        name="host", core=platform.machine(), emulator="none", missing=missing(),
        counts="nanoseconds, and what the kernel gives (measured)"))
    return tuple(sorted(found, key=lambda board: (bool(board.missing), board.name)))


def check_virtual_board(name: str) -> None:
    """Refuse a name that is none, or a board whose emulator is not installed.

    Raises
    ------
    LinkError
        Naming those there are.
    ToolMissingError
        Naming what to install.
    """
    found = {one.name: one.missing for one in list_virtual_boards()}
    check_known("no virtual board", name, found, LinkError)
    if found[name]:
        raise ToolMissingError(f"virtual board {name} needs: {found[name]}")


def repeats(name: str) -> bool:
    """Whether a virtual board's counts are the same each time: QEMU's and Unicorn's are."""
    from calibration.virtual_board.unicorn_board import list_emulated

    return name in MACHINES or name in list_emulated()


def port_of(name: str) -> str:
    """Return the firmware's port whose images a virtual board runs: of ours its own name."""
    return str(take(GROUP, name, "PORT")) if name in find_entries(GROUP) else name


@contextlib.contextmanager
def launch(name: str, image: str | Path, *, board: Board | None = None) -> Iterator[Launched]:
    """Run an image on a virtual board for as long as the context lasts.

    Parameters
    ----------
    name
        One of `list_virtual_boards`, or "host".
    image
        ELF file built for that port.
    board
        Whose costs an emulated core is given; by default every instruction takes a cycle.

    Raises
    ------
    LinkError
        When there is no such board or the emulator refuses.
    ToolMissingError
        When it is not installed.
    """
    check_virtual_board(name)
    check_image(image, port_of(name))
    with contextlib.ExitStack() as stack:
        made = _start(name, Path(image), board, stack)
        try:
            yield made
        except LinkError as error:
            why = _await_failure(made, patiently=isinstance(error, LinkLostError))
            if why is None:
                raise
            raise LinkError(f"{error}; {why}") from error


def _await_failure(made: Launched, *, patiently: bool) -> str | None:
    """Return what ended the board's process; None where it goes on."""
    deadline = Deadline(ENDING_S) if patiently else None
    while deadline is not None and made.failure() is None and not deadline.passed:
        time.sleep(0.01)
    return made.failure()


def _start(name: str, image: Path, board: Board | None, stack: contextlib.ExitStack) -> Launched:
    if name == "host":
        host, gauges = stack.enter_context(run_host(image))
        gaps = {f"no_{counter}": why for counter, why in gauges.missing.items()}
        return Launched(port=host.port, gauges=gauges.read, failure=host.failure,
                        environment={**describe_host(), **gaps})
    if name in MACHINES:
        machine = stack.enter_context(run_qemu(name, image))
        return Launched(port=machine.port, failure=machine.failure, clocked=False,
                        scales=lambda timer_hz: {
            "timer_ticks": ("instructions", MACHINES[name].instructions_per_tick(timer_hz))})
    if name in find_entries(GROUP):
        with blamed(GROUP, name):
            started: Launched = stack.enter_context(take(GROUP, name, "run")(image, board))
        return started
    from calibration.virtual_board.costs import costs_of
    from calibration.virtual_board.unicorn_board import run_unicorn

    costs = None if board is None else costs_of(board)
    emulated = stack.enter_context(run_unicorn(name, image, costs=costs))
    return Launched(port=emulated.port, failure=lambda: emulated.failure, gauges=emulated.gauges)
