"""`twin doctor`: which tools and ports there are, and what to type for a board's first results.

The page docs/first-light.md is made of it: python -m twin.api.commands.doctor > docs/first-light.md
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from os import fspath
from pathlib import Path

from calibration.collecting.link import PortInfo, list_ports
from hwmodels.board.facts import Board
from hwmodels.board.file import list_boards, load_board
from hwmodels.core.file import list_built_cores
from hwmodels.errors import TwinError, need_extra
from hwmodels.files import File
from hwmodels.isa import MACHINES
from hwmodels.kernels.library import open_library
from twin.api.commands.boards import list_virtual_boards
from twin.api.requests import takes
from twin.api.requests.boards import Doctor
from twin.errors import UsageError
from twin.program.image.compile import ports
from twin.program.image.compile.build import find_missing
from twin.program.image.compile.flashing import configure_openocd, rehearse
from twin.reports.outcomes import Check, Checkup

EXTRAS = {"plot": "matplotlib", "onnx": "onnx", "boards": "serial"}
"""A package of each extra."""

FLASHERS = {"PYOCD": ("pyocd", "pip install pyocd"),
            "OPENOCD": ("openocd", "apt-get install openocd"),
            "ESPTOOL": ("esptool", "pip install esptool"),
            "CUBEPROG": ("STM32_Programmer_CLI",
                         "comes with STM32CubeProgrammer, bin/ on the PATH")}
"""By what a port's settings name, of which any one will do."""

VERSION_S = 20


@takes(Doctor)
def doctor(asked: Doctor) -> Checkup:
    """Look for tools, ports and permissions, and say what to type for a board's first results.

    No board is touched: tools that write flash are asked whether they know the part.
    """
    board = None if asked.board is None else load_board(asked.board)
    checks = [*_check_machine(), *_check_tools(board), _try("emulators", _list_emulators),
              *_check_ports(needed=board is not None)]
    if board is not None:
        checks += _check_board(board)
    return Checkup(checks=tuple(checks), board=None if board is None else board.name,
                   steps=tuple(list_steps(board, asked.board) if board else _FIRST_STEPS))


_FIRST_STEPS = (("twin predict kws", "what a network takes on five boards; needs nothing else"),
                ("twin boards", "the boards there are"),
                ("twin doctor -b nucleo_l4r5zi", "what one of them needs, and what to type"))


def _try(name: str, look: Callable[[], str], *, needed: bool = False) -> Check:
    """Look for something; what is missing says what to type."""
    try:
        return Check(name=name, found=look(), needed=needed)
    except TwinError as error:
        return Check(name=name, found="", advice=str(error), needed=needed)


def _check_machine() -> Iterator[Check]:
    yield Check(name="twin", found=f"{version('embedded-twin')}, Python "
                                   f"{platform.python_version()}, {platform.platform()}")
    loops, why = open_library()
    yield Check(name="compiled loops", found="" if loops is None else "of these sources",
                advice=f"{why}: slow without; python -m hwmodels.kernels")
    clock = time.get_clock_info("perf_counter")
    yield Check(name="host clock", found=f"{clock.implementation}, {1e9 * clock.resolution:g} ns")
    for extra, package in EXTRAS.items():
        yield _try(f"extra {extra}", partial(_load_extra, extra, package))


def _load_extra(extra: str, package: str) -> str:
    with need_extra("its commands", package, extra):
        import_module(package)
    return package


def _check_tools(board: Board | None) -> Iterator[Check]:
    """Look for all tools, or for those a board needs: its compiler, and one that flashes it."""
    flashers, arches = dict(FLASHERS), list(MACHINES)
    if board is not None:
        try:
            port = _port_of(board)
        except TwinError:  # No port of our firmware: it is built in a project of the user's.
            return
        arches = [port.arch]
        flashers = {key: tool for key, tool in FLASHERS.items() if key in port.settings
                    or (port.derived and key == "OPENOCD")}
    absent = not any(shutil.which(tool) for tool, _ in flashers.values())
    needed = [("make", "apt-get install make"),
              *(MACHINES[one].compiler for one in arches if MACHINES[one].compiler)]
    for place, (tool, advice) in enumerate((*needed, *flashers.values())):
        path = shutil.which(tool)
        yield Check(name=tool, found="" if path is None else _ask_version(path), advice=advice,
                    needed=board is not None and (place < len(needed) or (
                        absent and place == len(needed))))


