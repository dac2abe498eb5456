"""`twin firmware`: a network as an image: build, flash, run, compare compilers."""

from __future__ import annotations

import typer

import twin
from twin.api.requests import firmware as requests
from twin.cli.options import AsJson, Json, Kept, check_outputs, command
from twin.cli.output import note_files, show_view, warn

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None,
                  help="Build the image of a network, flash it, run it, compare compilers.")


@app.command()
@command(view="firmware:build_report", written=lambda built: [built.image])
def build(asked: requests.Build, json: Json, keep: Kept) -> object:
    """Turn a model into a C program for a board, and compile it."""
    check_outputs(folder=asked.output)
    return keep.run("build_firmware", asked)


@app.command()
@command
def export(asked: requests.Export, as_json: AsJson = False) -> None:
    """Write a network as two C files for a project of your own; vendor IDE, Zephyr, Arduino."""
    check_outputs(folder=asked.output)
    note_files(twin.export_firmware(**asked.arguments), as_json)


@app.command()
@command
def flash(asked: requests.Flash, as_json: AsJson = False) -> None:
    """Write an image into a board's flash; by pyocd, openocd, esptool or ST's programmer."""
    from twin.reports.outcomes import Flashed

    check_outputs(folder=asked.output)
    message = twin.flash_firmware(**asked.arguments)
    show_view(Flashed(message=message), "parts:Text", message, as_json=as_json)


@app.command()
@command
def run(asked: requests.Run, as_json: AsJson = False) -> None:
    """Run a network on a board and check every layer's output."""
    from twin.api.commands.firmware import require_right

    result = twin.run_firmware(**asked.arguments)
    show_view(result, "firmware:run_report", as_json=as_json)
    require_right(result)


@app.command()
@command
def compare(asked: requests.Compare, as_json: AsJson = False) -> None:
    """Build with several compilers and optimisation levels, and set their counts side by side."""
    built = twin.compare_firmware(**asked.arguments, on_remark=lambda remark: warn([remark]))
    show_view(built, "firmware:comparison_report", built.builds, built.runs, as_json=as_json)
