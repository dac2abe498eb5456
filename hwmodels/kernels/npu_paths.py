"""Compiled: what a batch of machines waited for, path by path.

`npu_lanes` writes down when steps started and ended on each of them and what decided that.
"""

import numpy as np

from hwmodels.kernels.compiled import (
    Integer,
    Table,
    Words,
    compile_inline,
    compile_part,
    simd_range,
)
from hwmodels.kernels.npu_streams import (
    BY_LEAD,
    CHANNEL,
    CHANNEL_TICKS,
    IN_CHANNEL,
    IN_GRANT,
    IN_LATENCY,
    IN_OWN,
    IN_POOL,
    OFFSET,
    OTHER,
    OWN_TICKS,
    POOL,
    POOL_TICKS,
    REASON,
    STEPS,
)

LANES = np.uint64(32)
"""Machines of a batch, the first of them the one that ran alone."""

(EACH, REST, OVER, POOL_EACH, POOL_REST, POOL_OVER, OWN_EACH, OWN_REST, OWN_OVER, LATENT, LEADS,
 TRAILS, NEEDED, WORKED, POOLED, GRANTED, WAITED) = np.arange(17, dtype=np.uint64) * LANES
"""Rows of `lanes`, per node: as of `state` its shares of channel, pool and own time; the ticks of
`nodes`; the least `ready` with which its next step is in order; ticks on the path at work, and
waiting for pool, channel and data."""

ROWS = np.uint64(17) * LANES

COLUMNS, LATE_LANES, WHY_LANES = (np.array([4, 2, 3], np.uint64) * LANES)
"""Columns of `times`, per node and step: how many; behind start and end the edge the end waited for
and what the start waited for, an edge or one of these."""

ON_POOL, ON_CHANNEL, ON_ITSELF = -3, -2, -1
TAKEN = 2
"""What `failed` says of a machine whose blame is written."""

READY, WON, ENDED, LAST, TIME, NOW = np.arange(6, dtype=np.uint64) * LANES
"""Rows of `now`: when a step could start, and which constraint said so; when all data are there,
and whose are last; where the path is; how many words."""


@compile_part
def find_last(first: Integer, count: Integer, longest: Integer, nodes: Table, times: Words,
              lanes: Words, now: Words) -> None:
    """Find the node whose data are there last, and when."""
    for lane in simd_range(LANES):
        now[ENDED + lane] = -1
        now[LAST + lane] = 0
    for node in range(np.uint64(0), count):
        end = (node * longest + np.uint64(nodes[first + node, STEPS]) - np.uint64(1)
                ) * COLUMNS + LANES
        at = node * ROWS + LATENT
        number = np.int64(node)
        for lane in simd_range(LANES):
            time = times[end + lane] + lanes[at + lane]
            latest = now[ENDED + lane]
            last = now[LAST + lane]
            now[LAST + lane] = number if time > latest else last
            now[ENDED + lane] = max(latest, time)


@compile_inline
def leave_end(guide: Integer, here: Integer, at: Integer, times: Words, lanes: Words, now: Words,
              apart: Words) -> Integer:
    """Come back to the end of a step; return the edge whose data it waited for, -1 for none."""
    behind = now[TIME + guide] > times[here + LANES + guide]
    for lane in simd_range(LANES):
        over = max(now[TIME + lane] - times[here + LANES + lane], 0)
        lanes[at + WAITED + lane] += over
        now[TIME + lane] -= over
        apart[lane] |= (over > 0) != behind
    whole = now[TIME + guide] == times[here + LANES + guide]
    late = times[here + LATE_LANES + guide]
    for lane in simd_range(LANES):
        apart[lane] |= (times[here + LATE_LANES + lane] != late) | (
            (now[TIME + lane] == times[here + LANES + lane]) != whole)
    return late if whole else -1


@compile_inline
def leave_start(guide: Integer, node: Integer, step: Integer, longest: Integer, times: Words,
                lanes: Words, now: Words, before: Words,
                apart: Words) -> tuple[Integer, Integer, Integer]:
    """Go back from a start over those that held its pool or channel; return what did not."""
    place = node * longest + step
    while True:
        here = place * COLUMNS
        why = times[here + WHY_LANES + guide]
        for lane in simd_range(LANES):
            now[TIME + lane] = times[here + lane]
            apart[lane] |= times[here + WHY_LANES + lane] != why
        if why > ON_CHANNEL:
            return place // longest, place % longest, why
        held = place * np.uint64(2) + np.uint64(why == ON_CHANNEL)
        place = np.uint64(before[held]) // np.uint64(2)
        here = place * COLUMNS
        at = place // longest * ROWS + (GRANTED if why == ON_CHANNEL else POOLED)
        for lane in simd_range(LANES):
            lanes[at + lane] += now[TIME + lane] - times[here + lane]


