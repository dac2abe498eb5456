"""Help: what each command does, in a line read from its source, and its examples."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
LONGEST_SUMMARY = 62
"""Characters of a summary that a terminal of 80 columns has room for, behind the name."""


def shorten(text: str | None) -> str:
    """Return the first sentence of a help text up to a semicolon, or fewer clauses if it is long.

    A summary ends at a mark of punctuation, never in "...".
    """
    said = " ".join((text or "").partition("\n\n")[0].split()).partition("; ")[0].rstrip(".")
    ends = [mark.start() for mark in re.finditer(r"[:,] | \(", said)]
    return said[:max((end for end in [*ends, len(said)] if end <= LONGEST_SUMMARY), default=None)]


def show_examples(command: Any, name: str) -> Any:
    """Put the examples of a command under the first line of its help; return the command."""
    lines = (FOLDER / "examples.yaml").read_text(encoding="utf-8").splitlines()
    shown = [f"  {line[2:]}" for line in lines if line.startswith(f"- {name} ")]
    command.short_help = shorten(command.help)
    if shown:
        head, _, rest = (command.help or "").partition("\n\n")
        command.help = "\n\n".join([head, "\n".join(["\b", "Examples:", *shown]), rest])
    return command


def summarise(place: str) -> str | None:
    """Return the beginning of a verb's own help.

    Parameters
    ----------
    place : str
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
