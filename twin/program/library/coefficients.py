"""How often something happens in layers, as a sum of few terms of their shapes.

    y_i = sum_t c_t x_it,  c_t >= 0

Counts of a program's blocks are products of the extents of its loops, so of all sums that meet
what was seen the plainest is taken: few terms, coefficients of 1, small whole numbers or parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from operator import itemgetter

import numpy as np

from twin.runtimes.counted.learnt import Series
from twin.runtimes.counted.shapes import PLAIN

TOLERANCES = (1e-3, 1e-2, 5e-2)
"""Errors of a layer, relative, up to which sums count as equally good (assumed)."""

_STRANGE, _FURTHER, _LATER = 4.0, 2.0, 0.002
"""What a coefficient of a plain term that is no small whole number or part counts for in doublings;
what a further term does, and a later place among the terms (assumed)."""

_GRADE = 6.0
"""What each tolerance that is missed counts for: as much as a coefficient no loop has (assumed)."""

_FAR = 40.0
"""What such a coefficient of another term counts for, and an error beyond all tolerances for each
factor e (assumed)."""

_MOST_TERMS = 4
_WHOLE = 256
"""Whole numbers, and parts, up to this are small."""


def fit_series(terms: Sequence[Mapping[str, float]], counts: Sequence[float]) -> Series:
    """Return the plainest sum of terms that gives what was counted.

    Parameters
    ----------
    counts
        In each layer, >= 0.

    Returns
    -------
    tuple of (str, float)
        Terms and coefficients, all positive; none where nothing was counted.

    Notes
    -----
    Layers of equal terms are one, with their mean. Sums of n terms need more than n distinct
    layers, or plain coefficients. Errors are relative to each count, of nothing to the mean.
    """
    target = np.array(counts, dtype=float)
    if not target.any():
        return ()
    names = [name for name in dict.fromkeys(name for one in terms for name in one)
             if any(one.get(name, 0.0) for one in terms)]
    every = np.array([[one.get(name, 0.0) for name in names] for one in terms])
    _, first = np.unique(every, axis=1, return_index=True)  # Of equal terms the plainest.
    first.sort()
    names, every = [names[one] for one in first], every[:, first]
    shapes, place = np.unique(every, axis=0, return_inverse=True)
    often = np.bincount(place.ravel(), minlength=len(shapes))
    target = np.bincount(place.ravel(), weights=target, minlength=len(shapes)) / often
    scale = 1 / np.where(target > 0, target, target.mean())
    columns, aim = shapes * scale[:, None], target * scale
    best = _best_single(columns, aim, names)
    allowed = min(_MOST_TERMS, max(1, len(shapes)))
    if best[0][0] > _FURTHER and allowed > 1:
        best = min(best, _best_pair(columns, aim, names, strict=len(shapes) < 3), key=itemgetter(0))
    chosen = best
    while chosen[0][0] > _GRADE and 2 <= len(chosen[1]) < min(allowed, len(shapes) - 1):
        longer = _add_one(columns, aim, names, chosen[1])
        if longer is None or longer[0][0] >= chosen[0][0]:
            break
        chosen = longer
    return tuple((names[one], value) for one, value in chosen[1])


Found = tuple[tuple[float, float], tuple[tuple[int, float], ...]]
"""(how bad and strange, how strange), (term, coefficient) of each."""

_NOTHING: Found = ((math.inf, math.inf), ())


def _judge(columns: np.ndarray, aim: np.ndarray, names: Sequence[str],
           chosen: Sequence[tuple[int, float]]) -> Found:
    return _grade(np.abs(columns[:, [one for one, _ in chosen]] @ [
        value for _, value in chosen] - aim), names, chosen)


def _grade(error: np.ndarray, names: Sequence[str], chosen: Sequence[tuple[int, float]]) -> Found:
    worst = float(error.max())
    grade = next((place for place, most in enumerate(TOLERANCES) if worst <= most), len(TOLERANCES))
    strange = sum(_strangeness(value, names[one]) + _LATER * one for one, value in chosen)
    strange += _FURTHER * (len(chosen) - 1)
    if grade == len(TOLERANCES):  # None is close: the closer one.
        strange += _FAR * math.log1p(float(np.sqrt(np.mean(error**2))))
    return (_GRADE * grade + strange, strange), tuple(chosen)


def _strangeness(value: float, name: str) -> float:
    """Return how far a coefficient of a term is from what loops have."""
    for whole, more in ((value, 0.0), (1 / value, 0.5)):
        near = round(whole)
        if 1 <= near <= _WHOLE and abs(whole - near) <= 1e-3 * near:
            return math.log2(near) + (more if near > 1 else 0.0)
    return (_STRANGE if name in PLAIN else _FAR) + abs(math.log2(value))


def _best_single(columns: np.ndarray, aim: np.ndarray, names: Sequence[str]) -> Found:
    squares = np.einsum("ij,ij->j", columns, columns)
    values = [_round(value) if value > 0 else 0.0 for value in (
        columns.T @ aim / np.where(squares > 0, squares, 1)).tolist()]
    errors = np.ascontiguousarray(np.abs(columns * values - aim[:, None]).T)
    return min((_grade(errors[one], names, [(one, value)])
                for one, value in enumerate(values) if value > 0),
               key=itemgetter(0), default=_NOTHING)


def _best_pair(columns: np.ndarray, aim: np.ndarray, names: Sequence[str], *,
               strict: bool) -> Found:
    """Return the best sum of two; of two layers only with plain coefficients."""
    gram, side = columns.T @ columns, columns.T @ aim
    first, second = np.array(list(combinations(range(len(names)), 2)), dtype=int).reshape(-1, 2).T
    a, b, c = gram[first, first], gram[first, second], gram[second, second]
    det = a * c - b * b
    good = det > 1e-9 * a * c
    det = np.where(good, det, 1.0)
    one = (c * side[first] - b * side[second]) / det
    two = (a * side[second] - b * side[first]) / det
    good &= (one > 0) & (two > 0)
    error = np.abs(columns[:, first] * one + columns[:, second] * two - aim[:, None]).max(axis=0)
    error[~good] = np.inf
    found = []
    near = error <= max(TOLERANCES[0], float(error.min(initial=np.inf)) * 1.5)
    for place in np.flatnonzero(near & good)[:400].tolist():
        pair = [(int(first[place]), _round(float(one[place]))),
                (int(second[place]), _round(float(two[place])))]
        judged = _judge(columns, aim, names, pair)
        if strict and any(_strangeness(value, names[at]) >= _STRANGE for at, value in pair):
            judged = (judged[0][0] + 2 * _STRANGE, judged[0][1]), judged[1]
        found.append(judged)
    return min(found, key=itemgetter(0), default=_NOTHING)


def _add_one(columns: np.ndarray, aim: np.ndarray, names: Sequence[str],
             chosen: Sequence[tuple[int, float]]) -> Found | None:
    """Return a sum with the further term that helps most, all coefficients positive."""
    held = [one for one, _ in chosen]
    found = []
    for extra in range(len(names)):
        if extra in held:
            continue
        columns_of = columns[:, [*held, extra]]
        values, *_ = np.linalg.lstsq(columns_of, aim, rcond=None)
        if (values > 0).all():
            found.append(_judge(columns, aim, names, [
                (one, _round(float(value))) for one, value in
                zip([*held, extra], values, strict=True)]))
    return min(found, key=itemgetter(0), default=None)


def _round(value: float) -> float:
    """Return a coefficient that differs from a whole number or a part by rounding as that."""
    for power in (1, -1):
        near = round(value**power)
        if 1 <= near <= _WHOLE and abs(value**power - near) <= 1e-4 * near:
            return float(near)**power
    return value
