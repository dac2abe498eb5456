"""Rewriting trees of streams into ones that touch less and come to the same.

The rewrites here hold for every cache policy: they drop only touches of the line the set touched
last, or change how the same touches in the same order are written down. Guards are left to the
kernel, which works out once a loop in which turns each stream is made.
"""

from __future__ import annotations

from functools import lru_cache

from hwmodels.kernel import Guard
from hwmodels.nest.stream import Repeat, Stream, Tree

MOST_UNITS = 1 << 12

UNROLL_STREAMS = 30
"""Streams a body may have once its inner loops are unrolled: more are slower (measured)."""


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
        else:
            flat = _drop_repeats(_unroll(body, depth + 1), line_bytes, stores_settle)
            parts.append(Repeat(extent=part.extent, body=flat))
    return _drop_repeats(tuple(parts), line_bytes, stores_settle)


def _unroll(body: Tree, depth: int) -> Tree:
    """Unroll the loops of a body, at a depth, where nothing but a few streams is left."""
    loops = [part for part in body if isinstance(part, Repeat)]
    if (any(isinstance(inner, Repeat) for loop in loops for inner in loop.body)
            or len(body) + sum(loop.extent * len(loop.body) - 1 for loop in loops)
            > UNROLL_STREAMS):
        return body
    flat: list[Repeat | Stream] = []
    for part in body:
        if isinstance(part, Stream):
            flat.append(part)
        else:
            for index in range(part.extent):
                flat += fix_index(part.body, depth, index)
    return tuple(flat) or body


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
