"""Specification of the bus model tick by tick: what every wire does in every tick.

Plain loops over arrays, so that it reads as it runs and a benchmark may compile it. It takes the
arrays of `hwmodels.bus.bursts.Bursts` and skips nothing: each tick every port and every slave is
looked at. Of a port, `shown` is the next burst to issue, `asking` the next to be granted, `coming`
the next to be delivered, `journey` the ticks an issued burst has still to go to a bus edge,
`waits` the ticks others held its slave since, `lines` when its data lines became free.
Of a slave, `held` is the ticks its burst has still to go.
"""

from __future__ import annotations

import numpy as np

from hwmodels.bus.bursts import Bursts
from hwmodels.bus.interconnect import ARBITRATIONS

PERIOD, OUTSTANDING, PACING, FIRST, LAST = range(5)
THINK, TARGET, HELD, REPLY = range(4)
ISSUE, GRANT, FINISH, WAIT = range(4)


def tick_bus(bursts: Bursts, limit_ticks: int) -> np.ndarray:
    """Run merged bursts tick by tick.

    Parameters
    ----------
    bursts : Bursts
        What is asked.
    limit_ticks : int
        Where to give up.

    Returns
    -------
    ndarray of int64, (bursts, 4)
        Ticks of issue, grant, finish and wait; -1 where the limit came first.
    """
    times = np.full((len(bursts.bursts), 4), -1, dtype=np.int64)
    run_ticks(bursts.ports, bursts.bursts, bursts.transfer, bursts.banks, bursts.bus_period,
              ARBITRATIONS[bursts.interconnect.arbitration], limit_ticks, times)
    return times


def run_ticks(ports, bursts, transfer, slaves, bus_period,  # type: ignore[no-untyped-def]
              arbitration, limit_ticks, times):
    """Fill `times`; return the tick after the last reply, or the limit."""
    count = len(ports)
    shown, asking, coming = ports[:, FIRST].copy(), ports[:, FIRST].copy(), ports[:, FIRST].copy()
    journey, waits, lines = np.zeros((3, count), np.int64)
    held, holder = np.zeros(slaves, np.int64), np.full(slaves, -1, np.int64)
    ready = np.full(len(bursts), -1, np.int64)
    for now in range(limit_ticks):
        for port in range(count):
            coming[port] = deliver(ports, port, transfer, ready, times, lines, coming[port],
                                   asking[port], now)
            if shown[port] > asking[port]:
                journey[port] = max(0, journey[port] - 1)
            elif now % ports[port, PERIOD] == 0 and may_issue(
                    ports, port, bursts, shown[port], bus_period, times, now):
                times[shown[port], ISSUE] = now
                shown[port] += 1
                journey[port] = -now % bus_period
                waits[port] = 0
        for slave in range(slaves):
            if held[slave] or now % bus_period:
                continue
            port = choose(slave, holder[slave], arbitration, bursts, shown, asking, journey)
            if port >= 0:
                burst = asking[port]
                held[slave] = bursts[burst, HELD]
                holder[slave] = port
                times[burst, GRANT], times[burst, WAIT] = now, waits[port]
                ready[burst] = now + held[slave] + bursts[burst, REPLY]
                asking[port] += 1
        for port in range(count):
            if shown[port] > asking[port] and journey[port] == 0:
                slave = bursts[asking[port], TARGET]
                waits[port] += held[slave] > 0 and holder[slave] != port
        for slave in range(slaves):
            held[slave] = max(0, held[slave] - 1)
        if np.all(coming == ports[:, LAST]):
            return now + 1
    return limit_ticks


def deliver(ports, port, transfer, ready, times, lines, coming, asking, now):  # type: ignore[no-untyped-def]
    """Take the replies that are back, in order; return the next one to come."""
    while coming < asking and ready[coming] <= now:
        if ports[port, OUTSTANDING] > 1 and lines[port] + transfer[coming] > now:
            break
        lines[port] = now
        times[coming, FINISH] = now + -now % ports[port, PERIOD]
        coming += 1
    return coming


def may_issue(ports, port, bursts, burst, bus_period, times, now):  # type: ignore[no-untyped-def]
    """Whether nothing keeps a port from issuing its next burst in this tick."""
    first, origin = ports[port, FIRST], 0
    if burst == ports[port, LAST]:
        return False
    back = burst - ports[port, OUTSTANDING]
    if back >= first:
        if times[back, FINISH] < 0 or times[back, FINISH] > now:
            return False
        if ports[port, PACING] == 0:
            origin = times[back, FINISH]
    if (burst > first and ports[port, OUTSTANDING] > 1
            and now < times[burst - 1, GRANT] + bus_period):
        return False
    return now >= origin + bursts[burst, THINK]


def choose(slave, last, arbitration, bursts, shown, asking, journey):  # type: ignore[no-untyped-def]
    """Port a free slave grants in this tick; -1: none asks."""
    count = len(shown)
    chosen, best = -1, 0
    for port in range(count):
        if shown[port] == asking[port] or journey[port] or bursts[asking[port], TARGET] != slave:
            continue
        score = count - ((port - last - 1) % count if arbitration == 1 else port)
        if chosen < 0 or score > best:
            chosen, best = port, score
    return chosen
