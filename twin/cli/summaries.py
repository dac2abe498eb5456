"""What each command does, in a line read from its source: the help loads no command for it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent


def summarise(place: str) -> str | None:
    """Return the beginning of a verb's own help.

    Parameters
    ----------
    place
        "module:name" of this package: a function, or a typer that says `help=` in plain text.

    Returns
    -------
    str or None
        None where the source does not say it in one of these ways.
    """
    module, _, name = place.partition(":")
    text = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
    _, head, rest = text.partition(f"\ndef {name}(")
    if head:
        described = rest.partition('\n    """')[2].partition('"""')[0]
        return " ".join(described.partition("\n\n")[0].split()) or None
    call = text.partition(f"\n{name} = typer.Typer(")[2].partition("\n\n")[0]
    found = re.search(r'\bhelp=((?:\s*"[^"\n]*")+)', call)
    return "".join(map(ast.literal_eval, re.findall(r'"[^"\n]*"', found[1]))) if found else None
