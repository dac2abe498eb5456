"""How long a test waits for what should come, and a clock that only goes when told."""

from __future__ import annotations

HANG_S = 600.0
"""Longest wait for anything: it says that something hangs, never that a machine is slow."""


class MadeClock:
    """Stands in for `time`: sleeping takes none, and is added up."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Seconds slept or added so far."""
        return self.now_s

    perf_counter = monotonic

    def sleep(self, wait_s: float) -> None:
        """Go on by that much."""
        self.now_s += wait_s
        self.slept.append(wait_s)
