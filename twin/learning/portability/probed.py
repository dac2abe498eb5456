"""Prices corrected by micro-benchmarks: what `twin calibrate` makes of a run of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from calibration.fitting.cell import Estimate, locate
from calibration.fitting.overlay import Data, Overlay, pack_covariance
from calibration.measurement.measurement import Measurement, read_header, read_measurement
from calibration.microbench.probe_rows import Belief, Believed, ProbeRow, learn_rows
from calibration.microbench.probes import RUNTIME
from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from twin.attribution.folders import planned_runtime, predict_planned
from twin.attribution.observations import Observation
from twin.errors import UsageError
from twin.learning.own import learn_own
from twin.learning.portability.plan import believe
from twin.learning.portability.rows import measured_rows
from twin.pricing.calibration import Calibration, starting_prices, unseen_prices
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES

SURPRISE = 4.0
"""A row this many standard deviations from what is believed shows a mistake, not a price."""

LEARNT_SHARE = 0.8
"""A price has become known when its variance fell below this share."""


@frozen
class Probed:
    """Prices of a board under a runtime after micro-benchmarks.

    Parameters
    ----------
    remarks
        What could not be learnt from.
    """

    calibration: Calibration
    rows: tuple[ProbeRow, ...]
    folders: tuple[str, ...]
    remarks: tuple[str, ...]


def split_folders(folders: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return folders of micro-benchmarks, and all others; raises as `read_header` does."""
    folders = list(folders)
    probes = [folder for folder in folders if read_header(folder).runtime == RUNTIME]
    return probes, [folder for folder in folders if folder not in probes]


def learn_probes(folders: Sequence[str], board: Board, runtime: str | None = None) -> Probed:
    """Correct the prices of a board by micro-benchmarks run on it.

    Parameters
    ----------
    runtime
        Whose prices; by default that of the plan they were run for.

    Raises
    ------
    UsageError
        When no runtime is named, or nothing of the measurements informs a price, or all of it
        is out of reach of what is believed.
    RuntimeRefusedError
        For a runtime there is not.
    MeasurementError
        When a folder is of another board or does not count cycles.

    Notes
    -----
    Learning starts from what a prediction takes without them (`starting_prices`), as a plan does.
    """
    measured = [(folder, read_measurement(folder)) for folder in folders]
    runtime = planned_runtime([one for _, one in measured], runtime)
    rows, remarks, kinds = _read_rows(measured, board, runtime)
    start = starting_prices(board, runtime) or unseen_prices(board)
    assert start is not None, "prices of an unknown library are shipped for any board"
    rows, odd = split_odd(believe(start), rows)
    if not rows:
        raise UsageError(f"{', '.join(folders)}: {'; '.join(odd)}: nothing is left to learn from; "
                         "correct the board file, or measure again")
    remarks += [f"{one}: not learnt from; correct the board file, or measure again" for one in odd]
    after = learn_rows(believe(start), rows)
    estimate = Estimate(names=TIME_PRICES, log=after.log, covariance=after.covariance,
                        prior_covariance=start.time.prior_covariance)
    cell = locate(board.name, board.core.model, runtime)
    time = replace(start.entry.time, log=tuple(float(value) for value in after.log),
                   residuals=_residuals(start, rows),
                   unidentified=_still_unidentified(start, after),
                   covariance=pack_covariance(after.covariance))
    # clocks of other boards are no clocks this one was measured at
    support = start.entry.support if start.entry.board else replace(
        start.entry.support, clocks_hz=())
    entry = replace(start.entry, board=cell.board, core=cell.core, runtime=runtime, time=time,
                    support=support)
    return Probed(calibration=replace(start, origin="micro-benchmarks", entry=entry, time=estimate,
                                      kinds=tuple(sorted(kinds))),
                  rows=tuple(rows), folders=tuple(folders), remarks=tuple(remarks))


def _read_rows(measured: Sequence[tuple[str, Measurement]], board: Board, runtime: str,
               ) -> tuple[list[ProbeRow], list[str], set[str]]:
    """Return what folders tell of prices, what they do not, and of which kinds they are."""
    rows: list[ProbeRow] = []
    remarks: list[str] = []
    kinds: set[str] = set()
    for folder, one in measured:
        found, refused = measured_rows(one, board, predict_planned(one, board, runtime), folder)
        rows += found
        remarks += [f"{folder}: {remark}" for remark in refused]
        kinds |= {one.header.kind} if found else set()
    if not rows:
        raise UsageError(f"{', '.join(folder for folder, _ in measured)}: nothing there informs a "
                         "price; accepted: latency of a memory that is waited for, fetch, mac:int8")
    return rows, remarks, kinds


def split_odd(belief: Belief, rows: Sequence[ProbeRow]) -> tuple[list[ProbeRow], list[str]]:
    """Return rows that may be believed, and what the others miss by, in words."""
    kept, odd = [], []
    for row in rows:
        away = belief.surprise(row)
        if abs(away) <= SURPRISE:
            kept.append(row)
        else:
            miss = math.expm1(row.log_ratio - belief.expected(row))
            odd.append(f"{row.name}: {miss:+.0%} beside what was expected, {abs(away):.0f} "
                       "standard deviations")
    return kept, odd


def make_overlay(probed: Probed, board: Board) -> Overlay:
    """Return prices corrected by micro-benchmarks as an overlay."""
    entry = probed.calibration.entry
    lines = "\n".join(f"{row.name} {row.log_ratio:.9g}" for row in probed.rows)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    return Overlay(
        schema=1, library=locate(board.name, board.core.model, entry.runtime).library,
        entries=(entry,), time_prices=TIME_PRICES, energy_prices=ENERGY_PRICES,
        spread=dict(probed.calibration.spread),
        energy_spread=dict(probed.calibration.energy_spread),
        operators=dict(probed.calibration.operators),
        made_with={"embedded-twin": version("embedded-twin"), "counts_sha256": digest},
        data=Data(sha256=digest, rows=len(probed.rows), use="own", kinds=probed.calibration.kinds,
                  sources=tuple(f"{', '.join(probed.folders)}: {row.name}"
                                for row in probed.rows)))


def learn_all(observations: Sequence[Observation], probed: Probed | None, board: Board) -> Overlay:
    """Learn from networks, from micro-benchmarks, or from networks after micro-benchmarks."""
    if probed is None:
        return learn_own(observations, board)
    return (learn_own(observations, board, probed.calibration) if observations else
            make_overlay(probed, board))


def _residuals(start: Calibration, rows: Sequence[ProbeRow]) -> dict[str, float]:
    """Log of measured over what was expected before, by micro-benchmark."""
    belief: Belief = believe(start)
    return {row.name: round(row.log_ratio - belief.expected(row), 4) for row in rows}


def _still_unidentified(start: Calibration, after: Believed) -> tuple[str, ...]:
    """Prices that were not identifiable before, and are hardly better known now."""
    before = dict(zip(TIME_PRICES, np.diag(start.time.covariance), strict=True))
    now = dict(zip(TIME_PRICES, np.diag(after.covariance), strict=True))
    return tuple(name for name in start.entry.time.unidentified
                 if now[name] > LEARNT_SHARE * before[name])
