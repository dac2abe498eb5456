"""Two predictions side by side: what a change of deployment moves, and which causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hwmodels.counts import CAUSES
from twin.prediction.certainty import probability_faster
from twin.prediction.document import SCHEMA, to_document
from twin.prediction.ledger import bill_energy_uj, bill_time_us, cycles_by_clock, make_ledger
from twin.prediction.prediction import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseMove:
    """How much of one cause came or went.

    Parameters
    ----------
    cause : str
        One of the bill's.
    before_us, after_us : float
        Time in microseconds.
    before_uj, after_uj : float or None
        Energy in microjoules; None is not known.
    """

    cause: str
    before_us: float
    after_us: float
    before_uj: float | None
    after_uj: float | None

    @property
    def time_us(self) -> float:
        """Change of time, negative when it got faster."""
        return self.after_us - self.before_us

    @property
    def energy_uj(self) -> float | None:
        """Change of energy; None when either side is not known."""
        return subtract(self.after_uj, self.before_uj)


def subtract(after: float | None, before: float | None) -> float | None:
    """Difference of two figures; not known when either is not."""
    return None if after is None or before is None else after - before


def list_moves(before: Prediction, after: Prediction) -> tuple[CauseMove, ...]:
    """Return the causes whose time or energy moved, the largest change of time first.

    Parameters
    ----------
    before, after : Prediction
        Of the same network.

    Returns
    -------
    tuple of CauseMove
        Causes that cost the same are left out.
    """
    present = {*before.bill.causes(), *after.bill.causes()}
    moves = [CauseMove(
        cause=cause,
        before_us=bill_time_us(before, before.bill, cause),
        after_us=bill_time_us(after, after.bill, cause),
        before_uj=bill_energy_uj(before.bill, cause), after_uj=bill_energy_uj(after.bill, cause),
    ) for cause in CAUSES if cause in present]
    moved = [move for move in moves if move.before_us != move.after_us
             or move.before_uj != move.after_uj]
    return tuple(sorted(moved, key=lambda move: (-abs(move.time_us), -abs(move.energy_uj or 0.0))))


def odds_of_faster(before: Prediction, after: Prediction) -> float | None:
    """Return the probability that `after` is really faster; None at stated prices."""
    if before.certainty is None or after.certainty is None:
        return None
    return probability_faster(before.time_us, after.time_us, before.certainty.draw,
                              after.certainty.draw)


def to_difference_document(before: Prediction, after: Prediction,
                           changes: Mapping[str, object],
                           remarks: Iterable[str] = ()) -> dict[str, Any]:
    """Write a what-if as a document: what was set, both predictions, and what moved.

    Parameters
    ----------
    before, after : Prediction
        Without and with the changes.
    changes : mapping of str to object
        Dotted path to value, as set.
    remarks : iterable of str
        What a reader must be told, from `twin.attribution.effects`.

    Returns
    -------
    dict
        Of plain JSON types.
    """
    cycles_before = cycles_by_clock(make_ledger(before).total)
    cycles_after = cycles_by_clock(make_ledger(after).total)
    return {
        "schema": SCHEMA,
        "kind": "what-if",
        "remarks": list(remarks),
        "set": {path: str(value) for path, value in changes.items()},
        "before": to_document(before),
        "after": to_document(after),
        "difference": {
            "time_us": after.time_us - before.time_us,
            "probability_faster": odds_of_faster(before, after),
            "energy_uj": subtract(after.energy_uj, before.energy_uj),
            "cycles": {clock: cycles_after.get(clock, 0) - cycles_before.get(clock, 0)
                       for clock in dict.fromkeys((*cycles_before, *cycles_after))},
            "ram_bytes": after.ram_bytes - before.ram_bytes,
            "flash_bytes": after.flash_bytes - before.flash_bytes,
            "causes": [{"cause": move.cause, "time_us": move.time_us, "energy_uj": move.energy_uj}
                       for move in list_moves(before, after)],
        },
    }
