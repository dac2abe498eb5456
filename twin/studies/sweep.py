"""A sweep: every point of a space predicted, held to limits, and its Pareto front.

On the front is what nothing else beats in every objective, marked with how sure that is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from hwmodels.processes import map_forked
from hwmodels.quantities import list_by_key
from twin.network.rewrites.rewrite import find_rewrites, load_rewrite, makes_another
from twin.pricing.draw import probability_faster, read_draw
from twin.studies.axes import Point, Space, label
from twin.studies.limits import Limits, probability_within
from twin.studies.points import Deployer
from twin.studies.results import Table
from twin.studies.rows import NAMED, UNCERTAIN, Row, Rows, judge

CERTAIN, FRONT, POSSIBLE = "certain", "front", "possible"
MARKS = {
    CERTAIN: "on the front whatever values inside the intervals are the true ones",
    FRONT: "on the front of the predictions, though intervals or a figure that is not known leave "
           "it open",
    POSSIBLE: "not on the front of the predictions, but their intervals, each by itself, allow it"}
"""Marks of rows, and what they say; "" is surely beaten."""


def mark_front(rows: Sequence[Row], objectives: Sequence[str]) -> Rows:
    """Return rows with `front` set, all predicted rows of each network among themselves.

    Limits play no part. Rows with an unknown objective have no mark. Networks do not compete: a
    small one beats a large one in everything that is predicted, and what it loses in accuracy is
    not.

    Parameters
    ----------
    objectives
        Quantities of `results.QUANTITIES`; less is better.

    Notes
    -----
    Row a surely beats b if the upper ends of a are not above the lower ends of b, and one is below;
    a may beat b if the lower ends of a are not above the upper ends of b, and one is below.
    `certain`: nothing may beat it; `possible`: nothing surely does. An objective that is not known
    may be anything, and of a time or energy without an interval nothing is certain. Intervals are
    taken one by one, though rows of one board share errors: the cautious side.
    """
    marked = list(rows)
    kinds = [rivals_of(row, objectives) for row in rows]
    for kind in dict.fromkeys(kinds):
        group = [number for number, one in enumerate(kinds) if one == kind]
        for number, row in zip(group, _mark_group([rows[one] for one in group], objectives),
                               strict=True):
            marked[number] = row
    return tuple(marked)


def rivals_of(row: Row, objectives: Sequence[str]) -> tuple[str, ...]:
    """Return what rows share that compare: their network, and of energies where they are counted.

    An inference of a chip at its rail and one of a board at its input are no two of a kind; mean
    powers are, whose idle draw between inferences is counted on both sides.
    """
    return *network_of(row), *map(row.compared_as, objectives)


def list_changed(rows: Iterable[Row]) -> list[str]:
    """Return the axes of rows whose values make another network of their model."""
    return sorted({name for row in rows for name, _ in row.inputs if makes_another(name)})


def list_idle(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """Return axes none of whose values changes a figure, all else equal, with their values.

    Of axes every row has: a setting advised for some was not varied.
    """
    known = [(dict(row.inputs), (row.time_us, row.energy_uj, row.ram_bytes, row.flash_bytes,
                                 row.accuracy)) for row in rows if not row.failure]
    values = {axis: tuple(dict.fromkeys(inputs[axis] for inputs, _ in known))
              for axis in set.intersection(*({*inputs} for inputs, _ in known)) - {*NAMED}
              } if known else {}
    return {axis: given for axis, given in values.items() if len(given) > 1 and len(
        {repr({**inputs, axis: ""}) for inputs, _ in known}) == len(
        {repr(({**inputs, axis: ""}, figures)) for inputs, figures in known})}


def list_asked(rows: Iterable[Row]) -> list[str]:
    """Return what rows were asked to vary in, in order."""
    return list(dict.fromkeys(name for row in rows for name, _ in row.inputs))


def list_roundings(rows: Iterable[Row]) -> dict[str, str]:
    """Return how values of the axes of rows are rounded, by axis; of others nothing."""
    return {name: rounds for name in list_asked(rows) if name in find_rewrites()
            if (rounds := load_rewrite(name).rounds)}


def network_of(row: Row) -> tuple[str, ...]:
    """Return what distinguishes a row's network: its model, and changes of what it answers.

    Networks whose accuracy is known compete with each other: nothing distinguishes them.
    """
    if row.accuracy is not None:
        return ()
    return row.model, *(f"{name}={value}" for name, value in row.inputs if makes_another(name))


def name_network(row: Row) -> str:
    """Return a row's network: its model, and what was changed of it."""
    return " ".join((row.network, *(
        f"{name.removeprefix('network.')} {value}" for name, value in row.inputs
        if name.startswith("network."))))


