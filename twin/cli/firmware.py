"""`twin firmware`: a network as an image: build, flash, run, compare compilers."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.api.requests import Arena, BoardName, Model, Option, Weights
from twin.cli.options import AsJson, check_outputs, command
from twin.cli.output import note_files, note_written, open_console, show, show_json, warn

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None,
                  help="Build the image of a network, flash it, run it, compare compilers.")

Output = Annotated[str | None, Option(
    "--output -o", "DIR", "Folder of sources and image; by default below build/.")]
PortName = Annotated[str | None, Option(
    "--port", "NAME", "Port of firmware/ports; by default the board's own.")]
Compiler = Annotated[str | None, Option(
    "--compiler", "gcc|clang", "By default gcc, or clang where only ziglang is.")]
Optimisation = Annotated[str, Option("--opt", "LEVEL", "-O2, -O3, -Os ...")]
Kernels = Annotated[str, Option(
    "--kernels", "own|cmsis-nn", "Ours, or those of the checkout that CMSIS_NN_PATH names; by "
    "default cmsis-nn where it is set.")]
Virtual = Annotated[str | None, Option(
    "--virtual", "NAME", "A virtual board (`twin boards --virtual`), or host.")]
Device = Annotated[str | None, Option(
    "--device", "PORT", "Serial device of a board that was flashed.")]
Image = Annotated[str | None, Option("--image", "FILE", "An image built before; else it is built.")]
Runs = Annotated[int, Option("--runs", None, "Inferences; the least count is shown.", least=1)]


Compilers = Annotated[str | None, Option(
    "--compilers", "NAMES", "gcc, clang, or both by comma; by default those there are.")]
Levels = Annotated[str, Option("--opts", "LEVELS")]


@app.command()
@command
def build(model: Model, board: BoardName, output: Output = None, port: PortName = None,
          compiler: Compiler = None, opt: Optimisation = "-O2", kernels: Kernels = "",
          weights: Weights = None, arena: Arena = None,
          as_json: AsJson = False) -> None:
    """Turn a model into a C program for a board, and compile it."""
    from twin.reports.tables.firmware import build_report

    check_outputs(folder=output)
    built = twin.build_firmware(model, board, output=output, port=port, compiler=compiler,
                                optimisation=opt, kernels=kernels, weights=weights, arena=arena)
    if as_json:
        show_json(built)
    else:
        show(open_console(), build_report(built))
    note_written(built.image)


@app.command()
@command
def export(model: Model, output: Annotated[str, Option(
    "--output -o", "DIR", "Folder for twin_network.c and twin_network.h.")],
        isa: Annotated[str, Option(
            "--isa", "NAME", "Instruction set the project is compiled for, as in `twin "
            "boards`.")] = "armv7e-m", as_json: AsJson = False) -> None:
    """Write two files to put into a project of your own: vendor IDE, Zephyr, Arduino."""
    check_outputs(folder=output)
    note_files(twin.export_firmware(model, output=output, isa=isa), as_json)


@app.command()
@command
def flash(model: Model, board: BoardName, output: Output = None, port: PortName = None,
          compiler: Compiler = None, opt: Optimisation = "-O2", image: Image = None,
          as_json: AsJson = False) -> None:
    """Write an image into a board's flash, by pyocd, openocd, esptool or ST's programmer."""
    check_outputs(folder=output)
    message = twin.flash_firmware(model, board, image=image, output=output, port=port,
                                  compiler=compiler, optimisation=opt)
    if as_json:
        from twin.reports.outcomes import Flashed

        show_json(Flashed(message=message))
    else:
        show(open_console(), message)


@app.command()
@command
def run(model: Model, board: BoardName, virtual: Virtual = None, device: Device = None,
        port: PortName = None, compiler: Compiler = None, opt: Optimisation = "-O2",
        kernels: Kernels = "", image: Image = None, runs: Runs = 1,
        as_json: AsJson = False) -> None:
    """Run a network on a board and check every layer's output."""
    from twin.api.commands.firmware import require_right
    from twin.reports.tables.firmware import run_report

    result = twin.run_firmware(model, board, virtual=virtual, device=device, image=image,
                               port=port, compiler=compiler, optimisation=opt, kernels=kernels,
                               runs=runs)
    if as_json:
        show_json(result)
    else:
        show(open_console(), run_report(result))
    require_right(result)


@app.command()
@command
def compare(model: Model, board: BoardName, virtual: Virtual = None, compilers: Compilers = None,
            opts: Levels = "-Os,-O2,-O3", as_json: AsJson = False) -> None:
    """Build with several compilers and optimisation levels, and set their counts side by side."""
    from twin.reports.tables.firmware import comparison_report

    built = twin.compare_firmware(
        model, board, virtual=virtual, compilers=_split(compilers) if compilers else None,
        optimisations=_split(opts), on_remark=lambda remark: warn([remark]))
    if as_json:
        show_json(built)
    else:
        show(open_console(), comparison_report(built.builds, built.runs))


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]
