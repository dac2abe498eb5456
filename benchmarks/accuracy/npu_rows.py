"""What NPU epochs are judged by: rows, verdicts, and the spread of errors."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

import numpy as np

from hwmodels.frozen import frozen
from hwmodels.schedule import Npu, Task, TaskRun
from hwmodels.schedule.launch import launch_tasks
from hwmodels.schedule.run import run_tasks


@frozen
class Row:
    """One figure of one epoch: published, predicted, and by the baseline where there is one."""

    epoch: str
    quantity: str
    published: float
    predicted: float
    baseline: float | None = None

    @property
    def error(self) -> float:
        """Signed relative error of the prediction."""
        return self.predicted / self.published - 1.0


@frozen
class Verdict:
    """A target and what was reached.

    Parameters
    ----------
    what, fitted : str
        What is judged, and what of it was fitted to what.
    n : int
        Rows.
    reached, target : str
        As printed.
    met : bool or None
        None: no target, only reported.
    """

    what: str
    n: int
    reached: str
    target: str
    met: bool | None
    fitted: str
    rows: tuple[Row, ...] = ()


def spread_of(errors: Iterable[float]) -> tuple[float, float]:
    """Median and 90th percentile of absolute errors."""
    sizes = [abs(error) for error in errors]
    return statistics.median(sizes), float(np.percentile(sizes, 90))


def run_task(task: Task, npu: Npu) -> TaskRun:
    """Run one task the host launches."""
    return run_tasks(launch_tasks([task], npu), npu)[0]
