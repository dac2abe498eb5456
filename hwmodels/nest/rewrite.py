"""Rewriting trees of streams into ones that touch less and come to the same.

The rewrites here hold for every cache policy: they drop only touches of the line the set touched
last, or change how the same touches in the same order are written down.

Guards are resolved by splitting loops where padding begins and ends: their middle needs none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from hwmodels.kernel import Guard
from hwmodels.nest.stream import Repeat, Stream, Tree

CROWD = 6
"""Streams of an innermost loop beyond which they often meet in a set."""

MOST_UNITS = 1 << 12

UNROLL_STREAMS = 40
"""Streams a loop body may have after its inner loops are unrolled into it."""


def walk_streams(tree: Tree) -> Iterator[Stream]:
    """Yield the streams of a tree in program order."""
    for part in tree:
        if isinstance(part, Stream):
            yield part
        else:
            yield from walk_streams(part.body)


def map_streams(tree: Tree, change: Callable[[Stream], Stream | None]) -> Tree:
    """Change every stream; those changed to None go, and the loops they leave empty.

    Loops none of whose streams change stay the same ones.
    """
    parts: list[Repeat | Stream] = []
    for part in tree:
        changed: Repeat | Stream | None
        if isinstance(part, Stream):
            changed = change(part)
        else:
            body = map_streams(part.body, change)
            changed = (part if body is part.body
                       else Repeat(extent=part.extent, body=body) if body else None)
        if changed is not None:
            parts.append(changed)
    return tree if is_same(parts, tree) else tuple(parts)


def is_same(parts: Sequence[Repeat | Stream], tree: Tree) -> bool:
    """Whether parts are the very parts of a tree."""
    return len(parts) == len(tree) and all(map(operator.is_, parts, tree))


def fix_index(tree: Tree, depth: int, index: int) -> Tree:
    """Give one loop's index a value: the loop at `depth` is gone from every stream."""
    parts: list[Repeat | Stream] = []
    for part in tree:
        fixed: Repeat | Stream | None
        if isinstance(part, Stream):
            fixed = _fix_stream(part, depth, index)
        else:
            body = fix_index(part.body, depth, index)
            fixed = Repeat(extent=part.extent, body=body) if body else None
        if fixed is not None:
            parts.append(fixed)
    return tuple(parts)


def _fix_stream(stream: Stream, depth: int, index: int) -> Stream | None:
    steps, guards = stream.steps_bytes, []
    for guard in stream.guards:
        left = guard.steps[:depth] + guard.steps[depth + 1:]
        offset = guard.offset + guard.steps[depth] * index
        if any(left):
            guards.append(Guard(steps=left, offset=offset, limit=guard.limit))
        elif not 0 <= offset < guard.limit:
            return None
    return Stream(operand=stream.operand, write=stream.write, follows=stream.follows,
                  address=stream.address + steps[depth] * index,
                  steps_bytes=steps[:depth] + steps[depth + 1:],
                  guards=tuple(guards) if guards else ())


def start_at(tree: Tree, depth: int, index: int) -> Tree:
    """Count one loop's index from `index` instead of zero."""
    def shift(stream: Stream) -> Stream:
        step, guards = stream.steps_bytes[depth], stream.guards
        if not step and not guards:
            return stream
        return Stream(
            operand=stream.operand, write=stream.write, follows=stream.follows,
            address=stream.address + step * index, steps_bytes=stream.steps_bytes,
            guards=tuple([Guard(steps=guard.steps, limit=guard.limit,
                                offset=guard.offset + guard.steps[depth] * index)
                          for guard in guards]) if guards else ())
    return map_streams(tree, shift)


def estimate_cost(tree: Tree, line_bytes: int) -> float:
    """Estimate what simulating a tree costs, in nanoseconds.

    Notes
    -----
    Measured: 10 for a loop's turn or an innermost loop, 4 for a stream, 3 for each of its runs
    of accesses in one line; one too crowded to take its streams one by one costs 4 a stream
    each time one of them enters a line. Only choices between exact ways depend on this.
    """
    streams = sum(isinstance(part, Stream) for part in tree)
    cost = 10.0 + 7 * streams if streams else 0.0
    for part in tree:
        if isinstance(part, Repeat):
            cost += _repeat_cost(part, line_bytes)
    return cost


