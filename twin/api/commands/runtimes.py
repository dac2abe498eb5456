"""`twin runtimes learn`: a kernel library learnt from programs."""

from __future__ import annotations

from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board
from twin.api.requests import takes
from twin.api.requests.programs import LearnRuntime
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin.program.library.learning import Lesson


@takes(LearnRuntime)
def learn_runtime(asked: LearnRuntime) -> Lesson:
    """Learn a kernel library from programs that run networks on it.

    The runtime, what was learnt and what is to be known of it.

    Raises
    ------
    ProgramError
        When a program cannot be run.
    NotTheSameError
        When its layers are not those of its network.
    UsageError
        When another process learns into the file.
    """
    from hwmodels.board.file import load_board
    from twin.api.commands.claims import claim_file
    from twin.api.commands.program import ask_program, read_program
    from twin.network.graph import Graph
    from twin.network.readers import read_model
    from twin.program.library.learning import check_name, learn_library

    path, elfs, models, board = Path(asked.output), asked.elfs, asked.models, asked.board
    if len(elfs) != len(models) or not elfs:
        raise UsageError(f"--model: {len(models)} networks of {len(elfs)} programs; accepted: one "
                         "--model for each ELF, in their order")
    check_name(path)
    wanted = ask_program(asked)
    machine = board if isinstance(board, Board) else load_board(fspath(board))
    programs = [(read_program(elf, wanted),
                 model if isinstance(model, Graph) else read_model(fspath(model)), wanted)
                for elf, model in zip(elfs, models, strict=True)]
    with claim_file(path, "learns into it"):
        return learn_library(programs, machine, path=path, base=asked.base)
