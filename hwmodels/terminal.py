"""Text from outside as it may be printed: nothing in it steers a terminal or forges a line."""

from __future__ import annotations

import re

LONGEST_REFUSAL = 499
"""Characters of a refusal, of which the end says what would be accepted."""

_SHOWN = 300
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]")


def escape(text: str, *, keep: str = "") -> str:
    """Write control characters, invisible ones and those that turn the direction as escapes.

    Parameters
    ----------
    text : str
        From a file, a board, or the command line.
    keep : str
        Characters left as they are, such as line ends of a document.

    Returns
    -------
    str
        `\\x1b` in place of an escape character.
    """
    if text.isprintable():
        return text
    return _STEERING.sub(lambda found: found[0] if found[0] in keep
                         else found[0].encode("unicode_escape").decode("ascii"), text)


def tell_in_one_line(text: str, longest: int = LONGEST_REFUSAL) -> str:
    """Return a message as one printable line, its middle left out where it is too long.

    Parameters
    ----------
    text : str
        What is to be told; may quote text from outside.
    longest : int
        Characters at most, above 310.
    """
    if not text.isprintable():
        text = escape(" ".join(text[:8 * longest].split() + text[-longest:].split())
                      if len(text) > 9 * longest else " ".join(text.split()))
    if len(text) <= longest:
        return text
    return f"{text[:_SHOWN]} ... {text[_SHOWN + 5 - longest:]}"
