"""Compiled: NPU epochs on many machines that differ in clocks, batched with one that ran alone.

What machines do is worked out beside each other: steps start in the order they started on one that
ran alone, times are their own. Where a step that shares a channel or pool would have been started
before one it comes after, the machine is run alone; else its ticks and blame are those of its own
run. Why: ticks follow from the order in which each channel and pool is passed on. Where that order
would first be left, by a step j in place of g, all before is as it was, so j would start at
max(ready, channel, pool) as they are when g is started. That is after g's start, or at it where g
was served longer ago.
"""

import numpy as np
from numpy.typing import NDArray

from hwmodels.kernels.compiled import (
    Cube,
    Integer,
    Table,
    Words,
    compile_inline,
    compile_kept,
    compile_part,
    simd_range,
)
from hwmodels.kernels.npu_paths import (
    COLUMNS,
    EACH,
    LANES,
    LATE_LANES,
    LATENT,
    LEADS,
    NEEDED,
    NOW,
    ON_CHANNEL,
    ON_ITSELF,
    ON_POOL,
    OWN_EACH,
    POOL_EACH,
    READY,
    ROWS,
    TAKEN,
    TRAILS,
    WHY_LANES,
    WON,
    take_paths,
)
from hwmodels.kernels.npu_streams import (
    BY_LEAD,
    CHANNEL,
    CHANNEL_TICKS,
    DONE,
    FROM,
    LATENCY,
    LEAD,
    MOMENT,
    OFFSET,
    OTHER,
    OWN_TICKS,
    POOL,
    POOL_TICKS,
    REASON,
    SERVED,
    STEPS,
    TO,
    TRAIL,
    make_room,
    run_alone,
)


@compile_inline
def part_ticks(ticks: Integer, steps: Integer, at: Integer, lanes: Words) -> None:
    """Share ticks out among steps."""
    each = np.uint64(ticks) // np.uint64(steps)
    lanes[at] = np.int64(each)
    lanes[at + LANES] = ticks - np.int64(each) * steps
    lanes[at + LANES + LANES] = 0


@compile_part
def load_lane(row: Integer, lane: Integer, count: Integer, nodes: Table, lanes: Words,
              failed: Words) -> None:
    """Write the ticks of a machine into a lane."""
    failed[lane] = 0
    for node in range(np.uint64(0), count):
        own, at = row + node, node * ROWS + lane
        steps = nodes[own, STEPS]
        part_ticks(nodes[own, OWN_TICKS], steps, at + OWN_EACH, lanes)
        if nodes[own, CHANNEL] >= 0:
            part_ticks(nodes[own, CHANNEL_TICKS], steps, at + EACH, lanes)
        if nodes[own, POOL] >= 0:
            part_ticks(nodes[own, POOL_TICKS], steps, at + POOL_EACH, lanes)
        lanes[at + LATENT] = nodes[own, LATENCY]
        lanes[at + LEADS] = nodes[own, LEAD]
        lanes[at + TRAILS] = nodes[own, TRAIL]
        lanes[at + NEEDED] = 0


@compile_inline
def hold(at: Integer, here: Integer, place: Integer, steps: Integer, lanes: Words, times: Words,
         held: Words) -> None:
    """Hold a channel or pool from a start for the step's share."""
    for lane in simd_range(LANES):
        left = lanes[at + LANES + LANES + lane] + lanes[at + LANES + lane]
        more = left >= steps
        less = left - steps
        lanes[at + LANES + LANES + lane] = less if more else left
        held[place + lane] = times[here + lane] + lanes[at + lane] + more


@compile_inline
def find_readies(node: Integer, step: Integer, steps: Integer, longest: Integer, state: Table,
                 edges: Table, times: Words, lanes: Words, now: Words) -> None:
    """Work out the least starts of a step but for channel and pool."""
    follows = np.int64(step > np.uint64(0))
    before = (node * longest + step - np.uint64(follows)) * COLUMNS + LANES
    for lane in simd_range(LANES):
        now[READY + lane] = follows * times[before + lane]
        now[WON + lane] = ON_ITSELF
    for edge in range(np.uint64(state[node, FROM]), np.uint64(state[node, TO])):
        at = min(np.int64(step) + edges[edge, OFFSET], np.int64(steps) - 1)
        if at >= 0:
            other = np.uint64(edges[edge, OTHER])
            source = (other * longest + np.uint64(at)) * COLUMNS + np.uint64(
                edges[edge, MOMENT]) * LANES
            row = other * ROWS + LEADS
            plus = np.int64(edges[edge, REASON] == BY_LEAD)
            number = np.int64(edge)
            for lane in simd_range(LANES):
                time = times[source + lane] + plus * lanes[row + lane]
                ready = now[READY + lane]
                won = now[WON + lane]
                now[WON + lane] = number if time > ready else won
                now[READY + lane] = max(ready, time)


