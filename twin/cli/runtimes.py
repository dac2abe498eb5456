"""`twin runtimes`: the kernel libraries there are, one in full, and one learnt from programs."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.api.requests import BoardName, Option, Part
from twin.api.requests.programs import LearnRuntime
from twin.cli.options import AsJson, ShownByName, check_outputs, command
from twin.cli.output import note_written, show_view, warn

Name = Annotated[str | None, Option(
    "", "[NAME]", "A runtime to show in full, as name, name@version or its file.")]
Elfs = Annotated[list[str], LearnRuntime.option("elfs")]
Networks = Annotated[list[str], Option(
    "--model", "MODEL", "The network each program runs, in the order of the programs: a .tflite or "
    ".onnx file, or a network of `twin models`.")]
RuntimeFile = Annotated[str, LearnRuntime.option("output")]
Base = Annotated[str | None, LearnRuntime.option("base")]

app = typer.Typer(cls=ShownByName, add_completion=False, rich_markup_mode=None,
                  help="List the runtimes, show one (`twin runtimes NAME`) with every number and "
                       "its source, or learn one from programs.")


@app.command("show")
@command
def runtimes(name: Name = None, as_json: AsJson = False) -> None:
    """List the runtimes, or show one with every number and its source."""
    if name is None:
        show_view(twin.list_runtimes(), "catalogue:runtimes_table", as_json=as_json)
    else:
        show_view(twin.show_runtime(name), "catalogue:runtime_report", as_json=as_json)


@app.command("learn")
@command
def learn(elfs: Elfs, board: BoardName, models: Networks, output: RuntimeFile = "my_runtime.yaml",
          base: Base = None, *, part: Part, as_json: AsJson = False) -> None:
    """Learn a kernel library from programs that run networks on it, as a runtime file."""
    check_outputs(output)
    lesson = twin.learn_runtime(elfs, models, board, output=output, base=base, **part.arguments)
    show_view(lesson, "learnt:learnt_report", lesson.runtime, as_json=as_json)
    warn(lesson.notes)
    note_written(lesson.path)
