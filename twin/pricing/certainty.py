"""How sure a prediction is: intervals, what stands behind them, limits it is held to.

How far it is from what was measured is added to its intervals, and said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from hashlib import sha256
from statistics import NormalDist
from typing import Any

import numpy as np

from calibration.fitting.intervals import (
    LEVEL,
    Amounts,
    Basis,
    Interval,
    drift_sd,
    probability_less,
)
from calibration.fitting.overlay import Entry, Support
from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from hwmodels.isa import load_isa
from hwmodels.quantities import list_first, significant
from twin.deployment.deployment import Deployment


@frozen
class LayerCertainty:
    """Intervals of one layer, in microseconds and microjoules; None is not known."""

    time_us: Interval | None
    energy_uj: Interval | None


@frozen
class Draw:
    """What a total is uncertain by, so that two totals can share it.

    Parameters
    ----------
    source
        Which learnt prices; only draws of the same source are shared.
    reach
        Shape (prices,): C^(1/2) s, the symmetric root of the covariance of the logarithms of
        prices on `time`, of which differences share what prices of one source have in common.
    time
        Shape (prices,): s, by how much log time follows each log price.
    row_sd
        Error of a single row: not shared.
    network_sd
        Error of a network's structure: shared by the same network.
    unlearned_sd
        Added for operators nobody measured: shared by the same network.
    network
        Architecture id of the network.
    structure, counts_sd
        What its counts depend on, and how well what differs between two structures of a library is
        known: of the logarithm; 0 where its instructions were counted.
    policies
        Times under each replacement policy a cache may have, over that of the assumed one.
    """

    source: tuple[str, ...]
    reach: np.ndarray = field(repr=False)
    time: np.ndarray = field(repr=False)
    row_sd: float
    network_sd: float
    network: str
    unlearned_sd: float = 0.0
    structure: str = ""
    counts_sd: float = 0.0
    policies: np.ndarray = field(repr=False, default_factory=lambda: np.ones(1))


@frozen
class Certainty:
    """What stands behind a calibrated prediction.

    Parameters
    ----------
    calibration
        Which learnt prices were used, for people.
    layers
        In execution order.
    basis
        What intervals rest on: a key of `calibration.fitting.intervals.BASES`.
    errors
        Past errors they rest on.
    extrapolating
        Why the data do not support the prediction; empty when they do.
    unidentified
        Prices the data could not tell, that matter here.
    draw
        For differences between predictions.
    doubtful
        Prices fitted as one with others, or that stand for what none counts: no findings.
    tasks
        Of an accelerator's tasks, in microseconds, in order.
    powers
        What the energy rests on where no measured energy stands behind it.
    version
        Of the learnt prices.
    by_shape
        Share of the time that prices parted by the shape of layers add: `fitting.cell.PARTS`.
    publisher, publisher_factor
        Whose rows say how the library was built, and the factor of that in each price.
    measured
        Whether rows behind it are of this board and library, and not all of an emulated board.
    boards
        How many boards its prices were learnt from; 0 is not known.
    powers_measured
        Whether an energy of this board stands behind its powers; None is not known.
    """

    calibration: str
    time_us: Interval
    energy_uj: Interval | None
    layers: tuple[LayerCertainty, ...]
    basis: Basis
    errors: int
    extrapolating: tuple[str, ...]
    unidentified: tuple[str, ...]
    draw: Draw = field(repr=False)
    doubtful: tuple[str, ...] = ()
    tasks: tuple[Interval, ...] = ()
    measured: bool = False
    powers_measured: bool | None = None
    boards: int = 0
    powers: str = ""
    version: str = ""
    by_shape: float = 0.0
    publisher: str = ""
    publisher_factor: float = 1.0


def ratio_interval(before_us: float, after_us: float, before: Draw, after: Draw) -> Interval:
    """Return the interval of the ratio of two times, after over before, that share their draws.

    Notes
    -----
    Normal in the logarithm, with the variance of `probability_faster`; under every replacement
    policy both may have.
    """
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    spread = math.exp(reach * math.sqrt(_variance(before_us, after_us, before, after)))
    ratios = (after_us / before_us * _compare_policies(before, after)).tolist()
    return Interval(low=min(ratios) / spread, high=max(ratios) * spread, level=LEVEL)


def _compare_policies(before: Draw, after: Draw) -> np.ndarray:
    """Return by how much a ratio of times moves under each replacement policy both may have."""
    return after.policies / before.policies if (
        len(before.policies) == len(after.policies)) else np.ones(1)


_SDS = ("row_sd", "network_sd", "unlearned_sd", "counts_sd")


def write_draw(draw: Draw) -> tuple[float, ...]:
    """Return a draw as numbers; what it is of as 48 bits of a hash, which numbers hold exactly."""
    return (*(float(int(sha256(repr(one).encode()).hexdigest()[:12], 16))
              for one in (draw.source, draw.network, draw.structure)),
            *(getattr(draw, name) for name in _SDS), len(draw.policies),
            *map(float, (*draw.policies, *draw.time, *draw.reach)))


def read_draw(values: Sequence[float]) -> Draw:
    """Return the draw of `write_draw`; raises `ValueError` for other numbers."""
    source, network, structure, *sds, count = values[:8]
    end = 8 + int(count)
    time, reach = np.reshape(values[end:], (2, -1))
    return Draw(source=(str(source),), network=str(network), structure=str(structure), time=time,
                reach=reach, policies=np.array(values[8:end]), **dict(zip(_SDS, sds, strict=True)))


def take_root(covariance: np.ndarray) -> np.ndarray:
    """Return the symmetric root of a covariance, which is unique."""
    values, vectors = np.linalg.eigh(covariance)
    root: np.ndarray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def probability_faster(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """Return the probability that `after` really takes less time than `before`.

    Parameters
    ----------
    before, after
        Of the two predictions.

    Returns
    -------
    float
        0 to 1.

    Notes
    -----
    Prices of the same source are drawn once for both, so what is common cancels; so does the
    structure error of the same network. The error of a row cancels for the same network on the
    same prices as far as its time by price stays the same: sd x moved time / longer time, moved
    time the sum of |after - before| over prices and what has none. It does not cancel otherwise.
    Prices of different sources are taken as independent, which is the cautious side within a
    family. Where counts differ, as of another cache, moved time is known no better than the loops
    of the library, `counts_sd`; each replacement policy both may have is as likely.
    """
    sd = math.sqrt(_variance(before_us, after_us, before, after))
    logs = math.log(after_us / before_us) + np.log(_compare_policies(before, after))
    return float(np.mean([probability_less(one, sd) for one in logs.tolist()]))


def _variance(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """Return the variance of the logarithm of the ratio of two times."""
    shared = before.source == after.source
    alike = shared and before.network == after.network
    parts = (after.reach - before.reach,) if shared else (before.reach, after.reach)
    variance = sum(float(part @ part) for part in parts)
    if not alike:
        variance += sum((one.network_sd + one.unlearned_sd)**2 for one in (before, after))
    moved_share = _moved_share(before_us, after_us, before, after) if alike else 1.0
    counts_sd = differ(before, after) if alike else 0.0
    return variance + moved_share**2 * (before.row_sd**2 + after.row_sd**2 + counts_sd**2)


def differ(before: Draw, after: Draw) -> float:
    """Return how well counts of a network that differ are known; 0 where none do."""
    return max(before.counts_sd, after.counts_sd) * (
        before.network == after.network and before.structure != after.structure)


def _moved_share(before_us: float, after_us: float, before: Draw, after: Draw) -> float:
    """How much of the longer time is not the same time under the same price, at most 1."""
    priced = np.abs(after_us * after.time - before_us * before.time).sum()
    unpriced = abs(after_us * (1 - after.time.sum()) - before_us * (1 - before.time.sum()))
    return min(1.0, float(priced + unpriced) / max(before_us, after_us))


@frozen
class Requirement:
    """A limit and what was predicted against it.

    Parameters
    ----------
    name
        "time", "energy", "RAM" ...
    predicted
        None is not known, and an unknown figure meets no limit.
    limit
        The largest value that is accepted.
    decimals
        Digits shown after the point.
    interval
        Of what was predicted; None where there is none, or nothing is uncertain.
    measured
        Of the same network on the same board, which is judged first; None is not known.
    counted
        What that is: "measured" or "simulated".
    at_least
        Whether what was predicted is a lower bound, and so meets no limit.
    """

    name: str
    unit: str
    predicted: float | None
    limit: float
    decimals: int = 0
    interval: Interval | None = None
    measured: float | None = None
    counted: str = "measured"
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure measured, else predicted, is known and within the limit."""
        judged = self.predicted if self.measured is None else self.measured
        return judged is not None and judged <= self.limit and not self.at_least

    @property
    def surely_met(self) -> bool:
        """Whether it was measured so, or the upper end of the interval is within the limit too."""
        known = self.measured is not None and self.counted == "measured"
        return self.met and (known or self.interval is None or self.interval.high <= self.limit)

    @property
    def chance_above(self) -> float | None:
        """Probability that the limit is really exceeded; None without an interval, or measured."""
        if self.interval is None or self.predicted is None or self.measured is not None:
            return None
        return probability_above(self.limit, self.predicted, self.interval)

    @property
    def verdict(self) -> str:
        """The sentence shown: by the point, and where the limit lies inside the interval."""
        if self.measured is not None:
            return f"{'ok' if self.met else 'not met'}, {self.counted}"
        if self.predicted is None:
            return "may: not known"
        if self.at_least and self.predicted <= self.limit:
            return "may: at least"
        inside = self.interval is not None and self.interval.holds(self.limit)
        if self.met:
            return "ok" if self.surely_met else "ok, may exceed"
        return "not met, may be within" if inside else "not met"


