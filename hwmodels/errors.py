"""Typed errors of the hardware layer, and the base every refusal of the project shares."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

from hwmodels.terminal import escape, tell_in_one_line


class TwinError(Exception):
    """A refusal the user can act on.

    Parameters
    ----------
    message : str
        What was refused, naming the file, key or layer, and what would be accepted.

    Notes
    -----
    `exit_code` is what the command line ends with: 2 usage, 3 a model, board or study refused,
    4 link, 5 a tool is missing. The message is one line of printable characters, however long or
    strange what it quotes; where `quotes_lines`, it holds the output of a program, line by line.
    """

    exit_code = 3
    quotes_lines: ClassVar[bool] = False

    def __init__(self, message: str = "") -> None:
        super().__init__(escape(message, keep="\n\t") if self.quotes_lines
                         else tell_in_one_line(message))


class BoardError(TwinError):
    """A board file, or a what-if on one, was refused."""


class KernelError(TwinError):
    """A kernel description the models cannot run: unknown instruction, operand or memory."""


class ToolMissingError(TwinError):
    """An optional package or program is not installed."""

    exit_code = 5


def extra_missing(what: str, package: str, extra: str) -> ToolMissingError:
    """Return the refusal of what a missing package would do, naming the extra that installs it.

    Parameters
    ----------
    what : str
        What needs it, in the plural: "pictures".
    package : str
        What is missing.
    extra : str
        Of this project.
    """
    return ToolMissingError(f"{what} need {package}, which the extra {extra!r} installs: "
                            f"pip install '.[{extra}]' in the project's folder")


def did_you_mean(word: str, accepted: Iterable[str]) -> str:
    """Return a hint naming the nearest accepted words, or all of them when none is near.

    Parameters
    ----------
    word : str
        What was given.
    accepted : iterable of str
        What would have been accepted.

    Returns
    -------
    str
        One sentence to append to an error message.
    """
    names = sorted(accepted)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"accepted: {', '.join(names)}"
