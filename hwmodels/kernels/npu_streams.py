"""Compiled: one NPU epoch as steps of nodes that share channels and pools, and what it waited for.

`hwmodels.npu.timing` states the rules. A node is a stream engine or a group of units; its work is
cut into steps. Every constraint on a start looks back at work that has started already, so the
next to start is the least over the nodes whose constraints are known, the least recently served
first. Times are int64 ticks.
"""

import numpy as np
from numpy.typing import NDArray

from hwmodels.kernels.compiled import Cube, Integer, Table, Words, compile_kept, compile_part

NEVER = 1 << 62

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


@compile_part
def part(total: Integer, steps: Integer, step: Integer) -> Integer:
    """Share of a total that falls on one step; shares add up to the total."""
    return (step + 1) * total // steps - step * total // steps


@compile_part
def find_ready(node: Integer, step: Integer, nodes: Table, links: Table, done: Words,
               log: Cube) -> tuple[Integer, Integer, Integer, Integer]:
    """Least start but for channel and pool, what set it, and the step that did."""
    ready, why, who, when = 0, BY_BEGIN, -1, 0
    if step > 0:
        ready, why, who, when = log[node, step - 1, END], BY_SELF, node, step - 1
    for link in range(links.shape[0]):
        source, sink, depth = links[link, SOURCE], links[link, SINK], links[link, DEPTH]
        if sink == node:
            needed = min(step + links[link, AHEAD], nodes[source, STEPS] - 1)
            if done[source] <= needed:
                return NEVER, why, who, when
            time = log[source, needed, START] + nodes[source, LEAD]
            if time > ready:
                ready, why, who, when = time, BY_LEAD, source, needed
        elif source == node and step >= depth:
            if done[sink] <= step - depth:
                return NEVER, why, who, when
            time = log[sink, step - depth, END]
            if time > ready:
                ready, why, who, when = time, BY_SPACE, sink, step - depth
    return ready, why, who, when


@compile_part
def find_end(node: Integer, step: Integer, start: Integer, nodes: Table, links: Table,
             log: Cube) -> tuple[Integer, Integer, Integer]:
    """End of a step, and the node and step whose data it waited for, -1 for its own work."""
    end = start + max(part(nodes[node, OWN_TICKS], nodes[node, STEPS], step), 1)
    late, when = -1, 0
    for link in range(links.shape[0]):
        if links[link, SINK] == node:
            source = links[link, SOURCE]
            needed = min(step + links[link, AHEAD], nodes[source, STEPS] - 1)
            time = log[source, needed, END] + nodes[source, LATENCY] + nodes[node, TRAIL]
            if time >= end:
                end, late, when = time, source, needed
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
def walk_back(node: Integer, time: Integer, nodes: Table, log: Cube, blame: Table) -> None:
    """Follow what each step waited for from the last end to the beginning."""
    step = nodes[node, STEPS] - 1
    while True:
        end = log[node, step, END]
        if time > end:
            blame[node, IN_LATENCY] += time - end
            time = end
        late = log[node, step, LATE]
        if late >= 0 and time == end:
            charge(node, end - nodes[node, TRAIL], end, nodes, blame)
            time, step = end - nodes[node, TRAIL], log[node, step, LATE_WHEN]
            node = late
            continue
        charge(node, log[node, step, START], time, nodes, blame)
        while True:
            time = log[node, step, START]
            why, who, when = log[node, step, WHY], log[node, step, WHO], log[node, step, WHEN]
            if why == BY_BEGIN:
                return
            node, step = who, when
            if why == BY_POOL:
                blame[node, IN_POOL] += time - log[node, step, START]
            elif why == BY_CHANNEL:
                blame[node, IN_GRANT] += time - log[node, step, START]
            else:
                break
        if why == BY_LEAD:
            blame[node, IN_LATENCY] += nodes[node, LATENCY]
            time -= nodes[node, LATENCY]


@compile_part
def find_next(ready: Words, nodes: Table, channel_free: Words, pool_free: Words,
              served: Words) -> tuple[Integer, Integer]:
    """Return the node to start next and when: the earliest, then the least recently served."""
    best, best_start = -1, NEVER
    for node in range(nodes.shape[0]):
        start = ready[node]
        if nodes[node, CHANNEL] >= 0:
            start = max(start, channel_free[nodes[node, CHANNEL]])
        if nodes[node, POOL] >= 0:
            start = max(start, pool_free[nodes[node, POOL]])
        if start < best_start or (start == best_start and start < NEVER
                                  and served[node] < served[best]):
            best, best_start = node, start
    return best, best_start


