"""`twin runtimes`: the kernel libraries there are, one in full, and one learnt from programs."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import twin
from twin.api.requests import AUTO, BoardName, Option
from twin.cli.options import (
    AsJson,
    Begin,
    Call,
    End,
    LayersBy,
    Limit,
    MemoryFiles,
    Nth,
    Registers,
    check_outputs,
    command,
)
from twin.cli.output import note_written, open_console, show, show_json, warn

Name = Annotated[str | None, Option(
    "", "[NAME]", "A runtime to show in full, as name, name@version or its file.")]
Elfs = Annotated[list[str], Option(
    "", "ELF...", "Programs of a Cortex-M with one build of a library, each run under emulation; "
    "of a RISC-V core too.")]
Networks = Annotated[list[str], Option(
    "--model", "MODEL", "The network each program runs, in the order of the programs: a .tflite or "
    ".onnx file, or a network of `twin models`.")]
Base = Annotated[str | None, Option(
    "--base", "NAME", "Runtime of operators no program ran; by default by what the programs were "
    "made with.")]
RuntimeFile = Annotated[str, Option(
    "--output -o", "FILE", "Runtime file (.yaml) to write; what it was learnt from before is kept "
    "and joined.")]


class NamedRuntimes(TyperGroup):
    """`twin runtimes` and `twin runtimes NAME` show; `twin runtimes learn` makes one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is no command for what is to be shown."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=NamedRuntimes, add_completion=False, rich_markup_mode=None,
                  help="List the runtimes, show one (`twin runtimes NAME`) with every number and "
                       "its source, or learn one from programs.")


@app.command("show")
@command
def runtimes(name: Name = None, as_json: AsJson = False) -> None:
    """List the runtimes, or show one with every number and its source."""
    if as_json:
        show_json(twin.list_runtimes() if name is None else twin.show_runtime(name))
        return
    from twin.reports.tables.catalogue import runtime_report, runtimes_table

    if name is None:
        show(open_console(), runtimes_table(twin.list_runtimes()))
    else:
        show(open_console(), runtime_report(twin.show_runtime(name)))


@app.command("learn")
@command
def learn(elfs: Elfs, board: BoardName, models: Networks, output: RuntimeFile = "my_runtime.yaml",
          base: Base = None, begin: Begin = None, end: End = None, call: Call = None,
          nth: Nth = None, layers_by: LayersBy = AUTO, memory: MemoryFiles = None,
          registers: Registers = None, limit: Limit = None, as_json: AsJson = False) -> None:
    """Learn a kernel library from programs that run networks on it, as a runtime file."""
    from twin.api.commands.program import LIMIT
    from twin.cli.program import parse_count, parse_memory, parse_registers

    check_outputs(output)

    lesson = twin.learn_runtime(
        elfs, models, board, output=output, base=base, begin=begin, end=end, call=call,
        nth=parse_count(nth, "--nth", 1), layers=layers_by, memory=parse_memory(memory or []),
        registers=parse_registers(registers or []), limit=parse_count(limit, "--limit", LIMIT))
    if as_json:
        show_json(lesson)
    else:
        from twin.reports.tables.learnt import learnt_report

        console = open_console()
        show(console, learnt_report(lesson.runtime, console))
    warn(lesson.notes)
    note_written(lesson.path)
