"""Attributions and diagnoses as JSON documents and CSV rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from hwmodels.quantities import Cell
from twin.attribution.attribution import Account, Attribution, Row
from twin.attribution.diagnosis import Diagnosis, explain_rows
from twin.attribution.idealisation import Split
from twin.attribution.sides import Side

SCHEMA = 1


def load_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) attributions conform to."""
    text = (files("twin") / "schema" / "attribution.schema.json").read_text(encoding="utf-8")
    return json.loads(text)


def attribution_document(attribution: Attribution, diagnosis: Diagnosis | None = None,
                         split: Split | None = None) -> dict[str, Any]:
    """Write an attribution as a document of the published schema.

    Returns
    -------
    dict
        Of plain JSON types; every row's gap = sum of its causes' gaps + unexplained, in whole
        units, and rows sum to the total.
    """
    document: dict[str, Any] = {
        "schema": SCHEMA, "kind": "attribution",
        "predicted": _side(attribution.predicted), "measured": _side(attribution.measured),
        "accounts": [_account(account) for account in attribution.accounts],
        "notes": list(attribution.notes)}
    if diagnosis is not None:
        document["diagnosis"] = diagnosis_document(diagnosis)
    if split is not None:
        document["idealised"] = {
            "unit": "ns", "note": "a view: what remains when resources are made ideal, shared by "
                                  "Shapley value; the bill is what was predicted",
            "total": split.total, "work": split.work,
            "resources": [{"name": name, "share": share}
                          for name, share in split.shares.items()]}
    return document


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Write a diagnosis as a document: kinds and faults by probability, with their evidence."""
    verdict = diagnosis.verdict
    return {
        "schema": SCHEMA, "kind": "diagnosis", "quantity": diagnosis.quantity,
        "layers": list(diagnosis.layers), "verdict": verdict.fault.name,
        "verdict_kind": verdict.fault.kind, "kinds": dict(diagnosis.kinds),
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
        "runs": side.runs, "calibration": side.calibration or None}


def _account(account: Account) -> dict[str, Any]:
    return {"quantity": account.quantity, "unit": account.unit,
            "rows": [_row(row) for row in account.rows], "total": _row(account.total)}


def _row(row: Row) -> dict[str, Any]:
    return {
        "index": row.index, "name": row.name, "op": row.op, "predicted": row.predicted,
        "measured": row.measured, "gap": row.gap, "explained": row.explained,
        "unexplained": row.unexplained,
        "causes": [{"causes": list(gap.causes), "predicted": gap.predicted,
                    "measured": gap.measured, "gap": gap.gap, "counter": gap.counter or None}
                   for gap in row.gaps]}


def attribution_rows(attribution: Attribution) -> list[dict[str, Cell]]:
    """Rows for a CSV: quantity by part, then its causes; what is not counted stays empty."""
    found: list[dict[str, Cell]] = []
    for account in attribution.accounts:
        for row in (*account.rows, account.total):
            found += _part_rows(account, row)
    return found


def _part_rows(account: Account, row: Row) -> Sequence[dict[str, Cell]]:
    where: dict[str, Cell] = {"quantity": account.quantity, "unit": account.unit,
                              "index": row.index, "name": row.name, "op": row.op}
    lines: list[dict[str, Cell]] = [where | {
        "causes": "all", "predicted": row.predicted, "measured": row.measured, "gap": row.gap,
        "counter": ""}]
    lines += [where | {"causes": " ".join(gap.causes), "predicted": gap.predicted,
                       "measured": gap.measured, "gap": gap.gap, "counter": gap.counter}
              for gap in row.gaps]
    lines.append(where | {"causes": "unexplained", "predicted": None, "measured": None,
                          "gap": row.unexplained, "counter": ""})
    return lines
