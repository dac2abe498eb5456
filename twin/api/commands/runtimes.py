"""`twin runtimes`: the kernel libraries there are, one in full, and one learnt from programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board
from twin import runtimes
from twin.errors import UsageError
from twin.runtimes import Runtime

if TYPE_CHECKING:
    from twin.network.graph import Graph
    from twin.program.library.learning import Lesson


def list_runtimes() -> tuple[Runtime, ...]:
    """Read every runtime that is shipped, by name and version."""
    return tuple(runtimes.load_runtime(one) for one in runtimes.list_runtimes())


def show_runtime(name: str) -> Runtime:
    """Read a runtime.

    Parameters
    ----------
    name : str
        As name or name@version.

    Returns
    -------
    Runtime
        With every number and its source.
    """
    return runtimes.load_runtime(name)


def learn_runtime(elfs: Sequence[str | Path], models: Sequence[str | Path | Graph],
                  board: str | Path | Board, *, output: str | Path = "my_runtime.yaml",
                  base: str | None = None, begin: str | None = None, end: str | None = None,
                  call: str | None = None, nth: int = 1, layers: str = "auto",
                  memory: Mapping[int, bytes] | None = None,
                  registers: Mapping[str, int] | None = None, limit: int | None = None) -> Lesson:
    """Learn a kernel library from programs that run networks on it.

    Parameters
    ----------
    elfs : sequence of path
        Linked programs with one build of the library.
    models : sequence of path or Graph
        The network each of them runs.
    board : str, Path or Board
        They are linked for.
    output : path
        Runtime file; what it was learnt from before is kept and joined.
    base : str, optional
        Runtime of operators no program ran; by default by what the programs were made with.
    begin, end, call, nth, layers, memory, registers, limit
        Which part of the programs runs the network: as for `deploy_elf`.

    Returns
    -------
    Lesson
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
    from twin.api.commands.program import LIMIT, ask_program, read_program
    from twin.network.readers import read_model
    from twin.program.library.learning import learn_library

    path = Path(output)
    if len(elfs) != len(models) or not elfs:
        raise UsageError(f"--model: {len(models)} networks of {len(elfs)} programs; accepted: one "
                         "--model for each ELF, in their order")
    _check_name(path)
    wanted = ask_program(begin=begin, end=end, call=call, nth=nth, layers=layers, memory=memory,
                         registers=registers, limit=LIMIT if limit is None else limit)
    machine = board if isinstance(board, Board) else load_board(board)
    programs = [(read_program(elf, wanted),
                 model if not isinstance(model, str | Path) else read_model(model), wanted)
                for elf, model in zip(elfs, models, strict=True)]
    with claim_file(path, "learns into it"):
        return learn_library(programs, machine, path=path, base=base)


def _check_name(path: Path) -> None:
    """Refuse a file a runtime cannot be named by."""
    if path.suffix != ".yaml" or "@" in path.name:
        raise UsageError(f"--output {path}: a name that ends in .yaml is expected, such as "
                         "my_runtime.yaml")
    if path.stem in {name.partition("@")[0] for name in runtimes.list_runtimes()}:
        raise UsageError(f"--output {path}: {path.stem} is a runtime already; accepted: another "
                         "name")
