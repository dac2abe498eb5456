"""The coefficients: what one term of a kernel executes, by kernels, core and compiler level."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from hwmodels.files import read_regular_text
from hwmodels.frozen import frozen
from hwmodels.isa import load_isa
from twin.runtimes.counted.describe import ALONE
from twin.runtimes.counted.mixture import CLASSES, THROUGH
from twin.runtimes.counted.work import Work

FOLDER = Path(__file__).parent / "counts"

ALIASES = {"reshape_copy": "reshape"}
"""Operators counted under another name."""

NEAREST = {"exp": "log", "neg": "abs", "sin": "cos", "gelu": "logistic", "tile": "slice",
           "broadcast_to": "slice", "floor_mod": "floor_div", "erf": "tanh", "mish": "tanh",
           "hard_sigmoid": "hard_swish", "softplus": "log", "pow": "log", "reciprocal": "rsqrt",
           "sign": "abs", "clip": "relu6", "cumsum": "abs", "top_k": "arg_max",
           **dict.fromkeys(("softsign", "selu", "celu"), "elu"),
           **dict.fromkeys(("gather_nd", "scatter_nd"), "gather"),
           **dict.fromkeys(("read_variable", "assign_variable"), "reshape")}
"""Operators nobody counted, and the one that does most alike (assumed)."""

REFERENCE = "reference"
"""Kernels every library falls back to; a table of others holds only what differs from them."""

BASE = "m4"
"""The core every release and level was counted on."""

NEWER = {"2.3.1": "2023", "2023": "2024", "2024": ""}
"""Releases, and the next newer one that was counted; the newest stands in no level's name."""

FALLS = FOLDER.with_name("fall_through")  # branches that are not taken, where counted

LACKS = "none"
"""Variant of an operator a release's library has no kernel of: the portable one runs."""


@frozen
class Amounts:
    """What a call of a kernel executes.

    Parameters
    ----------
    instructions
        By class of `CLASSES`, branches that are not taken apart.
    loads, stores
        Accesses; on a vector core each element of a vector is one.
    stands_in
        Counted on another core, or another variant of the operator.
    """

    instructions: Mapping[str, int]
    loads: int
    stores: int
    load_bytes: int
    store_bytes: int
    stands_in: bool

    @property
    def total(self) -> int:
        """All instructions."""
        return sum(self.instructions.values())


_COLUMNS = ("instructions", *CLASSES, "loads", "stores", "load_bytes", "store_bytes")
_Rows = Mapping[tuple[str, str], Mapping[str, Mapping[str, float]]]


def choose_core(isa: str, fpu: str | None, kernels: str) -> tuple[str, bool]:
    """Return the counted core nearest to a core, and whether it is of another instruction set.

    Kernels in floating point, "", are those of a core with the same FPU.
    """
    described = load_isa(load_isa(isa).counted_as.get(kernels, isa))
    return described.counted[fpu or "none"], described.counted_elsewhere or described.name != isa


@lru_cache(maxsize=64)
def _read(kernels: str, core: str, level: str) -> _Rows:
    """Return the coefficients of one build; none where nothing was counted of it alone."""
    table: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for path in (folder / f"{kernels}-{core}-{level}.csv" for folder in (FOLDER, FALLS)):
        for row in csv.DictReader(read_regular_text(path).splitlines() if path.is_file() else ()):
            terms = table.setdefault((row.pop("operator"), row.pop("variant")), {})
            terms.setdefault(row.pop("term"), {}).update(
                (name, float(often or 0)) for name, often in row.items())
    return table


def find_newer(level: str) -> str:
    """Return the level of the next newer release: its count holds where the source is the same."""
    options, _, release = level.partition("@")
    return f"{options}@{NEWER.get(release, '')}".rstrip("@")


def is_carried(kernels: str, core: str, level: str) -> bool:
    """Whether a level was not counted on a core, products above all: `BASE`'s ratio stands in."""
    return not any(op == "fully_connected" for library in (kernels, REFERENCE)
                   for op, _ in _read(library, core, level))


