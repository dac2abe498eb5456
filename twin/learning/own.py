"""Prices of one's own board, learnt from its rows, starting from what is shipped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from calibration.errors import FitError
from calibration.fitting.bands import choose_band
from calibration.fitting.between import Between, read_between
from calibration.fitting.cell import Cell, Estimate
from calibration.fitting.intervals import CONFORMAL_ROWS
from calibration.fitting.overlay import Entry, Learnt, Overlay, Support
from calibration.fitting.prices import Evidence, Noise, fit_prices
from calibration.fitting.prior import Prior, Spread, bind, known_prior, pool_prior, share, state
from calibration.fitting.spread import learn_noise
from calibration.fitting.ties import ODDS, Tied, tie_prices
from calibration.fitting.validation import leave_out_closely
from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from twin.attribution.observations import Observation
from twin.learning.beyond import network_cycles, tell_operators
from twin.learning.evidence import energy_evidence, time_evidence, with_energy
from twin.learning.overlays import ABSURD, ENERGY_SPREAD, bundle, make_learnt, stated_sds
from twin.pricing.calibration import (
    Calibration,
    shipped_calibration,
    starting_prices,
    unseen_prices,
)
from twin.pricing.counted_prices import IMAGE
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES
from twin.pricing.task_prices import state_powers, state_prior

OWN_NOISE = Noise(network_sd=Spread().network, row_sd=Spread().row, edge=100.0)
"""Before the rows of one's own board; a hundred cycles of entering and leaving a layer, uncounted,
are assumed: a call with its arguments, and the first lines of its code.
"""

ALIKE, ALIKE_SD = ("conv_wide", "pointwise"), 0.15
"""Products of windows and of single pixels run one inner loop, so what a core's instructions cost
moves both: in 45 entries learnt of X-CUBE-AI on five boards factors of pointwise and wide
convolutions are 0.15 apart, of TFLite Micro 2.3.1 by 0.004 (root mean square, logarithms)."""


ALIKE_CORE = 0.5
"""Correlation of what the table of a core, or of a memory, is off by in two kernels. Of held-out
cores, one board and library, errors of `ad` corrected by so much of them say most of other networks
(33 pairs of use `fit`: median 0.060, by a quarter 0.048, by half 0.043, by all 0.047), closed
libraries among them, whose own structure sets networks apart; hidden boards of
`benchmarks.diagnosis`, whose kernels share costs of instructions, ask for 0.5 to 0.95. A price is
as sure as where all go together, and no total less sure."""


def learn_own(observations: Sequence[Observation], board: Board,
              start: Calibration | None = None) -> Overlay:
    """Learn prices of one's own board, starting from what is shipped for it or its family.

    Parameters
    ----------
    observations
        Of one board; each runtime gets an entry.
    board
        That board: what is shipped for it, or for its core, is where learning starts.
    start
        Where learning of its runtime starts instead: from micro-benchmarks.

    Returns
    -------
    Overlay
        One entry per runtime.

    Raises
    ------
    FitError
        Without observations, or when they settle on no prices.

    Notes
    -----
    The shipped entry's prices and covariance are the prior, wider by what two releases have apart:
    one's own build may be as different. Without one, stated prices with their stated deviations.
    Errors of network and row, and of what no layer's counts hold, are learnt from the data; prices
    they cannot tell apart are fitted as one: `calibration.fitting.ties`. Layers of one network
    agree better with one another than another network will: with too few networks for quantiles
    of errors on those held out, intervals take the quantiles of published ones, and no network
    that is not among the rows is known better than those were: `calibration.fitting.between`.
    Where no row's energy was measured, powers are those shipped, of any library on the board where
    this one was not measured there, and the entry says whose.
    """
    if not observations:
        raise FitError("nothing to learn from: no measured total has counts behind it")
    runtimes = dict.fromkeys(o.runtime for o in observations)
    timed = [o for o in observations if o.timed]
    entries = [_learn_one([o for o in observations if o.runtime == runtime], board, start)
               for runtime in runtimes]
    operators: dict[str, float] = {}
    for entry in entries:
        shipped = _start_of(board, entry.runtime, start)
        if shipped is not None:
            operators |= shipped.operators
    for entry in entries:
        log = np.array(entry.time.log)
        operators = tell_operators([o for o in timed if o.runtime == entry.runtime],
                                   partial(_same, log), operators)
    return bundle(", ".join(dict.fromkeys(o.cell.library for o in observations)), entries,
                  observations, observations, use="own", operators=operators,
                  kinds=() if start is None else start.kinds)


@frozen
class Total:
    """Sum of a folder's timed layers: as predicted before it was learnt from, now, and measured."""

    folder: str
    before_us: float
    now_us: float
    measured_us: float


