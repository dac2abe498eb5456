"""How sure a prediction is: intervals, and what stands behind them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from calibration.fitting.intervals import Basis, Interval
from hwmodels.frozen import frozen

if TYPE_CHECKING:
    from twin.pricing.draw import Draw


@frozen
class LayerCertainty:
    """Intervals of one layer, in microseconds and microjoules; None is not known."""

    time_us: Interval | None
    energy_uj: Interval | None


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