@compile_inline
def find_ends(node: Integer, step: Integer, steps: Integer, longest: Integer, state: Table,
              edges: Table, times: Words, lanes: Words) -> None:
    """Work out the ends of a step, and the edge whose data each waited for."""
    at, here = node * ROWS + OWN_EACH, (node * longest + step) * COLUMNS
    for lane in simd_range(LANES):
        left = lanes[at + LANES + LANES + lane] + lanes[at + LANES + lane]
        more = left >= np.int64(steps)
        less = left - steps
        lanes[at + LANES + LANES + lane] = less if more else left
        times[here + LANES + lane] = times[here + lane] + max(lanes[at + lane] + more, 1)
        times[here + LATE_LANES + lane] = -1
    trail = node * ROWS + TRAILS
    for edge in range(np.uint64(state[node, FROM]), np.uint64(state[node, TO])):
        if edges[edge, REASON] == BY_LEAD:
            other = np.uint64(edges[edge, OTHER])
            needed = np.uint64(min(np.int64(step) + edges[edge, OFFSET], np.int64(steps) - 1))
            source = (other * longest + needed) * COLUMNS + LANES
            row = other * ROWS + LATENT
            number = np.int64(edge)
            for lane in simd_range(LANES):
                time = times[source + lane] + lanes[row + lane] + lanes[trail + lane]
                end = times[here + LANES + lane]
                late = times[here + LATE_LANES + lane]
                times[here + LATE_LANES + lane] = number if time >= end else late
                times[here + LANES + lane] = max(end, time)


@compile_inline
def keep_order(node: Integer, here: Integer, pool: Integer, channel: Integer, first: Integer,
               count: Integer, nodes: Table, state: Table, times: Words, lanes: Words,
               held: Words) -> None:
    """Demand that what shares channel or pool with a step that starts could not have before."""
    for other in range(np.uint64(0), count):
        row = first + other
        its_channel = np.uint64(nodes[row, CHANNEL] + 1)
        its_pool = np.uint64(nodes[row, POOL] + 1)
        shares = (pool and its_pool == pool) or (channel and its_channel == channel)
        if shares and other != node and state[other, DONE] < nodes[row, STEPS]:
            late = np.int64(state[node, SERVED] > state[other, SERVED])
            one, two = its_channel * LANES * np.uint64(2), (
                its_pool * np.uint64(2) + np.uint64(1)) * LANES
            at = other * ROWS + NEEDED
            for lane in simd_range(LANES):
                bound = max(held[one + lane], held[two + lane])
                start = times[here + lane] + late
                needed = lanes[at + lane]
                lanes[at + lane] = max(needed, start) if start > bound else needed


@compile_part
def follow_order(first: Integer, count: Integer, longest: Integer, nodes: Table, state: Table,
                 edges: Table, free: Table, order: Words, times: Words, lanes: Words, now: Words,
                 held: Words, before: Words, failed: Words) -> None:
    """Start every step of an epoch in the order of one machine."""
    total = 0
    for word in range(len(held)):
        held[word] = 0
    node: Integer
    for node in range(np.uint64(0), count):
        state[node, DONE], state[node, SERVED] = 0, np.int64(node)
        total += nodes[first + node, STEPS]
    for turn in range(total):
        node = np.uint64(order[turn])
        row, step = first + node, np.uint64(state[node, DONE])
        steps = nodes[row, STEPS]
        pool, channel = np.uint64(nodes[row, POOL] + 1), np.uint64(nodes[row, CHANNEL] + 1)
        one, two = channel * LANES * np.uint64(2), (pool * np.uint64(2) + np.uint64(1)) * LANES
        find_readies(node, step, np.uint64(steps), longest, state, edges, times, lanes, now)
        at, here = node * ROWS, (node * longest + step) * COLUMNS
        for lane in simd_range(LANES):
            ready, its_pool, its_channel = now[READY + lane], held[two + lane], held[one + lane]
            failed[lane] |= ready < lanes[at + NEEDED + lane]
            lanes[at + NEEDED + lane] = 0
            why = now[WON + lane]
            why = ON_POOL if its_pool > ready else why
            start = max(ready, its_pool)
            times[here + WHY_LANES + lane] = ON_CHANNEL if its_channel > start else why
            times[here + lane] = max(start, its_channel)
        state[node, DONE] = np.int64(step) + 1
        keep_order(node, here, pool, channel, first, count, nodes, state, times, lanes, held)
        place = (node * longest + step) * np.uint64(2)
        if pool:
            before[place] = free[pool, 3]
            free[pool, 3] = np.int64(place)
            hold(at + POOL_EACH, here, two, steps, lanes, times, held)
        if channel:
            before[place + np.uint64(1)] = free[channel, 0]
            free[channel, 0] = np.int64(place)
            hold(at + EACH, here, one, steps, lanes, times, held)
        find_ends(node, step, np.uint64(steps), longest, state, edges, times, lanes)
        state[node, SERVED] = np.int64(count) + turn


