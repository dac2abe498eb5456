"""The firmware's ports: what an image can be built for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.board.file import list_boards
from hwmodels.core.file import list_built_cores, load_core
from hwmodels.errors import ToolMissingError, check_known
from hwmodels.frozen import frozen
from hwmodels.isa import MACHINES, load_isa, machine_isa
from twin.deployment.memories import choose_memory
from twin.errors import PlacementError, UsageError

_REGION = re.compile(r"\b(\w+) *: *ORIGIN *= *(0x[0-9a-fA-F]+|\d+)")
_ALIAS = re.compile(r'REGION_ALIAS\("(\w+)", *(\w+)\)')
_SETTING = re.compile(r"^(\w+) *:= *+(.*)$", re.MULTILINE)


@frozen
class Port:
    """A target of the firmware's Makefile.

    Parameters
    ----------
    name
        Its folder in firmware/ports.
    arch
        Kind of machine code.
    core
        Of `hwmodels/cores`; "" of the host.
    fixed_map
        Whether the port brings its own memory map; else the board's is written.
    derived
        Whether it has no folder: the Makefile is given its settings.
    settings
        Every line of port.mk.
    """

    name: str
    arch: str
    core: str
    fixed_map: bool
    derived: bool
    settings: Mapping[str, str] = field(repr=False)

    @property
    def isa(self) -> str:
        """Instruction set, by the boards' names."""
        return load_core(self.core).traits.isa if self.core else machine_isa(self.arch)

    @property
    def arguments(self) -> list[str]:
        """What the Makefile is given to build for it."""
        settings = self.settings if self.derived else {}
        zig = {"ZIG_CPU": load_core(self.core).traits.build.get("zig", "")} if self.core else {}
        return [f"{name}={value}" for name, value in {"PORT": self.name, **settings, **zig}.items()]


def firmware_folder() -> Path:
    """Folder of the firmware's sources: TWIN_FIRMWARE, a checkout's, or what was installed.

    Raises
    ------
    ToolMissingError
        When none is there.
    """
    named = os.environ.get("TWIN_FIRMWARE")
    package = Path(__file__).resolve().parents[3]
    folders = [Path(named)] if named else [package.parent / "firmware", package / "firmware"]
    for folder in folders:
        if (folder / "Makefile").is_file():
            return folder
    raise ToolMissingError(f"{folders[-1]}: the firmware's sources are not there; set "
                           "TWIN_FIRMWARE to the folder firmware/ of a source checkout")


def list_ports() -> tuple[str, ...]:
    """Names of all ports: those with a folder, and one through a debug probe for each core."""
    folders = (path.parent.name for path in (firmware_folder() / "ports").glob("*/port.mk"))
    return tuple(sorted({*folders, *map(name_probe_port, list_built_cores())}))


def name_probe_port(core: str) -> str:
    """Return the name of a core's port that needs no more than a debug probe."""
    return "rtt-" + core.removeprefix("cortex-")


def _describe_probe_port(core: str) -> dict[str, str]:
    """Return what the Makefile is given of a core."""
    traits = load_core(core).traits
    code, build = load_isa(traits.isa).code, traits.build
    return {"ARCH": code.name, "CORE": core, "FPU": build.get("fpu", ""), "FAMILY": code.probe_port,
            "CPU": build["flags"], "LINK_CPU": build.get("link", "")}


def load_port(name: str) -> Port:
    """Return a port by name.

    Raises
    ------
    UsageError
        When there is none of that name.
    """
    known = list_ports()
    check_known("no port", name, known, UsageError)
    folder = firmware_folder() / "ports" / name
    core = next((core for core in list_built_cores() if name_probe_port(core) == name), None)
    settings = _describe_probe_port(core) if core is not None else {
        setting: value.strip() for setting, value in _SETTING.findall(
            (folder / "port.mk").read_text(encoding="utf-8"))}
    return Port(name=name, arch=settings["ARCH"], core=settings.get("CORE", ""), derived=bool(core),
                fixed_map=MACHINES[settings["ARCH"]].native or (folder / "memory.ld").is_file(),
                settings=settings)


