"""A sweep: every point of a space predicted, held to limits, and its Pareto front."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from twin.studies.axes import Point, Space, label
from twin.studies.limits import Limits
from twin.studies.pareto import mark_front
from twin.studies.points import Deployer
from twin.studies.results import Row, Table, judge

CHUNK = 32
"""Most points predicted in one call; a chunk has one model on one board under one runtime."""

Told = Callable[[int, int, int], None]
"""(points done, points, failures so far) after every chunk."""


def sweep_space(space: Space, deployer: Deployer | None = None, *, limits: Limits | None = None,
                objectives: Sequence[str] = ("time_us", "energy_uj"),
                on_progress: Told | None = None) -> Table:
    """Predict every point of a space.

    Parameters
    ----------
    space : Space
        What varies.
    deployer : Deployer, optional
        What does not: prices, temperature, defaults.
    limits : Limits, optional
        Rows are held to them; the front is of those that meet them.
    objectives : sequence of str
        Quantities the front is over.
    on_progress : callable, optional
        Told how far it is.

    Returns
    -------
    Table
        A row for every point in the order of the space; what cannot be is a row with its reason.
    """
    rows = [row for made in predict_points(space.list_points(), deployer or Deployer(), on_progress)
            for row in made]
    return make_table(rows, limits=limits or Limits(), objectives=objectives,
                      axes=tuple(axis.name for axis in space.axes))


def predict_points(points: Sequence[Point], deployer: Deployer,
                   on_progress: Told | None = None) -> Iterator[tuple[Row, ...]]:
    """Yield the rows of points, chunk by chunk in their order.

    Parameters
    ----------
    points : sequence of Point
        Of a space.
    deployer : Deployer
        Prices, temperature, defaults.
    on_progress : callable, optional
        Told how far it is, after every chunk.
    """
    done = failed = 0
    for chunk in cut_chunks(points):
        made = deployer.predict(chunk)
        done, failed = done + len(made), failed + sum(bool(row.failure) for row in made)
        if on_progress is not None:
            on_progress(done, len(points), failed)
        yield made


def make_table(rows: Sequence[Row], *, limits: Limits, objectives: Sequence[str],
               axes: Sequence[str] = ()) -> Table:
    """Return rows held to limits, with their front.

    Parameters
    ----------
    rows : sequence of Row
        Each is judged anew.
    limits : Limits
        What a row on the front must meet.
    objectives : sequence of str
        Fields of a row that are better smaller; one that no row within the limits knows is left
        out of the front.
    axes : sequence of str
        Paths that vary.
    """
    judged = [judge(row, limits) for row in rows]
    known = tuple(name for name in objectives
                  if any(getattr(row, name) is not None for row in judged if row.met))
    return Table(rows=mark_front(judged, known), limits=limits, objectives=known or tuple(
        objectives), axes=tuple(axes))


def hold(table: Table, limits: Limits, objectives: Sequence[str] | None = None) -> Table:
    """Return a table held to other limits, or with the front over other objectives."""
    made = make_table(table.rows, limits=limits, objectives=objectives or table.objectives,
                      axes=table.axes)
    return dataclasses.replace(made, axes=table.axes)


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
