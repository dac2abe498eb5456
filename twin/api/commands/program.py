"""`twin predict --elf`: the bill of a program's machine code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, load_board
from hwmodels.files import read_regular
from twin.errors import ProgramError, UsageError
from twin.program.deployment import Program, change_settings, deploy_program
from twin.program.elf import Elf, read_elf
from twin.program.patterns import AUTO
from twin.program.session import Wanted

LIMIT = 2_000_000_000
"""Instructions after which a run is given up, where nobody says."""

LARGEST_MEMORY_BYTES = 64 << 20


def read_memory(file: str | Path) -> bytes:
    """Return what a file holds, for `deploy_elf`.

    Raises
    ------
    UsageError
        When it cannot be read, or is larger than a microcontroller's memory.
    """
    try:
        return read_regular(file, LARGEST_MEMORY_BYTES)
    except OSError as error:
        raise UsageError(f"--memory {file}: cannot be read ({error.strerror or error})") from error


def deploy_elf(elf: str | Path, board: str | Path | Board, *, begin: str | None = None,
               end: str | None = None, call: str | None = None, nth: int = 1,
               layers: str = AUTO, clock_hz: float | None = None,
               memory: Mapping[int, bytes] | None = None,
               registers: Mapping[str, int] | None = None, limit: int = LIMIT) -> Program:
    """Run a program's machine code on a board under emulation.

    Parameters
    ----------
    elf : str or Path
        Linked program of an Arm Cortex-M or a RISC-V core, with symbols.
    board : str, Path or Board
        A board's name, a board file, or a board.
    begin, end : str, optional
        Symbols, or 0xADDRESS: the part billed goes from one to the other; without `end` to where
        the function at `begin` returns.
    call : str, optional
        Function called when main is reached, instead of `begin`; in a program without a symbol
        main, when `begin` is.
    nth : int
        Which time `begin` is reached.
    layers : str
        Calls that are layers: "auto", "none", a shipped set, or patterns of functions.
    clock_hz : float, optional
        CPU clock in hertz.
    memory : mapping of int to bytes, optional
        What is found at addresses besides the program.
    registers : mapping of str to int, optional
        Core registers ("r0") when the part begins, peripheral ones ("0x40021000") from the start.
    limit : int
        Instructions after which a run is given up.

    Returns
    -------
    Program
        A deployment, as `twin.predict` takes it.

    Raises
    ------
    ProgramError
        When it cannot be run to the end of what was asked for.
    """
    wanted = ask_program(begin=begin, end=end, call=call, nth=nth, layers=layers, memory=memory,
                         registers=registers, limit=limit)
    return deploy_program(read_program(elf, wanted), prepare_board(board, clock_hz, {}), wanted)


def prepare_board(board: str | Path | Board, clock_hz: float | None,
                  settings: Mapping[str, object]) -> Board:
    """Return the board a program runs on: read, at a clock, with paths of its file changed.

    Raises
    ------
    UsageError
        For a path that is not the board's.
    """
    machine = board if isinstance(board, Board) else load_board(board)
    if clock_hz is not None:
        machine = change_board(machine, {f"clocks.{machine.core.clock}.frequency_hz": clock_hz},
                               follow_clock=True)
    return change_settings(machine, settings)


def read_program(path: str | Path, wanted: Wanted) -> Elf:
    """Read a program, and look that what is asked about lies in it.

    Raises
    ------
    ProgramError
        When it is none, or an address is neither of it nor of a file given with it.
    """
    elf = read_elf(path)
    places = [*elf.sections.values(),
              *((at, at + len(content)) for at, content in wanted.files.items())]
    for option, symbol in (("--from", wanted.begin), ("--call", wanted.call)):
        if symbol is None or symbol in elf.symbols or not symbol.lower().startswith("0x"):
            continue
        address = elf.address_of(symbol, option)
        if not any(low <= address < high for low, high in places):
            first, last = min(elf.code)[0], max(high for _, high in elf.code)
            raise ProgramError(f"{path}: {option} {symbol}: nothing of the program lies there; "
                               f"accepted: a function, or an address of its code, 0x{first:08x} "
                               f"to 0x{last:08x}")
    return elf


def ask_program(*, begin: str | None, end: str | None, call: str | None, nth: int, layers: str,
                memory: Mapping[int, bytes] | None, registers: Mapping[str, int] | None,
                limit: int) -> Wanted:
    """Return which part of a program is asked about; parameters as of `deploy_elf`.

    Raises
    ------
    UsageError
        When it is none, or two.
    """
    if end is not None and begin is None and call is None:
        raise UsageError("--to needs --from; accepted: --from SYMBOL --to SYMBOL")
    if begin is None and call is None:
        raise UsageError("a program: which part of it? accepted: --from SYMBOL (with --to SYMBOL "
                         "or up to its return), or --call SYMBOL")
    if call is not None and (end is not None or nth != 1):
        raise UsageError("--call: not with --to or --nth, which go with --from; accepted: --call "
                         "SYMBOL, without a symbol main --from 0xADDRESS --call 0xADDRESS")
    if nth < 1 or limit < 1:
        raise UsageError("--nth and --limit: accepted: whole numbers from 1 on")
    return Wanted(begin=begin, end=end, call=call, nth=nth, layers=layers,
                  registers=dict(registers or {}), files=dict(memory or {}), limit=limit)


def list_registers() -> frozenset[str]:
    """Return the registers of cores a program may be handed arguments in."""
    from hwmodels.program import riscv, thumb

    return frozenset(name.lower() for one in (thumb, riscv) for name in one.REGISTERS)
