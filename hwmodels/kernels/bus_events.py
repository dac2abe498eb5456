"""Compiled: bursts of several masters through arbitrated slaves, from grant to grant.

Times are int64 ticks that divide every clock's period. `hwmodels.bus.events` states the rules; the
kernel rests on three of them: a port presents one burst at a time, a granted burst is never
interrupted, and a grant causes new requests only later than itself. So the next grant is at the
least over the ports of max(arrival, slave free). Indices are uint64: a signed index costs a test
for negatives.
"""

import numpy as np

from hwmodels.kernels.compiled import Integer, Table, Words, compile_kept, compile_part

NEVER, LATER = 1 << 56, 1 << 62
"""Arrival of a port that asks nothing more; above every key."""
BY_FINISH = 0
ONE = np.uint64(1)

PERIOD, OUTSTANDING, PACING, FIRST, LAST = range(5)
"""Columns of `ports`: ticks of a cycle, bursts in flight, pacing, and the range of the port's
bursts."""

THINK, TARGET, SERVICE, DELAY = range(4)
"""Columns of `bursts`: ticks of thinking, slave, ticks it is held, ticks the reply takes more."""

ISSUE, GRANT, FINISH, WAIT = range(4)
"""Columns of `times`: WAIT is time from arrival to grant in which others held the slave."""


@compile_part
def align(ticks: Integer, period: Integer) -> Integer:
    """Next edge of a clock, at or after a time."""
    if period == 1:
        return ticks
    over = np.int64(np.uint64(ticks) % np.uint64(period))
    return ticks + period - over if over else ticks


@compile_part
def present(port: Integer, row: Integer, after: Integer, ports: Table, bursts: Table,
            bus_period: Integer, times: Table, arrivals: Words, slaves: Words) -> None:
    """Issue a port's burst of a row, not before a time, and note when it arrives at its slave."""
    if row == np.uint64(ports[port, LAST]):
        arrivals[port] = NEVER
        return
    credit, flying = 0, np.uint64(ports[port, OUTSTANDING])
    if row >= np.uint64(ports[port, FIRST]) + flying:
        credit = times[row - flying, FINISH]
    origin = credit if ports[port, PACING] == BY_FINISH else 0
    issue = max(origin + bursts[row, THINK], credit)
    if flying > ONE:  # Else the burst before is over, later than it was granted.
        issue = max(issue, align(after, ports[port, PERIOD]))
    times[row, ISSUE] = issue
    arrivals[port], slaves[port] = align(issue, bus_period), bursts[row, TARGET]


@compile_part
def find_next(in_turn: Integer, arrivals: Words, slaves: Words, free: Words,
              granted: Words) -> Integer:
    """Port that is granted next.

    Ports that wait for one slave have one start, when it is free: the least rank wins. Which of
    two slaves comes first makes no difference.
    """
    least = LATER
    chosen: Integer = np.uint64(0)
    count = np.int64(len(arrivals))
    for port in range(np.uint64(len(arrivals))):
        slave = np.uint64(slaves[port])
        rank = np.int64(port)
        if in_turn:
            rank -= granted[slave] + 1
            rank += count & (rank >> 63)
        key = max(arrivals[port], free[slave]) * count + rank
        sooner = key < least
        least = key if sooner else least
        chosen = port if sooner else chosen
    return chosen


@compile_kept
def grant_bursts(ports: Table, bursts: Table, transfer: Words, bus_period: Integer,
                 in_turn: Integer, times: Table, busy: Words, arrivals: Words, slaves: Words,
                 rows: Words, delivered: Words, free: Words, granted: Words,
                 own: Table) -> None:
    """Grant bursts until all are; `run_bursts` says what all this is.

    Of ports `arrivals` and `slaves` say when and where the next burst arrives, `rows` which it is,
    `delivered` when the data of the reply before were there. Of slaves `free` says from when on
    they are, `granted` to whom last, `own` until when each port held them.
    """
    for port in range(np.uint64(len(ports))):
        rows[port] = ports[port, FIRST]
        present(port, np.uint64(rows[port]), 0, ports, bursts, bus_period, times, arrivals, slaves)
    for _ in range(len(bursts)):
        port = find_next(in_turn, arrivals, slaves, free, granted)
        slave, row, came = np.uint64(slaves[port]), np.uint64(rows[port]), arrivals[port]
        now = max(came, free[slave])
        end = now + bursts[row, SERVICE]
        # A master's own earlier bursts are not waited for, and replies come in order.
        times[row, WAIT] = now - came - max(0, min(own[slave, port], now) - came)
        done = max(end + bursts[row, DELAY], delivered[port] + transfer[row])
        times[row, GRANT], times[row, FINISH] = now, align(done, ports[port, PERIOD])
        delivered[port], free[slave], own[slave, port] = done, end, end
        granted[slave] = np.int64(port)
        busy[slave] += bursts[row, SERVICE]
        rows[port] += 1
        present(port, row + ONE, now + bus_period, ports, bursts, bus_period, times, arrivals,
                slaves)


def run_bursts(ports: Table, bursts: Table, transfer: Words, bus_period: int, in_turn: int,
               times: Table, busy: Words) -> None:
    """Run every burst.

    Parameters
    ----------
    ports : ndarray of int64, (ports, 5)
        In the order of fixed priority; at most `hwmodels.bus.interconnect.MAX_MASTERS`.
    bursts : ndarray of int64, (bursts, 4)
        Port by port, each port's in its order.
    transfer : ndarray of int64, (bursts,)
        Ticks the data of a burst takes on its port's own data lines.
    bus_period : int
        Ticks of a bus cycle.
    in_turn : int
        1: who was last granted at a slave comes last there; 0: the first port comes first.
    times : ndarray of int64, (bursts, 4)
        Filled.
    busy : ndarray of int64, (slaves,)
        Added to: ticks each slave was held.
    """
    masters, slaves = len(ports), len(busy)
    arrivals, targets, rows, delivered = np.zeros((4, masters), np.int64)
    grant_bursts(ports, bursts, transfer, bus_period, in_turn, times, busy, arrivals, targets,
                 rows, delivered, np.zeros(slaves, np.int64),
                 np.full(slaves, masters - 1), np.zeros((slaves, masters), np.int64))
