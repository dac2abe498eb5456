"""Predicted beside published results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from hwmodels.quantities import drop_none, format_number
from twin.attribution.published import describe_sealed
from twin.reports.columns import Cell, Column, number
from twin.reports.tables.limits import format_ends
from twin.reports.tables.parts import Content, Group, Text, tabulate

if TYPE_CHECKING:
    from calibration.datasets import PublishedRow
    from twin.attribution.published import Comparison


OF_ROW = (Column("runtime", lambda item: item.row.runtime or item.row.software),
          number("MHz", "row.clock_hz",
                 lambda hertz: "" if hertz is None else f"{hertz / 1e6:g}"))
"""Columns of any published row."""
NONE = ("no published result of {model} on {board} is known to this command; errors of "
        "accelerators: docs/dsp.md, docs/npu.md")

SET_UP = ("each row is predicted as its publisher set the board up (clock, width of flash, "
          "voltage), `twin predict` as its file does")


def _milliseconds(value: float | None) -> str:
    return format_number(value, 2)


def published_report(model: str, board: str, comparisons: Sequence[Comparison]) -> Content:
    """Return predicted beside every open row, how ratios lie, and sealed rows together only."""
    if not comparisons:
        return Text(NONE.format(model=model, board=board))
    content = [Text(text) for text in describe_sealed(comparisons)]
    comparisons = [item for item in comparisons if not item.sealed]
    if not comparisons:
        return Group(*content)
    table = tabulate((
        Column("published by", "published_by"),
        *OF_ROW, number("published, ms", "row.latency_ms", _milliseconds),
        number("predicted, ms", lambda item: Cell("") if item.reason else
               item.predicted_ms, _milliseconds), number(
               "90 %", lambda item: item.prediction and item.prediction.time_interval, format_ends),
        number("ratio", "latency_ratio", "{:.2f}"),
        number("published, uJ", "row.energy_uj", format_number),
        number("predicted, uJ", lambda item: Cell("") if item.reason else
               item.predicted_uj, format_number), number("ratio of uJ", "energy_ratio", "{:.2f}"),
        Column("use", "row.use"), Column("note", note_row)), comparisons, drops=(
        "use", "note", "published by",
        "MHz" * (len({item.row.clock_hz for item in comparisons}) < 2), "published, uJ",
        "predicted, uJ", "90 %", "MHz"))
    parts: list[Content] = [table]
    for what, ratios in (("latency", [item.latency_ratio for item in comparisons]),
                         ("energy", [item.energy_ratio for item in comparisons])):
        known = sorted(drop_none(ratios))
        if known:
            parts.append(Text(f"{what}: predicted/published {known[0]:.2f} to {known[-1]:.2f}, "
                              f"median {median(known):.2f}, n = {len(known)}"))
    missing = dict.fromkeys(f"{item.row.runtime or item.row.software} is not predicted: "
                            f"{item.reason}" for item in comparisons if item.reason)
    return Group(*parts[:1], Text(""), *parts[1:], *map(Text, missing),
                 *_describe_releases(comparisons),
                 Text(f"{SET_UP}; rows marked accelerator have no ratio of uJ"), *content)


def _describe_releases(comparisons: Iterable[Comparison]) -> list[Text]:
    """Say which releases of open rows are predicted as another."""
    return [Text(f"{theirs} is predicted as {ours}, the nearest release that is described: ratios "
                 "hold what changed between the two")
            for theirs, ours in dict.fromkeys((one.row.runtime, one.runtime) for one in comparisons
                                              if one.stood_in and not one.sealed)]


def several_report(views: Sequence[tuple[str, str, Sequence[Comparison]]]) -> Content:
    """Return open rows of several networks or boards as one table, sealed rows together only.

    Parameters
    ----------
    views : sequence of (str, str, sequence of Comparison)
        Network, board, and its rows.
    """
    content: list[Content] = []
    shown: list[Comparison] = []
    for model, board, comparisons in views:
        opened = [one for one in comparisons if not one.sealed]
        shown += [one for one in opened if not one.reason]
        content += [Text(f"{model} on {board}: {text}") for text in (
            *describe_sealed(comparisons), *(f"not predicted: {one.reason}" for one in opened
                                             if one.reason))]
        if not comparisons:
            content.append(Text(NONE.format(model=model, board=board)))
    content += _describe_releases(shown)
    table = tabulate((
        Column("model", "prediction.graph.name"), Column("board", "row.board"),
        *OF_ROW, number("published", "row.latency_ms", lambda ms: f"{_milliseconds(ms)} ms"),
        number("predicted", "predicted_ms", lambda ms: f"{_milliseconds(ms)} ms"),
        number("ratio", "latency_ratio", "{:.2f}"), number("of uJ", "energy_ratio", "{:.2f}")),
        shown, drops=("MHz", "of uJ", "published", "predicted"))
    return Group(table, Text("") if content else None, *content)


def note_row(item: Comparison) -> str:
    """Return how a row's publisher set the board up, and what else differs; "" for nothing."""
    if item.reason:
        return "not predicted"
    other = [f"predicted as {item.runtime}"] if item.stood_in else []
    return ", ".join((*other, *_settings(item.row),
                      *(flag.replace("_", " ") for flag in item.row.flags)))


def _settings(row: PublishedRow) -> list[str]:
    """Return what the row states of its board, and it is therefore deployed with."""
    from calibration.datasets import board_settings

    content = []
    for path, value in board_settings(row).items():
        if path == "supply.voltage_v":
            content.append(f"at {value:g} V")
        elif path.endswith(".read_bytes"):
            content.append(f"{path.split('.')[1]} read by {8 * int(str(value))} bits")
        else:
            content.append(f"{path} {value}")
    return content + ([f"arena in {row.arena}"] if row.arena else [])