def list_totals(folders: Mapping[str, Sequence[Observation]], overlay: Overlay,
                board: Board) -> Iterator[Total]:
    """Yield the total of each folder at the prices before, at those of an overlay, and measured."""
    entries = {entry.runtime: entry for entry in overlay.entries}
    for folder, rows in folders.items():
        timed = [row for row in rows if row.timed]
        if not timed:
            continue
        evidence, runtime = time_evidence(timed), timed[0].runtime
        start = None if timed[0].prices != TIME_PRICES else starting_prices(board, runtime)
        before = np.zeros(len(evidence.names)) if start is None else start.time.log
        clocks = np.array([row.clock_hz for row in timed]) / 1e6
        before_us, now_us, measured_us = (float((cycles / clocks).sum()) for cycles in (
            evidence.amounts @ np.exp(before),
            evidence.amounts @ np.exp(np.array(entries[runtime].time.log)), evidence.measured))
        yield Total(folder=folder, before_us=before_us, now_us=now_us, measured_us=measured_us)


def _same(log: np.ndarray, cell: Cell) -> np.ndarray:
    """Log prices of whatever cell."""
    return log


def _start_of(board: Board, runtime: str, start: Calibration | None) -> Calibration | None:
    """Return where learning of a runtime starts: what is given for it, or what is shipped."""
    if start is not None and start.entry.runtime == runtime:
        return start
    return starting_prices(board, runtime)


def _learn_one(rows: Sequence[Observation], board: Board, start: Calibration | None) -> Entry:
    accelerated = rows[0].prices != TIME_PRICES
    shipped = _start_of(board, rows[0].runtime, start)
    time_sd, energy_sd = stated_sds()
    powered, rows = with_energy(rows), [row for row in rows if row.timed]
    evidence = time_evidence(rows)
    priors = [known_prior(evidence.names, np.zeros(len(evidence.names)), state_prior(
        board.accelerator, rows[0].runtime))] if accelerated else _core_priors(
            board, rows[0].runtime, time_sd, shipped)
    time = _fit_likelier(evidence, priors)
    misses = np.abs(time.residuals)
    missed = float(np.median(misses))
    if missed > math.log(ABSURD):
        raise FitError(f"{rows[int(misses.argmax())].label}: half of the measurements differ from "
                       f"every possible price by a factor of {math.exp(missed):.3g} or more; check "
                       "their board, clock and unit")
    cell, energy = rows[0].cell, None
    if powered:
        joules = energy_evidence(powered, time.fit)
        pooled = pool_prior(ENERGY_PRICES, energy_sd, ENERGY_SPREAD)
        before = (known_prior(joules.names, np.zeros(len(joules.names)), state_powers(board))
                  if accelerated else known_prior(
                      ENERGY_PRICES, pooled.mean, pooled.of(joules.cells[0].stated_sd))
                  if shipped is None or shipped.energy is None else
                  _family_prior(shipped.energy, energy_sd, shipped.energy_spread))
        noise = learn_noise(joules, before)
        free = fit_prices(joules, before, noise) if accelerated else None
        fit = Tied(free=free, fit=free, names=()) if free else tie_prices(joules, before, noise)
        energy = _make_own(fit, powered, "energy")
    powers = None if powered or accelerated else shipped or unseen_prices(board)
    if powers is not None:
        energy = powers.entry.energy
    totals = network_cycles(rows)
    return Entry(
        board=cell.board, core=cell.core, runtime=rows[0].runtime, energy=energy,
        powers_of="" if powers is None or energy is None else powers.powers_of,
        time=_make_own(time, rows, "time"),
        support=Support(
            networks=tuple(sorted({_name_network(o) for o in rows})),
            clocks_hz=tuple(sorted({o.clock_hz for o in rows})),
            supplies_v=tuple(sorted({o.supply_v for o in rows if o.supply_v is not None})),
            arenas=tuple(sorted({o.arena for o in rows})),
            cycles=(min(totals), max(totals)), boards=(cell.board,)))


