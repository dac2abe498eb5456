"""Rows of one code, and the terms chosen to tell their counts: the equations of least squares.

Terms are chosen one by one, the one that lowers the relative error most next, and never more than
the rows can tell.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from benchmarks.operators.table import CLASSES, Counted, read_graphs, read_rows
from hwmodels.frozen import record
from twin.network.graph import GraphLayer
from twin.runtimes.counted.describe import describe
from twin.runtimes.counted.table import REFERENCE
from twin.runtimes.counted.work import SCALAR, VECTOR, Work

FIXED = 400.0
"""Instructions of a call before the first element, where one row alone is known (mean of those
that are told)."""

APART = 8.0
"""How far apart calls are, of that: what divides in software in every call takes most."""

TRUST = 2e-3
"""Weight of that beside a row's relative error: it rules only where shapes are all large."""

BORROWED = 0.02
"""Weight of a coefficient another build says beside a row's relative error."""

VECTORS = ("cortex-m55", "cortex-m85")
"""Cores with vectors."""

EXACT = 1e-3
"""Relative error below which no further term is sought."""

ACCESSES = (("instructions", 1.0), ("loads", 0.1), ("stores", 0.1))
BYTES = (("instructions", 1.0), ("load_bytes", 0.1), ("store_bytes", 0.1))
"""What terms are chosen to tell, and the weight of its squared errors: bytes where accesses are of
vectors."""

MOST = 14
"""Terms of one code at most."""

KEEPS = 1.02
"""A term without which the error is below this share of what it was is none."""

GOOD = 0.015
"""Error above which all terms together are tried too, and pruned."""

MANY = 16
"""Rows from which that is done."""

BETTER = 0.8
"""Share of the error they must then bring it below."""

KNOWN = ("copying", "copying thumb1", "filling", "filling thumb1")
"""Parts whose instructions are counted already: chosen first, dropped where they tell nothing."""

THUMB1 = ("copying thumb1", "copied thumb1", "filling thumb1")
THUMB2 = ("copying", "copied", "filling")
"""Parts of the C library's copies and fills that only cores of one instruction set run."""

TRIED = 6
"""Terms that are tried on accesses too, of those that tell instructions best."""

GAIN = 0.98
"""A further term must bring the error below this share of what it was."""

LARGER = 10
"""Times `FIXED` from which on no row tells a call's fixed cost."""


class Key(NamedTuple):
    """Which code: the coefficients of one table entry."""

    kernels: str
    core: str
    level: str
    op: str
    variant: str


@record
class Row:
    """A counted row and the work it was."""

    counted: Counted
    work: Work

    @cached_property
    def terms(self) -> Mapping[str, float]:
        """How often parts of its code run; those of vectors on cores that have them."""
        other = SCALAR if self.counted.core in VECTORS else VECTOR
        routine: tuple[str, ...] = THUMB2 if self.counted.core == "cortex-m0plus" else THUMB1
        if self.counted.core in VECTORS and self.counted.kernels != REFERENCE \
                and "vector copy" in self.work.own:  # Helium copies itself.
            routine += THUMB2
        return {name: often for name, often in self.work.count(self.counted.kernels).items()
                if not name.startswith(other) and name not in routine}


def group_rows(use: str = "fit") -> dict[Key, list[Row]]:
    """Return the rows of a use by the code they ran."""
    groups: dict[Key, list[Row]] = {}
    graphs = read_graphs()
    describe_once = cache(lambda name, kernels: describe(
        GraphLayer(graphs[name], graphs[name].layers[0]), kernels))
    for counted in read_rows():
        work = describe_once(counted.model, counted.kernels)
        if work is None or counted.use != use:
            continue
        core = counted.core.removeprefix("cortex-")
        work = work.at(core, counted.level)
        key = Key(counted.kernels, counted.core, counted.level,
                  (work.runs if counted.kernels != REFERENCE else "")
                  or graphs[counted.model].layers[0].op, work.code(counted.kernels, core))
        groups.setdefault(key, []).append(Row(counted, work))
    return groups


