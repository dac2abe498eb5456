"""Advice: the cheapest change of a deployment, then pair of changes, that meets limits.

Every change is predicted; none has a factor of its own. Changes are tried class of effort by class
of effort, so that a setting is found before a network is trained again.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from calibration.fitting.intervals import BASES, Basis, Interval
from twin.deployment.deployment import Deployment
from twin.deployment.transformations import Transformation, list_transformations
from twin.errors import UsageError
from twin.prediction.certainty import ratio_interval
from twin.prediction.prediction import Prediction
from twin.studies.axes import list_clocks, list_each_runtime
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.results import QUANTITIES, Row, judge

EFFORTS = ("setting", "rebuild", "conversion", "retraining")
"""Classes of effort, least first: a setting of the board; another image; the network converted
anew; trained again."""

SURE = 0.9
"""Probability of meeting the limits from which no dearer class of effort is tried."""

SURER = 0.01
"""By how much more probable a change must make limits that are met already."""

PAIRED = 8
"""Single changes that pairs are made of, and pairs that are predicted."""

REMEDIES = {
    "cache": ("placement.weights", "placement.arena", "caches."),
    "bandwidth": ("placement.weights", "placement.arena"),
    "stalled": ("placement.weights", "placement.arena"),
    "compute": ("clocks.", "runtime", "kernels."), "overhead": ("runtime", "kernels.")}
"""What is tried against each kind of bottleneck, by the beginnings of paths."""

MOST_VALUES, NOTABLE = 4, 0.98
"""Values of one path a suggestion tries; after over before from which it is worth saying."""

Told = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change, or a pair, and what it is predicted to do.

    Parameters
    ----------
    settings : tuple of (str, str)
        What-if paths and values, as `--set` takes them.
    effort : str
        Of `EFFORTS`: of the dearest part.
    costs : str
        What it costs besides; "" where nothing.
    row : Row
        Predicted, held to the limits.
    gain : Interval or None
        Of time after over before, errors in common cancelled; None without intervals.
    time_ratio, energy_ratio : float or None
        After over before; None is not known.
    rests_on : str
        What stands behind the prediction.
    """

    settings: tuple[tuple[str, str], ...]
    effort: str
    costs: str
    row: Row
    time_ratio: float | None
    energy_ratio: float | None
    gain: Interval | None = None
    rests_on: str = ""

    @property
    def words(self) -> str:
        """The options that make it."""
        return " ".join(f"--set {path}={value}" for path, value in self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What would make a deployment meet limits.

    Parameters
    ----------
    deployment : Deployment
        As it is.
    limits : Limits
        It is to meet.
    before : Row
        What is predicted of it.
    changes : tuple of Change
        Single changes that were tried, best first: those that meet the limits by effort, then the
        nearest.
    pairs : tuple of Change
        As far as pairs were tried.
    refused : tuple of (str, str)
        Changes that cannot be, with the reason.
    """

    deployment: Deployment
    limits: Limits
    before: Row
    changes: tuple[Change, ...]
    pairs: tuple[Change, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def met(self) -> bool:
        """Whether the limits are met without any change."""
        return self.before.met

    @property
    def best(self) -> Change | None:
        """The cheapest change that meets the limits, a single before a pair; None: none does.

        Where they are met already, one that meets them more surely.
        """
        return next((one for one in (*self.changes, *self.pairs)
                     if one.row.met and (not self.met or self._is_surer(one))), None)

    @property
    def nearest(self) -> Change | None:
        """What comes nearest to the limits, where nothing meets them."""
        tried = (*self.changes, *self.pairs)
        found = min(tried, key=lambda one: excess(one.row, self.limits), default=None)
        return found if found is not None and excess(found.row, self.limits) < excess(
            self.before, self.limits) else None

    def _is_surer(self, change: Change) -> bool:
        now, then = change.row.probability, self.before.probability
        return excess(change.row, self.limits) < excess(self.before, self.limits) if (
            now is None or then is None) else now >= then + SURER


def give_advice(deployment: Deployment, limits: Limits, deployer: Deployer | None = None, *,
                efforts: Sequence[str] = EFFORTS, pairs: bool = True, thorough: bool = False,
                on_progress: Told | None = None) -> Advice:
    """Return what would make a deployment meet limits.

    Parameters
    ----------
    deployment : Deployment
        As it is.
    limits : Limits
        At least one.
    deployer : Deployer, optional
        Prices and temperature.
    efforts : sequence of str
        Classes of effort that are allowed.
    pairs : bool
        Whether pairs are tried where no single change is sure to meet the limits.
    thorough : bool
        Whether dearer classes are tried where a cheaper one has a sure change.
    on_progress : callable, optional
        Told (changes done, changes, failures).

    Raises
    ------
    UsageError
        Without a limit.
    """
    if not limits:
        raise UsageError("advise: no limit to meet; accepted: --max-ms, --max-uj, --max-ram, "
                         "--max-flash")
    deployer = deployer or Deployer()
    before, = (judge(row, limits) for row in deployer.predict_changed(deployment, [{}]))
    found: list[Change] = []
    refused: list[tuple[str, str]] = []
    candidates = sort_candidates(deployment, efforts)
    total = sum(map(len, candidates.values()))
    for effort in EFFORTS:
        for change in _try(deployment, candidates.get(effort, []), deployer, before, limits):
            if change.row.failure:
                refused.append((change.words, change.row.reason))
            elif _matters(change, before, limits):
                found.append(change)
            if on_progress is not None:
                on_progress(min(len(found) + len(refused), total), total, len(refused))
        if not thorough and any(_is_sure(one) for one in found):
            break
    found = rank_changes(found, limits)
    paired: list[Change] = []
    if pairs and not any(_is_sure(one) for one in found) and not before.met:
        paired = rank_changes(_pair(deployment, found, deployer, before, limits), limits)
    explain = Explainer(deployment=deployment, deployer=deployer)
    return Advice(deployment=deployment, limits=limits, before=before,
                  changes=tuple(explain.complete(found)), pairs=tuple(explain.complete(paired)),
                  refused=tuple(refused))


def sort_candidates(deployment: Deployment, efforts: Iterable[str] = EFFORTS,
                    ) -> dict[str, list[tuple[Transformation, str]]]:
    """Return changes worth trying with their value, by class of effort.

    Clocks are those `list_clocks` names, runtimes those `list_each_runtime` does.
    """
    found: dict[str, list[tuple[Transformation, str]]] = {effort: [] for effort in efforts}
    for one in list_transformations(deployment):
        values: Iterable[str] = one.values
        if one.path.startswith("clocks."):
            values = list_clocks(deployment.board)
        elif one.path == "runtime":
            values = [name for name in list_each_runtime(deployment.board)
                      if name in one.values]
        elif one.path == "kernels.level" and deployment.runtime.is_compiled:
            values = ()
        found.get(one.effort, []).extend((one, str(value)) for value in values)
    return found


def suggest_change(deployment: Deployment, bottleneck: str, deployer: Deployer | None = None,
                   ) -> Change | None:
    """Return the setting or rebuild that saves most time against a bottleneck; None: none helps.

    Parameters
    ----------
    deployment : Deployment
        As it was measured.
    bottleneck : str
        Kind, a key of `REMEDIES`: which changes are tried; any other: all of them.
    deployer : Deployer, optional
        Prices and temperature.
    """
    deployer = deployer or Deployer()
    tried = try_changes(deployment, deployer, bottleneck)
    best = min((one for one in tried if one.time_ratio is not None and one.time_ratio < NOTABLE),
               key=lambda one: one.time_ratio or 1.0, default=None)
    return None if best is None else next(
        Explainer(deployment=deployment, deployer=deployer).complete([best]))


def try_changes(deployment: Deployment, deployer: Deployer, bottleneck: str = "",
                efforts: Sequence[str] = EFFORTS[:2], on_progress: Told | None = None,
                ) -> list[Change]:
    """Return changes of a bottleneck's remedies, each predicted, those that cannot be too.

    Parameters
    ----------
    deployment : Deployment
        As it is.
    deployer : Deployer
        Prices and temperature.
    bottleneck : str
        Key of `REMEDIES`; any other: the changes of all of them.
    efforts : sequence of str
        Classes of effort.
    on_progress : callable, optional
        Told (changes tried, changes, refusals).
    """
    paths = REMEDIES.get(bottleneck, tuple({path for paths in REMEDIES.values()
                                            for path in paths}))
    wanted: dict[str, list[tuple[Transformation, str]]] = {}
    for candidates in sort_candidates(deployment, efforts).values():
        for one, value in candidates:
            values = wanted.setdefault(one.path, [])
            if one.path.startswith(paths) and len(values) < MOST_VALUES:
                values.append((one, value))
    before, = deployer.predict_changed(deployment, [{}])
    chosen = [item for values in wanted.values() for item in values]
    found: list[Change] = []
    for one, value in chosen:
        settings = ((one.path, value),)
        row, = deployer.predict_changed(deployment, [dict(settings)])
        found.append(make_change(settings, one.effort, one.costs, row, before))
        if on_progress is not None:
            on_progress(len(found), len(chosen), sum(bool(done.row.failure) for done in found))
    return found


def _try(deployment: Deployment, candidates: Sequence[tuple[Transformation, str]],
         deployer: Deployer, before: Row, limits: Limits) -> Iterator[Change]:
    """Yield candidates as changes, predicted; equal settings are tried once."""
    for one, value in candidates:
        settings = ((one.path, value),)
        row, = deployer.predict_changed(deployment, [dict(settings)])
        yield make_change(settings, one.effort, one.costs, judge(row, limits), before)


def make_change(settings: tuple[tuple[str, str], ...], effort: str, costs: str, row: Row,
                before: Row) -> Change:
    """Return a change with how it moves time and energy."""
    def ratio(name: str) -> float | None:
        now, then = getattr(row, name), getattr(before, name)
        return None if now is None or not then else now / then

    return Change(settings=settings, effort=effort, costs=costs, row=row,
                  time_ratio=ratio("time_us"), energy_ratio=ratio("energy_uj"))


def _pair(deployment: Deployment, singles: Sequence[Change], deployer: Deployer, before: Row,
          limits: Limits) -> list[Change]:
    """Return pairs of single changes that promise most, predicted together.

    They are chosen as if effects multiplied, and then predicted.
    """
    helpful = [one for one in singles if excess(one.row, limits) < excess(before, limits)
               or one.row.met][:2 * PAIRED]
    promised = []
    for place, one in enumerate(helpful):
        for other in helpful[place + 1:]:
            if one.settings[0][0] == other.settings[0][0]:
                continue
            figures: dict[str, Any] = {name: _multiply(one.row, other.row, before, name)
                                       for name in QUANTITIES[:4]}
            guess = dataclasses.replace(one.row, **figures)
            promised.append((excess(guess, limits), one, other))
    promised.sort(key=lambda item: (item[0] > 0, _effort_of(item[1], item[2]), item[0]))
    made = []
    for _, one, other in promised[:PAIRED]:
        settings = (*one.settings, *other.settings)
        row, = deployer.predict_changed(deployment, [dict(settings)])
        if not row.failure:
            costs = "; ".join(dict.fromkeys(text for text in (one.costs, other.costs) if text))
            made.append(make_change(settings, EFFORTS[_effort_of(one, other)], costs,
                                    judge(row, limits), before))
    return made


def _multiply(one: Row, other: Row, before: Row, name: str) -> float | None:
    values = [getattr(row, name) for row in (one, other, before)]
    return None if any(not value for value in values) else values[0] * values[1] / values[2]


def _effort_of(*changes: Change) -> int:
    return max(EFFORTS.index(change.effort) for change in changes)


def rank_changes(changes: Iterable[Change], limits: Limits) -> list[Change]:
    """Return changes, best first: surely met before met, by effort, by cost in accuracy; then near.

    What is met in nine of ten cases comes before what is met by its prediction only. Of changes
    that meet the limits and cost accuracy the mildest is first.
    """
    def key(one: Change) -> tuple[bool, bool, int, bool, float]:
        far = excess(one.row, limits)
        return (not one.row.met, not _is_sure(one), EFFORTS.index(one.effort), bool(one.costs),
                -far if one.row.met and one.costs else far)

    return sorted(changes, key=key)


def excess(row: Row, limits: Limits) -> float:
    """Return by how much a row exceeds its limits: the sum of log ratios; less is nearer.

    Where all are met it is the largest, below zero. What is not known exceeds by a factor of e.
    """
    over = [1.0 if value is None else math.log(value / limit) if value else -math.inf
            for name, limit in limits.list_limits() for value in (getattr(row, name),)]
    above = [one for one in over if one > 0]
    return sum(above) if above else max(over, default=0.0)


def _is_sure(change: Change) -> bool:
    chance = change.row.probability
    return change.row.met and (chance is None or chance >= SURE)


def _matters(change: Change, before: Row, limits: Limits) -> bool:
    """Whether a change meets what was not met, or betters a limited figure by a thousandth."""
    return (change.row.met and not before.met) or any(
        (now := getattr(change.row, name)) is not None
        and ((then := getattr(before, name)) is None or now < 0.999 * then)
        for name, _ in limits.list_limits())


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """Adds to changes what their gain's interval is, and what they rest on."""

    deployment: Deployment
    deployer: Deployer
    most: int = 8

    def complete(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Yield changes, the first ones with the interval of their gain."""
        if not changes:
            return
        before = self.deployer.predict_one(self.deployment)
        for place, change in enumerate(changes):
            rests_on = _rests_on(change.row)
            gain = None
            if place < self.most and before.certainty is not None:
                after = self.deployer.predict_one(self.deployment.replace(dict(change.settings)))
                gain = _gain(before, after)
            yield dataclasses.replace(change, gain=gain, rests_on=rests_on)


def _gain(before: Prediction, after: Prediction) -> Interval | None:
    if before.certainty is None or after.certainty is None or before.epochs or after.epochs:
        return None
    return ratio_interval(before.time_us, after.time_us, before.certainty.draw,
                          after.certainty.draw)


def _rests_on(row: Row) -> str:
    """Say what stands behind a row's intervals."""
    if not row.basis:
        return ("stated prices, without an interval" if row.time is None else
                "stated rates of the accelerator; intervals by families of networks left out")
    kind = BASES[cast(Basis, row.basis)].replace("{} ", "").split(": ")[-1]
    return f"{row.basis}: {kind}; {row.calibration}"
