"""`twin runtimes`: the kernel libraries there are, and one in full."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import AsJson
from twin.cli.output import open_console, show, show_json

Name = Annotated[str | None, typer.Argument(
    metavar="[NAME]", help="A runtime to show in full, as name or name@version.")]


def runtimes(name: Name = None, as_json: AsJson = False) -> None:
    """List the runtimes, or show one with every number and its source."""
    if as_json:
        show_json(twin.list_runtimes() if name is None else twin.show_runtime(name))
        return
    from twin.reports.tables.catalogue import runtime_report, runtimes_table

    if name is None:
        show(open_console(), runtimes_table(twin.list_runtimes()))
    else:
        show(open_console(), runtime_report(twin.show_runtime(name)))
