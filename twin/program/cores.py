"""Which emulated core a program runs on."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.board.facts import Board
from twin.program.elf import Elf
from twin.program.machine import Machine
from twin.program.recorder import Recorder
from twin.program.riscv_machine import RiscvMachine


def open_machine(elf: Elf, board: Board, files: Mapping[int, bytes], limit: int,
                 recorder: type[Recorder] = Recorder) -> Machine:
    """Return the board's core with a program in its memories; parameters as of `Machine`.

    `check_wanted` has seen to it that the program is for that core.
    """
    kind = RiscvMachine if elf.machine == "riscv" else Machine
    return kind(elf, board, files, limit, recorder)
