"""Compiled: NPU tasks as steps of nodes that share channels and pools, and what they waited for.

`hwmodels.schedule.timing` states the rules. A node is a stream engine or a group of units; its work
is cut into steps. Every constraint on a start looks back at work that has started already, so the
next to start is the least over the nodes whose constraints are known, the least recently served
first. Times are int64 ticks. Tasks stand one behind the other in the tables; each is run alone.
"""

import numpy as np
from numpy.typing import NDArray

from hwmodels.kernels.compiled import (
    Cube,
    Integer,
    Table,
    Words,
    compile_kept,
    compile_part,
)

NEVER = 1 << 62
ONE = np.uint64(1)

STEPS, CHANNEL, POOL, CHANNEL_TICKS, POOL_TICKS, OWN_TICKS, LATENCY, LEAD, TRAIL = range(9)
"""Columns of `nodes`: steps; channel and pool held, -1 for none, and for how long over all steps;
own time over all steps; from a step's end to its data; from a start to its first data; from the
last data in to a step's end."""

SOURCE, SINK, DEPTH, AHEAD = range(4)
"""Columns of `links`: from, to, steps the source may be ahead of the sink, and must be."""

START, END, WHY, WHO, WHEN, LATE, LATE_WHEN = range(7)
"""Columns of `log`, per node and step: start and end; what the start waited for, the node and
step it was; the node and step the end waited for, -1 for none."""

BY_BEGIN, BY_SELF, BY_LEAD, BY_SPACE, BY_POOL, BY_CHANNEL = range(6)
"""What a start waited for."""

IN_OWN, IN_POOL, IN_CHANNEL, IN_GRANT, IN_LATENCY = range(5)
"""Columns of `blame`: ticks of a node's own work, its pool, its channel, its channel while others
waited for it, and latency."""

READY, SERVED, DONE, FROM, TO, BY, BY_WHO, BY_WHEN = np.arange(8, dtype=np.uint64)
"""Columns of `state`, per node: least start but for channel and pool, and what set it; turn of its
last step; steps started; the range of its rows in `edges`."""

OTHER, OFFSET, MOMENT, PLUS, REASON, TAIL = np.arange(6, dtype=np.uint64)
"""Columns of `edges`, a node's constraints in the order of links: the other node, which of its
steps beside the own one, whether its start or its end counts and what is added to it, what a wait
for it is called; from its end to the end of the own step, -1 where that does not wait."""


@compile_part
def find_ready(node: Integer, steps: Integer, turns: Integer, state: Table, edges: Table,
               log: Cube, keys: Words) -> None:
    """Work out a node's next least start but for channel and pool, and what sets it.

    Once known, a start's constraints are all in the past and stay as they are.
    """
    step = state[node, DONE]
    ready, why, when = 0, BY_BEGIN, 0
    who: Integer = node
    if step > 0:
        ready, why, who, when = log[node, np.uint64(step - 1), 1], BY_SELF, node, step - 1
    for edge in range(np.uint64(state[node, FROM]), np.uint64(state[node, TO])):
        at = min(step + edges[edge, OFFSET], steps - 1)
        if at >= 0:
            other: Integer = np.uint64(edges[edge, OTHER])
            if state[other, DONE] <= at:
                return
            time = log[other, np.uint64(at), np.uint64(edges[edge, MOMENT])] + edges[edge, PLUS]
            if time > ready:
                ready, why, who, when = time, edges[edge, REASON], other, at
    state[node, READY], state[node, BY] = ready, why
    state[node, BY_WHO], state[node, BY_WHEN] = np.int64(who), when
    keys[node] = ready * turns + state[node, SERVED]


@compile_part
def wake_linked(node: Integer, steps: Integer, turns: Integer, state: Table, edges: Table,
                log: Cube, keys: Words) -> None:
    """Work out the least start of the nodes linked to one that just started, if it is known now."""
    for edge in range(np.uint64(state[node, FROM]), np.uint64(state[node, TO])):
        other = np.uint64(edges[edge, OTHER])
        if keys[other] == NEVER and state[other, DONE] < steps:
            find_ready(other, steps, turns, state, edges, log, keys)


@compile_part
def find_end(node: Integer, step: Integer, steps: Integer, end: Integer, state: Table,
             edges: Table, log: Cube) -> tuple[Integer, Integer, Integer]:
    """End of a step, and the node and step whose data it waited for, -1 for its own work."""
    late, when = -1, 0
    for edge in range(np.uint64(state[node, FROM]), np.uint64(state[node, TO])):
        if edges[edge, TAIL] >= 0:
            needed = min(step + edges[edge, OFFSET], steps - 1)
            time = log[np.uint64(edges[edge, OTHER]), np.uint64(needed), 1] + edges[edge, TAIL]
            if time >= end:
                end, late, when = time, edges[edge, OTHER], needed
    return end, late, when