@compile_kept
def start_machines(spans: Table, nodes: Table, links: Table, state: Table, edges: Table,
                   free: Table, log: Cube, keys: Words, order: Words, times: Words, lanes: Words,
                   now: Words, held: Words, before: Words, failed: Words, apart: Words,
                   blame: Table, until: Table) -> None:
    """Run epochs on machines, those of one epoch after those of the other.

    Parameters
    ----------
    spans : ndarray of int64, (epochs + 1, 2)
        First node and link of each epoch.
    nodes, links : ndarray of int64
        As of `npu_streams`; nodes of one machine behind those of the other.
    state, edges, free, log, keys, order : ndarray of int64
        Room to work in, as large as the largest epoch needs.
    times, lanes, now, held, before, failed, apart : ndarray of int64
        The same, of the batch of machines.
    blame, until : ndarray of int64, (machines nodes, 5) and (machines, epochs)
        Added to; filled.
    """
    machines, epochs, longest = len(until), len(spans) - 1, np.uint64(log.shape[1])
    apiece = np.uint64(spans[epochs, 0])
    for epoch in range(epochs):
        link, end, first = spans[epoch, 1], spans[epoch + 1, 1], np.uint64(spans[epoch, 0])
        count = np.uint64(spans[epoch + 1, 0]) - first
        if not count:
            continue
        until[0, epoch] = run_alone(first, count, link, end, nodes, links, state, edges, free, log,
                                    keys, order, blame)
        for machine in range(1, machines, LANES):
            left: Integer = min(np.int64(LANES), machines - machine)
            width = np.uint64(left)
            row = first + np.uint64(machine) * apiece
            for lane in range(np.uint64(0), LANES):
                own = np.uint64(min(np.int64(lane), left - 1))
                load_lane(row + own * apiece, lane, count, nodes, lanes, failed)
            follow_order(row, count, longest, nodes, state, edges, free, order, times, lanes, now,
                         held, before, failed)
            take_paths(row, apiece, epoch, machine, width, count, longest, nodes, edges, times,
                       lanes, now, before, failed, apart, blame, until)
            for lane in range(np.uint64(0), width):
                if failed[lane] != TAKEN:
                    own = np.uint64(machine) + lane
                    until[own, epoch] = run_alone(first + own * apiece, count, link, end, nodes,
                                                  links, state, edges, free, log, keys, order,
                                                  blame)


def run_machines(spans: Table, nodes: Cube, links: Table,
                 ports: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Run epochs on machines that differ in clocks.

    Arguments are as of `npu_streams.run_epochs`, nodes by machine; neighbours that are nearly as
    fast as each other take the least time. Returns the ticks each epoch took, by machine, and blame
    by machine and node.
    """
    state, edges, free, log, keys, order = make_room(spans, nodes[0], ports)
    most, longest, lanes = len(log), log.shape[1], int(LANES)
    blame, until = np.zeros((*nodes.shape[:2], 5), np.int64), np.zeros(
        (len(nodes), len(spans) - 1), np.int64)
    start_machines(
        spans, nodes.reshape(-1, nodes.shape[2]), links, state, edges, free, log, keys, order,
        _align(most * longest * int(COLUMNS)), _align(most * int(ROWS)), _align(int(NOW)),
        _align((ports + 1) * 2 * lanes), _align(most * longest * 2), _align(lanes), _align(lanes),
        blame.reshape(-1, 5), until)
    return until, blame


def _align(words: int) -> NDArray[np.int64]:
    """Return an array that begins with a line of the processor's cache."""
    room = np.zeros(words + 8, np.int64)
    first = -room.ctypes.data % 64 // 8
    return room[first:first + words]
