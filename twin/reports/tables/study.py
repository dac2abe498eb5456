"""A study's finding, the shipped studies, two tables beside each other, and sensitivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from twin.reports.tables.parts import (
    Console,
    Content,
    Group,
    Text,
    add_row,
    new_pairs,
    new_table,
    spaced,
)
from twin.reports.tables.parts import Table as Sheet
from twin.reports.tables.studies import sweep_report
from twin.studies.results import Table
from twin.studies.study.findings import WORDS, RowPair, tell
from twin.studies.study.study import Study

if TYPE_CHECKING:
    from twin.studies.study.sensitivity import Sensitivity
    from twin.studies.study.session import Session


def studies_table(studies: Mapping[str, Study]) -> Sheet:
    """Return one row per study."""
    table = new_table(("study", "what it answers"))
    for name, one in studies.items():
        add_row(table, (name, one.question))
    return table


def study_report(session: Session, table: Table, console: Console, rows: int) -> Content:
    """Return what a study asks, what it found, and its rows."""
    study = session.study
    pairs = [("study", f"{study.name}: {study.question}" if study.question else study.name),
             ("twin", str(session.head["twin"]))]
    parts: list[Content] = [new_pairs(pairs), finding_text(study, table)]
    if study.notes:
        parts.append(Group(*(Text(note, style="dim") for note in study.notes)))
    return spaced([*parts, sweep_report(table, console, rows)])


def finding_text(study: Study, table: Table) -> Group:
    """Return the finding, a line of text each."""
    return Group(*(Text(line) for line in tell(study, table)))


def study_diff_report(pairs: Sequence[RowPair]) -> Content:
    """Return rows that moved between two tables of the same study."""
    table = new_table(("configuration", "time", "energy", "now"), numbers=("time", "energy"))
    moved = [pair for pair in pairs if pair.has_moved]
    alone = sum(None in pair for pair in pairs)
    for pair in moved:
        row = pair.after or pair.before
        assert row is not None
        add_row(table, (" ".join(value for _, value in row.inputs), *_tell_pair(pair)))
    head = Text(f"{len(moved)} of {len(pairs)} configurations moved"
                + (f", {alone} of which are in one of them only" if alone else "")
                + ("; time and energy: after / before" if moved else ""))
    return spaced([head, table]) if moved else head


def _tell_pair(pair: RowPair) -> tuple[str, str, str]:
    before, after = pair
    if before is None or after is None:
        return "", "", "new" if before is None else "gone"
    said = (after.reason if after.failure else "was refused" if before.failure else
            _tell_bytes(pair))
    time, energy = ("" if ratio is None else f"x{ratio:.4g}"
                    for ratio in (pair.time_ratio, pair.energy_ratio))
    return time, energy, said


def _tell_bytes(pair: RowPair) -> str:
    """Say how memory moved, and what is known in one table only."""
    found = []
    for name in pair.figures:
        old, new = (getattr(row, name) for row in pair)
        if old is None or new is None:
            found.append(f"{WORDS[name]} {'not known before' if old is None else 'not known'}")
        elif name.endswith("_bytes"):
            found.append(f"{WORDS[name]} {new - old:+,} B")
    return ", ".join(found)


def sensitivity_report(found: Sequence[Sensitivity]) -> Content:
    """Return a table for every model on every board, the axis that matters most first."""
    parts: list[Content] = []
    for one in found:
        morris = one.method == "morris"
        index, spread = ("mean effect", "sd") if morris else ("total", "+-")
        headers = ("axis", index, spread, *(() if morris else ("alone",)), "from", "to", "figure")
        table = new_table(headers, numbers=(index, spread, "alone"))
        for axis in one.influences:
            cells = [axis.axis, f"{axis.index:.3g}", f"{axis.spread:.2g}",
                     *([] if axis.alone is None else [f"{axis.alone:.3g}"]),
                     axis.low_value, axis.high_value, f"{axis.low:.4g} to {axis.high:.4g}"]
            add_row(table, cells)
        parts.append(Group(Text(f"{one.model} on {one.board}: {WORDS[one.quantity]} "
                                f"({one.quantity}), {one.method}, {one.points} configurations; "
                                f"{one.middle:.4g} with every axis in its middle: "
                                + ", ".join(f"{axis.axis} {axis.middle_value}"
                                            for axis in one.influences)), table))
    return spaced(parts)