def _mark_group(rows: Sequence[Row], objectives: Sequence[str]) -> list[Row]:
    shown = [number for number, row in enumerate(rows) if not row.failure]
    marked = [replace(row, front="") for row in rows]
    if not shown or not objectives:
        return marked
    unknown = 0.0, math.inf, math.inf
    bounds = np.array([[rows[number].bounds_of(name) or unknown for name in objectives]
                       for number in shown])
    low, point, high = bounds[:, :, 0], bounds[:, :, 1], bounds[:, :, 2]
    points, lows, highs = find_front(point), find_front(low), find_front(high)
    for place, number in enumerate(shown):
        surely_beaten = _is_beaten(low[place], high[highs[highs != place]])
        if surely_beaten or not np.isfinite(point[place]).all():
            continue
        rivals = low[lows[lows != place]] if place not in lows else np.delete(low, place, axis=0)
        on_front = place in points
        bounded = all(rows[number].interval_of(name) is not None for name in objectives
                      if name in UNCERTAIN)
        mark = (CERTAIN if on_front and bounded and not _is_beaten(high[place], rivals)
                else FRONT if on_front else POSSIBLE)
        marked[number] = replace(marked[number], front=mark)
    return marked


def find_front(values: np.ndarray) -> np.ndarray:
    """Return the indices of rows no other row beats, in ascending order.

    Parameters
    ----------
    values
        Shape (rows, objectives); less is better. Of equal rows all are kept.
    """
    order = np.lexsort(values.T[::-1])
    kept: list[int] = []
    front = np.empty((0, values.shape[1]))
    for place in order:
        if not _is_beaten(values[place], front):
            kept.append(int(place))
            front = values[kept]
    return np.sort(np.array(kept, dtype=np.int64))


def _is_beaten(values: np.ndarray, others: np.ndarray) -> bool:
    """Whether any of the others is nowhere above these values, and somewhere below."""
    return bool(((others <= values).all(axis=1) & (others < values).any(axis=1)).any())


CHUNK = 32
"""Most points predicted in one call; a chunk has one model on one board under one runtime."""

Progress = Callable[[int, int, int], None]
"""(points done, points, failures so far) after every chunk."""

Made = TypeVar("Made")


def sweep_space(space: Space, deployer: Deployer | None = None, *, limits: Limits | None = None,
                objectives: Sequence[str] = ("time_us", "energy_uj"),
                on_progress: Progress | None = None) -> Table:
    """Predict every point of a space.

    Parameters
    ----------
    deployer
        What does not: prices, temperature, defaults.
    limits
        Rows are held to them.
    objectives
        Quantities the front is over.

    Returns
    -------
    Table
        A row for every point in the order of the space; an infeasible one is a row with its reason.
    """
    rows = [row for made in predict_points(space.list_points(), deployer or Deployer(), on_progress)
            for row in made]
    return make_table(rows, limits=limits or Limits(), objectives=objectives,
                      axes=tuple(axis.name for axis in space.axes))


def predict_points(points: Sequence[Point], deployer: Deployer,
                   on_progress: Progress | None = None) -> Iterator[Rows]:
    """Yield the rows of points, chunk by chunk in their order.

    Parameters
    ----------
    deployer
        Prices, temperature, defaults.
    on_progress
        Called with the progress, after every chunk.
    """
    done = failed = 0
    deployer.rate_all(points)
    for made in _predict_parts(points, deployer):
        done, failed = done + len(made), failed + sum(bool(row.failure) for row in made)
        if on_progress is not None:
            on_progress(done, len(points), failed)
        yield made


