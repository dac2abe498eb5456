"""Compiled: bursts of several masters through arbitrated slaves, from grant to grant.

Times are int64 ticks that divide every clock's period. `hwmodels.bus.events` states the rules; the
kernel rests on three of them: a port presents one burst at a time, a granted burst is never
interrupted, and a grant causes new requests only later than itself. So the next grant is at the
least over the ports of max(arrival, slave free), and a port that could be granted again before
any other port could start need not look at the others at all.

Indices are uint64: a signed index costs a test for negatives, three times the whole loop.
"""

import numpy as np

from hwmodels.kernels.bus_plain import (
    BY_FINISH,
    DELAY,
    FINISH,
    FIRST,
    FIRST_COME,
    FIXED,
    GRANT,
    ISSUE,
    LAST,
    NEVER,
    ONE,
    OUTSTANDING,
    PACING,
    PERIOD,
    PORT_BITS,
    RANKS,
    ROUND_ROBIN,
    SERVICE,
    SLAVE_BITS,
    TARGET,
    THINK,
    WAIT,
    align,
    grant_plainly,
)
from hwmodels.kernels.compiled import (
    Integer,
    Slaves,
    Table,
    Words,
    compile_inline,
    compile_kept,
)


@compile_inline
def credit_of(burst: Integer, ports: Table, port: Integer, times: Table) -> Integer:
    """When the burst that has to finish before this one may be issued finished; 0: none has."""
    back = np.uint64(ports[port, OUTSTANDING])
    if burst < np.uint64(ports[port, FIRST]) + back:
        return 0
    return times[burst - back, FINISH]


@compile_inline
def present(burst: Integer, ports: Table, port: Integer, bus_period: Integer, bursts: Table,
            credit: Integer, times: Table) -> Integer:
    """Arrival of a burst at its arbiter."""
    ready = bursts[burst, THINK]
    if ports[port, PACING] == BY_FINISH:
        ready += credit
    ready = max(ready, credit)
    if ports[port, OUTSTANDING] > 1 and burst > np.uint64(ports[port, FIRST]):
        ready = max(ready, times[burst - ONE, GRANT] + bus_period)
    issue = align(ready, ports[port, PERIOD])
    times[burst, ISSUE] = issue
    return align(issue, bus_period)


@compile_inline
def arbitrate(slave: Integer, now: Integer, arbitration: Integer, first: Integer, arrival: Words,
              target: Slaves, turn: Words) -> Integer:
    """Port granted among those waiting for a slave; `first` is the lowest of them."""
    count = len(arrival)
    if arbitration == ROUND_ROBIN:
        port: Integer = turn[slave]
        while True:
            port = port + 1 if port + 1 < count else 0
            if target[port] == slave and arrival[port] <= now:
                return port
    if arbitration == FIRST_COME:
        chosen = first
        for port in range(first + 1, count):
            if target[port] == slave and arrival[port] < arrival[chosen]:
                chosen = port
        return chosen
    return first


@compile_inline
def begin(ports: Table, bus_period: Integer, bursts: Table, times: Table, at: Slaves,
          target: Slaves, arrival: Words) -> None:
    """Present the first burst of every port."""
    for port in range(len(ports)):
        at[port] = ports[port, FIRST]
        if ports[port, FIRST] < ports[port, LAST]:
            arrival[port] = present(at[port], ports, port, bus_period, bursts, 0, times)
            target[port] = bursts[at[port], TARGET]


@compile_inline
def find_grant(arrival: Words, free: Words, target: Slaves) -> tuple[Integer, Integer, Integer]:
    """Time of the next grant, the earliest of the ports behind it, and the port it goes to."""
    now, rest, port = NEVER, NEVER, 0
    for other in range(len(arrival)):
        start = max(arrival[other], free[target[other]])
        if start < now:
            now, rest, port = start, now, other
        elif start < rest:
            rest = start
    return now, rest, port


@compile_inline
def deliver(port: Integer, done: Integer, ticks: Integer, delivered: Words) -> Integer:
    """Bring a reply over its port's own data lines, behind the one before; when it is there."""
    delivered[port] = max(done, delivered[port] + ticks)
    return delivered[port]


