"""Which axis of a study a figure depends on: Morris' and Sobol's methods by SALib, and a tornado.

References
----------
Morris, Technometrics 33(2), 1991. Saltelli et al., Computer Physics Communications 181, 2010.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from os import fspath
from typing import Any

import numpy as np

from hwmodels.errors import check_word, need_extra
from hwmodels.files import File
from hwmodels.frozen import frozen
from twin.errors import StudyError, UsageError
from twin.studies.axes import Axis, label
from twin.studies.filling import name_inputs
from twin.studies.rows import QUANTITIES, Row
from twin.studies.study.definition import Asked, Study, settle_clock
from twin.studies.study.file import load_runnable
from twin.studies.study.tasks import cut_tasks, make_plan
from twin.studies.study.workers import open_workers
from twin.studies.sweep import Progress

SEED, LEVELS = 0, 4
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "morris": {"num_levels": LEVELS}, "sobol": {"calc_second_order": False}}
JUMP = LEVELS / 2 / (LEVELS - 1)
"""Of the draws; of Morris' grid: its levels, and the share of the way every step of a trajectory
takes."""

MIDDLE = 0.5 - 1e-9
"""Share of the way at which an axis is in its middle: of two values it is the first."""


@frozen
class Influence:
    """What one axis does to a figure.

    Parameters
    ----------
    low_value, high_value
        The ends of its range, or its first and last value.
    middle_value
        Where it is while others vary: half-way, or the value in the middle of its list; of an
        even number of values the earlier of the two, so of two the first.
    low, high
        The figure there, the other axes in their middle.
    index
        Morris: mean absolute elementary effect over the whole range; Sobol: total index.
    spread
        Morris: standard deviation of the effects; Sobol: confidence of the total index.
    alone
        Sobol: first-order index.
    """

    axis: str
    low_value: str
    high_value: str
    middle_value: str
    low: float
    high: float
    index: float
    spread: float
    alone: float | None = None


@frozen
class Sensitivity:
    """Influences of all axes on a figure of one model on one board.

    Parameters
    ----------
    middle
        The figure with every axis in its middle.
    points
        Configurations predicted.
    influences
        Greatest first.
    """

    study: str
    model: str
    board: str
    quantity: str
    method: str
    middle: float
    points: int
    influences: tuple[Influence, ...]


def analyse(source: File, *, quantity: str, method: str, count: int, jobs: int, cluster: str | None,
            on_progress: Progress | None, ) -> tuple[Sensitivity, ...]:
    """Return how a figure depends on the axes of a study, for every model on every board.

    Parameters
    ----------
    source : str or path
        A study file or the name of a shipped one; axes with one value are omitted.
    quantity
        Of `results.QUANTITIES`.
    method
        "morris" (count x (axes + 1) configurations) or "sobol" (count x (axes + 2)).
    count
        Trajectories, or base samples: a power of two for Sobol.
    jobs, cluster, on_progress
        As for `run_study`.

    Raises
    ------
    StudyError
        Where a configuration is refused, for the methods need all of them.
    ToolMissingError
        Without SALib.
    """
    study = load_runnable(fspath(source))
    _check(method, quantity, count)
    axes = _list_factors(study)
    drawn = _draw(axes, method, count)
    found = []
    plan = make_plan(study)
    with open_workers(jobs, cluster) as compute:
        for model in _values(study, "model"):
            for board in _values(study, "board"):
                fixed = {"model": model, "board": board}
                shares, scales = (_settle(axes, fixed, drawn) if method == "morris" else
                                  (drawn, np.ones(len(axes))))
                asked = _ask(study, axes, fixed, shares)
                tasks = cut_tasks(plan, asked)
                done: dict[int, Sequence[Row]] = {}
                for number, rows in compute(plan, tasks):
                    done[number] = rows
                    if on_progress is not None:
                        on_progress(sum(map(len, done.values())), len(asked), 0)
                values = _read([row for number in range(len(tasks)) for row in done[number]],
                               quantity, label(model), label(board))
                found.append(_make(study, axes, (label(model), label(board)), quantity, method,
                                   shares, values, scales))
    return tuple(found)


def _check(method: str, quantity: str, count: int) -> None:
    check_word("method", method, OPTIONS, UsageError)
    check_word("figure", quantity, QUANTITIES, UsageError)
    if not 2 <= count <= 65536 or (method == "sobol" and count & (count - 1)):
        raise UsageError(f"-n {count}; accepted: 2 to 65536, for sobol a power of two")


def _list_factors(study: Study) -> tuple[Axis, ...]:
    axes = tuple(axis for axis in study.space.axes if axis.name not in ("model", "board")
                 and (axis.span is not None or len(axis.values) > 1))
    if len(axes) < 2:
        raise StudyError(f"{study.name}: {len(axes)} axes vary beside models and boards; accepted: "
                         "two or more, each a range LOW..HIGH or several values")
    return axes


def _values(study: Study, name: str) -> Sequence[Any]:
    return next(axis.values for axis in study.space.axes if axis.name == name)


def _problem(axes: Sequence[Axis]) -> dict[str, Any]:
    return {"num_vars": len(axes), "names": [axis.name for axis in axes],
            "bounds": [[0.0, 1.0]] * len(axes)}


def _draw(axes: Sequence[Axis], method: str, count: int) -> np.ndarray:
    """Return points of the unit cube: the method's, then the middle and both ends of each axis."""
    sample = _import()[0][method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = sample.sample(_problem(axes), count, seed=SEED, **OPTIONS[method])
    ends = np.full((2 * len(axes) + 1, len(axes)), MIDDLE)
    for place in range(len(axes)):
        ends[1 + 2 * place, place], ends[2 + 2 * place, place] = 0.0, 1.0
    return np.vstack([drawn, ends])


def _settle(axes: Sequence[Axis], fixed: dict[str, Any], drawn: np.ndarray,
            ) -> tuple[np.ndarray, np.ndarray]:
    """Put Morris' levels on the nearest values of axes that have no others.

    Returns
    -------
    ndarray
        Shares of the way, in the middle of the part of each value. Steps of an axis stay equal.
    ndarray
        By axis, SALib's step, by which it divides differences, over that between the values.
    """
    drawn, scales = drawn.copy(), np.ones(len(axes))
    for place, axis in enumerate(axes):
        last = (len(axis.span.steps) if axis.span is not None and axis.span.count is None else
                len(axis.list_values(fixed))) - 1
        if last > 0:
            drawn[:, place] = (np.rint(drawn[:, place] * last) + 0.5) / (last + 1)
            scales[place] = JUMP * last / np.rint(JUMP * last)
    return drawn, scales


def _ask(study: Study, axes: Sequence[Axis], fixed: dict[str, Any],
         drawn: np.ndarray) -> list[Asked]:
    alone = {axis.name: axis for axis in study.space.axes if axis not in axes
             and axis.name not in fixed}
    found = []
    for shares in drawn:
        point = dict(fixed)
        point |= {name: axis.list_values(point)[0] for name, axis in alone.items()}
        point |= {axis.name: axis.at(min(float(share), 1 - 1e-9 if axis.span is None else 1.0),
                                     point) for axis, share in zip(axes, shares, strict=True)}
        found.append(Asked(point=settle_clock(point), temperature=study.temperatures[0],
                           labels=name_inputs(point)))
    return found


def _read(rows: Sequence[Row], quantity: str, model: str, board: str) -> np.ndarray:
    refused = [row for row in rows if getattr(row, quantity) is None]
    if refused:
        raise StudyError(f"{model} on {board}: {len(refused)} of {len(rows)} configurations are "
                         f"refused or without {quantity}, and every one is needed: "
                         f"{refused[0].reason or 'not known'}")
    return np.array([getattr(row, quantity) for row in rows], dtype=float)


def _make(study: Study, axes: Sequence[Axis], of: tuple[str, str], quantity: str, method: str,
          drawn: np.ndarray, values: np.ndarray, scales: np.ndarray) -> Sensitivity:
    ends = values[-(2 * len(axes) + 1):]
    drawn, values = drawn[:-len(ends)], values[:-len(ends)]
    analyser = _import()[1][method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of an axis that changes nothing.
        indices = analyser.analyze(_problem(axes), *[drawn] * (method == "morris"), values,
                                   seed=SEED, **OPTIONS[method])
    first, second = ("mu_star", "sigma") if method == "morris" else ("ST", "ST_conf")
    influences = [Influence(
        axis=axis.name, low_value=_end(axis, 0.0), high_value=_end(axis, 1.0),
        middle_value=_end(axis, MIDDLE), low=float(ends[1 + 2 * place]),
        high=float(ends[2 + 2 * place]), index=_number(indices[first][place] * scales[place]),
        spread=_number(indices[second][place] * scales[place]),
        alone=None if method == "morris" else _number(indices["S1"][place]))
        for place, axis in enumerate(axes)]
    return Sensitivity(study=study.name, model=of[0], board=of[1], quantity=quantity, method=method,
                       middle=float(ends[0]), points=len(drawn) + len(ends),
                       influences=tuple(sorted(influences, key=lambda one: -one.index)))


def _end(axis: Axis, share: float) -> str:
    if axis.span is not None:
        return label(axis.at(share, {}))
    return label(axis.values[min(int(share * len(axis.values)), len(axis.values) - 1)])


def _number(value: Any) -> float:
    """Return an index; 0 where nothing varies."""
    return float(value) if np.isfinite(value) else 0.0


def _import() -> tuple[dict[str, Any], dict[str, Any]]:
    with need_extra("sensitivities", "SALib", "study"):
        from SALib.analyze import morris, sobol
        from SALib.sample import morris as draw_morris
        from SALib.sample import sobol as draw_sobol
    return {"morris": draw_morris, "sobol": draw_sobol}, {"morris": morris, "sobol": sobol}
