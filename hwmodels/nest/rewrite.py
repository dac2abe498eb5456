"""Rewriting trees of streams into ones that touch less and come to the same.

The rewrites here hold for every cache policy: they drop only touches of the line the set touched
last, or change how the same touches in the same order are written down. Guards are left to the
kernel, which works out once a loop in which turns each stream is made.
"""

from __future__ import annotations

from functools import lru_cache

from hwmodels.kernel import Guard
from hwmodels.nest.stream import Repeat, Stream, Tree

CROWD = 6
"""Streams of an innermost loop beyond which they often meet in a set."""

MOST_UNITS = 1 << 12

UNROLL_STREAMS = 40
"""Streams a loop body may have after its inner loops are unrolled into it."""


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
        parts.append(_unroll(Repeat(extent=part.extent, body=body), line_bytes, stores_settle,
                             depth))
    return _drop_repeats(tuple(parts), line_bytes, stores_settle)


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
    flat = Repeat(extent=repeat.extent, body=_drop_repeats(tuple(body), line_bytes, stores_settle))
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
