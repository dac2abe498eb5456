"""How far a study scales: a simulation of many workers fed by one scheduler, read by one client.

Its figures are measured: how long tasks are, and what each takes of the scheduler and of the
client that keeps its rows, one after another.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from twin.errors import UsageError

TASKS = 50
"""Of each worker, in a simulation: fewer are all start and end."""

WELL = 0.85
"""Share of linear from which a study is said to scale."""

MOST_WORKERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCosts:
    """What tasks take.

    Parameters
    ----------
    task_s : tuple of float
        How long tasks were on a worker; a simulation takes them in turn.
    send_s : float
        What each takes of the scheduler, one after another: to send, to be told of its end.
    keep_s : float
        What each takes of the client, one after another: to read its rows and write them down.
    """

    task_s: tuple[float, ...]
    send_s: float
    keep_s: float

    @property
    def mean_s(self) -> float:
        """Of a task on a worker."""
        return sum(self.task_s) / len(self.task_s)

    @property
    def most_workers(self) -> float:
        """How many the slower of scheduler and client can keep at work: mean_s over its cost."""
        slowest_s = max(self.send_s, self.keep_s)
        return self.mean_s / slowest_s if slowest_s else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How a study goes on so many workers.

    Parameters
    ----------
    workers, tasks : int
        Of the simulation.
    seconds : float
        Until the last row is kept.
    efficiency : float
        Speed over that of a worker alone without scheduler and client, per worker.
    """

    workers: int
    tasks: int
    seconds: float
    efficiency: float


def simulate_workers(costs: TaskCosts, workers: int, tasks: int | None = None) -> Scaling:
    """Return how a study goes on so many workers.

    Parameters
    ----------
    costs : TaskCosts
        Measured.
    workers : int
        Of one thread each.
    tasks : int, optional
        By default `TASKS` for each worker.

    Raises
    ------
    UsageError
        For no worker, no task or a cost below zero.

    Notes
    -----
    Three stations in a row: the scheduler sends tasks one by one, any free worker takes the next,
    the client keeps rows one by one. Ignores the network's width, workers that start late or are
    lost, and that a scheduler with more workers takes a little longer for each task.
    """
    if not 1 <= workers <= MOST_WORKERS or (tasks is not None and tasks < 1):
        raise UsageError(f"{workers} workers, {tasks} tasks; accepted: 1 to {MOST_WORKERS:,} "
                         "workers, one task or more")
    if not costs.task_s or min(*costs.task_s, costs.send_s, costs.keep_s) < 0:
        raise UsageError("costs of tasks: accepted: one duration or more, none below 0")
    count = TASKS * workers if tasks is None else tasks
    free, ends, alone, sent_s = [0.0] * workers, list[float](), 0.0, 0.0
    for number in range(count):
        task_s = costs.task_s[number % len(costs.task_s)]
        alone, sent_s = alone + task_s, sent_s + costs.send_s
        end = max(sent_s, free[0]) + task_s
        heapq.heapreplace(free, end)
        ends.append(end)
    kept_s = 0.0
    for end in sorted(ends):
        kept_s = max(kept_s, end) + costs.keep_s
    return Scaling(workers=workers, tasks=count, seconds=kept_s,
                   efficiency=alone / (workers * kept_s) if kept_s else 1.0)


def find_most_workers(costs: TaskCosts, share: float = WELL, most: int = 4096) -> int:
    """Return the most workers, of `most`, that a study runs on at a share of linear speed.

    Parameters
    ----------
    costs : TaskCosts
        Measured.
    share : float
        Of linear, above 0 and below 1.
    most : int
        Where it stops looking.
    """
    if not 0 < share < 1:
        raise UsageError(f"share {share:g}; accepted: above 0 and below 1")
    low, high = 0, most + 1
    while high - low > max(1, low // 50):  # To 2 %: the simulation is no finer.
        middle = (low + high) // 2
        if simulate_workers(costs, middle).efficiency >= share:
            low = middle
        else:
            high = middle
    return low
