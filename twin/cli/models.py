"""`twin models`: the networks of the zoo, and writing one to a file."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.api.requests import Option
from twin.cli.options import AsJson, command
from twin.cli.output import note_files, open_console, show, show_json

app = typer.Typer(help="List the networks of the zoo, or export one.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
@command
def models(context: typer.Context, as_json: AsJson = False) -> None:
    """List the networks of the zoo, or export one."""
    if context.invoked_subcommand is not None:
        return
    if as_json:
        show_json(twin.list_models())
        return
    from twin.reports.tables.catalogue import models_table

    show(open_console(), models_table(twin.list_models()))


@app.command("export")
@command
def export(
    name: Annotated[str, Option("", "NAME", "A network of `twin models`.")],
    file: Annotated[str, Option("", "FILE", "Where to: .tflite or .onnx.")],
    as_json: AsJson = False,
) -> None:
    """Write a network of the zoo as a real .tflite or .onnx file."""
    note_files([twin.export_model(name, file)], as_json)
