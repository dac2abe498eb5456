"""Intervals that hold: quantiles of past errors, and Student t where past errors are few.

Errors are of logarithms, so an interval is a factor either way and asymmetric in time. Each past
error is divided by the standard deviation its own prediction stated, so that the quantile of a
harder network is not asked of an easier one (normalised conformal prediction).

References
----------
Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, Distribution-free predictive inference for
regression, JASA 113 (2018), section 2 and 5.2; Barber, Candes, Ramdas and Tibshirani, Predictive
inference with the jackknife+, Annals of Statistics 49 (2021), section 1.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Literal, TypeVar

import numpy as np

from calibration.errors import FitError
from hwmodels.errors import need_extra
from hwmodels.frozen import frozen

LEVEL = 0.9
"""Nominal probability that a measurement lies inside an interval."""

Basis = Literal["conformal", "borrowed", "model-based"]

BASES: Mapping[Basis, str] = {
    "conformal": "quantiles of {} errors on held-out networks, of this library on this board",
    "borrowed": "quantiles of {} errors on held-out networks, of other boards or libraries",
    "model-based": "a spread worth {} independent errors on held-out boards, cores or libraries: "
                   "no calibration data of this one",
}
"""What an interval may rest on, and how many errors."""


def describe_basis(basis: Basis, errors: int, *, measured: bool = False, boards: int = 0) -> str:
    """Return what an interval rests on, as one reads it; `measured` omits that nothing was.

    Parameters
    ----------
    boards
        How many boards the prices were learnt from, whose rows are not independent; 0: not known.
    """
    if not errors:
        return "an assumed spread: nothing held out stands behind it"
    text = BASES[basis].format(f"{errors:,}")
    if boards and basis == "model-based" and errors > 1:
        text = text.replace("independent errors", "errors").replace(
            "libraries", f"libraries (their rows are of {boards} board{'s' * (boards > 1)}, so not "
                         "all are independent)", 1)
    text = text.partition(": ")[0] if measured else text
    return text.replace(" errors", " error", 1).replace("worth 1 independent error",
                                                        "worth one independent error") \
        if errors == 1 else text


OPERATOR_SD, BORROWED_SD = 0.4, 0.7
"""Of the logarithm of what an operator costs beside others of its family, where its loops were
read or counted, and where they were borrowed or are assumed; both assumed. Factors learnt for a
closed library lie 0.3 to 3 from one another in the logarithm.
"""

SHOWN = 0.5
"""What is left of those where rows of the library show code of the operator's type and
instructions; learnt by leaving out (docs/accuracy.md): a quarter is most probable, halved with what
was assumed.
"""

FLOAT_SD = 0.2
"""Added where counted kernels compute in float, of which no row of the library is: builds differ in
how they fuse products and in soft-float routines, by 1.5 and more (docs/accuracy.md); assumed. So
do builds of kernels of bytes that scale their results in float: TinyMaix at -Os executes 1.1 to 1.3
times what -O2 does.
"""

CORE_SD, CORES = 0.11, 4
"""Of the logarithm of a core's own cycles, by its table, where the instructions are known: what
errors on measured cores, held out, show (`benchmarks.accuracy.cores_left_out`), and how many there
are.
"""

CARRIED_SD = 0.12
"""Of the logarithm of the instructions of C that was counted on another instruction set, of one
with products of 64 bits: how far ESP-NN's operators lie apart on RV32IMC and Thumb-2, as counted.
"""

WAITING_SD, CALLING_SD = 0.4, 0.7
"""Of the logarithm of what memories make wait and of what calling a kernel costs, as overlays take
them before any data; assumed.
"""

REST_SD = 0.1
"""How well the rest of a network is known whose row informs one of its operators; assumed."""

LAYER_SD = {"open": 0.15, "read": 0.15, "assumed": 0.3}
"""Of the logarithm of a layer's time beside its operator's, by how well a library's structure is
known: layers of one operator are priced alike and their shapes are not. Within a published table of
layers of an open library 0.03 to 0.2 is left; of a closed one twice as much is assumed.
"""

LAYER_REACH = 2.2
"""How many of its standard deviations a layer's interval reaches at shipped prices: 90 % of 84
published layers and kernels of eight tables are within 1.94, by Student t of seven degrees
(`benchmarks.accuracy.layers`, and the ESP32-S3's of `benchmarks.accuracy.dsp`). Errors of whole
networks, which networks' intervals rest on, say nothing of it: those of layers cancel there.
"""

DRIFT_SD = 0.025
"""Of the logarithm of a cost, for each factor e by which a network's cycles or the clock lie beyond
those measured: counts grow with the one and waits with the other, and so may what no row shows;
learnt by leaving out: 0 is most probable, 0.05 was assumed.
"""

TYPICAL = 0.1
"""Sum of the squared shares of time of the layers of a typical network."""

CONFORMAL_ROWS, TAIL_ROWS = 9, 19
"""Fewest errors whose largest bounds 90 % of further ones, and 95 %: ceil(0.9 (n + 1)) <= n."""


@frozen
class Interval:
    """Bounds a quantity lies within at a level, in the quantity's unit."""

    low: float
    high: float
    level: float

    def __post_init__(self) -> None:
        """Refuse ends in the wrong order and a level outside 0 to 1."""
        if not (self.low <= self.high and 0 < self.level < 1):
            raise FitError(f"interval {self.low} to {self.high} at level {self.level}")

    def holds(self, value: float) -> bool:
        """Whether a value lies inside."""
        return self.low <= value <= self.high

    def scale(self, low: float, high: float) -> Interval:
        """Return it with each end times a factor."""
        return replace(self, low=self.low * low, high=self.high * high)

    def write(self, form: Callable[[float], str]) -> str:
        """Return its ends as a form writes them: "1 ms to 2 ms"."""
        return f"{form(self.low)} to {form(self.high)}"

    def describe(self, form: Callable[[float], str]) -> str:
        """Return its level and its ends: "90 % interval 1 ms to 2 ms"."""
        return f"{100 * self.level:.0f} % interval {self.write(form)}"


@frozen
class Band:
    """How many stated standard deviations an interval reaches, down and up.

    Parameters
    ----------
    down, up
        Multiples of the stated standard deviation of the logarithm.
    level
        Nominal coverage.
    basis
        A key of `BASES`.
    count
        Past errors it rests on; how many independent ones, for "model-based".
    """

    down: float
    up: float
    level: float
    basis: Basis
    count: int


def concentrate(layers: np.ndarray) -> float:
    """Return what a network's error is multiplied by, for how few layers its time is in.

    Parameters
    ----------
    layers
        Shape (layers,): time of each, in any unit.

    Returns
    -------
    float
        1 for a network whose time is spread over ten like layers, sqrt(10) for a single layer.

    Notes
    -----
    What is not known of the structure of layers is taken as independent from one to the next: with
    w their shares, its part in the total goes with sqrt(sum w^2 / TYPICAL).
    """
    weights = layers / np.sum(layers)
    return math.sqrt(float((weights**2).sum()) / TYPICAL)


def remaining_sd(information: float, sd: float) -> float:
    """Return how far rows leave an operator's own cost open.

    Parameters
    ----------
    information
        Sum over networks measured of the squared share of time the operator has there.
    sd
        Of the logarithm of its cost before any row: `OPERATOR_SD` or `BORROWED_SD`.

    Returns
    -------
    float
        Standard deviation to be added for each part of the time it takes.

    Notes
    -----
    sd x v with v = 1 / (1 + information (sd / REST_SD)^2), the part of its variance that is left
    after as many rows: 1 for an operator without rows, nearly 0 for one that took half the time of
    a network. It is added to a total's standard deviation in proportion w to the time it takes,

        sd(log total) = sd of prices, network and row + sum over operators of w sd v

    as if all errors went one way: variances would average out, and a network get surer by what
    nobody measured.
    """
    return sd / (1 + information * (sd / REST_SD)**2)


Amounts = TypeVar("Amounts", float, np.ndarray)
"""A number, or many at once."""


def drift_sd(value: Amounts, measured: Sequence[float]) -> Amounts:
    """Return what to add to a deviation for how far something lies beyond what was measured.

    Parameters
    ----------
    value : float or ndarray of float
        Positive: a network's cycles, or the clock of its core.
    measured
        Of rows, in the same unit, in any order; without any nothing is known to be near or far.

    Returns
    -------
    float or ndarray of float
        Added to the standard deviation of the logarithm of a total.

    Notes
    -----
    `DRIFT_SD` x d, with d = max(0, log(value / largest), log(smallest / value)): the reach of a
    straight line through the rows whose slope is 0, give or take `DRIFT_SD`. Within the measured
    range nothing is added. Added in proportion, as `remaining_sd` is: what stands behind an
    interval was seen nearer by.
    """
    if not measured:
        return value * 0.0
    smallest, largest = min(measured), max(measured)
    if isinstance(value, np.ndarray):
        return DRIFT_SD * np.maximum(0.0, np.log(np.maximum(value / largest, smallest / value)))
    return DRIFT_SD * max(0.0, math.log(value / largest), math.log(smallest / value))


def conformal_quantile(scores: np.ndarray, level: float) -> float:
    """Return what the next score stays below with at least this probability.

    Parameters
    ----------
    scores
        Shape (n,): exchangeable past scores.

    Returns
    -------
    float
        The ceil((n + 1) level)-th smallest; infinite when n is too small to promise any.

    Notes
    -----
    Holds whatever the scores' distribution, as long as the next one could have been any of them.
    """
    scores = np.sort(np.asarray(scores, dtype=np.float64))
    # without the tolerance, (19 + 1) x 0.95 is 19.000000000000004 in floating point
    rank = math.ceil((len(scores) + 1) * level - 1e-9)
    return float(scores[rank - 1]) if rank <= len(scores) else math.inf


def make_band(errors: np.ndarray, basis: Basis = "conformal", *,
              alike: bool = False) -> Band | None:
    """Return a band from errors of past predictions over their stated standard deviations.

    Parameters
    ----------
    errors
        Shape (n,): log(measured / predicted) / stated sd, each predicted without its own network.
    basis
        Whose errors they are: "conformal" or "borrowed".
    alike
        Whether both sides reach alike, however many there are.

    Returns
    -------
    Band or None
        Each side by its own errors when there are enough for either tail; the same on both sides
        when there are only enough together; None with fewer.
    """
    errors = np.asarray(errors, dtype=np.float64)
    tail = (1 + LEVEL) / 2
    down, up = conformal_quantile(-errors, tail), conformal_quantile(errors, tail)
    if alike or not math.isfinite(down) or not math.isfinite(up):
        down = up = conformal_quantile(np.abs(errors), LEVEL)
    if not math.isfinite(down):
        return None
    # a side no past error went to still has the width of a rounding
    return Band(down=max(down, 0.1), up=max(up, 0.1), level=LEVEL, basis=basis, count=len(errors))


def student_band(count: float, scale: float = 1.0) -> Band:
    """Return the band for what was not measured: Student t with count - 1 degrees.

    Parameters
    ----------
    count
        Independent errors, or boards, the scale was learnt from; below two, one degree is used.
    scale
        Error of what was held out, in standard deviations stated of it.

    Raises
    ------
    ToolMissingError
        Without SciPy.
    """
    with need_extra("intervals", "SciPy", "fit"):
        from scipy.stats import t
    reach = scale * float(t.ppf((1 + LEVEL) / 2, max(count - 1, 1)))
    return Band(down=reach, up=reach, level=LEVEL, basis="model-based", count=int(count))


def scale_band(band: Band, factor: float) -> Band:
    """Return a band that reaches so many times as far."""
    return replace(band, down=band.down * factor, up=band.up * factor)


def widest(band: Band, *others: Band) -> Band:
    """Return a band that reaches as far as any of them, on either side; the first says why."""
    return replace(band, down=max(one.down for one in (band, *others)),
                   up=max(one.up for one in (band, *others)))


def even_sides(band: Band, unlearned: Any) -> Band:
    """Return a band where part of a deviation is of what past errors had not: it may go either way.

    Parameters
    ----------
    band
        Whose sides may differ, as past errors went.
    unlearned : float or ndarray of float
        That part of the stated deviation, 0 to 1.

    Returns
    -------
    Band
        Sides of the shape of `unlearned`: its part reaches as far on either as on the farther.
    """
    farther = max(band.down, band.up)
    return replace(band, down=band.down + unlearned * (farther - band.down),
                   up=band.up + unlearned * (farther - band.up))


def name_ends(name: str, unit: str, interval: Interval | None) -> dict[str, float | None]:
    """Return ends and level of an interval as cells of a row, empty where there is none."""
    return {f"{name}_low_{unit}": None if interval is None else interval.low,
            f"{name}_high_{unit}": None if interval is None else interval.high,
            f"{name}_level": None if interval is None else interval.level}


def bound(value: float, sd: float, band: Band) -> Interval:
    """Return the interval of a positive value whose logarithm has a standard deviation.

    Parameters
    ----------
    band
        How far to go either way.
    """
    low, high = find_ends(value, (sd, band))
    return Interval(low=float(low), high=float(high), level=band.level)


def find_ends(value: Amounts, *errors: tuple[Amounts, Band]) -> tuple[Amounts, Amounts]:
    """Return the ends of intervals of positive values: the one place where they are worked out.

    Parameters
    ----------
    value : float or ndarray of float
        Predicted; NaN is not known, and has no ends.
    *errors : (float or ndarray of float, Band)
        Standard deviations of its logarithm by independent causes, and how far to go of each.

    Returns
    -------
    (float or ndarray of float, ...)
        value exp(-d) and value exp(u), with d the root of the sum of (down x sd)^2, u that of up.
    """
    down, up = (reduce(np.hypot, [reach * sd for reach, sd in side]) for side in zip(
        *(((band.down, sd), (band.up, sd)) for sd, band in errors), strict=True))
    return value * np.exp(-down), value * np.exp(up)


def probability_less(log_difference: float, sd: float) -> float:
    """Return the probability that a log difference is really below zero, normal errors."""
    if sd <= 0:
        return 0.5 if log_difference == 0 else float(log_difference < 0)
    return 0.5 * math.erfc(log_difference / (sd * math.sqrt(2.0)))
