"""Running a study: tasks that are not done yet, or points a search asks for; the table of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import fspath
from typing import Any

from hwmodels.errors import TwinError, need_extra
from hwmodels.files import File
from twin.errors import UsageError
from twin.studies.axes import EACH, MEASURED, NAMED, Axis, Brought, Value, label
from twin.studies.functions import load_step
from twin.studies.results import Table
from twin.studies.rows import Row, Rows
from twin.studies.study.definition import CASE, Asked, Search, Study, list_asked, vary_cases
from twin.studies.study.file import load_runnable
from twin.studies.study.session import Session, begin_session, lock_session
from twin.studies.study.tasks import Plan, Task, cut_tasks, make_plan
from twin.studies.study.workers import Compute, open_workers
from twin.studies.sweep import Progress, make_table

Predict = Callable[[Sequence[Asked]], Rows]
"""Returns a row for every configuration, in order."""

FAR = 1e3
"""Constraint of a row that was refused: worse than any limit that is broken."""


def search_points(study: Study, predict: Predict) -> None:
    """Ask for points batch by batch and have them predicted.

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
    return cases[trial.suggest_int(CASE, 0, len(cases) - 1) if study.cases else 0]


def _suggest(axis: Axis, point: dict[str, Value], trial: Any) -> Value:
    if (axis.span is not None and axis.span.count is None) or any(
            value in (MEASURED, EACH) for value in axis.values):
        try:
            return axis.at(trial.suggest_float(axis.name, 0.0, 1.0), point)
        except TwinError:
            return axis.values[0]  # Of a board that cannot be read: a row says so.
    values = {label(value): value for value in axis.list_values(point)}
    return values[trial.suggest_categorical(axis.name, [*values])]


def _make_sampler(optuna: Any, search: Search) -> Any:
    def constraints(trial: Any) -> list[float]:
        stored: list[float] = trial.user_attrs.get("constraints", [])
        return stored

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


Bring = Callable[[Study], tuple[Brought, ...]]

Found = dict[str, Row]
"""Rows by content address."""


def run_study(source: File, folder: File, *, jobs: int = 1,
              cluster: str | None = None, command: Sequence[str] = (),
              bring: Bring | None = None, on_progress: Progress | None = None) -> Session:
    """Run a study in a folder, or resume it.

    Parameters
    ----------
    source : str or path
        A study file, or the name of a shipped study.
    folder : str or path
        A new one, or one this study was started in.
    jobs
        Processes of this machine.
    cluster
        "local:4" or the address of a Dask scheduler, in place of processes.
    bring
        Returns the programs of a study that are compared with its libraries.

    Returns
    -------
    Session
        Finished.

    Raises
    ------
    TwinError
        For a file, a folder or a worker that is refused.
    """
    study = load_runnable(fspath(source))
    for step in study.postprocess:  # one that does not load is refused before anything runs
        load_step(step)
    study = study if bring is None else replace(study, brought=bring(study))
    plan = make_plan(study)
    with open_workers(jobs, cluster) as compute, lock_session(fspath(folder)):
        session = begin_session(fspath(source), study, plan, fspath(folder), command)
        found = _run(session, plan, compute, on_progress)
        table = make_study_table(study, tuple(found.values()))
        session.save_results(table, tuple(found))
    return session


def _run(session: Session, plan: Plan, compute: Compute, on_progress: Progress | None) -> Found:
    study, found, failed = session.study, dict[str, Row](), 0

    def predict(asked: Sequence[Asked]) -> Rows:
        new = {address: one for one in asked if (address := plan.address(one)) not in found}
        fresh = [*new.values()]
        if study.search is not None:  # Like beside like: fewer tasks of more configurations.
            fresh.sort(key=lambda one: [label(one.point.get(name, "")) for name in NAMED])
        for task, rows in _complete(session, plan, cut_tasks(plan, fresh), compute, tell):
            found.update(zip(task.addresses, rows, strict=True))
        return tuple(found[plan.address(one)] for one in asked)

    def tell(rows: Sequence[Row], done: int, total: int) -> None:
        nonlocal failed
        failed += sum(bool(row.failure) for row in rows)
        if on_progress is not None:
            on_progress(done, total, failed)

    if study.search is None:
        predict(list_asked(study))
    else:
        search_points(study, predict)
    return found


def _complete(session: Session, plan: Plan, tasks: Sequence[Task], compute: Compute,
              tell: Callable[[Sequence[Row], int, int], None], ) -> list[tuple[Task, Rows]]:
    """Return the rows of tasks in order, those kept as they are, the others computed and kept."""
    kept = {number: rows for number, task in enumerate(tasks)
            if (rows := session.load_rows(task)) is not None}
    left = [number for number in range(len(tasks)) if number not in kept]
    total, done = sum(len(task.asked) for task in tasks), sum(map(len, kept.values()))
    tell([row for rows in kept.values() for row in rows], done, total)
    for place, rows in compute(plan, [tasks[number] for number in left]):
        number = left[place]
        session.save_rows(tasks[number], rows)
        kept[number] = rows
        done += len(rows)
        tell(rows, done, total)
    return [(task, kept[number]) for number, task in enumerate(tasks)]


def make_study_table(study: Study, rows: Sequence[Row]) -> Table:
    """Return rows held to soft limits, with the front of all that no hard limit rejects.

    Notes
    -----
    Cold and warm rows, and cases, of one network share a front: an axis like any other.
    """
    return make_table(rows, limits=study.limits, objectives=study.objectives, axes=study.axes)
