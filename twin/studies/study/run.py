"""Running a study: tasks that are not done yet, and the table of them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from os import PathLike, fspath

from twin.studies.axes import NAMED, label
from twin.studies.limits import Limits
from twin.studies.results import Row, Table, judge
from twin.studies.study.file import load_runnable
from twin.studies.study.search import search_points
from twin.studies.study.session import Session, begin_session, lock_session
from twin.studies.study.study import Asked, Study, list_asked
from twin.studies.study.tasks import Plan, Task, cut_tasks, make_plan
from twin.studies.study.workers import Compute, open_workers
from twin.studies.sweep import make_table

Told = Callable[[int, int, int], None]
"""(configurations done, all, failures so far) after every task."""

Found = dict[str, Row]
"""Rows by content address."""


def run_study(source: str | PathLike[str], folder: str | PathLike[str], *, jobs: int = 1,
              cluster: str | None = None, command: Sequence[str] = (),
              on_progress: Told | None = None) -> Session:
    """Run a study in a folder, or go on with it.

    Parameters
    ----------
    source : str or path
        A study file, or the name of a shipped study.
    folder : str or path
        A new one, or one this study was begun in.
    jobs : int
        Processes of this machine.
    cluster : str, optional
        "local:4" or the address of a Dask scheduler, in place of processes.
    command : sequence of str
        Noted in the session.
    on_progress : callable, optional
        Told how far it is.

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
    plan = make_plan(study)
    with open_workers(jobs, cluster) as compute, lock_session(fspath(folder)):
        session = begin_session(fspath(source), study, plan, fspath(folder), command)
        found = _run(session, plan, compute, on_progress)
        table = make_study_table(study, tuple(found.values()))
        session.save_results(table, tuple(found))
    return session


def _run(session: Session, plan: Plan, compute: Compute, on_progress: Told | None) -> Found:
    study, found, failed = session.study, dict[str, Row](), 0

    def predict(asked: Sequence[Asked]) -> tuple[Row, ...]:
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
              tell: Callable[[Sequence[Row], int, int], None],
              ) -> list[tuple[Task, tuple[Row, ...]]]:
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
    marked = make_table(rows, limits=Limits(), objectives=study.objectives, axes=study.axes)
    judged = tuple(dataclasses.replace(judge(row, study.limits), front=row.front)
                   for row in marked.rows)
    return dataclasses.replace(marked, rows=judged, limits=study.limits)

