"""A decision tree from requirements to hardware, library and setting, or INFEASIBLE.

Requirements are drawn over the range of what rows take, each is given the row that meets it best,
and a classification tree learns which: every leaf cites the rows it stands on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from calibration.fitting.tree import grow_tree, tighten
from hwmodels.frozen import frozen
from twin.studies.rows import Row

INFEASIBLE = "INFEASIBLE"
DRAWN, DEPTH, LEAST, SEED = 4096, 5, 40, 0
"""Requirements, levels of the tree, fewest requirements of a leaf, and what draws them."""

ASKED = {"time_us": ("latency", "ms", 1e-3), "energy_uj": ("energy", "mJ", 1e-3),
         "ram_bytes": ("RAM", "KiB", 1 / 1024), "price_usd": ("price", "USD", 1.0),
         "error": ("error rate", "%", 100.0)}
"""What requirements are of: its name, unit and factor."""

Path = tuple[tuple[str, bool], ...]


@frozen
class Decision:
    """A leaf: what leads to it, what it advises, and what that stands on.

    Parameters
    ----------
    rules
        From the root: limits that are given.
    choice
        Board, or `INFEASIBLE`.
    right
        Share of the requirements that lead here of which the choice is the best.
    requirements
        How many lead here.
    rows : tuple of (int, Row)
        The rows that were best, the most often best first, with their numbers in the table.
    path : tuple of (str, bool)
        From the root: each limit that is asked, and whether the one given is above it.
    """

    rules: tuple[str, ...]
    choice: str
    right: float
    requirements: int
    rows: tuple[tuple[int, Row], ...]
    path: Path = ()


def decide(rows: Sequence[Row]) -> tuple[Decision, ...]:
    """Return the leaves of the tree of one network's rows, or of networks that compete.

    Parameters
    ----------
    rows
        Of one table, failed ones too: their numbers are cited.

    Raises
    ------
    ToolMissingError
        Without scikit-learn.

    Notes
    -----
    A requirement is an upper limit on time, energy, RAM, price and, where known, errors, each drawn
    evenly in the logarithm from half the least to twice the most a row takes. Of the rows that meet
    all by their prediction the cheapest is best, of equally cheap ones that with least energy, then
    time; one whose figure is not known meets no limit on it. Energy is taken as stated, of a chip
    or a board.
    """
    shown = [(number, row) for number, row in enumerate(rows) if not row.failure]
    names = [name for name in ASKED if any(getattr(row, name) for _, row in shown)]
    if len(shown) < 2 or not names:
        return ()
    values = np.array([[_known(getattr(row, name)) for name in names] for _, row in shown])
    least = np.nanmin(np.where(np.isinf(values) | (values <= 0), np.nan, values), axis=0) / 2
    most = np.nanmax(np.where(np.isinf(values), np.nan, values), axis=0) * 2
    draws = np.random.default_rng(SEED).random((DRAWN, len(names)))
    asked = least * (most / least) ** draws
    order = sorted(range(len(shown)), key=lambda place: tuple(
        _known(getattr(shown[place][1], name)) for name in ("price_usd", "energy_uj", "time_us")))
    best = np.full(DRAWN, -1)
    for place in reversed(order):
        best[(values[place] <= asked).all(axis=1)] = place
    labels = [INFEASIBLE if place < 0 else shown[place][1].board for place in best]
    tree = grow_tree(np.log(asked), labels, depth=DEPTH, least=LEAST)
    found = []

    def limit(feature: int, log: float) -> tuple[str, str]:
        name, unit, factor = ASKED[names[feature]]
        return name, f"{factor * math.exp(log):.3g} {unit}"

    for node, path in tree.list_leaves():
        mine = [place for place, own in enumerate(tree.places) if own == node]
        choice, count = Counter(labels[place] for place in mine).most_common(1)[0]
        cited = Counter(int(best[place]) for place in mine if labels[place] == choice)
        found.append(Decision(
            rules=tuple(f"{name} limit {'above' if above else 'up to'} {value}"
                        for feature, log, above in tighten(path)
                        for name, value in (limit(feature, log),)),
            path=tuple((" ".join(limit(feature, log)), above) for feature, log, above in path),
            choice=choice, right=count / len(mine), requirements=len(mine),
            rows=tuple(shown[place] for place, _ in cited.most_common(3) if place >= 0)))
    return tuple(found)


def _known(value: float | None) -> float:
    return math.inf if value is None else float(value)
