"""Trees of address streams flattened to the integer arrays the cache kernels interpret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hwmodels.kernel import Guard
from hwmodels.nest import Stream, Tree

LOOP, END, LEAF, PHASE, PHASE_END = range(5)
"""Operations: enter a loop, close it, run a loop that holds nothing but streams, take the next
row of a phase table, go on to another row unless the entry ends."""

NEAR_BYTES = 512
"""Gap up to which streams that move alike count as one when it is asked what sets they use."""

EVER = 1 << 62

FULL, MIDDLE = -1, -2
"""Extents that the row of the phase table in force gives."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """A flattened tree.

    Parameters
    ----------
    code : ndarray of int64, (operations, 9)
        Operation, extent, depth of its index (PHASE: its table), first stream, stream after the
        last, position of its partner (LEAF: whether a stream is guarded), LEAF: first group,
        group after the last, iterations to run at a time.
    records : ndarray of int64, (streams, 16)
        Address, step in the stream's leaf, log2 of that step (-1: no power of two), write, 0,
        operand, follows, and room for where the stream is.
    steps : ndarray of int64, (streams, depths)
        Address step per depth.
    values, limits : ndarray of int64, (guards,)
        Offset and limit.
    guard_steps : ndarray of int64, (guards, depths)
        Step of the guarded index per depth.
    guard_ranges : ndarray of int64, (streams, 2)
        First guard of a stream, guard after its last.
    groups : ndarray of int64, (groups, 8)
        Streams of a leaf that keep their distances: first and last + 1 position in `order`, the
        stream of lowest address, bytes from it to the highest, kind (streams of one kind may
        share a line in any order), and room for what the kernel finds.
    order : ndarray of int64, (streams,)
        Streams by leaf, group and address.
    rows : ndarray of int64, (rows, 4)
        Phase tables after one another, as `cut_phases` fills them.
    tables : ndarray of int64, (tables,)
        First row of each.
    """

    code: np.ndarray
    records: np.ndarray
    steps: np.ndarray
    values: np.ndarray
    limits: np.ndarray
    guard_steps: np.ndarray
    guard_ranges: np.ndarray
    groups: np.ndarray
    order: np.ndarray
    rows: np.ndarray
    tables: np.ndarray


def flatten_tree(tree: Tree, line_bytes: int, sets: int) -> Program:
    """Flatten a tree of streams to arrays.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    line_bytes, sets : int
        Geometry of the cache.

    Returns
    -------
    Program
        Neighbouring streams outside a loop become a leaf of one iteration.
    """
    flat = _Flat(line_bytes=line_bytes, sets=sets)
    _flatten_body(tree, 0, flat)
    depths = max([len(stream.steps_bytes) for stream, _ in flat.streams], default=0) + 1
    rows: list[list[int]] = []
    ranges: list[list[int]] = []
    guards: list[Guard] = []
    for stream, depth in flat.streams:
        step = _pad(stream.steps_bytes, depths)[depth]
        log_step = step.bit_length() - 1 if step > 0 and step & (step - 1) == 0 else -1
        rows.append([stream.address, step, log_step, stream.write, 0, stream.operand,
                     stream.follows, *[0] * 9])
        ranges.append([len(guards), len(guards) + len(stream.guards)])
        guards += stream.guards
    return Program(
        code=_table(flat.code, 9), records=_table(rows, 16),
        steps=_table([_pad(stream.steps_bytes, depths) for stream, _ in flat.streams], depths),
        values=np.array([guard.offset for guard in guards], dtype=np.int64),
        limits=np.array([guard.limit for guard in guards], dtype=np.int64),
        guard_steps=_table([_pad(guard.steps, depths) for guard in guards], depths),
        guard_ranges=_table(ranges, 2), groups=_table(flat.groups, 8),
        order=np.array(flat.order, dtype=np.int64),
        rows=np.concatenate([np.zeros((0, 4), dtype=np.int64), *flat.phases]),
        tables=np.cumsum([0, *map(len, flat.phases)], dtype=np.int64))


@dataclass(slots=True)
class _Flat:
    """What flattening has made so far."""

    line_bytes: int
    sets: int
    code: list[list[int]] = field(default_factory=list)
    streams: list[tuple[Stream, int]] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    phases: list[np.ndarray] = field(default_factory=list)


def _flatten_body(body: Tree, depth: int, flat: _Flat) -> None:
    run: list[Stream] = []
    for part in body:
        if isinstance(part, Stream):
            run.append(part)
            continue
        _flatten_leaf(run, 1, depth, flat)
        run = []
        if part.rows is None:
            _flatten_loop(part.body, part.extent, depth, flat)
            continue
        start = len(flat.code)
        flat.code.append([PHASE, 0, len(flat.phases), 0, 0, 0, 0, 0, 0])
        flat.phases.append(part.rows)
        _flatten_loop(part.body, FULL, depth, flat)
        _flatten_loop(part.middle, MIDDLE, depth, flat)
        flat.code.append([PHASE_END, 0, 0, 0, 0, start, 0, 0, 0])
    _flatten_leaf(run, 1, depth, flat)


def _flatten_loop(body: Tree, extent: int, depth: int, flat: _Flat) -> None:
    leaf = [inner for inner in body if isinstance(inner, Stream)]
    if len(leaf) == len(body):
        _flatten_leaf(leaf, extent, depth, flat)
        return
    start, first = len(flat.code), len(flat.streams)
    flat.code.append([])
    _flatten_body(body, depth + 1, flat)
    last, end = len(flat.streams), len(flat.code)
    flat.code[start] = [LOOP, extent, depth, first, last, end, 0, 0, 0]
    flat.code.append([END, extent, depth, first, last, start, 0, 0, 0])


def _flatten_leaf(leaf: Sequence[Stream], extent: int, depth: int, flat: _Flat) -> None:
    if not leaf:
        return
    first, first_group = len(flat.streams), len(flat.groups)
    flat.streams.extend((stream, depth) for stream in leaf)
    _group_streams(leaf, first, flat)
    guarded = any(stream.guards for stream in leaf)
    steps = [abs(stream.steps_bytes[depth]) if depth < len(stream.steps_bytes) else 0
             for stream in leaf]
    flat.code.append([LEAF, extent, depth, first, len(flat.streams), guarded, first_group,
                      len(flat.groups), _choose_chunk(steps, flat.line_bytes, flat.sets)])


def _choose_chunk(steps_bytes: list[int], line_bytes: int, sets: int) -> int:
    """Iterations over which streams of a leaf stay in a quarter of the sets, if that is a few.

    Where it is not, all iterations, or one when most streams enter a line in each.
    """
    chunk = sets * line_bytes // 4 // max(1, *steps_bytes)
    if chunk >= 4 and sets >= 8:
        return chunk
    leaping = sum(step >= line_bytes for step in steps_bytes)
    return 1 if 2 * leaping > len(steps_bytes) else EVER


def _group_streams(leaf: Sequence[Stream], first: int, flat: _Flat) -> None:
    """Group the streams of a leaf that move alike and lie within NEAR_BYTES of a neighbour."""
    alike: dict[tuple[int, bool, tuple[int, ...]], list[tuple[int, int]]] = {}
    for place, stream in enumerate(leaf):
        key = (stream.operand, stream.write, stream.steps_bytes)
        alike.setdefault(key, []).append((stream.address, first + place))
    for (operand, write, _), members in alike.items():
        members.sort()
        start = 0
        for end in range(1, len(members) + 1):
            if end < len(members) and members[end][0] - members[end - 1][0] <= NEAR_BYTES:
                continue
            low_address, lead = members[start]
            flat.groups.append([len(flat.order), len(flat.order) + end - start, lead,
                                members[end - 1][0] - low_address, 2 * operand + write, 0, 0, 0])
            flat.order.extend(place for _, place in members[start:end])
            start = end


def _pad(steps: tuple[int, ...], depths: int) -> list[int]:
    return [*steps, *[0] * (depths - len(steps))]


def _table(rows: list[list[int]], columns: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)
