"""Bundles: instructions with slots of their own, scheduled ahead of time, and pipelined loops.

A core that issues what its compiler packed takes as long as the packing: each operation holds one
unit, results come after a latency nobody waits for, so whoever reads them is placed later. A block
is packed by list scheduling, the operation first whose results are longest waited for. A loop whose
trips overlap starts one every

    interval = max(work of a unit / how many there are, delay round a cycle / its trips)

cycles or, where no packing that tight is found, more.

References
----------
.. [1] Rau, "Iterative Modulo Scheduling", Int. Journal of Parallel Programming 24(1), 1996.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hwmodels.errors import KernelError
from hwmodels.frozen import frozen, record

_TRIES = 6
"""Placements tried for each operation before the interval grows."""


@frozen
class Operation:
    """One operation of a bundle.

    Parameters
    ----------
    units
        Any of which it holds; none: a slot only.
    paths
        All of which it holds in its first cycle: buses between register files, ports.
    busy_cycles
        For how long.
    latency_cycles
        From issue to the first operation that may read its results; 1: the next cycle.
    reads, writes
        Registers.
    steps
        Address registers it moves on, there in the next cycle.
    """

    text: str = ""
    units: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    busy_cycles: int = 1
    latency_cycles: int = 1
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


@record
class Edge:
    """A sink is issued at least `latency` after a source of `distance` trips before."""

    source: int
    sink: int
    latency_cycles: int
    distance: int = 0


@frozen
class Pipelined:
    """A loop whose trips overlap.

    Parameters
    ----------
    interval_cycles
        From the start of a trip to that of the next.
    resource_cycles, recurrence_cycles
        Its two bounds.
    issue_cycles
        Of each operation, from the start of its trip.
    """

    interval_cycles: int
    resource_cycles: int
    recurrence_cycles: int
    issue_cycles: tuple[int, ...]

    @property
    def stages(self) -> int:
        """Trips under way at once; all but one stand in the prologue, and in the epilogue."""
        return max(self.issue_cycles, default=0) // self.interval_cycles + 1

    def count_cycles(self, trips: int) -> int:
        """Return cycles of so many trips: prologue, steady state and epilogue."""
        return self.interval_cycles * (trips + self.stages - 1) if trips else 0


def hold(one: Operation, cycle: int, taken: dict[tuple[str, int], int], interval: int) -> bool:
    """Take a unit for an operation, modulo an interval of a loop; say whether one was free."""
    paths = [(path, cycle % interval if interval else cycle) for path in one.paths]
    if any(path in taken for path in paths):
        return False
    for unit in one.units or ("",):
        keys = [(unit, at % interval if interval else at)
                for at in range(cycle, cycle + one.busy_cycles) if unit]
        if all(key not in taken for key in keys) and len(set(keys)) == len(keys):
            taken.update(dict.fromkeys((*keys, *paths), 1))
            return True
    return False


def bound_resources(operations: Sequence[Operation]) -> int:
    """Return the least interval units allow: of each set of them, work over how many there are.

    Notes
    -----
    Work of a set is that of operations which run on none but it (Hall's condition).
    """
    choices = {frozenset(one.units) for one in operations if one.units}
    sets = {frozenset().union(*some) for some in _unions(sorted(choices, key=sorted))}
    return max((math.ceil(sum(one.busy_cycles for one in operations
                              if one.units and set(one.units) <= group) / len(group))
                for group in sets), default=1)


def _unions(choices: Sequence[frozenset[str]]) -> list[list[frozenset[str]]]:
    """Return groups of choices whose unions may bind: each, those that overlap it, and all."""
    groups = [[one, *(other for other in choices if other & one)] for one in choices]
    return [*[[one] for one in choices], *groups, list(choices)] if choices else []


def bound_recurrence(count: int, edges: Sequence[Edge]) -> int:
    """Return the least interval cycles of dependence allow, 1 without any."""
    low, high = 1, max(1, sum(edge.latency_cycles for edge in edges))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _longest(count, edges, middle) is not None else (
            middle + 1, high)
    return low


def _longest(count: int, edges: Sequence[Edge], interval: int) -> list[int] | None:
    """Return the earliest issue of each operation; None where a cycle asks for a longer one."""
    early = [0] * count
    for _ in range(count + 1):
        changed = False
        for edge in edges:
            least = early[edge.source] + edge.latency_cycles - interval * edge.distance
            if least > early[edge.sink]:
                early[edge.sink], changed = least, True
        if not changed:
            return early
    return None


def pipeline_loop(operations: Sequence[Operation], edges: Sequence[Edge],
                  slots: int = 8) -> Pipelined:
    """Return a loop pipelined by modulo scheduling.

    Parameters
    ----------
    edges
        What waits for what, within a trip and from one to a later.
    slots
        Operations of a bundle.

    Raises
    ------
    KernelError
        Without operations, or when edges of one trip run in a circle.
    """
    if not operations:
        raise KernelError("a loop has at least one operation")
    if _longest(len(operations), [edge for edge in edges if not edge.distance], 0) is None:
        raise KernelError("operations of a trip wait for each other in a circle")
    resource = max(bound_resources(operations), math.ceil(len(operations) / slots))
    recurrence = bound_recurrence(len(operations), edges)
    interval = max(resource, recurrence)
    while True:
        issue = _place_modulo(operations, edges, interval, slots)
        if issue is not None:
            return Pipelined(interval_cycles=interval, resource_cycles=resource,
                             recurrence_cycles=recurrence, issue_cycles=issue)
        interval += 1


def _place_modulo(operations: Sequence[Operation], edges: Sequence[Edge], interval: int,
                  slots: int) -> tuple[int, ...] | None:
    """Place operations one by one, the highest first; those in the way are placed again later."""
    early = _longest(len(operations), edges, interval)
    if early is None:
        return None
    heights = _longest(len(operations), [Edge(edge.sink, edge.source, edge.latency_cycles,
                                              edge.distance) for edge in edges], interval)
    assert heights is not None, "cycles are the same backwards"
    issue: dict[int, int] = {}
    last = [-1] * len(operations)
    for _ in range(_TRIES * len(operations) + len(operations)):
        left = [place for place in range(len(operations)) if place not in issue]
        if not left:
            least = min(issue.values()) // interval * interval
            return tuple(issue[place] - least for place in range(len(operations)))
        place = max(left, key=lambda one: (heights[one], -one))
        least = max([early[place], *(issue[edge.source] + edge.latency_cycles
                                     - interval * edge.distance for edge in edges
                                     if edge.sink == place and edge.source in issue)])
        chosen = next((cycle for cycle in range(least, least + interval)
                       if _fits(operations, issue, place, cycle, interval, slots)),
                      max(least, last[place] + 1))
        issue[place] = last[place] = chosen
        _evict(operations, edges, issue, place, interval, slots)
    return None


def _fits(operations: Sequence[Operation], issue: Mapping[int, int], place: int, cycle: int,
          interval: int, slots: int) -> bool:
    """Whether an operation finds a unit and a slot beside those placed."""
    taken: dict[tuple[str, int], int] = {}
    placed = {**issue, place: cycle}
    if sum(at % interval == cycle % interval for at in placed.values()) > slots:
        return False
    return all(hold(operations[one], placed[one], taken, interval) for one in sorted(
        placed, key=lambda one: (len(operations[one].units), one)))


def _evict(operations: Sequence[Operation], edges: Sequence[Edge], issue: dict[int, int],
           place: int, interval: int, slots: int) -> None:
    """Take back what an operation just placed leaves no room or no time for."""
    for edge in edges:
        if edge.source == place and edge.sink in issue and edge.sink != place and (
                issue[place] + edge.latency_cycles - interval * edge.distance > issue[edge.sink]):
            del issue[edge.sink]
    while not _fits(operations, {one: at for one, at in issue.items() if one != place}, place,
                    issue[place], interval, slots):
        rivals = [one for one in issue if one != place and (
            issue[one] - issue[place]) % interval < max(operations[place].busy_cycles, 1)]
        del issue[min(rivals or [one for one in issue if one != place])]
