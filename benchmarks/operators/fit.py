"""Coefficients of the counted kernels: what each term costs, learnt from the counted rows.

    instructions = sum over terms (coefficient x how often), coefficients >= 0

Terms are chosen one by one, the one that lowers the relative error most next, and never more than
the rows can tell. A single row gives its main term what a call's fixed cost leaves.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.operators.table import CLASSES, Counted, read_graphs, read_rows
from hwmodels.frozen import record
from twin.network.graph import GraphLayer
from twin.runtimes.counted.describe import describe
from twin.runtimes.counted.table import LACKS, NEWER, REFERENCE
from twin.runtimes.counted.work import SCALAR, VECTOR, Work

FIXED = 400.0
"""Instructions of a call before the first element, where one row alone is known (mean of those
that are told)."""

APART = 8.0
"""How far apart calls are, of that: what divides in software in every call takes most."""

TRUST = 2e-3
"""Weight of that beside a row's relative error: it rules only where shapes are all large."""

BASE = ("cortex-m4", "O2")
"""The build most shapes were counted on: others take from it what their own rows cannot tell."""

BORROWED = 0.02
"""Weight of a coefficient so taken beside a row's relative error."""

VECTORS = ("cortex-m55", "cortex-m85")
"""Cores with vectors."""

EXACT = 1e-3
"""Relative error below which no further term is sought."""

ACCESSES = (("instructions", 1.0), ("loads", 0.1), ("stores", 0.1))
BYTES = (("instructions", 1.0), ("load_bytes", 0.1), ("store_bytes", 0.1))
"""What terms are chosen to tell, and the weight of its squared errors: bytes where accesses are of
vectors."""

# What a table holds of each term.
COLUMNS = ("instructions", *CLASSES, "loads", "stores", "load_bytes", "store_bytes")

MOST = 14
"""Terms of one code at most."""

KEEPS = 1.02
"""A term without which the error is below this share of what it was is none."""

GOOD = 0.015
"""Error above which all terms together are tried too, and pruned."""

BETTER = 0.8
"""Share of the error they must then bring it below."""

KNOWN = ("copying", "copying thumb1", "filling", "filling thumb1")
"""Parts whose instructions are counted already: chosen first, dropped where they tell nothing."""

THUMB1 = ("copying thumb1", "copied thumb1", "filling thumb1")
THUMB2 = ("copying", "copied", "filling")
"""Parts of the C library's copies and fills that only cores of one instruction set run."""

MANY = 16
"""Rows from which that is done."""

TRIED = 6
"""Terms that are tried on accesses too, of those that tell instructions best."""

OWN, LARGER = 8, 10
"""Rows from which a build's code has terms of its own, unless its least is so many times BASE's."""

ALIKE = 2e-3
"""Relative difference of counts below which two releases' portable kernels are one."""

UNARY = frozenset(("call", "dimension", "element"))
"""Terms of codes that run once an element: what calls them costs alike for every type."""

GAIN = 0.98
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


class Prior(NamedTuple):
    """What another build of the same code says of a code: its rows there, and its terms."""

    rows: Sequence[Row]
    names: tuple[str, ...]

    def without(self, models: Container[str]) -> Prior:
        """Return it without the rows of some models."""
        return self._replace(rows=[row for row in self.rows if row.counted.model not in models])


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
        solved = _solve(*errors.columns[0][1:])
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


def _matrix(rows: Sequence[Row], names: Iterable[str]) -> np.ndarray:
    return np.array([[row.terms.get(name, 0.0) for name in names] for row in rows], float)


def read_column(rows: Sequence[Row], name: str) -> np.ndarray:
    """Return one count of each row: a column of the table, or a class."""
    return np.array([row.counted.classes.get(name, 0) if name in CLASSES
                     else getattr(row.counted, name) for row in rows], float)


def _relate(matrix: np.ndarray, values: np.ndarray, scale: np.ndarray,
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


def _solve(equations: np.ndarray, wanted: np.ndarray) -> np.ndarray:
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
        matrix = _matrix(rows, names)
        self.columns = [(share, *_relate(matrix, counted, np.maximum(counted, 1.0)))
                        for name, share in (BYTES if rows[0].counted.core in VECTORS else ACCESSES)
                        for counted in (read_column(rows, name),)]

    def measure(self, names: Sequence[str], count: int | None = None) -> float:
        """Return the root mean square of relative errors, weighted by column, of the first few."""
        places = [self.places[name] for name in names]
        whole = 0.0
        for share, equations, wanted in self.columns[:count]:
            some = equations[:, places]
            apart = (some @ _solve(some, wanted))[:-1] - 1.0
            whole += share * float(np.minimum(apart * apart, 1.0).mean())
        return math.sqrt(whole)


def fit(rows: Sequence[Row], prior: Prior | None = None, call: float | None = None,
        names: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Return coefficients by term: instructions, their classes, bytes loaded and stored.

    Terms are those named, else those another build has, else those the rows tell.
    """
    names = names or (choose_terms(rows) if prior is None else prior.names)
    counts = read_column(rows, "instructions")
    matrix = _matrix(rows, names)
    columns = {}
    for name in COLUMNS:
        if name in CLASSES and not any(row.counted.classes.get(name) for row in rows):
            continue
        values = read_column(rows, name)
        if prior is not None:
            there, weight = _expect(rows, name, names, prior)
            columns[name] = _solve(np.vstack([matrix / counts[:, None], np.diag(weight)]),
                                   np.append(values / counts, weight * there))
        elif len(rows) == 1:
            columns[name] = _part(matrix[0], values[0], counts[0])
        else:
            scale = counts if name in CLASSES else np.maximum(values, 1.0)
            columns[name] = _solve(*_relate(matrix, values, scale, call))
    return {term: {column: float(values[place]) for column, values in columns.items()}
            for place, term in enumerate(names)}


def _expect(rows: Sequence[Row], column: str, names: Sequence[str],
            prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    """Return the other build's coefficients, in proportion to what both counted, and their weights.

    A weight is a term's mean share there: terms that none of these rows runs keep theirs.
    """
    matrix, counts = _matrix(prior.rows, names), read_column(prior.rows, "instructions")
    there = _solve(*_relate(matrix, read_column(prior.rows, column), counts))
    said, values = _matrix(rows, names) @ there, read_column(rows, column)
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