def _repeat_cost(repeat: Repeat, line_bytes: int) -> float:
    streams = [part for part in repeat.body if isinstance(part, Stream)]
    if len(streams) < len(repeat.body):
        return repeat.extent * (10 + estimate_cost(repeat.body, line_bytes))
    rates = {(stream.steps_bytes[-1], stream.address % line_bytes):
             min(1.0, abs(stream.steps_bytes[-1]) / line_bytes) for stream in streams}
    turns = repeat.extent - 1
    if len(streams) > CROWD:
        events = 1 + turns * min(1.0, sum(rates.values()))
        return 10 + 4 * len(streams) * (1 + events)
    runs = sum(min(1.0, abs(stream.steps_bytes[-1]) / line_bytes) for stream in streams)
    return 10 + 7 * len(streams) + 3 * turns * runs


def compact_tree(tree: Tree, line_bytes: int, stores_settle: bool, depth: int = 0) -> Tree:
    """Write a tree so that innermost loops are long and no stream only repeats its neighbour.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    stores_settle
        Whether a second store in a row to a line changes nothing (stores allocate).
    depth
        Loops around the tree.

    Returns
    -------
    tuple of Repeat or Stream
        The same touches in the same order, but for second touches in a row of one line.
    """
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Stream):
            parts.append(part)
            continue
        body = compact_tree(part.body, line_bytes, stores_settle, depth + 1)
        if part.extent == 1:
            parts += fix_index(body, depth, 0)
            continue
        repeat = _fuse(Repeat(extent=part.extent, body=body), depth)
        parts.append(_unroll(repeat, line_bytes, stores_settle, depth))
    return _drop_repeats(tuple(parts), line_bytes, stores_settle)


def _fuse(repeat: Repeat, depth: int) -> Repeat:
    """Make one loop of two where the outer one continues the inner one's steps."""
    if len(repeat.body) != 1 or isinstance(repeat.body[0], Stream):
        return repeat
    inner = repeat.body[0]
    for stream in walk_streams(inner.body):
        for steps in (stream.steps_bytes, *(guard.steps for guard in stream.guards)):
            if steps[depth] != inner.extent * steps[depth + 1]:
                return repeat
    return Repeat(extent=repeat.extent * inner.extent, body=fix_index(inner.body, depth, 0))


def _unroll(repeat: Repeat, line_bytes: int, stores_settle: bool, depth: int) -> Repeat:
    """Unroll all inner loops when that makes an innermost loop that is cheaper to run."""
    if all(isinstance(part, Stream) for part in repeat.body):
        return repeat
    size = sum(1 if isinstance(part, Stream) else part.extent * len(part.body)
               for part in repeat.body)
    if size > UNROLL_STREAMS:
        return repeat
    body: list[Repeat | Stream] = []
    for part in repeat.body:
        if isinstance(part, Stream):
            body.append(part)
        elif all(isinstance(inner, Stream) for inner in part.body):
            for index in range(part.extent):
                body += fix_index(part.body, depth + 1, index)
        else:
            return repeat
    flat = Repeat(extent=repeat.extent,
                  body=_drop_repeats(tuple(body), line_bytes, stores_settle))
    if not flat.body or _repeat_cost(flat, line_bytes) >= _repeat_cost(repeat, line_bytes):
        return repeat
    return flat


def _drop_repeats(body: Tree, line_bytes: int, stores_settle: bool) -> Tree:
    """Drop a stream that is always in the line of the one just before it."""
    kept: list[Repeat | Stream] = []
    for place, part in enumerate(body):
        before = kept[-1] if kept else None
        after = body[place + 1] if place + 1 < len(body) else None
        if (isinstance(part, Stream) and isinstance(before, Stream)
                and not (part.follows or before.follows)
                and not (isinstance(after, Stream) and after.follows)
                and (part.operand, part.write, part.steps_bytes, part.guards)
                == (before.operand, before.write, before.steps_bytes, before.guards)
                and (stores_settle or not part.write)):
            unit = line_unit(part.steps_bytes, line_bytes)
            if part.address // unit == before.address // unit:
                continue
        kept.append(part)
    return tuple(kept)