@compile_inline
def trace_edge(edge: Integer, node: Integer, step: Integer, first: Integer, nodes: Table,
               edges: Table) -> tuple[Integer, Integer]:
    """Return the node and step at the other end of a constraint."""
    at = min(np.int64(step) + edges[edge, OFFSET], nodes[first + node, STEPS] - 1)
    return np.uint64(edges[edge, OTHER]), np.uint64(at)


@compile_part
def follow_path(guide: Integer, first: Integer, longest: Integer, nodes: Table, edges: Table,
                times: Words, lanes: Words, now: Words, before: Words, apart: Words) -> None:
    """Follow what one machine waited for from the last end to the beginning, on all of them.

    Those whose paths are others are set apart.
    """
    last = now[LAST + guide]
    for lane in simd_range(LANES):
        now[TIME + lane] = now[ENDED + lane]
        apart[lane] = now[LAST + lane] != last
    node, why = np.uint64(last), 0
    step = np.uint64(nodes[first + node, STEPS] - 1)
    while why != ON_ITSELF or step:
        if why == ON_ITSELF:
            step -= np.uint64(1)
        here, at = (node * longest + step) * COLUMNS, node * ROWS
        late, why = leave_end(guide, here, at, times, lanes, now, apart), 0
        if late >= 0:
            for lane in simd_range(LANES):
                lanes[at + WORKED + lane] += lanes[at + TRAILS + lane]
                now[TIME + lane] -= lanes[at + TRAILS + lane]
            node, step = trace_edge(np.uint64(late), node, step, first, nodes, edges)
            continue
        for lane in simd_range(LANES):
            lanes[at + WORKED + lane] += now[TIME + lane] - times[here + lane]
        node, step, why = leave_start(guide, node, step, longest, times, lanes, now, before, apart)
        if why >= 0:
            edge = np.uint64(why)
            node, step = trace_edge(edge, node, step, first, nodes, edges)
            leads, at = np.int64(edges[edge, REASON] == BY_LEAD), node * ROWS
            for lane in simd_range(LANES):
                lanes[at + WAITED + lane] += leads * lanes[at + LATENT + lane]
                now[TIME + lane] -= leads * lanes[at + LATENT + lane]


@compile_part
def forget_path(count: Integer, lanes: Words) -> None:
    """Clear what passed on a path."""
    for node in range(np.uint64(0), count):
        at = node * ROWS
        for lane in simd_range(LANES):
            lanes[at + WORKED + lane] = 0
            lanes[at + POOLED + lane] = 0
            lanes[at + GRANTED + lane] = 0
            lanes[at + WAITED + lane] = 0


@compile_part
def take_lane(row: Integer, lane: Integer, count: Integer, nodes: Table, lanes: Words,
              blame: Table) -> None:
    """Write the blame of a machine."""
    for node in range(np.uint64(0), count):
        own, at = nodes[row + node, OWN_TICKS], node * ROWS + lane
        slowest = IN_OWN
        if nodes[row + node, POOL] >= 0 and nodes[row + node, POOL_TICKS] >= own:
            slowest = IN_POOL
        elif nodes[row + node, CHANNEL] >= 0 and nodes[row + node, CHANNEL_TICKS] >= own:
            slowest = IN_CHANNEL
        blame[row + node, slowest] += lanes[at + WORKED]
        blame[row + node, IN_POOL] += lanes[at + POOLED]
        blame[row + node, IN_GRANT] += lanes[at + GRANTED]
        blame[row + node, IN_LATENCY] += lanes[at + WAITED]


@compile_part
def take_paths(row: Integer, apiece: Integer, epoch: Integer, machine: Integer, width: Integer,
               count: Integer, longest: Integer, nodes: Table, edges: Table, times: Words,
               lanes: Words, now: Words, before: Words, failed: Words, apart: Words, blame: Table,
               until: Table) -> None:
    """Write ticks and blame of machines whose steps started in order, path by path."""
    find_last(row, count, longest, nodes, times, lanes, now)
    for guide in range(np.uint64(0), width):
        if not failed[guide]:
            forget_path(count, lanes)
            follow_path(guide, row, longest, nodes, edges, times, lanes, now, before, apart)
            for lane in range(guide, width):
                if not failed[lane] and not apart[lane]:
                    until[machine + np.int64(lane), epoch] = now[ENDED + lane]
                    take_lane(row + lane * apiece, lane, count, nodes, lanes, blame)
                    failed[lane] = TAKEN
