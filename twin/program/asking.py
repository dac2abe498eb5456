"""What is asked of a program, and its check before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from hwmodels.program.encodings import encoding_of
from twin.errors import ProgramError
from twin.program.cores import check_core
from twin.program.elf import Elf
from twin.program.patterns import choose_layers

MAINS = ("main", "run_firmware", "app_main")
"""Functions at which start-up is over."""


@frozen
class Wanted:
    """What of a program is asked about.

    Parameters
    ----------
    begin
        Symbol the measured part begins at.
    end
        Symbol it ends before; None: where the function at `begin` returns.
    call
        Symbol called once start-up is over, at main or else at `begin`.
    nth
        Which time `begin` is reached.
    layers
        As `choose_layers` takes it.
    registers
        Core registers set when the measured part begins; peripheral ones from the start.
    files
        Memory contents by address.
    limit
        Instructions, start-up included, after which a run is given up.
    skip_startup
        Whether it begins at main, with variables as its file has them.
    observed
        Whether blocks and operands are asked for (`twin.program.observing`), not traffic.
    marks : tuple of (int, int, int)
        Of what is observed: number, first address and end of what is known to lie there.
    """

    begin: str | None
    end: str | None
    call: str | None
    nth: int
    layers: str
    registers: Mapping[str, int]
    files: Mapping[int, bytes]
    limit: int
    skip_startup: bool = False
    observed: bool = False
    marks: tuple[tuple[int, int, int], ...] = ()


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


def name_registers(registers: Mapping[str, int], known: Mapping[str, str]) -> dict[str, int]:
    """Return what registers of a core are set to, by the emulator's names.

    Parameters
    ----------
    registers
        As `--set-register` has them; those by address are of peripherals, and omitted.
    known
        The core's.

    Raises
    ------
    ProgramError
        For one the core has not.
    """
    found = {}
    for name, value in registers.items():
        if name.startswith("0x"):
            continue
        if name.upper() not in known:
            raise ProgramError(f"--set-register {name}: the core has no such register; accepted: "
                               f"{', '.join(known).lower()}, or 0xADDRESS=VALUE")
        found[known[name.upper()]] = value
    return found
