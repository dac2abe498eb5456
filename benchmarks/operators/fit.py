"""Coefficients of the counted kernels: what each term costs, learnt from the counted rows.

    instructions = sum over terms (coefficient x how often), coefficients >= 0

Terms are chosen one by one, the one that lowers the relative error most next, and never more than
the rows can tell. A single row gives its main term what a call's fixed cost leaves.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.operators.table import CLASSES, Counted, read_graphs, read_rows
from twin.runtimes.counted.describe import describe
from twin.runtimes.counted.table import REFERENCE
from twin.runtimes.counted.work import Work

FIXED = 400.0
"""Instructions of a call before the first element, where one row alone is known (mean of those
that are told)."""

TRUST = 2e-3
"""Weight of that beside a row's relative error: it rules only where shapes are all large."""

EXACT = 1e-3
"""Relative error below which no further term is sought."""

GAIN = 0.9
"""A further term must bring the error below this share of what it was."""

NEGLIGIBLE = 0.01
"""Share of a term below which a class is what the fit's noise left."""

SHARES = {"alu": 0.55, "load": 0.25, "store": 0.07, "branch": 0.10, "mul": 0.03}
"""Classes where nothing at all was counted by class (assumed)."""


class Key(NamedTuple):
    """Which code: the coefficients of one table entry."""

    kernels: str
    core: str
    level: str
    op: str
    variant: str


class Row(NamedTuple):
    """A counted row and the work it was."""

    counted: Counted
    work: Work


def group_rows() -> dict[Key, list[Row]]:
    """Return the rows by the code they ran."""
    groups: dict[Key, list[Row]] = {}
    graphs = read_graphs()
    works = {name: describe(graph, graph.layers[0]) for name, graph in graphs.items()}
    for counted in read_rows():
        work = works[counted.model]
        if work is None:
            continue
        key = Key(counted.kernels, counted.core, counted.level,
                  graphs[counted.model].layers[0].op, work.code(counted.kernels))
        groups.setdefault(key, []).append(Row(counted, work))
    return groups


