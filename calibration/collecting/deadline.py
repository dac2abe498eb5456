"""Deadlines of a line: how long an answer is waited for before a board counts as silent.

deadline = Deadline(5.0)
while not deadline.passed:
data = link.read(deadline.left_s)
"""

from __future__ import annotations

import math
import os
import time

from calibration.errors import LinkError

PATIENCE = "TWIN_PATIENCE"
"""Environment variable: every deadline is this many times as long, for a machine under load."""


def patient(wait_s: float) -> float:
    """Return a wait in seconds, as many times as long as `TWIN_PATIENCE` says.

    Raises
    ------
    LinkError
        When the variable is not a number from 1 on.
    """
    text = os.environ.get(PATIENCE) or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor < math.inf:
        raise LinkError(f"{PATIENCE}={text!r}: accepted: a number from 1 on; deadlines are that "
                        "many times as long")
    return factor * wait_s


class Deadline:
    """A moment by the monotonic clock.

    Parameters
    ----------
    wait_s
        From now on, before `TWIN_PATIENCE`.
    """

    __slots__ = ("_end_s", "wait_s")

    def __init__(self, wait_s: float) -> None:
        self.wait_s = patient(wait_s)
        self._end_s = time.monotonic() + self.wait_s

    @property
    def left_s(self) -> float:
        """Time left, never negative."""
        return max(self._end_s - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        return time.monotonic() >= self._end_s
