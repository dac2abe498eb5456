"""What a cache does touch by touch, where the order matters: two levels, bursts, pictures.

    state = visit_touches(cache, kernel.nests, kernel.operands, state, visit)

gives `visit` every touch in program order, in pieces; counts equal those of `simulate_nests`,
which is many times faster and knows no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.cache.running import describe_cache, number_owners
from hwmodels.cache.set_associative import CacheState
from hwmodels.frozen import entity
from hwmodels.kernel import Nest, Nests, Operand, Operands
from hwmodels.nest.stream import Repeat, Stream, Tree, check_nests, make_tree

PIECE = 1 << 18
"""Touches given to a visitor at a time."""

HIT, READ_FILL, WRITE_FILL, BYPASS = range(4)
"""What a touch met."""


@entity
class Touches:
    """A piece of what a kernel's accesses met, in order; arrays of int64, (touches,).

    Parameters
    ----------
    accesses
        Number of the access among the kernel's, from 0; one that straddles lines has several.
    lines
        Address over the line's bytes.
    operands
        Position of the operand in the kernel.
    found
        HIT, READ_FILL, WRITE_FILL or BYPASS; HIT where the operand is not looked up.
    left
        Line written back to make room: dirty ones only; -1 for none.
    left_owners
        Owner number of those, an index into `CacheState.owners`; meaningless elsewhere.
    """

    accesses: np.ndarray
    lines: np.ndarray
    operands: np.ndarray
    writes: np.ndarray
    found: np.ndarray
    left: np.ndarray
    left_owners: np.ndarray


def visit_touches(cache: Cache, nests: Sequence[Nest], operands: Sequence[Operand],
                  state: CacheState, visit: Callable[[Touches], None],
                  cached: Sequence[bool] | None = None) -> CacheState:
    """Run a kernel's accesses through a cache in order.

    Parameters
    ----------
    cache
        Geometry and policies.
    nests : sequence of Loop or Access
        In program order.
    state
        From `new_state` or the kernel before; not changed.
    visit
        Called with up to `PIECE` touches at a time.
    cached
        Per operand, whether its memory is looked up; by default all are. The others are given to
        the visitor as hits.

    Returns
    -------
    CacheState
        After the kernel.
    """
    from hwmodels.kernels import touch_stream

    looked_up = tuple(cached) if cached is not None else (True,) * len(operands)
    owners, numbers = number_owners(state.owners, operands, looked_up)
    geometry, words = describe_cache(cache), state.words.copy()
    for accesses, lines, marks in walk_touches(nests, operands, cache.line_bytes):
        found, left = np.empty_like(lines), np.empty_like(lines)
        touch_stream.meet_touches(len(lines), lines, marks, numbers, geometry, words, found, left)
        visit(Touches(
            accesses=accesses, lines=lines, operands=marks >> 1, writes=marks & 1 == 1, found=found,
            left=np.where((left >= 0) & (left & 1 == 1), left >> 8, -1),
            left_owners=(left >> 1) & 127))
    words.flags.writeable = False
    return replace(state, words=words, owners=owners)


def walk_touches(nests: Sequence[Nest], operands: Sequence[Operand],
                 line_bytes: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield touches in order, up to `PIECE` at a time, in arrays that are filled again.

    Yields
    ------
    accesses, lines, marks : ndarray of int64, (touches,)
        Number of the access, its line, operand << 1 | write.
    """
    from hwmodels.kernels import touch_stream

    walk = _plan_walk(tuple(nests), tuple(operands), line_bytes)
    cursor = np.array([0, 0, -1], dtype=np.int64)
    indices = np.zeros(walk.steps.shape[1], dtype=np.int64)
    accesses, lines, marks = np.empty((3, PIECE), dtype=np.int64)
    while cursor[0] < len(walk.code):
        count = touch_stream.fill_touches(
            walk.code, walk.streams, walk.steps, walk.values, walk.limits, walk.guard_steps,
            line_bytes.bit_length() - 1, cursor, indices, accesses, lines, marks)
        yield accesses[:count], lines[:count], marks[:count]


@entity
class _Walk:
    """Nests as the arrays `fill_touches` walks."""

    code: np.ndarray
    streams: np.ndarray
    steps: np.ndarray
    values: np.ndarray
    limits: np.ndarray
    guard_steps: np.ndarray


@lru_cache(maxsize=512)
def _plan_walk(nests: Nests, operands: Operands, line_bytes: int) -> _Walk:
    check_nests(nests, operands)
    tree = make_tree(nests, operands, (True,) * len(operands), line_bytes)
    code: list[list[int]] = []
    found: list[Stream] = []
    _flatten(tree, 0, code, found)
    depths = max([1, *(len(stream.steps_bytes) for stream in found)])
    guards = [guard for stream in found for guard in stream.guards]
    ends = np.cumsum([0, *(len(stream.guards) for stream in found)])
    return _Walk(
        code=_table(code, 4),
        streams=_table([[stream.address, stream.operand, stream.write, stream.follows,
                         int(ends[row]), int(ends[row + 1])]
                        for row, stream in enumerate(found)], 6),
        steps=_table([_pad(stream.steps_bytes, depths) for stream in found], depths),
        values=np.array([guard.offset for guard in guards], dtype=np.int64),
        limits=np.array([guard.limit for guard in guards], dtype=np.int64),
        guard_steps=_table([_pad(guard.steps, depths) for guard in guards], depths))


def _flatten(tree: Tree, depth: int, code: list[list[int]], found: list[Stream]) -> None:
    for part in tree:
        if isinstance(part, Repeat):
            start = len(code)
            code.append([0, part.extent, depth, 0])
            _flatten(part.body, depth + 1, code, found)
            code[start][3] = len(code)
            code.append([1, part.extent, depth, start])
        else:
            code.append([2, len(found), depth, 0])
            found.append(part)


def _pad(steps: tuple[int, ...], depths: int) -> list[int]:
    return [*steps, *[0] * (depths - len(steps))]


def _table(rows: list[list[int]], columns: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)
