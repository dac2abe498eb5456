"""Kept runs: a row each, two beside each other, and how results asked for again agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import starmap

from hwmodels.quantities import write_setting
from twin.api.sessions.agreement import Agreement, Changes, Comparison
from twin.api.sessions.request import FORMS
from twin.api.sessions.session import Session
from twin.reports.columns import Column
from twin.reports.tables.parts import Content, Table, Text, new_pairs, new_table, spaced, tabulate


def sessions_table(sessions: Sequence[Session]) -> Table:
    """Return a row a run."""
    return tabulate((
        Column("run", "folder.name", no_wrap=True), Column("asked", _write_request),
        Column("report", lambda one: str(one.head.get("report_hash", "no result"))[:12])),
        sessions, drops=("report",))


def _write_request(session: Session) -> str:
    """Write what a run was asked as a command; what is as by default is omitted."""
    verb, words = session.request.verb, [session.request.verb]
    defaults = {each.name: each.default for each in fields(FORMS[verb])}  # type: ignore[arg-type]
    for name, value in session.request.arguments.items():
        option = FORMS[verb].option(name)
        named = option.names.replace("/", " ").split()[:1]
        if value in (defaults.get(name), None, False):
            continue
        if named and value is True:
            words += named
            continue
        listed = value if isinstance(value, list | tuple) else [value]
        if isinstance(value, dict):
            listed = list(starmap(write_setting, value.items()))
        for one in listed:
            text = f"{one / 1e6:g}MHz" if name == "clock_hz" else str(one).rpartition("/")[2]
            words += [*named, text]
    return " ".join(words)


def comparison_report(found: Comparison) -> Content:
    """Return what was asked that differs, versions, results, and causes where they are known."""
    parts: list[Content] = [_changes("asked", found.asked)]
    if found.agreement.versions:
        parts.append(_changes("made with", found.agreement.versions))
    if found.difference is not None and not found.agreement.is_same:
        from twin.reports.tables.difference import difference_report

        parts.append(difference_report(found.difference))
    else:
        parts.append(_tell(found.agreement))
    return spaced(parts)


def agreement_report(found: Sequence[Agreement]) -> Content:
    """Return a line a run, and what differs below it."""
    parts: list[Content] = [tabulate((
        Column("run", "name", no_wrap=True), Column("verb"),
        Column("report", lambda one: one.kept[:12]), Column("again", lambda one: one.again[:12]),
        Column("says", _say)), found, drops=("again", "report", "verb"))]
    for one in found:
        if one.versions:
            parts.append(_changes(f"{one.name} was made with", one.versions))
        if one.is_same is False:
            parts.append(_tell(one))
    return spaced(parts)


def _say(one: Agreement) -> str:
    if one.is_same is None:
        return "measured by hardware: kept, not made again"
    return "the same" if one.kept == one.again else (
        "the same but for rounding" if one.is_same else f"{one.count} values differ")


def _tell(one: Agreement) -> Content:
    if one.is_same:
        return Text("the results are the same, to nine digits")
    more = f", the first {len(one.differences)}" if one.count > len(one.differences) else ""
    return _changes(f"{one.count} values differ{more}", one.differences)


def _changes(title: str, rows: Changes) -> Content:
    if not rows:
        return new_pairs([(title, "the same")])
    return new_table((title, "before", "after"), rows=rows)