FEWEST_PARTS = 8
"""Networks on boards that are predicted by several processes; fewer are soon done by one."""


def predict_chunks(points: Sequence[Point], deployer: Deployer) -> Rows:
    """Return the rows of points, predicted by a call for each chunk."""
    return tuple([row for chunk in cut_chunks(points) for row in deployer.predict(chunk)])


def map_boards(function: Callable[[Sequence[Point]], Made],
               points: Sequence[Point]) -> Iterator[Made]:
    """Yield what a function returns of each network's points on each board, in order.

    Many boards share a process for each core.
    """
    parts = [[*part] for _, part in itertools.groupby(points, lambda one: _group(one)[:2])]
    yield from (map if len(parts) < FEWEST_PARTS else map_forked)(function, parts)


def _predict_parts(points: Sequence[Point], deployer: Deployer) -> Iterator[Rows]:
    """Yield the rows of points in order: by board where there are many, else by chunk."""
    if len({_group(one)[:2] for one in points}) < FEWEST_PARTS:
        return map(deployer.predict, cut_chunks(points))
    return map_boards(lambda part: predict_chunks(part, deployer), points)


def make_table(rows: Sequence[Row], *, limits: Limits, objectives: Sequence[str],
               axes: Sequence[str] = ()) -> Table:
    """Return rows held to limits, with their front.

    Parameters
    ----------
    rows
        Each is judged again.
    limits
        What rows are held to; the front is of all of them.
    objectives
        Fields of a row that are better smaller. One that no row knows is omitted from the front,
        and so is a price that not every row knows.
    axes
        Paths that vary.
    """
    judged = share_draws([judge(row, limits) for row in rows], limits)
    known = tuple(name for name in objectives if (all if name == "price_usd" else any)(
        getattr(row, name) is not None for row in judged if not row.failure))
    return Table(rows=mark_front(judged, known), limits=limits, objectives=known or tuple(
        objectives), axes=tuple(axes))


def share_draws(rows: Sequence[Row], limits: Limits) -> list[Row]:
    """Return judged rows, none of which meets a time more surely than a faster one allows.

    Parameters
    ----------
    rows
        Of any networks; only those of one network on one board are compared.
    limits
        As they were judged by.

    Notes
    -----
    The ends of an interval do not say how far its tails reach; that of a row whose waits may be
    long is as wide below as its interval. What two such rows have in common is drawn once
    for both, so a limit below both is met by the slower one hardly more often:
    P(slow <= limit) <= P(fast <= limit) + P(slow < fast).
    """
    found = [*rows]
    known = [((row.model, row.board), place) for place, row in enumerate(rows)
             if row.draw and row.time]
    for places in list_by_key(known).values():
        fast, least = rows[places[0]], 1.0
        for place in sorted(places, key=lambda place: rows[place].time_us or 0.0):
            row, time_us = rows[place], rows[place].time_us or 0.0
            limit = dict(limits.after(row.wake_up_us).list_limits()).get("time_us", math.inf)
            chance = probability_within(limit, time_us, row.time) or 0.0
            if chance < least:
                fast, least = row, chance
            elif row.probability and limit < time_us:
                slower = probability_faster(fast.time_us or 0.0, time_us,
                                            *map(read_draw, (fast.draw, row.draw)))
                found[place] = replace(row, probability=min(row.probability, least + slower))
    return found


def hold(table: Table, limits: Limits, objectives: Sequence[str] | None = None) -> Table:
    """Return a table held to other limits, or with the front over other objectives."""
    return make_table(table.rows, limits=limits, objectives=objectives or table.objectives,
                      axes=table.axes)


def cut_chunks(points: Sequence[Point], most: int = CHUNK) -> Iterator[Sequence[Point]]:
    """Yield runs of points of one model on one board under one runtime, `most` at most."""
    begin = 0
    for place in range(1, len(points) + 1):
        if (place == len(points) or place - begin == most
                or _group(points[place]) != _group(points[begin])):
            yield points[begin:place]
            begin = place


def _group(point: Point) -> tuple[str, ...]:
    return tuple(label(point[name]) for name in ("model", "board", "runtime") if name in point)
