"""Compiled: bursts granted to the first or in turn, without pages and links between masters.

The rules are those of `hwmodels.bus.events`. Nothing in these loops hangs on what was drawn but
where it is read: a wrong guess of the processor costs as much as half a burst.
"""

import numpy as np

from hwmodels.kernels.compiled import Integer, Slaves, Table, Words, compile_inline

NEVER = 1 << 62
LATEST, RANKS = 1 << 55, 64
"""Time no grant reaches, and more than the ports a key of time and rank has room for."""
FIXED, ROUND_ROBIN, WEIGHTED, FIRST_COME = 0, 1, 2, 3
BY_FINISH, BY_ISSUE, BY_CLOCK = 0, 1, 2
ONE, SHORT = np.uint64(1), np.uint64(1 << 31)

PERIOD, OUTSTANDING, PACING, REQUEST, WEIGHT, FIRST, LAST = np.arange(7, dtype=np.uint64)
"""Columns of `ports`: ticks of a cycle, bursts in flight, pacing, ticks to the arbiter, weight,
and the range of the port's bursts."""

THINK, TARGET, SERVICE, DELAY = np.arange(4, dtype=np.uint64)
"""Columns of `bursts`: ticks of thinking, slave, ticks it is held, ticks the reply takes more."""

EDGE, FACTOR, SHIFT = np.arange(4, 7, dtype=np.uint64)
"""Further columns of `ahead`: an edge of the port's clock not behind its next reply, and what
`left_over` takes the period by."""

ISSUE, GRANT, FINISH, WAIT = np.arange(4, dtype=np.uint64)
"""Columns of `times`: WAIT is time from arrival to grant in which others held the slave."""


@compile_inline
def align(ticks: Integer, period: Integer) -> Integer:
    """Next edge of a clock, at or after a time."""
    if period == 1:
        return ticks
    over = np.int64(np.uint64(ticks) % np.uint64(period))
    return ticks + period - over if over else ticks


@compile_inline
def left_over(ticks: Integer, period: Integer, factor: Integer, shift: Integer) -> Integer:
    """Remainder of ticks by a period, by a product instead of a division where there are few.

    With factor = ceil(2^shift / period) and shift = 31 + ceil(log2 period) it is exact below 2^31
    (Granlund and Montgomery, Division by invariant integers using multiplication, PLDI 1994).
    """
    if np.uint64(ticks) < SHORT:
        return ticks - ((ticks * factor) >> shift) * period
    return np.int64(np.uint64(ticks) % np.uint64(period))


@compile_inline
def align_from(ticks: Integer, edge: Integer, period: Integer, factor: Integer,
               shift: Integer) -> Integer:
    """Next edge of a clock, at or after a time, from an edge at or before it."""
    if period == 1:
        return ticks
    over = left_over(ticks - edge, period, factor, shift)
    return ticks + ((period - over) & (-over >> 63))


@compile_inline
def invert(period: Integer) -> tuple[Integer, Integer]:
    """Factor and shift of `left_over`; a factor of 0 where all below 2^31 is below the period."""
    shift = 31
    while shift < 62 and 1 << (shift - 31) < period:
        shift += 1
    factor = ((1 << shift) + period - 1) // period
    return factor if 1 << (shift - 31) >= period else 0, shift


@compile_inline
def credit_of(burst: Integer, ports: Table, port: Integer, times: Table) -> Integer:
    """When the burst that has to finish before this one may be issued finished; 0: none has."""
    back = np.uint64(ports[port, OUTSTANDING])
    if burst < np.uint64(ports[port, FIRST]) + back:
        return 0
    return times[burst - back, FINISH]


@compile_inline
def choose_plainly(turns: Integer, arrival: Words, target: Slaves, free: Words,
                   turn: Words) -> tuple[Integer, Integer]:
    """Time of the next grant and the port it goes to, without a branch.

    Ports that wait for one slave have one start, when it is free: the least rank wins, which is
    how far a port stands behind the last granted, or its number where `turn` is always -1. The
    sign of a number is a mask here: a choice of two would become a branch.
    """
    best, now, chosen = NEVER, NEVER, 0
    for port in range(len(arrival)):
        slave: Integer = target[port]
        start = max(arrival[port], free[slave])
        behind = port - turn[slave]
        key = start * RANKS + behind + (((behind - 1) >> 63) & turns)
        sooner = key < best
        best = key if sooner else best
        now = start if sooner else now
        chosen = port if sooner else chosen
    return now, chosen


@compile_inline
def look_ahead(port: Integer, burst: Integer, ports: Table, bursts: Table, ahead: Table) -> None:
    """Keep at hand what a port's burst will hold, and the thinking before the one behind it."""
    behind = min(burst + ONE, np.uint64(ports[port, LAST]) - ONE)
    ahead[port, SERVICE], ahead[port, DELAY] = bursts[burst, SERVICE], bursts[burst, DELAY]
    ahead[port, THINK] = bursts[behind, THINK]


