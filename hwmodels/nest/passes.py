"""Passes: a loop whose iterations mostly repeat what the iteration before them did.

In a set where every access of an iteration falls into the line it fell into an iteration earlier,
and which begins in a state it began with before, the iteration repeats its misses, evictions and
final state. Which sets an iteration does see differently follows from what moves: the accesses
whose address the loop steps, and of those only the ones that come into another line.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from functools import lru_cache

from hwmodels.board.facts import Cache
from hwmodels.nest.blocks import count_lines, join_runs, walk_extents
from hwmodels.nest.rewrite import estimate_cost, line_unit
from hwmodels.nest.stream import MOST_LOOPS, Repeat, Stream, Tree

MIN_EXTENT = 4
"""Iterations below which nothing repeats often enough."""

MAX_MOVERS = 64
"""Movers beyond which looking for changes costs too much."""

MAX_DIMENSIONS = 2
"""Inner loops a mover's accesses may be spread over."""

MOST_PIECES = 4096
"""Pieces an iteration touches beyond which they are not counted."""

MAX_LIVE = 0.8
"""Share of the sets an iteration may see differently or settle."""

SET_NS = 25
"""What keeping books on a set costs an iteration, in nanoseconds, as measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """Accesses that a loop moves.

    Parameters
    ----------
    operand : int
        Position of their operand in the kernel.
    address : int
        Lowest one at index zero of every loop.
    steps_bytes : tuple of int
        Address step of each loop around and of the loop itself, outermost first.
    reach_bytes : int
        Of a run of accesses from there: it is seen differently in every iteration.
    unit_bytes : int
        Largest power of two, up to the line, that divides every inner step: accesses enter a
        line together only where they enter a unit.
    inner : tuple of (int, int)
        Extent and step of inner loops the runs are spread over.
    """

    operand: int
    address: int
    steps_bytes: tuple[int, ...]
    reach_bytes: int
    unit_bytes: int
    inner: tuple[tuple[int, int], ...] = ()


def mark_passes(tree: Tree, cache: Cache, depth: int = 0, room: int = 0) -> Tree:
    """Mark the outermost loops worth running as passes.

    Parameters
    ----------
    tree : tuple of Repeat or Stream
        Compact.
    cache : Cache
        Sets on their own (no LFSR, no counter of all); stores allocate, or there are none.
    depth : int
        Loops around the tree.
    room : int
        Lines for which the cache has room, where a hit changes nothing: what is there costs nothing
        then, and a loop whose iteration touches no more is not marked. Zero: hits change something.

    Returns
    -------
    tuple of Repeat or Stream
        The same tree, `passes` set where it pays.
    """
    parts: list[Repeat | Stream] = []
    for part in tree:
        if isinstance(part, Repeat):
            if _pays(part, cache, depth) and (
                    not room or _count_turn(part, depth, cache.line_bytes) > room):
                part = _as_passes(part)
            elif (body := mark_passes(part.body, cache, depth + 1, room)) is not part.body:
                part = replace(part, body=body)
        parts.append(part)
    return tree if all(map(operator.is_, parts, tree)) else tuple(parts)


@lru_cache(maxsize=MOST_LOOPS)
def _as_passes(loop: Repeat) -> Repeat:
    """Return a loop marked, the same one each time: what is known of it is found by that."""
    return replace(loop, passes=True)


@lru_cache(maxsize=MOST_LOOPS)
def _find_loop_movers(loop: Repeat, depth: int, line_bytes: int) -> list[Mover] | None:
    """Return what a loop moves: it is asked for again under other sizes of cache."""
    return find_movers(loop.body, depth, line_bytes)


def find_movers(body: Tree, depth: int, line_bytes: int) -> list[Mover] | None:
    """Find what a loop moves.

    Parameters
    ----------
    body : tuple of Repeat or Stream
        The loop's body.
    depth : int
        Of the loop.
    line_bytes : int
        Of the cache.

    Returns
    -------
    list of Mover or None
        None where guards make it uncertain, or there are too many.
    """
    found: dict[tuple[int, tuple[int, ...], int, tuple[tuple[int, int], ...]],
                set[tuple[int, int]]] = {}
    for stream, extents in walk_extents(body, ()):
        if stream.guards:
            return None
        if stream.steps_bytes[depth]:
            low, reach, unit, inner = _spread(stream, depth, extents, line_bytes)
            if len(inner) > MAX_DIMENSIONS:
                return None
            found.setdefault((stream.operand, stream.steps_bytes[:depth + 1], unit, inner),
                             set()).add((low, reach))
    movers = [Mover(operand=operand, address=low, steps_bytes=steps, reach_bytes=reach,
                    unit_bytes=unit, inner=inner)
              for (operand, steps, unit, inner), spans in found.items()
              for low, reach in _join(spans, unit > 0, line_bytes)]
    return movers if len(movers) <= MAX_MOVERS else None


def _spread(stream: Stream, depth: int, extents: tuple[int, ...], line_bytes: int,
            ) -> tuple[int, int, int, tuple[tuple[int, int], ...]]:
    """Lowest address, reach, unit and inner loops of what a stream touches in an iteration."""
    low, reach, inner = stream.address, 0, []
    far = abs(stream.steps_bytes[depth]) >= line_bytes
    for step, extent in sorted(zip(stream.steps_bytes[depth + 1:], extents, strict=True),
                               key=lambda pair: abs(pair[0])):
        if step < 0:
            low += step * (extent - 1)
        if extent == 1 or not step:
            continue
        size = abs(step)
        if size <= reach + line_bytes if far else size < line_bytes or size <= reach:
            reach += size * (extent - 1)
        else:
            inner.append((extent, size))
    unit = 0 if reach or far else line_unit(tuple([step for _, step in inner]), line_bytes)
    return low, reach, unit, tuple(inner)


def _join(spans: set[tuple[int, int]], apart: bool, line_bytes: int) -> list[list[int]]:
    """Join runs that no line lies between, unless they are to be kept apart."""
    joined: list[list[int]] = []
    for low, reach in sorted(spans):
        if not apart and joined and low <= sum(joined[-1]) + line_bytes:
            joined[-1][1] = max(joined[-1][1], low + reach - joined[-1][0])
        else:
            joined.append([low, reach])
    return joined


def _pays(repeat: Repeat, cache: Cache, depth: int) -> bool:
    """Whether an iteration leaves most sets as the one before did, and costs enough."""
    inner = [part for part in repeat.body if isinstance(part, Repeat)]
    if repeat.extent < MIN_EXTENT or not inner:
        return False
    movers = _find_loop_movers(repeat, depth, cache.line_bytes)
    if movers is None:
        return False
    live = 2 * sum(_share_changed(mover, cache) for mover in movers) + 2 / repeat.extent
    return live <= MAX_LIVE and (
        _estimate_turn(repeat, cache.line_bytes) * (1 - live) > SET_NS * cache.sets)


@lru_cache(maxsize=MOST_LOOPS)
def _estimate_turn(loop: Repeat, line_bytes: int) -> float:
    """Return what an iteration costs."""
    return estimate_cost(loop.body, line_bytes)


@lru_cache(maxsize=MOST_LOOPS)
def _count_turn(loop: Repeat, depth: int, line_bytes: int) -> float:
    """Return how many lines an iteration touches; infinite where that is not known."""
    runs = join_runs([(stream, 0, extents) for stream, extents in walk_extents(loop.body, ())],
                     depth, line_bytes, MOST_PIECES)
    return count_lines(runs, line_bytes) if runs else math.inf


def _share_changed(mover: Mover, cache: Cache) -> float:
    """Share of the sets that see a mover's accesses differently, on average."""
    step = abs(mover.steps_bytes[-1])
    lines = 2 * (mover.reach_bytes // cache.line_bytes + 1)
    for extent, _ in mover.inner:
        lines *= extent
    often = min(1.0, step / mover.unit_bytes) if mover.unit_bytes else 1.0
    return often * min(1.0, lines / cache.sets)
