"""What verbs return, as JSON: the documents their --json writes, and the schemas of those."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from typing_extensions import is_typeddict

from hwmodels.errors import TwinError, check_word
from hwmodels.file_cache import read_yaml_once
from hwmodels.files import JsonObject, write_whole
from twin.documents import dump_document, fill, make_schema

if TYPE_CHECKING:
    from twin.attribution.difference import Difference
    from twin.pricing.prediction import Prediction

_TABLES = read_yaml_once(Path(__file__).with_name("documents.yaml"))

SCHEMAS: Mapping[str, str] = _TABLES["schemas"]
"""Where the type of each published schema is."""

_TYPES: Mapping[str, str] = _TABLES["types"]


def to_document(result: Any, **more: Any) -> JsonObject:
    """Return what a verb found as plain JSON types.

    Parameters
    ----------
    result : Prediction, WhatIf, View, PublishedView, Diagnosis, Difference, Series, CacheReport, \
Ranking, Ported, Table, Check, Advice, Selection, Outcome, Boards, Board, Runtime, Entry, Overlay, \
Energy, ImportedLog, Measured, MeasuredMachine, Build, BoardRun, Built, Lesson, Tuning or Comparison
        As a verb returned it, or a list of such, or what a list of boards, runtimes, models,
        terms, paths, studies, scenarios, kept runs or transformations returned, `diff_studies` or
        `study_sensitivity`.
    more
        Of a prediction, `per_operand`: split its bill, `duty`: the row of what it draws, and
        `counters`: those of its platform; of a difference, `limit`: the share nothing may grow by,
        and `with_parts`: no layer either; of a list, `kind`: which it is where it is empty, and
        further keys.

    Returns
    -------
    mapping
        The document the verb's --json writes.

    Raises
    ------
    TwinError
        For what has no document.
    """
    if isinstance(result, list | tuple | Mapping):
        return _write_several(result, **more)
    name = type(result).__name__
    if name in _SPECIAL:
        return _SPECIAL[name](result, **more)
    check_word("no JSON document of", name, (*_SPECIAL, *_TYPES), TwinError)
    found = resolve_name(_TYPES[name])
    return fill(found, result, **more) if is_typeddict(found) else found(result, **more)


def write_json(result: Any, **more: Any) -> str:
    """Return the document of a result as text: the same result gives the same bytes."""
    return dump_document(to_document(result, **more))


def load_schema(name: str) -> JsonObject:
    """Return the JSON Schema (draft 2020-12) of a document of `SCHEMAS`."""
    return make_schema(name, resolve_name(SCHEMAS[name]))


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema into a folder, as the package is built; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.schema.json" for name in SCHEMAS]
    for name, path in zip(SCHEMAS, written, strict=True):
        write_whole(path, dump_document(load_schema(name)).encode())
    return written


def _write_several(found: Any, **more: Any) -> JsonObject:
    """Write results of one kind, by the class of the first: as a table, a list, or one by one."""
    first = type(next(iter(found), None)).__name__
    table = {"RowPair": "StudyDiff", "Sensitivity": "Sensitivities"}.get(first)
    if table is not None:
        return fill(resolve_name(f"twin.reports.schemas.tables:{table}"), found)
    if isinstance(found, list) and not (found and isinstance(found[0], tuple)):
        return {"schema": 1, "kind": "several", "results": [to_document(one) for one in found]}
    return _write_list(found, **more)


def _write_list(found: Iterable[Any] | JsonObject, kind: str = "", **beside: Any) -> JsonObject:
    """Write a list of what there is, by what is in it or, where it is empty, its kind."""
    from twin.reports.schemas import lists, outcomes

    types = {**lists.ROWS, **outcomes.ROWS}
    rows = list(found.items() if isinstance(found, Mapping) else (("", row) for row in found))
    of = type(rows[0][1]).__name__ if rows else ""
    if rows or not kind:
        check_word("no JSON document of a list of", of, types, TwinError)
    kind, row_type = types.get(of, (kind, None))
    return {"schema": 1, "kind": kind, **beside, kind: [
        asdict(row) if row_type is None else
        fill(row_type, row, **({"name": name} if of == "Graph" else {})) for name, row in rows]}


def _predicted(prediction: Prediction, per_operand: bool = False, duty: Any = None,
               counters: bool = False) -> JsonObject:
    from twin.pricing import document

    written: JsonObject = document.to_document(prediction)
    if prediction.temperature == "cold":
        from twin.studies.cold_start import start_cold

        found = start_cold(prediction)
        written["cold_start"] = None if found is None else {
            "state": found.state, "total_us": found.total_us, "parts_us": dict(found.parts),
            "interval_us": None if found.interval is None else asdict(found.interval)}
    if counters:
        from twin.attribution.platform import list_counters

        written["counters"] = [asdict(row) for row in list_counters(prediction)]
    if duty is not None:
        from twin.studies.results import list_columns

        written = {**written, "duty": list_columns(duty)}
    if per_operand:
        from twin.pricing.ledger import split_document

        written = split_document(written, prediction)
    return written


def _differing(difference: Difference, limit: float | None = None,
               with_parts: bool = False) -> JsonObject:
    from twin.attribution.document import difference_document

    exceeding = () if limit is None else difference.exceeding(limit, with_parts=with_parts)
    return difference_document(difference, limit, exceeding)


def _studied(session: Any) -> JsonObject:
    from twin.studies.study.session import Session

    if not isinstance(session, Session):
        raise TwinError("a kept run: has no JSON document; its result is one, `read_result()`")
    return to_document(session.load_results())


_SPECIAL: Mapping[str, Callable[..., JsonObject]] = {
    "Prediction": _predicted, "Difference": _differing, "Session": _studied}
"""Nouns whose document takes more than the noun."""


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
