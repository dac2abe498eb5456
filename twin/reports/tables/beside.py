"""A prediction beside a measurement as tables: layers, or epochs of an accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hwmodels.quantities import significant
from twin.attribution.epochs import PHASES, EpochComparison, EpochPair
from twin.attribution.layers import Figure, LayerComparison, head_counter
from twin.reports.tables.layout import add_row, new_table, spaced

ABSENT = "-"
"""Where one side has no such line; `not known` would claim that it exists."""


def layers_beside(comparison: LayerComparison) -> RenderableType:
    """Return layers and the inference, with the ratio predicted/measured of every counter."""
    headers = ["layer", "op"]
    for name, unit in comparison.counters:
        headers += [f"{head_counter(name, unit)}: predicted", comparison.kind, "ratio"]
    table = new_table(headers, headers[2:])
    for row in comparison.rows:
        cells = [row.label, row.op]
        for name, unit in comparison.counters:
            cells += _cells(row.figures[name], 1 if unit in ("us", "uJ") else 0)
        add_row(table, cells, "bold" if row is comparison.whole else "")
    parts: list[RenderableType] = [table]
    for name, _ in comparison.counters:
        ratios = sorted(ratio for row in comparison.rows[:-1]
                        if (ratio := row.figures[name].ratio) is not None)
        if ratios:
            parts.append(Text(f"{name}: predicted/{comparison.kind} of layers {ratios[0]:.2f} to "
                              f"{ratios[-1]:.2f}, median {median(ratios):.2f}, n = {len(ratios)}"))
    if comparison.note:
        parts.append(Text(comparison.note))
    return spaced(parts)


def epochs_beside(comparison: EpochComparison) -> RenderableType:
    """Return the whole model, a row per epoch, then every epoch line by line."""
    pairs = comparison.pairs
    both = [pair for pair in pairs if pair.predicted and pair.measured]
    title = f"whole model: sums over {_count(pairs)} epochs" if not comparison.gaps else \
        f"sums over the epochs both have whole, of {_count(pairs)}"
    parts: list[RenderableType] = []
    if comparison.whole:
        parts.append(_lines_table(title, comparison.whole, comparison.kind))
    if comparison.gaps:
        parts.append(Text("the measurement is not whole, so nothing is said of the whole model: "
                          + "; ".join(comparison.gaps)))
    else:
        parts.append(_lines_table("as the report states it", comparison.stated, comparison.kind))
    parts.append(_summary_table(comparison))
    if comparison.paired_by == "order":
        parts.append(Text("epochs are paired in order: the schedules are not of one compilation"))
    parts += [_lines_table(_title(pair), pair.lines, comparison.kind) for pair in both]
    return spaced(parts)


def _count(pairs: tuple[EpochPair, ...]) -> str:
    ours = sum(pair.predicted is not None for pair in pairs)
    theirs = sum(pair.measured is not None for pair in pairs)
    return str(ours) if ours == theirs else f"{ours} and {theirs}"


def _title(pair: EpochPair) -> str:
    assert pair.predicted is not None and pair.measured is not None
    names = (f"{pair.predicted.title} {pair.predicted.kind}",
             f"{pair.measured.title} {pair.measured.kind}")
    return names[0] if names[0] == names[1] else " / ".join(names)


def _lines_table(title: str, lines: Mapping[str, Figure], kind: str) -> Table:
    table = new_table((title, "predicted", kind, "ratio"), ("predicted", kind, "ratio"))
    for name, figure in lines.items():
        decimals = 3 if "ms" in name else 1 if "%" in name or name == "inf/s" else 0
        add_row(table, (name, *_cells(figure, decimals)))
    return table


def _summary_table(comparison: EpochComparison) -> Table:
    """Return MCU cycles of the phases and NPU cycles of the core, a row per epoch."""
    names = {phase: f"{phase}, MCU cycles" for phase in PHASES} | {
        "core NPU": "core, NPU cycles"}
    headers = ["epoch", "kind"]
    for label in names:
        headers += [f"{label}: predicted", comparison.kind, "ratio"]
    table = new_table(headers, headers[2:])
    for pair in comparison.pairs:
        sides = [side for side in (pair.predicted, pair.measured) if side is not None]
        titles = dict.fromkeys(side.title for side in sides)
        kinds = dict.fromkeys(side.kind for side in sides)
        cells = [" / ".join(titles), " / ".join(kinds)]
        for name in names.values():
            cells += _cells(pair.lines.get(name, Figure(predicted=None, measured=None)), 0)
        add_row(table, cells, "" if len(sides) == 2 else "dim")
    cells = ["sum", ""]
    for name in names.values():
        cells += _cells(comparison.whole.get(name, Figure(predicted=None, measured=None)), 0)
    add_row(table, cells, "bold")
    return table


def _cells(figure: Figure, decimals: int) -> list[str]:
    return [ABSENT if value is None else f"{value:,.{decimals}f}"
            for value in (figure.predicted, figure.measured)] + [
        "" if figure.ratio is None else significant(figure.ratio, 3)]
