"""`twin accuracy`: how often a network is right, before and after changes."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import AsJson, Model, SetPaths, parse_settings
from twin.cli.output import open_console, show, show_json, warn

DataFile = Annotated[str, typer.Option(
    "--data", metavar="FILE", help="An .npz file of inputs (x) and right classes (y).")]


def accuracy(model: Model, data: DataFile, settings: SetPaths = None,
             as_json: AsJson = False) -> None:
    """Measure how often a network is right on your data, before and after changes."""
    changes = parse_settings(settings) if settings else None
    before, after = twin.accuracy(model, data, changes)
    if as_json:
        from twin.reports.outcomes import Accuracies

        show_json(Accuracies(model=model, before=before, after=after))
    else:
        from twin.reports.tables.accuracy import accuracy_table

        show(open_console(), accuracy_table(before, after))
    warn(after.notes if after is not None else before.notes)
