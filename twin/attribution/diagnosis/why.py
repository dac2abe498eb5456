"""Why one measured time is longer than expected: causes of `causes.yaml` by probability.

With x = log(measured / predicted) at each clock, a cause i of the logarithmic effect d_i,

    P(i | x) ~ prior_i sum_r N(x; d_i + e_r, (s^2 + u^2 + s_i^2) 1 1' + diag(n^2 + v_i^2))

where e_r is what another release of the library would take, each of them as likely where none is
stated, s the deviation of the prediction's own interval, u what is not known of the library, s_i
how far the effect may be off and n the noise; s, u and s_i are shared by all numbers, v_i is of
those of another network. Where nothing explains all numbers, each may be of anything
(`CONTRADICTING`). Some
(`RARE`) have three times that deviation. What was published of the same build shifts what is
expected.
A row's probability is that its cause is present, alone or as one of two.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hwmodels.errors import did_you_mean
from hwmodels.frozen import entity
from twin.attribution.diagnosis.chances import (
    expect,
    find_priors,
    find_quantile,
    find_reach,
    weigh_hypotheses,
)
from twin.attribution.diagnosis.faults import UNIT
from twin.attribution.diagnosis.outlook import CAUSES, DATA, NOTABLE, Hypothesis, Outlook
from twin.attribution.diagnosis.why_words import (
    ARENA_SD,
    BEYOND,
    CERTAIN,
    Row,
    choose_question,
    describe_compiled,
    describe_left,
    describe_unexplained,
    list_open,
    list_unweighed,
    name_contradiction,
    note_misfits,
    write_row,
)
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.prediction import Prediction

EXPECTED = "as expected"

DOUBTED = 0.03
"""Probability below which a stated cause is doubted where something is the matter: assumed."""


@entity
class Why:
    """Causes by probability.

    Parameters
    ----------
    measured_us, expected_us
        At the first clock; expected as predicted, or as published shifts it: where the two lie far
        apart, near that from which likely causes reach what was measured.
    low_us, high_us
        90 % interval of what is expected, the library's uncertainty included: of the mixture of
        all releases it may be, by which the probability of `as_expected` is reckoned, too.
    as_expected
        Probability that nothing is the matter.
    releases : tuple of (str, float, float)
        Each the library may be of and that fits the arena, what it is expected to take in us, and
        the probability that it runs and nothing is the matter.
    rows
        Most probable first.
    pairs : tuple of ((str, str), float, float)
        Two causes at once, most probable first; what both add to the expected time in us.
    asked
        Of the first two causes the one whose question is more informative; "" where nothing is
        open, or nothing likely the matter.
    indistinct
        Causes that would change less than ten per cent here.
    remarks
        What to know beside.
    also : tuple of (str, str)
        Each further number: "network", "clock" or "cycles", and what it is beside what is expected.
    wider
        Why the interval is wider than that of `predict`; "" where what was published moves it.
    answered
        How many answers were to one of the two likeliest causes that were open (`count_answers`).
    """

    model: str
    board: str
    runtime: str
    measured_us: float
    expected_us: float
    low_us: float
    high_us: float
    as_expected: float
    releases: tuple[tuple[str, float, float], ...]
    rows: tuple[Row, ...]
    pairs: tuple[tuple[tuple[str, ...], float, float], ...]
    asked: str
    indistinct: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()
    answered: int = 0
    wider: str = ""

    @property
    def two_at_once(self) -> float:
        """Probability that two causes are present; a slip of the unit is none."""
        return math.fsum(chance for names, chance, _ in self.pairs if UNIT not in names)

    @property
    def verdict(self) -> str:
        """The likeliest cause's name, or `EXPECTED`."""
        first = max(self.rows, key=lambda row: row.probability, default=None)
        return EXPECTED if first is None or self.as_expected >= first.probability else first.cause


