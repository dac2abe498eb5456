"""Coefficients of the counted kernels: what each term costs, learnt from the counted rows.

    instructions = sum over terms (coefficient x how often), coefficients >= 0

Terms are chosen one by one, the one that lowers the relative error most next, and never more than
the rows can tell. A single row gives its main term what a call's fixed cost leaves. A build that
counted few shapes borrows the rows of builds whose counts are in proportion to its own.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.operators.table import CLASSES, Counted, read_graphs, read_rows
from twin.runtimes.counted.describe import describe
from twin.runtimes.counted.table import LACKS, NEWER, REFERENCE, look_up
from twin.runtimes.counted.work import SCALAR, VECTOR, Work

FIXED = 400.0
"""Instructions of a call before the first element, where one row alone is known (mean of those
that are told)."""

TRUST = 2e-3
"""Weight of that beside a row's relative error: it rules only where shapes are all large."""

BASE = ("cortex-m4", "O2")
"""The build most shapes were counted on: others take from it what their own rows cannot tell."""

BORROWED = 0.02
"""Weight of a coefficient so taken beside a row's relative error."""

VECTORS = ("cortex-m55", "cortex-m85")
"""Cores with vectors."""

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

EXACT = 1e-3
"""Relative error below which no further term is sought."""

INSTRUCTIONS = (("instructions", 1.0),)
ACCESSES = (*INSTRUCTIONS, ("loads", 0.1), ("stores", 0.1))
BYTES = (*INSTRUCTIONS, ("load_bytes", 0.1), ("store_bytes", 0.1))
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

KNOWN = ("copying", "copying thumb1", "filling")
"""Parts whose instructions are counted already: chosen first, dropped where they tell nothing."""

THUMB1, THUMB2 = ("copying thumb1", "copied thumb1"), ("copying", "copied")
"""Parts of the C library's copies that only cores of one instruction set run."""

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


@dataclass(frozen=True)
class Row:
    """A counted row and the work it was."""

    counted: Counted
    work: Work

    @cached_property
    def terms(self) -> Mapping[str, float]:
        """How often parts of its code run; those of vectors on cores that have them."""
        other = SCALAR if self.counted.core in VECTORS else VECTOR
        routine = THUMB2 if self.counted.core == "cortex-m0plus" else THUMB1
        return {name: often for name, often in self.work.count(self.counted.kernels).items()
                if not name.startswith(other) and name not in routine}


def group_rows(use: str = "fit") -> dict[Key, list[Row]]:
    """Return the rows of a use by the code they ran."""
    groups: dict[Key, list[Row]] = {}
    graphs = read_graphs()
    describe_once = cache(lambda name, kernels: describe(
        graphs[name], graphs[name].layers[0], kernels))
    for counted in read_rows():
        work = describe_once(counted.model, counted.kernels)
        if work is None or counted.use != use:
            continue
        core = counted.core.removeprefix("cortex-")
        work = work.at(core, counted.level)
        key = Key(counted.kernels, counted.core, counted.level,
                  graphs[counted.model].layers[0].op, work.code(counted.kernels, core))
        groups.setdefault(key, []).append(Row(counted, work))
    return groups


class Prior(NamedTuple):
    """What another build of the same code says of a code: its rows there, and its terms."""

    rows: Sequence[Row]
    names: tuple[str, ...]


