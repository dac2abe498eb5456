"""Phases: under LRU, what fits the cache need be touched twice only.

While no set sees more distinct lines than it has ways, every touch of a line but its first is a
hit, and what the cache holds afterwards follows from the order of first and of last touches. A
stream that a loop does not move makes the same touches in every iteration; first and last touches
are then in the loop's first and last iteration, and those in between may be left out. The rewrite
leaves them out of the loop that is cut into phases and of every loop inside it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.kernel import Operand
from hwmodels.nest.passes import mark_passes
from hwmodels.nest.rewrite import (
    class_of_lines,
    compact_tree,
    estimate_cost,
    fix_index,
    map_streams,
    start_at,
    walk_streams,
)
from hwmodels.nest.skipping import Skipped, find_streaming, join_phases, skip_rows
from hwmodels.nest.stream import Repeat, Stream, Tree, find_base

MAX_SPANS = 256
"""Pieces of address range kept apart per loop; beyond, they are covered by fewer, larger ones."""

ROUND_STREAMS = 24
"""Streams a leaf may become when it is written out round by round."""

PLAIN = 2
"""Of a row, as the kernel has it: its iterations are in no phase."""

PAYS = 0.5
"""Share of its cost at which a loop is cut that has such: what is inside of it then is not."""

MOST_ROWS = 1 << 20
"""Rows of a table that phases may be left out of."""

Span = tuple[int, int, int, tuple[int, ...]]
"""First and last byte with the outer indices zero, operand, step per loop from the outermost."""


def cut_tree(tree: Tree, cache: Cache, operands: Sequence[Operand],
             around: tuple[int, ...] = (), skips: bool = True) -> Tree:
    """Run loops phase by phase wherever that is exact and cheaper.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        Compact.
    cache : Cache
        LRU; stores allocate, or there are none.
    operands : sequence of Operand
        What the streams touch, where it is; their addresses are from `find_base` on.
    around : tuple of int
        Extents of the loops around the tree.
    skips : bool
        Whether phases may be left out (`hwmodels.nest.skipping`).

    Returns
    -------
    tuple of Repeat or Stream
        Same misses, evictions, write-backs and final state.
    """
    parts: list[Repeat | Stream] = []
    for part in tree:
        if not isinstance(part, Repeat):
            parts.append(part)
            continue
        if all(isinstance(inner, Stream) for inner in part.body):
            parts.append(_thin_leaf(part, cache, operands, around) if skips else part)
            continue
        cut = _cut_loop(part, cache, operands, around, skips)
        parts.append(cut or _cut_body(part, cache, operands, around, skips))
    return tree if all(map(operator.is_, parts, tree)) else tuple(parts)


def _cut_body(part: Repeat, cache: Cache, operands: Sequence[Operand],
              around: tuple[int, ...], skips: bool) -> Repeat:
    """Cut what is inside of a loop, which is run as passes where that saves more."""
    inside = (*around, part.extent)
    if not part.passes:
        body = cut_tree(part.body, cache, operands, inside, skips)
        return part if body is part.body else replace(part, body=body)
    entries = int(np.prod(inside))
    body = cut_tree(part.body, cache, operands, inside, skips)
    if _leaves_most_out(body, entries):
        return replace(part, body=body, passes=False)
    if any(inner.skipped for inner in body if isinstance(inner, Repeat)):
        # What phases leave out is counted for all sets, and passes do not see all.
        body = cut_tree(part.body, cache, operands, inside, skips=False)
    if any(inner.rows is not None for inner in body if isinstance(inner, Repeat)):
        return replace(part, body=body)
    if all(isinstance(leaf, Stream) for inner in part.body if isinstance(inner, Repeat)
           for leaf in inner.body):
        return part
    body = mark_passes(part.body, cache, len(inside))
    return replace(part, body=cut_tree(body, cache, operands, inside, skips), passes=False)


def _cut_loop(repeat: Repeat, cache: Cache, operands: Sequence[Operand],
              around: tuple[int, ...], skips: bool) -> Repeat | None:
    """Cut one loop into phases; None where it does not fit or does not pay."""
    depth = len(around)
    spans = find_spans(repeat.body, depth, cache.line_bytes)
    lines = sum((last - first) // cache.line_bytes for first, last, _, _ in spans)
    if lines > cache.sets * cache.ways:
        return None
    full = _peel(repeat.body, depth + 1, cache.line_bytes)
    middle = _peel(_drop_still(repeat.body, depth), depth + 1, cache.line_bytes)
    plain_cost = estimate_cost(repeat.body, cache.line_bytes)
    full_cost = estimate_cost(full, cache.line_bytes)
    middle_cost = estimate_cost(middle, cache.line_bytes)
    extents = (*around, repeat.extent)
    iterations = int(np.prod(extents))
    # Rows of the table beyond which cutting costs more than it saves, if none is left out.
    room = int(min((plain_cost - middle_cost) * iterations / (full_cost - middle_cost + 8),
                   2 * iterations))
    streaming = find_streaming(repeat.body, cache, operands, extents) if skips else None
    if streaming:
        room = min(2 * iterations, MOST_ROWS)
    rows = _cut(spans, cache, operands, extents, room) if room >= 1 else None
    skipped: Skipped = ()
    if rows is None:
        return None
    plain = rows[:, 3] & PLAIN > 0
    if streaming and not plain.any():
        rows, skipped = skip_rows(rows, streaming, cache, extents)
        plain = plain[:len(rows)]
    cost = ((len(rows) - plain.sum()) * (full_cost + 8) + rows[~plain, 2].sum() * middle_cost
            + rows[plain, 2].sum() * (plain_cost + 8))
    if cost > plain_cost * iterations * (PAYS if plain.any() else 1):
        return None
    return Repeat(extent=repeat.extent, body=full, middle=middle, rows=rows, skipped=skipped,
                  plain=repeat.body if plain.any() else ())


def _leaves_most_out(body: Tree, entries: int) -> bool:
    """Whether two of three iterations of some loop are left out: then no passes save more."""
    return any(isinstance(part, Repeat) and part.rows is not None and bool(part.skipped)
               and 3 * (part.rows[:, 2].sum() + bool(part.body) * len(part.rows))
               < entries * part.extent for part in body)


def _thin_leaf(leaf: Repeat, cache: Cache, operands: Sequence[Operand],
               around: tuple[int, ...]) -> Repeat:
    """Leave iterations of a leaf out where what they miss is known, a quarter of them at least."""
    extents = (*around, leaf.extent)
    streaming = find_streaming(leaf.body, cache, operands, extents)
    if streaming is None:
        return leaf
    iterations = int(np.prod(extents))
    spans = find_spans(leaf.body, len(around), cache.line_bytes)
    rows = _cut(spans, cache, operands, extents, min(2 * iterations, MOST_ROWS))
    if rows is None or (rows[:, 3] & PLAIN).any():
        return leaf
    rows, skipped = skip_rows(rows, streaming, cache, extents)
    ranges = join_phases(rows)
    if not skipped or 4 * ranges[:, 2].sum() > 3 * iterations:
        return leaf
    return Repeat(extent=leaf.extent, body=(), middle=leaf.body, rows=ranges, skipped=skipped)


def _drop_still(tree: Tree, depth: int) -> Tree:
    """Drop the streams that the loop at a depth does not move."""
    return map_streams(tree, lambda stream: stream if _moves(stream, depth) else None)


def _moves(stream: Stream, depth: int) -> bool:
    return bool(stream.steps_bytes[depth]) or any(guard.steps[depth] for guard in stream.guards)


def _peel(tree: Tree, depth: int, line_bytes: int) -> Tree:
    """Leave what a loop does not move out of its middle iterations, for all loops of a tree."""
    parts: list[Repeat | Stream] = []
    for part in tree:
        if not isinstance(part, Repeat) or all(isinstance(inner, Stream) for inner in part.body):
            parts.append(part)
            continue
        still = any(not _moves(stream, depth) for stream in walk_streams(part.body))
        if part.extent > 3 and still:
            body = _peel(part.body, depth + 1, line_bytes)
            parts += fix_index(body, depth, 0)
            middle = _drop_still(start_at(part.body, depth, 1), depth)
            if middle:
                parts.append(Repeat(extent=part.extent - 2,
                                    body=_peel(middle, depth + 1, line_bytes)))
            parts += fix_index(body, depth, part.extent - 1)
        else:
            parts.append(Repeat(extent=part.extent, body=_peel(part.body, depth + 1, line_bytes)))
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
    """Write a leaf as one round for each set of lines it is in, if that is known and short.

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


