"""What is asked of calibrated predictions on rows outside the fit, and what is reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

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
             *_strangers(validation), *_covered(calibrated.LIBRARY, validation, both=False),
             _median_under("cycles, a layer shape of the Apollo510", validation.layers.values(), 8),
             *_energy(validation)]
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
            median, p90 = np.percentile(errors, (50, 90)) if len(errors) else (math.nan, math.nan)
            targets.append(Target(
                what=f"time, {protocol}: {name}", rows=len(errors),
                found=f"{median:.1f} %, p90 {p90:.1f} %", wanted="median < 4 %, p90 < 12 %",
                met=bool(median < 4 and p90 < 12)))
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

    def judge(what: str, wrong: Callable[[Sequence[Guess]], bool], wanted: str,
              most: float = 0) -> Target:
        found = [name for name, guesses in groups.items() if wrong(guesses)]
        return Target(what=f"time, by group: {what}", rows=sum(map(len, groups.values())),
                      wanted=wanted, met=len(found) <= most,
                      found="; ".join([f"{len(found)} of {len(groups)}", *found]))

    rivals = [judge(f"{name} better by a score, beyond chance", partial(_loses, name), "nowhere")
              for name in (PER_MAC, FOUR, BOOSTING)]
    stray = sum(map(_stray, groups.values()))
    outside = sum(not 0.85 <= coverage(guesses)[2] <= 0.95 for guesses in groups.values())
    return [*rivals, judge(
        "90 % intervals cover less than 85 or more than 95 %, beyond chance", misfits,
        f"at most one in 20. Outside are {outside}; by chance {stray:.0f} would be, were each "
        "covered with 90 %, rows of a network, or a release, on a board as alike as found",
        len(groups) / 20), judge(
            "intervals are wider than needed", lambda guesses: _excess(guesses) > MOST_WIDTH,
            "high over low at most 1.3 times what was needed")]


def _loses(name: str, guesses: Sequence[Guess]) -> bool:
    found = duel(guesses, name)
    return found is not None and found.lost


def _count_independent(guesses: Sequence[Guess]) -> int:
    """Return how many independent rows those of a group are worth, by whether each is covered.

    Rows of a board are alike by network, or by release: the fewer of the two.
    """
    inside = np.array([one.time_covered for one in guesses], dtype=float)
    seen = [one.observation for one in guesses]
    return max(1, round(min(effective_count([(one.cell.board, kind) for one, kind in zip(
        seen, kinds, strict=True)], inside) for kinds in (
            [one.network for one in seen], [one.cell.release for one in seen]))))


def misfits(guesses: Sequence[Guess]) -> bool:
    """Whether the coverage found is rarer than one in 20 at 85 %, or at 95 %."""
    from scipy.stats import binom

    rows = _count_independent(guesses)
    inside = round(rows * coverage(guesses)[2])
    return bool(binom.cdf(inside, rows, 0.85) < 0.05 or binom.sf(inside - 1, rows, 0.95) < 0.05)


def _stray(guesses: Sequence[Guess]) -> float:
    """Return how probably rows covered with 90 % are outside 85 to 95 %."""
    from scipy.stats import binom

    rows = _count_independent(guesses)
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
    within = 100 * float(np.mean(board <= 15)) if len(board) else 0.0
    return [Target(
        what=f"time, {calibrated.BOARD}", rows=len(board), wanted="median < 5 %, 90 % within 15 %",
        found=f"{_median(board):.1f} %, {within:.0f} % within", met=_median(board) < 5
        and within >= 90), _covered(calibrated.BOARD, validation)[1],
        *_covered(calibrated.CORE, validation)]


def _covered(protocol: str, validation: Validation, *, both: bool = True,
             ) -> tuple[Target, Target]:
    """Medians are under 20 %, intervals neither too narrow nor, of `both`, too wide for chance."""
    guesses = validation.guesses.get(protocol, ())
    low, high, inside = coverage(guesses)
    return _median_under(f"time, {protocol}", (one.time_error for one in guesses), 20), Target(
        what=f"time, {protocol}: 90 % intervals cover", rows=len(guesses),
        found=f"{100 * inside:.0f} %", met=low <= inside and (inside <= high or not both),
        wanted=f"{100 * low:.0f} to {100 * high:.0f} %" if both else f"at least {100 * low:.0f} %")


def _median_under(what: str, log_errors: Iterable[float], limit: float) -> Target:
    errors = errors_pct(log_errors)
    return Target(what=what, rows=len(errors), found=f"{_median(errors):.1f} %",
                  wanted=f"median < {limit:g} %", met=_median(errors) < limit)


def coverage(guesses: Sequence[Guess], inside: np.ndarray | None = None,
             ) -> tuple[float, float, float]:
    """Return the chance band of 90 % intervals, clustered by board, and their coverage of time.

    Parameters
    ----------
    inside : ndarray of float, (guesses,)
        Whether each is covered, of another quantity than time.
    """
    if inside is None:
        inside = np.array([guess.time_covered for guess in guesses], dtype=float)
    if not len(inside):
        return math.nan, math.nan, math.nan
    boards = [guess.observation.cell.board for guess in guesses]
    low, high = coverage_band(max(round(effective_count(boards, inside)), 1))
    return low, high, float(inside.mean())


def _energy(validation: Validation) -> list[Target]:
    targets = []
    for protocol, wanted in ((calibrated.MODEL_HERE, 8), (calibrated.MODEL, 8),
                             (calibrated.FAMILY, 8), (calibrated.SUPPLY, 15),
                             (calibrated.RELEASE, None), (calibrated.BOARD, 15),
                             (calibrated.CORE, 15)):
        guesses = [g for g in validation.guesses.get(protocol, ())
                   if math.isfinite(g.energy_error)]
        if wanted is not None:
            targets.append(_median_under(f"energy, {protocol}", (
                g.energy_error for g in guesses), wanted))
            r2 = energy_r2(guesses)
            targets.append(Target(
                what=f"log energy per MAC, {protocol}", rows=len(guesses), found=f"R2 {r2:.2f}",
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
