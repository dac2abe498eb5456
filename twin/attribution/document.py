"""Comparisons of every verb, and diagnoses, as JSON documents and CSV rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hwmodels.files import read_json
from hwmodels.quantities import Cell
from twin.attribution.diagnosis.finding import Diagnosis, explain_rows
from twin.attribution.difference import Account, Difference, Line, Row
from twin.attribution.epochs import EpochReport, Figure
from twin.attribution.idealisation import Split
from twin.attribution.side import Side
from twin.attribution.views import PublishedView, View, WhatIf
from twin.learning.published import describe_sealed
from twin.prediction.document import to_document

SCHEMA = 2
"""Of comparisons: 1 had other keys for each verb; 2 has `first`, `second`, `accounts` for all."""

DIAGNOSIS_SCHEMA = 1


def load_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) comparisons conform to."""
    return read_json(Path(__file__).parents[1] / "schema" / "comparison.schema.json")


def comparison_document(difference: Difference, kind: str,
                        **more: Any) -> dict[str, Any]:
    """Write a comparison as a document of the published schema.

    Parameters
    ----------
    difference : Difference
        What every verb shows a view of.
    kind : str
        "comparison", "attribution", "difference" or "what-if".
    more
        Of the verb: its limit, what was set, a diagnosis ...

    Returns
    -------
    dict
        Of plain JSON types; every row's gap = sum of its causes' gaps + unexplained, in whole
        units, and rows sum to the total.
    """
    return {
        "schema": SCHEMA, "kind": kind, "first": _side(difference.first),
        "second": _side(difference.second),
        "findings": [{"level": one.level, "what": one.what, "text": one.text}
                     for one in difference.findings],
        "accounts": [_account(account) for account in difference.accounts],
        "sizes": [{"name": row.name, "unit": row.unit, "first": row.first, "second": row.second,
                   "gap": row.gap} for row in difference.totals[len(difference.accounts):]],
        "counters": [_line(line) for line in difference.counters],
        "notes": [note for note in (*difference.notes, difference.pairing.note) if note], **more}


def view_document(view: View, kind: str) -> dict[str, Any]:
    """Write what `twin compare` or `twin attribute` show: the comparison, and what goes with it."""
    more: dict[str, Any] = {}
    if view.epochs is not None:
        more["epochs"] = epochs_document(view.epochs)
    if view.diagnosis is not None:
        more["diagnosis"] = diagnosis_document(view.diagnosis)
    if view.possible:
        more["possible"] = [{
            "cause": one.cause, "probability": one.probability, "expected": one.expected,
            "low": one.low, "high": one.high, "unsure": one.unsure} for one in view.possible]
    if "as predicted" in view.splits:
        more["idealised"] = split_document(view.splits["as predicted"])
    return comparison_document(view.difference, kind, **more)


def published_document(view: PublishedView) -> dict[str, Any]:
    """Write open rows as comparisons, and what is said of the sealed ones together."""
    rows: list[dict[str, Any]] = []
    for place, one in enumerate(view.comparisons):
        if one.sealed:
            continue
        difference = view.differences.get(place)
        rows.append({
            "published_by": f"{one.row.submitter} {one.row.edition}", "use": one.row.use,
            "reason": one.reason or None, "comparison": None if difference is None else
            comparison_document(difference, "comparison")})
    return {"schema": SCHEMA, "kind": "published", "model": view.model, "board": view.board.name,
            "rows": rows, "sealed": list(describe_sealed(view.comparisons))}


def difference_document(difference: Difference, limit: float | None,
                        exceeding: Sequence[Row] = ()) -> dict[str, Any]:
    """Write what `twin diff` shows: the comparison, its limit and what grew by more."""
    return comparison_document(difference, "difference", limit=limit,
                               exceeding=[row.label for row in exceeding])


def what_if_document(changed: WhatIf) -> dict[str, Any]:
    """Write a what-if: what was set, both predictions, and what moved."""
    return comparison_document(
        changed.difference, "what-if", remarks=list(changed.effects),
        set={path: str(value) for path, value in changed.changes.items()},
        probability_faster=changed.odds, before=to_document(changed.before),
        after=to_document(changed.after))


