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
    BY_ISSUE,
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
    REQUEST,
    ROUND_ROBIN,
    SERVICE,
    SLAVE_BITS,
    TARGET,
    THINK,
    WAIT,
    WEIGHT,
    WEIGHTED,
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
            after: Words, credit: Integer, times: Table) -> Integer:
    """Arrival of a burst at its arbiter; -1 - b when it has to wait for burst b first."""
    period, pacing = ports[port, PERIOD], ports[port, PACING]
    ready = bursts[burst, THINK]
    if pacing == BY_FINISH:
        ready += credit
    elif pacing == BY_ISSUE and burst > np.uint64(ports[port, FIRST]):
        ready += times[burst - ONE, ISSUE]
    ready = max(ready, credit)
    if ports[port, OUTSTANDING] > 1 and burst > np.uint64(ports[port, FIRST]):
        ready = max(ready, times[burst - ONE, GRANT] + bus_period)
    if len(after):
        other = after[burst]
        if other >= 0:
            done = times[np.uint64(other), FINISH]
            if done < 0:
                return -1 - other
            ready = max(ready, done)
    issue = align(ready, period)
    times[burst, ISSUE] = issue
    return align(issue, bus_period) + ports[port, REQUEST]


@compile_inline
def weigh(slave: Integer, now: Integer, first: Integer, ports: Table, arrival: Words,
          target: Slaves, credits: Table) -> Integer:
    """Port with the most credit of its weight among those waiting for a slave."""
    total, most, chosen = 0, -NEVER, first
    for port in range(len(arrival)):
        if target[port] == slave and arrival[port] <= now:
            weight = ports[port, WEIGHT]
            total += weight
            credits[slave, port] += weight
            if credits[slave, port] > most:
                most, chosen = credits[slave, port], port
    credits[slave, chosen] -= total
    return chosen


@compile_inline
def arbitrate(slave: Integer, now: Integer, arbitration: Integer, first: Integer, ports: Table,
              arrival: Words, target: Slaves, turn: Words, credits: Table) -> Integer:
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
    if arbitration == WEIGHTED:
        return weigh(slave, now, first, ports, arrival, target, credits)
    return first


@compile_inline
def begin(ports: Table, bus_period: Integer, bursts: Table, after: Words, times: Table, at: Slaves,
          target: Slaves, waits_for: Words, arrival: Words) -> None:
    """Present the first burst of every port."""
    for port in range(len(ports)):
        at[port] = ports[port, FIRST]
        if ports[port, FIRST] < ports[port, LAST]:
            came = present(at[port], ports, port, bus_period, bursts, after, 0, times)
            target[port] = bursts[at[port], TARGET]
            waits_for[port] = -1 - came
            arrival[port] = came if came >= 0 else NEVER


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
def wake(burst: Integer, ports: Table, bus_period: Integer, bursts: Table, after: Words,
         times: Table, at: Slaves, waits_for: Words, arrival: Words) -> bool:
    """Present the bursts that waited for a burst, now that it is granted; whether there are any."""
    woken = False
    for other in range(len(ports)):
        if waits_for[other] == np.int64(burst):
            waits_for[other] = -1
            credit = credit_of(at[other], ports, other, times)
            arrival[other] = present(at[other], ports, other, bus_period, bursts, after, credit,
                                     times)
            woken = True
    return woken


@compile_inline
def open_page(slave: Integer, page: Integer, page_ticks: Words, opened: Words) -> Integer:
    """Open a page where it is another than the last; ticks that takes."""
    if page < 0 or opened[slave] == page:
        return 0
    opened[slave] = page
    return page_ticks[slave]


@compile_inline
def deliver(port: Integer, done: Integer, ticks: Integer, delivered: Words) -> Integer:
    """Bring a reply over its port's own data lines, behind the one before; when it is there."""
    delivered[port] = max(done, delivered[port] + ticks)
    return delivered[port]


