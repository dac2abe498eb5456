"""What is asked of a program, checked before anything of it runs."""

from __future__ import annotations

from hwmodels.board.facts import Board
from hwmodels.program.encodings import encoding_of
from twin.errors import ProgramError
from twin.program.cores import check_core
from twin.program.elf import Elf
from twin.program.patterns import choose_layers
from twin.program.session import MAINS, Wanted, name_registers


def check_wanted(elf: Elf, board: Board, wanted: Wanted) -> None:
    """Refuse what a run would refuse later: another core, places and registers there are not.

    Raises
    ------
    ProgramError
        Naming the option, and what would be accepted.
    """
    check_core(elf, board)
    for option, symbol in (("--from", wanted.begin), ("--to", wanted.end), ("--call", wanted.call)):
        if symbol is not None:
            elf.address_of(symbol, option)
    _check_call(elf, wanted)
    if not (elf.stripped and wanted.layers.lstrip().lower().startswith("0x")):
        choose_layers(elf, wanted.layers)
    name_registers(wanted.registers, encoding_of(elf.machine).REGISTERS)


def _check_call(elf: Elf, wanted: Wanted) -> None:
    """Refuse a call where nothing says when start-up is over, or two things do."""
    if wanted.call is None:
        return
    known = any(name in elf.symbols for name in MAINS)
    if known and wanted.begin is not None:
        raise ProgramError("--call and --from exclude each other where the program has a function "
                           "main; accepted: --call SYMBOL, or --from SYMBOL with or without --to")
    if not known and wanted.begin is None:
        raise ProgramError(
            f"{elf.path}: --call needs a function main, at which start-up is over, and no symbol "
            f"is named so; accepted: --from 0xADDRESS --call {wanted.call}, with the address of "
            f"main, which the code at 0x{elf.entry:08x} goes to last as a rule")
