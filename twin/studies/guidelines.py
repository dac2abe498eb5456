"""Guidelines learnt from results of studies: a tree with its errors, classes of hardware, changes.

Nothing here is a rule of thumb: each figure is counted in rows of studies that are named.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from calibration.fitting.tree import grow_tree
from hwmodels.board.file import load_board
from twin.errors import StudyError
from twin.network.operators import layer_macs
from twin.network.readers import read_model
from twin.studies.results import Row, Table
from twin.studies.study.findings import Effect, group_rows, list_effects
from twin.studies.study.study import Finding, Study

DEPTH, LEAST = 4, 4
"""Of the tree: its levels, and the fewest runs a leaf stands on."""

CHANGED = "network."
"""Rows whose network was changed by a path are not of the model their name says: left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf of the tree: what leads to it, and what its runs cost.

    Parameters
    ----------
    rules : tuple of str
        From the root.
    typical : float
        Geometric mean of the figure over its runs.
    runs : int
        How many.
    error : float or None
        Median of how far its runs were off, as a factor from 1 on, where their network was left
        out of the learning; None with one network.
    """

    rules: tuple[str, ...]
    typical: float
    runs: int
    error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareClass:
    """What results say of a class of hardware.

    Parameters
    ----------
    core : str
        Family of its core.
    boards : tuple of str
        Of the rows.
    fastest, thriftiest : tuple of str
        Networks no other class runs in less time, or with less energy.
    behind : float or None
        Median of its best time over the best of all, by network.
    effects : tuple of (str, Effect)
        Study and effect of changes on its boards alone.
    refusals : tuple of (str, int)
        What its boards cannot do, and how often.
    """

    core: str
    boards: tuple[str, ...]
    fastest: tuple[str, ...]
    thriftiest: tuple[str, ...]
    behind: float | None
    effects: tuple[tuple[str, Effect], ...]
    refusals: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidelines:
    """All that is told.

    Parameters
    ----------
    studies : tuple of str
        They rest on.
    rows : int
        Predicted configurations in them.
    time_tree, energy_tree : tuple of Leaf
        Of time (us) and energy (uJ).
    classes : tuple of HardwareClass
        By core.
    effects : tuple of (str, Effect)
        Study and effect, over all boards; those that save most in the median first.
    """

    studies: tuple[str, ...]
    rows: int
    time_tree: tuple[Leaf, ...]
    energy_tree: tuple[Leaf, ...]
    classes: tuple[HardwareClass, ...]
    effects: tuple[tuple[str, Effect], ...]


def learn(sources: Sequence[tuple[Study, Table]]) -> Guidelines:
    """Return the guidelines of finished studies.

    Raises
    ------
    StudyError
        Where there are too few rows to learn from.
    ToolMissingError
        Without scikit-learn.
    """
    rows = [row for study, table in sources for row in table.predicted if _is_plain(study, row)]
    if len(rows) < 4 * LEAST:
        raise StudyError(f"{len(rows)} rows with their network as it is; accepted: {4 * LEAST} or "
                         "more, from studies of several models and boards")
    return Guidelines(
        studies=tuple(study.name for study, _ in sources),
        rows=sum(len(table.predicted) for _, table in sources),
        time_tree=grow(rows, "time_us"), energy_tree=grow(rows, "energy_uj"),
        classes=tuple(_describe(core, rows, sources) for core in
                      sorted({core_class(row.board) for row in rows})),
        effects=_rank(_effects(sources)))


def _is_plain(study: Study, row: Row) -> bool:
    inputs = dict(row.inputs)
    paths = [*inputs, *study.cases.get(inputs.get("case", ""), {})]
    return not any(path.startswith(CHANGED) for path in paths)


FEATURES = ("million MACs", "KiB of weights and code", "core MHz")


def list_features(row: Row, cores: Sequence[str], libraries: Sequence[str]) -> list[float]:
    """Return what the tree may ask of a row; cores and libraries are 0 or 1 each."""
    macs = count_macs(row.model) / 1e6
    core, library = core_class(row.board), row.runtime.partition("@")[0]
    return [macs, (row.flash_bytes or 0) / 1024, (row.clock_hz or 0) / 1e6,
            *(float(core == one) for one in cores), *(float(library == one) for one in libraries)]


@functools.cache
def count_macs(model: str) -> int:
    """Return the multiply-accumulates of an inference."""
    graph = read_model(model)
    return sum(layer_macs(graph, layer) for layer in graph.layers)


def grow(rows: Sequence[Row], figure: str) -> tuple[Leaf, ...]:
    """Return the leaves of a regression tree of the logarithm of a figure.

    Parameters
    ----------
    rows : sequence of Row
        Those that do not know the figure are left out.
    figure : str
        "time_us" or "energy_uj".

    Notes
    -----
    The error of a leaf is that of its runs predicted by trees grown without their network.
    """
    known = [row for row in rows if getattr(row, figure) is not None]
    if len(known) < 2 * LEAST:
        return ()
    cores = sorted({core_class(row.board) for row in known})
    libraries = sorted({row.runtime.partition("@")[0] for row in known})
    asked = np.array([list_features(row, cores, libraries) for row in known])
    told = np.log([getattr(row, figure) for row in known])
    tree = grow_tree(asked, told, [row.model for row in known], depth=DEPTH, least=LEAST)
    off = None if tree.left_out is None else np.exp(np.abs(tree.left_out - told))
    names = [*FEATURES, *cores, *libraries]
    places = tree.places
    return tuple(Leaf(rules=rules, typical=float(np.exp(told[places == leaf].mean())),
                      runs=int((places == leaf).sum()),
                      error=None if off is None else float(np.median(off[places == leaf])))
                 for leaf, rules in _walk(tree.nodes, names))


def _walk(tree: Any, names: Sequence[str], node: int = 0, rules: tuple[str, ...] = (),
          ) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each leaf with the rules that lead to it."""
    if tree.children_left[node] == tree.children_right[node]:
        yield node, rules
        return
    name, limit = names[tree.feature[node]], float(tree.threshold[node])
    is_word = names.index(name) >= len(FEATURES)
    below = f"not {name}" if is_word else f"{name} <= {limit:.3g}"
    above = name if is_word else f"{name} > {limit:.3g}"
    yield from _walk(tree, names, int(tree.children_left[node]), (*rules, below))
    yield from _walk(tree, names, int(tree.children_right[node]), (*rules, above))