def explain(outlook: Outlook, measured_us: Sequence[float], *, published_us: float | None = None,
            present: Collection[str] = (), absent: Collection[str] = (),
            priors: Mapping[str, float] | None = None,
            arena_bytes: int | None = None) -> Why:
    """Weigh causes by what was measured.

    Parameters
    ----------
    measured_us
        At each of its clocks.
    published_us
        Of the same build on the same board at the first clock.
    present, absent
        Causes that are known to be there, and known not to be.
    priors
        Weights of causes instead of those of `causes.yaml`.
    arena_bytes
        What the program gives the runtime: what needs more did not run.

    Raises
    ------
    UsageError
        Where what is known leaves no cause.
    """
    weighed = _weigh(outlook, measured_us, published_us, present, absent, priors or {}, arena_bytes)
    base, rows, pairs = weighed.base, weighed.list_rows(), weighed.list_pairs()
    doubted = [] if not present else _doubt(explain(
        outlook, measured_us, published_us=published_us, absent=absent, priors=priors,
        arena_bytes=arena_bytes), present)
    kept = np.flatnonzero(weighed.fits >= min(CERTAIN, weighed.fits.max()))
    healthy, names = weighed.chances.get((), 0.0), [*outlook.releases]
    return Why(
        model=base.deployment.graph.name, board=base.deployment.board.name,
        runtime=base.deployment.runtime.identity, measured_us=measured_us[0],
        expected_us=weighed.expected_us, low_us=weighed.low_us, high_us=weighed.high_us,
        as_expected=healthy, rows=rows, pairs=pairs, asked=choose_question(rows, present, healthy),
        releases=tuple((names[place], float(weighed.times_us[place]),
                        float(weighed.releases[place])) for place in kept),
        also=(*describe_unexplained(measured_us[0], max(
                  weighed.reach_us, weighed.expected_us / BEYOND)),
              *describe_left(measured_us[0] - weighed.expected_us, rows, present,
                              math.fsum(chance for _, chance, _ in pairs)),
              *describe_compiled(outlook)),
        remarks=(*doubted, *name_contradiction(outlook, weighed.found, weighed.weights,
                                                weighed.offs),
                 *note_misfits(outlook, published_us, arena_bytes)),
        indistinct=weighed.indistinct,
        wider="" if published_us else DATA["libraries"][outlook.library]["says"])


@entity
class _Weighed:
    """Hypotheses with their probabilities, and what is expected without any.

    Parameters
    ----------
    base
        Of the first number, as predicted.
    weights : ndarray of float, (hypotheses,)
        Probabilities of `found`; `chances` sums them by causes.
    fits, times_us, releases : ndarray of float, (releases,)
        How likely each runs in the arena, its expected time, and how likely it runs and nothing is
        the matter.
    offs : ndarray of float, (numbers,)
        Logarithms of measured over predicted.
    low_us, high_us
        90 % interval of what is expected: a release counts as it fits the arena, and what was
        published.
    reach_us
        Of `find_reach`.
    """

    base: Prediction
    found: Sequence[Hypothesis]
    weights: np.ndarray
    chances: Mapping[tuple[str, ...], float]
    fits: np.ndarray
    times_us: np.ndarray
    releases: np.ndarray
    offs: np.ndarray
    expected_us: float
    low_us: float
    high_us: float
    reach_us: float
    indistinct: tuple[str, ...]

    def list_rows(self) -> tuple[Row, ...]:
        """Return a row for each cause, most probable first."""
        return tuple(sorted((write_row(cause, self.found, self.weights, self.chances,
                                        self.expected_us, self.base)
                             for cause in {name for key in self.chances for name in key}),
                            key=lambda row: -row.probability))

    def list_pairs(self) -> tuple[tuple[tuple[str, ...], float, float], ...]:
        """Return two causes at once, most probable first, and what both add, in us."""
        likeliest = {tuple(sorted(self.found[place].causes)): self.found[place]
                     for place in self.weights.argsort()}
        return tuple(sorted(
            ((key, chance, likeliest[key].take_us(self.expected_us, self.base.time_us)
              - self.expected_us) for key, chance in self.chances.items() if len(key) == 2),
            key=lambda pair: -pair[1]))


def _weigh(outlook: Outlook, measured_us: Sequence[float], published_us: float | None,
           present: Collection[str], absent: Collection[str], priors: Mapping[str, float],
           arena_bytes: int | None) -> _Weighed:
    """Weigh what is left of an outlook's hypotheses; parameters are those of `explain`."""
    runs, base = np.array(list(outlook.releases.values())), outlook.bases[0]
    parts = expect(outlook, published_us, runs[:, 0])
    logs, moved, variances, _ = parts
    shifts = moved[logs.argmax(axis=0), np.arange(len(runs))]
    outlook = _drop_small(outlook, (runs + shifts[:, None]).min(axis=0))
    reached = {name for one in outlook.hypotheses for name in one.causes}
    indistinct = tuple(name for name in CAUSES if name not in {*reached, *list_unweighed(outlook)})
    fits = _find_fitting(outlook, arena_bytes)
    found = _select(outlook, present, absent, arena_bytes, indistinct,
                    is_run=bool(fits.max() >= CERTAIN))
    offs = np.log(np.array(measured_us) / [one.time_us for one in outlook.bases])
    weights, releases, of_parts = weigh_hypotheses(found, offs, runs, parts,
                                                   find_priors(found, priors), fits)
    times_us = base.time_us * np.exp(runs[:, 0] + moved[of_parts.argmax()])
    chances = defaultdict[tuple[str, ...], float](float)
    for one, weight in zip(found, weights.tolist(), strict=True):
        chances[tuple(sorted(one.causes))] += weight
    low_us, high_us = (base.time_us * math.exp(find_quantile(
        share, runs[:, 0] + moved, np.sqrt(variances),
        np.exp(logs - logs.max()) * np.maximum(fits, 1e-300))) for share in (0.05, 0.95))
    return _Weighed(
        base=base, found=found, weights=weights, chances=chances, fits=fits, times_us=times_us,
        releases=releases, offs=offs, indistinct=indistinct,
        expected_us=times_us[[*outlook.releases].index(base.deployment.runtime.identity)].item(),
        low_us=low_us, high_us=high_us,
        reach_us=find_reach(found, weights, times_us.max(), base.time_us))


