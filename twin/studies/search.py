"""A search for changes that meet limits: each is predicted; none has a factor of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, starmap
from typing import Any

import numpy as np

from hwmodels.frozen import NamedTexts, record
from twin.deployment.deployment import Deployment
from twin.deployment.transformations import Transformation
from twin.errors import DoesNotFitError
from twin.network.rewrites.resolution import find_sides, scale_sides
from twin.network.rewrites.rewrite import EFFORTS
from twin.pricing.batched import attempt
from twin.studies.candidates import Candidate
from twin.studies.change import Change, excess, make_change, measure_loss, rank_changes
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.rows import QUANTITIES, Row, judge
from twin.studies.sweep import Progress

PAIRED = 8
"""Single changes that pairs are made of, and pairs that are predicted."""

HANDY = 0.025
"""Shares that are tried are multiples of this."""

LOWER = 4
"""Part of a value of a pair that is tried where none of the values tried first meets the limits."""

LITTLE = 1e-3
"""What a pair must come nearer to the limits by than each of its parts, as `excess` counts."""

FAR = 0.3
"""Above the limits, as `excess` counts: pairs said to stay so far are seldom off by as much."""

Promise = tuple[bool, bool, float, float]
"""Of a pair: whether it stays above the limits, risks accuracy, what its network loses, and how far
it stays above them."""


class Search:
    """What changes are tried of, the limits they are held to, and how many are done."""

    def __init__(self, deployment: Deployment, deployer: Deployer, before: Row, limits: Limits, *,
                 total: int, on_progress: Progress | None) -> None:
        self.deployment, self.deployer = deployment, deployer
        self.before, self.limits = before, limits
        self.total, self.on_progress = total, on_progress
        self.tried = self.failed = 0

    def predict(self, settings: NamedTexts, effort: str, costs: str) -> Change:
        """Return a change, predicted."""
        row, = self.deployer.predict_changed(self.deployment, [dict(settings)])
        return make_change(settings, effort, costs, judge(row, self.limits), self.before,
                           lost=measure_loss(self.deployment, settings, costs))

    def try_one(self, one: Transformation, value: str) -> Change:
        """Return a candidate as a change, predicted."""
        return self.predict(((one.path, value),), one.effort, one.costs)

    def try_each(self, candidates: Iterable[Candidate]) -> Iterator[Change]:
        """Yield candidates as changes, predicted, and report each."""
        for change in starmap(self.try_one, candidates):
            self.tried += 1
            self.failed += bool(change.row.failure)
            if self.on_progress is not None:
                self.on_progress(self.tried, self.total, self.failed)
            yield change


def bisect_amounts(search: Search, candidates: Sequence[Candidate],
                   found: Sequence[Change]) -> Iterator[Change]:
    """Yield the smallest sure change of each path that has amounts, between values tried.

    Between the nearest sure value and the farthest one before it that is not, halved until no value
    is between them: as if what is sure stays so beyond.
    """
    for path, one in {one.path: one for one, _ in candidates}.items():
        amount = _list_amounts(search.deployment).get(path)
        tried = [] if amount is None else [
            (amount.read(each.settings[0][1]), each) for each in found
            if each.settings[0][0] == path and len(each.settings) == 1]
        sure = [value for value, each in tried if each.row.sure]
        if amount is None or not sure:
            continue
        own = amount.own
        good = min(sure, key=lambda value: abs(value - own))
        bad = max((value for value, each in tried if not each.row.sure
                   and abs(value - own) < abs(good - own)),
                  key=lambda value: abs(value - own), default=own)
        seen = {each.settings[0][1] for _, each in tried}
        yield from _bisect(amount, good, bad, seen, partial(search.try_one, one))


def _bisect(amount: _Amount, good: float, bad: float, seen: set[str],
            try_value: Callable[[str], Change]) -> Iterator[Change]:
    """Yield the last sure change on the way from a sure value to one that is not, if any is new."""
    best = None
    while (text := amount.write((good + bad) / 2)) not in seen:
        seen.add(text)
        change = try_value(text)
        if change.row.sure:
            good, best = amount.read(text), change
        else:
            bad = amount.read(text)
    if best is not None:
        yield best


def _lower_amounts(search: Search, near: Change) -> Iterator[Change]:
    """Yield a pair with either value far lower, and as high as it is sure then.

    Of paths whose values are shares of what the network has; the other value stays.
    """
    for path, text in near.settings:
        amount = _list_amounts(search.deployment).get(path)
        if amount is None or not amount.read(text) < amount.own == 1.0:
            continue

        def try_value(value: str, path: str = path) -> Change:
            return search.predict(tuple({**dict(near.settings), path: value}.items()),
                                  near.effort, near.costs)

        low = amount.write(amount.read(text) / LOWER)
        yield (change := try_value(low))
        if change.row.sure:
            yield from _bisect(amount, amount.read(low), amount.read(text), {low, text}, try_value)


@record
class _Amount:
    """A path whose values are numbers: the one in force, and how they are read and written."""

    own: float
    read: Callable[[str], float]
    write: Callable[[float], str]


def _list_amounts(deployment: Deployment) -> dict[str, _Amount]:
    """Return the paths that can be bisected."""
    clock = deployment.board.core_clock
    found = {
        "network.width": _Amount(1.0, float, _write_share),
        "network.prune": _Amount(0.0, float, _write_share)}
    if not clock.settings_hz:
        found[f"clocks.{clock.name}.frequency_hz"] = _Amount(
            clock.frequency_hz / 1e6,
            lambda text: float(text.removesuffix("MHz")), lambda mhz: f"{mhz:.0f}MHz")
    sides = find_sides(deployment.original or deployment.graph)
    if sides is not None:
        found["network.resolution"] = _Amount(
            1.0, lambda text: int(text.partition("x")[0]) / sides[0],
            lambda share: "x".join(map(str, scale_sides(sides, share))))
    return found


def _write_share(share: float) -> str:
    return f"{round(share / HANDY) * HANDY:.4g}"


def list_promising(search: Search, singles: Sequence[Change],
                   effort: str) -> list[tuple[Promise, Change, Change]]:
    """Return pairs of single changes as if their effects multiplied, most promising first.

    Parameters
    ----------
    effort
        Of the dearer part of each pair.
    """
    before, limits = search.before, search.limits
    helpful = [one for one in rank_changes(singles, limits)
               if excess(one.row, limits) < excess(before, limits) or one.row.met]
    helpful = [one for kind in EFFORTS
               for one in [one for one in helpful if one.effort == kind][:2 * PAIRED]]
    promised: list[tuple[Promise, Change, Change]] = []
    for one, other in combinations(helpful, 2):
        if one.settings[0][0] == other.settings[0][0] or effort not in (one.effort, other.effort):
            continue
        figures: dict[str, Any] = {name: _multiply(one.row, other.row, before, name)
                                   for name in QUANTITIES[:4]}
        far = excess(replace(one.row, **figures), limits)
        promised.append(((far > 0, one.risks_accuracy or other.risks_accuracy,
                          one.lost + other.lost if far <= 0 else 0.0, far), one, other))
    return sorted(promised, key=lambda item: item[0])


def pair_changes(search: Search, singles: Sequence[Change], effort: str,
                 best_only: bool) -> list[Change]:
    """Return pairs of single changes that promise most, predicted together.

    Parameters
    ----------
    effort
        Of the dearer part of each pair.
    best_only
        Of pairs that risk accuracy, whether only those are predicted that take less of the network
        than what is sure; of a class that is not the last, those that promise to come near.
    """
    limits = search.limits
    made: list[Change] = []
    for (_, risk, lost, far), one, other in list_promising(search, singles, effort)[:PAIRED]:
        if best_only and ((far > FAR and effort != EFFORTS[-1]) or any(
                done.row.sure and (not done.risks_accuracy or (risk and lost >= done.lost))
                for done in (*singles, *made))):
            continue
        pair = search.predict((*one.settings, *other.settings), effort, "; ".join(
            dict.fromkeys(filter(None, (one.costs, other.costs)))))
        if not pair.row.failure and excess(pair.row, limits) < min(
                excess(part.row, limits) for part in (one, other)) - LITTLE:
            made.append(pair)
    return made


def pair_to_fit(search: Search, candidates: Sequence[Candidate], effort: str) -> list[Change]:
    """Return pairs that fit of changes of which none fits by itself, predicted.

    Those are tried whose needs, as if effects multiplied, are just within RAM and flash, and the
    nearest of them with lower values, where none is sure.

    Parameters
    ----------
    effort
        Of the dearer part of each pair.
    """
    def share(one: Any) -> np.ndarray:
        return np.log([max(one.ram_bytes, 1) / one.ram_room_bytes,
                       max(one.flash_bytes, 1) / one.flash_room_bytes])

    drafts = [(one, {one.path: value}, share(error.draft)) for one, value in candidates
              if isinstance(error := attempt(search.deployment.replace, {one.path: value}),
                            DoesNotFitError) and error.draft is not None
              and not search.deployment.accelerated]  # Its pools are not known until it fits.
    before = share(search.deployment) if drafts else 0.0
    promised = [(float((left + right - before).max()), one, {**setting, **other_setting}, other)
                for (one, setting, left), (other, other_setting, right) in combinations(drafts, 2)
                if one.path != other.path and effort in (one.effort, other.effort)]
    promised.sort(key=lambda item: (item[0] > 0, abs(item[0])))
    made = [search.predict(tuple(settings.items()), effort, "; ".join(
        dict.fromkeys(filter(None, (one.costs, other.costs)))))
        for _, one, settings, other in promised[:PAIRED]]
    made.sort(key=lambda one: (bool(one.row.failure), excess(one.row, search.limits)))
    if made and not made[0].row.sure:
        made += _lower_amounts(search, made[0])
    return [one for one in made if not one.row.failure]


def _multiply(one: Row, other: Row, before: Row, name: str) -> float | None:
    values = [getattr(row, name) for row in (one, other, before)]
    return None if any(not value for value in values) else values[0] * values[1] / values[2]
