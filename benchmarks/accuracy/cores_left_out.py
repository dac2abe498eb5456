"""How well a core nobody measured is known: `python -m benchmarks.accuracy.cores_left_out`.

Every measured core is held out with all its rows. What is learnt from the others knows the library
(its releases, and what it does in other ways than its source says) and nothing of the core: what is
left is how far a core's table, its boards and their memories are off where the instructions are
known. `CORE_SD` of `calibration.fitting.intervals` is what this shows of all cores; here each is
judged by what the others show. Rows of use `fit` only, and only of libraries that were measured on
another core too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.datasets import published_rows, read_table
from calibration.fitting.intervals import WAITING_SD, student_band
from calibration.fitting.validation import total_error
from hwmodels.frozen import entity
from tests.oracles.fits import predict_totals
from twin.attribution.observations import (
    PMU_SETUP,
    PMU_TABLE,
    Observation,
    observe_pmu_layers,
    observe_rows,
)
from twin.deployment.deploy import deploy
from twin.learning.evidence import time_evidence
from twin.learning.overlays import learn
from twin.pricing.design import make_design
from twin.pricing.price_names import TIME_PRICES


@entity
class LeftOut:
    """A core, and its rows predicted without it.

    Parameters
    ----------
    core : str
        Model.
    labels : tuple of str
        Library and board of each row.
    errors : ndarray of float, (rows,)
        log(measured / predicted).
    waiting : ndarray of float, (rows,)
        Share of time in which memories are waited for.
    others : ndarray of float, (rows,)
        Variance of network and row, which no core's table explains.
    """

    core: str
    labels: tuple[str, ...]
    errors: np.ndarray
    waiting: np.ndarray
    others: np.ndarray

    @property
    def mean_square(self) -> float:
        """Of its errors."""
        return float((self.errors**2).mean())


def observe_whole() -> Observation:
    """Return the one network measured by layer, as a whole: a layer is a worse witness."""
    deployment = deploy("kws", PMU_SETUP["board"], runtime=PMU_SETUP["runtime"],
                        weights=PMU_SETUP["weights"], arena=PMU_SETUP["arena"])
    cycles = sum(row["ARM_PMU_CPU_CYCLES"] for row in read_table(PMU_TABLE).rows)
    return replace(observe_pmu_layers()[0], label=PMU_TABLE, whole=True, cycles=cycles,
                   network="kws", design=make_design(deployment))


def leave_cores_out() -> tuple[LeftOut, ...]:
    """Predict the rows of every core from those of the others."""
    networks = (*observe_rows(published_rows(use="fit")), observe_whole())
    layers, found = observe_pmu_layers(), []
    for core in dict.fromkeys(one.cell.core for one in networks):
        rest = [one for one in (*networks[:-1], *layers) if one.cell.core != core]
        known = {one.cell.library for one in rest}
        out = [one for one in networks if one.cell.core == core and one.cell.library in known]
        if not out:
            continue
        learning, evidence = learn(rest, judged=False), time_evidence(out)
        totals, _ = predict_totals(learning.time, evidence)
        shares = evidence.amounts / evidence.amounts.sum(axis=1)[:, None]
        found.append(LeftOut(
            core=core, labels=tuple(f"{one.cell.library}, {one.cell.board}" for one in out),
            errors=np.log(evidence.measured) - totals,
            waiting=shares[:, TIME_PRICES.index("memory")],
            others=total_error(learning.time, evidence.concentration)))
    return tuple(found)


def pool(cores: Sequence[LeftOut]) -> float:
    """Return the deviation of a core's own cycles that cores held out show, each core once."""
    return math.sqrt(float(np.mean([one.mean_square for one in cores])))


def judge(one: LeftOut, rest: Sequence[LeftOut]) -> tuple[float, np.ndarray]:
    """Return the reach of the others' deviation, and which rows its 90 % intervals hold."""
    reach, sd = student_band(len(rest)).up, pool(rest)
    deviations = np.sqrt(((1 - one.waiting) * sd)**2 + (one.waiting * WAITING_SD)**2 + one.others)
    return math.exp(reach * sd), np.abs(one.errors) <= reach * deviations


def make_report(cores: Sequence[LeftOut]) -> str:
    """Return the tables as Markdown."""
    lines = ["| core held out | rows | log(measured / predicted), mean | root mean square | "
             "largest | deviation the others show | its reach | 90 % intervals hold |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    held: list[bool] = []
    for one in cores:
        rest = [other for other in cores if other is not one]
        reach, inside = judge(one, rest)
        held += inside.tolist()
        lines.append(
            f"| {one.core} | {len(one.errors)} | {one.errors.mean():+.3f} | "
            f"{math.sqrt(one.mean_square):.3f} | {np.abs(one.errors).max():.3f} | "
            f"{pool(rest):.3f} | x{reach:.2f} | {100 * inside.mean():.0f} % |")
    lines += ["", f"All {len(cores)} cores: {pool(cores):.3f}, which reaches "
              f"x{math.exp(student_band(len(cores)).up * pool(cores)):.2f}; intervals hold "
              f"{sum(held)} of {len(held)} rows.", "",
              "| core | library, board | rows | mean | root mean square |",
              "| --- | --- | --- | --- | --- |"]
    for one in cores:
        for label in dict.fromkeys(one.labels):
            some = one.errors[[other == label for other in one.labels]]
            lines.append(f"| {one.core} | {label} | {len(some)} | {some.mean():+.3f} | "
                         f"{math.sqrt(float((some**2).mean())):.3f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Judge and print."""
    print(make_report(leave_cores_out()), end="")


if __name__ == "__main__":
    main()
