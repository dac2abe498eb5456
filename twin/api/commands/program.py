"""`twin predict --elf`: the bill of a program's machine code."""

from __future__ import annotations

from os import fspath
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, load_board
from hwmodels.files import File
from hwmodels.program.elf import lies_in
from hwmodels.quantities import Settings
from twin.api.requests import Deployed, Part, takes
from twin.api.requests.programs import DeployElf
from twin.errors import ProgramError, UsageError
from twin.program.asking import Wanted
from twin.program.deployment import Program, change_settings, deploy_program
from twin.program.elf import Elf, read_elf

LIMIT = 2_000_000_000
"""Instructions after which a run is given up, where nobody says."""


@takes(DeployElf)
def deploy_elf(asked: DeployElf) -> Program:
    """Run a program's machine code on a board under emulation.

    A deployment, as `twin.predict` takes it. `begin`, `end` and `call` are symbols or 0xADDRESS:
    the part billed goes from `begin` to `end`, else to where the function at `begin` returns.
    `layers` is "auto", "none", a shipped set, or patterns of functions; core registers ("r0") are
    set when the part begins, peripheral ones ("0x40021000") from the start.

    Raises
    ------
    ProgramError
        When it cannot be run to the end of what was asked for.
    """
    return _deploy(asked.elf, prepare_board(asked.board, asked.clock_hz, {}), asked)


def deploy_part(elf: str, board: str, part: Part, placed: Deployed) -> Program:
    """Run a part of a program on a board with the changes and the clock of a request."""
    return _deploy(elf, prepare_board(board, placed.clock_hz, placed.changes or {}), part)


def _deploy(elf: File, board: Board, part: Part) -> Program:
    if part.begin is None and part.call is None:
        read_elf(Path(elf))  # what is not a program is refused as that, not asked about
    wanted = ask_program(part)
    return deploy_program(read_program(elf, wanted), board, wanted)


def prepare_board(board: File | Board, clock_hz: float | None, settings: Settings) -> Board:
    """Return the board a program runs on: read, at a clock, with paths of its file changed.

    Raises
    ------
    UsageError
        For a path that is not the board's.
    """
    machine = board if isinstance(board, Board) else load_board(fspath(board))
    if clock_hz is not None:
        machine = change_board(machine, {f"clocks.{machine.core.clock}.frequency_hz": clock_hz},
                               follow_clock=True)
    return change_settings(machine, settings)


def read_program(path: File, wanted: Wanted) -> Elf:
    """Read a program, and look that what is asked about lies in it.

    Raises
    ------
    ProgramError
        When it is none, or an address is neither of it nor of a file given with it.
    """
    elf = read_elf(Path(path))
    places = [*elf.sections.values(),
              *((at, at + len(content)) for at, content in wanted.files.items())]
    for option, symbol in (("--from", wanted.begin), ("--call", wanted.call)):
        if symbol is None or symbol in elf.symbols or not symbol.lower().startswith("0x"):
            continue
        address = elf.address_of(symbol, option)
        if not lies_in(address, places):
            first, last = min(elf.code)[0], max(high for _, high in elf.code)
            raise ProgramError(f"{path}: {option} {symbol}: nothing of the program lies there; "
                               f"accepted: a function, or an address of its code, 0x{first:08x} "
                               f"to 0x{last:08x}")
    return elf


def ask_program(asked: Part) -> Wanted:
    """Return which part of a program is asked; raises `UsageError` when it is none, or two."""
    begin, end, call = asked.begin, asked.end, asked.call
    nth = 1 if asked.nth is None else asked.nth
    limit = LIMIT if asked.limit is None else asked.limit
    if end is not None and begin is None and call is None:
        raise UsageError("--to needs --from; accepted: --from SYMBOL --to SYMBOL")
    if begin is None and call is None:
        raise UsageError("--elf: no part of the program is named; accepted: --from SYMBOL (with "
                         "--to SYMBOL or up to its return), or --call SYMBOL")
    if call is not None and (end is not None or nth != 1):
        raise UsageError("--call: not with --to or --nth, which go with --from; accepted: --call "
                         "SYMBOL, without a symbol main --from 0xADDRESS --call 0xADDRESS")
    if nth < 1 or limit < 1:
        raise UsageError("--nth and --limit: accepted: whole numbers from 1 on")
    return Wanted(begin=begin, end=end, call=call, nth=nth, layers=asked.layers,
                  registers=dict(asked.registers or {}), files=dict(asked.memory or {}),
                  limit=limit, skip_startup=asked.skip_startup)