@compile_inline
def grant_any(ports: Table, bursts: Table, transfer: Words, pages: Words, page_ticks: Words,
              after: Words, bus_period: Integer, arbitration: Integer, times: Table, busy: Words,
              arrival: Words, waits_for: Words, at: Slaves, target: Slaves, free: Words,
              turn: Words, opened: Words, delivered: Words, credits: Table,
              own: Table) -> Integer:
    """Grant bursts of any ports, by any arbitration."""
    granted = 0
    while True:
        now, rest, port = find_grant(arrival, free, target)
        if now == NEVER:
            return granted
        slave: Integer = target[port]
        if rest == now:
            port = arbitrate(slave, now, arbitration, port, ports, arrival, target, turn, credits)
        burst, came = at[port], arrival[port]
        last, many = np.uint64(ports[port, LAST]), ports[port, OUTSTANDING] > 1
        while True:
            held = bursts[burst, SERVICE]
            if len(pages):
                held += open_page(slave, pages[burst], page_ticks, opened)
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
            if len(after) and wake(burst, ports, bus_period, bursts, after, times, at, waits_for,
                                   arrival):
                rest = 0
            burst += ONE
            arrival[port], at[port] = NEVER, burst
            if burst == last:
                break
            credit = credit_of(burst, ports, port, times) if many else finish
            came = present(burst, ports, port, bus_period, bursts, after, credit, times)
            slave = np.uint64(bursts[burst, TARGET])
            now = max(came, free[slave])
            if came < 0 or now >= rest:
                target[port] = slave
                waits_for[port] = -1 - came
                arrival[port] = came if came >= 0 else NEVER
                break


@compile_kept
def grant_bursts(ports: Table, bursts: Table, transfer: Words, pages: Words, page_ticks: Words,
                 after: Words, bus_period: Integer, arbitration: Integer, times: Table, busy: Words,
                 arrival: Words, waits_for: Words, at: Slaves, target: Slaves, free: Words,
                 turn: Words, opened: Words, delivered: Words, credits: Table,
                 own: Table) -> Integer:
    """Grant bursts until none can be granted; `run_bursts` says what all this is."""
    begin(ports, bus_period, bursts, after, times, at, target, waits_for, arrival)
    return grant_any(ports, bursts, transfer, pages, page_ticks, after, bus_period, arbitration,
                     times, busy, arrival, waits_for, at, target, free, turn, opened, delivered,
                     credits, own)


def run_bursts(ports: Table, bursts: Table, transfer: Words, pages: Words, page_ticks: Words,
               after: Words, bus_period: int, arbitration: int, times: Table,
               busy: Words) -> int:
    """Run every burst.

    Parameters
    ----------
    ports : ndarray of int64, (ports, 7)
        In the order of fixed priority.
    bursts : ndarray of int64, (bursts, 4)
        Port by port, each port's in its order.
    transfer : ndarray of int64, (bursts,)
        Ticks the data of a burst takes on its port's own data lines.
    pages, after : ndarray of int64, (bursts,) or (0,)
        Page a burst opens, -1 none; burst it has to wait for, -1 none.
    page_ticks : ndarray of int64, (slaves,)
        What opening another page adds.
    bus_period : int
        Ticks of a bus cycle.
    arbitration : int
        FIXED, ROUND_ROBIN, WEIGHTED or FIRST_COME.
    times : ndarray of int64, (bursts, 4)
        Filled; -1 on entry where bursts wait for bursts.
    busy : ndarray of int64, (slaves,)
        Added to: ticks each slave was held.

    Returns
    -------
    int
        Bursts granted; fewer than all when the rest wait for each other.
    """
    count, slaves = len(ports), len(busy)
    if (arbitration in (FIXED, ROUND_ROBIN) and not len(after) and not len(pages)
            and 1 < count < RANKS):
        many = int((ports[:, OUTSTANDING] > 1).any())
        records = (count << PORT_BITS) + (slaves << SLAVE_BITS)
        state = np.zeros(records + (count + slaves << PORT_BITS), np.int64)
        return int(grant_plainly(
            ports, bursts.reshape(-1), transfer, bus_period, int(arbitration == ROUND_ROBIN),
            times.reshape(-1), busy, state, many))
    arrival = np.full(count, NEVER, np.int64)
    waits_for = np.full(count, -1, np.int64)
    at, target = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    free, turn = np.zeros(slaves, np.int64), np.full(slaves, count - 1, np.int64)
    opened, delivered = np.full(slaves, -1, np.int64), np.zeros(count, np.int64)
    credits, own = np.zeros((slaves, count), np.int64), np.zeros((slaves, count), np.int64)
    granted: int = grant_bursts(
        ports, bursts, transfer, pages, page_ticks, after, bus_period, arbitration, times, busy,
        arrival, waits_for, at, target, free, turn, opened, delivered, credits, own)
    return granted