@compile_inline
def prepare(ports: Table, bursts: Table, in_turn: Integer, arrival: Words, at: Slaves, turn: Words,
            ahead: Table) -> None:
    """Make ready what the loops below begin with."""
    for place in range(len(arrival)):
        arrival[place] = min(arrival[place], LATEST)
    for place in range(len(turn)):
        turn[place] = turn[place] if in_turn else -1
    for place in range(len(ports)):
        factor, shift = invert(ports[place, PERIOD])
        ahead[place, EDGE], ahead[place, FACTOR], ahead[place, SHIFT] = 0, factor, shift
        if ports[place, FIRST] < ports[place, LAST]:
            look_ahead(np.uint64(place), at[place], ports, bursts, ahead)


@compile_inline
def grant_plainly(ports: Table, bursts: Table, bus_period: Integer, arbitration: Integer,
                  times: Table, busy: Words, arrival: Words, at: Slaves, target: Slaves,
                  free: Words, turn: Words, ahead: Table) -> Integer:
    """Grant bursts of ports with one in flight."""
    in_turn = arbitration == ROUND_ROBIN
    prepare(ports, bursts, in_turn, arrival, at, turn, ahead)
    bus_factor, bus_shift = invert(bus_period)
    granted = 0
    while True:
        now, number = choose_plainly(len(arrival), arrival, target, free, turn)
        if now >= LATEST:
            return granted
        port: Integer = np.uint64(number)
        slave: Integer = target[port]
        burst, period, pacing = at[port], ports[port, PERIOD], ports[port, PACING]
        held, think = ahead[port, SERVICE], ahead[port, THINK]
        free[slave] = now + held
        turn[slave] = number if in_turn else -1
        busy[slave] += held
        done = now + held + ahead[port, DELAY]
        finish = done
        if period > 1:
            finish = align_from(done, ahead[port, EDGE], period, ahead[port, FACTOR],
                                ahead[port, SHIFT])
            ahead[port, EDGE] = finish
        times[burst, GRANT], times[burst, FINISH] = now, finish
        times[burst, WAIT] = now - arrival[port]
        origin = finish if pacing == BY_FINISH else 0
        if pacing == BY_ISSUE:
            origin = times[burst, ISSUE]
        granted += 1
        burst += ONE
        at[port] = burst
        if burst == np.uint64(ports[port, LAST]):
            arrival[port] = LATEST
            continue
        issue = max(origin + think, finish)
        times[burst, ISSUE] = issue
        if pacing == BY_FINISH and bus_period > 1 and period <= bus_period:
            # All but finish and think are whole bus cycles: what is left of the two to an edge
            # needs no division of a time that another division gave.
            over = finish - done + left_over(think, bus_period, bus_factor, bus_shift)
            over -= bus_period & ~((over - bus_period) >> 63)
            arrival[port] = issue + ((bus_period - over) & (-over >> 63)) + ports[port, REQUEST]
        else:
            arrival[port] = align_from(issue, now, bus_period, bus_factor, bus_shift) + ports[
                port, REQUEST]
        target[port] = np.uint64(bursts[burst, TARGET])
        look_ahead(port, burst, ports, bursts, ahead)


@compile_inline
def grant_many(ports: Table, bursts: Table, transfer: Words, bus_period: Integer,
               arbitration: Integer, times: Table, busy: Words, arrival: Words, at: Slaves,
               target: Slaves, free: Words, turn: Words, delivered: Words, own: Table,
               ahead: Table) -> Integer:
    """Grant bursts of ports with any number in flight.

    Of a port with one in flight the reply before is over, and none of its own bursts is waited for.
    """
    in_turn = arbitration == ROUND_ROBIN
    prepare(ports, bursts, in_turn, arrival, at, turn, ahead)
    bus_factor, bus_shift = invert(bus_period)
    granted = 0
    while True:
        now, number = choose_plainly(len(arrival), arrival, target, free, turn)
        if now >= LATEST:
            return granted
        port: Integer = np.uint64(number)
        slave: Integer = target[port]
        burst, period, pacing = at[port], ports[port, PERIOD], ports[port, PACING]
        held, think, came = ahead[port, SERVICE], ahead[port, THINK], arrival[port]
        free[slave] = now + held
        turn[slave] = number if in_turn else -1
        busy[slave] += held
        done = max(now + held + ahead[port, DELAY], delivered[port] + transfer[burst])
        delivered[port] = done
        finish = done
        if period > 1:
            finish = align_from(done, ahead[port, EDGE], period, ahead[port, FACTOR],
                                ahead[port, SHIFT])
            ahead[port, EDGE] = finish - period
        times[burst, GRANT], times[burst, FINISH] = now, finish
        times[burst, WAIT] = now - came - max(0, min(own[slave, port], now) - came)
        own[slave, port] = now + held
        granted += 1
        burst += ONE
        at[port] = burst
        if burst == np.uint64(ports[port, LAST]):
            arrival[port] = LATEST
            continue
        credit = credit_of(burst, ports, number, times)
        origin = credit if pacing == BY_FINISH else 0
        if pacing == BY_ISSUE:
            origin = times[burst - ONE, ISSUE]
        issue = max(max(origin + think, credit), now + bus_period)
        if period > 1:
            issue = align_from(issue, times[burst - ONE, ISSUE], period, ahead[port, FACTOR],
                               ahead[port, SHIFT])
        times[burst, ISSUE] = issue
        arrival[port] = align_from(issue, now, bus_period, bus_factor, bus_shift) + ports[
            port, REQUEST]
        target[port] = np.uint64(bursts[burst, TARGET])
        look_ahead(port, burst, ports, bursts, ahead)