def look_up(kernels: str, core: str, level: str, op: str, work: Work) -> Amounts | None:
    """Return what a layer executes; None for an operator nobody counted.

    Parameters
    ----------
    kernels
        "cmsis-nn" or "reference".
    core, level
        "m4"; "O2", "Os" or "O2-dcheck", of an older release "O2@2023".
    op
        Canonical operator.

    Notes
    -----
    A table of an older release holds only code that executes otherwise than the next newer one's,
    and operators its library lacked. What was not counted on a core at a level is carried from the
    Cortex-M4, by the ratio of what both have counted there or at O2 (assumed). A variant nobody
    counted takes the coefficients of the operator's nearest: the same path of the library without
    its strides, then the same types.
    """
    op = ALIASES.get(op, op)
    if kernels in ALONE:
        own, other = (_find(kernels, one, level, op, work) for one in (core, BASE))
        return own or (other and replace(other, stands_in=True))
    if (op, LACKS) in _read(kernels, BASE, level.replace(level.partition("@")[0], "O2")):
        kernels = REFERENCE
    found = _find(kernels, core, level, op, work)
    if found is not None:
        return found
    options, _, release = level.partition("@")
    if release:
        found = look_up(kernels, core, find_newer(level), op, work)
        level = level if _find(kernels, BASE, level, op, work) else f"O2@{release}"
        return _carry(found, _find(kernels, BASE, level, op, work),
                      look_up(kernels, BASE, find_newer(level), op, work))
    if options != "O2" and core != BASE:
        return _carry(look_up(kernels, core, "O2", op, work),
                      _find(kernels, BASE, level, op, work), _find(kernels, BASE, "O2", op, work))
    if core != BASE and (found := _find(kernels, BASE, level, op, work)) is not None:
        return replace(found, stands_in=True)
    if op in NEAREST and not any(name == op for name, _ in _read(REFERENCE, core, level)):
        op = NEAREST[op]
    near = {variant: terms for (name, variant), terms in _read(REFERENCE, core, level).items()
            if name == op}
    if not near:
        return None
    types = work.variant.split(" ")[0]
    return _sum_up(near[max(near, key=lambda variant: variant.split(" ")[0] == types)],
                   work.terms, stands_in=True)


def _find(kernels: str, core: str, level: str, op: str, work: Work) -> Amounts | None:
    """Return what was counted of this very build; None where nothing was."""
    work = work.at(core, level)
    for library in dict.fromkeys((kernels, REFERENCE)):
        rows = _read(library, core, level)
        code = work.code(library, core)
        op = work.runs or op if library != REFERENCE else op
        terms = rows.get((op, code))
        if terms is not None:
            return _sum_up(terms, work.count(library), stands_in=bool(
                work.guessed or not next(iter(terms.values()))["rows"]))
        if "@" in level and (op, code) in _read(library, core, "O2"):
            break  # Its own kernel, the same as in the next release.
        like = code != work.variant and rows.get((op, code.rsplit(" ", 1)[0]))
        if like:
            return _sum_up(like, work.count(library), stands_in=True)
    return None


def _carry(amounts: Amounts | None, there: Amounts | None,
           instead: Amounts | None) -> Amounts | None:
    """Return amounts times the ratio of two counted on another core, unless either is empty."""
    if amounts is None or there is None or instead is None or 1 in (there.total, instead.total):
        return amounts
    return scale(amounts, there.total / instead.total)


def scale(amounts: Amounts, factor: float) -> Amounts:
    """Return amounts so many times as large, as assumed."""
    return Amounts(
        instructions={name: round(factor * count) for name, count in amounts.instructions.items()},
        stands_in=True, **{name: round(factor * getattr(amounts, name))
                           for name in ("loads", "stores", "load_bytes", "store_bytes")})


def _sum_up(terms: Mapping[str, Mapping[str, float]], counts: Mapping[str, float], *,
            stands_in: bool) -> Amounts:
    sums = {name: sum(coefficients.get(name, 0.0) * counts.get(term, 0.0)
                      for term, coefficients in terms.items())
            for name in (*_COLUMNS, THROUGH)}
    whole = max(1, round(sums["instructions"]))
    spread = sum(sums[name] for name in CLASSES) or 1.0
    classes = {name: int(sums[name] / spread * whole) for name in CLASSES}
    classes["alu"] += whole - sum(classes.values())
    through = min(classes["branch"], round(sums[THROUGH]))
    classes |= {"branch": classes["branch"] - through, THROUGH: through}
    return Amounts(instructions=classes, stands_in=stands_in, **{
        name: round(sums[name]) for name in ("loads", "stores", "load_bytes", "store_bytes")})