@compile_inline
def grant_any(ports: Table, bursts: Table, transfer: Words, bus_period: Integer,
              arbitration: Integer, times: Table, busy: Words, arrival: Words, at: Slaves,
              target: Slaves, free: Words, turn: Words, delivered: Words, own: Table) -> Integer:
    """Grant bursts of any ports, by any arbitration."""
    granted = 0
    while True:
        now, rest, port = find_grant(arrival, free, target)
        if now == NEVER:
            return granted
        slave: Integer = target[port]
        if rest == now:
            port = arbitrate(slave, now, arbitration, port, arrival, target, turn)
        burst, came = at[port], arrival[port]
        last, many = np.uint64(ports[port, LAST]), ports[port, OUTSTANDING] > 1
        while True:
            held = bursts[burst, SERVICE]
            free[slave] = now + held
            turn[slave] = port
            busy[slave] += held
            done, wait = now + held + bursts[burst, DELAY], now - came
            if many:
                done = deliver(port, done, transfer[burst], delivered)
                wait -= max(0, min(own[slave, port], now) - came)
                own[slave, port] = now + held
            finish = align(done, ports[port, PERIOD])
            times[burst, GRANT], times[burst, FINISH], times[burst, WAIT] = now, finish, wait
            granted += 1
            burst += ONE
            arrival[port], at[port] = NEVER, burst
            if burst == last:
                break
            credit = credit_of(burst, ports, port, times) if many else finish
            came = present(burst, ports, port, bus_period, bursts, credit, times)
            slave = np.uint64(bursts[burst, TARGET])
            now = max(came, free[slave])
            if now >= rest:
                target[port], arrival[port] = slave, came
                break


@compile_kept
def grant_bursts(ports: Table, bursts: Table, transfer: Words, bus_period: Integer,
                 arbitration: Integer, times: Table, busy: Words, arrival: Words, at: Slaves,
                 target: Slaves, free: Words, turn: Words, delivered: Words,
                 own: Table) -> Integer:
    """Grant bursts until all are; `run_bursts` says what all this is."""
    begin(ports, bus_period, bursts, times, at, target, arrival)
    return grant_any(ports, bursts, transfer, bus_period, arbitration, times, busy, arrival, at,
                     target, free, turn, delivered, own)


def run_bursts(ports: Table, bursts: Table, transfer: Words, bus_period: int, arbitration: int,
               times: Table, busy: Words) -> None:
    """Run every burst.

    Parameters
    ----------
    ports : ndarray of int64, (ports, 5)
        In the order of fixed priority.
    bursts : ndarray of int64, (bursts, 4)
        Port by port, each port's in its order.
    transfer : ndarray of int64, (bursts,)
        Ticks the data of a burst takes on its port's own data lines.
    bus_period : int
        Ticks of a bus cycle.
    arbitration : int
        FIXED, ROUND_ROBIN or FIRST_COME.
    times : ndarray of int64, (bursts, 4)
        Filled.
    busy : ndarray of int64, (slaves,)
        Added to: ticks each slave was held.
    """
    count, slaves = len(ports), len(busy)
    if arbitration in (FIXED, ROUND_ROBIN) and 1 < count < RANKS:
        many = int((ports[:, OUTSTANDING] > 1).any())
        records = (count << PORT_BITS) + (slaves << SLAVE_BITS)
        state = np.zeros(records + (count + slaves << PORT_BITS), np.int64)
        grant_plainly(ports, bursts.reshape(-1), transfer, bus_period,
                      int(arbitration == ROUND_ROBIN), times.reshape(-1), busy, state, many)
        return
    arrival = np.full(count, NEVER, np.int64)
    at, target = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    free, turn = np.zeros(slaves, np.int64), np.full(slaves, count - 1, np.int64)
    delivered, own = np.zeros(count, np.int64), np.zeros((slaves, count), np.int64)
    grant_bursts(ports, bursts, transfer, bus_period, arbitration, times, busy, arrival, at,
                 target, free, turn, delivered, own)
