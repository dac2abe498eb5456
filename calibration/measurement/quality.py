"""Is a measurement any good: what its samples show of drift, interrupts, wraps and first runs.

Nothing is removed: a finding names the symptom, the evidence and what to do about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from hwmodels.frozen import frozen
from hwmodels.quantities import Ends, drop_none

Values = Sequence[float] | np.ndarray

GOAL_TAIL = 0.05
"""p95 / p50 - 1 a measurement should stay under."""
DRIFT_SHARE = 0.005
"""A trend over the whole measurement smaller than this is not worth a word."""
DRIFT_P = 0.01
FEWEST_RUNS, TREND_RUNS = 5, 10
"""Fewer runs show no trend; and only where each takes longer (or shorter) than the last."""
STEP_RUNS, STEP_CHANCE, STEP_APART, LEAST_SIDE = 8, 0.02, 4.0, 3
"""Runs there are at least; of runs of two levels that come in order by chance at most; standard
deviations of either level they are apart by at least, else it is scatter or a trend; and runs of
either level at least."""
MODES_APART = 4.0
"""Distance of two modes in standard deviations (Ashman's D); a normal split in two has 2.6."""
MODES_SHARE = 0.002
SMALLEST_MODE = 0.05
FIRST_SHARE = 0.01
FIRST_SDS = 6.0
FIRST_OTHERS, FIRST_ALONE = 4, 4.0
"""Others a first run is set against at least, and by how many times as far as any of them it is off
their middle."""
WAITED = "waited"
"""Gauge of a host: for how long its program could have run and another one did (the kernel's
Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat)."""
MEDIAN_GOAL = 0.005
"""Half width of the median's 95 % interval, relative, at which no more runs are asked for."""


@frozen
class Finding:
    """Something a reader of a measurement must know.

    Parameters
    ----------
    name
        "drift", "step", "bimodal", "first_run", "wrapped", "spread", "preempted", "clock",
        "checksum".
    evidence
        Figures it rests on.
    serious
        The figures should not be used as they are.
    size, share
        Of a step, trend or first run: by how much the runs change, in their unit, and of the level
        before it, of their median, and of the others.
    run
        At which the level moves at once; None of a trend.
    chance
        How likely runs come in such an order by chance.
    """

    name: str
    evidence: str
    remedy: str
    serious: bool = False
    size: float = 0.0
    share: float = 0.0
    run: int | None = None
    chance: float = 1.0

    def __str__(self) -> str:
        """Return name, evidence and remedy as one line."""
        return f"{self.name}: {self.evidence}. {self.remedy}"


def find_drift(values: Values, *, cycles: bool = False) -> Finding | None:
    """Find a step of the level, or else a trend, as throttling or a warming oscillator leaves one.

    Parameters
    ----------
    cycles
        They are a core's own cycles, of which a slower clock makes no more.

    Notes
    -----
    A step is where two levels come in order (by chance below `STEP_CHANCE`) and are `STEP_APART`
    standard deviations of either apart. A trend is by Kendall's tau against run number (p below
    `DRIFT_P`) or, of fewer than `TREND_RUNS`, where each is longer than the last (or shorter), and
    the Theil-Sen slope over all runs. Either is above `DRIFT_SHARE` of the median: significance
    alone would flag trends of no interest.
    """
    data = np.asarray(values, dtype=np.float64)
    count = len(data)
    if count < FEWEST_RUNS or np.ptp(data) == 0:
        return None
    level, place = float(np.median(data)), _split(data, LEAST_SIDE) if count >= STEP_RUNS else 0
    chance, where = 2 / math.comb(count, place), f"from run {place} on"
    sides = data[:place], data[place:]
    before, after = (float(np.median(side)) if len(side) else level for side in sides)
    within = math.sqrt(sum(float(side.var()) * len(side) for side in sides if len(side)) / count)
    size = after - before
    if not (chance < STEP_CHANCE and abs(size) > STEP_APART * within):
        chosen, place, before = np.linspace(0, count - 1, min(count, 400)).astype(int), 0, level
        chance, slope = _trend(chosen, data[chosen])
        size, where = slope * (count - 1), "from the first to the last"
        if count < TREND_RUNS:
            ordered = len(set(np.sign(np.diff(data)))) == 1
            chance = 2 / math.factorial(count) if ordered else 1.0
        if chance >= (STEP_CHANCE if count < TREND_RUNS else DRIFT_P):
            return None
    return None if abs(size) < DRIFT_SHARE * level else Finding(
        name="step" if place else "drift", serious=abs(size) > GOAL_TAIL * before, size=size,
        share=size / before, run=place or None, chance=chance,
        evidence=f"{size / before:+.1%} {where} of {count} runs (p = {chance:.1g})",
        remedy="A slower clock adds no cycles: mask interrupts (--mask), or stop what began beside "
               "it" if cycles else
               "Look at die temperature and clock source: throttling, or a clock that warms up. "
               "Let the board settle, or pause between blocks")


def _split(data: np.ndarray, least: int) -> int:
    """Return where to split a series so that its two sides, of so many at least, vary least."""
    count, sums = len(data), np.concatenate(([0.0], np.cumsum(data)))
    below = np.arange(least, count - least + 1)
    low, high = sums[below] / below, (sums[-1] - sums[below]) / (count - below)
    return int(below[np.argmax(below * (count - below) * (high - low)**2)])


def _trend(runs: np.ndarray, data: np.ndarray) -> tuple[float, float]:
    """Return the p of Kendall's tau (normal, its variance corrected for ties) and the slope."""
    count = len(data)
    late, early = np.tril_indices(count, -1)
    rises = data[late] - data[early]
    ties = np.unique(data, return_counts=True)[1].astype(np.float64)
    variance = (count * (count - 1) * (2 * count + 5)
                - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    score = abs(float(np.sign(rises).sum())) / math.sqrt(variance)
    return math.erfc(score / math.sqrt(2)), float(np.median(rises / (runs[late] - runs[early])))


def find_modes(values: Values) -> Finding | None:
    """Find two kinds of runs, as interrupts that hit only some leave them.

    Notes
    -----
    The split with the largest variance between both sides; its modes must be `MODES_APART`
    standard deviations and `MODES_SHARE` of the median apart, each with `SMALLEST_MODE` of runs.
    """
    data = np.sort(np.asarray(values, dtype=np.float64))
    count = len(data)
    if count < 20 or data[0] == data[-1]:
        return None
    place = _split(data, max(2, math.ceil(SMALLEST_MODE * count)))
    left, right = data[:place], data[place:]
    apart = float(right.mean() - left.mean())
    spread = math.sqrt((left.var() + right.var()) / 2)
    if apart < MODES_APART * spread or apart < MODES_SHARE * float(np.median(data)):
        return None
    return Finding(
        name="bimodal",
        evidence=f"{len(left)} runs near {left.mean():.6g} and {len(right)} near "
                 f"{right.mean():.6g} ({apart / left.mean():+.1%})",
        remedy="Interrupts hit some runs: mask them (--mask), or see the interrupts counter")


def find_first_run(values: Values, first: float | None = None) -> Finding | None:
    """Find a first run unlike the rest; `first` is the inference before any warm-up, if apart.

    Notes
    -----
    One that is no more apart is off alone: by `FIRST_ALONE` times as much as any of the others. Of
    n others spread alike, it is r times as far off as any of them by a chance of about r^(1 - n).
    """
    data = np.asarray(values, dtype=np.float64)
    begin, rest, alone = (data[0], data[1:], FIRST_ALONE) if first is None else (first, data, 0.0)
    if len(rest) < FIRST_OTHERS:
        return None
    centre = float(np.median(rest))
    apart, size = np.abs(rest - centre), float(begin) - centre
    most = float(apart.max())
    least = max(FIRST_SDS * 1.4826 * float(np.median(apart)), FIRST_SHARE * centre, alone * most)
    return None if abs(size) <= least else Finding(
        name="first_run", size=size, share=size / centre, run=0,
        chance=(most / abs(size)) ** (len(rest) - 1),
        evidence=f"the first run took {begin:.6g}, the others {centre:.6g} ({size / centre:+.1%})",
        remedy="Caches, flash buffers and lazy set-up: report it as cold, apart from warm runs" + (
            ", or make more warm-up runs (--warmup)" * (first is None)))


def find_wraps(widths: Mapping[str, int], bound: float) -> Finding | None:
    """Say which counters may have wrapped.

    Parameters
    ----------
    widths
        Bits of each counter's register.
    bound
        How many events there may have been at most: the cycles of the same span.
    """
    narrow = {name: bits for name, bits in widths.items() if bits < 64 and bound >= 2.0**bits}
    if not narrow:
        return None
    moduli = sorted({2**bits for bits in narrow.values()})
    return Finding(
        name="wrapped", serious=True,
        evidence=f"{', '.join(narrow)}: {bound:.4g} cycles passed, so values are known modulo "
                 f"{', '.join(map(str, moduli))} only",
        remedy="Measure shorter pieces, or other counters")


def find_spread(values: Values) -> Finding | None:
    """Say when p95 is too far above the median."""
    p50, p95 = (float(p) for p in np.percentile(np.asarray(values, dtype=np.float64), (50, 95)))
    if p50 <= 0 or p95 / p50 - 1 < GOAL_TAIL:
        return None
    return Finding(name="spread", evidence=f"p95 / p50 - 1 = {p95 / p50 - 1:.1%}, the goal is "
                                           f"below {GOAL_TAIL:.0%}",
                   remedy="Mask interrupts, fix the clock, or make more runs")


def find_preemption(waited_share: float | None, median: float, parts: float) -> Finding | None:
    """Say when something else ran in between: it is in no layer's figure and in no overhead.

    Parameters
    ----------
    waited_share
        Of the time, as the host's kernel counts it; None where nothing does.
    median, parts
        Of the whole inference, and of its layers and what is between them, added up: what hits
        another layer in each run is in the first alone.
    """
    busy = waited_share is not None and waited_share > GOAL_TAIL
    if not busy and not 0 < parts * (1 + GOAL_TAIL) < median:
        return None
    evidence = f"other programs had the processor for {waited_share:.0%} of the time" if busy else (
        f"the median inference takes {median / parts:.2f} times what the medians of its parts add "
        "up to: something hits other layers in each run")
    return Finding(name="preempted", serious=True, evidence=evidence, remedy=(
        "End them, and read the least of the runs" if busy else
        "Mask interrupts (--mask), or end other programs, and read the least of the runs"))


def find_clock_error(ratio: float, uncertainty: float, tolerance: float = 0.01) -> Finding | None:
    """Say when the board's clock is not what it claims, by the host's clock."""
    if abs(ratio - 1) <= max(tolerance, 3 * uncertainty):
        return None
    return Finding(
        name="clock", serious=True,
        evidence=f"by the host's clock the board's runs at {ratio:.4f} +- {uncertainty:.4f} of "
                 "what it says",
        remedy="Check the PLL set-up and the oscillator; times and energies are off by as much")


def find_checksum_errors(mismatches: int, runs: int) -> Finding | None:
    """Say when runs with the same input gave different outputs."""
    if not mismatches:
        return None
    return Finding(name="checksum", serious=True,
                   evidence=f"{mismatches} of {runs} runs gave another output than the first",
                   remedy="Memory, clock or voltage is not stable, or a kernel reads what it "
                          "should not; no figure of this measurement is worth anything")


def median_interval(values: Values) -> Ends:
    """Return the 95 % interval of the median by order statistics; no distribution is assumed."""
    data = np.sort(np.asarray(values, dtype=np.float64))
    count = len(data)
    reach = 1.959963984540054 * math.sqrt(count) / 2
    low = max(math.floor(count / 2 - reach), 0)
    high = min(math.ceil(count / 2 + reach), count - 1)
    return float(data[low]), float(data[high])


def wants_more_runs(values: Values) -> bool:
    """Whether the median is known less well than `MEDIAN_GOAL`, relative."""
    low, high = median_interval(values)
    centre = float(np.median(np.asarray(values)))
    return centre > 0 and (high - low) / 2 > MEDIAN_GOAL * centre


def find_levels(values: Values, *, cycles: bool = False) -> list[Finding]:
    """Return a first run unlike the rest, and of these a step or a trend, or two kinds of runs.

    Parameters
    ----------
    cycles
        As for `find_drift`.
    """
    first = find_first_run(values)
    rest = values[1:] if first else values
    drift = find_drift(rest, cycles=cycles)
    modes = None if drift and drift.name == "step" else find_modes(rest)
    return drop_none([first, drift, modes])


def judge_runs(values: Values, first: float | None = None, *,
               cycles: bool = False) -> list[Finding]:
    """Return every finding about the runs of one counter.

    Parameters
    ----------
    first
        As for `find_first_run`.
    cycles
        As for `find_drift`.
    """
    if len(values) == 0:
        return []
    return [*find_levels(values, cycles=cycles), *drop_none([
        find_spread(values), None if first is None else find_first_run(values, first)])]