def probability_above(limit: float, point: float, interval: Interval) -> float:
    """Return the probability that a positive quantity exceeds a limit.

    Parameters
    ----------
    limit, point
        Of the quantity, above 0.

    Returns
    -------
    float
        0 to 1.

    Notes
    -----
    The logarithm is taken as normal about the point, with the standard deviation of each side from
    that side's end of the interval: at the upper end of a 90 % interval it is 5 %.
    """
    return probability_less(math.log(limit / point), sd_towards(limit, point, interval))


def sd_towards(limit: float, point: float, interval: Interval) -> float:
    """Return the standard deviation of the logarithm on the side a limit lies on."""
    end = interval.high if limit >= point else interval.low
    reach = NormalDist().inv_cdf(0.5 + interval.level / 2)
    return max(abs(math.log(end / point)) / reach, 1e-9)


COLD = 0.01
"""Share of the time that fills caches, above which a cold inference is another than a warm one."""

FAR = 2.0
"""A clock, or a network's cycles, beyond the measured range by this factor is extrapolation."""


Reason = tuple[Any, str]
"""Which rows it holds of, one truth or an array of them, and what it is, of the first."""


def far_sd(cycles: Amounts, clock_hz: Amounts, support: Support, *, measured: bool) -> Amounts:
    """Return what to add to the deviation of log time for a network or a clock beyond the rows.

    Parameters
    ----------
    cycles, clock_hz : float or ndarray of float
        Predicted of the network, and the clock of its core.
    support
        What was measured nearest.
    measured
        Whether that is this board: how far apart boards lie holds the clocks they run at.

    Notes
    -----
    The sum of `drift_sd` of both: they may go wrong the same way.
    """
    return (drift_sd(cycles, support.cycles or ())
            + drift_sd(clock_hz, support.clocks_hz if measured else ()))