def _select(outlook: Outlook, present: Collection[str], absent: Collection[str],
            arena_bytes: int | None, indistinct: Sequence[str], *,
            is_run: bool) -> list[Hypothesis]:
    """Return the hypotheses that what is known leaves; raises UsageError where there are none.

    Parameters
    ----------
    is_run
        A release runs the network in its arena.
    """
    found = [one for one in outlook.hypotheses
             if {*absent}.isdisjoint(one.causes) and {*one.causes}.issuperset(present)
             and not _is_larger(one, arena_bytes, is_run=is_run)]
    if not found:
        idle = [name for name in present if name in indistinct] or present
        deployment = outlook.bases[0].deployment
        if not present:
            raise UsageError(f"--arena-bytes {arena_bytes} and --not other: "
                             f"{deployment.graph.name} needs more; accepted: one of the two")
        if len({*present}) == 2 and all(any(name in one.causes for one in outlook.hypotheses)
                                        for name in present):
            raise UsageError(f"--is {' --is '.join(present)}: are not weighed together, as one "
                             "image has one of them, or --not rules it out; accepted: one of two")
        if unweighed := [name for name in present if name in list_unweighed(outlook)]:
            raise UsageError(f"--is {unweighed[0]}: not weighed: {deployment.runtime.name} comes "
                             "compiled; accepted: the library you compile (--runtime)")
        raise UsageError(f"--is {' --is '.join(idle)}: nothing of it that --not leaves changes the "
                         f"time of {deployment.graph.name} on {deployment.board.name} by 10 %")
    return found


def count_answers(outlook: Outlook, measured_us: Sequence[float], *, present: Collection[str],
                  absent: Collection[str], **given: Any) -> int:
    """Return how many answers are to one of the two likeliest open causes, asked one by one.

    Parameters
    ----------
    given
        As for `explain`.
    """
    known: list[str] = []
    while {*present, *absent} - {*known}:
        found = explain(outlook, measured_us, present={*present}.intersection(known),
                        absent={*absent}.intersection(known), **given)
        open_ones = list_open(found.rows, known, found.as_expected)
        answer = next((row.cause for row in open_ones if row.cause in {*present, *absent}), None)
        if answer is None:
            break
        known.append(answer)
    return len(known)


def _doubt(without: Why, present: Collection[str]) -> list[str]:
    """Say which stated causes are improbable where nobody states them."""
    return [f"--is {row.cause} hardly fits what was measured: without this answer its probability "
            f"is {100 * row.probability:.1g} %" for row in without.rows if row.cause in present
            and row.probability < DOUBTED * (1 - without.as_expected)]


def check_causes(names: Collection[str]) -> None:
    """Refuse what is not a cause's name."""
    for name in names:
        if name not in CAUSES:
            near, known = did_you_mean(name, CAUSES), f"accepted: {', '.join(CAUSES)}"
            raise UsageError(f"{name}: no such cause; "
                             + (f"{near} {known}" if near.endswith("?") else known))


def _drop_small(outlook: Outlook, logs: np.ndarray) -> Outlook:
    """Return an outlook without fixed times that are no longer notable beside the expected one.

    Parameters
    ----------
    logs : ndarray of float, (numbers,)
        Logarithm of the expected time over the predicted one.
    """
    return replace(outlook, hypotheses=tuple(
        one for one in outlook.hypotheses if not one.added.any() or np.log1p(
            one.added * np.exp(-logs - (one.logs if UNIT in one.causes else 0.0)))
        .max() >= NOTABLE))


def _is_larger(one: Hypothesis, arena_bytes: int | None, *, is_run: bool) -> bool:
    """Whether a hypothesis needs a larger arena than a program has; another network may be any."""
    fits = [_find_chance(fault.deployment, arena_bytes) >= CERTAIN
            for fault in one.faults if fault.deployment is not None] or [is_run]
    return "other" not in one.causes and not all(fits)


def _find_chance(deployment: Deployment, arena_bytes: int | None) -> float:
    """Return how likely a network runs in so many bytes: not less than the twin plans, or erf."""
    if arena_bytes is None or deployment.buffer is None:
        return 1.0
    short = math.log(deployment.buffer.needed_bytes / max(arena_bytes, 1))
    return math.erfc(max(short, 0.0) / ARENA_SD / math.sqrt(2))


def _find_fitting(outlook: Outlook, arena_bytes: int | None) -> np.ndarray:
    """Return how likely each release runs the network in an arena, shape (releases,)."""
    deployment = outlook.bases[0].deployment
    return np.array([_find_chance(
        deployment.replace({"runtime": name}) if len(outlook.releases) > 1 else deployment,
        arena_bytes) for name in outlook.releases])


