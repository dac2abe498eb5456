"""`twin predict` of what an accelerator's compiler wrote: the report of its tasks."""

from __future__ import annotations

from os import fspath

from hwmodels.board.file import load_board
from hwmodels.files import File
from twin.attribution.predicted import side_of_compiled
from twin.attribution.side import Side
from twin.deployment.choice import find_compiler


def is_compiled(path: str) -> bool:
    """Whether a file is what an accelerator's compiler wrote, not a model."""
    return find_compiler(path) is not None


def predict_compiled(path: File, board: str) -> tuple[Side, tuple[str, ...]]:
    """Report the tasks of a network as its accelerator's compiler laid it out.

    Parameters
    ----------
    path : str or path
        What the compiler wrote (.json, .csv).
    board : str
        Name or file of the board.

    Returns
    -------
    tuple of (Side, tuple of str)
        The report of the profiler, and what is not in it.

    Raises
    ------
    ModelError
        When no compiler wrote it.
    UsageError
        When the board has no accelerator.
    """
    return side_of_compiled(fspath(path), load_board(board))
