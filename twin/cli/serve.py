"""`twin serve`: the live what-if in a browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import twin
from twin.cli.ending import complain
from twin.cli.options import AsJson, command
from twin.cli.output import show_json
from twin.errors import UsageError
from twin.requests import Changes, Option, Runtime
from twin.verbs.serve import HOST, PORT, is_loopback

FirstModel = Annotated[str | None, Option(
    "", "[MODEL]", "What the page opens with: a .tflite or .onnx file, or a network of `twin "
    "models`.")]
FirstBoard = Annotated[str | None, Option(
    "--board -b", "BOARD", "The board it opens with: of `twin boards`, or a board file.")]
Host = Annotated[str, Option(
    "--host", "ADDRESS", "Listen to more than this machine, such as 0.0.0.0.")]
Port = Annotated[str, Option("--port", "PORT", "0 takes any that is free.")]


@command
def serve(model: FirstModel = None, board: FirstBoard = None, runtime: Runtime = None,
          settings: Changes = None, host: Host = HOST, port: Port = str(PORT),
          as_json: AsJson = False) -> None:
    """Open the live what-if: turn clock, caches, places, library, and see the bill at once."""
    if not port.isdecimal():
        raise UsageError(f"--port {port!r}; accepted: a number from 0 to 65,535")

    def tell(address: str) -> None:
        if as_json:
            from twin.reports.outcomes import Serving

            show_json(Serving(address=address, open_wide=open_wide))
            sys.stdout.flush()
        else:
            typer.echo(f"serving at {address}")
        complain("Ctrl-C ends it")
        if open_wide:
            complain(f"warning: listening at {host}: whoever reaches this machine may predict "
                     "here and upload models, without a password")

    open_wide = not is_loopback(host)
    twin.serve(model, board, runtime=runtime, host=host, port=int(port), on_ready=tell,
               settings=settings)
    complain("ended")
