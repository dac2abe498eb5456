"""Predicted beside published results."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from hwmodels.quantities import format_number
from twin.learning.published import describe_sealed
from twin.reports.tables.parts import Content, Group, Text, add_row, new_table

if TYPE_CHECKING:
    from calibration.datasets import PublishedRow
    from twin.learning.published import Comparison


def published_report(model: str, board: str,
                     comparisons: Sequence[Comparison]) -> Content:
    """Return predicted beside every open row, how ratios lie, and sealed rows together only."""
    if not comparisons:
        return Text(f"no published result of {model} on {board} is known")
    told = [Text(text) for text in describe_sealed(comparisons)]
    comparisons = [item for item in comparisons if not item.sealed]
    if not comparisons:
        return Group(*told)
    headers = ("published by", "runtime", "MHz", "published, ms", "predicted, ms", "ratio",
               "published, uJ", "predicted, uJ", "ratio of uJ", "use", "note")
    table = new_table(headers, headers[2:9], drops=("use", "note", "published by", "MHz",
                                                    "published, uJ", "predicted, uJ"))
    for item in comparisons:
        row = item.row
        add_row(table, (
            f"{row.submitter} {row.edition}", row.runtime or row.software,
            "" if row.clock_hz is None else f"{row.clock_hz / 1e6:g}",
            format_number(row.latency_ms, 2), "" if item.reason else
            format_number(item.predicted_ms, 2), _ratio(item.latency_ratio),
            format_number(row.energy_uj), "" if item.reason else format_number(item.predicted_uj),
            _ratio(item.energy_ratio), row.use, _note(item)))
    parts: list[Content] = [table]
    for what, ratios in (("latency", [item.latency_ratio for item in comparisons]),
                         ("energy", [item.energy_ratio for item in comparisons])):
        known = sorted(ratio for ratio in ratios if ratio is not None)
        if known:
            parts.append(Text(f"{what}: predicted/published {known[0]:.2f} to {known[-1]:.2f}, "
                              f"median {median(known):.2f}, n = {len(known)}"))
    return Group(*parts[:1], Text(""), *parts[1:], *told)


def several_report(views: Sequence[tuple[str, str, Sequence[Comparison]]]) -> Content:
    """Return open rows of several networks or boards as one table, sealed rows together only.

    Parameters
    ----------
    views : sequence of (str, str, sequence of Comparison)
        Network, board, and its rows.
    """
    headers = ("model", "board", "runtime", "MHz", "published", "predicted", "ratio", "of uJ")
    table = new_table(headers, headers[3:], drops=("MHz", "of uJ", "published", "predicted"))
    told: list[Content] = []
    for model, board, comparisons in views:
        shown = [one for one in comparisons if not one.sealed and not one.reason]
        told += [Text(f"{model} on {board}: {text}") for text in describe_sealed(comparisons)]
        told += [Text(f"{model} on {board}: not predicted: {one.reason}") for one in comparisons
                 if not one.sealed and one.reason]
        if not comparisons:
            told.append(Text(f"no published result of {model} on {board} is known"))
        for one in shown:
            add_row(table, (model, board, one.row.runtime or one.row.software,
                            "" if one.row.clock_hz is None else f"{one.row.clock_hz / 1e6:g}",
                            f"{format_number(one.row.latency_ms, 2)} ms",
                            f"{format_number(one.predicted_ms, 2)} ms",
                            _ratio(one.latency_ratio), _ratio(one.energy_ratio)))
    return Group(table, *([Text("")] if told else []), *told)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _note(item: Comparison) -> str:
    if item.reason:
        return f"not predicted: {item.reason}"
    other = [f"predicted as {item.runtime}"] if item.stood_in else []
    return ", ".join((*other, *_settings(item.row),
                      *(flag.replace("_", " ") for flag in item.row.flags)))


def _settings(row: PublishedRow) -> list[str]:
    """Return what the row states of its board, and it is therefore deployed with."""
    from calibration.datasets import board_settings

    told = []
    for path, value in board_settings(row).items():
        if path == "supply.voltage_v":
            told.append(f"at {value:g} V")
        elif path.endswith(".read_bytes"):
            told.append(f"{path.split('.')[1]} read by {8 * int(str(value))} bits "
                        f"({row.flash_banks} bank)")
        else:
            told.append(f"{path} {value}")
    return told + ([f"arena in {row.arena}"] if row.arena else [])