def _ask_version(path: str) -> str:
    """Return the first line a tool says of its version, else where it is."""
    try:
        answer = subprocess.run((path, "--version"), capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=VERSION_S, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return path
    lines = [line.strip() for line in (answer.stdout + answer.stderr).splitlines()
             if any(map(str.isdigit, line))]
    return lines[0] if lines and not answer.returncode else path


def _list_emulators() -> str:
    """Name the virtual boards that can run; where none can, raise what the first needs."""
    boards = list_virtual_boards()
    names = [one.name for one in boards if not one.missing]
    if not names:
        raise UsageError(boards[0].missing)
    return ", ".join(names)


def _check_ports(*, needed: bool) -> Iterator[Check]:
    try:
        found = list_ports()
    except TwinError as error:
        yield Check(name="serial ports", found="", advice=str(error), needed=needed)
        return
    if not found:
        yield Check(name="serial ports", found="", needed=needed,
                    advice="none: plug the board in (a data cable); without one: --virtual")
    for port in found:
        usable = os.access(port.device, os.R_OK | os.W_OK)
        yield Check(name=f"port {port.device}", needed=needed, advice=_grant(port),
                    found=(port.probe or "unknown USB device") if usable else "")


def _grant(port: PortInfo) -> str:
    """Say how a user may open a port."""
    try:
        import grp

        group = grp.getgrgid(os.stat(port.device).st_gid).gr_name
    except (ImportError, OSError, KeyError):
        group = "dialout"
    return f"no permission: sudo usermod -aG {group} $USER, then log in again"


def _check_board(board: Board) -> Iterator[Check]:
    """Check what one board needs: a port of the firmware, a compiler, a tool that flashes it."""
    def build() -> str:
        missing = find_missing(_port_of(board).name)
        if missing:
            raise UsageError(missing)
        return f"port {_port_of(board).name}"

    yield _try(f"build for {board.name}", build, needed=True)
    if board.name in ports.list_ports():  # Others are flashed by a probe's own tool.
        yield _try(f"flash {board.name} (dry run)", lambda: rehearse(_port_of(board)), needed=True)


def _port_of(board: Board) -> ports.Port:
    """Return a board's own port, else that of its core by a probe, which no model has."""
    probed, known = ports.name_probe_port(board.core.model), ports.list_ports()
    return ports.choose_port(board, probed if probed in known and board.name not in known
                             and "fvp" not in dict(board.virtual) else None)


def list_steps(board: Board, file: File | None = None) -> Iterator[tuple[str, str]]:
    """Yield what to type for a board's first five minutes, and what each does.

    Parameters
    ----------
    file
        What it was asked for by, where that is not its name.
    """
    name = shlex.quote(fspath(file or board.name))
    yield f"twin predict kws -b {name}", "time, energy, memory; needs no board"
    try:
        port = _port_of(board)
    except TwinError:
        if board.core.isa not in list_built_cores().values():
            yield (f"twin measure kws -b {name} --port /dev/ttyACM0 --probe --runs 20 -o out/own",
                   "times a program of yours (docs/probe.md): our firmware is not for this core")
            return
        yield (f"twin firmware export kws -o project --isa {board.core.isa}",
               "two C files for a project of yours: no port of our firmware is for this board")
        where = MODEL_PORT if "virtual platform" in board.description else "/dev/ttyACM0"
        yield f"twin measure kws -b {name} --port {where}", "asks that program"
        return
    virtual = _find_virtual(board)
    if virtual:
        yield (f"twin measure kws -b {name} --virtual {virtual} --runs 5 -o out/virtual",
               "the same in an emulator of its core, without the board" if board.npu is None else
               "C kernels on its core, without the NPU, in an emulator: instructions, no time")
    settings = port.settings
    config = shlex.join(configure_openocd(settings.get("OPENOCD", "BOARD.cfg")))
    yield (f"twin firmware build kws -b {name} -o out/kws"
           + (f" --port {port.name}" if port.derived else ""), f"a C program, port {port.name}")
    if port.derived:
        yield (f'openocd {config} -c "program out/kws/firmware.elf verify reset exit"',
               "writes it; BOARD.cfg is OpenOCD's file of the board, or of its probe and chip")
    if set(FLASHERS) & set(settings):
        yield (f"twin firmware flash kws -b {name}", f"writes it: {_name_flasher(port)}")
    where = "/dev/ttyACM0"
    if "rtt" in settings.get("FAMILY", "").split():
        where = "socket://localhost:9090"
        yield (f'openocd {config} -c "init; reset run" -c "rtt setup 0x20000000 0x40000 '
               '{SEGGER RTT}; rtt start; rtt server start 9090 0"', "the line through the probe")
    yield f"twin measure kws -b {name} --port {where} --runs 5 -o out/m", "times of every layer"
    own = f" -b {name}" if file is not None and name != board.name else ""
    yield f"twin attribute kws out/m{own}", "beside the prediction: where the gap is, and why"


def _name_flasher(port: ports.Port) -> str:
    settings = port.settings
    if "CUBEPROG" in settings:
        return "STM32CubeProgrammer"
    if "ESPTOOL" in settings:
        return "esptool"
    return " or ".join(f"{FLASHERS[key][0]} ({settings[key]})" for key in ("PYOCD", "OPENOCD")
                       if key in settings)


def _find_virtual(board: Board) -> str | None:
    """Return an emulator of a board's core, whose counts are cycles if there is one."""
    names = sorted((one for one in list_virtual_boards() if one.core == board.core.model),
                   key=lambda one: one.emulator != "unicorn")
    return names[0].name if names else None


MODEL_PORT = "socket://localhost:5000"
"""Where Arm's fixed virtual platforms serve their first serial line (`telnetterminal0`)."""

HEADING = Path(__file__).with_name("first_light.md")
"""What the page begins with."""


def write_page() -> str:
    """Return a page with a section for each board."""
    blocks = [HEADING.read_text(encoding="utf-8")]
    for name in list_boards():
        board = load_board(name)
        blocks.append(f"\n## {name}\n\n{board.description}\n")
        blocks += [f"\n    # {what}\n    {line}" for line, what in list_steps(board)]
        blocks.append("\n")
        readme = Path("firmware", "ports", name, "README.md")
        if (ports.firmware_folder().parent / readme).is_file():
            blocks.append(f"\nMore: [{readme.as_posix()}](../{readme.as_posix()})\n")
    return "".join(blocks)


if __name__ == "__main__":
    sys.stdout.write(write_page())
