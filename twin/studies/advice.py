"""Advice: the cheapest change of a deployment, then pair of changes, that meets limits.

Every change is predicted; none has a factor of its own. Changes are tried class of effort by class
of effort, so that a setting is found before a network is trained again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hwmodels.frozen import NamedTexts, frozen, record
from hwmodels.quantities import read_quantity
from twin.deployment.deployment import Deployment
from twin.deployment.transformations import Transformation, list_transformations
from twin.errors import UsageError
from twin.network.rewrites.resolution import find_sides, scale_sides
from twin.network.rewrites.rewrite import EFFORTS
from twin.studies.axes import list_clocks
from twin.studies.change import Change, excess, make_change, measure_loss, rank_changes
from twin.studies.duty import IDLE, Duty
from twin.studies.filling import add_duty
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.rows import QUANTITIES, Row, judge, limit_known
from twin.studies.sweep import Progress

LEAST_SLEEP_UA = 0.01
"""Least sleep current that is looked for: less than any chip draws that keeps its RAM."""

SURER = 0.01
"""By how much more probable a change must make limits that are met already."""

PAIRED = 8
"""Single changes that pairs are made of, and pairs that are predicted."""

HANDY = 0.025
"""Shares that are tried are multiples of this."""

LITTLE = 1e-3
"""What a pair must come nearer to the limits by than each of its parts, as `excess` counts."""

FAR = 0.3
"""Above the limits, as `excess` counts: pairs said to stay so far are seldom off by as much."""

NEARER = 0.05
"""The same of what is named as nearest, where nothing meets them."""

REMEDIES = {
    "cache": ("placement.weights", "placement.arena", "caches."),
    "bandwidth": ("placement.weights", "placement.arena", "npu."),
    "stalled": ("placement.weights", "placement.arena", "npu."),
    "compute": ("clocks.", "runtime", "kernels."), "overhead": ("runtime", "kernels.", "npu.")}
"""What is tried against each kind of bottleneck, by the beginnings of paths."""

MOST_VALUES, NOTABLE = 4, 0.98
"""Values of one path a suggestion tries; after over before from which it is worth saying."""

Candidate = tuple[Transformation, str]
"""A change, and what it is set to."""


@frozen
class Advice:
    """What would make a deployment meet limits.

    Parameters
    ----------
    before
        What is predicted of it.
    changes
        Single changes that were tried, best first: those that meet the limits by effort, then the
        nearest.
    pairs
        As far as pairs were tried, best first.
    refused : tuple of (str, str)
        Changes that cannot be, with the reason.
    """

    deployment: Deployment
    limits: Limits
    before: Row
    changes: tuple[Change, ...]
    pairs: tuple[Change, ...] = ()
    refused: NamedTexts = ()

    @property
    def met(self) -> bool:
        """Whether the limits are met without any change."""
        return self.before.met

    @property
    def known(self) -> Limits:
        """Limits of what is known, which changes are tried for."""
        return limit_known(self.before, self.limits)

    @property
    def ranked(self) -> tuple[Change, ...]:
        """Single changes and pairs together, held to the limits of what is known, best first."""
        known, changes = self.known, (*self.changes, *self.pairs)
        return tuple(rank_changes(changes if known == self.limits else (
            replace(one, row=judge(one.row, known)) for one in changes), known))

    @property
    def best(self) -> Change | None:
        """The cheapest change or pair that meets the limits; None: none does.

        Where they are met already, one that meets them more surely.
        """
        return None if self.known != self.limits else next(
            (one for one in self.ranked
             if one.row.met and (not self.met or self._is_surer(one))), None)

    @property
    def cheaper(self) -> Change | None:
        """What meets the limits by its prediction, less surely than the best and at less effort."""
        best = self.best
        return None if best is None or self.met else next(
            (one for one in self.ranked if one.row.met and one.rank < best.rank), None)

    @property
    def nearest(self) -> Change | None:
        """What comes nearest to the limits, where nothing, or nothing that is known, meets them."""
        tried, known = self.ranked, self.known
        found = min(tried, key=lambda one: not one.row.met and excess(one.row, known), default=None)
        return found if found is not None and excess(found.row, known) < excess(
            self.before, known) - NEARER else None

    @property
    def surest_sleep_ua(self) -> float | None:
        """The largest sleep current with which the nearest meets all limits with `SURE`, in uA.

        Three digits, rounded down; None: with none. By halving of its logarithm: more draws more.
        """
        near, limits = self.nearest, self.limits
        if near is None or not limits.max_mean_mw or not limits.every_us:
            return None
        board = self.deployment.replace(dict(near.settings)).board
        duty = Duty(every_us=limits.every_us)

        def is_sure(current_ua: float) -> bool:
            return judge(add_duty(near.row, board, duty, {
                board.name: (current_ua * 1e-3, None)}), limits).sure

        low, high = LEAST_SLEEP_UA, 1e3 * limits.max_mean_mw / board.power.counted_v
        if not is_sure(low):
            return None
        while high > low * (1 + 1e-4):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if is_sure(middle) else (low, middle)
        step = 10.0 ** (math.floor(math.log10(low)) - 2)
        return float(f"{math.floor(low / step) * step:.3g}")

    def _is_surer(self, change: Change) -> bool:
        now, then = change.row.probability, self.before.probability
        return excess(change.row, self.limits) < excess(self.before, self.limits) if (
            now is None or then is None) else now >= then + SURER


def give_advice(deployment: Deployment, limits: Limits, deployer: Deployer | None = None, *,
                efforts: Sequence[str] = EFFORTS, pairs: bool = True, thorough: bool = False,
                best_only: bool = False, on_progress: Progress | None = None) -> Advice:
    """Return what would make a deployment meet limits.

    Parameters
    ----------
    limits
        At least one.
    deployer
        Prices and temperature.
    efforts
        Classes of effort that are allowed.
    pairs
        Whether pairs are tried where no single change is sure to meet the limits.
    thorough
        Whether dearer classes are tried where a cheaper one has a sure change.
    best_only
        Whether pairs are left that are no better than a sure change, or promise little.
    on_progress
        Called with (changes done, changes, failures).

    Raises
    ------
    UsageError
        Without a limit.
    """
    deployer = deployer or Deployer()
    before, = deployer.predict_changed(deployment, [{}])
    if before.lacks_room:
        before = replace(before, failure="does not fit")
    if not limits and not before.failure:
        raise UsageError("advise: no limit to meet; accepted: --max-ms, --max-uj, --max-ram, "
                         "--max-flash")
    before = judge(before, limits)
    asked, limits = limits, limit_known(before, limits)
    search = _Search(deployment, deployer, before, limits)
    held = judge(before, limits)
    found: list[Change] = []
    refused: list[tuple[str, str]] = []
    candidates = {effort: [(one, value) for one, value in found if any(
        may_lower(deployment, one.path, value, name)
        for name in held.violations or ["ram_bytes"] * bool(before.failure) or [
            name for name, _ in limits.list_limits()])]
        for effort, found in sort_candidates(deployment, efforts).items()}
    if (held.sure and not before.met) or draws_too_much_asleep(before, limits):
        candidates = {}
    total = sum(map(len, candidates.values()))
    paired: list[Change] = []
    tried = 0
    for effort in EFFORTS:
        for change in map(search.try_one, candidates.get(effort, ())):
            if change.row.failure:
                refused.append((change.words, change.row.reason))
            elif _matters(change, held, limits):
                found.append(change)
            tried += 1
            if on_progress is not None:
                on_progress(tried, total, len(refused))
        if not before.met:
            found += [*_bisect(search, candidates.get(effort, ()), found)]
        sure = [one for one in found if one.row.sure]
        if candidates.get(effort) and pairs and not before.met and all(
                one.risks_accuracy for one in sure):
            paired += _pair(search, found, effort, best_only)
        if not thorough and any(one.row.sure for one in (*sure, *paired)):
            break
    singles, both = (tuple(replace(one, row=judge(one.row, asked))
                           for one in rank_changes(changes, limits))
                     for changes in (found, paired))
    return Advice(deployment=deployment, limits=asked, before=before, changes=singles, pairs=both,
                  refused=tuple(refused))


def sort_candidates(deployment: Deployment, efforts: Iterable[str] = EFFORTS,
                    ) -> dict[str, list[Candidate]]:
    """Return changes worth trying with their value, by class of effort.

    Clocks are those `list_clocks` names.
    """
    found: dict[str, list[Candidate]] = {effort: [] for effort in efforts}
    for one in list_transformations(deployment, found):
        values: Iterable[str] = one.values
        if one.path == f"clocks.{deployment.board.core_clock.name}.frequency_hz":
            values = list_clocks(deployment.board)
        elif one.path == "kernels.level" and deployment.runtime.is_compiled:
            values = ()
        found[one.effort].extend((one, str(value)) for value in values)
    return found


def may_lower(deployment: Deployment, path: str, value: str, quantity: str) -> bool:
    """Return whether a change may lower a quantity, of whatever network.

    Clocks and caches move no byte, a clock below the board's own saves no time, and parameters are
    the network's.
    """
    if quantity == "parameter_bytes":
        return path.startswith("network.")
    part, _, rest = path.partition(".")
    if part not in ("clocks", "caches") or quantity in ("energy_uj", "mean_mw"):
        return True
    read = None if part == "caches" else read_quantity(value, "hz")
    return quantity == "time_us" and (
        read is None or read[0] >= deployment.board.hertz[rest.partition(".")[0]])


def draws_too_much_asleep(row: Row, limits: Limits) -> bool:
    """Return whether sleep and wake-up alone draw more than a limit; all changes leave them."""
    return limits.max_mean_mw is not None and row.asleep_mw is not None and row.sleep != IDLE and (
        row.asleep_mw + (row.wake_mw or 0.0) > limits.max_mean_mw)


def suggest_change(deployment: Deployment, bottleneck: str) -> Change | None:
    """Return the setting or rebuild that saves most time against a bottleneck; None: none helps.

    Parameters
    ----------
    bottleneck
        Kind, a key of `REMEDIES`: which changes are tried; any other: all of them.
    """
    tried = try_changes(deployment, Deployer(), bottleneck)
    return min((one for one in tried if one.time_ratio is not None and one.time_ratio < NOTABLE),
               key=lambda one: one.time_ratio or 1.0, default=None)


def try_changes(deployment: Deployment, deployer: Deployer, bottleneck: str = "",
                on_progress: Progress | None = None, ) -> list[Change]:
    """Return changes of a bottleneck's remedies, each predicted, those that cannot be too.

    Parameters
    ----------
    deployer
        Prices and temperature.
    bottleneck
        Key of `REMEDIES`; any other: the changes of all of them.
    on_progress
        Called with (changes tried, changes, refusals).
    """
    paths = REMEDIES.get(bottleneck, tuple({path for paths in REMEDIES.values() for path in paths}))
    wanted: dict[str, list[Candidate]] = {}
    for candidates in sort_candidates(deployment, EFFORTS[:2]).values():
        for one, value in candidates:
            values = wanted.setdefault(one.path, [])
            if one.path.startswith(paths) and len(values) < MOST_VALUES:
                values.append((one, value))
    before, = deployer.predict_changed(deployment, [{}])
    chosen = [item for values in wanted.values() for item in values]
    found: list[Change] = []
    for change in map(_Search(deployment, deployer, before, Limits()).try_one, chosen):
        found.append(change)
        if on_progress is not None:
            on_progress(len(found), len(chosen), sum(bool(done.row.failure) for done in found))
    return found


@record
class _Search:
    """What changes are tried of, and the limits they are held to."""

    deployment: Deployment
    deployer: Deployer
    before: Row
    limits: Limits

    def predict(self, settings: NamedTexts, effort: str, costs: str) -> Change:
        """Return a change, predicted."""
        row, = self.deployer.predict_changed(self.deployment, [dict(settings)])
        return make_change(settings, effort, costs, judge(row, self.limits), self.before,
                           lost=measure_loss(self.deployment, settings, costs))

    def try_one(self, candidate: Candidate) -> Change:
        """Return a candidate as a change, predicted."""
        one, value = candidate
        return self.predict(((one.path, value),), one.effort, one.costs)


def _bisect(search: _Search, candidates: Sequence[Candidate],
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
        seen, best = {each.settings[0][1] for _, each in tried}, None
        while (text := amount.write((good + bad) / 2)) not in seen:
            seen.add(text)
            change = search.try_one((one, text))
            if not change.row.failure and change.row.sure:
                good, best = amount.read(text), change
            else:
                bad = amount.read(text)
        if best is not None:
            yield best


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


def _pair(search: _Search, singles: Sequence[Change], effort: str, best_only: bool) -> list[Change]:
    """Return pairs of single changes that promise most, predicted together.

    They are chosen as if effects multiplied, and then predicted.

    Parameters
    ----------
    effort
        Of the dearer part of each pair.
    best_only
        Of pairs that risk accuracy, whether only those are predicted that take less of the network
        than what is sure; of a class that is not the last, those that promise to come near.
    """
    before, limits = search.before, search.limits
    helpful = [one for one in rank_changes(singles, limits)
               if excess(one.row, limits) < excess(before, limits) or one.row.met]
    helpful = [one for kind in EFFORTS
               for one in [one for one in helpful if one.effort == kind][:2 * PAIRED]]
    promised = []
    for place, one in enumerate(helpful):
        for other in helpful[place + 1:]:
            if one.settings[0][0] == other.settings[0][0] or effort not in (
                    one.effort, other.effort):
                continue
            figures: dict[str, Any] = {name: _multiply(one.row, other.row, before, name)
                                       for name in QUANTITIES[:4]}
            far = excess(replace(one.row, **figures), limits)
            risk = one.risks_accuracy or other.risks_accuracy
            promised.append(((far > 0, risk, one.lost + other.lost if far <= 0 else 0.0, far),
                             one, other))
    promised.sort(key=lambda item: item[0])
    made: list[Change] = []
    for (_, risk, lost, far), one, other in promised[:PAIRED]:
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


def _multiply(one: Row, other: Row, before: Row, name: str) -> float | None:
    values = [getattr(row, name) for row in (one, other, before)]
    return None if any(not value for value in values) else values[0] * values[1] / values[2]


def _matters(change: Change, before: Row, limits: Limits) -> bool:
    """Whether a change meets what was not met, or betters a limited figure by a thousandth."""
    return (change.row.met and not before.met) or any(
        (now := getattr(change.row, name)) is not None
        and ((then := getattr(before, name)) is None or now < 0.999 * then)
        for name, _ in limits.list_limits())