@compile_part
def charge(node: Integer, since: Integer, until: Integer, nodes: Table, blame: Table) -> None:
    """Blame a stretch of a node's work on the slowest of pool, channel and the node itself."""
    own = nodes[node, OWN_TICKS]
    if nodes[node, POOL] >= 0 and nodes[node, POOL_TICKS] >= own:
        blame[node, IN_POOL] += until - since
    elif nodes[node, CHANNEL] >= 0 and nodes[node, CHANNEL_TICKS] >= own:
        blame[node, IN_CHANNEL] += until - since
    else:
        blame[node, IN_OWN] += until - since


@compile_part
def walk_back(node: Integer, time: Integer, first: Integer, nodes: Table, log: Cube,
              blame: Table) -> None:
    """Follow what each step waited for from the last end to the beginning."""
    step = nodes[first + node, STEPS] - 1
    while True:
        end = log[node, step, END]
        if time > end:
            blame[first + node, IN_LATENCY] += time - end
            time = end
        late = log[node, step, LATE]
        if late >= 0 and time == end:
            since = end - nodes[first + node, TRAIL]
            charge(first + node, since, end, nodes, blame)
            time, step = since, log[node, step, LATE_WHEN]
            node = late
            continue
        charge(first + node, log[node, step, START], time, nodes, blame)
        while True:
            time = log[node, step, START]
            why, who, when = log[node, step, WHY], log[node, step, WHO], log[node, step, WHEN]
            if why == BY_BEGIN:
                return
            node, step = who, when
            if why == BY_POOL:
                blame[first + node, IN_POOL] += time - log[node, step, START]
            elif why == BY_CHANNEL:
                blame[first + node, IN_GRANT] += time - log[node, step, START]
            else:
                break
        if why == BY_LEAD:
            blame[first + node, IN_LATENCY] += nodes[first + node, LATENCY]
            time -= nodes[first + node, LATENCY]


@compile_part
def find_next(first: Integer, count: Integer, turns: Integer, nodes: Table, state: Table,
              free: Table, keys: Words) -> tuple[Integer, Integer]:
    """Return the node to start next and when: the earliest, then the least recently served.

    Channels and pools are only ever free later, so a key worked out before is never too high: the
    least is worked out again, until it is what it was.
    """
    while True:
        best = keys[np.uint64(0)]
        chosen: Integer = np.uint64(0)
        for node in range(np.uint64(1), count):
            key = keys[node]
            sooner = key < best
            best = key if sooner else best
            chosen = node if sooner else chosen
        row = first + chosen
        start = max(state[chosen, READY], free[np.uint64(nodes[row, CHANNEL] + 1), 0],
                    free[np.uint64(nodes[row, POOL] + 1), 3])
        key = start * turns + state[chosen, SERVED]
        if key == best:
            return chosen, start
        keys[chosen] = key


@compile_part
def lay_edges(first: Integer, count: Integer, from_link: Integer, to_link: Integer, nodes: Table,
              links: Table, state: Table, edges: Table) -> Integer:
    """Set nodes to their beginning, with their constraints in the order of links."""
    edge, total = 0, 0
    for node in range(count):
        row = first + node
        total += nodes[row, STEPS]
        state[node, DONE], state[node, FROM] = 0, edge
        for link in range(from_link, to_link):
            source, sink = links[link, SOURCE], links[link, SINK]
            if sink == np.int64(node):
                edges[edge, OTHER], edges[edge, OFFSET] = source, links[link, AHEAD]
                edges[edge, MOMENT], edges[edge, PLUS] = START, nodes[first + source, LEAD]
                edges[edge, REASON] = BY_LEAD
                edges[edge, TAIL] = nodes[first + source, LATENCY] + nodes[row, TRAIL]
                edge += 1
            elif source == np.int64(node):
                edges[edge, OTHER], edges[edge, OFFSET] = sink, -links[link, DEPTH]
                edges[edge, MOMENT], edges[edge, PLUS] = END, 0
                edges[edge, REASON], edges[edge, TAIL] = BY_SPACE, -1
                edge += 1
        state[node, TO] = edge
    for node in range(count):
        state[node, SERVED] = node
    return total


@compile_part
def share(total: Integer, step: Integer, steps: Integer) -> Integer:
    """Share of a total that falls on a step; shares add up to the total."""
    return (step + 1) * total // steps - step * total // steps


