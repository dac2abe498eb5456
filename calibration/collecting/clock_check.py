"""The board's clock by the host's: is a megahertz a megahertz."""

from __future__ import annotations

import time
from dataclasses import dataclass

from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.session import Session

SPIN_US = 200_000
REPLY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCheck:
    """The board's clock by the host's: claimed rate times `ratio` is the real one."""

    ratio: float
    uncertainty: float


def check_clock(session: Session, spin_us: int = SPIN_US) -> ClockCheck:
    """Time the board's clock by the host's.

    Notes
    -----
    ratio = claimed span / host's span, the host's being the difference of two round trips, with
    and without the span; each is the shortest of three, its uncertainty their spread.
    """
    trips: dict[int, list[float]] = {0: [], spin_us: []}
    claimed = float(spin_us)
    for spin in (0, spin_us) * 3:
        begin = time.perf_counter()
        reply = wire.BoardTime.parse(session.request(
            "TIME", spin.to_bytes(4, "little"), attempt_s=spin * 1e-6 * 4 + 1.0,
            timeout_s=spin * 1e-6 * 8 + REPLY_S))
        trips[spin].append(time.perf_counter() - begin)
        if spin and reply.hz:
            claimed = reply.ticks / reply.hz * 1e6
    span_us = (min(trips[spin_us]) - min(trips[0])) * 1e6
    jitter = sum(sorted(one)[1] - min(one) for one in trips.values()) * 1e6
    return ClockCheck(ratio=claimed / max(span_us, 1e-3), uncertainty=jitter / spin_us)
