"""`twin boards`: the boards there are, one in full, and a file for a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.board import file
from hwmodels.board.facts import Board
from hwmodels.errors import BoardError
from hwmodels.files import File
from hwmodels.frozen import frozen
from twin.learning.portability import new_board as boards

guess, NEEDED = boards.guess, boards.NEEDED

if TYPE_CHECKING:
    from calibration.virtual_board import VirtualBoard


@frozen
class Boards:
    """The boards there are.

    Parameters
    ----------
    broken : mapping of str to str
        Name to reason of those that cannot.
    """

    boards: tuple[Board, ...]
    broken: Mapping[str, str]


def list_boards() -> Boards:
    """Read every board that is shipped.

    Returns
    -------
    Boards
        By name.
    """
    found, broken = [], {}
    for name in file.list_boards():
        try:
            found.append(replace(file.load_board(name), name=name))  # What `-b` takes.
        except BoardError as error:
            broken[name] = str(error)
    return Boards(boards=tuple(found), broken=broken)


def show_board(name: File) -> Board:
    """Read a board.

    Parameters
    ----------
    name : str or path
        Of `list_boards`, or a board file.

    Returns
    -------
    Board
        Whose `facts` have every number with its kind and source.
    """
    return file.load_board(fspath(name))


def list_virtual_boards() -> tuple[VirtualBoard, ...]:
    """Return the boards one can run today: emulators, and what each still needs."""
    from calibration import virtual_board
    from twin.program.image.compile.build import find_missing

    return tuple(replace(one, missing=one.missing or find_missing(one.name))
                 for one in virtual_board.list_virtual_boards())


def new_board(wanted: boards.Wanted, output: File | None = None) -> tuple[Path, Board]:
    """Write a board file from what a datasheet's first page says; guesses are marked as such.

    Parameters
    ----------
    wanted : Wanted
        What is known; the rest is guessed.
    output : str or path, optional
        File; by default NAME.yaml. An existing one is never replaced.

    Returns
    -------
    tuple of (Path, Board)
        The file, and what it says.
    """
    return boards.write_board(wanted, Path(output or f"{wanted.name}.yaml"))
