"""`twin firmware`: a network as an image: build, flash, run, compare compilers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import fspath
from pathlib import Path
from typing import Any

from hwmodels.board.file import load_board
from hwmodels.core.file import list_built_cores
from hwmodels.errors import check_known, reworded
from hwmodels.files import File
from hwmodels.frozen import frozen
from hwmodels.isa import native_isa, read_name
from twin.api.commands.claims import claim_folder
from twin.api.requests import firmware as requests
from twin.api.requests import takes
from twin.deployment.deployment import place
from twin.errors import FirmwareError, UsageError
from twin.network.readers import read_model
from twin.program.image.compile import build
from twin.program.image.compile.build import COMPILERS, Build, choose_kernels, installed_compilers
from twin.program.image.compile.flashing import find_programmer, flash_image
from twin.program.image.compile.plan import FIRMWARE
from twin.program.image.compile.ports import check_places, choose_port, has_core_of, load_port
from twin.program.image.compile.verification import BoardRun, open_board, random_input, run_on_board


@frozen
class Built:
    """Builds of one network, each with its run.

    Parameters
    ----------
    builds : tuple of Build
        By compiler, then optimisation.
    runs : tuple of BoardRun
        In the same order.
    """

    builds: tuple[Build, ...]
    runs: tuple[BoardRun, ...]


@takes(requests.Build)
def build_firmware(asked: requests.Build) -> Build:
    """Turn a model into a C program for a board, and compile it.

    The image, and its sizes beside the predicted ones.

    Raises
    ------
    FirmwareError
        When it cannot be built.
    UsageError
        When another process builds into the folder.
    """
    with _built(asked) as made:
        return made


@contextmanager
def _built(asked: requests.Build) -> Iterator[Build]:
    """Build, and hold the folder while what was built is used."""
    graph, machine = read_model(fspath(asked.model)), load_board(asked.board)
    target = choose_port(machine, asked.port)
    check_places(target, machine, weights=asked.weights, arena=asked.arena)
    deployment = None if target.fixed_map else place(
        graph, machine, FIRMWARE, weights=asked.weights, arena=asked.arena,
        code=dict(machine.placement)["code"])
    compiler, level = asked.compiler, asked.optimisation
    name = f"{graph.name}-{target.name}{'-' + compiler if compiler else ''}{level}"
    folder = Path(asked.output or Path("build", "firmware", name))
    with claim_folder(folder, "builds into it"):
        yield build.build_firmware(graph, target, folder, compiler=compiler,
                                   deployment=deployment, board=machine,
                                   optimisation=level, kernels=choose_kernels(asked.kernels))


@takes(requests.Export)
def export_firmware(asked: requests.Export) -> tuple[Path, ...]:
    """Write a network and its measuring firmware as two files, for a project of one's own.

    twin_network.c and twin_network.h; the arena of some layers depends on the instruction set.

    Raises
    ------
    UsageError
        For an instruction set nobody knows.
    """
    from twin.program.image.compile.dropin import write_drop_in
    from twin.program.image.compile.source import generate_source

    known = sorted({*list_built_cores().values(), native_isa()})
    isa = read_name(asked.isa)
    check_known("--isa", isa, known, UsageError)
    graph = read_model(fspath(asked.model))
    return write_drop_in(generate_source(graph, isa), graph.name, Path(asked.output))


@contextmanager
def _image(asked: requests.Flash | requests.Run, **more: Any) -> Iterator[Path]:
    """Give the image that was built before, or build it and hold its folder."""
    if asked.image:
        yield Path(asked.image)
        return
    with _built(requests.Build(asked.model, asked.board, compiler=asked.compiler,
                               optimisation=asked.optimisation, **more)) as built:
        yield built.image


@takes(requests.Flash)
def flash_firmware(asked: requests.Flash) -> str:
    """Write an image into a board's flash, by the programmer its port names; says what is where."""
    target = choose_port(load_board(asked.board), asked.port)
    command = find_programmer(target)
    with _image(asked, output=asked.output, port=asked.port) as path:
        flash_image(path, command)
    return f"{path} is on {target.name}, by {command[0]}"


@takes(requests.Run)
def run_firmware(asked: requests.Run) -> BoardRun:
    """Run a network on a board and check every layer's output.

    Layer by layer; `require_right` raises where an output differs.

    Raises
    ------
    UsageError
        When neither or both of `virtual` and `device` say where to run.
    """
    virtual, device = asked.virtual, asked.device
    if asked.port is not None:
        with reworded(UsageError, UsageError, "--port (a serial line is --device): "):
            load_port(asked.port)
    if (virtual is None) == (device is None):
        raise UsageError("give --virtual NAME or --device PORT; `twin boards --virtual` lists the "
                         "former")
    with _image(asked, port=asked.port or virtual, kernels=asked.kernels) as path:
        return _run(asked.model, asked.board, path, virtual or device or "", virtual is not None,
                    asked.runs)


def require_right(run: BoardRun) -> None:
    """Raise `FirmwareError` where the output of a layer is not what arithmetic says."""
    if not run.is_right:
        wrong = [str(layer.index) for layer in run.layers if layer.equal is False]
        raise FirmwareError(f"the output of layer {', '.join(wrong)} is not the arithmetic's")


@takes(requests.Compare)
def compare_firmware(asked: requests.Compare) -> Built:
    """Build with several compilers and optimisation levels, and run each.

    `virtual` is by default an emulator with the board's core; `on_remark` is called with compilers
    that are missing.
    """
    name = asked.virtual or _default_virtual(asked.board)
    builds, runs = [], []
    for compiler in asked.compilers or _find_compilers(name, asked.on_remark):
        for level in asked.optimisations:
            with _built(requests.Build(asked.model, asked.board, port=name, compiler=compiler,
                                       optimisation=level, kernels="own")) as built:
                builds.append(built)
                runs.append(_run(asked.model, asked.board, built.image, name, True, 1))
    return Built(builds=tuple(builds), runs=tuple(runs))


def _run(model: File, board: str, image: Path, where: str, virtual: bool, runs: int) -> BoardRun:
    graph = read_model(fspath(model))
    with open_board(where, image, virtual=virtual, board=load_board(board)) as (session, scales):
        return run_on_board(session, graph, random_input(graph), runs=runs, scales=scales)


def _find_compilers(port: str, on_remark: Callable[[str], None]) -> tuple[str, ...]:
    """Return the compilers that are installed; a warning names the others."""
    found = installed_compilers(load_port(port))
    for name in COMPILERS:
        if name not in found:
            on_remark(f"{name} is not installed and omitted")
    return found


def _default_virtual(board: str) -> str:
    """Virtual board with the board's core: QEMU's first, whose counts are instructions."""
    from calibration.virtual_board.qemu import MACHINES

    machine = load_board(board)
    for name in (*MACHINES, "host"):
        if has_core_of(load_port(name), machine):
            return name
    raise UsageError(f"no virtual board has a {machine.core.model}; give --virtual")
