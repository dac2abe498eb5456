"""One row of the table of speeds: this, its peer in the same run, what is aimed at."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from hwmodels.frozen import frozen


@frozen
class Row:
    """A figure of ours beside one of a peer.

    Parameters
    ----------
    name : str
        What is timed; `--against` finds it by this.
    figure : float
        Ours, in `unit`.
    unit : str
        "s", "ms": less is better. "M/s": more is.
    peer : str
        What does the same, timed in the same run; "" for none.
    theirs : float, optional
        Its figure in `unit`; None where it is not installed.
    limit : float, optional
        Of our figure.
    ratio_limit : float, optional
        Of the ratio: of ours over theirs in seconds, theirs over ours where more is better.
    events : mapping of str to int
        What was counted: equal in every run, so that speed never changes a result.
    """

    name: str
    figure: float
    unit: str
    peer: str = ""
    theirs: float | None = None
    limit: float | None = None
    ratio_limit: float | None = None
    events: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.unit.endswith("/s")

    @property
    def ratio(self) -> float | None:
        """How many times theirs ours is."""
        return None if self.theirs is None else self.figure / self.theirs

    @property
    def target(self) -> str:
        """What is aimed at, in words."""
        sign = ">=" if self.is_rate else "<="
        parts = [f"{sign} {self.limit:g} {self.unit}"] if self.limit is not None else []
        parts += [f"{sign} {self.ratio_limit:g} x"] if self.ratio_limit is not None else []
        return ", ".join(parts)

    @property
    def met(self) -> bool | None:
        """Whether all that is aimed at is met; None where nothing is, or the peer is missing."""
        pairs = [(self.figure, self.limit), (self.ratio, self.ratio_limit)]
        asked = [(found, limit) for found, limit in pairs if limit is not None]
        if not asked or any(found is None for found, _ in asked):
            return None
        return all(found >= limit if self.is_rate else found <= limit
                   for found, limit in asked if found is not None)


def process_s(command: Sequence[str], **environment: str) -> float:
    """Processor time of a command, its children included; bytecode is kept."""
    inherited = {name: value for name, value in os.environ.items()
                 if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run(command, check=True, capture_output=True, env=inherited | environment)
    after = os.times()
    return (after.children_user - before.children_user
            + after.children_system - before.children_system)


def median_processes_s(runs: Mapping[str, Callable[[], float]], times: int) -> dict[str, float]:
    """Medians of several processes' times, run in turn, so that all meet the same machine."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            taken[name].append(run())
    return {name: statistics.median(found) for name, found in taken.items()}


def median_cpu_s(run: Callable[[], object], times: int = 5) -> float:
    """Median processor time of a call."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return statistics.median(taken)
