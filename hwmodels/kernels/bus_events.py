"""Compiled: bursts of several masters through arbitrated slaves, from grant to grant.

Times are int64 ticks that divide every clock's period. `hwmodels.bus.events` states the rules; the
kernel rests on three of them: a port presents one burst at a time, a granted burst is never
interrupted, and a grant causes new requests only later than itself. So the next grant is at the
least over the ports of max(arrival, slave free).

Hardly anything in the loop hangs on what was drawn but where it is read: a wrong guess of the
processor costs as much as half a burst. What the loop knows stands in one array, a record for each
port and each slave: one address leads to all of it. Indices are uint64: a signed index costs a
test for negatives, three times the whole loop.
"""

import numpy as np

from hwmodels.kernels.compiled import Integer, Table, Words, compile_inline, compile_kept, likely

NEVER = 1 << 62
BY_FINISH = 0

PERIOD, OUTSTANDING, PACING, FIRST, LAST = np.arange(5, dtype=np.uint64)
"""Columns of `ports`: ticks of a cycle, bursts in flight, pacing, and the range of the port's
bursts."""

THINK, TARGET, SERVICE, DELAY = np.arange(4, dtype=np.uint64)
"""Columns of `bursts`: ticks of thinking, slave, ticks it is held, ticks the reply takes more."""

ISSUE, GRANT, FINISH, WAIT = np.arange(4, dtype=np.uint64)
"""Columns of `times`: WAIT is time from arrival to grant in which others held the slave."""

BURST = np.uint64(4)
"""Words of a row of `bursts` and of `times`."""

(ARRIVAL, SLAVE, CLOCK, PACE, AT, END, HELD, DELIVERED, PAID, BACK) = np.arange(10, dtype=np.uint64)
"""Words of a port's record: when its burst arrives, as a key, and the slave's record; ticks of a
cycle; pacing; rows of the burst and of the end of all; ticks the burst holds its slave; when the
reply before was there; the first row that waits for a reply, and how far before it that one is."""
FREE, TURN, BUSY, OWN = np.arange(4, dtype=np.uint64)
"""Words of a slave's record: when it is free, as a key; where the ranks of who is next there stand;
ticks it was held; where it stands until when each port held it."""
PORT_BITS, SLAVE_BITS = 4, 2
"""Room of a record, and of what a record keeps of each port, as powers of two."""


@compile_inline
def align(ticks: Integer, period: Integer) -> Integer:
    """Next edge of a clock, at or after a time."""
    if period == 1:
        return ticks
    over = np.int64(np.uint64(ticks) % np.uint64(period))
    return ticks + period - over if over else ticks


@compile_inline
def find_least(count: Integer, state: Words) -> Integer:
    """Key of the next grant: when, how far from its turn, and the port, without a branch.

    Ports that wait for one slave have one start, when it is free: the least rank wins. Which of
    two slaves comes first makes no difference.
    """
    least = NEVER
    for port in range(count):
        row: Integer = np.uint64(port << PORT_BITS)
        slave: Integer = np.uint64(state[row + SLAVE])
        key = max(state[row + ARRIVAL], state[slave + FREE])
        key += state[np.uint64(state[slave + TURN] + port)]
        least = min(least, key)
    return least


@compile_inline
def lay_out(ports: Table, bursts: Words, bus_period: Integer, in_turn: Integer, times: Words,
            slaves: Integer, state: Words) -> Integer:
    """Write the records the loop begins with; how many bits of a key are below its time."""
    count, bits = len(ports), 1
    while 1 << bits < count:
        bits += 1
    scale = 2 * bits + PORT_BITS
    of_slaves = count << PORT_BITS
    ranks = of_slaves + (slaves << SLAVE_BITS)
    for number in range(slaves):
        slave: Integer = np.uint64(of_slaves + (number << SLAVE_BITS))
        state[slave + TURN] = ranks + ((count - 1) << PORT_BITS)
        state[slave + OWN] = ranks + (count + number << PORT_BITS)
    for port in range(count):
        row: Integer = np.uint64(port << PORT_BITS)
        for last in range(count):
            behind = port - last - 1
            rank = behind + (count & (behind >> 63)) if in_turn else port
            place = np.uint64(ranks + (last << PORT_BITS) + port)
            state[place] = (rank << bits | port) << PORT_BITS
        period, first = ports[port, PERIOD], np.uint64(ports[port, FIRST]) * BURST
        state[row + CLOCK] = period
        state[row + PACE], state[row + BACK] = ports[port, PACING], ports[port, OUTSTANDING] * 4
        state[row + AT], state[row + END] = first, ports[port, LAST] * 4
        state[row + PAID] = ports[port, FIRST] * 4 + state[row + BACK]
        state[row + ARRIVAL], state[row + SLAVE] = NEVER, of_slaves
        if ports[port, FIRST] < ports[port, LAST]:
            issue = align(bursts[first + THINK], period)
            times[first + ISSUE] = issue
            state[row + ARRIVAL] = align(issue, bus_period) << scale
            state[row + SLAVE] = of_slaves + (bursts[first + TARGET] << SLAVE_BITS)
            state[row + HELD] = bursts[first + SERVICE]
    return bits


