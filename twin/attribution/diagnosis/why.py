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

import dataclasses
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.errors import did_you_mean
from hwmodels.frozen import entity, frozen
from hwmodels.quantities import format_frequency, format_time
from twin.attribution.diagnosis.chances import (
    expect,
    find_priors,
    find_reach,
    sum_up,
    weigh_hypotheses,
)
from twin.attribution.diagnosis.faults import JOINED, UNIT
from twin.attribution.diagnosis.outlook import (
    CAUSES,
    DATA,
    FIXED,
    NOTABLE,
    TAILED_90,
    Hypothesis,
    Outlook,
    choose,
)
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.prediction import Prediction

EXPECTED = "as expected"

BEYOND = 2.0
"""Times what causes reach from which a part of a time is stated as unexplained (assumed)."""

LEAST_LEFT = 0.1
"""Share of what is to be explained a stated cause leaves at least, to be worth a line."""

ARENA_SD = 0.07
"""Of the logarithm of the least arena: other commits, kernels and alignments of a release ask for
up to 6.6 % more or less (docs/arena.md), one of 1,539 files for 34 %."""

HEALTHY, CERTAIN, DOUBTED, SLIPPED = 0.7, 0.001, 0.03, 0.1
"""Probability of "as expected" from which no question is asked; of a cause whose answer is known;
where something is the matter, below which a stated cause is doubted; and from which a slip of the
unit is asked for first: assumed."""


@frozen
class Row:
    """A cause, weighed.

    Parameters
    ----------
    cause, says, detail
        Its name, in words, and the likeliest size.
    probability, alone
        That it is present; that it is the only one.
    explains_us
        What it would add to the expected time by itself.
    change
        The line of the build to change.
    question
        What shows whether it is present.
    """

    cause: str
    says: str
    detail: str
    probability: float
    alone: float
    explains_us: float
    change: str
    question: str