def split_document(split: Split) -> dict[str, Any]:
    """Write an idealised split."""
    return {
        "unit": "ns", "note": "a view: what remains when resources are made ideal, shared by "
                              "Shapley value; the bill is what was predicted",
        "total": split.total, "work": split.work,
        "resources": [{"name": name, "share": share} for name, share in split.shares.items()]}


def epochs_document(report: EpochReport) -> dict[str, Any]:
    """Write the lines of an accelerator's report, of every epoch and of the whole model."""
    def write(lines: Mapping[str, Figure]) -> dict[str, Any]:
        return {name: {"first": one.first, "second": one.second} for name, one in lines.items()}

    return {"paired_by": report.paired_by, "gaps": list(report.gaps),
            "whole": write(report.whole), "stated": write(report.stated),
            "epochs": [{"first": None if pair.first is None else pair.first.name,
                        "second": None if pair.second is None else pair.second.name,
                        "lines": write(pair.lines)} for pair in report.pairs]}


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Write a diagnosis as a document: kinds and faults by probability, with their evidence."""
    verdict = diagnosis.verdict
    return {
        "schema": DIAGNOSIS_SCHEMA, "kind": "diagnosis", "quantity": diagnosis.quantity,
        "layers": list(diagnosis.layers), "left_out": diagnosis.left_out,
        "rests_on": list(diagnosis.rests_on), "verdict": verdict.fault.name,
        "verdict_kind": verdict.fault.kind, "remedy": diagnosis.remedy,
        "telling": diagnosis.telling,
        "ratio": diagnosis.declared_ratio, "repeats_within": diagnosis.repeats,
        "counters": list(diagnosis.counters), "kinds": dict(diagnosis.kinds),
        "errors": {name: getattr(diagnosis.errors, name) for name in diagnosis.errors.__slots__},
        "observations": list(diagnosis.observations), "indistinct": list(diagnosis.indistinct),
        "faults": [{
            "kind": finding.fault.kind, "name": finding.fault.name, "prior": finding.prior,
            "probability": finding.probability, "remedy": finding.fault.remedy,
            "evidence": list(finding.evidence)} for finding in diagnosis.findings],
        "layer_effects": [{"layer": index, "change": change}
                          for index, change in explain_rows(diagnosis, verdict).items()]}


def _side(side: Side) -> dict[str, Any]:
    return {
        "kind": side.kind, "source": side.source, "model": side.model,
        "model_sha256": side.model_sha256, "architecture_id": side.architecture_id,
        "board": side.board, "runtime": side.runtime, "temperature": side.temperature,
        "clocks_hz": dict(side.clocks_hz), "placement": dict(side.placement),
        "runs": side.runs, "calibration": side.calibration or None, "cycles": dict(side.cycles)}


def _account(account: Account) -> dict[str, Any]:
    return {"quantity": account.quantity, "unit": account.unit,
            "rows": [_row(row) for row in account.rows], "total": _row(account.total)}


def _row(row: Row) -> dict[str, Any]:
    return {
        "index": row.index, "name": row.name, "op": row.op, "first": row.first,
        "second": row.second, "gap": row.gap, "explained": row.explained,
        "unexplained": row.unexplained, "causes": [_line(line) for line in row.lines]}


def _line(line: Line) -> dict[str, Any]:
    return {"causes": list(line.causes), "first": line.first, "second": line.second,
            "gap": line.gap, "counter": line.counter or None}


def comparison_rows(difference: Difference) -> list[dict[str, Cell]]:
    """Rows for a CSV: quantity by part, then its causes; what is not told stays empty."""
    return [line for account in difference.accounts
            for row in (*account.rows, account.total) for line in _part_rows(account, row)]


def _part_rows(account: Account, row: Row) -> Sequence[dict[str, Cell]]:
    where: dict[str, Cell] = {"quantity": account.quantity, "unit": account.unit,
                              "index": row.index, "name": row.name, "op": row.op}
    lines: list[dict[str, Cell]] = [where | {
        "causes": "all", "first": row.first, "second": row.second, "gap": row.gap,
        "counter": ""}]
    lines += [where | {"causes": " ".join(line.causes), "first": line.first,
                       "second": line.second, "gap": line.gap, "counter": line.counter}
              for line in row.lines]
    lines.append(where | {"causes": "unexplained", "first": None, "second": None,
                          "gap": row.unexplained, "counter": ""})
    return lines
