"""Processor time of a call, so that a busy machine says the same."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def median_cpu_s(run: Callable[[], object], times: int = 5) -> float:
    """Median processor time of a call."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return statistics.median(taken)
