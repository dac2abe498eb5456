"""`twin boards`: the boards there are, one in full, and a file for a new one."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

import twin
from twin.api.requests import Option
from twin.api.requests.boards import Doctor, NewBoard
from twin.cli.options import AsJson, Json, ShownByName, command
from twin.cli.output import note_written, show_view, warn
from twin.errors import UsageError

Name = Annotated[str | None, Option("", "[NAME]", "A board to show in full.")]
Sources = Annotated[bool, Option(
    "--sources", None, "Every number of the board with its kind and source.")]
Virtual = Annotated[bool, Option(
    "--virtual", None, "Boards one can run today: emulators, for `twin measure --virtual`.")]


BoardFile = Annotated[str | None, Option("--output -o", "FILE", "By default NAME.yaml.")]

app = typer.Typer(cls=ShownByName, add_completion=False, rich_markup_mode=None,
                  help="List the boards (--virtual: the emulators), show one (`twin boards NAME "
                       "--sources`: with its sources), or describe a new one.")


@app.command("new")
@command
def new(asked: NewBoard, output: BoardFile = None, as_json: AsJson = False) -> None:
    """Write a board file from what a datasheet's first page says; guesses are marked as such."""
    wanted = twin.Wanted(**{**asked.arguments, **_ask_missing(asked)})
    path, board = twin.new_board(_ask_guesses(wanted), output)
    from twin.reports import outcomes

    show_view(outcomes.NewBoard(path=path, board=board), "catalogue:board_report", board,
              sources=True, as_json=as_json)
    assumed = sum(fact.kind == "assumed" for fact in board.facts)
    warn([f"{assumed} facts are assumed (column kind): replace them by those of the datasheet"])
    if asked.cache_bytes is None and not board.caches:
        warn(["no cache before the flash is a guess, too: --cache SIZE, or 0B, states it"])
    if asked.run_ma_per_mhz is not None:
        warn(["--run-current is taken as a busy loop's whole current; on measured boards "
              "networks drew 0.9 to 1.9 times as much: `twin predict` says what it makes of it"])
    if wanted.like is not None and wanted.like.npu is not None:
        warn([f"the NPU of {wanted.like.name} is not taken over: times are those of the core "
              "alone; a section npu in the file, as in that board's, describes one"])
    note_written(path)


def _ask_missing(asked: NewBoard) -> dict[str, Any]:
    """Ask for what is needed of a board that is like none."""
    from twin.api.commands.boards import NEEDED

    return {name: asked.option(name).read(typer.prompt(such.strip("-").replace(" ", ", as "),
                                                       err=True))
            for name, such in NEEDED.items()
            if getattr(asked, name) is None and asked.like is None and sys.stdin.isatty()}


def _ask_guesses(wanted: Any) -> Any:
    """Offer each guess that matters for time or energy; without a terminal they stand."""
    from twin.api.commands.boards import guess

    if not sys.stdin.isatty():
        return wanted
    guesses = guess(wanted)
    found: dict[str, Any] = {}
    for key, text in (("wait_states", "flash wait states"), ("read_bytes", "flash read, bytes"),
                      ("cache_bytes", "cache, bytes"),
                      ("regulator", "regulator: ldo, smps or none")):
        guessed = getattr(guesses, key)
        if getattr(wanted, key) is None and (
                key != "regulator" or wanted.run_ma_per_mhz or wanted.like):
            given = typer.prompt(f"{text} (a guess; enter keeps it)", default=guessed, err=True)
            found[key] = None if given == guessed else given
    return replace(wanted, **found)


@app.command("show")
@command
def boards(name: Name = None, sources: Sources = False, virtual: Virtual = False,
           as_json: AsJson = False) -> None:
    """List the boards, or show one with its parts."""
    if virtual:
        if name is not None or sources:
            raise UsageError("--virtual lists emulated boards and goes with --json alone")
        show_view(twin.list_virtual_boards(), "measured:virtual_boards_table", as_json=as_json)
    elif name is not None:
        show_view(twin.show_board(name), "catalogue:board_report", sources=sources, as_json=as_json)
    elif sources:
        raise UsageError("--sources needs the NAME of a board, such as "
                         "`twin boards nucleo_l4r5zi --sources`")
    else:
        found = twin.list_boards()
        show_view(found, "catalogue:boards_table", found.boards, broken=found.broken,
                  as_json=as_json)
        warn(f"broken: {why}" for why in ({} if as_json else found.broken).values())


@command(view="doctor:doctor_report", ends=lambda found: not found.is_ready)
def doctor(asked: Doctor, json: Json) -> object:
    """Check compilers, flash tools, ports and permissions; say what to type for a board."""
    return twin.doctor(**asked.arguments)