@compile_part
def start_task(first: Integer, count: Integer, from_link: Integer, to_link: Integer, nodes: Table,
                links: Table, state: Table, edges: Table, free: Table, log: Cube,
                keys: Words, order: Words) -> None:
    """Start every step of a task, and write down in which order."""
    total = lay_edges(np.int64(first), count, from_link, to_link, nodes, links, state, edges)
    turns = total + np.int64(count)
    for place in range(len(free)):
        free[place, 0], free[place, 3] = 0, 0
    for node in range(count):
        keys[node] = NEVER
        find_ready(node, nodes[first + node, STEPS], turns, state, edges, log, keys)
    for turn in range(np.int64(count), turns):
        node, start = find_next(first, count, turns, nodes, state, free, keys)
        row = first + node
        step, steps = state[node, DONE], nodes[row, STEPS]
        time, why = state[node, READY], state[node, BY]
        who, when = state[node, BY_WHO], state[node, BY_WHEN]
        pool, channel = np.uint64(nodes[row, POOL] + 1), np.uint64(nodes[row, CHANNEL] + 1)
        if pool:
            if start > time and start == free[pool, 3]:
                why, who, when = BY_POOL, free[pool, 4], free[pool, 5]
            free[pool, 3] = start + share(nodes[row, POOL_TICKS], step, steps)
            free[pool, 4], free[pool, 5] = np.int64(node), step
        if channel:
            if start > time and start == free[channel, 0] and why != BY_POOL:
                why, who, when = BY_CHANNEL, free[channel, 1], free[channel, 2]
            free[channel, 0] = start + share(nodes[row, CHANNEL_TICKS], step, steps)
            free[channel, 1], free[channel, 2] = np.int64(node), step
        own = start + max(share(nodes[row, OWN_TICKS], step, steps), 1)
        end, late, late_when = find_end(node, step, steps, own, state, edges, log)
        at = np.uint64(step)
        log[node, at, 0], log[node, at, 1] = start, end
        log[node, at, 2], log[node, at, 3], log[node, at, 4] = why, who, when
        log[node, at, 5], log[node, at, 6] = late, late_when
        order[turn - np.int64(count)] = np.int64(node)
        state[node, DONE], state[node, SERVED] = step + 1, turn
        keys[node] = NEVER
        if step + 1 < steps:
            find_ready(node, steps, turns, state, edges, log, keys)
        wake_linked(node, steps, turns, state, edges, log, keys)


@compile_part
def run_alone(first: Integer, count: Integer, from_link: Integer, to_link: Integer, nodes: Table,
              links: Table, state: Table, edges: Table, free: Table, log: Cube, keys: Words,
              order: Words, blame: Table) -> Integer:
    """Run a task, add to blame what it waited for, and return when all data are there."""
    start_task(first, count, from_link, to_link, nodes, links, state, edges, free, log, keys, order)
    latest = -1
    last: Integer = count
    for node in range(count):
        at = np.uint64(nodes[first + node, STEPS] - 1)
        time = log[node, at, 1] + nodes[first + node, LATENCY]
        if time > latest:
            last, latest = node, time
    walk_back(np.int64(last), latest, np.int64(first), nodes, log, blame)
    return latest


@compile_kept
def start_steps(spans: Table, nodes: Table, links: Table, state: Table, edges: Table, free: Table,
                log: Cube, keys: Words, order: Words, blame: Table, until: Words) -> None:
    """Run tasks one by one: when all data are there, and what that waited for.

    Parameters
    ----------
    spans : ndarray of int64, (tasks + 1, 2)
        First node and link of each task.
    nodes, links : ndarray of int64
        By the columns above, those of a task counted from its own first.
    state, edges, free, log, keys, order : ndarray of int64
        Room to work in, as large as the largest task needs; log is that of the last task.
    blame, until : ndarray of int64, (nodes, 5) and (tasks,)
        Added to; filled.
    """
    for task in range(len(until)):
        first, count = np.uint64(spans[task, 0]), np.uint64(spans[task + 1, 0] - spans[task, 0])
        if count:
            until[task] = run_alone(first, count, spans[task, 1], spans[task + 1, 1], nodes,
                                     links, state, edges, free, log, keys, order, blame)


def run_tasks(spans: Table, nodes: Table, links: Table,
               ports: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Run tasks, one after another.

    Arguments are the columns above and how many channels or pools there are at most. Returns the
    log of the last task, the ticks each took from beginning to end, and blame by node.
    """
    most, linked = np.diff(spans, axis=0).max(axis=0, initial=1).tolist()
    longest = int(nodes[:, STEPS].max(initial=1))
    state, edges, free, log, keys, order, blame, until = (np.zeros(shape, np.int64) for shape in (
        (most, 8), (2 * linked, 6), (ports + 1, 6), (most, longest, 7), most, most * longest,
        (len(nodes), 5), len(spans) - 1))
    start_steps(spans, nodes, links, state, edges, free, log, keys, order, blame, until)
    return log, until, blame


def run_streams(nodes: Table, links: Table, channels: int,
                pools: int) -> tuple[NDArray[np.int64], int, NDArray[np.int64]]:
    """Run a task.

    Arguments are the columns above and the number of channels and pools. Returns the log, the
    ticks from beginning to end, and blame by node.
    """
    spans = np.array([[0, 0], [len(nodes), len(links)]])
    log, until, blame = run_tasks(spans, nodes, links, max(channels, pools))
    return log, int(until[0]), blame
