"""Rows a build did not count, lent by builds of its release that count in proportion.

Each column is scaled by the median ratio of shapes both counted. Rows are lent where a code's own
rows held out are then predicted better.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.operators.fit import BASE, COLUMNS, Prior, find_calls, find_priors, fit, predict
from benchmarks.operators.table import CLASSES
from benchmarks.operators.terms import VECTORS, Key, Row, choose_terms, read_column
from twin.runtimes.counted.table import look_up

ALIKE_WITHIN = 0.03
"""90 % quantile of |log ratio - median| of two builds' counts up to which they lend rows."""

COMMON = 3
"""Shapes both must have counted of a code; with fewer the median over the other codes decides."""

HALF = 0.5
"""Share of what a build alike counted below which coefficients are overfitted."""

LENT = "lent"
"""Use of a row another build counted."""

FOLDS = 5
"""Parts of a code's rows held out in turn, to decide whether borrowed rows predict it better."""


class Lenders:
    """Builds of one release that counted a code in proportion: each has the rows of the others.

    Parameters
    ----------
    groups
        Rows by code.
    """

    def __init__(self, groups: Mapping[Key, Sequence[Row]]) -> None:
        self.groups = groups
        self.counts: dict[tuple[str, ...], dict[Key, dict[str, np.ndarray]]] = {}
        for key, rows in groups.items():
            self.counts.setdefault(_name_code(key), {})[key] = _count(rows)
        found: dict[tuple[object, ...], list[float]] = {}
        for counts in self.counts.values():
            for key, other in itertools.permutations(counts, 2):
                if len(ratios := _find_ratios(counts[key], counts[other])) >= COMMON:
                    found.setdefault(_name_pair(key, other), []).append(_find_spread(ratios))
        self.usual = {pair: float(np.median(spreads)) for pair, spreads in found.items()}

    def lend(self, key: Key, rows: Sequence[Row], held: Iterable[str] = ()) -> list[Row]:
        """Return what builds alike, nearest first, counted of shapes neither here nor held out."""
        own, alike = _count(rows), []
        for other, there in self.counts[_name_code(key)].items():
            if other == key or (key.core in VECTORS) != (other.core in VECTORS):
                continue
            ratios = _find_ratios(own, there)
            spread = (_find_spread(ratios) if len(ratios) >= COMMON
                      else self.usual.get(_name_pair(key, other), 1.0))
            if len(ratios) and spread <= ALIKE_WITHIN:
                alike.append((spread, other, np.nanmedian(
                    np.vstack([ratios, np.where(np.isnan(ratios).all(axis=0), 1.0, np.nan)]),
                    axis=0)))
        done, lent = {*held, *own}, []
        for _, other, ratio in sorted(alike, key=lambda one: one[:2]):
            for row in self.groups[other]:
                if row.counted.model not in done:
                    done.add(row.counted.model)
                    lent.append(_scale(row, key, dict(zip(COLUMNS, ratio.tolist(), strict=True))))
        return lent


def _name_code(key: Key) -> tuple[str, ...]:
    return key.kernels, key.op, key.variant, key.level.partition("@")[2]


def _name_pair(key: Key, other: Key) -> tuple[object, ...]:
    """Return two builds and whether a code is in floating point: cores without FPU differ there."""
    return key.core, key.level, other.core, other.level, "float" in key.variant


