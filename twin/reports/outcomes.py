"""What commands did that is no result of a verb: what they wrote, flashed, removed, served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.network.accuracy import Accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Files a command wrote; `met`: whether the limits hold, None where it was given none."""

    files: tuple[Path, ...]
    met: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flashed:
    """An image a programmer put on a board."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBoard:
    """A board file that was written, and the board it describes."""

    path: Path
    board: Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Folders of kept runs that are gone; `really`: False where they would be."""

    folders: tuple[Path, ...]
    really: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Where the live what-if answers, and whether others than this machine may ask."""

    address: str
    open_wide: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracies:
    """How often a network is right before and after changes; None: nothing was changed."""

    model: str
    before: Accuracy
    after: Accuracy | None
