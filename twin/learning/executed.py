"""How sure the bill of a program is: its instructions are counted, its prices are stated.

    sd(log T)^2 = (core's share x CORE_SD)^2 + (memories' share x that of their prices)^2

What ran is exact for the data it ran with; what is left is how well a core's table and the waits of
a board's memories are known. No measurement of the program stands behind it.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from calibration.fitting.intervals import LAYER_SD, LEVEL, Band, Interval, bound
from hwmodels.counts import Bill
from twin.learning.repricing import waits_on_memory
from twin.prediction.certainty import Certainty, Draw, LayerCertainty
from twin.prediction.prediction import Prediction

CORE_SD, WAITING_SD, POWER_SD = 0.1, 0.4, 0.3
"""Of the logarithm of a core's own cycles, by its table, where instructions are known; of what
memories make wait and of stated powers, as overlays take them before any data; assumed."""


def assure_program(prediction: Prediction) -> Certainty:
    """Return the intervals of a program's prediction.

    Parameters
    ----------
    prediction : Prediction
        Of a program, at stated prices.

    Returns
    -------
    Certainty
        Of the whole and of its layers; what two builds of a program have in common they share.
    """
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    band = Band(down=reach, up=reach, level=LEVEL, basis="model-based", count=1)
    shares = _split(prediction.bill)
    variances = np.array([CORE_SD, WAITING_SD])**2
    sds = [math.sqrt(float(_split(layer.bill)**2 @ variances) + LAYER_SD["open"]**2)
           for layer in prediction.layers]
    sd = math.sqrt(float(shares**2 @ variances))
    return Certainty(
        calibration="instructions as they ran, at stated prices",
        time_us=bound(prediction.time_us, sd, band),
        energy_uj=_bound_energy(prediction.energy_uj, sd, band), basis=band.basis,
        errors=band.count, layers=tuple(LayerCertainty(
            time_us=bound(layer.time_us, one, band),
            energy_uj=_bound_energy(layer.energy_uj, one, band))
            for layer, one in zip(prediction.layers, sds, strict=True)),
        extrapolating=(), unidentified=(),
        draw=Draw(source=("program", prediction.deployment.board.name),
                  covariance=np.diag(variances), time=shares, row_sd=0.0, network_sd=0.0,
                  network=prediction.deployment.graph.architecture_id))


def _split(bill: Bill) -> np.ndarray:
    """Return the shares of time of the core and of waiting for memories, shape (2,)."""
    waiting = math.fsum(line.cycles for line in bill.lines if waits_on_memory(line.event))
    total = math.fsum(line.cycles for line in bill.lines) or 1.0
    return np.array([1 - waiting / total, waiting / total])


def _bound_energy(energy_uj: float | None, sd: float, band: Band) -> Interval | None:
    if not energy_uj:
        return None
    return bound(energy_uj, math.hypot(sd, POWER_SD), band)
