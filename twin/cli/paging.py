"""Pages that open offline: the option verbs share, and how what they found becomes one."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

from hwmodels.errors import check_extra
from twin.api.requests import Option
from twin.cli.options import check_outputs
from twin.cli.output import note_written
from twin.errors import UsageError

PageFile = Annotated[str | None, Option(
    "--report", "FILE", "Write it as one page that opens offline: a file ending in .html.")]


def say_command() -> str:
    """Return what was typed, as a shell takes it."""
    return shlex.join(("twin", *sys.argv[1:]))


def check_page(*outputs: str | None) -> None:
    """Refuse a page that could not be written, before anything is computed."""
    for output in filter(None, outputs):
        if not output.lower().endswith((".html", ".htm")):
            raise UsageError(f"{output}: a page ends in .html")
        for package in ("jinja2", "plotly"):
            check_extra("pages", package, "page")
        check_outputs(output)


def write_result(found: Any, output: str | None) -> None:
    """Write the page of what a verb found, where it is wanted."""
    if output is not None:
        from twin.api.commands.report import describe, write_page

        note_written(write_page(describe(found, command=say_command()), output))