@compile_part
def wake_linked(node: Integer, nodes: Table, links: Table, done: Words, ready: Words,
                log: Cube) -> None:
    """Work out the least start of the nodes linked to one that just started, if it is known now.

    Once known, a start's constraints are all in the past and stay as they are.
    """
    for link in range(links.shape[0]):
        other = -1
        if links[link, SOURCE] == node:
            other = links[link, SINK]
        elif links[link, SINK] == node:
            other = links[link, SOURCE]
        if other >= 0 and ready[other] == NEVER and done[other] < nodes[other, STEPS]:
            ready[other] = find_ready(other, done[other], nodes, links, done, log)[0]


@compile_part
def find_last(nodes: Table, log: Cube) -> tuple[Integer, Integer]:
    """Return the node whose data come last, and when."""
    last, until = 0, -1
    for node in range(nodes.shape[0]):
        time = log[node, nodes[node, STEPS] - 1, END] + nodes[node, LATENCY]
        if time > until:
            last, until = node, time
    return last, until


@compile_kept
def start_steps(nodes: Table, links: Table, done: Words, ready: Words, served: Words,
                channel_free: Words, channel_by: Table, pool_free: Words, pool_by: Table,
                log: Cube, blame: Table) -> Integer:
    """Start every step and follow what the last waited for; return when all data are there."""
    for node in range(nodes.shape[0]):
        ready[node] = find_ready(node, 0, nodes, links, done, log)[0]
    total = 0
    for node in range(nodes.shape[0]):
        total += nodes[node, STEPS]
    for turn in range(total):
        node, start = find_next(ready, nodes, channel_free, pool_free, served)
        step, steps = done[node], nodes[node, STEPS]
        time, why, who, when = find_ready(node, step, nodes, links, done, log)
        pool, channel = nodes[node, POOL], nodes[node, CHANNEL]
        if pool >= 0:
            if start > time and start == pool_free[pool]:
                why, who, when = BY_POOL, pool_by[pool, 0], pool_by[pool, 1]
            pool_free[pool] = start + part(nodes[node, POOL_TICKS], steps, step)
            pool_by[pool, 0], pool_by[pool, 1] = node, step
        if channel >= 0:
            if start > time and start == channel_free[channel] and why != BY_POOL:
                why, who, when = BY_CHANNEL, channel_by[channel, 0], channel_by[channel, 1]
            channel_free[channel] = start + part(nodes[node, CHANNEL_TICKS], steps, step)
            channel_by[channel, 0], channel_by[channel, 1] = node, step
        end, late, late_when = find_end(node, step, start, nodes, links, log)
        log[node, step, START], log[node, step, END] = start, end
        log[node, step, WHY], log[node, step, WHO] = why, who
        log[node, step, WHEN], log[node, step, LATE] = when, late
        log[node, step, LATE_WHEN] = late_when
        done[node] += 1
        served[node] = turn
        ready[node] = NEVER
        if done[node] < steps:
            ready[node] = find_ready(node, done[node], nodes, links, done, log)[0]
        wake_linked(node, nodes, links, done, ready, log)
    last, until = find_last(nodes, log)
    walk_back(last, until, nodes, log, blame)
    return until


def run_streams(nodes: Table, links: Table, channels: int,
                pools: int) -> tuple[NDArray[np.int64], int, NDArray[np.int64]]:
    """Run an epoch.

    Arguments are the columns above and the number of channels and pools. Returns the log, the
    ticks from beginning to end, and blame by node.
    """
    count = nodes.shape[0]
    log = np.zeros((count, max(1, nodes[:, STEPS].max()), 7), dtype=np.int64)
    blame = np.zeros((count, 5), dtype=np.int64)
    done, ready = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    served = np.arange(-count, 0)
    channel_free, channel_by = np.zeros(channels, np.int64), np.zeros((channels, 2), np.int64)
    pool_free, pool_by = np.zeros(pools, np.int64), np.zeros((pools, 2), np.int64)
    until: int = start_steps(nodes, links, done, ready, served, channel_free, channel_by, pool_free,
                             pool_by, log, blame)
    return log, until, blame
