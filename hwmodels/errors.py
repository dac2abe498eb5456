"""Typed errors of the hardware layer, and the base every refusal of the project shares."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from typing import ClassVar

LONGEST_REFUSAL = 492
"""Characters of a refusal, of which the end says what would be accepted: under 500 with "error: "
ahead of it."""

_SHOWN = 300
STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]")
"""Control characters, invisible ones and those that turn the direction of text."""


def escape(text: str, *, keep: str = "") -> str:
    r"""Write control characters, invisible ones and those that turn the direction as escapes.

    Parameters
    ----------
    text
        From a file, a board, or the command line.
    keep
        Characters left as they are, such as line ends of a document.

    Returns
    -------
    str
        `\x1b` in place of an escape character.
    """
    if text.isprintable():
        return text
    text = re.sub("[\udc80-\udcff]", lambda byte: f"\\x{ord(byte[0]) - 0xdc00:x}", text)
    return STEERING.sub(lambda found: found[0] if found[0] in keep
                         else found[0].encode("unicode_escape").decode("ascii"), text)


def tell_in_one_line(text: str, longest: int = LONGEST_REFUSAL) -> str:
    """Return a message as one printable line, whole words of its middle omitted if too long.

    Parameters
    ----------
    text
        The message; may quote text from outside.
    longest
        Characters at most, above 310.
    """
    if not text.isprintable():
        text = escape(" ".join(text[:8 * longest].split() + text[-longest:].split())
                      if len(text) > 9 * longest else " ".join(text.split()))
    if len(text) <= longest:
        return text
    first, last = text[:_SHOWN], text[_SHOWN + 5 - longest:]
    return (re.sub(r"(?<=\s)\S{1,60}$", "", first).rstrip() + " ... "
            + re.sub(r"^\S{0,60}\s+", "", last))


class TwinError(Exception):
    """A refusal the user can act on.

    Parameters
    ----------
    message
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


class UnknownPathError(BoardError):
    """A what-if path the board's file does not have: `path`."""

    def __init__(self, message: str = "", path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ExtensionError(TwinError):
    """What an installed package adds to the project was refused; names the package and entry."""


class KernelError(TwinError):
    """A kernel description the models cannot run: unknown instruction, operand or memory."""


class ToolMissingError(TwinError):
    """An optional package or program is not installed."""

    exit_code = 5


def extra_missing(what: str, package: str, extra: str) -> ToolMissingError:
    """Return the refusal of what a missing package would do, naming the extra that installs it.

    Parameters
    ----------
    what
        What needs it, in the plural: "pictures".
    """
    return ToolMissingError(f"{what} need {package}, which the extra {extra!r} installs: "
                            + say_install(extra))


def say_install(extra: str) -> str:
    """Return the command that installs an extra: beside a wheel and in a checkout alike."""
    return f"pip install 'embedded-twin[{extra}]'"


@contextlib.contextmanager
def need_extra(what: str, package: str, extra: str) -> Iterator[None]:
    """Refuse what an import inside cannot find; arguments and error as of `check_extra`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise extra_missing(what, package, extra) from error
    except ImportError as error:
        raise ToolMissingError(f"{what} need {package}, which does not load: {error}") from error


@contextlib.contextmanager
def reworded(caught: type[Exception] | tuple[type[Exception], ...], refusal: type[TwinError],
             before: str = "", after: str = "") -> Iterator[None]:
    """Raise what a block raises as a refusal: the system's reason, or its text, in a sentence.

    Parameters
    ----------
    before, after
        Around the reason: "FILE: cannot be read (", ")".
    """
    try:
        yield
    except caught as error:
        raise refusal(f"{before}{getattr(error, 'strerror', None) or error}{after}") from error


def check_extra(what: str, package: str, extra: str) -> None:
    """Refuse what a missing package would do, before anything is computed for it.

    Parameters
    ----------
    what, package, extra
        As for `extra_missing`.

    Raises
    ------
    ToolMissingError
        When the package is not installed.
    """
    if find_spec(package) is None:
        raise extra_missing(what, package, extra)


def check_word(what: str, word: str, accepted: Collection[str], refusal: type[TwinError]) -> None:
    """Refuse a word that is none of those accepted, naming all of them.

    Parameters
    ----------
    what
        Whose word it is, ahead of it: "board.yaml:core.fpu:".
    """
    if word not in accepted:
        raise refusal(f"{what} {word!r}; accepted: {', '.join(accepted)}")


def check_known(what: str, name: str, known: Collection[str], refusal: type[TwinError]) -> None:
    """Refuse a name that is none of those known, naming the nearest; `what` as of `check_word`."""
    if name not in known:
        raise refusal(f"{what} {name!r}; {did_you_mean(name, known)}")


LONGEST_WORD = 100
"""Characters of a word that are compared; a longer one is no typing error."""


def did_you_mean(word: str, accepted: Iterable[str]) -> str:
    """Return a hint naming the nearest accepted words, or all of them when none is near.

    Parameters
    ----------
    accepted
        What would have been accepted.

    Returns
    -------
    str
        One sentence to append to an error message.
    """
    names = sorted(accepted)
    near = difflib.get_close_matches(word[:LONGEST_WORD], names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"accepted: {', '.join(names)}"