def choose_terms(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the terms that tell the instructions of rows from each other, fewest first."""
    if len(rows) == 1:
        terms = rows[0].terms
        return ("call", max((name for name in terms if name != "call"), key=terms.__getitem__))
    names = _differing_terms(rows)
    chosen = ["call", *(name for name in KNOWN if name in names)][:len(rows)]
    error = _error(rows, chosen)
    # The prior of a call's fixed cost is one row more.
    most = min(len(rows), MOST)
    while len(chosen) < most and error > EXACT:
        left = sorted((name for name in names if name not in chosen),
                      key=lambda name: _error(rows, [*chosen, name], INSTRUCTIONS))
        tried = {name: _error(rows, [*chosen, name]) for name in left[:TRIED]}
        if not tried:
            break
        best = min(tried, key=tried.__getitem__)
        if tried[best] > GAIN * error:
            break
        chosen.append(best)
        error = tried[best]
    chosen, error = _drop_terms(rows, chosen)
    if error > GOOD and len(rows) >= MANY:
        matrix, counts = _matrix(rows, names), _column(rows, "instructions")
        told = _solve(matrix, counts, counts)
        others = [name for name, value in zip(names, told, strict=True) if value or name == "call"]
        others, less = _drop_terms(rows, others)
        if less < BETTER * error and len(others) <= len(rows) // 2:
            chosen = others
    return tuple(chosen)


def _drop_terms(rows: Sequence[Row], names: Sequence[str]) -> tuple[list[str], float]:
    """Return terms without those that better ones made needless, and the error then."""
    kept, error = list(names), _error(rows, names)
    while len(kept) > 2:
        tried = {name: _error(rows, [one for one in kept if one != name]) for name in kept[1:]}
        least = min(tried, key=tried.__getitem__)
        if tried[least] > KEEPS * error:
            break
        kept.remove(least)
        error = tried[least]
    return kept, error


def _differing_terms(rows: Sequence[Row]) -> list[str]:
    """Return the terms of which no two are in proportion in every row, and that ever run."""
    names: dict[tuple[float, ...], str] = {}
    told = [row.terms for row in rows]
    for name in dict.fromkeys(name for terms in told for name in terms):
        counts = [terms.get(name, 0.0) for terms in told]
        if most := max(counts):
            names.setdefault(tuple(round(count / most, 9) for count in counts), name)
    kept = list(names.values())
    return kept if "call" in kept else ["call", *kept]


def _matrix(rows: Sequence[Row], names: Iterable[str]) -> np.ndarray:
    return np.array([[row.terms.get(name, 0.0) for name in names] for row in rows], float)


def _column(rows: Sequence[Row], name: str) -> np.ndarray:
    """Return one count of each row: a column of the table, or a class."""
    return np.array([row.counted.classes.get(name, 0) if name in CLASSES
                     else getattr(row.counted, name) for row in rows], float)


def _solve(matrix: np.ndarray, values: np.ndarray, scale: np.ndarray,
           expected: np.ndarray | None = None, weight: np.ndarray | float = 1.0,
           call: float | None = None) -> np.ndarray:
    """Return coefficients >= 0; what the rows cannot tell is as expected, weighted by term.

    Without expectations a call's fixed cost is that of the operator's other types, else the mean.
    """
    from scipy.optimize import nnls

    if expected is None:
        share = float(np.median(values / scale))
        known = np.zeros((1, matrix.shape[1]))
        trust = TRUST if call is None else BORROWED
        known[0, 0] = trust / ((call or FIXED) * max(share, 1e-3))
        wanted = np.array([trust])
    else:
        known, wanted = np.diag(weight), weight * expected
    return np.asarray(nnls(np.vstack([matrix / scale[:, None], known]),
                           np.append(values / scale, wanted), maxiter=1000)[0])


def _error(rows: Sequence[Row], names: Sequence[str],
           columns: Sequence[tuple[str, float]] = ()) -> float:
    """Return the root mean square of the relative errors, weighted by column."""
    columns = columns or (BYTES if rows[0].counted.core in VECTORS else ACCESSES)
    matrix = _matrix(rows, names)
    whole = 0.0
    for name, share in columns:
        told = _column(rows, name)
        own = np.maximum(told, 1.0)
        said = matrix @ _solve(matrix, told, own)
        whole += share * float(np.mean(np.minimum((said / own - 1) ** 2, 1.0)))
    return math.sqrt(whole)


def fit(rows: Sequence[Row], names: Sequence[str],
        prior: Prior | None = None, call: float | None = None) -> dict[str, dict[str, float]]:
    """Return coefficients by term: instructions, their classes, bytes loaded and stored."""
    counts = _column(rows, "instructions")
    matrix = _matrix(rows, names)
    columns = {}
    for name in COLUMNS:
        if name in CLASSES and not any(row.counted.classes.get(name) for row in rows):
            continue
        values = _column(rows, name)
        if prior is not None:
            columns[name] = _solve(matrix, values, counts, *_expect(rows, name, names, prior))
        elif len(rows) == 1:
            columns[name] = _part(matrix[0], values[0], counts[0])
        else:
            columns[name] = _solve(matrix, values, counts if name in CLASSES
                                   else np.maximum(values, 1.0), call=call)
    return {term: {column: float(values[place]) for column, values in columns.items()}
            for place, term in enumerate(names)}


def fit_code(rows: Sequence[Row], prior: Prior | None,
             call: float | None) -> dict[str, dict[str, float]]:
    """Return coefficients by term: of those another build has, else of those the rows tell."""
    return fit(rows, choose_terms(rows) if prior is None else prior.names, prior, call)


def _expect(rows: Sequence[Row], column: str, names: Sequence[str],
            prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    """Return the other build's coefficients, in proportion to what both counted, and their weights.

    A weight is a term's mean share there: terms that none of these rows runs keep theirs.
    """
    matrix, counts = _matrix(prior.rows, names), _column(prior.rows, "instructions")
    there = _solve(matrix, _column(prior.rows, column), counts)
    said, values = _matrix(rows, names) @ there, _column(rows, column)
    ratio = float(np.median(values[said > 0] / said[said > 0])) if said.sum() else 1.0
    return there * ratio, BORROWED * np.mean(matrix / counts[:, None], axis=0)


def _part(terms: np.ndarray, value: float, instructions: float) -> np.ndarray:
    """Part the only row there is: a call's fixed cost, at most half, and the main term."""
    fixed = value * min(0.5, FIXED / instructions)
    return np.array([fixed, (value - fixed) / max(terms[1], 1.0)])


class Lenders:
    """Builds of one release that counted a code in proportion: each has the rows of the others.

    Parameters
    ----------
    groups
        Rows by code.
    """

    def __init__(self, groups: Mapping[Key, Sequence[Row]]) -> None:
        self.builds: dict[tuple[str, ...], dict[Key, Sequence[Row]]] = {}
        for key, rows in groups.items():
            self.builds.setdefault(_name_code(key), {})[key] = rows
        found: dict[tuple[object, ...], list[float]] = {}
        for builds in self.builds.values():
            counts = {key: _count(rows) for key, rows in builds.items()}
            for key, other in itertools.combinations(builds, 2):
                if len(ratios := _find_ratios(counts[key], counts[other])) >= COMMON:
                    spread = _find_spread(ratios)
                    found.setdefault(_name_pair(key, other), []).append(spread)
                    found.setdefault(_name_pair(other, key), []).append(spread)
        self.usual = {pair: float(np.median(spreads)) for pair, spreads in found.items()}

    def lend(self, key: Key, rows: Sequence[Row], held: Iterable[str] = ()) -> list[Row]:
        """Return what builds alike, nearest first, counted of shapes neither here nor held out."""
        own, alike = _count(rows), []
        for other, there in self.builds[_name_code(key)].items():
            if other == key or (key.core in VECTORS) != (other.core in VECTORS):
                continue
            ratios = _find_ratios(own, _count(there))
            spread = (_find_spread(ratios) if len(ratios) >= COMMON
                      else self.usual.get(_name_pair(key, other), 1.0))
            if len(ratios) and spread <= ALIKE_WITHIN:
                alike.append((spread, other, np.nanmedian(
                    np.vstack([ratios, np.where(np.isnan(ratios).all(axis=0), 1.0, np.nan)]),
                    axis=0)))
        done, lent = {*held, *own}, []
        for _, other, ratio in sorted(alike, key=lambda one: one[:2]):
            for row in self.builds[_name_code(key)][other]:
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
    matrix = np.stack([_column(rows, name) for name in COLUMNS], axis=1)
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
        if len(rows) < 2 or len(lent[key]) == len(rows):
            continue
        errors: dict[bool, list[float]] = {False: [], True: []}
        for place in range(min(FOLDS, len(rows))):
            held = {row.counted.model: row for row in rows[place::FOLDS]}
            rest = [row for row in rows if row.counted.model not in held]
            for borrows, whole in ((False, priors.get(key)), (True, lent_priors.get(key))):
                known = [*rest, *lenders.lend(key, rest, held)] if borrows else rest
                prior = whole and Prior([row for row in whole.rows
                                         if row.counted.model not in held], whole.names)
                table = fit_code(known, prior, calls.get(key))
                errors[borrows] += [_log_error(table, row) for row in held.values()]
        table = fit_code(rows, priors.get(key), calls.get(key))
        if np.mean(np.square(errors[False])) <= np.mean(np.square(errors[True])) and all(
                predict(table, row) >= HALF * row.counted.instructions for row in lent[key]):
            lent[key] = list(rows)
    for key, core in itertools.product(groups, sorted({key.core for key in groups})):
        other = key._replace(core=core)
        if (key.core, key.level) == BASE and other not in groups and (
                lenders.usual.get(_name_pair(other, key), 1.0) <= ALIKE_WITHIN):
            lent[other] = [_scale(row, other, dict.fromkeys(COLUMNS, 1.0)) for row in groups[key]]
    return lent


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


def predict(table: Mapping[str, Mapping[str, float]], row: Row) -> float:
    """Return the instructions that coefficients give a row."""
    return max(1.0, sum(coefficients["instructions"] * row.terms.get(name, 0.0)
                        for name, coefficients in table.items()))


def _log_error(table: Mapping[str, Mapping[str, float]], row: Row) -> float:
    """Return the logarithm of predicted over counted, 1 at most either way."""
    return float(np.clip(np.log(predict(table, row) / row.counted.instructions), -1.0, 1.0))


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
            found[key] = found.get(base) or Prior(bases[base], choose_terms(bases[base]))
    return found


def find_calls(groups: Mapping[Key, Sequence[Row]]) -> dict[Key, float]:
    """Return what a call costs by the operator's other types, where a code's rows are too large."""
    least = {key: min(row.counted.instructions for row in rows) for key, rows in groups.items()
             if set(rows[0].terms) <= UNARY and len(rows) >= OWN}
    found = {}
    for key, own in least.items():
        small, like = min((least[other], other) for other in least
                          if other[:4] == key[:4])
        if own > LARGER * small:
            call = fit(groups[like], ("call", "element"))["call"]["instructions"]
            if call > small / 4:
                found[key] = call
    return found


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
            prior = whole and Prior([one for one in whole.rows
                                     if one.counted.model != row.counted.model], whole.names)
            table = fit(rest, names, prior, calls.get(key))
            errors.append((key, predict(table, row) / row.counted.instructions - 1))
    return errors


def write_tables(groups: Mapping[Key, Sequence[Row]], lent: Mapping[Key, Sequence[Row]],
                 folder: Path) -> None:
    """Write the coefficients of rows and those lent: one file for kernels, core and level."""
    priors, calls = find_priors(lent), find_calls(lent)
    fitted: dict[Key, tuple[dict[str, dict[str, float]], int]] = {}
    for key, known in lent.items():
        like = key if key in groups else key._replace(core=BASE[0])
        rows = groups[like]
        if key.kernels != REFERENCE and _lacks(like, groups):
            nothing = dict.fromkeys(fit(rows, choose_terms(rows))["call"], 0.0)
            fitted[key._replace(variant=LACKS)] = {"call": nothing}, len(rows)
        elif not (_same_code(like, rows, groups) and _shared(like, groups)):
            table = fit_code(known, priors.get(key), calls.get(key))
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
