"""`twin explain`: what the words of the reports mean."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.output import open_console, show

Words = Annotated[list[str] | None, typer.Argument(
    metavar="[TERM]", help="A cause, event or metric, such as flash_wait or IPC.")]


def explain(words: Words = None) -> None:
    """Explain a term of the reports; without one, list them."""
    from twin.reports.tables.catalogue import entry_report, terms_table

    if words:
        show(open_console(), entry_report(twin.explain(" ".join(words))))
    else:
        show(open_console(), terms_table(twin.list_terms()))
