"""Spans: byte ranges an iteration of a loop may touch, by which loops are cut into phases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.frozen import entity
from hwmodels.kernel import Operand
from hwmodels.nest.blocks import join_spans, spread_steps, walk_extents
from hwmodels.nest.stream import MOST_LOOPS, Repeat, find_base

MAX_SPANS = 256
"""Pieces of address range kept apart per loop; beyond, they are covered by fewer, larger ones."""


@entity
class Spans:
    """Byte ranges that together cover every touch of an iteration.

    Parameters
    ----------
    table : ndarray of int64, (spans, 3)
        First and last byte with the outer indices zero, from where their operand begins, and the
        place of that among those used.
    steps : ndarray of int64, (spans, loops)
        Step per loop from the outermost.
    lines
        Lines between the first and the last byte of each, all together.
    """

    table: np.ndarray
    steps: np.ndarray
    used: tuple[int, ...]
    lines: int


@lru_cache(maxsize=MOST_LOOPS)
def find_spans(loop: Repeat, depth: int, line_bytes: int) -> Spans:
    """Find the byte ranges one iteration of a loop may touch.

    Parameters
    ----------
    loop
        Its index and those of the loops around are left open.
    line_bytes
        Gaps shorter than a line are covered.

    Returns
    -------
    Spans
        Kept: nobody writes to its arrays.
    """
    found: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for stream, extents in walk_extents(loop.body, ()):
        starts, reach = spread_steps(stream.steps_bytes[depth + 1:], extents, line_bytes,
                                     MAX_SPANS, covers=True)
        found.setdefault((stream.operand, stream.steps_bytes[:depth + 1]), []).extend(
            [(stream.address + start, stream.address + start + reach) for start in starts])
    used = tuple(sorted({operand for operand, _ in found}))
    table: list[tuple[int, int, int]] = []
    steps: list[tuple[int, ...]] = []
    for (operand, moves), spans in sorted(found.items()):
        joined = join_spans(spans, line_bytes)
        table += [(first, last, used.index(operand)) for first, last in joined]
        steps += [moves] * len(joined)
    return Spans(table=np.array(table, dtype=np.int64), steps=np.array(steps, dtype=np.int64),
                 used=used, lines=sum([(last - first) // line_bytes for first, last, _ in table]))


def cut_phases(spans: Spans, cache: Cache, operands: Sequence[Operand],
               extents: tuple[int, ...], room: int) -> np.ndarray | None:
    """Cut a loop into phases.

    Parameters
    ----------
    spans
        Of an iteration.
    operands
        What is touched, where it is.
    extents
        Of the loops around and the loop itself.
    room
        Rows the table may have.

    Returns
    -------
    ndarray of int64, (rows, 4), or None
        Of `hwmodels.kernels.cache_phases`; None where that does not fit.
    """
    from hwmodels.kernels.compiled import CUT_PHASES

    shift = cache.line_bytes.bit_length() - 1
    windows, lines = [], 0
    for number in spans.used:
        operand = operands[number]
        first = operand.address >> shift
        last = (operand.address + max(1, operand.size_bytes) - 1) >> shift
        windows.append((first, last, lines))
        lines += last - first + 1
    bases = np.array([find_base(operands[number], cache.line_bytes) for number in spans.used],
                     dtype=np.int64)
    table = spans.table.copy()
    table[:, :2] += bases[table[:, 2], None]
    rows = np.zeros((room + 2, 4), dtype=np.int64)
    zeros = [np.zeros(size, dtype=np.int64) for size in (
        len(extents), len(table), cache.sets, lines + 1)]
    filled = CUT_PHASES(table, spans.steps, np.array(windows, dtype=np.int64),
                        np.array(extents, dtype=np.int64), shift, cache.sets, cache.ways, rows,
                        *zeros)
    return rows[:filled].copy() if filled > 0 else None