def _core_priors(board: Board, runtime: str, stated_sd: np.ndarray,
                 start: Calibration | None) -> list[Prior]:
    """Return what may be believed of a core's prices, first what is.

    Where instructions were counted, that is what a prediction takes, but that kernels may differ;
    else, and where rows refute it, what is stated or shipped, of whatever build.
    """
    found = []
    if start is not None and start.counted:
        alike = ALIKE_CORE + (1 - ALIKE_CORE) * np.eye(len(TIME_PRICES))
        found.append(known_prior(TIME_PRICES, start.time.log, start.time.covariance * alike))
        start = None if start.counted == IMAGE else (
            shipped_calibration(board, runtime) or unseen_prices(board))
    found.append(pool_prior(TIME_PRICES, stated_sd, Spread()) if start is None else
                 _family_prior(start.time, stated_sd, start.spread))
    return [bind(one, ALIKE, ALIKE_SD) for one in found]


def _fit_likelier(evidence: Evidence, priors: Sequence[Prior]) -> Tied:
    """Fit rows under what is believed, or the last prior where rows are `ODDS` times as probable.

    What is believed of counted kernels says itself how a sum of two is shared: none are tied.
    """
    noises = [learn_noise(evidence, prior, OWN_NOISE) for prior in priors]
    free, *others = (fit_prices(evidence, *one) for one in zip(priors, noises, strict=True))
    if others and others[0].log_evidence < free.log_evidence + math.log(ODDS):
        return Tied(free=free, fit=free, names=())
    return tie_prices(evidence, priors[-1], noises[-1])


def _make_own(tied: Tied, rows: Sequence[Observation], quantity: Literal["time", "energy"],
              ) -> Learnt:
    fit, between = tied.free, _between(rows, quantity)
    cell = fit.evidence.cells[0]
    band = between.band if between else choose_band(
        fit, leave_out_closely(fit, fit.evidence.networks), cell, len(rows))
    made = make_learnt(fit, band, cell, tied, between.sd if between else 0.0)
    return replace(made, network_sd=max(made.network_sd, _miss_totals(tied, rows)))


def _miss_totals(tied: Tied, rows: Sequence[Observation]) -> float:
    """Return how far totals of the networks learnt from are off, the root of the mean square.

    As log(measured / fitted), of layers their sum. Rows a fit takes for outliers move no price, and
    what it leaves of them is no less of their network's total.
    """
    measured = tied.fit.evidence.measured
    totals: dict[str, np.ndarray] = {}
    for row, pair in zip(rows, np.array([measured, measured / np.exp(tied.residuals)]).T,
                         strict=True):
        name = _name_network(row)
        totals[name] = totals.get(name, 0.0) + pair
    sums = np.array([*totals.values()])
    return float(f"{np.sqrt(np.mean(np.log(sums[:, 0] / sums[:, 1])**2)):.6g}")


def _name_network(row: Observation) -> str:
    """Return the network of a row; a layer's name begins with its network's."""
    return row.network if row.whole else row.network.partition(" ")[0]


def _between(rows: Sequence[Observation], quantity: Literal["time", "energy"]) -> Between | None:
    """Return how far published networks lie apart; None where the rows have enough of their own."""
    networks = {o.network for o in rows if o.whole}
    return None if len(networks) >= CONFORMAL_ROWS else read_between(quantity)


def _family_prior(estimate: Estimate, stated_sd: np.ndarray, spread: Mapping[str, float],
                  ) -> Prior:
    """Return the prior of another build on a board whose prices are estimated."""
    release = spread.get("release") or spread.get("cell", 0.0)  # Powers know of firmwares only.
    single = spread.get("own_build") or spread.get("own_cell", 0.0)
    apart = (release ** 2 * share(estimate.names, "release")
             + single ** 2 * state(estimate.names, stated_sd))
    return known_prior(estimate.names, estimate.log, estimate.covariance + apart)