@lru_cache(maxsize=MOST_UNITS)
def line_unit(steps_bytes: tuple[int, ...], line_bytes: int) -> int:
    """Largest power of two, up to the line, that divides every step of a stream.

    Two streams with the same steps are always in the same line when their addresses agree
    above it.
    """
    return min([line_bytes, *[step & -step for step in steps_bytes if step]])


MAX_STREAMS = 600
"""Streams a tree may grow to by splitting; beyond, guards are left to the kernel."""


def split_guards(tree: Tree, around: tuple[int, ...] = ()) -> Tree:
    """Split loops at the indices where guards begin or cease to hold.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    around
        Extents of the loops around it.

    Returns
    -------
    tuple of Repeat or Stream
        The same touches in the same order; guards that always hold are gone, streams whose
        guards never do, too.
    """
    return _split_settled(settle_guards(tree, around), around)


def _split_settled(tree: Tree, around: tuple[int, ...]) -> Tree:
    depth = len(around)
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Stream) or _is_plain(part):
            parts.append(part)
            continue
        marks = _find_marks(part, around)
        for start, end in pairwise(marks):
            if end - start == 1:
                parts += split_guards(fix_index(part.body, depth, start), around)
                continue
            inside = (*around, end - start)
            body = (_split_settled(part.body, inside) if end - start == part.extent
                    else split_guards(start_at(part.body, depth, start), inside))
            if body:
                parts.append(Repeat(extent=end - start, body=body))
    return tuple(parts)


def _is_plain(loop: Repeat) -> bool:
    """Whether there is no guard in a loop, and none of its loops turns once."""
    return loop.extent > 1 and all(
        not part.guards if isinstance(part, Stream) else _is_plain(part) for part in loop.body)


def settle_guards(tree: Tree, around: tuple[int, ...]) -> Tree:
    """Drop guards that always hold and streams whose guards never do.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    around
        Extents of the loops around it.

    Returns
    -------
    tuple of Repeat or Stream
        The same touches.
    """
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Repeat):
            body = part.body if _is_plain(part) else settle_guards(
                part.body, (*around, part.extent))
            if body:
                parts.append(part if body is part.body
                             else Repeat(extent=part.extent, body=body))
            continue
        kept, made = [], True
        for guard in part.guards:
            low, high = _index_range(guard.steps, guard.offset, around)
            made &= high >= 0 and low < guard.limit
            if low < 0 or high >= guard.limit:
                kept.append(guard)
        if made:
            parts.append(replace(part, guards=tuple(kept)) if len(kept) < len(part.guards)
                         else part)
    return tree if is_same(parts, tree) else tuple(parts)


def _index_range(steps: tuple[int, ...], offset: int,
                 extents: tuple[int, ...]) -> tuple[int, int]:
    """Lowest and highest value of a guarded index."""
    low = high = offset
    for step, extent in zip(steps, extents, strict=True):
        if step > 0:
            high += step * (extent - 1)
        elif step:
            low += step * (extent - 1)
    return low, high


def _find_marks(repeat: Repeat, around: tuple[int, ...]) -> list[int]:
    """Return the indices at which a loop is to be split, its ends included."""
    depth, extent = len(around), repeat.extent
    marks: set[int] = set()
    streams = 0

    def visit(body: Tree, inner: tuple[int, ...]) -> None:
        nonlocal streams
        for part in body:
            if isinstance(part, Repeat):
                visit(part.body, (*inner, part.extent))
                continue
            streams += 1
            for guard in part.guards:
                step = guard.steps[depth]
                if not step:
                    continue
                low, high = _index_range(guard.steps[:depth] + guard.steps[depth + 1:],
                                         guard.offset, (*around, *inner))
                # The guard surely holds where 0 <= low + step * i and high + step * i < limit.
                if step > 0:
                    marks.add(-(low // step))
                    marks.add((guard.limit - 1 - high) // step + 1)
                else:
                    marks.add(-((guard.limit - 1 - high) // step))
                    marks.add(low // -step + 1)

    visit(repeat.body, ())
    inside = sorted(mark for mark in marks if 0 < mark < extent)
    if len(inside) >= extent // 2 + 2 or streams * (len(inside) + 1) > MAX_STREAMS:
        inside = []
    return [0, *inside, extent]
