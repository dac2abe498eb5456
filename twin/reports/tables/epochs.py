"""The report of an accelerator's profiler as text, of a side whose parts are its tasks."""

from __future__ import annotations

from twin.attribution.predicted import compiler_of, side_of_prediction
from twin.attribution.side import Side
from twin.pricing.prediction import Prediction
from twin.reports.tables.parts import Content, Group, Text, spaced


def epochs_report(prediction: Prediction) -> Content:
    """Return the tasks of a prediction with an accelerator."""
    return epochs_part(side_of_prediction(prediction))


def epochs_part(side: Side) -> Content:
    """Return every task and the whole model, line by line as the profiler prints them."""
    compiler, totals = compiler_of(side), side.whole.counts
    parts: list[Content] = []
    for part in side.parts:
        head, *lines = compiler.list_task(part.name, part.op, part.index or 0, part.counts, totals,
                                          side.clocks_hz)
        parts.append(Group(Text(head, style="bold"), *map(Text, lines)))
    return spaced([*parts, Group(*map(Text, model_lines(side)))])


def model_lines(side: Side) -> list[str]:
    """Return the final part of the profiler's report: of the whole model."""
    return compiler_of(side).list_model(side.whole.counts, side.clocks_hz)
