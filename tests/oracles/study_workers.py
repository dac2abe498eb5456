"""A study on many workers, as three stations in a row: `benchmarks.studies.scaling`."""

from __future__ import annotations

import heapq

from hwmodels.frozen import frozen

WELL = 0.85
"""Share of linear from which a study is called scaling."""

TASKS = 50
"""Of each worker, in a simulation: fewer are all start and end."""


@frozen
class TaskCosts:
    """Seconds of tasks on a worker, and of each for the scheduler and for the client, in turn."""

    task_s: tuple[float, ...]
    send_s: float
    keep_s: float

    @property
    def mean_s(self) -> float:
        """Of a task on a worker."""
        return sum(self.task_s) / len(self.task_s)


def simulate_efficiency(costs: TaskCosts, workers: int) -> float:
    """Return the speed of a study, for each worker, over that of one alone.

    Three stations in a row: the scheduler sends tasks one by one, any free worker takes the next,
    the client keeps rows one by one. Ignores the network's width, workers that start late or are
    lost, and that a scheduler with more workers takes a little longer for each task.
    """
    free, ends, alone, kept_s = [0.0] * workers, list[float](), 0.0, 0.0
    for number in range(TASKS * workers):
        task_s = costs.task_s[number % len(costs.task_s)]
        alone += task_s
        ends.append(max((number + 1) * costs.send_s, free[0]) + task_s)
        heapq.heapreplace(free, ends[-1])
    for end in sorted(ends):
        kept_s = max(kept_s, end) + costs.keep_s
    return alone / (workers * kept_s)
