"""Sketches: flattened loops as they are for any number of sets, and put into larger ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.nest.blocks import EVER

STREAM, TOLD, MOVER = range(3)
"""What a record is of: a stream, a block or piece of one, a mover of passes."""

LEAF = 2
"""Operation whose sixth word is no place in the code."""

CHUNK_WORD, PARTNER_WORD, PLACE_WORDS = 8, 5, (3, 4, 6, 7)
"""Words of an operation: iterations tried at once, where its loop begins or ends, records."""

GUARD_WORDS, INNER_WORD = (13, 14), 15
"""Words of a record."""

Numbers = tuple[int, int, int, int]
"""Operations, records, guards and inner loops before something."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """Flattened loops, their parts numbered from zero.

    Parameters
    ----------
    code : ndarray of int64, (operations, 9)
        As if all blocks were tried.
    paces : ndarray of float64, (operations, 5)
        Fields of their `Pace`.
    records : ndarray of int64, (records, 16)
        Of streams, pieces, blocks and movers.
    kinds : ndarray of int64, (records,)
        `STREAM`, `TOLD`, `MOVER`.
    steps : ndarray of int64, (records, loops)
        Address steps, outermost first.
    guards : ndarray of int64, (guards, 2 + loops)
        Offset, limit, steps.
    inner : ndarray of int64, (inner loops, 2)
        Extent and step of those of movers.
    enough_sets : int
        Sets from which on it is the same.
    """

    code: np.ndarray
    paces: np.ndarray
    records: np.ndarray
    kinds: np.ndarray
    steps: np.ndarray
    guards: np.ndarray
    inner: np.ndarray
    enough_sets: int

    @property
    def numbers(self) -> Numbers:
        """How many parts it has."""
        return len(self.code), len(self.records), len(self.guards), len(self.inner)


def settle_sketch(sketch: Sketch, sets: int) -> Sketch:
    """Say how many iterations are tried at once, and leave out blocks that are not tried.

    Parameters
    ----------
    sketch : Sketch
        Of at most as many `enough_sets`.
    sets : int
        Of the cache.

    Returns
    -------
    Sketch
        For that many.
    """
    code = sketch.code.copy()
    lines, apart, entered, share, more = sketch.paces.T
    (paced,) = entered.nonzero()
    tried = (share[paced] * sets - apart[paced]) / entered[paced]
    code[paced, CHUNK_WORD] = np.maximum(1, tried.astype(np.int64) + more[paced].astype(np.int64))
    (over,) = (lines > 3 * sets // 2).nonzero()
    records, kinds, steps = sketch.records.copy(), sketch.kinds, sketch.steps
    if len(over):
        code[over, CHUNK_WORD] = EVER
        kept = np.ones(len(records), dtype=bool)
        for last, first in code[over][:, [3, 6]].tolist():
            kept[first:last] = False
        places = np.concatenate([[0], np.cumsum(kept)])
        code[:, PLACE_WORDS] = places[code[:, PLACE_WORDS]]
        records, kinds, steps = records[kept], kinds[kept], steps[kept]
    return Sketch(code=code, paces=sketch.paces, records=records, kinds=kinds, steps=steps,
                  guards=sketch.guards, inner=sketch.inner, enough_sets=sketch.enough_sets)


def insert_sketches(sketch: Sketch, others: Sequence[tuple[Sketch, Numbers, Numbers]]) -> Sketch:
    """Put sketches into one that was numbered with room for them.

    Parameters
    ----------
    sketch : Sketch
        The parts around.
    others : sequence of (Sketch, Numbers, Numbers)
        In order; parts of `sketch` before each, and parts of all.

    Returns
    -------
    Sketch
        All of them.
    """
    if not others:
        return sketch
    if len(others) == 1 and not len(sketch.code):
        return others[0][0]
    at = list(zip(*[own for _, own, _ in others], strict=True))
    moved = list(zip(*[every for *_, every in others], strict=True))
    sizes = list(zip(*[other.numbers for other, *_ in others], strict=True))
    code = _insert(sketch.code, [other.code for other, *_ in others], at[0])
    shift = _spread(moved[1], sizes[0], at[0], len(sketch.code))
    for word in PLACE_WORDS:
        code[:, word] += shift
    code[:, PARTNER_WORD] += (_spread(moved[0], sizes[0], at[0], len(sketch.code))
                              * (code[:, 0] != LEAF))
    records = _insert(sketch.records, [other.records for other, *_ in others], at[1])
    kinds = _insert(sketch.kinds, [other.kinds for other, *_ in others], at[1])
    if any(moved[2]) or any(sizes[2]):
        shift = _spread(moved[2], sizes[1], at[1], len(sketch.records))
        for word in GUARD_WORDS:
            records[:, word] += shift
    if any(moved[3]):
        records[:, INNER_WORD] += (_spread(moved[3], sizes[1], at[1], len(sketch.records))
                                   * (kinds == MOVER))
    return Sketch(
        code=code, records=records, kinds=kinds,
        paces=_insert(sketch.paces, [other.paces for other, *_ in others], at[0]),
        steps=_insert(sketch.steps, [other.steps for other, *_ in others], at[1]),
        guards=_insert(sketch.guards, [other.guards for other, *_ in others], at[2]),
        inner=_insert(sketch.inner, [other.inner for other, *_ in others], at[3]),
        enough_sets=max([sketch.enough_sets, *[other.enough_sets for other, *_ in others]]))


def _insert(rows: np.ndarray, others: Sequence[np.ndarray], at: Sequence[int]) -> np.ndarray:
    """Insert rows before those of some numbers; narrower ones end in zeros."""
    parts, done = [], 0
    for other, before in zip(others, at, strict=True):
        parts += [rows[done:before], other]
        done = before
    parts.append(rows[done:])
    if len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    made = np.zeros((sum(map(len, parts)), max([part.shape[1] for part in parts])), rows.dtype)
    first = 0
    for part in parts:
        last = first + len(part)
        made[first:last, :part.shape[1]] = part
        first = last
    return made


def _spread(numbers: Sequence[int], sizes: Sequence[int], at: Sequence[int],
            rows: int) -> np.ndarray:
    """Return a number for each row inserted, zero for those around."""
    values, counts, done = [], [], 0
    for number, size, before in zip(numbers, sizes, at, strict=True):
        values += [0, number]
        counts += [before - done, size]
        done = before
    return np.repeat([*values, 0], [*counts, rows - done])
