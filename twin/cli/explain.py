"""`twin explain`: what the words of the reports mean."""

from __future__ import annotations

from typing import Annotated

import twin
from twin.api.requests import Option
from twin.cli.options import AsJson, command
from twin.cli.output import open_console, show, show_json
from twin.errors import UsageError

Words = Annotated[list[str] | None, Option(
    "", "[TERM]", "A cause, event or metric, such as flash_wait or IPC; `paths BOARD`: what --set "
    "takes.")]


@command
def explain(words: Words = None, as_json: AsJson = False) -> None:
    """Explain a term of the reports; without one, list them."""
    words = words or []
    paths = words[:1] == ["paths"]
    if len(words) > 2 and paths:
        raise UsageError(f"{' '.join(words)}: accepted: one board")
    if as_json:
        show_json(twin.list_paths(*words[1:]) if paths else twin.explain(" ".join(words)) if words
                  else twin.list_terms())
        return
    from twin.reports.tables.catalogue import entry_report, paths_table, terms_table

    if paths:
        show(open_console(), paths_table(twin.list_paths(*words[1:])))
    elif words:
        show(open_console(), entry_report(twin.explain(" ".join(words))))
    else:
        show(open_console(), terms_table(twin.list_terms()))