def between_sd(network: str, entry: Entry, *, time: bool) -> float:
    """Return the least a network's total is known to, for how far networks lie apart.

    Parameters
    ----------
    network
        `Graph.architecture_id` of what is predicted.
    time
        Of its time, else of its power.

    Returns
    -------
    float
        Standard deviation of the logarithm; 0 for a network that is among the rows, and where
        rows of many networks say it themselves, as those shipped do.

    Notes
    -----
    The greater of the two is taken, not their sum: errors on held-out networks hold what prices
    and operators leave open as well.
    """
    learnt = entry.time if time else entry.energy
    return 0.0 if learnt is None or network in entry.support.networks else learnt.between_sd


def find_extrapolation(deployment: Deployment, entry: Entry, *, cycles: Amounts, hertz: Amounts,
                       changed: Sequence[str], filling: Amounts | float = 0.0) -> list[Reason]:
    """Return why the rows behind an entry do not support a prediction.

    Parameters
    ----------
    cycles, hertz : float or ndarray of float, (rows,)
        Of the inference at the entry's prices, and of its clock.
    filling
        Share of the time that fills empty caches: overlays are learnt warm.
    changed
        Facts of the machine other than where rows were measured.
    """
    support, known = entry.support, entry.board is not None
    first, clock, fills = (float(np.ravel(one)[0]) for one in (cycles, hertz, filling))
    own = "" if deployment.board.npu is None or deployment.accelerated else "the core of "
    core, here = deployment.board.core.model, deployment.board.name
    near = [(hertz >= one / FAR) & (hertz <= one * FAR) for one in support.clocks_hz]
    low, high = support.cycles or (0.0, math.inf)
    return [
        (filling > COLD, "cold: only warm inferences were measured; filling caches, "
         f"{significant(100 * fills, 2)} % of the time, widens the interval"),
        (not known, f"no measurement of {own}{here} is learnt from, " + (
            f"only of other boards with {core}" if entry.core else f"nor of any {core}")),
        (known and not entry.time.rows,
         f"{deployment.runtime.identity} was never measured on {entry.board}"),
        (bool(changed), f"{list_first(changed, 2)} where it was measured"),
        (deployment.runtime.closed and deployment.extension not in (
            None, load_isa(deployment.board.core.isa).extensions[0]),
         f"{deployment.runtime.identity} comes compiled: kernels.extension={deployment.extension} "
         "is no build of it, but an estimate of what its own code brings"),
        (bool(known and near) & ~np.any(near, axis=0),
         f"clock of {clock / 1e6:g} MHz; measured at "
         + ", ".join(f"{one / 1e6:g}" for one in support.clocks_hz) + " MHz"),
        (bool(known and support.arenas) and deployment.arena not in support.arenas,
         f"arena in {deployment.arena}; measured in {', '.join(support.arenas)}"),
        ((cycles < low / FAR) | (cycles > high * FAR),
         f"{first:,.0f} cycles; {_say_measured(support)}")]


def _say_measured(support: Support) -> str:
    """Say how many cycles what was measured took: networks, or layers where no whole one was."""
    low, high = support.cycles or (0.0, 0.0)
    if not support.networks:
        return f"no whole network was measured, and layers that were add up to {high:,.0f}"
    return (f"networks measured took {low:,.0f} to {high:,.0f}" if low < high else
            f"the one measured took {high:,.0f}")


def note_missing(deployment: Deployment) -> tuple[str, ...]:
    """Say why a prediction has no interval although learnt prices were asked for.

    Parameters
    ----------
    deployment
        No learnt prices were found for.

    Returns
    -------
    tuple of str
        One line; none on an accelerator, whose intervals do not come from prices.
    """
    if deployment.accelerated:
        return ()
    return (f"no interval: nothing was measured of {deployment.runtime.identity}; its prices are "
            "those stated",)


def say_assumed_currents(board: Board) -> str:
    """Say that a board's file has currents of its class."""
    return (f"energy rests on assumed currents: no public source states those of {board.name}, so "
            f"its file has those of its class; interval wider by {board.assumed_current_sd:.0%} "
            "(one standard deviation)")
