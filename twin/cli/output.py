"""Where output goes: results to stdout, warnings to stderr, wide and plain when piped."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from inspect import signature
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from hwmodels.errors import escape

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console as Drawing
    from rich.console import ConsoleOptions, RenderableType

    from twin.reports.tables.parts import Console, Content

PIPED_COLUMNS = 1000
"""Width when no terminal limits it: no row is folded, so that grep and awk see whole lines."""

LEAST_COLUMNS = 20
"""Width below which no table can be read."""

STYLED = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables by which a user may ask for a terminal's styles where there is none."""


def piped_columns() -> int:
    """Return the width of output that goes to no terminal: COLUMNS where it is a number."""
    asked = os.environ.get("COLUMNS", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 6):
        return PIPED_COLUMNS
    return max(LEAST_COLUMNS, int(asked))


def open_console() -> Console:
    """Return stdout as a console: the terminal's width and colours, or wide and plain."""
    from twin.reports.tables.parts import Page

    if sys.stdout.isatty() or not STYLED.isdisjoint(os.environ):
        return open_drawing()
    return Page(width=piped_columns(), encoding=(sys.stdout.encoding or "utf-8").lower())


def open_drawing() -> Drawing:
    """Return stdout as a console of rich."""
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        """Leaves colours to styles: what text itself says to a terminal is written out."""

        def render(self, renderable: RenderableType,
                   options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Render, with control characters as escapes."""
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(escape(segment.text, keep="\n"), segment.style)

    piped = not sys.stdout.isatty()
    return PlainConsole(file=sys.stdout, width=piped_columns() if piped else None, highlight=False,
                        markup=False, emoji=False, soft_wrap=False)


def show(console: Console, part: Content | RenderableType) -> None:
    """Print a part of the report; piped lines carry no blanks at their end."""
    from twin.reports.tables.parts import Page, lines_of

    lines = lines_of([part], console.width) if isinstance(console, Page) else None
    if lines is None:
        drawing: Any = open_drawing() if isinstance(console, Page) else console
        if drawing.is_terminal:
            drawing.print(part)
            return
        with drawing.capture() as captured:
            drawing.print(part)
        lines = captured.get().splitlines()
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))


def show_json(result: Any, **more: Any) -> None:
    """Print the document of what a verb found, as `twin.to_document` makes it."""
    from twin.reports.documents import write_json

    sys.stdout.write(write_json(result, **more))


def show_view(found: Any, view: str, *parts: Any, as_json: bool = False, **options: Any) -> None:
    """Print a result, or its document.

    Parameters
    ----------
    view
        "module:function" of `twin.reports.tables`, or of another package where it names one.
    parts
        What the function takes in place of the result.
    as_json
        Whether the document is printed.
    options
        Those the function takes are given to it, and the console.
    """
    if as_json:
        show_json(found)
        return
    make = resolve_name(view if "." in view else f"twin.reports.tables.{view}")
    console = open_console()
    wanted = signature(make).parameters
    given = {key: value for key, value in {**options, "console": console}.items() if key in wanted}
    show(console, make(*(parts or (found,)), **given))


MOST_WARNINGS = 3
"""Warnings a command prints; documents (--json) have all."""


def warn(warnings: Iterable[str], most: int = MOST_WARNINGS) -> None:
    """Write the first warnings to stderr, each once, and how many more there are."""
    each = list(dict.fromkeys(warnings))
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else math.inf
    for warning in each[:most]:
        text = f"warning: {escape(warning)}"
        print(text if len(text) <= width else textwrap.fill(
            text, int(width), subsequent_indent="  ", break_long_words=False,
            break_on_hyphens=False), file=sys.stderr)
    if len(each) > most:
        print(f"{len(each) - most} more: --json lists all warnings", file=sys.stderr)


def note_files(paths: Iterable[Path], as_json: bool = False, met: bool | None = None) -> None:
    """Say which files were written: on stderr, with --json as a document too."""
    files = tuple(paths)
    if as_json:
        from twin.reports.outcomes import Written

        show_json(Written(files=files, met=met))
    for path in files:
        note_written(path)


def note_written(path: object) -> None:
    """Say on stderr which file was written."""
    print(f"wrote {escape(str(path))}", file=sys.stderr)
