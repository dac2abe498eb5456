"""Studies beside a loop over `predict` on deployments that are made: what a variant costs, kept.

Structures were met before, so that what is timed is all a study does but simulating: boards changed
and validated, networks placed, rows judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import twin
from benchmarks.speed.row import Row, median_cpu_s
from twin.studies.advice import Advice, give_advice
from twin.studies.axes import Space, make_space
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.rows import Row as Result
from twin.studies.selection import select_hardware
from twin.studies.sweep import sweep_space

BOARD = "nucleo_h7a3zi_q"
SETTINGS = {"caches.l1d.size_bytes": "8KiB,16KiB,32KiB",
            "placement.weights": "flash,sram",
            "clocks.cpu.frequency_hz": "100..280MHz:8"}
"""A grid of three caches, two places and eight clocks."""

ADVISED = {"kws": ("nucleo_f401re", Limits(max_time_us=50e3, max_energy_uj=2500.0)),
           "vww": (BOARD, Limits(max_time_us=50e3))}
CHOSEN = (BOARD, "nucleo_f401re", "nucleo_u575zi_q", "nucleo_l4r5zi")
TIMES = 9
RATIO = 2.0
"""A variant of a study over a kept prediction."""


def measure() -> Iterator[Row]:
    """Yield the rows of studies."""
    for network, (board, limits) in ADVISED.items():
        space = make_space([network], [BOARD], settings=SETTINGS)
        yield _compare(f"sweep {network}, kept", lambda one=space: sweep_space(one).rows, space)
        yield _advise(network, board, limits)
    space = make_space(["kws"], CHOSEN, runtimes=("each",))
    yield _compare("select kws, kept", lambda: select_hardware(
        space, Limits(max_time_us=1e6)).table.rows, space)


def _compare(name: str, run: Callable[[], Sequence[Result]], space: Space) -> Row:
    """Time a study of a space beside predictions of its points; demand that they are the same."""
    deployer, points = Deployer(), space.list_points()
    rows = run()
    able = [deployer.deploy(point) for point, row in zip(points, rows, strict=True)
            if not row.failure]
    predicted = [row for row in rows if not row.failure]
    for row, one in zip(predicted, able, strict=True):
        assert row.time_us is not None
        assert abs(deployer.predict_one(one).time_us / row.time_us - 1) < 1e-12, row
    ours, theirs = _alternate(run, lambda: [deployer.predict_one(one) for one in able])
    return Row(name=name, figure=ours / len(rows) * 1e3, unit="ms", peer="a kept predict",
               theirs=theirs / len(able) * 1e3, ratio_limit=RATIO, events={
                   "points": len(rows), "that cannot be": len(rows) - len(able),
                   "nanoseconds in all": round(1e3 * sum(row.time_us or 0 for row in rows))})


def _advise(network: str, board: str, limits: Limits) -> Row:
    """Time advice, which also changes the network, pairs changes and explains the best."""
    base, deployer = twin.deploy(network, board), Deployer()

    def run() -> Advice:
        return give_advice(base, limits, deployer)

    found = run()
    rows = [one.row for one in (*found.changes, *found.pairs)]
    return Row(name=f"advise {network}, kept", figure=median_cpu_s(run, TIMES) * 1e3, unit="ms",
               events={"changes that help": len(rows), "that cannot be": len(found.refused),
                       "nanoseconds in all": round(1e3 * sum(row.time_us or 0 for row in rows))})


def _alternate(run: Callable[[], object], peer: Callable[[], object]) -> tuple[float, float]:
    """Return the median processor times of a study and of its peer, run in turn, in seconds."""
    taken: tuple[list[float], list[float]] = ([], [])
    run(), peer()
    for _ in range(TIMES):
        for times, one in zip(taken, (run, peer), strict=True):
            started = time.process_time()
            one()
            times.append(time.process_time() - started)
    return median(taken[0]), median(taken[1])
