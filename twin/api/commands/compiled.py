"""`twin predict` of what an accelerator's compiler wrote: the report of its epochs."""

from __future__ import annotations

from os import fspath

from hwmodels.board.file import load_board
from hwmodels.files import File
from twin.attribution.predicted import side_of_compiled
from twin.attribution.side import Side
from twin.runtimes.neural_art import compiler_output
from twin.runtimes.neural_art.compiler_output import read_compiled


def is_compiled(path: str) -> bool:
    """Whether a file is what an accelerator's compiler wrote, not a model."""
    return compiler_output.is_compiled(path)


def predict_compiled(path: File, board: str) -> tuple[Side, tuple[str, ...]]:
    """Report the epochs of a network as its accelerator's compiler laid it out.

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
    UsageError
        When the board has no accelerator.
    """
    network = read_compiled(fspath(path))
    side = side_of_compiled(network, load_board(board))
    if all(epoch.kind == "hw" for epoch in network.epochs):
        return side, ()
    return side, ("what software and hybrid epochs compute is not in the compiler's output: only "
                   "their dispatch is counted",)
