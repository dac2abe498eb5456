"""Phases: under LRU, what fits the cache need be touched twice only.

While no set sees more distinct lines than it has ways, every touch of a line but its first is a
hit, and what the cache holds afterwards follows from the order of first and of last touches. A
stream that a loop does not move makes the same touches in every iteration; first and last touches
are then in the loop's first and last iteration, and those in between may be omitted. The rewrite
leaves them out of the loop that is cut into phases and of every loop inside it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from hwmodels.board.facts import Cache
from hwmodels.frozen import entity
from hwmodels.kernel import Operand
from hwmodels.nest.rewrite import (
    class_of_lines,
    compact_tree,
    estimate_cost,
    fix_index,
    start_at,
    walk_streams,
)
from hwmodels.nest.skipping import Skipped, find_streaming, skip_rows
from hwmodels.nest.spans import cut_phases, find_spans
from hwmodels.nest.stream import MOST_LOOPS, Repeat, Stream, Tree, moves_stream

ROUND_STREAMS = 24
"""Streams an innermost loop may become when it is written out round by round."""

PLAIN = 2
"""Of a row, as the kernel has it: its iterations are in no phase."""

PAYS = 0.5
"""Share of its cost at which a loop is cut that has such: what is inside of it then is not."""

MOST_ROWS = 1 << 20
"""Rows of a table that phases may be omitted from."""


@entity
class Peeled:
    """What a loop is in phases, whatever the cache and wherever the operands are.

    Parameters
    ----------
    full, middle : tuple of Repeat or Stream
        Body of the first and the last iteration of a phase, and of those between.
    plain_ns, full_ns, middle_ns
        Estimated cost of the body as it is, and of these.
    """

    full: Tree
    middle: Tree
    plain_ns: float
    full_ns: float
    middle_ns: float


def cut_tree(tree: Tree, cache: Cache, operands: Sequence[Operand],
             around: tuple[int, ...] = ()) -> Tree:
    """Run loops phase by phase wherever that is exact and cheaper.

    Parameters
    ----------
    cache
        LRU; stores allocate, or there are none.
    operands
        What the streams touch, where it is; their addresses are from `find_base` on.
    around
        Extents of the loops around the tree.

    Returns
    -------
    tuple of Repeat or Stream
        Same misses, evictions, write-backs and final state.
    """
    parts: list[Repeat | Stream] = []
    for part in tree:
        if not isinstance(part, Repeat) or all(isinstance(inner, Stream) for inner in part.body):
            parts.append(part)
            continue
        cut = _cut_loop(part, cache, operands, around)
        if cut is None:
            body = cut_tree(part.body, cache, operands, (*around, part.extent))
            cut = part if body is part.body else replace(part, body=body)
        parts.append(cut)
    return tree if all(map(operator.is_, parts, tree)) else tuple(parts)


def _cut_loop(repeat: Repeat, cache: Cache, operands: Sequence[Operand],
              around: tuple[int, ...]) -> Repeat | None:
    """Cut one loop into phases; None where it does not fit or does not pay."""
    spans = find_spans(repeat, len(around), cache.line_bytes)
    if spans.lines > cache.sets * cache.ways:
        return None
    peeled = peel_loop(repeat, len(around), cache.line_bytes)
    extents = (*around, repeat.extent)
    iterations = math.prod(extents)
    # Rows of the table beyond which cutting costs more than it saves, if none is omitted.
    room = int(min((peeled.plain_ns - peeled.middle_ns) * iterations
                   / (peeled.full_ns - peeled.middle_ns + 8), 2 * iterations))
    streaming = find_streaming(repeat, cache, operands, extents)
    if streaming:
        room = min(2 * iterations, MOST_ROWS)
    rows = cut_phases(spans, cache, operands, extents, room) if room >= 1 else None
    skipped: Skipped = ()
    if rows is None:
        return None
    plain = rows[:, 3] & PLAIN > 0
    if streaming and not plain.any():
        rows, skipped = skip_rows(rows, streaming, cache, extents)
        plain = plain[:len(rows)]
    cost = ((len(rows) - plain.sum()) * (peeled.full_ns + 8)
            + rows[~plain, 2].sum() * peeled.middle_ns
            + rows[plain, 2].sum() * (peeled.plain_ns + 8))
    if cost > peeled.plain_ns * iterations * (PAYS if plain.any() else 1):
        return None
    return Repeat(extent=repeat.extent, body=peeled.full, middle=peeled.middle, rows=rows,
                  skipped=skipped, plain=repeat.body if plain.any() else ())


def _drop_still(tree: Tree, depth: int) -> Tree:
    """Drop the streams that the loop at a depth does not move; what has none stays as it is."""
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Stream):
            if moves_stream(part, depth):
                parts.append(part)
        elif (body := _drop_still(part.body, depth)) is part.body:
            parts.append(part)
        elif body:
            parts.append(Repeat(extent=part.extent, body=body))
    return tree if len(parts) == len(tree) and all(map(operator.is_, parts, tree)) else tuple(parts)


@lru_cache(maxsize=MOST_LOOPS)
def peel_loop(loop: Repeat, depth: int, line_bytes: int) -> Peeled:
    """Leave out of the iterations of a loop what touches neither first nor last in a phase.

    Returns
    -------
    Peeled
        Kept.
    """
    full = _peel_body(loop, depth + 1, line_bytes)
    moved = _drop_still(loop.body, depth)
    middle = full if moved is loop.body else _peel(moved, depth + 1, line_bytes)
    return Peeled(full=full, middle=middle, plain_ns=estimate_cost(loop.body, line_bytes),
                  full_ns=estimate_cost(full, line_bytes),
                  middle_ns=estimate_cost(middle, line_bytes))


@lru_cache(maxsize=MOST_LOOPS)
def _peel_body(loop: Repeat, depth: int, line_bytes: int) -> Tree:
    """Return the body of a loop, peeled: loops inside are asked for again by those around."""
    return _peel(loop.body, depth, line_bytes)


def _peel(tree: Tree, depth: int, line_bytes: int) -> Tree:
    """Leave what a loop does not move out of its middle iterations, for all loops of a tree."""
    parts: list[Repeat | Stream] = []
    for part in tree:
        if not isinstance(part, Repeat) or all(isinstance(inner, Stream) for inner in part.body):
            parts.append(part)
            continue
        still = any(not moves_stream(stream, depth) for stream in walk_streams(part.body))
        if part.extent > 3 and still:
            body = _peel_body(part, depth + 1, line_bytes)
            parts += fix_index(body, depth, 0)
            middle = _drop_still(start_at(part.body, depth, 1), depth)
            if middle:
                parts.append(Repeat(extent=part.extent - 2,
                                    body=_peel(middle, depth + 1, line_bytes)))
            parts += fix_index(body, depth, part.extent - 1)
        else:
            parts.append(Repeat(extent=part.extent, body=_peel_body(part, depth + 1, line_bytes)))
    return compact_tree(_thin(tuple(parts), depth, line_bytes), line_bytes, True, depth)


def _thin(tree: Tree, depth: int, line_bytes: int) -> Tree:
    """Drop touches between the first and the last of a line, where that can be seen."""
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Repeat):
            body = _thin(part.body, depth + 1, line_bytes)
            parts += _line_rounds(replace(part, body=body), depth, line_bytes) or (
                replace(part, body=body),)
        else:
            parts.append(part)
    ends: dict[object, list[int]] = {}
    for place, part in enumerate(parts):
        if isinstance(part, Stream):
            ends.setdefault(class_of_lines(part, line_bytes, place), []).append(place)
    between = {place for places in ends.values() for place in places[1:-1]}
    return tuple(part for place, part in enumerate(parts) if place not in between)


def _line_rounds(repeat: Repeat, depth: int, line_bytes: int) -> Tree | None:
    """Write a loop as one round for each set of lines it is in, if that is known and short.

    Rounds in the same lines touch them in the same order; one stands for all of them.
    """
    streams = [part for part in repeat.body if isinstance(part, Stream)]
    turns = {0}
    if len(streams) < len(repeat.body):
        return None
    for stream in streams:
        step = stream.steps_bytes[depth]
        if (stream.guards or any(other % line_bytes for other in stream.steps_bytes[:depth])):
            return None
        address = stream.address % line_bytes
        last = address + step * (repeat.extent - 1)
        if step < 0 or last // line_bytes * len(streams) > ROUND_STREAMS:
            return None
        turns |= {-((address - line * line_bytes) // step)
                  for line in range(1, last // line_bytes + 1)}
    if len(turns) * len(streams) > ROUND_STREAMS:
        return None
    return tuple(part for turn in sorted(turns)
                 for part in fix_index(repeat.body, depth, turn))
