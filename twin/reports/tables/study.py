"""A study's finding, the shipped studies, two tables beside each other, and sensitivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from twin.reports.columns import Column, number
from twin.reports.rivals import write_figure
from twin.reports.tables.parts import Console, Content, Group, Text, new_pairs, spaced, tabulate
from twin.reports.tables.parts import Table as TextTable
from twin.reports.tables.studies import sweep_report
from twin.studies.results import Table
from twin.studies.rows import WORDS
from twin.studies.study.comparison import RowPair
from twin.studies.study.definition import Study
from twin.studies.study.figures import name_figure
from twin.studies.study.findings import tell

if TYPE_CHECKING:
    from twin.studies.study.sensitivity import Sensitivity
    from twin.studies.study.session import Session


def studies_table(studies: Mapping[str, Study]) -> TextTable:
    """Return one row per study."""
    return tabulate((Column("study", itemgetter(0)),
                     Column("what it answers", lambda row: row[1].question)), studies.items())


def study_report(session: Session, table: Table, console: Console, rows: int) -> Content:
    """Return what a study asks, what it found, and its rows."""
    study = session.study
    pairs = [("study", f"{study.name}: {study.question}" if study.question else study.name),
             ("twin", str(session.head["twin"]))]
    return spaced([
        new_pairs(pairs), Group(*map(Text, tell(study, table))),
        Group(*(Text(note, "dim") for note in study.notes)) if study.notes else None,
        sweep_report(table, console, rows)])


def study_diff_report(pairs: Sequence[RowPair]) -> Content:
    """Return rows that moved between two tables of the same study."""
    moved = [pair for pair in pairs if pair.has_moved]
    alone = sum(None in pair for pair in pairs)
    head = Text(f"{len(moved)} of {len(pairs)} configurations moved"
                + (f", {alone} of which are in one of them only" if alone else "")
                + ("; time and energy: after / before" if moved else ""))
    return spaced([head, tabulate((
        Column("configuration", lambda pair: " ".join(
            value for _, value in (pair.after or pair.before).inputs)),
        number("time", "time_ratio", "x{:.4g}"), number("energy", "energy_ratio", "x{:.4g}"),
        Column("now", _tell_pair)), moved)]) if moved else head


def _tell_pair(pair: RowPair) -> str:
    before, after = pair
    if before is None or after is None:
        return "new" if before is None else "gone"
    return (after.reason if after.failure else "was refused" if before.failure else
            _tell_bytes(pair))


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
        morris, write = one.method == "morris", partial(write_figure, one.quantity)
        columns = [
            Column("axis"), *([number("mean effect", "index", write),
                               number("sd", "spread", write)] if morris else [
                number("total", "index", "{:.3g}"), number("+-", "spread", "{:.2g}"),
                number("alone", "alone", "{:.3g}")]),
            Column("from", "low_value"), Column("to", "high_value"),
            Column("figure", lambda axis, write=write: (  # type: ignore[misc]
                f"{write(axis.low)} to {write(axis.high)}"))]
        parts.append(Group(Text(f"{one.model} on {one.board}: {name_figure(one.quantity)}, "
                                f"{one.method}, {one.points} configurations; "
                                f"{write(one.middle)} with every axis in its middle: "
                                + ", ".join(f"{axis.axis} {axis.middle_value}"
                                            for axis in one.influences)),
                           tabulate(columns, one.influences)))
    return spaced(parts)
