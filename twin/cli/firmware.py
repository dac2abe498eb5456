"""`twin firmware`: a network as an image: build, flash, run, compare compilers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.options import ArenaRole, BoardName, Model, WeightsRole
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import FirmwareError, UsageError

if TYPE_CHECKING:
    from twin.image.compile.build import Build
    from twin.image.compile.verification import BoardRun

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None,
                  help="Build the image of a network, flash it, run it, compare compilers.")

Output = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="DIR", help="Folder of sources and image; by default below build/.")]
PortName = Annotated[str | None, typer.Option(
    "--port", metavar="NAME", help="Port of firmware/ports; by default the board's own.")]
Compiler = Annotated[str | None, typer.Option(
    "--compiler", metavar="gcc|clang", help="By default gcc, or clang where only ziglang is.")]
Optimisation = Annotated[str, typer.Option("--opt", metavar="LEVEL", help="-O2, -O3, -Os ...")]
Kernels = Annotated[str, typer.Option(
    "--kernels", metavar="own|cmsis-nn", help="Ours, or those of the checkout that CMSIS_NN_PATH "
                                              "names; by default cmsis-nn where it is set.")]
Virtual = Annotated[str | None, typer.Option(
    "--virtual", metavar="NAME", help="A virtual board (`twin boards --virtual`), or host.")]
Device = Annotated[str | None, typer.Option(
    "--device", metavar="PORT", help="Serial device of a board that was flashed.")]
Image = Annotated[str | None, typer.Option(
    "--image", metavar="FILE", help="An image built before; else it is built.")]
Runs = Annotated[int, typer.Option("--runs", min=1, help="Inferences; the least count is shown.")]


@app.command()
def build(model: Model, board: BoardName, output: Output = None, port: PortName = None,
          compiler: Compiler = None, opt: Optimisation = "-O2", kernels: Kernels = "",
          weights: WeightsRole = None, arena: ArenaRole = None) -> None:
    """Turn a model into a C program for a board, and compile it."""
    from twin.reports.tables.firmware import build_report

    built = _build(model, board, output, port, compiler, opt, kernels, weights, arena)
    show(open_console(), build_report(built))
    note_written(built.image)


@app.command()
def flash(model: Model, board: BoardName, output: Output = None, port: PortName = None,
          compiler: Compiler = None, opt: Optimisation = "-O2", image: Image = None) -> None:
    """Write an image into a board's flash, by pyocd or openocd."""
    from hwmodels.board.file import load_board
    from twin.image.compile.flashing import find_programmer, flash_image
    from twin.image.compile.ports import choose_port

    target = choose_port(load_board(board), port)
    command = find_programmer(target)
    path = Path(image) if image else _build(model, board, output, port, compiler, opt, "", None,
                                            None).image
    flash_image(path, command)
    show(open_console(), f"{path} is on {target.name}, by {command[0]}")


@app.command()
def run(model: Model, board: BoardName, virtual: Virtual = None, device: Device = None,
        port: PortName = None, compiler: Compiler = None, opt: Optimisation = "-O2",
        kernels: Kernels = "", image: Image = None, runs: Runs = 1) -> None:
    """Run a network on a board and check every layer's output."""
    from twin.reports.tables.firmware import run_report

    if (virtual is None) == (device is None):
        raise UsageError("give --virtual NAME or --device PORT; `twin boards --virtual` lists the "
                         "former")
    path = Path(image) if image else _build(model, board, None, port or virtual, compiler, opt,
                                            kernels, None, None).image
    result = _run(model, board, path, virtual or device or "", virtual is not None, runs)
    show(open_console(), run_report(result))
    if not result.is_right:
        wrong = [str(layer.index) for layer in result.layers if layer.equal is False]
        raise FirmwareError(f"the output of layer {', '.join(wrong)} is not the arithmetic's")


@app.command()
def compare(model: Model, board: BoardName, virtual: Virtual = None,
            compilers: Annotated[str | None, typer.Option(
                metavar="NAMES", help="gcc, clang, or both by comma; by default those there "
                                      "are.")] = None,
            opts: Annotated[str, typer.Option(metavar="LEVELS")] = "-Os,-O2,-O3") -> None:
    """Build with several compilers and optimisation levels, and set their counts side by side."""
    from twin.reports.tables.firmware import comparison_report

    name = virtual or _default_virtual(board)
    builds, runs = [], []
    for compiler in compilers.split(",") if compilers else _find_compilers(name):
        for opt in opts.split(","):
            built = _build(model, board, None, name, compiler.strip(), opt.strip(), "own",
                           None, None)
            builds.append(built)
            runs.append(_run(model, board, built.image, name, True, 1))
    show(open_console(), comparison_report(builds, runs))


def _build(model: str, board: str, output: str | None, port: str | None, compiler: str | None,
           opt: str, kernels: str, weights: str | None, arena: str | None) -> Build:
    from hwmodels.board.file import load_board
    from twin.deployment.deployment import place
    from twin.image.compile.build import build_firmware, choose_kernels
    from twin.image.compile.plan import FIRMWARE
    from twin.image.compile.ports import choose_port
    from twin.network.readers import read_model

    graph, machine = read_model(model), load_board(board)
    target = choose_port(machine, port)
    deployment = None if target.fixed_map else place(
        graph, machine, FIRMWARE, weights=weights, arena=arena,
        code=dict(machine.placement)["code"])
    name = f"{graph.name}-{target.name}{'-' + compiler if compiler else ''}{opt}"
    folder = output or Path("build", "firmware", name)
    return build_firmware(graph, target, folder, compiler=compiler, optimisation=opt,
                          kernels=choose_kernels(kernels), deployment=deployment)


def _run(model: str, board: str, image: Path, where: str, virtual: bool, runs: int) -> BoardRun:
    from hwmodels.board.file import load_board
    from twin.image.compile.verification import open_board, random_input, run_on_board
    from twin.network.readers import read_model

    graph = read_model(model)
    with open_board(where, image, virtual=virtual, board=load_board(board)) as (session, scales):
        return run_on_board(session, graph, random_input(graph), runs=runs, scales=scales)


def _find_compilers(port: str) -> tuple[str, ...]:
    """Return the compilers that are installed; a remark names the others."""
    from twin.image.compile.build import COMPILERS, installed_compilers
    from twin.image.compile.ports import load_port

    found = installed_compilers(load_port(port))
    warn(f"{name} is not installed and left out" for name in COMPILERS if name not in found)
    return found


def _default_virtual(board: str) -> str:
    """Virtual board with the board's core: QEMU's first, whose counts are instructions."""
    from hwmodels.board.file import load_board
    from twin.image.compile.ports import load_port

    core = load_board(board).core
    for name in ("mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "riscv_virt", "host"):
        port = load_port(name)
        if core.model == port.core or (not port.core and core.isa == port.isa):
            return name
    raise UsageError(f"no virtual board has a {core.model}; give --virtual")
