"""What commands did that is no result of a verb: what they wrote, flashed, removed, served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.frozen import NamedTexts, frozen

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.studies.accuracy import Accuracy


@frozen
class Written:
    """Files a command wrote; `met`: whether the limits hold, None where it was given none."""

    files: tuple[Path, ...]
    met: bool | None = None


@frozen
class Flashed:
    """An image a programmer put on a board."""

    message: str


@frozen
class NewBoard:
    """A board file that was written, and the board it describes."""

    path: Path
    board: Board


@frozen
class Removed:
    """Folders of kept runs that are gone; `really`: False where they would be."""

    folders: tuple[Path, ...]
    really: bool


@frozen
class Serving:
    """Where the live what-if answers, and whether others than this machine may ask."""

    address: str
    open_wide: bool


@frozen
class Accuracies:
    """How often a network is right before and after changes; None: nothing was changed."""

    model: str
    before: Accuracy
    after: Accuracy | None


@frozen
class Check:
    """Something that was looked for.

    Parameters
    ----------
    found
        Its version or place; "" where it is not there or not usable.
    advice
        What to type where it is not.
    needed
        Whether the board asked about cannot be measured without it.
    """

    name: str
    found: str
    advice: str = ""
    needed: bool = False


@frozen
class Checkup:
    """What is there, and what to type.

    Parameters
    ----------
    checks
        In the order they were made.
    steps : tuple of (str, str)
        What to type, and what it does.
    """

    checks: tuple[Check, ...]
    board: str | None
    steps: NamedTexts

    @property
    def is_ready(self) -> bool:
        """Whether all that is needed is there."""
        return all(check.found or not check.needed for check in self.checks)