def read_fixed_places(board: Board) -> Mapping[str, str]:
    """Return where the image of a board's own port has its parts, if the port brings its map.

    Returns
    -------
    mapping of str to str
        Memory of "weights", "arena" and "code" by name; empty where the map is written for the
        board, and where the port's has regions in none of its memories.
    """
    try:
        path = firmware_folder() / "ports" / board.name / "memory.ld"
    except ToolMissingError:
        return {}  # said when the image is built
    if not path.is_file():
        return {}
    text = path.read_text(encoding="utf-8")
    starts = {name: int(address, 0) for name, address in _REGION.findall(text)}
    regions = {**{name: name for name in starts}, **dict(_ALIAS.findall(text))}
    found = {what: next((one.name for one in board.memories for low, high in one.spans
                         if low <= starts.get(regions.get(what.upper(), ""), -1) < high), "")
             for what in ("weights", "arena", "code")}
    return found if all(found.values()) else {}


def check_places(port: Port, board: Board, **asked: str | None) -> None:
    """Refuse a memory somebody asked for where the port's own map has another.

    Parameters
    ----------
    port
        That the image is built for.
    board
        Whose memories were asked for.
    **asked
        Memory by role or name, for "weights", "arena", "code".

    Raises
    ------
    PlacementError
        Naming what the map has.
    """
    if not port.fixed_map:
        return
    places = read_fixed_places(board) if port.name == board.name else {}
    for what, wanted in asked.items():
        if wanted and (not places or choose_memory(board, wanted).name != places[what]):
            accepted = f"{what} in {places[what]}" if places else f"none named for the {what}"
            raise PlacementError(f"{what} in {wanted}: the firmware's port {port.name} has a "
                                 f"memory map of its own; accepted: {accepted}")


def has_core_of(port: Port, board: Board) -> bool:
    """Whether a port runs on a board's core, so that its counts may be set beside the board's."""
    return board.core.model == port.core or (not port.core and port.isa == board.core.isa)


def check_core(name: str, board: Board) -> None:
    """Refuse a virtual board whose core is not the board's: its counts are not the board's.

    Raises
    ------
    UsageError
        Naming the virtual boards that have the core.
    """
    port = load_port(name)
    if has_core_of(port, board):
        return
    raise UsageError(f"--virtual {name} is a {port.core or port.isa}, {board.name} a "
                     f"{board.core.model}; accepted: a board of that core, or here "
                     + name_emulators(board))


def name_emulators(board: Board) -> str:
    """Name the virtual boards with a board's core, or say that there is none."""
    from calibration.virtual_board import list_virtual_boards, port_of

    fitting = [one.name for one in list_virtual_boards()
               if has_core_of(load_port(port_of(one.name)), board)]
    return ", ".join(fitting) or "none: no emulator has that core"


def choose_port(board: Board, name: str | None) -> Port:
    """Return the port asked for, or the one named as the board.

    Raises
    ------
    UsageError
        When there is none, or it runs another instruction set than the board.
    """
    if name is None and board.name not in list_ports():
        fitting = [port for port in list_ports() if load_port(port).core == board.core.model]
        if not fitting:
            boards = [port for port in list_ports() if port in list_boards()]
            raise UsageError(f"{board.name} has no port, and there is none for its core, a "
                             f"{board.core.model}: no image can be built for it; accepted: a board "
                             f"with a port, {', '.join(boards)}")
        raise UsageError(f"{board.name} has no port of its own; accepted: --port of its core: "
                         + ", ".join(fitting))
    port = load_port(name or board.name)
    if not port.fixed_map and port.isa != board.core.isa:
        raise UsageError(f"port {port.name} runs {port.isa}, {board.name} {board.core.isa}")
    return port
