"""Operators nobody measured, one after another: `python -m benchmarks.accuracy.operators`.

Every network with an operator is left out of the fit, so that no row tells of it, and predicted:
what a price learnt from others, and an interval, are worth for an operator nobody measured. Rows of
use `fit` only. Operators of every network cannot be judged so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.__main__ import COUNTS
from benchmarks.accuracy.calibrated import Case, Guess, collect, guess
from calibration.datasets import published_rows
from twin.learning.observations import Observation, observe_pmu_layers
from twin.learning.overlays import learn

LEAST_SHARE = 0.002
"""Of the time at stated prices from which a network counts as having an operator."""

FEWEST_LEFT = 12
"""Rows without an operator, below which nothing is learnt of the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An operator, its share of time in each row that has it, and what is said of those rows."""

    operator: str
    shares: tuple[float, ...]
    guesses: tuple[Guess, ...]

    @property
    def errors_pct(self) -> np.ndarray:
        """|predicted / measured - 1| of each row, in per cent."""
        return np.array([100 * abs(np.expm1(-one.time_error)) for one in self.guesses])

    @property
    def covered(self) -> float:
        """Share of rows whose measured time lies in the 90 % interval."""
        return float(np.mean([one.time_covered for one in self.guesses]))


def list_operators(case: Case) -> dict[str, float]:
    """Return the operators of a row, by name alone, and their shares of its time as stated."""
    tally = case.observation.tally
    spent, found = tally.cycles.sum(axis=1), dict[str, float]()
    for name, cycles in zip(tally.operators, spent, strict=True):
        operator = name.partition(" ")[0]
        found[operator] = found.get(operator, 0.0) + float(cycles / spent.sum())
    return {name: share for name, share in found.items() if share >= LEAST_SHARE}


def leave_operators_out(cases: Sequence[Case], layers: Sequence[Observation],
                        ) -> tuple[LeftOut, ...]:
    """Predict every row that has an operator from those that have not, operator by operator.

    Parameters
    ----------
    cases : sequence of Case
        Rows of use fit.
    layers : sequence of Observation
        Measured layers, which are learnt from where they are of another operator.

    Returns
    -------
    tuple of LeftOut
        Those with most rows first; operators that leave too few rows to learn from are missing.
    """
    shares = [list_operators(case) for case in cases]
    found = []
    for operator in sorted({name for one in shares for name in one}):
        with_it = [place for place, one in enumerate(shares) if operator in one]
        rest = [case.observation for case, one in zip(cases, shares, strict=True)
                if operator not in one]
        if len(rest) < FEWEST_LEFT:
            continue
        kept = [layer for layer in layers
                if operator != layer.tally.operators[0].partition(" ")[0]]
        learning = learn([*rest, *kept], judged=False)
        found.append(LeftOut(
            operator=operator, shares=tuple(shares[place][operator] for place in with_it),
            guesses=guess(learning, [cases[place] for place in with_it])))
    return tuple(sorted(found, key=lambda one: (-len(one.guesses), one.operator)))


def make_report(left_out: Sequence[LeftOut], rows: int) -> str:
    """Return the table as Markdown.

    Parameters
    ----------
    left_out : sequence of LeftOut
        From `leave_operators_out`.
    rows : int
        All there are.
    """
    lines = [f"**Operators left out with every network that has them, of {rows} rows**", "",
             "| operator | rows | share of time, median (largest) | error, median | largest | "
             "90 % interval covers |", "| --- | --- | --- | --- | --- | --- |"]
    for one in left_out:
        shares = 100 * np.array(one.shares)
        lines.append(
            f"| {one.operator} | {len(one.guesses)} | {np.median(shares):.1f} % "
            f"({shares.max():.1f} %) | {np.median(one.errors_pct):.1f} % | "
            f"{one.errors_pct.max():.1f} % | {100 * one.covered:.0f} % |")
    held = 100 * np.mean([said.time_covered for one in left_out for said in one.guesses])
    return "\n".join([*lines, "", f"Intervals of all of them cover {held:.0f} %."]) + "\n"


def main() -> None:
    """Judge and print."""
    cases = collect(published_rows(use="fit"), COUNTS)
    layers = observe_pmu_layers(cache=COUNTS)
    print(make_report(leave_operators_out(cases, layers), len(cases)), end="")


if __name__ == "__main__":
    main()
