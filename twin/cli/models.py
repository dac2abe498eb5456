"""`twin models`: the networks of the zoo, and writing one to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twin.cli.output import note_written, open_console, show
from twin.errors import UsageError

app = typer.Typer(help="List the networks of the zoo, or export one.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def models(context: typer.Context) -> None:
    """List the networks of the zoo, or export one."""
    if context.invoked_subcommand is not None:
        return
    from twin.network import zoo
    from twin.network.operators import graph_macs, graph_parameters
    from twin.reports.tables.catalogue import models_table

    graphs = [(name, zoo.build(name)) for name in zoo.NAMES]
    show(open_console(), models_table(
        (name, len(graph.layers), graph_macs(graph), graph_parameters(graph))
        for name, graph in graphs))


@app.command("export")
def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A network of `twin models`.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to: .tflite or .onnx.")],
) -> None:
    """Write a network of the zoo as a real .tflite or .onnx file."""
    target = Path(file)
    if target.suffix.lower() not in (".tflite", ".onnx"):
        raise UsageError(f"{file}: a model file ends in .tflite or .onnx")
    from twin.network import zoo
    from twin.network.writers.onnx import write_onnx
    from twin.network.writers.tflite import write_tflite

    write = write_tflite if target.suffix.lower() == ".tflite" else write_onnx
    write(zoo.build(name), target)
    note_written(target)
