"""`twin boards`: the boards there are, one in full, and a file for a new one."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import twin
from twin.api.requests import Option, parse_quantity
from twin.cli.options import AsJson, command
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin import Wanted

Name = Annotated[str | None, Option("", "[NAME]", "A board to show in full.")]
Sources = Annotated[bool, Option(
    "--sources", None, "Every number of the board with its kind and source.")]
Virtual = Annotated[bool, Option(
    "--virtual", None, "Boards one can run today: emulators, for `twin measure --virtual`.")]


NewName = Annotated[str, Option("", "NAME", "What the board is to be called.")]
Like = Annotated[str | None, Option(
    "--like", "BOARD", "Guess from this board: its core, caches, flash, currents.")]
CoreName = Annotated[str | None, Option(
    "--core", "CORE", "cortex-m4, rv32imc ..., or of a folder of TWIN_CORES.")]
Clock = Annotated[str | None, Option("--clock", "FREQUENCY", "As 96MHz.")]
Flash = Annotated[str | None, Option("--flash", "SIZE", "As 1MiB.")]
Sram = Annotated[str | None, Option("--sram", "SIZE", "As 256KiB.")]
WaitStates = Annotated[int | None, Option(
    "--wait-states", None, "Of the flash at that clock; may be guessed.", least=0, most=64)]
ReadSize = Annotated[str | None, Option(
    "--flash-read", "SIZE", "What one read of the flash array delivers, as 16B; may be guessed.")]
CacheSize = Annotated[str | None, Option(
    "--cache", "SIZE", "Of each cache in front of the flash, 0B for none; may be guessed.")]
Volts = Annotated[float | None, Option("--supply", "VOLT", "May be guessed.", least=0.5, most=60.0)]
Regulator = Annotated[str | None, Option(
    "--regulator", "ldo|smps|none", "What makes the core voltage; may be guessed.")]
RunCurrent = Annotated[float | None, Option(
    "--run-current", "UA/MHZ", "Whole run current at that clock, supply and regulator, in "
    "microampere per megahertz; unknown, and no --like: energy is not known.", least=1.0,
    most=1e5)]
BoardFile = Annotated[str | None, Option("--output -o", "FILE", "By default NAME.yaml.")]


EXAMPLES = {"--core": "cortex-m4", "--clock": "96MHz", "--flash": "1MiB", "--sram": "256KiB"}


class NamedBoards(TyperGroup):
    """`twin boards` and `twin boards NAME` show; `twin boards new` makes one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is no command for what is to be shown."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=NamedBoards, add_completion=False, rich_markup_mode=None,
                  help="List the boards (--virtual: the emulators), show one (`twin boards NAME "
                       "--sources`: with its sources), or describe a new one.")


@app.command("new")
@command
def new(name: NewName, like: Like = None, core: CoreName = None, clock: Clock = None,
        flash: Flash = None, sram: Sram = None, wait_states: WaitStates = None,
        flash_read: ReadSize = None, cache: CacheSize = None, supply: Volts = None,
        regulator: Regulator = None, run_current: RunCurrent = None,
        output: BoardFile = None, as_json: AsJson = False) -> None:
    """Write a board file from what a datasheet's first page says; guesses are marked as such."""
    from twin.api.commands.boards import check_new

    check_new(name)
    model = None if like is None else twin.show_board(like)
    asked = {"--core": core or (None if model is None else model.core.model), "--clock": clock,
             "--flash": flash, "--sram": sram}
    told = _ask_missing(asked)
    wanted = twin.Wanted(
        name=name, core=told["--core"], like=model, wait_states=wait_states, supply_v=supply,
        regulator=regulator,
        clock_hz=parse_quantity(told["--clock"], "hz", "--clock"),
        flash_bytes=_size(told["--flash"], "--flash"), sram_bytes=_size(told["--sram"], "--sram"),
        read_bytes=None if flash_read is None else _size(flash_read, "--flash-read"),
        cache_bytes=None if cache is None else 0 if cache in ("0", "0B") else
        _size(cache, "--cache"),
        run_ma_per_mhz=None if run_current is None else run_current / 1e3)
    path, board = twin.new_board(_ask_guesses(wanted), output)
    if as_json:
        from twin.reports.outcomes import NewBoard

        show_json(NewBoard(path=path, board=board))
    else:
        from twin.reports.tables.catalogue import board_report

        show(open_console(), board_report(board, sources=True))
    assumed = [fact.path for fact in board.facts if fact.kind == "assumed"]
    warn([f"{len(assumed)} facts are assumed: {', '.join(assumed)}"])
    if run_current is not None:
        warn(["--run-current is taken as a busy loop's whole current; on measured boards "
              "networks drew 0.9 to 1.9 times as much: `twin predict` says what it makes of it"])
    note_written(path)


def _ask_missing(asked: dict[str, str | None]) -> dict[str, str]:
    """Ask for what is needed; without a terminal, refuse and name it."""
    missing = [option for option, value in asked.items() if value is None]
    if missing and not sys.stdin.isatty():
        such = " ".join(f"{option} {EXAMPLES[option]}" for option in missing)
        raise UsageError(f"needed: {', '.join(missing)}; accepted: as {such}, or --like BOARD for "
                         "the core")
    return {option: value if value is not None else
            typer.prompt(f"{option.strip('-')}, as {EXAMPLES[option]}", err=True)
            for option, value in asked.items()}


def _ask_guesses(wanted: Wanted) -> Wanted:
    """Offer each guess that matters for time or energy; without a terminal they stand."""
    from twin.api.commands.boards import guess_board

    if not sys.stdin.isatty():
        return wanted
    guesses = guess_board(wanted)
    found: dict[str, Any] = {}
    for key, text in (("wait_states", "flash wait states"), ("read_bytes", "flash read, bytes"),
                      ("cache_bytes", "cache, bytes")):
        guessed = getattr(guesses, key)
        if getattr(wanted, key) is None:
            given = typer.prompt(f"{text} (a guess; enter keeps it)", default=guessed, type=int,
                                 err=True)
            found[key] = None if given == guessed else given
    if wanted.regulator is None and (wanted.run_ma_per_mhz or wanted.like):
        given = typer.prompt("regulator: ldo, smps or none (a guess; enter keeps it)",
                             default=guesses.regulator, err=True)
        found["regulator"] = None if given == guesses.regulator else given
    return replace(wanted, **found)


def _size(text: str, option: str) -> int:
    return int(parse_quantity(text, "bytes", option))


@app.command("show")
@command
def boards(name: Name = None, sources: Sources = False, virtual: Virtual = False,
           as_json: AsJson = False) -> None:
    """List the boards, or show one with its parts."""
    if virtual:
        if name is not None or sources:
            raise UsageError("--virtual lists emulated boards and goes with --json alone")
        if as_json:
            show_json(twin.list_virtual_boards())
            return
        from twin.reports.tables.measured import virtual_boards_table

        show(open_console(), virtual_boards_table(twin.list_virtual_boards()))
        return
    if sources and name is None:
        raise UsageError("--sources needs the NAME of a board, such as "
                         "`twin boards nucleo_l4r5zi --sources`")
    if as_json:
        show_json(twin.list_boards() if name is None else twin.show_board(name))
        return
    from twin.reports.tables.catalogue import board_report, boards_table

    if name is None:
        found = twin.list_boards()
        show(open_console(), boards_table(found.boards, broken=found.broken))
        warn(f"broken: {why}" for why in found.broken.values())
    else:
        show(open_console(), board_report(twin.show_board(name), sources=sources))