def find_spans(tree: Tree, depth: int, line_bytes: int) -> list[Span]:
    """Find the byte ranges one iteration of the loop at `depth` may touch.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        The loop's body.
    depth : int
        Of the loop; its index and those of the loops around are left open.
    line_bytes : int
        Gaps shorter than a line are covered.

    Returns
    -------
    list of Span
        Together they cover every touch.
    """
    spans: set[Span] = set()

    def visit(tree: Tree, extents: tuple[int, ...]) -> None:
        for part in tree:
            if isinstance(part, Repeat):
                visit(part.body, (*extents, part.extent))
            elif isinstance(part, Stream):
                spans.update(_spans_of(part, depth, extents, line_bytes))

    visit(tree, ())
    merged: list[Span] = []
    for first, last, operand, steps in sorted(spans, key=lambda span: (span[2], span[3], span)):
        before = merged[-1] if merged else None
        if before and before[2:] == (operand, steps) and first <= before[1] + line_bytes:
            merged[-1] = (before[0], max(last, before[1]), operand, steps)
        else:
            merged.append((first, last, operand, steps))
    return merged


def _spans_of(stream: Stream, depth: int, extents: tuple[int, ...],
              line_bytes: int) -> list[Span]:
    """Ranges one stream covers over the loops inside, shortest steps first."""
    starts, length = [stream.address], 1
    inner = sorted(zip(map(abs, stream.steps_bytes[depth + 1:]), stream.steps_bytes[depth + 1:],
                       extents, strict=True))
    for size, step, extent in inner:
        if step < 0:
            starts = [start + step * (extent - 1) for start in starts]
        if size <= length + line_bytes or len(starts) * extent > MAX_SPANS:
            length += size * (extent - 1)
        else:
            starts = [start + size * turn for start in starts for turn in range(extent)]
    steps = stream.steps_bytes[:depth + 1]
    return [(start, start + length - 1, stream.operand, steps) for start in starts]


