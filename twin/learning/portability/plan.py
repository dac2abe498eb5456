"""Which micro-benchmarks most narrow a prediction's interval, before any is run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from calibration.fitting.intervals import Interval
from calibration.fitting.prior import Prior, Spread, pool_prior
from calibration.microbench.probe_rows import Belief, Believed, ProbeRow, expect
from hwmodels.board.facts import Board
from hwmodels.errors import TwinError
from hwmodels.isa import load_isa
from twin.errors import UsageError
from twin.learning.overlays import stated_sds
from twin.learning.portability.probes import find_rooms, list_benchmarks
from twin.learning.portability.rows import expected_rows
from twin.pricing.assurance import assure, price_cycles
from twin.pricing.calibrated import predict_other
from twin.pricing.calibration import Calibration
from twin.pricing.certainty import Certainty
from twin.pricing.prediction import Prediction
from twin.pricing.price_names import TIME_PRICES
from twin.pricing.unmeasured import RUN, Expected, Ranking

NETWORKS = ("ad", "kws", "ic", "vww")
"""Networks anyone can run under a library, as further candidates."""


def prior_of(calibration: Calibration) -> Prior:
    """Return what learnt prices started from: stated ones, as far apart as boards were found."""
    known = {field.name for field in fields(Spread)}
    spread = Spread(**{name: value for name, value in calibration.spread.items() if name in known})
    return pool_prior(TIME_PRICES, stated_sds()[0], spread)


def believe(calibration: Calibration) -> Belief:
    """Return learnt prices as micro-benchmarks are set beside them."""
    entry = calibration.entry
    untouched = () if entry.board is not None else (
        ("board",) if entry.core is not None else ("core", "board"))
    return Belief(prior=prior_of(calibration), untouched=untouched, now=Believed(
        log=calibration.time.log, covariance=calibration.time.covariance),
        counted=bool(calibration.counted))


def rank_benchmarks(prediction: Prediction, calibration: Calibration, board: Board) -> Ranking:
    """Rank the micro-benchmarks of a board by how much they narrow a prediction's interval.

    Parameters
    ----------
    prediction
        Of a deployment `calibration` was applied to.
    board
        As stated: before it was applied.

    Returns
    -------
    Ranking
        Every one alone, and the best two.

    Raises
    ------
    UsageError
        When none informs a price the deployment has.

    Notes
    -----
    With s the shares of price in the time, C' the covariance after
    (`calibration.microbench.probe_rows`):
    sd(log time) = sqrt(s' C' s + network_sd^2 + row_sd^2) + what no row informs of operators. The
    interval reaches as many deviations as before; as in `predict`, it spans what an unknown
    replacement policy may do, except where this network itself is run.
    """
    certainty = assure(prediction, calibration, "warm")
    machine = None if load_isa(board.core.isa).code.native else board
    names = [one.name for one in list_benchmarks(machine, find_rooms(machine))]
    rows = expected_rows(names, prediction)
    if not rows:
        raise UsageError(f"no micro-benchmark of {board.name} measures a price this network has")
    runs = network_rows(prediction, calibration, board)

    def judge(chosen: Iterable[ProbeRow]) -> Expected:
        return _judge(tuple(chosen), prediction, certainty, calibration)

    pairs = [judge(pair) for pair in itertools.combinations(rows.values(), 2)]
    single = sorted((judge([row]) for row in rows.values()), key=_order)
    return Ranking(
        prediction=prediction, certainty=certainty, single=tuple(single),
        best=min(pairs, key=_order) if pairs else single[0],
        runs=tuple(sorted((judge([row]) for row in runs.values()), key=_order)),
        silent=tuple(name for name in names if name not in rows))


def _order(one: Expected) -> tuple[float, tuple[str, ...]]:
    return (-one.narrowing, one.names)


def _judge(rows: Sequence[ProbeRow], prediction: Prediction, certainty: Certainty,
           calibration: Calibration) -> Expected:
    draw, bounds = certainty.draw, certainty.time_us
    belief = believe(calibration)
    fixed = draw.network_sd**2 + draw.row_sd**2
    then, now = (math.sqrt(one.sd(draw.time)**2 + fixed) + draw.unlearned_sd
                 for one in (expect(belief, rows), belief.now))
    names = tuple(row.name for row in rows)
    policies = np.array([draw.policies.min(), draw.policies.max()])
    around = (bounds.low, bounds.high) / policies / prediction.time_us
    if RUN + prediction.graph.name in names:
        policies = np.ones(2)  # its run shows what the cache does
    low, high = (prediction.time_us * policies * around**(then / now)).tolist()
    return Expected(names=names, time_us=Interval(low=low, high=high, level=bounds.level),
                    narrowing=1 - math.log(high / low) / math.log(bounds.high / bounds.low))


def network_rows(prediction: Prediction, calibration: Calibration,
                 board: Board) -> Mapping[str, ProbeRow]:
    """Return rows of whole networks under the same library on a board, as stated: its own first."""
    found, own = {}, prediction.graph
    learnt = calibration.entry.time
    for name in (own.name, *NETWORKS):
        try:
            other = prediction if name == own.name else predict_other(
                prediction, name, calibration, board)
        except TwinError:
            continue  # does not fit: cannot be run either
        if name != own.name and other.deployment.graph.architecture_id == own.architecture_id:
            continue
        work = price_cycles(other).sum(axis=0)
        found[RUN + name] = ProbeRow(
            name=RUN + name, shares=work / work.sum(), reach=1.0, whole=True,
            noise_sd=math.hypot(learnt.network_sd, learnt.row_sd) or 0.01)
    return found
