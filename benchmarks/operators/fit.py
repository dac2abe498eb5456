"""Coefficients of the counted kernels: what each term costs, learnt from the counted rows.

    instructions = sum over terms (coefficient x how often), coefficients >= 0

A single row gives its main term what a call's fixed cost leaves.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.operators.table import CLASSES
from benchmarks.operators.terms import (
    BORROWED,
    FIXED,
    LARGER,
    Key,
    Row,
    choose_terms,
    count_terms,
    group_rows,
    read_column,
    relate,
    solve,
)
from twin.runtimes.counted.table import LACKS, NEWER, REFERENCE

BASE = ("cortex-m4", "O2")
"""The build most shapes were counted on: others take from it what their own rows cannot tell."""

# What a table holds of each term.
COLUMNS = ("instructions", *CLASSES, "loads", "stores", "load_bytes", "store_bytes")

OWN = 8
"""Rows from which a code has terms of its own, unless its least is `LARGER` times that of BASE."""

ALIKE = 2e-3
"""Relative difference of counts below which two releases' portable kernels are one."""

UNARY = frozenset(("call", "dimension", "element"))
"""Terms of codes that run once an element: what calls them costs alike for every type."""

NEGLIGIBLE = 0.01
"""Share of a term below which a class is what the fit's noise left."""

SHARES = {"alu": 0.55, "load": 0.25, "store": 0.07, "branch": 0.10, "mul": 0.03}
"""Classes where nothing at all was counted by class (assumed)."""


class Prior(NamedTuple):
    """What another build of the same code says of a code: its rows there, and its terms."""

    rows: Sequence[Row]
    names: tuple[str, ...]

    def without(self, models: Container[str]) -> Prior:
        """Return it without the rows of some models."""
        return self._replace(rows=[row for row in self.rows if row.counted.model not in models])


def fit(rows: Sequence[Row], prior: Prior | None = None, call: float | None = None,
        names: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Return coefficients by term: instructions, their classes, bytes loaded and stored.

    Terms are those named, else those another build has, else those the rows tell.
    """
    names = names or (choose_terms(rows) if prior is None else prior.names)
    counts = read_column(rows, "instructions")
    matrix = count_terms(rows, names)
    columns = {}
    for name in COLUMNS:
        if name in CLASSES and not any(row.counted.classes.get(name) for row in rows):
            continue
        values = read_column(rows, name)
        if prior is not None:
            there, weight = _expect(rows, name, names, prior)
            columns[name] = solve(np.vstack([matrix / counts[:, None], np.diag(weight)]),
                                   np.append(values / counts, weight * there))
        elif len(rows) == 1:
            columns[name] = _part(matrix[0], values[0], counts[0])
        else:
            scale = counts if name in CLASSES else np.maximum(values, 1.0)
            columns[name] = solve(*relate(matrix, values, scale, call))
    return {term: {column: float(values[place]) for column, values in columns.items()}
            for place, term in enumerate(names)}


def _expect(rows: Sequence[Row], column: str, names: Sequence[str],
            prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    """Return the other build's coefficients, in proportion to what both counted, and their weights.

    A weight is a term's mean share there: terms that none of these rows runs keep theirs.
    """
    matrix, counts = count_terms(prior.rows, names), read_column(prior.rows, "instructions")
    there = solve(*relate(matrix, read_column(prior.rows, column), counts))
    said, values = count_terms(rows, names) @ there, read_column(rows, column)
    ratio = float(np.median(values[said > 0] / said[said > 0])) if said.sum() else 1.0
    return there * ratio, BORROWED * np.mean(matrix / counts[:, None], axis=0)


def _part(terms: np.ndarray, value: float, instructions: float) -> np.ndarray:
    """Part the only row there is: a call's fixed cost, at most half, and the main term."""
    fixed = value * min(0.5, FIXED / instructions)
    return np.array([fixed, (value - fixed) / max(terms[1], 1.0)])


def predict(table: Mapping[str, Mapping[str, float]], row: Row) -> float:
    """Return the instructions that coefficients give a row."""
    return max(1.0, sum(coefficients["instructions"] * row.terms.get(name, 0.0)
                        for name, coefficients in table.items()))


def find_priors(groups: Mapping[Key, Sequence[Row]]) -> dict[Key, Prior]:
    """Return what else tells of a code: its rows of other inputs, or the core most are counted on.

    A code with few or only large rows of a build that no rows of other inputs tell takes the
    coefficients of how it was built for that core; releases of 2023 and 2024 differ so little from
    the newest that all do.
    """
    shapes = group_rows("shape")
    found = {key: Prior(shapes[key], choose_terms(shapes[key])) for key, rows in groups.items()
             if len(shapes.get(key, ())) > len(rows)}
    bases = {key: rows for key, rows in groups.items() if (key.core, key.level) == BASE}
    least = {key: min(row.counted.instructions for row in rows) for key, rows in groups.items()}
    choose = cache(lambda base, runs: choose_terms(bases[base], runs))
    for key in groups:
        if key.variant == "int8 convolution":  # CMSIS-NN transposes weights and runs that.
            like = groups[key._replace(op="conv_2d", variant="int8 window")]
            found[key] = Prior(like, (*choose_terms(like), "weight"))
    for key, rows in groups.items():
        base = key._replace(core=BASE[0], level=BASE[1])
        if key == base or key in found or base not in bases:
            continue
        if (len(rows) < min(OWN, len(bases[base]) + 1) or "@20" in key.level
                or ("@" not in key.level and least[key] > LARGER * least[base])):
            runs = frozenset(itertools.chain(*(row.terms for row in rows)))
            found[key] = found.get(base) or Prior(bases[base], choose(base, runs))
    return found


def find_calls(groups: Mapping[Key, Sequence[Row]]) -> dict[Key, float]:
    """Return what a call costs by the operator's other types, where a code's rows are too large."""
    least = {key: min(row.counted.instructions for row in rows) for key, rows in groups.items()
             if set(rows[0].terms) <= UNARY and len(rows) >= OWN}
    found = {}
    for key, own in least.items():
        small, like = min((least[other], other) for other in least if other[:4] == key[:4])
        if own > LARGER * small:
            call = fit(groups[like], names=("call", "element"))["call"]["instructions"]
            if call > small / 4:
                found[key] = call
    return found


def write_tables(groups: Mapping[Key, Sequence[Row]], lent: Mapping[Key, Sequence[Row]],
                 folder: Path) -> None:
    """Write the coefficients of rows and those lent: one file for kernels, core and level."""
    priors, calls = find_priors(lent), find_calls(lent)
    fitted: dict[Key, tuple[dict[str, dict[str, float]], int]] = {}
    for key, known in lent.items():
        like = key if key in groups else key._replace(core=BASE[0])
        rows = groups[like]
        if key.kernels != REFERENCE and _lacks(like, groups):
            fitted[key._replace(variant=LACKS)] = {"call": dict.fromkeys(COLUMNS, 0.0)}, len(rows)
        elif not (_same_code(like, rows, groups) and _shared(like, groups)):
            table = fit(known, priors.get(key), calls.get(key))
            fitted[key] = table, len(groups.get(key, ()))
    for place, keys in itertools.groupby(sorted(fitted), key=lambda key: key[:3]):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("operator", "variant", "rows", "term", *COLUMNS))
        for key in keys:
            table, count = fitted[key]
            base = fitted.get(key._replace(core="cortex-m4"), fitted.get(
                key._replace(core="cortex-m4", kernels=REFERENCE), fitted[key]))[0]
            for term, counts in _with_classes(table, base).items():
                if term == "call" or any(counts.values()):
                    writer.writerow((key.op, key.variant, count, term, *(
                        f"{counts[column]:.6g}" for column in COLUMNS)))
        name = "-".join(place).replace("cortex-", "")
        (folder / f"{name}.csv").write_text(text.getvalue(), encoding="utf-8")