def _cut(spans: list[Span], cache: Cache, operands: Sequence[Operand],
         extents: tuple[int, ...], room: int) -> np.ndarray | None:
    from hwmodels.kernels.compiled import CUT_PHASES

    shift = cache.line_bytes.bit_length() - 1
    used = sorted({operand for _, _, operand, _ in spans})
    windows = np.zeros((len(used) + 1, 3), dtype=np.int64)
    for place, number in enumerate(used):
        operand = operands[number]
        first = operand.address >> shift
        last = (operand.address + max(1, operand.size_bytes) - 1) >> shift
        windows[place, :2] = first, last
        windows[place + 1, 2] = windows[place, 2] + last - first + 1
    starts = {number: find_base(operands[number], cache.line_bytes) for number in used}
    table = np.array([(first + starts[operand], last + starts[operand], used.index(operand))
                      for first, last, operand, _ in spans], dtype=np.int64)
    steps = np.array([steps for *_, steps in spans], dtype=np.int64)
    rows = np.zeros((room + 2, 4), dtype=np.int64)
    zeros = [np.zeros(size, dtype=np.int64) for size in (
        len(extents), len(spans), cache.sets, int(windows[-1, 2]) + 1)]
    filled = CUT_PHASES(table, steps, windows, np.array(extents, dtype=np.int64), shift,
                        cache.sets, cache.ways, rows, *zeros)
    return rows[:filled].copy() if filled > 0 else None
