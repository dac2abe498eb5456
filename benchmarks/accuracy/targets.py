"""What is asked of calibrated predictions on rows outside the fit, and what is reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from benchmarks.accuracy import calibrated
from benchmarks.accuracy.calibrated import Guess, Validation, energy_r2
from benchmarks.accuracy.coverage import coverage_band
from benchmarks.accuracy.scores import duel
from benchmarks.accuracy.specifications import BOOSTING, FOUR, PER_MAC, POWER
from calibration.fitting.validation import effective_count
from hwmodels.frozen import frozen

LABORATORY_BOARDS = ("nucleo_l4r5zi", "nucleo_u575zi_q", "nucleo_h7a3zi_q")
"""Boards of MLPerf Tiny whose kernel library has a history of releases."""

KNOWN = (("STM32H747", ("stm32h747i_disco",)), ("STM32U585", ("b_u585i_iot02a",)),
         ("MLPerf Tiny on L4R5, U575, H7A3", LABORATORY_BOARDS))
"""Boards of the first target, by name."""

LIBRARY = "x-cube-ai"

FEWEST = 10
"""Rows of a group, a board or a library within one way of leaving out, that is judged by itself."""

MOST_WIDTH = math.log(1.3)
"""How much wider than needed an interval may be: high over low, as a logarithm."""


@frozen
class Target:
    """One thing asked, the rows it is judged on, the figure found, and whether that is enough."""

    what: str
    rows: int
    found: str
    wanted: str
    met: bool


def list_targets(validation: Validation) -> tuple[Target, ...]:
    """Return every target with its figure, from rows held out of the fit."""
    found = [*_known_boards(validation), *_rivals(validation), *_groups(validation),
             *_strangers(validation),
             *_libraries(validation), _layers(validation), *_energy(validation)]
    return tuple(target for target in found if target.rows)


def errors_pct(log_errors: Iterable[float]) -> np.ndarray:
    """Return |predicted / measured - 1| in per cent of finite log(measured / predicted)."""
    errors = np.array([error for error in log_errors if math.isfinite(error)])
    return np.asarray(100 * np.abs(np.expm1(-errors)))


def _known_boards(validation: Validation) -> list[Target]:
    targets = []
    for protocol in (calibrated.FAMILY_HERE, calibrated.FAMILY):
        for name, boards in KNOWN:
            errors = errors_pct(g.time_error for g in validation.guesses.get(protocol, ())
                                if g.observation.cell.board in boards
                                and g.observation.cell.library == LIBRARY)
            targets.append(_median_and_tail(f"time, {protocol}: {name}", errors, 4, 12))
    return targets


def _rivals(validation: Validation) -> list[Target]:
    """No baseline is better by any score beyond chance, whatever is held out."""
    targets = []
    for name in (PER_MAC, FOUR, BOOSTING):
        duels = {protocol: found for protocol, guesses in validation.guesses.items()
                 if protocol != calibrated.IN_SAMPLE and (found := duel(guesses, name))}
        lost = [protocol for protocol, found in duels.items() if found.lost]
        targets.append(Target(
            what=f"time: {name} better by a score, beyond chance", met=not lost,
            rows=sum(found.rows for found in duels.values()), wanted="nowhere",
            found="; ".join(lost) or f"in none of {len(duels)} ways of leaving out"))
    return targets


def list_groups(validation: Validation) -> Iterator[tuple[str, Sequence[Guess]]]:
    """Yield boards and libraries with `FEWEST` rows in a way of leaving out, and their rows."""
    for protocol, guesses in validation.guesses.items():
        for group in ("board", "library") if protocol != calibrated.IN_SAMPLE else ():
            names = [getattr(one.observation.cell, group) for one in guesses]
            for name in dict.fromkeys(names):
                if names.count(name) >= FEWEST:
                    yield f"{protocol}: {name}", [one for one, other in zip(
                        guesses, names, strict=True) if other == name]


def _groups(validation: Validation) -> list[Target]:
    """Return what holds in each group: no baseline is better, intervals fit."""
    groups = dict(list_groups(validation))

    def judge(what: str, wrong: Callable[[Sequence[Guess]], bool], wanted: str) -> Target:
        found = [name for name, guesses in groups.items() if wrong(guesses)]
        return Target(what=f"time, by group: {what}", rows=sum(map(len, groups.values())),
                      wanted=wanted, met=not found,
                      found="; ".join([f"{len(found)} of {len(groups)}", *found]))

    rivals = [judge(f"{name} better by a score, beyond chance", lambda guesses, name=name: bool(
        (found := duel(guesses, name)) and found.lost), "nowhere")
        for name in (PER_MAC, FOUR, BOOSTING)]
    return [*rivals, judge("90 % intervals cover too few or too many", lambda guesses: not (
        0.85 <= coverage(guesses)[2] <= 0.95), "85 to 95 %; "
        f"{sum(map(_stray, groups.values())):.0f} groups would be outside by chance, were each "
        "covered with 90 %, its networks independent and rows of one as alike as found"), judge(
            "intervals are wider than needed", lambda guesses: _excess(guesses) > MOST_WIDTH,
            "high over low at most 1.3 times what was needed")]


def _stray(guesses: Sequence[Guess]) -> float:
    """Return how probably rows covered with 90 % are outside 85 to 95 %.

    Rows of a network on a board count as the independent ones they are worth.
    """
    from scipy.stats import binom

    inside = np.array([one.time_covered for one in guesses], dtype=float)
    rows = round(effective_count([(one.observation.cell.board, one.observation.network)
                                  for one in guesses], inside))
    below, above = binom.cdf([math.ceil(0.85 * rows) - 1, math.floor(0.95 * rows)], rows, 0.9)
    return float(1 - above + below)


def _excess(guesses: Sequence[Guess]) -> float:
    """Return by how much, of logarithms, intervals are wider than hold 90 % of their rows."""
    reach = [(one.time_band.down * one.time_sd, one.time_band.up * one.time_sd) for one in guesses]
    used = [max(-one.time_error / down, one.time_error / up)
            for one, (down, up) in zip(guesses, reach, strict=True)]
    return float(np.median(np.sum(reach, axis=1)) * (1 - np.quantile(used, 0.9)))


def _strangers(validation: Validation) -> list[Target]:
    board = errors_pct(g.time_error for g in validation.guesses.get(calibrated.BOARD, ()))
    core = validation.guesses.get(calibrated.CORE, ())
    errors = errors_pct(g.time_error for g in core)
    within = 100 * float(np.mean(board <= 15)) if len(board) else 0.0
    targets = [Target(
        what=f"time, {calibrated.BOARD}", rows=len(board), wanted="median < 5 %, 90 % within 15 %",
        found=f"{_median(board):.1f} %, {within:.0f} % within", met=_median(board) < 5
        and within >= 90), _covered(calibrated.BOARD, validation)]
    return [*targets, Target(
        what=f"time, {calibrated.CORE}", rows=len(errors), found=f"{_median(errors):.1f} %",
        wanted="median < 20 %", met=_median(errors) < 20),
        _covered(calibrated.CORE, validation)]


def _covered(protocol: str, validation: Validation) -> Target:
    """Intervals of what was held out are neither too narrow nor too wide to be chance."""
    guesses = validation.guesses.get(protocol, ())
    low, high, inside = coverage(guesses)
    return Target(
        what=f"time, {protocol}: 90 % intervals cover", rows=len(guesses),
        found=f"{100 * inside:.0f} %", wanted=f"{100 * low:.0f} to {100 * high:.0f} %",
        met=low <= inside <= high)


def _libraries(validation: Validation) -> list[Target]:
    """Targets for a library that no row is of."""
    guesses = validation.guesses.get(calibrated.LIBRARY, ())
    errors = errors_pct(g.time_error for g in guesses)
    low, _, inside = coverage(guesses)
    return [Target(
        what=f"time, {calibrated.LIBRARY}", rows=len(errors), found=f"{_median(errors):.1f} %",
        wanted="median < 20 %", met=_median(errors) < 20), Target(
        what=f"time, {calibrated.LIBRARY}: 90 % intervals cover", rows=len(guesses),
        found=f"{100 * inside:.0f} %", wanted=f"at least {100 * low:.0f} %", met=inside >= low)]


def coverage(guesses: Sequence[Guess]) -> tuple[float, float, float]:
    """Return the chance band of 90 % intervals, clustered by board, and their coverage of time."""
    inside = np.array([guess.time_covered for guess in guesses], dtype=float)
    if not len(inside):
        return math.nan, math.nan, math.nan
    boards = [guess.observation.cell.board for guess in guesses]
    low, high = coverage_band(max(round(effective_count(boards, inside)), 1))
    return low, high, float(inside.mean())


def _layers(validation: Validation) -> Target:
    errors = errors_pct(validation.layers.values())
    return Target(what="cycles, a layer shape of the Apollo510", rows=len(errors),
                  found=f"{_median(errors):.1f} %", wanted="median < 8 %",
                  met=_median(errors) < 8)


def _energy(validation: Validation) -> list[Target]:
    targets = []
    for protocol, wanted in ((calibrated.MODEL_HERE, 8), (calibrated.MODEL, 8),
                             (calibrated.FAMILY, 8), (calibrated.SUPPLY, 15),
                             (calibrated.RELEASE, None), (calibrated.BOARD, 15),
                             (calibrated.CORE, 15)):
        guesses = [g for g in validation.guesses.get(protocol, ())
                   if math.isfinite(g.energy_error)]
        errors = errors_pct(g.energy_error for g in guesses)
        if wanted is not None:
            targets.append(Target(
                what=f"energy, {protocol}", rows=len(errors), found=f"{_median(errors):.1f} %",
                wanted=f"median < {wanted} %", met=_median(errors) < wanted))
            r2 = energy_r2(guesses)
            targets.append(Target(
                what=f"log energy per MAC, {protocol}", rows=len(errors), found=f"R2 {r2:.2f}",
                wanted="R2 > 0.9", met=r2 > 0.9))
        rivals = [g for g in guesses if math.isfinite(g.baselines[POWER])]
        ours = _median(errors_pct(g.energy_error for g in rivals))
        theirs = _median(errors_pct(g.baselines[POWER] for g in rivals))
        targets.append(Target(
            what=f"energy, {protocol}: beside constant power x time", rows=len(rivals),
            found=f"{ours:.1f} %", wanted=f"below its {theirs:.1f} %", met=ours < theirs))
    return targets


def _median(errors: np.ndarray) -> float:
    return float(np.median(errors)) if len(errors) else math.nan


def _median_and_tail(what: str, errors: np.ndarray, median: float, tail: float) -> Target:
    p90 = float(np.percentile(errors, 90)) if len(errors) else math.nan
    return Target(what=what, rows=len(errors), found=f"{_median(errors):.1f} %, p90 {p90:.1f} %",
                  wanted=f"median < {median:g} %, p90 < {tail:g} %",
                  met=_median(errors) < median and p90 < tail)
