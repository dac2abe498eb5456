"""Which emulated core a program runs on."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.board.facts import Board
from hwmodels.isa import MACHINES, load_isa
from twin.errors import ProgramError
from twin.program.elf import Elf
from twin.program.machine import Machine
from twin.program.recorder import Recorder
from twin.program.riscv_machine import RiscvMachine

_KINDS = {one.accepts: one for one in (Machine, RiscvMachine)}


def open_machine(elf: Elf, board: Board, files: Mapping[int, bytes], limit: int,
                 recorder: type[Recorder] = Recorder) -> Machine:
    """Return the board's core with a program in its memories; parameters as of `Machine`.

    Raises
    ------
    ProgramError
        When the program is not for that core.
    """
    check_core(elf, board)
    return _KINDS[elf.machine](elf, board, files, limit, recorder)


def check_core(elf: Elf, board: Board) -> None:
    """Refuse a program of another instruction set than the board's.

    Raises
    ------
    ProgramError
        Naming both.
    """
    isa = load_isa(board.core.isa)
    code = f"machine code of {elf.machine}"
    if elf.architecture is not None:
        code += ", architecture " + MACHINES[elf.machine].architectures.get(
            elf.architecture, str(elf.architecture))
    if elf.machine != isa.machine or elf.architecture not in (None, *isa.architectures):
        raise ProgramError(f"{elf.path}: {code}, and {board.name} has a "
                           f"{board.core.model}; accepted: a program linked for this board")
