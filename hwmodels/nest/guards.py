"""Guards resolved: loops split where padding begins and ends, so that their middle needs none."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hwmodels.kernel import Guard
from hwmodels.nest.rewrite import fix_index, start_at
from hwmodels.nest.stream import Repeat, Stream, Tree

MAX_STREAMS = 600
"""Streams a tree may grow to by splitting; beyond, guards are left to the kernel."""


def split_guards(tree: Tree, around: tuple[int, ...] = ()) -> Tree:
    """Split loops at the indices where guards begin or cease to hold.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    around : tuple of int
        Extents of the loops around it.

    Returns
    -------
    tuple of Repeat or Stream
        The same touches in the same order; guards that always hold are gone, streams whose
        guards never do, too.
    """
    tree = settle_guards(tree, around)
    depth = len(around)
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Stream):
            parts.append(part)
            continue
        marks = _find_marks(part, around)
        for start, end in pairwise(marks):
            body = start_at(part.body, depth, start) if start else part.body
            if end - start == 1:
                parts += split_guards(fix_index(body, depth, 0), around)
            else:
                body = split_guards(body, (*around, end - start))
                if body:
                    parts.append(Repeat(extent=end - start, body=body))
    return tuple(parts)


def settle_guards(tree: Tree, around: tuple[int, ...]) -> Tree:
    """Drop guards that always hold and streams whose guards never do.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        In program order.
    around : tuple of int
        Extents of the loops around it.

    Returns
    -------
    tuple of Repeat or Stream
        The same touches.
    """
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Repeat):
            body = settle_guards(part.body, (*around, part.extent))
            if body:
                parts.append(replace(part, body=body))
            continue
        kept, made = [], True
        for guard in part.guards:
            low, high = _guard_range(guard, around)
            made &= high >= 0 and low < guard.limit
            if low < 0 or high >= guard.limit:
                kept.append(guard)
        if made:
            parts.append(replace(part, guards=tuple(kept)) if len(kept) < len(part.guards)
                         else part)
    return tuple(parts)


def _guard_range(guard: Guard, extents: tuple[int, ...]) -> tuple[int, int]:
    """Lowest and highest value of a guarded index."""
    low = high = guard.offset
    for step, extent in zip(guard.steps, extents, strict=True):
        reach = step * (extent - 1)
        low, high = low + min(0, reach), high + max(0, reach)
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
                others = Guard(steps=guard.steps[:depth] + guard.steps[depth + 1:],
                               offset=guard.offset, limit=guard.limit)
                low, high = _guard_range(others, (*around, *inner))
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
