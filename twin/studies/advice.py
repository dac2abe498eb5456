"""Advice: the cheapest change of a deployment, then pair of changes, that meets limits.

Changes are tried class of effort by class of effort, so that a setting is found before a network is
trained again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hwmodels.frozen import NamedTexts, frozen
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.rewrites.rewrite import EFFORTS
from twin.studies.candidates import Candidate, Candidates, keep_lowering, sort_candidates
from twin.studies.change import Change, excess, rank_changes
from twin.studies.duty import IDLE, Duty
from twin.studies.filling import add_duty
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.rows import Row, judge, limit_known
from twin.studies.search import Search, bisect_amounts, pair_changes, pair_to_fit
from twin.studies.sweep import Progress

LEAST_SLEEP_UA = 0.01
"""Least sleep current that is looked for: less than any chip draws that keeps its RAM."""

SURER = 0.01
"""By how much more probable a change must make limits that are met already."""

NEARER = 0.05
"""What is named as nearest comes nearer to the limits by, as `excess` counts, where nothing meets
them."""


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
        return found if found is not None and (self.before.failure or excess(
            found.row, known) < excess(self.before, known) - NEARER) else None

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
    before = judge(_predict_before(deployment, limits, deployer), limits)
    known = limit_known(before, limits)
    held, candidates = judge(before, known), _choose(deployment, before, known, efforts)
    search = Search(deployment, deployer, before, known, on_progress=on_progress,
                    total=sum(map(len, candidates.values())))
    found, paired, refused = list[Change](), list[Change](), list[tuple[str, str]]()
    tried: list[Candidate] = []
    for effort in filter(candidates.get, EFFORTS):
        tried += candidates[effort]
        for change in search.try_each(candidates[effort]):
            if change.row.failure:
                refused.append((change.words, change.row.reason))
            elif _matters(change, held, known):
                found.append(change)
        if not before.met:
            found += [*bisect_amounts(search, candidates[effort], found)]
        sure = [one for one in found if one.row.sure]
        if pairs and not before.met and all(one.risks_accuracy for one in sure):
            paired += pair_changes(search, found, effort, best_only) if (
                found or not before.failure) else pair_to_fit(search, tried, effort)
        if not thorough and any(one.row.sure for one in (*sure, *paired)):
            break
    singles, both = (tuple(replace(one, row=judge(one.row, limits))
                           for one in rank_changes(changes, known)) for changes in (found, paired))
    return Advice(deployment=deployment, limits=limits, before=before, changes=singles, pairs=both,
                  refused=tuple(refused))


def _predict_before(deployment: Deployment, limits: Limits, deployer: Deployer) -> Row:
    """Return what is predicted of a deployment, with what it fails by."""
    before, = deployer.predict_changed(deployment, [{}])
    if before.lacks_room:
        return replace(before, failure="does not fit")
    if not limits and not before.failure:
        raise UsageError("advise: no limit to meet; accepted: --max-ms, --max-uj, --max-ram, "
                         "--max-flash")
    return before


def _choose(deployment: Deployment, before: Row, limits: Limits,
            efforts: Iterable[str]) -> Candidates:
    """Return the changes that may lower what is too high, else anything limited.

    None where what is known is surely met and what is not known stays open, or where no change
    helps.
    """
    held = judge(before, limits)
    if (held.sure and not before.met) or draws_too_much_asleep(before, limits):
        return {}
    return keep_lowering(deployment, sort_candidates(deployment, efforts),
                         held.violations or ["ram_bytes"] * bool(before.failure) or [
                             name for name, _ in limits.list_limits()])


def _matters(change: Change, before: Row, limits: Limits) -> bool:
    """Whether a change meets what was not met, or betters a limited figure by a thousandth."""
    return (change.row.met and not before.met) or any(
        (now := getattr(change.row, name)) is not None
        and ((then := getattr(before, name)) is None or now < 0.999 * then)
        for name, _ in limits.list_limits())


def draws_too_much_asleep(row: Row, limits: Limits) -> bool:
    """Return whether sleep and wake-up alone draw more than a limit; all changes leave them."""
    return limits.max_mean_mw is not None and row.asleep_mw is not None and row.sleep != IDLE and (
        row.asleep_mw + (row.wake_mw or 0.0) > limits.max_mean_mw)
