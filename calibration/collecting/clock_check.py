"""The board's clock by the host's: is a megahertz a megahertz."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.session import Session
from hwmodels.frozen import frozen
from hwmodels.quantities import significant

SPIN_US, MOST_SPIN_US = 200_000, 4_000_000
"""Span of the first try, and of the longest: twenty seconds in all where the line is slow."""
EMPTY_TRIPS, SPUN_TRIPS = 9, 5
PAUSE_S = 3.7e-3
"""Trips begin so much later each: an adapter that answers by a timer would else answer in step with
the requests, and be off by up to a period without a sign of it."""
GOAL = 0.005
"""Relative error of a check that is good enough; at more a longer span is timed."""
REPLY_S = 5.0


@frozen
class ClockCheck:
    """The board's clock by the host's: claimed rate times `ratio` is the real one.

    Parameters
    ----------
    ratio, uncertainty
        The second is a standard deviation.
    latency_us
        By how much the round trips of the line differ; an adapter's latency timer is part of it.
    """

    ratio: float
    uncertainty: float
    latency_us: float = 0.0


def check_clock(session: Session) -> ClockCheck:
    """Time the board's clock by the host's, over a span long enough for `GOAL` where one is.

    Notes
    -----
    ratio = claimed span / host's span, the host's being the difference of two round trips, with
    and without the span, each the shortest of several. Its uncertainty is by how much the typical
    trip of either kind exceeds the shortest, over the span: a line whose answers wait for a timer
    of up to T us is off by as much as that in either trip.
    """
    empty = [_time_trip(session, 0, turn)[0] for turn in range(EMPTY_TRIPS)]
    latency_us, spin_us = (statistics.median(empty) - min(empty)) * 1e6, SPIN_US
    while True:
        trips = [_time_trip(session, spin_us, turn) for turn in range(SPUN_TRIPS)]
        spun = [span for span, _ in trips]
        claimed_us = trips[-1][1] or float(spin_us)
        jitter_us = latency_us + (statistics.median(spun) - min(spun)) * 1e6
        span_us = max((min(spun) - min(empty)) * 1e6, 1e-3)
        ratio, error = claimed_us / span_us, jitter_us / span_us
        if error <= GOAL or spin_us >= MOST_SPIN_US:
            return ClockCheck(ratio=ratio, uncertainty=ratio * error, latency_us=latency_us)
        spin_us = min(MOST_SPIN_US, max(2 * spin_us, round(1.2 * jitter_us / GOAL)))


def _time_trip(session: Session, spin_us: int, turn: int) -> tuple[float, float]:
    """Return a round trip in seconds, and the span in us the board claims it took."""
    time.sleep(turn * PAUSE_S)
    begin = time.perf_counter()
    reply = wire.BoardTime.parse(session.request(
        "TIME", spin_us.to_bytes(4, "little"), attempt_s=spin_us * 1e-6 * 4 + 1.0,
        timeout_s=spin_us * 1e-6 * 8 + REPLY_S))
    return time.perf_counter() - begin, reply.ticks / reply.hz * 1e6 if reply.hz else 0.0


def describe_latency(check: ClockCheck, port: str) -> str:
    """Say what the line leaves open of a clock check, and how to better it; "" where it is good."""
    error = check.uncertainty / check.ratio
    if error <= GOAL:
        return ""
    text = (f"the clock by the host's is known to {significant(100 * error, 2)} % only, the goal "
            f"is {100 * GOAL:g} %: round trips of {port} differ by {check.latency_us / 1e3:.2g} ms")
    timer = Path("/sys/bus/usb-serial/devices", Path(port).name, "latency_timer")
    return f"{text}; " + (f"echo 1 > {timer}, and measure again" if timer.exists() else
                          "set the adapter's latency timer to 1 ms, end other programs, and "
                          "measure again")
