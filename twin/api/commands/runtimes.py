"""`twin runtimes`: the kernel libraries there are, one in full, and one learnt from programs."""

from __future__ import annotations

from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board
from twin import runtimes
from twin.api.requests import takes
from twin.api.requests.programs import LearnRuntime
from twin.errors import UsageError
from twin.runtimes import Runtime

if TYPE_CHECKING:
    from twin.program.library.learning import Lesson


def list_runtimes() -> tuple[Runtime, ...]:
    """Read every runtime that is shipped, by name and version."""
    return tuple(runtimes.load_runtime(one) for one in runtimes.list_runtimes())


def show_runtime(name: str) -> Runtime:
    """Read a runtime.

    Returns
    -------
    Runtime
        With every number and its source.
    """
    return runtimes.load_runtime(name)


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
    from twin.program.library.learning import learn_library

    path, elfs, models, board = Path(asked.output), asked.elfs, asked.models, asked.board
    if len(elfs) != len(models) or not elfs:
        raise UsageError(f"--model: {len(models)} networks of {len(elfs)} programs; accepted: one "
                         "--model for each ELF, in their order")
    _check_name(path)
    wanted = ask_program(asked)
    machine = board if isinstance(board, Board) else load_board(fspath(board))
    programs = [(read_program(elf, wanted),
                 model if isinstance(model, Graph) else read_model(fspath(model)), wanted)
                for elf, model in zip(elfs, models, strict=True)]
    with claim_file(path, "learns into it"):
        return learn_library(programs, machine, path=path, base=asked.base)


def _check_name(path: Path) -> None:
    """Refuse a file a runtime cannot be named by."""
    if path.suffix != ".yaml" or "@" in path.name:
        raise UsageError(f"--output {path}: a name that ends in .yaml is expected, such as "
                         "my_runtime.yaml")
    if path.stem in {name.partition("@")[0] for name in runtimes.list_runtimes()}:
        raise UsageError(f"--output {path}: {path.stem} is a runtime already; accepted: another "
                         "name")
