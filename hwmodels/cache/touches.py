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
from hwmodels.kernels.cache_words import CODE, CODE_END, RECORD
from hwmodels.nest.flattening import flatten_tree
from hwmodels.nest.stream import check_nests, make_tree

PIECE = 1 << 18
"""Touches given to a visitor at a time, but for those of one iteration."""

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

    program = _flatten_nests(tuple(nests), tuple(operands), line_bytes).copy()
    cursor = np.array([program[CODE], 0, 0])
    accesses, lines, marks = np.empty((3, PIECE + len(program) // int(RECORD)), dtype=np.int64)
    while cursor[0] < program[CODE_END]:
        count = touch_stream.fill_touches(program, line_bytes.bit_length() - 1, cursor, accesses,
                                          lines, marks)
        yield accesses[:count], lines[:count], marks[:count]


@lru_cache(maxsize=512)
def _flatten_nests(nests: Nests, operands: Operands, line_bytes: int) -> np.ndarray:
    """Return nests as a program that makes every touch."""
    check_nests(nests, [operand.name for operand in operands])
    return flatten_tree(make_tree(nests, operands, (True,) * len(operands), line_bytes), 0,
                        in_order=True)