@functools.cache
def core_class(board: str) -> str:
    """Return the class of hardware of a board: its core, and whether there is an accelerator."""
    found = load_board(board)
    return found.core_family + (" with NPU" if found.npu is not None else "")


def _describe(core: str, rows: Sequence[Row], sources: Sequence[tuple[Study, Table]],
              ) -> HardwareClass:
    own = [row for row in rows if core_class(row.board) == core]
    behind = [ratio for model in dict.fromkeys(row.model for row in rows)
              if (ratio := _least(own, model, "time_us") / _least(rows, model, "time_us")) < 1e300]
    refused = Counter(row.failure for _, table in sources for row in table.failed
                      if core_class(row.board) == core)
    return HardwareClass(
        core=core, boards=tuple(sorted({row.board for row in own})),
        fastest=_winners(own, rows, "time_us"), thriftiest=_winners(own, rows, "energy_uj"),
        behind=median(behind) if behind else None, refusals=tuple(refused.most_common()),
        effects=_rank(_effects(sources, core)))


def _winners(own: Sequence[Row], rows: Sequence[Row], figure: str) -> tuple[str, ...]:
    return tuple(model for model in dict.fromkeys(row.model for row in rows)
                 if _least(own, model, figure) <= _least(rows, model, figure) < math.inf)


def _least(rows: Sequence[Row], model: str, figure: str) -> float:
    return min((value for row in rows if row.model == model
                and (value := getattr(row, figure)) is not None), default=math.inf)


def _effects(sources: Sequence[tuple[Study, Table]], core: str = "",
             ) -> Iterator[tuple[str, Effect]]:
    """Yield effects of every study that compares something, on a class of hardware or on all."""
    for study, table in sources:
        if study.finding is None or study.finding.vary in ("model", "board"):
            continue
        rows = [row for row in table.rows if not core or core_class(row.board) == core]
        finding = Finding(vary=study.finding.vary, baseline=study.finding.baseline,
                          figures=("time_us", "energy_uj"))
        if any(len(group) > 1 for group in group_rows(rows, finding.vary)):
            for effect in list_effects(Table(rows=tuple(rows)), finding):
                yield study.name, effect


def _rank(effects: Iterator[tuple[str, Effect]]) -> tuple[tuple[str, Effect], ...]:
    return tuple(sorted(effects, key=lambda one: one[1].median))
