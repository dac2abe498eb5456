"""The shape of what was learnt: overlays in short."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from typing_extensions import TypedDict

from hwmodels.files import JsonObject
from twin.documents import Amount, Count, Document, Of, Positive, fill

if TYPE_CHECKING:
    from calibration.fitting.overlay import Learnt as Fitted
    from calibration.fitting.overlay import Overlay


def list_learnt(overlay: Overlay) -> list[JsonObject]:
    """Return an overlay's entries that rest on rows; what no row informs is in its file only."""
    return [fill(Learnt, one, factors=[*_factors(overlay.time_prices, one.time, "time"), *(
        _factors(overlay.energy_prices, one.energy, "energy")
        if one.energy is not None and one.energy.rows and not one.powers_of else ())])
        for one in overlay.entries if one.time.rows or one.time.residuals]


def _factors(names: tuple[str, ...], learnt: Fitted, what: str) -> list[JsonObject]:
    doubts, variances = learnt.doubtful(names), learnt.matrix().diagonal()
    return [{"price": name, "of": what, "factor": math.exp(log),
             "log_sd": math.sqrt(max(float(variance), 0.0)), "stated_log_sd": stated,
             "doubt": doubts.get(name)}
            for name, log, variance, stated in zip(names, learnt.log, variances, learnt.prior_sd,
                                                   strict=True)]


class Factor(TypedDict):
    """A learnt factor on a price; `doubt` says why it is no finding, null: it is one."""

    price: str
    of: Literal["time", "energy"]
    factor: Positive
    log_sd: Amount
    stated_log_sd: Amount
    doubt: str | None


class Learnt(TypedDict):
    """Prices of one board under one library; null stands for boards not measured."""

    board: str | None
    core: str | None
    runtime: str
    rows: Annotated[Count, Of("time.rows")]
    network_sd: Annotated[Amount, Of("time.network_sd")]
    row_sd: Annotated[Amount, Of("time.row_sd")]
    factors: list[Factor]
    log_residuals: Annotated[dict[str, float], Of("time.residuals")]


class Learning(TypedDict):
    """An overlay in short."""

    library: str
    data: Annotated[list[str], Of("data.kinds")]
    rows: Annotated[Count, Of("data.rows")]
    energy_rows: Annotated[Count, Of("data.energy_rows")]
    entries: Annotated[list[Learnt], Of(lambda overlay: list_learnt(overlay))]


class Calibration(Learning, Document):
    """Of `twin calibrate`."""

    kind: Literal["calibration"]


class Calibrations(Document):
    """Of `twin calibrate published`."""

    kind: Literal["calibrations"]
    calibrations: list[Learning]
