"""The words of the reports, explained: what `twin explain` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from hwmodels.board.file import list_boards, load_board
from hwmodels.board.policies import POLICIES
from hwmodels.counts import EVENTS
from hwmodels.errors import did_you_mean
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen
from twin.errors import UsageError
from twin.pricing.layer_columns import LAYER_COLUMNS


@frozen
class Entry:
    """One term.

    Parameters
    ----------
    term
        As the reports write it.
    kind
        "cause", "event", "metric", "idea", "protocol", "hardware" or "column".
    equation
        How it is computed.
    lever
        What would change it.
    myth
        What is often said, and what is right.
    see, aliases
        Related terms; other spellings of this one.
    """

    term: str
    kind: str
    text: str
    equation: str | None = None
    lever: str | None = None
    myth: str | None = None
    source: str | None = None
    see: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@cache
def load_glossary() -> Mapping[str, Entry]:
    """Return every entry by term: those of `glossary.yaml`, hardware events, columns of layers.

    Returns
    -------
    mapping of str to Entry
        In the order of the file; an event that shares its name with a cause stands there.
    """
    written = read_yaml_once(Path(__file__).with_name("glossary.yaml"))
    entries = {term: _make_entry(term, body) for term, body in written.items()}
    rule = entries["replacement"]
    listed = "; ".join(f"{policy.name}: {policy.doc}" for policy in POLICIES.values())
    entries["replacement"] = replace(rule, text=f"{rule.text} {listed}.",
                                     aliases=(*rule.aliases, *POLICIES))
    for event in EVENTS.values():
        if event.name not in entries:
            entries[event.name] = Entry(
                term=event.name, kind="event", see=(event.cause,),
                text=f"{event.description[0].upper()}{event.description[1:]}. Counted in "
                     f"{event.unit}; its cause is {event.cause}.")
    for column in LAYER_COLUMNS:
        if column.means and column.name not in entries:
            entries[column.name] = Entry(term=column.name, kind="column", text=column.means)
        elif column.term and column.name not in entries:
            entry = entries[column.term]
            entries[column.term] = replace(entry, aliases=tuple(dict.fromkeys(
                (*entry.aliases, column.name))))
    return MappingProxyType(entries)


def find_entry(term: str) -> Entry:
    """Return the entry a user asked for, by term or alias, whatever the case, dash or underscore.

    Parameters
    ----------
    term
        "IPC", "write-back", "data_refill" ...

    Returns
    -------
    Entry
        The one meant.

    Raises
    ------
    UsageError
        When nothing is called that, with the nearest terms.
    """
    glossary = load_glossary()
    if term in glossary:
        return glossary[term]
    spellings: dict[str, Entry] = {}
    for entry in glossary.values():
        for spelling in (entry.term, *entry.aliases):
            spellings.setdefault(_fold(spelling), entry)
    found = spellings.get(_fold(term))
    if found is None and _fold(term) in _name_units():
        return glossary["processing unit"]
    if found is None:
        near = did_you_mean(_fold(term), spellings)
        hint = near if near.startswith("did") else "`twin explain` lists every term"
        raise UsageError(f"{term!r} is not in the glossary; {hint}; or `twin explain features`")
    return found


def _name_units() -> set[str]:
    """Return what makers call the units of the accelerators of all boards."""
    boards = [load_board(name) for name in list_boards()]
    return {_fold(unit.kind) for board in boards if board.npu is not None
            for unit in board.npu.units}


def _fold(term: str) -> str:
    return term.lower().replace("-", " ").replace("_", " ").strip()


def _make_entry(term: str, body: Mapping[str, object]) -> Entry:
    unknown = set(body) - {field.name for field in fields(Entry)}
    if unknown:
        raise ValueError(f"glossary.yaml:{term}: unknown keys {sorted(unknown)}")
    return Entry(term=term, **{  # type: ignore[arg-type]
        key: tuple(value) if isinstance(value, list) else value for key, value in body.items()})
