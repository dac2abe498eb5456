"""A prediction for a board nobody measured: what its interval is of, what would narrow it."""

from __future__ import annotations

from calibration.fitting.intervals import Interval
from hwmodels.frozen import frozen
from twin.pricing.certainty import Certainty
from twin.pricing.prediction import Prediction

RUN = "run:"
"""Begins the name of a candidate that is a whole network under the same library."""


@frozen
class Expected:
    """What micro-benchmarks would do to an interval.

    Parameters
    ----------
    names
        Run together.
    time_us
        Of one inference, expected afterwards, around the same time.
    narrowing
        1 - ln(high / low) afterwards / ln(high / low) before.
    """

    names: tuple[str, ...]
    time_us: Interval
    narrowing: float


@frozen
class Ranking:
    """Micro-benchmarks for a deployment, by what they would tell.

    Parameters
    ----------
    prediction
        At learnt prices.
    certainty
        Of it, before.
    single
        Each micro-benchmark alone, best first.
    best
        The two that tell most together.
    runs
        Whole networks under the same library, best first: what else would narrow it.
    silent
        Those that tell of no price this deployment has.
    """

    prediction: Prediction
    certainty: Certainty
    single: tuple[Expected, ...]
    best: Expected
    runs: tuple[Expected, ...]
    silent: tuple[str, ...]


@frozen
class Makeup:
    """What an interval is made of: shares of the variance of log time, summing to 1.

    Parameters
    ----------
    boards
        What boards, and cores, differ by: no data of other boards show it.
    parameters
        What the data left open of the rest.
    model
        What no price explains: networks, builds, placement.
    """

    boards: float
    parameters: float
    model: float


@frozen
class Behind:
    """Rows of one board under one runtime that a prediction rests on, and their kind."""

    board: str
    kind: str
    core: str
    runtime: str
    rows: int
    networks: tuple[str, ...]


@frozen
class Ported:
    """A prediction for a board nobody measured.

    Parameters
    ----------
    shipped
        The same at the prices that are shipped, as `twin predict` and `twin plan` give it.
    physics_us
        From the datasheet alone, nothing learnt.
    ranking
        What would narrow the interval; None when no micro-benchmark informs it.
    """

    prediction: Prediction
    shipped: Prediction
    physics_us: float
    makeup: Makeup
    behind: tuple[Behind, ...]
    ranking: Ranking | None

    @property
    def is_of_all(self) -> bool:
        """Whether its prices are the shipped ones, which every published row is behind."""
        return (self.shipped.certainty is not None
                and self.shipped.certainty.time_us == self.certainty.time_us)

    @property
    def difference(self) -> str:
        """Why shipped prices say something else, in words."""
        if self.shipped.certainty is None:
            return "stated prices: none are shipped for this runtime"
        if self.is_of_all:
            return "the same: every published row is behind both"
        boards = len({one.board for one in self.behind})
        return (f"{self.shipped.certainty.calibration}: every published row is behind it; above, "
                f"{sum(one.rows for one in self.behind)} rows of {boards} "
                f"board{'' if boards == 1 else 's'}, and how far apart boards lie by all rows")

    @property
    def certainty(self) -> Certainty:
        """Of the prediction."""
        assert self.prediction.certainty is not None
        return self.prediction.certainty
