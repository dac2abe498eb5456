"""Predictions and baselines for every published row we have a board for."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.baselines import (
    WORK_NAMES,
    Observations,
    by_core,
    by_core_and_runtime,
    by_core_and_version,
    count_work,
    fit_linear,
    fit_power,
    learn_clock_baseline,
)
from calibration.datasets import PublishedRow, published_rows
from twin.learning.published import (
    Comparison,
    RowPredictor,
    build_published,
    compare_rows,
    predict_row,
)

TWIN = "twin"
PER_MAC = "MACs x constant per core"
FOUR = "four constants per core and library"
FOUR_VERSION = "four constants per core and library version"
CLOCK = "clock scaling from other boards"
POWER_FOUR = "constant power x four-constant time"
POWER_PUBLISHED = "constant power x published time"
LATENCY_PREDICTORS = (TWIN, PER_MAC, FOUR, FOUR_VERSION, CLOCK)
COMPARED_PREDICTORS = (TWIN, PER_MAC, FOUR)
"""Those with figures for most rows, set beside each other on the same rows."""

ENERGY_PREDICTORS = (TWIN, POWER_FOUR, POWER_PUBLISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A published row with what every predictor says; None where one says nothing."""

    row: PublishedRow
    comparison: Comparison
    latency_ms: Mapping[str, float | None]
    energy_uj: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Absolute errors in per cent of the published value."""

    count: int
    median_pct: float | None
    worst_pct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All cases, and the rows that never became one, counted by reason."""

    cases: tuple[Case, ...]
    left_out: Mapping[str, int]


def judge(predictor: RowPredictor = predict_row, *, sealed: bool = False) -> Judgement:
    """Predict every judgeable row and fit the baselines to those of use "fit".

    Parameters
    ----------
    predictor : RowPredictor
        What is judged.
    sealed : bool
        Whether to open the rows nothing may be chosen by.
    """
    rows, left_out = _judgeable_rows(sealed)
    graphs = {model: build_published(model) for model in {str(row.model) for row in rows}}
    comparisons = compare_rows(((row, graphs[str(row.model)]) for row in rows),
                               predictor=predictor)
    work = {(model, dead): count_work(graph, drops_dead_channels=dead)
            for model, graph in graphs.items() for dead in (False, True)}
    counts = [work[str(row.model), bool(row.drops_dead_channels)] for row in rows]
    macs = [sum(each[:3]) for each in counts]

    fitting = [i for i, row in enumerate(rows) if row.use == "fit"]
    fit_rows = tuple(rows[i] for i in fitting)
    per_mac = fit_linear(Observations(
        rows=fit_rows, names=("macs",), counts=np.array([[macs[i]] for i in fitting], float),
    ), by_core)
    fit_work = Observations(
        rows=fit_rows, names=WORK_NAMES, counts=np.array([counts[i] for i in fitting], float))
    four = fit_linear(fit_work, by_core_and_runtime)
    four_version = fit_linear(fit_work, by_core_and_version)
    clock, power = learn_clock_baseline(fit_rows), fit_power(fit_rows)

    cases = []
    for row, comparison, total, each in zip(rows, comparisons, macs, counts, strict=True):
        four_ms = four.predict_ms(row, each)
        cases.append(Case(
            row=row, comparison=comparison,
            latency_ms={TWIN: comparison.predicted_ms, PER_MAC: per_mac.predict_ms(row, (total,)),
                        FOUR: four_ms, FOUR_VERSION: four_version.predict_ms(row, each),
                        CLOCK: clock.predict_ms(row)},
            energy_uj={TWIN: comparison.predicted_uj, POWER_FOUR: power.predict_uj(row, four_ms),
                       POWER_PUBLISHED: power.predict_uj(row, row.latency_ms)},
        ))
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


def latency_errors(cases: Iterable[Case], predictor: str) -> Errors:
    """Errors of a predictor's latency over the cases it predicts."""
    return _summarise((case.latency_ms[predictor], case.row.latency_ms) for case in cases)


def energy_errors(cases: Iterable[Case], predictor: str) -> Errors:
    """Errors of a predictor's energy over the cases whose published energy can be trusted."""
    return _summarise((case.energy_uj[predictor], case.row.energy_uj)
                      for case in cases if case.row.judges_energy)


def memory_errors(cases: Iterable[Case], predictor: str) -> Errors:
    """Errors of the twin's working memory over the cases whose tool reports one."""
    assert predictor == TWIN, "no baseline predicts memory"
    return _summarise((case.comparison.predicted_arena_bytes, case.row.activations_bytes)
                      for case in cases)


def _summarise(pairs: Iterable[tuple[float | None, float | None]]) -> Errors:
    errors = [abs(predicted / published - 1) * 100
              for predicted, published in pairs if predicted is not None and published]
    return Errors(count=len(errors), median_pct=statistics.median(errors) if errors else None,
                  worst_pct=max(errors, default=None))


def common_cases(cases: Sequence[Case], predictors: Sequence[str]) -> tuple[Case, ...]:
    """Cases whose latency every one of the predictors predicts."""
    return tuple(case for case in cases
                 if all(case.latency_ms[name] is not None for name in predictors))
