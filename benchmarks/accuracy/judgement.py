"""Predictions at stated prices for every published row we have a board for."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

from calibration.datasets import PublishedRow, published_rows
from hwmodels.frozen import frozen
from twin.attribution.published import (
    Comparison,
    RowPredictor,
    build_published,
    compare_rows,
    predict_row,
)


@frozen
class Case:
    """A published row with what is predicted; None where nothing is."""

    row: PublishedRow
    comparison: Comparison


@frozen
class Errors:
    """Absolute errors in per cent of the published value."""

    count: int
    median_pct: float | None
    worst_pct: float | None


@frozen
class Judgement:
    """All cases, and the rows that never became one, counted by reason."""

    cases: tuple[Case, ...]
    left_out: Mapping[str, int]


def judge(predictor: RowPredictor = predict_row, *, sealed: bool = False) -> Judgement:
    """Predict every judgeable row.

    Parameters
    ----------
    predictor : RowPredictor
        What is judged.
    sealed : bool
        Whether to open the rows nothing may be chosen by.
    """
    rows, left_out = _judgeable_rows(sealed)
    graphs = {model: build_published(model) for model in {str(row.model) for row in rows}}
    comparisons = compare_rows(((row, graphs[str(row.model)]) for row in rows), predictor=predictor)
    cases = [Case(row=row, comparison=one) for row, one in zip(rows, comparisons, strict=True)]
    return Judgement(cases=tuple(cases), left_out=left_out)


def _judgeable_rows(sealed: bool) -> tuple[tuple[PublishedRow, ...], Mapping[str, int]]:
    """Rows of single-core runs of known int8 networks on boards we have, and why others are not."""
    kept, left_out = [], Counter[str]()
    for row in published_rows(use="all" if sealed else "fit"):
        reason = _reason_left_out(row)
        if reason:
            left_out[reason] += 1
        else:
            kept.append(row)
    return tuple(kept), dict(left_out.most_common())


def _reason_left_out(row: PublishedRow) -> str:
    if "npu" in row.flags or "accelerator" in row.flags:
        return "ran on an accelerator"
    if not row.judges_latency:
        return "open division, duplicate or no latency"
    if row.board is None:
        return "board without a board file"
    if row.model is None:
        return "network without a published layer list"
    if row.precision != "int8":
        return "float32 or mixed precision without its model file"
    return "no clock stated" if row.clock_hz is None else ""


def latency_errors(cases: Iterable[Case]) -> Errors:
    """Errors of latency over the cases that are predicted."""
    return _summarise((case.comparison.predicted_ms, case.row.latency_ms) for case in cases)


def energy_errors(cases: Iterable[Case]) -> Errors:
    """Errors of energy over the cases whose published energy can be trusted."""
    return _summarise((case.comparison.predicted_uj, case.row.energy_uj)
                      for case in cases if case.row.judges_energy)


def memory_errors(cases: Iterable[Case]) -> Errors:
    """Errors of working memory over the cases whose tool reports one."""
    return _summarise((made.placement.arena_bytes, case.row.activations_bytes)
                      for case in cases if (made := case.comparison.prediction))


def _summarise(pairs: Iterable[tuple[float | None, float | None]]) -> Errors:
    errors = [abs(predicted / published - 1) * 100
              for predicted, published in pairs if predicted is not None and published]
    return Errors(count=len(errors), median_pct=statistics.median(errors) if errors else None,
                  worst_pct=max(errors, default=None))