def choose_terms(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the terms that explain the instructions of rows, fewest first."""
    names = list(dict.fromkeys(name for row in rows for name in row.work.terms))
    if len(rows) == 1:
        terms = rows[0].work.terms
        return ("call", max((name for name in names if name != "call"), key=terms.__getitem__))
    chosen, error = ["call"], _error(rows, ["call"])
    # The prior of a call's fixed cost is one row more.
    while len(chosen) < len(rows) and error > EXACT:
        tried = {name: _error(rows, [*chosen, name]) for name in names if name not in chosen}
        if not tried:
            break
        best = min(tried, key=tried.__getitem__)
        if tried[best] > GAIN * error:
            break
        chosen.append(best)
        error = tried[best]
    # A term taken early may be none once better ones are there.
    for name in chosen[1:-1]:
        if len(chosen) > 2 and _error(rows, [one for one in chosen if one != name]) <= error * 1.02:
            chosen.remove(name)
    return tuple(chosen)


def _matrix(rows: Sequence[Row], names: Iterable[str]) -> np.ndarray:
    return np.array([[row.work.terms.get(name, 0.0) for name in names] for row in rows], float)


def _solve(matrix: np.ndarray, values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return coefficients >= 0; what the rows cannot tell of a call's fixed cost is the prior."""
    from scipy.optimize import nnls

    share = float(np.median(values / scale))
    known = np.zeros((1, matrix.shape[1]))
    known[0, 0] = TRUST / (FIXED * max(share, 1e-3))
    return nnls(np.vstack([matrix / scale[:, None], known]),
                np.append(values / scale, TRUST), maxiter=1000)[0]


def _error(rows: Sequence[Row], names: Sequence[str]) -> float:
    """Return the root mean square of the relative errors."""
    matrix = _matrix(rows, names)
    counts = np.array([row.counted.instructions for row in rows], float)
    solved = _solve(matrix, counts, counts)
    return float(np.sqrt(np.mean((matrix @ solved / counts - 1) ** 2)))


def fit(rows: Sequence[Row], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return coefficients by term: instructions, their classes, bytes loaded and stored."""
    counts = np.array([row.counted.instructions for row in rows], float)
    matrix = _matrix(rows, names)

    def solve(values: Sequence[float]) -> np.ndarray:
        whole = np.array(values, float)
        if len(rows) == 1:
            return _part(matrix[0], whole[0], counts[0])
        return _solve(matrix, whole, counts)

    columns = {"instructions": solve(counts.tolist())}
    for name in CLASSES:
        if all(row.counted.classes for row in rows):
            columns[name] = solve([row.counted.classes[name] for row in rows])
    for name in ("loads", "stores", "load_bytes", "store_bytes"):
        columns[name] = solve([getattr(row.counted, name) for row in rows])
    return {term: {column: float(values[place]) for column, values in columns.items()}
            for place, term in enumerate(names)}


def _part(terms: np.ndarray, value: float, instructions: float) -> np.ndarray:
    """Part the only row there is: a call's fixed cost, at most half, and the main term."""
    fixed = value * min(0.5, FIXED / instructions)
    return np.array([fixed, (value - fixed) / max(terms[1], 1.0)])


def leave_one_out(groups: Mapping[Key, Sequence[Row]]) -> list[tuple[Key, float]]:
    """Return relative errors of rows predicted from the others of their code, where there are."""
    errors = []
    for key, rows in groups.items():
        if len(rows) < 3:
            continue
        for place, row in enumerate(rows):
            rest = [*rows[:place], *rows[place + 1:]]
            names = choose_terms(rest)
            table = fit(rest, names)
            said = sum(table[name]["instructions"] * row.work.terms.get(name, 0.0)
                       for name in names)
            errors.append((key, said / row.counted.instructions - 1))
    return errors


def write_tables(groups: Mapping[Key, Sequence[Row]], folder: Path) -> None:
    """Write the coefficients: one file for kernels, core and level."""
    fitted = {key: (fit(rows, choose_terms(rows)), len(rows)) for key, rows in groups.items()
              if not _same_code(key, rows, groups)}
    for place, keys in itertools.groupby(sorted(fitted), key=lambda key: key[:3]):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = ("instructions", *CLASSES, "loads", "stores", "load_bytes", "store_bytes")
        writer.writerow(("operator", "variant", "rows", "term", *columns))
        for key in keys:
            table, count = fitted[key]
            like = fitted.get(key._replace(core="cortex-m4"), fitted.get(
                key._replace(core="cortex-m4", kernels=REFERENCE), fitted[key]))[0]
            for term, told in _with_classes(table, like).items():
                if told["instructions"] or term == "call":
                    writer.writerow((key.op, key.variant, count, term, *(
                        f"{told[column]:.6g}" for column in columns)))
        name = "-".join(place).replace("cortex-", "")
        (folder / f"{name}.csv").write_text(text.getvalue(), encoding="utf-8")


def _same_code(key: Key, rows: Sequence[Row], groups: Mapping[Key, Sequence[Row]]) -> bool:
    """Whether these kernels are the reference's, count for count: its table serves them."""
    others = groups.get(key._replace(kernels=REFERENCE), ())
    same = {row.counted.model: row.counted.instructions for row in others}
    return key.kernels != REFERENCE and all(
        same.get(row.counted.model) == row.counted.instructions for row in rows)


def _with_classes(table: Mapping[str, Mapping[str, float]],
                  like: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return coefficients whose classes sum to the instructions of each term.

    Where classes were not counted, they are shared as on the Cortex-M4 (assumed).
    """
    filled = {}
    totals = {name: sum(told.get(name, 0.0) for told in like.values()) for name in CLASSES}
    for term, told in table.items():
        shares = {name: told.get(name, 0.0) for name in CLASSES}
        if not sum(shares.values()):
            shares = {name: like.get(term, {}).get(name, 0.0) for name in CLASSES}
        if not sum(shares.values()):
            shares = totals if sum(totals.values()) else {**dict.fromkeys(CLASSES, 0.0), **SHARES}
        whole = sum(shares.values())
        shares = {name: share if share > NEGLIGIBLE * whole else 0.0
                  for name, share in shares.items()}
        scale = told["instructions"] / sum(shares.values())
        filled[term] = {**told, **{name: share * scale for name, share in shares.items()}}
    return filled