@compile_inline
def reply(row: Integer, slave: Integer, at: Integer, came: Integer, now: Integer, end: Integer,
          bursts: Words, transfer: Words, state: Words, many: Integer) -> tuple[Integer, Integer]:
    """When a burst's reply is there, but for the port's clock, and how long it waited for others.

    Of a port with one in flight the reply before is over, and none of its own bursts is waited for.
    """
    done, wait = end + bursts[at + DELAY], now - came
    if many:
        done = max(done, state[row + DELIVERED] + transfer[at >> np.uint64(2)])
        state[row + DELIVERED] = done
        held: Integer = np.uint64(state[slave + OWN]) + (row >> np.uint64(PORT_BITS))
        wait -= max(0, min(state[held], now) - came)
        state[held] = end
    return done, wait


@compile_inline
def issue_next(row: Integer, at: Integer, now: Integer, finish: Integer, period: Integer,
               bus_period: Integer, bursts: Words, times: Words, state: Words,
               many: Integer) -> Integer:
    """When the burst of a row is issued; the one before it was granted now."""
    credit = finish
    if many:
        credit = 0
        if at >= np.uint64(state[row + PAID]):
            credit = times[at - np.uint64(state[row + BACK]) + FINISH]
    origin = credit if state[row + PACE] == BY_FINISH else 0
    issue = max(origin + bursts[at + THINK], credit)
    if many:
        issue = max(issue, now + bus_period)
    return align(issue, period)


@compile_inline
def grant_all(count: Integer, slaves: Integer, bits: Integer, bursts: Words, transfer: Words,
              bus_period: Integer, times: Words, state: Words, many: Integer) -> Integer:
    """Grant bursts of ports with one in flight or, `many`, with any number.

    Who is next among the other ports is known before it is known when the port just granted comes
    again. Of three and more with one in flight that is seldom sooner: the processor guesses so.
    """
    scale, of_slaves, granted = 2 * bits + PORT_BITS, count << PORT_BITS, 0
    low, ranks = ((1 << bits) - 1) << PORT_BITS, of_slaves + (slaves << SLAVE_BITS)
    key = find_least(count, state)
    while key < NEVER:
        row: Integer = np.uint64(key & low)
        now, slave = key >> scale, np.uint64(state[row + SLAVE])
        at, period = np.uint64(state[row + AT]), state[row + CLOCK]
        came, end = state[row + ARRIVAL] >> scale, now + state[row + HELD]
        state[slave + FREE], state[slave + TURN] = end << scale, np.int64(row) + ranks
        state[slave + BUSY] += state[row + HELD]
        state[row + ARRIVAL] = NEVER
        key = find_least(count, state)
        done, wait = reply(row, slave, at, came, now, end, bursts, transfer, state, many)
        finish = align(done, period)
        times[at + GRANT], times[at + FINISH], times[at + WAIT] = now, finish, wait
        granted += 1
        at += BURST
        state[row + AT] = at
        if at == np.uint64(state[row + END]):
            continue
        issue = issue_next(row, at, now, finish, period, bus_period, bursts, times, state, many)
        times[at + ISSUE] = issue
        issue = align(issue, bus_period)
        slave = np.uint64(of_slaves + (bursts[at + TARGET] << SLAVE_BITS))
        arrival = issue << scale
        state[row + ARRIVAL], state[row + SLAVE] = arrival, slave
        state[row + HELD] = bursts[at + SERVICE]
        rank = state[np.uint64(state[slave + TURN]) + (row >> np.uint64(PORT_BITS))]
        again = max(arrival, state[slave + FREE]) + rank
        if many or count == 2:
            key = min(key, again)
        elif not likely(key < again):
            key = again
    return granted


@compile_kept
def grant_bursts(ports: Table, bursts: Words, transfer: Words, bus_period: Integer,
                  in_turn: Integer, times: Words, busy: Words, state: Words,
                  many: Integer) -> Integer:
    """Grant bursts until all are; `run_bursts` says what all this is."""
    count = len(ports)
    bits = lay_out(ports, bursts, bus_period, in_turn, times, len(busy), state)
    if many:
        granted = grant_all(count, len(busy), bits, bursts, transfer, bus_period, times, state, 1)
    else:
        granted = grant_all(count, len(busy), bits, bursts, transfer, bus_period, times, state, 0)
    for number in range(len(busy)):
        busy[number] += state[np.uint64((count << PORT_BITS) + (number << SLAVE_BITS)) + BUSY]
    return granted


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
    count, slaves = len(ports), len(busy)
    many = int((ports[:, OUTSTANDING] > 1).any())
    records = (count << PORT_BITS) + (slaves << SLAVE_BITS)
    state = np.zeros(records + (count + slaves << PORT_BITS), np.int64)
    grant_bursts(ports, bursts.reshape(-1), transfer, bus_period, in_turn, times.reshape(-1), busy,
                 state, many)