def choose_terms(rows: Sequence[Row], runs: Container[str] = ()) -> tuple[str, ...]:
    """Return the terms that tell the instructions of rows from each other, fewest first.

    Of those a build `runs`, where that is another than the rows'.
    """
    if len(rows) == 1:
        terms = rows[0].terms
        return ("call", max((name for name in terms if name != "call"), key=terms.__getitem__))
    large = min(row.counted.instructions for row in rows) >= LARGER * FIXED
    names = [name for name in _differing_terms(rows)
             if (not runs or name in runs) and not (large and name == "dimension")]
    errors = Errors(rows, names)
    chosen = ["call", *(name for name in KNOWN if name in names)][:len(rows)]
    error = errors.measure(chosen)
    # The prior of a call's fixed cost is one row more.
    most = min(len(rows), MOST)
    while len(chosen) < most and error > EXACT:
        left = sorted((name for name in names if name not in chosen),
                      key=lambda name: errors.measure([*chosen, name], 1))
        tried = {name: errors.measure([*chosen, name]) for name in left[:TRIED]}
        if not tried:
            break
        best = min(tried, key=tried.__getitem__)
        if tried[best] > GAIN * error:
            break
        chosen.append(best)
        error = tried[best]
    chosen, error = _drop_terms(errors, chosen)
    if error > GOOD and len(rows) >= MANY:
        solved = solve(*errors.columns[0][1:])
        others = [name for name, value in zip(names, solved, strict=True)
                  if value or name == "call"]
        others, less = _drop_terms(errors, others)
        if less < BETTER * error and len(others) <= len(rows) // 2:
            chosen = others
    return tuple(chosen)


def _drop_terms(errors: Errors, names: Sequence[str]) -> tuple[list[str], float]:
    """Return terms without those that better ones made needless, and the error then."""
    kept, error = list(names), errors.measure(names)
    while len(kept) > 2:
        tried = {name: errors.measure([one for one in kept if one != name]) for name in kept[1:]}
        least = min(tried, key=tried.__getitem__)
        if tried[least] > KEEPS * error:
            break
        kept.remove(least)
        error = tried[least]
    return kept, error


def _differing_terms(rows: Sequence[Row]) -> list[str]:
    """Return the terms of which no two are in proportion in every row, a call's first."""
    names: dict[tuple[float, ...], str] = {}
    described = [row.terms for row in rows]
    for name in dict.fromkeys(name for terms in described for name in terms):
        counts = [terms.get(name, 0.0) for terms in described]
        if most := max(counts):
            names.setdefault(tuple(round(count / most, 9) for count in counts), name)
    return ["call", *(name for name in names.values() if name != "call")]


def count_terms(rows: Sequence[Row], names: Iterable[str]) -> np.ndarray:
    return np.array([[row.terms.get(name, 0.0) for name in names] for row in rows], float)


def read_column(rows: Sequence[Row], name: str) -> np.ndarray:
    """Return one count of each row: a column of the table, or a class."""
    return np.array([row.counted.classes.get(name, 0) if name in CLASSES
                     else getattr(row.counted, name) for row in rows], float)


def relate(matrix: np.ndarray, values: np.ndarray, scale: np.ndarray,
            call: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return equations: one a row, relative, and one of a call's fixed cost, the first term's.

    The fixed cost is that of the operator's other types, else the mean: within `APART` and surer
    where each row is so large that none tells it.
    """
    share = float(np.median(values / scale))
    known = np.zeros((1, matrix.shape[1]))
    large = call is None and scale.min() >= LARGER * FIXED
    trust = BORROWED if call or large else TRUST
    known[0, 0] = trust / ((call or FIXED) * max(share, 1e-3)) / (APART if large else 1.0)
    return (np.vstack([matrix / scale[:, None], known]),
            np.append(values / scale, trust / (APART if large else 1.0)))


def solve(equations: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return coefficients >= 0."""
    from scipy.optimize import nnls

    return np.asarray(nnls(equations, wanted, maxiter=1000)[0])


class Errors:
    """How far some terms of rows are from their counts at best.

    Parameters
    ----------
    rows
        Of one code.
    names
        All terms to choose from, a call's first.
    """

    def __init__(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        matrix = count_terms(rows, names)
        self.columns = [(share, *relate(matrix, counted, np.maximum(counted, 1.0)))
                        for name, share in (BYTES if rows[0].counted.core in VECTORS else ACCESSES)
                        for counted in (read_column(rows, name),)]

    def measure(self, names: Sequence[str], count: int | None = None) -> float:
        """Return the root mean square of relative errors, weighted by column, of the first few."""
        places = [self.places[name] for name in names]
        whole = 0.0
        for share, equations, wanted in self.columns[:count]:
            some = equations[:, places]
            apart = (some @ solve(some, wanted))[:-1] - 1.0
            whole += share * float(np.minimum(apart * apart, 1.0).mean())
        return math.sqrt(whole)
