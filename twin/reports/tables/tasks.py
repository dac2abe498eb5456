"""The report of an accelerator's profiler as text, of a side whose parts are its tasks."""

from __future__ import annotations

from twin.attribution.predicted import profile_tasks, profile_whole, side_of_prediction
from twin.attribution.side import Side
from twin.pricing.accelerator.report import describe_head
from twin.pricing.prediction import Prediction
from twin.reports.tables.parts import Content, Group, Text, spaced


def tasks_report(prediction: Prediction) -> Content:
    """Return the tasks of a prediction with an accelerator, below what its profiler says first."""
    return spaced([Group(*map(Text, describe_head(prediction))),
                   tasks_part(side_of_prediction(prediction))])


def tasks_part(side: Side) -> Content:
    """Return every task and the whole model, line by line as the profiler prints them."""
    return spaced([*(Group(Text(head, "bold"), *map(Text, lines))
                     for head, *lines in profile_tasks(side)),
                   Group(*map(Text, profile_whole(side)))])