def _count(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Return all columns by model."""
    matrix = np.stack([read_column(rows, name) for name in COLUMNS], axis=1)
    return {row.counted.model: counts for row, counts in zip(rows, matrix, strict=True)}


def _find_ratios(own: Mapping[str, np.ndarray], lent: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the ratios of shapes both counted, (shapes, columns); NaN where either is zero."""
    common = [model for model in own if model in lent]
    here, there = (np.array([side[model] for model in common]).reshape(-1, len(COLUMNS))
                   for side in (own, lent))
    both = (here > 0) & (there > 0)
    return np.where(both, here / np.where(both, there, 1.0), np.nan)


def _find_spread(ratios: np.ndarray) -> float:
    """Return the 90 % quantile of |log ratio - median| of instructions."""
    logs = np.log(ratios[:, 0])
    return float(np.quantile(np.abs(logs - np.median(logs)), 0.9))


def _scale(row: Row, key: Key, ratios: Mapping[str, float]) -> Row:
    """Return a row as another build would have counted it."""
    counted, whole = row.counted, dict.fromkeys(CLASSES, 0) | row.counted.classes
    return Row(replace(
        counted, core=key.core, level=key.level, use=LENT,
        classes={name: round(ratios[name] * whole[name]) for name in counted.classes},
        **{name: round(ratios[name] * getattr(counted, name))
           for name in COLUMNS if name not in CLASSES}),
        row.work.at(key.core.removeprefix("cortex-"), key.level))


def lend_rows(groups: Mapping[Key, Sequence[Row]]) -> dict[Key, list[Row]]:
    """Return rows with those of builds alike, where they predict held-out rows of a code better.

    Where a code's own rows give less than half of another's count they are lent anyhow. A code
    counted of `BASE` alone is lent to cores that mostly count alike.
    """
    lenders = Lenders(groups)
    lent = {key: [*rows, *lenders.lend(key, rows)] for key, rows in groups.items()}
    priors, lent_priors, calls = find_priors(groups), find_priors(lent), find_calls(groups)
    for key, rows in groups.items():
        call, prior = calls.get(key), priors.get(key)
        if len(rows) in (1, len(lent[key])):
            continue
        table = fit(rows, prior, call)
        borrowing = _hold_out(key, rows, lent_priors.get(key), call, lenders)
        if _hold_out(key, rows, prior, call) <= borrowing and all(
                predict(table, row) >= HALF * row.counted.instructions for row in lent[key]):
            lent[key] = list(rows)
    for key, core in itertools.product(groups, sorted({key.core for key in groups})):
        other = key._replace(core=core)
        if (key.core, key.level) == BASE and other not in groups and (
                lenders.usual.get(_name_pair(other, key), 1.0) <= ALIKE_WITHIN):
            lent[other] = [_scale(row, other, dict.fromkeys(COLUMNS, 1.0)) for row in groups[key]]
    return lent


def _hold_out(key: Key, rows: Sequence[Row], prior: Prior | None, call: float | None,
              lenders: Lenders | None = None) -> float:
    """Return the mean square of log errors, 1 at most, of rows held out in folds."""
    squares: list[float] = []
    for place in range(min(FOLDS, len(rows))):
        held = {row.counted.model: row for row in rows[place::FOLDS]}
        rest = [row for row in rows if row.counted.model not in held]
        known = rest if lenders is None else [*rest, *lenders.lend(key, rest, held)]
        table = fit(known, prior and prior.without(held), call)
        squares += [math.log(predict(table, row) / row.counted.instructions) ** 2
                    for row in held.values()]
    return float(np.mean(np.minimum(squares, 1.0)))


def leave_one_out(groups: Mapping[Key, Sequence[Row]]) -> list[tuple[Key, float]]:
    """Return relative errors of rows predicted from the others of their code, where there are.

    The same model counted on other builds is held out with it; terms are those of all rows.
    """
    errors, priors, calls = [], find_priors(groups), find_calls(groups)
    for key, rows in groups.items():
        whole = priors.get(key)
        if len(rows if whole is None else whole.rows) < 3 or len(rows) < 2:
            continue
        names = choose_terms(rows) if whole is None else whole.names
        for place, row in enumerate(row for row in rows if row.counted.use != LENT):
            rest = [*rows[:place], *rows[place + 1:]]
            table = fit(rest, whole and whole.without({row.counted.model}), calls.get(key), names)
            errors.append((key, predict(table, row) / row.counted.instructions - 1))
    return errors


def find_overfitted(groups: Mapping[Key, Sequence[Row]]) -> list[tuple[Key, str, float]]:
    """Return shapes of which a table gives less than half of what a build alike counted.

    Each is its code, the shape's model, and the predicted share.
    """
    lenders, found = Lenders(groups), []
    for key, rows in groups.items():
        for row in lenders.lend(key, rows):
            said = look_up(key.kernels, key.core.removeprefix("cortex-"), key.level, key.op,
                           row.work)
            share = said.total / row.counted.instructions if said else 1.0
            if share < HALF:
                found.append((key, row.counted.model, share))
    return found
