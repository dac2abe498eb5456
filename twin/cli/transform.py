"""`twin transform`: a network changed and written, or what could be changed."""

from __future__ import annotations

from typing import Annotated

import twin
from twin.api.requests import AssumeUnsupported, Changes, Model, Option, Runtime
from twin.cli.options import AsJson, command
from twin.cli.output import note_files, open_console, show, show_json, warn
from twin.errors import UsageError

Board = Annotated[str | None, Option(
    "--board -b", "BOARD", "List what could be changed of the network on this board.")]
Output = Annotated[str | None, Option(
    "--output -o", "FILE", "Write the changed network: .tflite or .onnx.")]


@command
def transform(model: Model, board: Board = None, runtime: Runtime = None,
              settings: Changes = None, output: Output = None, as_json: AsJson = False,
              assume_unsupported: AssumeUnsupported = None) -> None:
    """Change a network and write it, or list what could be changed of it on a board."""
    if settings and output and board is None:
        graph = twin.transform(
            twin.read_model(model, assume_unsupported=assume_unsupported), settings)
        note_files([twin.export_model(graph, output)], as_json)
        warn(graph.notes)
        return
    if board is None or output:
        raise UsageError("transform: accepted: --set network.PATH=VALUE with -o FILE to write a "
                         "changed network, or -b BOARD to list what could be changed on it")
    deployment = twin.deploy(model, board, runtime=runtime, assume_unsupported=assume_unsupported)
    if settings:
        deployment = deployment.replace(settings)
    found = twin.list_transformations(deployment)
    if as_json:
        show_json(found, model=deployment.graph.name, board=deployment.board.name,
                  runtime=deployment.runtime.identity)
        return
    from twin.reports.tables.transformations import transformations_table

    show(open_console(), transformations_table(found))
