"""What verbs return, as JSON: the documents their --json writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hwmodels.errors import TwinError
from twin.prediction.document import dump_document

if TYPE_CHECKING:
    from twin.attribution.difference import Difference
    from twin.attribution.series import Series
    from twin.learning.portability.plan import Ranking
    from twin.learning.portability.port import Ported
    from twin.prediction.prediction import Prediction
    from twin.studies.scenario.outcome import Outcome
    from twin.studies.study.findings import RowPair
    from twin.studies.study.sensitivity import Sensitivity


def to_document(result: Any, **more: Any) -> Mapping[str, Any]:
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
        Of a prediction, `per_operand`: split its bill; of a difference, `limit`: the share
        nothing may grow by, and `with_parts`: no layer either; of a list, `kind`: which it is
        where it is empty, and further keys.

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
        first = type(next(iter(result), None)).__name__
        if first in _LISTS:
            return _LISTS[first](result)
        if isinstance(result, list) and not (result and isinstance(result[0], tuple)):
            return {"schema": 1, "kind": "several",
                    "results": [to_document(one) for one in result]}
        from twin.reports.lists import list_document

        return list_document(result, **more)
    write = _WRITERS.get(type(result).__name__)
    if write is None:
        raise TwinError(f"{type(result).__name__}: has no JSON document; accepted: "
                        f"{', '.join(_WRITERS)}")
    return write(result, **more)


def write_json(result: Any, **more: Any) -> str:
    """Return the document of a result as text: the same result gives the same bytes."""
    return dump_document(to_document(result, **more))


def _predicted(prediction: Prediction, per_operand: bool = False) -> Mapping[str, Any]:
    from twin.prediction import document

    written = document.to_document(prediction)
    if per_operand:
        from twin.prediction.operands import split_document

        written = split_document(written, prediction)
    return written


def _compared(name: str) -> Callable[..., Mapping[str, Any]]:
    """Return a writer of comparisons by name, loaded when it is needed."""
    def write(result: Any) -> Mapping[str, Any]:
        from twin.attribution import document

        return getattr(document, name)(result)

    return write


def _listed(name: str) -> Callable[..., Mapping[str, Any]]:
    """Return a writer of what there is by name, loaded when it is needed."""
    def write(result: Any) -> Mapping[str, Any]:
        from twin.reports import lists

        return getattr(lists, name)(result)

    return write


def _done(name: str) -> Callable[..., Mapping[str, Any]]:
    """Return a writer of what a command did by name, loaded when it is needed."""
    def write(result: Any) -> Mapping[str, Any]:
        from twin.reports import outcomes

        return getattr(outcomes, name)(result)

    return write


def _viewed(view: Any) -> Mapping[str, Any]:
    from twin.attribution.document import view_document

    return view_document(view, view.kind)


def _differing(difference: Difference, limit: float | None = None,
               with_parts: bool = False) -> Mapping[str, Any]:
    from twin.attribution.document import difference_document

    exceeding = () if limit is None else difference.exceeding(limit, with_parts=with_parts)
    return difference_document(difference, limit, exceeding)


def _followed(series: Series) -> Mapping[str, Any]:
    return {"schema": 1, "kind": "series", **asdict(series)}


def _cached(report: Any) -> Mapping[str, Any]:
    from twin.studies.caches import to_locality_document

    return to_locality_document(report.locality, report.points, report.policies, report.prices)


def _ranked(ranking: Ranking) -> dict[str, Any]:
    def one(names: tuple[str, ...], low: float, high: float, narrowing: float) -> dict[str, Any]:
        return {"run": list(names), "low_us": low, "high_us": high, "narrowing": narrowing}

    before = ranking.certainty.time_us
    return {
        "schema": 1, "kind": "predicted", "time_us": ranking.prediction.time_us,
        "low_us": before.low, "high_us": before.high, "level": before.level,
        "best": one(ranking.best.names, ranking.best.time_us.low, ranking.best.time_us.high,
                    ranking.best.narrowing),
        "candidates": [one(c.names, c.time_us.low, c.time_us.high, c.narrowing)
                       for c in (*ranking.single, *ranking.runs)],
        "silent": list(ranking.silent)}


def _ported(ported: Ported) -> dict[str, Any]:
    prediction, certainty = ported.prediction, ported.prediction.certainty
    assert certainty is not None
    shipped = ported.shipped
    return {
        "schema": 1, "kind": "predicted", "model": prediction.deployment.graph.name,
        "board": prediction.deployment.board.name,
        "runtime": prediction.deployment.runtime.identity, "physics_us": ported.physics_us,
        "time_us": prediction.time_us, "time_interval_us": asdict(certainty.time_us),
        "energy_uj": prediction.energy_uj,
        "energy_interval_uj": None if certainty.energy_uj is None else asdict(certainty.energy_uj),
        "shipped": {"time_us": shipped.time_us, "why_it_differs": ported.difference,
                    "time_interval_us": None if shipped.certainty is None else asdict(
                        shipped.certainty.time_us)},
        "basis": certainty.basis, "makeup": asdict(ported.makeup),
        "extrapolating": list(certainty.extrapolating),
        "behind": [asdict(one) for one in ported.behind],
        "narrowing": None if ported.ranking is None else _ranked(ported.ranking)}


def _swept(table: Any) -> dict[str, Any]:
    from twin.studies.results import list_columns

    return {"schema": 1, "kind": "study", "limits": asdict(table.limits),
            "objectives": list(table.objectives), "axes": list(table.axes),
            "rows": [list_columns(row) for row in table.rows]}


def _studied(session: Any) -> dict[str, Any]:
    from twin.studies.study.session import Session

    if not isinstance(session, Session):
        raise TwinError("a kept run: has no JSON document; its result is one, `read_result()`")
    return _swept(session.load_results())


def _moved(pairs: Sequence[RowPair]) -> dict[str, Any]:
    from twin.studies.results import list_columns

    def one(pair: RowPair) -> dict[str, Any]:
        inputs = next(row.inputs for row in pair if row is not None)
        before, after = (None if row is None else list_columns(row) for row in pair)
        return {"inputs": dict(inputs), "moved": pair.has_moved, "figures": list(pair.figures),
                "time_ratio": pair.time_ratio, "energy_ratio": pair.energy_ratio,
                "before": before, "after": after}

    return {"schema": 1, "kind": "study_diff", "moved": sum(pair.has_moved for pair in pairs),
            "gone": sum(pair.after is None for pair in pairs),
            "new": sum(pair.before is None for pair in pairs),
            "rows": [one(pair) for pair in pairs]}


def _ranked_axes(found: Sequence[Sensitivity]) -> dict[str, Any]:
    return {"schema": 1, "kind": "sensitivities", "sensitivities": [asdict(one) for one in found]}


def _checked(found: Any) -> dict[str, Any]:
    deployment = found.prediction.deployment
    return {"schema": 1, "kind": "check", "model": deployment.graph.name,
            "board": deployment.board.name, "runtime": deployment.runtime.identity,
            "met": found.met, "sure": found.sure, "requirements": [
                {"name": one.name, "unit": one.unit, "predicted": one.predicted,
                 "limit": one.limit, "met": one.met, "surely_met": one.surely_met,
                 "interval": None if one.interval is None else asdict(one.interval),
                 "chance_above": one.chance_above, "verdict": one.verdict}
                for one in found.requirements]}


def _advised(advice: Any) -> dict[str, Any]:
    from twin.studies.results import list_columns

    def one(change: Any) -> dict[str, Any]:
        return {"settings": dict(change.settings), "effort": change.effort, "costs": change.costs,
                "time_ratio": change.time_ratio, "energy_ratio": change.energy_ratio,
                "time_ratio_interval": None if change.gain is None else asdict(change.gain),
                "rests_on": change.rests_on, "row": list_columns(change.row)}

    return {"schema": 1, "kind": "advice", "limits": asdict(advice.limits), "met": advice.met,
            "before": list_columns(advice.before),
            "best": None if advice.best is None else one(advice.best),
            "changes": [one(change) for change in advice.changes],
            "pairs": [one(change) for change in advice.pairs],
            "refused": [{"change": words, "reason": reason}
                        for words, reason in advice.refused]}


def _selected(selection: Any) -> dict[str, Any]:
    from twin.studies.results import list_columns

    models = dict.fromkeys(one.row.model for one in selection.choices)
    return {
        "schema": 1, "kind": "selection", "limits": asdict(selection.limits),
        "choices": [{"score": one.score, "met": one.row.met, "reason": one.reason,
                     "penalties": [asdict(penalty) for penalty in one.penalties],
                     "advice": None if one.advice is None else _advised(one.advice),
                     "row": list_columns(one.row)} for one in selection.choices],
        "winners": {model: [{"metric": one.metric, "board": one.choice.row.board,
                             "runtime": one.choice.row.runtime, "probability": one.probability}
                            for one in selection.list_winners(model)] for model in models},
        "table": _swept(selection.table)}


def _outlived(outcome: Outcome) -> Mapping[str, Any]:
    from twin.studies.scenario import outcome as scenario

    return scenario.to_document(outcome)


_LISTS: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    "RowPair": _moved, "Sensitivity": _ranked_axes}
"""Of what a verb returns several of, by their class."""

_WRITERS: Mapping[str, Callable[..., Mapping[str, Any]]] = {
    "Prediction": _predicted, "WhatIf": _compared("what_if_document"), "View": _viewed,
    "PublishedView": _compared("published_document"), "Difference": _differing,
    "Diagnosis": _compared("diagnosis_document"), "Series": _followed, "CacheReport": _cached,
    "Ranking": _ranked, "Ported": _ported, "Table": _swept, "Session": _studied,
    "Check": _checked, "Advice": _advised, "Selection": _selected, "Outcome": _outlived,
    "NewBoard": _listed("new_board_document"), "Boards": _listed("boards_document"),
    "Board": _listed("board_document"), "Runtime": _listed("runtime_document"),
    "Entry": _listed("term_document"),
    **{kind: _done(f"{name}_document") for kind, name in (
        ("Overlay", "calibration"), ("Energy", "energy"), ("ImportedLog", "imported"),
        ("Measured", "measured"), ("MeasuredMachine", "machine"), ("Build", "built"),
        ("BoardRun", "run"), ("Built", "builds"), ("Written", "written"),
        ("Flashed", "flashed"), ("Lesson", "learnt"),
        ("Tuning", "tuning"), ("Comparison", "compared"), ("Removed", "removed"),
        ("Serving", "serving"), ("Accuracies", "accuracy"))}}
"""By class, whose modules are loaded only where one was used."""
