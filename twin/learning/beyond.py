"""How far a row lies beyond others: operators they tell nothing of, other sizes, other clocks.

What that adds to a prediction's deviation is added to those of held-out rows, too: so the widening
of what is new is learnt from errors, and not from what was assumed of it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from calibration.fitting.cell import Cell
from calibration.fitting.overlay import Support
from hwmodels.quantities import sum_by_key
from twin.attribution.observations import Observation
from twin.pricing.extrapolation import far_sd
from twin.pricing.price_names import TIME_PRICES

LEAST_SHARE = 1e-6
"""Below, an operator was hardly there."""


def tell_operators(observations: Iterable[Observation], log_of: Callable[[Cell], np.ndarray],
                   before: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return what rows tell of each operator: the sum of its squared shares of time, by network.

    Parameters
    ----------
    observations
        Of one library. Of several rows of a network the one with most of an operator counts.
    log_of
        Log prices of a cell, which shares are at.
    before
        Evidence of earlier rows.

    Returns
    -------
    dict of str to float
        As `calibration.fitting.intervals.remaining_sd` takes it.
    """
    most: dict[str, dict[str, float]] = {}
    logs: dict[Cell, np.ndarray] = {}
    for one in observations:
        if one.cell not in logs:
            logs[one.cell] = log_of(one.cell)
        for name, share in one.design.share_work(logs[one.cell]).items():
            seen = most.setdefault(name, {})
            seen[one.network] = max(share, seen.get(one.network, 0.0))
    shares = dict(before or {})
    for name, seen in most.items():
        shares[name] = shares.get(name, 0.0) + sum(share**2 for share in seen.values())
    return {name: float(f"{shares[name]:.3g}") for name in sorted(shares)
            if shares[name] >= LEAST_SHARE}


def network_cycles(rows: Sequence[Observation]) -> list[float]:
    """Return what whole networks took; where only layers were seen, the sum of each network's."""
    whole = [row.cycles for row in rows if row.whole]
    return whole or list(sum_by_key(  # A layer's network says which layer, too.
        ((row.source, row.network.partition(" ")[0]), row.cycles) for row in rows).values())


def find_support(observations: Sequence[Observation], cell: Cell) -> Support:
    """Return what was measured nearest to a cell: there, on its core, or of its library.

    Sizes of a board that was measured are those of its library anywhere: a drift beyond them is
    that of boards nobody measured alone (docs/accuracy.md).

    Parameters
    ----------
    observations
        Everything learnt from.
    """
    library = [o for o in observations if cell.library in (o.cell.library, "")]
    board = [o for o in library if o.cell.board == cell.board]
    own = [o for o in board if o.cell == cell]
    nearest = (board or [o for o in library if o.cell.core == cell.core] or library
           or list(observations))
    # how costs go with size, rows of other boards tell one that was measured
    totals = network_cycles(library if board else nearest)
    return Support(
        networks=tuple(sorted({o.network for o in own or nearest if o.whole})),
        clocks_hz=tuple(sorted({o.clock_hz for o in nearest})),
        supplies_v=tuple(sorted({round(o.supply_v, 3) for o in nearest if o.supply_v is not None})),
        arenas=tuple(sorted({o.arena for o in board})),
        cycles=(min(totals), max(totals)), boards=tuple(sorted({o.cell.board for o in nearest})))


class Beyond:
    """What observations are beyond one another.

    Parameters
    ----------
    observations
        In the order of the evidence.
    """

    def __init__(self, observations: Sequence[Observation]) -> None:
        self._observations = tuple(observations)
        self._kept: dict[tuple[int, ...], np.ndarray] = {}

    def add(self, rows: Sequence[int]) -> np.ndarray:
        """Return what is added to the deviations of rows when none of them is known.

        Shares of operators are those at stated prices.
        """
        key = tuple(rows)
        if key not in self._kept:
            out = {*rows}
            rest = [one for row, one in enumerate(self._observations) if row not in out]
            self._kept[key] = np.array([
                measure_beyond(rest, self._observations[row], stated_log) for row in rows])
        return self._kept[key]


def stated_log(cell: Cell) -> np.ndarray:
    """Log factors of prices as stated, whatever the cell."""
    return np.zeros(len(TIME_PRICES))


def measure_beyond(known: Sequence[Observation], seen: Observation,
                   log_of: Callable[[Cell], np.ndarray]) -> float:
    """Return what is added to a row's deviation for how far it is beyond those known.

    Parameters
    ----------
    known
        Without the row.
    log_of
        Log prices of a cell.
    """
    support = find_support(known, seen.cell)
    same_library = [one for one in known if one.cell.library == seen.cell.library]
    log = log_of(seen.cell)
    cycles = float((seen.design.cycles @ np.exp(log)).sum())
    return (seen.design.unlearned_sd(log, tell_operators(same_library or known, log_of))
            + far_sd(cycles, seen.clock_hz, support, measured=seen.cell.board in support.boards))
