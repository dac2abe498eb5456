"""A change of a deployment, predicted: its gain, its effort, and which of several is best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast
from warnings import warn

from calibration.fitting.intervals import BASES, Basis, Interval
from hwmodels.errors import TwinError
from hwmodels.frozen import NamedTexts, frozen
from twin.deployment.deployment import Deployment
from twin.network.operators import graph_macs
from twin.network.rewrites.rewrite import EFFORTS
from twin.pricing.draw import ratio_interval, read_draw
from twin.studies.limits import Limits
from twin.studies.rows import Row, ratio_of

LITTLE_MORE = 0.5
"""What a single change may lose more than a pair that is slower, to stand before it: a fifth of
the multiply-accumulates and of the weights (assumed)."""


@frozen
class Change:
    """A change, or a pair, and what it is predicted to do.

    Parameters
    ----------
    settings : tuple of (str, str)
        What-if paths and values, as `--set` takes them.
    effort
        Of `EFFORTS`: of the most expensive part.
    costs
        What it costs besides; "" where nothing.
    row
        Predicted, held to the limits.
    time_ratio, energy_ratio
        After over before: below 1 is less; None is not known.
    time_ratio_interval
        Of the first, errors in common cancelled; None without intervals.
    rests_on
        What stands behind the prediction.
    lost
        Of a change that costs accuracy, how much less its network computes and holds: the
        logarithms of multiply-accumulates and of bytes of weights before over after, summed. It
        orders changes, no more: accuracy is not predicted.
    """

    settings: NamedTexts
    effort: str
    costs: str
    row: Row
    time_ratio: float | None
    energy_ratio: float | None
    time_ratio_interval: Interval | None = None
    rests_on: str = ""
    lost: float = 0.0

    @property
    def ratio(self) -> Interval | None:
        """Interval of time before over after, as commands print it; None without intervals."""
        moved = self.time_ratio_interval
        return moved and replace(moved, low=1 / moved.high, high=1 / moved.low)

    @property
    def gain(self) -> Interval | None:
        """Deprecated: `time_ratio_interval`, of time after over before."""
        warn("Change.gain is Change.time_ratio_interval, after over before; as printed: "
             "Change.ratio", DeprecationWarning, stacklevel=2)
        return self.time_ratio_interval

    @property
    def rank(self) -> int:
        """Place of its effort among `EFFORTS`, the least first."""
        return EFFORTS.index(self.effort)

    @property
    def risks_accuracy(self) -> bool:
        """Whether the network may answer otherwise."""
        return "accuracy" in self.costs

    @property
    def words(self) -> str:
        """The options that make it."""
        return " ".join(f"--set {path}={value}" for path, value in self.settings)


def make_change(settings: NamedTexts, effort: str, costs: str, row: Row,
                before: Row, *, lost: float = 0.0) -> Change:
    """Return a change with how it moves time and energy."""
    return Change(settings=settings, effort=effort, costs=costs, row=row, lost=lost,
                  time_ratio_interval=relate_times(before, row),
                  rests_on=_rests_on(row) * (not row.failure),
                  time_ratio=ratio_of(row, before, "time_us"),
                  energy_ratio=ratio_of(row, before, "energy_uj"))


def measure_loss(deployment: Deployment, settings: Sequence[tuple[str, str]], costs: str) -> float:
    """Return how much less the network of a change that costs accuracy computes and holds.

    Only changes of the network count: a library lays the same weights out in other bytes.
    """
    if "accuracy" not in costs:
        return 0.0
    try:
        after = deployment.replace({path: value for path, value in settings
                                    if path.startswith("network.")})
    except TwinError:
        return 0.0
    return sum(math.log(max(1, one) / max(1, other)) for one, other in (
        (graph_macs(deployment.graph), graph_macs(after.graph)),
        (deployment.placement.weights_bytes, after.placement.weights_bytes)))


def rank_changes(changes: Iterable[Change], limits: Limits) -> list[Change]:
    """Return changes, best first: surely met before met, by effort, by accuracy at risk; then near.

    What is met in nine of ten cases comes before what is met by its prediction only. A pair
    is of the effort of its dearer part: one that risks no accuracy comes before a single change of
    that effort that does. Of changes that meet the limits and risk accuracy, the one that takes
    least of the network is first, a pair slower than a single one that takes little more after
    that, and each after its parts that are sure alone; else a single one before a pair. Of clocks
    that are sure to meet them the one that changes the time least is first.
    """
    changes = [*changes]
    nearest = min(filter(None, map(_move, changes)), default=0.0)
    singles = [one for one in changes
               if one.row.sure and one.risks_accuracy and len(one.settings) == 1]

    def lose(pair: Change) -> float:
        faster = [one.lost for one in singles if len(pair.settings) > 1 and one.rank == pair.rank
                  and (one.settings[0] in pair.settings or (
                      one.lost <= pair.lost + LITTLE_MORE
                      and (one.row.time_us or 0.0) < (pair.row.time_us or 0.0)))]
        return max(pair.lost, min(faster, default=0.0))

    def key(one: Change) -> tuple[float, ...]:
        return (not one.row.met, not one.row.sure, one.rank, one.risks_accuracy,
                round(lose(one), 6) if one.row.met else 0.0, len(one.settings), bool(one.costs),
                _move(one) > nearest, excess(one.row, limits))

    return sorted(changes, key=key)


def _move(change: Change) -> float:
    """Return how far a clock that is sure to meet the limits moves the time; 0: another change.

    The logarithm of its ratio, either way.
    """
    clock = len(change.settings) == 1 and change.settings[0][0].endswith(".frequency_hz")
    return abs(math.log(change.time_ratio or 1.0)) if clock and change.row.sure else 0.0


def excess(row: Row, limits: Limits) -> float:
    """Return by how much a row exceeds its limits: the sum of log ratios; less is nearer.

    Where all are met it is the largest, below zero. What is not known exceeds by a factor of e.
    """
    over = [1.0 if value is None else math.log(value / limit) if value else -math.inf
            for name, limit in limits.after(row.wake_up_us).list_limits()
            for value in (getattr(row, name),)]
    above = [one for one in over if one > 0]
    return sum(above) if above else max(over, default=0.0)


def relate_times(before: Row, after: Row) -> Interval | None:
    """Return the interval of the ratio of two times, after over before; None: draws are not known.

    What prices, and the structure of one network, have in common cancels; no surer than if all of
    both were common.
    """
    if not (before.draw and after.draw and before.time and after.time
            and before.time_us and after.time_us):
        return None
    found = ratio_interval(before.time_us, after.time_us, read_draw(before.draw),
                           read_draw(after.draw))
    together = (after.time.low / before.time.low, after.time.high / before.time.high)
    return replace(found, low=min(found.low, *together), high=max(found.high, *together))


def _rests_on(row: Row) -> str:
    """Say what stands behind a row's intervals."""
    if not row.basis:
        return ("stated prices, without an interval" if row.time is None else
                "stated rates of the accelerator; intervals by families of held-out networks")
    kind = BASES[cast(Basis, row.basis)].replace("{} ", "").split(": ")[-1]
    return f"{row.basis} intervals: {kind}; {row.calibration}"