@entity
class Why:
    """Causes by probability.

    Parameters
    ----------
    measured_us, expected_us
        At the first clock; expected as predicted, or as published shifts it.
    low_us, high_us
        90 % interval of what is expected, the library's uncertainty included; of several releases
        from the quickest one's to the slowest one's.
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
        """Probability that two causes are present."""
        return math.fsum(chance for _, chance, _ in self.pairs)

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
        expected_us=weighed.expected_us, low_us=float(weighed.find_ends(-1)[kept].min()),
        high_us=float(weighed.find_ends(1)[kept].max()),
        as_expected=healthy, rows=rows, pairs=pairs, asked=_ask(rows, present, healthy),
        releases=tuple((names[place], float(weighed.times_us[place]),
                        float(weighed.releases[place])) for place in kept),
        also=(*_describe_unexplained(measured_us[0], max(
                  weighed.reach_us, weighed.expected_us / BEYOND)),
              *_describe_left(measured_us[0] - weighed.expected_us, rows, present,
                              math.fsum(chance for _, chance, _ in pairs)),
              *_describe_compiled(outlook)),
        remarks=(*doubted, *_name_contradiction(outlook, weighed.found, weighed.weights,
                                                weighed.offs),
                 *_note_misfits(outlook, published_us, arena_bytes)),
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
    fits, times_us, spreads, releases : ndarray of float, (releases,)
        How likely each runs in the arena, its expected time, the deviation of that time's
        logarithm, and how likely it runs and nothing is the matter.
    offs : ndarray of float, (numbers,)
        Logarithms of measured over predicted.
    reach_us
        Of `find_reach`.
    """

    base: Prediction
    found: Sequence[Hypothesis]
    weights: np.ndarray
    chances: Mapping[tuple[str, ...], float]
    fits: np.ndarray
    times_us: np.ndarray
    spreads: np.ndarray
    releases: np.ndarray
    offs: np.ndarray
    expected_us: float
    reach_us: float
    indistinct: tuple[str, ...]

    def find_ends(self, way: int) -> np.ndarray:
        """Return the lower (-1) or upper (1) end of each release's 90 % interval, in us."""
        return np.asarray(self.times_us * np.exp(way * TAILED_90 * self.spreads))

    def list_rows(self) -> tuple[Row, ...]:
        """Return a row for each cause, most probable first."""
        return tuple(sorted((_write_row(cause, self.found, self.weights, self.chances,
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
    shifts, spreads = np.array([sum_up(*parts[:3], place) for place in range(len(runs))]).T
    outlook = _drop_small(outlook, (runs + shifts[:, None]).min(axis=0))
    indistinct = tuple(name for name in CAUSES if not any(
        name in one.causes for one in outlook.hypotheses))
    fits = _find_fitting(outlook, arena_bytes)
    found = _select(outlook, present, absent, arena_bytes, indistinct,
                    is_run=bool(fits.max() >= CERTAIN))
    offs = np.log(np.array(measured_us) / [one.time_us for one in outlook.bases])
    weights, releases = weigh_hypotheses(found, offs, runs, parts, find_priors(found, priors), fits)
    times_us = base.time_us * np.exp(runs[:, 0] + shifts)
    chances = defaultdict[tuple[str, ...], float](float)
    for one, weight in zip(found, weights.tolist(), strict=True):
        chances[tuple(sorted(one.causes))] += weight
    own = [*outlook.releases].index(base.deployment.runtime.identity)
    return _Weighed(
        base=base, found=found, weights=weights, chances=chances, fits=fits, times_us=times_us,
        spreads=spreads, releases=releases, offs=offs, indistinct=indistinct,
        expected_us=base.time_us * math.exp(shifts[own]),
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
    found = [
        one for one in outlook.hypotheses if set(present) <= set(one.causes)
        and not set(absent) & set(one.causes)
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
                             "image has one of them, or --not rules it out; accepted: one of the "
                             "two")
        raise UsageError(f"--is {' --is '.join(idle)}: nothing of it, without what "
                         f"--not rules out, would change the time of "
                         f"{deployment.graph.name} on {deployment.board.name} by 10 %")
    return found


def _describe_unexplained(measured_us: float, reach_us: float) -> tuple[tuple[str, str], ...]:
    """Return the part of a time far beyond what causes reach, under its name; () of none."""
    return (("unexplained", f"{format_time(measured_us - reach_us)}: half of the likely causes "
             f"that are left, two at once, reach at most {format_time(reach_us)}; is the unit "
             "right, and is it of this network and board?"),) * (
        measured_us > BEYOND * reach_us)


def _describe_left(gap_us: float, rows: Sequence[Row], present: Collection[str],
                   both: float) -> tuple[tuple[str, str], ...]:
    """Return what stated causes leave of a gap, where that is a notable part of it."""
    stated_us = math.fsum(row.explains_us for row in rows if row.cause in present)
    left_us = gap_us - stated_us
    return (("left", f"{format_time(left_us)} of the {format_time(gap_us)}: "
             f"{' and '.join(present)} by itself makes {format_time(stated_us)}; the rest is a "
             f"second cause ({100 * both:.0f} %) or within the interval of what is expected"),) * (
        len(present) == 1 and left_us > LEAST_LEFT * gap_us)


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
        open_ones = _list_open(found.rows, known, found.as_expected)
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
    return dataclasses.replace(outlook, hypotheses=tuple(
        one for one in outlook.hypotheses if not one.added.any() or np.log1p(
            one.added * np.exp(-logs - (one.logs if UNIT in one.causes else 0.0)))
        .max() >= NOTABLE))


def _is_larger(one: Hypothesis, arena_bytes: int | None, *, is_run: bool) -> bool:
    """Whether a hypothesis needs a larger arena than a program has; another network may be any."""
    if arena_bytes is None or "other" in one.causes:
        return False
    changed = [fault.deployment for fault in one.faults if fault.deployment is not None]
    return any(_find_chance(each, arena_bytes) < CERTAIN for each in changed) if changed else (
        not is_run)


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


def _write_row(cause: str, found: Sequence[Hypothesis], weights: np.ndarray,
               chances: Mapping[tuple[str, ...], float], expected_us: float,
               base: Prediction) -> Row:
    """Return what is said of a cause, in its likeliest size."""
    best = found[max((place for place, one in enumerate(found) if cause in one.causes),
                     key=lambda place: float(weights[place]))]
    place = min(best.causes.index(cause), len(best.faults) - 1)
    fault, size = best.faults[place], best.sizes[place]
    data, board = CAUSES[cause], base.deployment.board
    added_us = best.take_us(expected_us, base.time_us) - expected_us
    together = f"{'-' if added_us < 0 else '+'}{format_time(abs(added_us))} together"
    met_us = base.time_us if fault.kind in FIXED else expected_us
    return Row(
        cause=cause, says=_choose_text(data["says"], board), detail=(
            fault.name + " together" * (JOINED in fault.kind)
            + "".join(f"; with {name} {together}" for name in best.causes
                      if name != cause and len(best.faults) > 1)) * bool(size) + (
            ", which affects only the other times" if 0 < abs(size) < NOTABLE else ""),
        probability=math.fsum(chance for key, chance in chances.items() if cause in key),
        alone=chances.get((cause,), 0.0), question=_choose_text(data["question"], board),
        explains_us=met_us * (math.exp(size) - 1),
        change=_choose_text(data.get("change", ""), board) or fault.remedy)


def _choose_text(texts: str | Mapping[str, str], board: Board) -> str:
    return texts if isinstance(texts, str) else str(choose(texts, board, ""))


def _list_open(rows: Sequence[Row], known: Collection[str], as_expected: float) -> Sequence[Row]:
    """Return the two likeliest causes that are open; none where nothing is likely the matter."""
    return [row for row in rows if row.cause not in known][:2 * (as_expected < HEALTHY)]


def _ask(rows: Sequence[Row], present: Collection[str], as_expected: float) -> str:
    """Return that of the first two causes which is nearer to even odds, "" where none is open.

    A slip of the unit that is likelier than `SLIPPED` is asked for before.
    """
    open_ones = _list_open(rows, present, as_expected)
    if open_ones and any(row.cause == UNIT and UNIT not in present and row.probability > SLIPPED
                         for row in rows):
        return UNIT  # One look shows it, and all else depends on it.
    best = min(open_ones, key=lambda row: abs(row.probability - 0.5), default=None)
    return "" if best is None or not CERTAIN < best.probability < 1 - CERTAIN else best.cause


def _name_contradiction(outlook: Outlook, found: Sequence[Hypothesis], weights: np.ndarray,
                        offs: np.ndarray) -> Iterator[str]:
    """Yield which numbers no cause explains together, where that is likelier than not."""
    apart = math.fsum(weight for one, weight in zip(found, weights.tolist(), strict=True)
                      if one.causes == ("other",) and one.own_sd[0])
    for base, off in zip(outlook.bases[1:], offs[1:] - offs[0], strict=True) if apart > 0.5 else ():
        board = base.deployment.board
        yield (f"the times contradict each other: {base.deployment.graph.name} at "
               f"{format_frequency(board.core_clock.frequency_hz)} takes "
               f"{math.exp(off):.2g} x what the first one lets expect, and no listed cause does "
               "that; is one of another build, network, board or clock?")


def _note_misfits(outlook: Outlook, published_us: float | None,
                  arena_bytes: int | None) -> tuple[str, ...]:
    """Say what does not fit what was stated."""
    base, notes = outlook.bases[0], []
    deployment = base.deployment
    if published_us is not None and abs(math.log(published_us / base.time_us)) > 2 * outlook.sd:
        notes.append(f"published is {published_us / base.time_us:.2g} x what is predicted: of "
                       "another board, clock, library or network?")
    if arena_bytes is not None and deployment.buffer is not None:
        needed = deployment.buffer.needed_bytes
        if arena_bytes < needed:
            notes.append(f"an arena of {arena_bytes:,} bytes is less than the {needed:,} this "
                           f"network needs with {deployment.runtime.identity}, known to "
                           f"{100 * ARENA_SD:.0f} %: of another network or release"
                           f"{', or not in bytes' * (arena_bytes < needed / 4)}?")
        room = deployment.board.memory(deployment.arena).size_bytes
        if arena_bytes > room:
            notes.append(f"an arena of {arena_bytes:,} bytes does not fit {deployment.arena}: "
                           "say where it is, such as --arena psram")
    return tuple(notes)


def _describe_compiled(outlook: Outlook) -> Iterator[tuple[str, str]]:
    """Yield that no option of a compiler reaches the kernels of a library, where none does."""
    name = outlook.bases[0].deployment.runtime.name
    if name in DATA["prebuilt"]:
        assumed = any("optimisation" in one.causes for one in outlook.hypotheses)
        yield "library", (f"{name} comes compiled, no option of your compiler changes its kernels"
                          + ": say which library runs (--runtime)" * assumed)
