"""`twin accuracy`: how often a network is right, before and after changes."""

from __future__ import annotations

from typing import Annotated

import twin
from twin.api.requests import Changes, Model, Option
from twin.cli.options import AsJson, command
from twin.cli.output import open_console, show, show_json, warn

DataFile = Annotated[str, Option(
    "--data", "FILE", "An .npz file of inputs (x) and right classes (y).")]


@command
def accuracy(model: Model, data: DataFile, settings: Changes = None,
             as_json: AsJson = False) -> None:
    """Measure how often a network is right on your data, before and after changes."""
    before, after = twin.accuracy(model, data, settings)
    if as_json:
        from twin.reports.outcomes import Accuracies

        show_json(Accuracies(model=model, before=before, after=after))
    else:
        from twin.reports.tables.accuracy import accuracy_table

        show(open_console(), accuracy_table(before, after))
    warn(after.notes if after is not None else before.notes)
