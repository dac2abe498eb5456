"""Multi-objective search over a space by Optuna's samplers, under limits as constraints.

Points are asked for in batches and told in order, so a search asks for the same points at any
number of workers; one that was interrupted asks again for those it has, which cost nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from hwmodels.errors import TwinError, need_extra
from twin.errors import UsageError
from twin.studies.axes import BEST, EACH, MEASURED, Axis, Value, label
from twin.studies.results import Row
from twin.studies.study.study import CASE, Asked, Search, Study, vary_cases

Predict = Callable[[Sequence[Asked]], tuple[Row, ...]]
"""Returns a row for every configuration, in order."""

FAR = 1e3
"""Constraint of a row that was refused: worse than any limit that is broken."""


def search_points(study: Study, predict: Predict) -> None:
    """Ask for points batch by batch and have them predicted.

    Parameters
    ----------
    study : Study
        With a search.
    predict : callable
        Called with each batch.

    Raises
    ------
    ToolMissingError
        Without Optuna.
    """
    optuna, search = _import(), study.search
    assert search is not None
    if len(study.temperatures) > 1:
        raise UsageError("a search is of one temperature; accepted: warm or cold")
    found = optuna.create_study(directions=["minimize"] * len(study.objectives),
                                sampler=_make_sampler(optuna, search))
    for begin in range(0, search.trials, search.batch):
        trials = [found.ask() for _ in range(min(search.batch, search.trials - begin))]
        asked = [_ask(study, trial) for trial in trials]
        for trial, row in zip(trials, predict(asked), strict=True):
            values = [getattr(row, name) for name in study.objectives]
            trial.set_user_attr("constraints", list_constraints(study, row))
            if row.time_us is None or None in values:
                found.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                found.tell(trial, [float(value) for value in values])


def list_constraints(study: Study, row: Row) -> list[float]:
    """Return by how much each limit is broken, as a share; at or below 0 it is met."""
    broken = []
    for limits in (study.limits, study.hard):
        for name, limit in limits.list_limits():
            value = getattr(row, name)
            broken.append(FAR if value is None else value / limit - 1)
    return broken


def _ask(study: Study, trial: Any) -> Asked:
    """Return the configuration a trial suggests."""
    point: dict[str, Value] = {}
    for axis in study.space.axes:
        point[axis.name] = _suggest(axis, point, trial)
    cases = [*vary_cases(study, point, study.temperatures[0])]
    if not study.cases:
        return cases[0]
    return cases[trial.suggest_int(CASE, 0, len(cases) - 1)]


def _suggest(axis: Axis, point: dict[str, Value], trial: Any) -> Value:
    depends = any(value in (BEST, MEASURED, EACH) for value in axis.values)
    if axis.span is not None and axis.span.count is None:
        return axis.at(trial.suggest_float(axis.name, 0.0, 1.0), point)
    if depends:
        try:
            return axis.at(trial.suggest_float(axis.name, 0.0, 1.0), point)
        except TwinError:
            return axis.values[0]  # Of a board that cannot be read: a row says so.
    values = {label(value): value for value in axis.list_values(point)}
    return values[trial.suggest_categorical(axis.name, [*values])]


def _make_sampler(optuna: Any, search: Search) -> Any:
    def constraints(trial: Any) -> list[float]:
        told: list[float] = trial.user_attrs.get("constraints", [])
        return told

    if search.sampler == "random":
        return optuna.samplers.RandomSampler(seed=search.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Optuna 4 knows no other way.
        if search.sampler == "tpe":
            return optuna.samplers.TPESampler(seed=search.seed, constraints_func=constraints,
                                              constant_liar=True)
        return optuna.samplers.NSGAIISampler(
            seed=search.seed, population_size=min(50, max(search.batch, 8)),
            constraints_func=constraints)


def _import() -> Any:
    with need_extra("searches", "Optuna", "study"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