def _same_code(key: Key, rows: Sequence[Row], groups: Mapping[Key, Sequence[Row]]) -> bool:
    """Whether these kernels are the reference's, count for count: its table serves them."""
    others = groups.get(key._replace(kernels=REFERENCE), ())
    same = {row.counted.model: row.counted.instructions for row in others}
    return key.kernels != REFERENCE and all(
        same.get(row.counted.model) == row.counted.instructions for row in rows)


def _shared(key: Key, groups: Mapping[Key, Sequence[Row]]) -> bool:
    """Whether the newest release, too, runs the reference's code."""
    now = key._replace(level=key.level.split("@")[0])
    return now not in groups or _same_code(now, groups[now], groups)


def _lacks(key: Key, groups: Mapping[Key, Sequence[Row]]) -> bool:
    """Whether an older release runs an operator by portable code that has own code since."""
    if "@" not in key.level or _shared(key, groups):
        return False
    levels = {BASE[1], *(f"O2@{release}" for release in NEWER if release >= key.level[3:])}
    own, portable = ({(row.counted.model, row.counted.instructions)
                      for other, rows in groups.items() for row in rows
                      if other[:2] + other[3:4] == (kernels, key.core, key.op)
                      and other.level in among}
                     for kernels, among in ((key.kernels, {key.level}), (REFERENCE, levels)))
    return all(any(model == other and abs(count / said - 1) < ALIKE for other, said in portable)
               for model, count in own)


def _with_classes(table: Mapping[str, Mapping[str, float]],
                  like: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return coefficients whose classes sum to the instructions of each term.

    Where classes were not counted, they are shared as on the Cortex-M4 (assumed).
    """
    filled = {}
    totals = {name: sum(classes.get(name, 0.0) for classes in like.values()) for name in CLASSES}
    for term, classes in table.items():
        shares = {name: classes.get(name, 0.0) for name in CLASSES}
        if not sum(shares.values()):
            shares = {name: like.get(term, {}).get(name, 0.0) for name in CLASSES}
        if not sum(shares.values()):
            shares = totals if sum(totals.values()) else {**dict.fromkeys(CLASSES, 0.0), **SHARES}
        whole = sum(shares.values())
        shares = {name: share if share > NEGLIGIBLE * whole else 0.0
                  for name, share in shares.items()}
        scale = classes["instructions"] / (sum(shares.values()) or 1.0)
        filled[term] = {**classes, **{name: share * scale for name, share in shares.items()}}
    return filled
