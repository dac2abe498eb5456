"""Operators of the network a log is of, where it is known."""

from __future__ import annotations

import re

from hwmodels.frozen import frozen


@frozen
class Listing:
    """Operators of the network a log is of.

    Parameters
    ----------
    operators
        In the order they run.
    known
        Every operator we know by name; a tag that is none of them is not compared.
    aliases
        Places of operators that only rename what they read, for which some libraries have no call.
    """

    network: str
    operators: tuple[str, ...]
    known: tuple[str, ...]
    aliases: tuple[int, ...] = ()

    def accepts(self, place: int, tag: str) -> bool:
        """Whether a tag may be that of the operator at a place; tools cut long ones."""
        ours, theirs = plain(self.operators[place]), plain(tag)
        return ours.startswith(theirs) or not any(
            plain(name).startswith(theirs) for name in self.known)


def plain(name: str) -> str:
    """Return letters and digits of a name, small."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
