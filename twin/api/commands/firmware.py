"""`twin firmware`: a network as an image: build, flash, run, compare compilers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from hwmodels.board.file import load_board
from hwmodels.core.file import list_built_cores
from hwmodels.errors import did_you_mean
from hwmodels.isa import machine_isa, read_name
from twin.api.commands.claims import claim_folder
from twin.deployment.deployment import place
from twin.errors import FirmwareError, UsageError
from twin.network.readers import read_model
from twin.program.image.compile import build
from twin.program.image.compile.build import COMPILERS, Build, choose_kernels, installed_compilers
from twin.program.image.compile.flashing import find_programmer, flash_image
from twin.program.image.compile.plan import FIRMWARE
from twin.program.image.compile.ports import check_places, choose_port, has_core_of, load_port
from twin.program.image.compile.verification import BoardRun, open_board, random_input, run_on_board


@dataclass(frozen=True, slots=True, kw_only=True)
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


def build_firmware(model: str | PathLike[str], board: str, *,
                   output: str | PathLike[str] | None = None, port: str | None = None,
                   compiler: str | None = None, optimisation: str = "-O2", kernels: str = "",
                   weights: str | None = None, arena: str | None = None) -> Build:
    """Turn a model into a C program for a board, and compile it.

    Parameters
    ----------
    model : str or path
        A model file or a network of the zoo.
    board : str
        Name or file of the board.
    output : str or path, optional
        Folder of sources and image; by default below build/.
    port : str, optional
        Of firmware/ports; by default the board's own.
    compiler : str, optional
        "gcc" or "clang"; by default gcc, or clang where only ziglang is.
    optimisation : str
        "-O2", "-O3", "-Os" ...
    kernels : str
        "own" or "cmsis-nn"; by default the latter where CMSIS_NN_PATH names a checkout.
    weights, arena : str, optional
        Memories, by role or name.

    Returns
    -------
    Build
        The image, and its sizes beside the predicted ones.

    Raises
    ------
    FirmwareError
        When it cannot be built.
    UsageError
        When another process builds into the folder.
    """
    with _built(model, board, output=output, port=port, compiler=compiler,
                optimisation=optimisation, kernels=kernels, weights=weights,
                arena=arena) as made:
        return made


@contextmanager
def _built(model: str | PathLike[str], board: str, *, output: str | PathLike[str] | None = None,
           port: str | None = None, compiler: str | None = None, optimisation: str = "-O2",
           kernels: str = "", weights: str | None = None, arena: str | None = None,
           ) -> Iterator[Build]:
    """Build, and hold the folder while what was built is used."""
    graph, machine = read_model(fspath(model)), load_board(board)
    target = choose_port(machine, port)
    check_places(target, machine, weights=weights, arena=arena)
    deployment = None if target.fixed_map else place(
        graph, machine, FIRMWARE, weights=weights, arena=arena,
        code=dict(machine.placement)["code"])
    name = f"{graph.name}-{target.name}{'-' + compiler if compiler else ''}{optimisation}"
    folder = Path(output or Path("build", "firmware", name))
    with claim_folder(folder, "builds into it"):
        yield build.build_firmware(graph, target, folder, compiler=compiler,
                                   deployment=deployment, board=machine,
                                   optimisation=optimisation, kernels=choose_kernels(kernels))


def export_firmware(model: str | PathLike[str], *, output: str | PathLike[str],
                    isa: str = "armv7e-m") -> tuple[Path, ...]:
    """Write a network and its measuring firmware as two files, for a project of one's own.

    Parameters
    ----------
    model : str or path
        A model file or a network of the zoo.
    output : str or path
        Folder to write.
    isa : str
        Instruction set the project is compiled for: the arena of some layers depends on it.

    Returns
    -------
    tuple of Path
        twin_network.c and twin_network.h.

    Raises
    ------
    UsageError
        For an instruction set nobody knows.
    """
    from twin.program.image.compile.dropin import write_drop_in
    from twin.program.image.compile.source import generate_source

    known, isa = sorted({*list_built_cores().values(), machine_isa("host")}), read_name(isa)
    if isa not in known:
        raise UsageError(f"--isa {isa!r}; " + did_you_mean(isa, known))
    graph = read_model(fspath(model))
    return write_drop_in(generate_source(graph, isa), graph.name, Path(output))


def flash_firmware(model: str | PathLike[str], board: str, *,
                   image: str | PathLike[str] | None = None,
                   output: str | PathLike[str] | None = None, port: str | None = None,
                   compiler: str | None = None, optimisation: str = "-O2") -> str:
    """Write an image into a board's flash, by the programmer its port names.

    Parameters
    ----------
    model, board, output, port, compiler, optimisation
        As for `build_firmware`, where there is no image.
    image : str or path, optional
        Built before.

    Returns
    -------
    str
        What is where, and by which programmer.
    """
    target = choose_port(load_board(board), port)
    command = find_programmer(target)
    with ExitStack() as held:
        path = Path(image) if image else held.enter_context(_built(
            model, board, output=output, port=port, compiler=compiler,
            optimisation=optimisation)).image
        flash_image(path, command)
    return f"{path} is on {target.name}, by {command[0]}"


def run_firmware(model: str | PathLike[str], board: str, *, virtual: str | None = None,
                 device: str | None = None, image: str | PathLike[str] | None = None,
                 port: str | None = None, compiler: str | None = None, optimisation: str = "-O2",
                 kernels: str = "", runs: int = 1) -> BoardRun:
    """Run a network on a board and check every layer's output.

    Parameters
    ----------
    model, board, port, compiler, optimisation, kernels
        As for `build_firmware`, where there is no image.
    virtual, device : str, optional
        A virtual board, or the serial device of one that was flashed: one of them.
    image : str or path, optional
        Built before.
    runs : int
        Inferences; the least count is kept.

    Returns
    -------
    BoardRun
        Layer by layer; `require_right` raises where an output differs.

    Raises
    ------
    UsageError
        When neither or both say where to run.
    """
    if (virtual is None) == (device is None):
        raise UsageError("give --virtual NAME or --device PORT; `twin boards --virtual` lists the "
                         "former")
    with ExitStack() as held:
        path = Path(image) if image else held.enter_context(_built(
            model, board, port=port or virtual, compiler=compiler, optimisation=optimisation,
            kernels=kernels)).image
        return _run(model, board, path, virtual or device or "", virtual is not None, runs)


def require_right(run: BoardRun) -> None:
    """Raise `FirmwareError` where the output of a layer is not what arithmetic says."""
    if not run.is_right:
        wrong = [str(layer.index) for layer in run.layers if layer.equal is False]
        raise FirmwareError(f"the output of layer {', '.join(wrong)} is not the arithmetic's")


def compare_firmware(model: str | PathLike[str], board: str, *, virtual: str | None = None,
                     compilers: Sequence[str] | None = None,
                     optimisations: Sequence[str] = ("-Os", "-O2", "-O3"),
                     on_remark: Callable[[str], None] = lambda remark: None) -> Built:
    """Build with several compilers and optimisation levels, and run each.

    Parameters
    ----------
    model, board
        As for `build_firmware`.
    virtual : str, optional
        Where to run; by default an emulator with the board's core.
    compilers : sequence of str, optional
        "gcc", "clang"; by default those that are installed.
    optimisations : sequence of str
        Levels.
    on_remark : callable
        Told of compilers that are left out.

    Returns
    -------
    Built
        Side by side.
    """
    name = virtual or _default_virtual(board)
    builds, runs = [], []
    for compiler in _find_compilers(name, on_remark) if compilers is None else compilers:
        for level in optimisations:
            with _built(model, board, port=name, compiler=compiler, optimisation=level,
                        kernels="own") as built:
                builds.append(built)
                runs.append(_run(model, board, built.image, name, True, 1))
    return Built(builds=tuple(builds), runs=tuple(runs))


def _run(model: str | PathLike[str], board: str, image: Path, where: str, virtual: bool,
         runs: int) -> BoardRun:
    graph = read_model(fspath(model))
    with open_board(where, image, virtual=virtual, board=load_board(board)) as (session, scales):
        return run_on_board(session, graph, random_input(graph), runs=runs, scales=scales)


def _find_compilers(port: str, on_remark: Callable[[str], None]) -> tuple[str, ...]:
    """Return the compilers that are installed; a remark names the others."""
    found = installed_compilers(load_port(port))
    for name in COMPILERS:
        if name not in found:
            on_remark(f"{name} is not installed and left out")
    return found


def _default_virtual(board: str) -> str:
    """Virtual board with the board's core: QEMU's first, whose counts are instructions."""
    from calibration.virtual_board.qemu import MACHINES

    machine = load_board(board)
    for name in (*MACHINES, "host"):
        if has_core_of(load_port(name), machine):
            return name
    raise UsageError(f"no virtual board has a {machine.core.model}; give --virtual")
