"""Where output goes: results to stdout, remarks to stderr, wide and plain when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPED_COLUMNS = 1000
"""Width when no terminal limits it: no row is folded, so that grep and awk see whole lines."""


def open_console() -> Console:
    """Return stdout as a console: the terminal's width and colours, or wide and plain."""
    from rich.console import Console

    piped = not sys.stdout.isatty()
    return Console(file=sys.stdout, width=PIPED_COLUMNS if piped else None, highlight=False,
                   markup=False, emoji=False, soft_wrap=False)


def show(console: Console, part: RenderableType) -> None:
    """Print a part of the report; piped lines carry no blanks at their end."""
    if console.is_terminal:
        console.print(part)
        return
    with console.capture() as captured:
        console.print(part)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def warn(warnings: Iterable[str]) -> None:
    """Write warnings to stderr."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def note_written(path: object) -> None:
    """Say on stderr which file was written."""
    print(f"wrote {path}", file=sys.stderr)
