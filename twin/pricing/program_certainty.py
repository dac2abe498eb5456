"""Intervals of machine code: a program's, our image's, a library's that was learnt from programs.

    sd(log T) = sqrt((core's share x CORE_SD)^2 + (memories' share x WAITING_SD)^2) + sum w u

Instructions are counted and prices stated. What ran is exact for the data it ran with; what is left
is how well a core's table and the waits of a board's memories are known. No measurement of the
program stands behind it. Of a network on a library learnt from programs, u is what each layer, of
share w, leaves open besides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from calibration.fitting.cell import list_measured
from calibration.fitting.intervals import (
    BORROWED_SD,
    CORE_SD,
    DRIFT_SD,
    LAYER_SD,
    WAITING_SD,
    Band,
    Interval,
    bound,
    concentrate,
)
from hwmodels.counts import Bill
from twin.deployment.deployment import Deployment
from twin.deployment.placement import layer_dtype
from twin.network.graph import GraphLayer
from twin.pricing.assurance import bound_terms
from twin.pricing.calibration import Calibration
from twin.pricing.certainty import Certainty, LayerCertainty
from twin.pricing.counted_prices import core_band
from twin.pricing.draw import Draw
from twin.pricing.extrapolation import between_sd
from twin.pricing.locality import replacement_range
from twin.pricing.prediction import Prediction
from twin.pricing.price_names import power_terms, waits_on_memory
from twin.runtimes.counted.shapes import measure_shape

POWER_SD = 0.3
"""Of the logarithm of stated powers, as overlays take them before any data; assumed."""

GUESSED_SD = 0.1
"""Of a layer whose kernel was seen in one shape only, another: what its loops turn over is guessed;
assumed."""


STANDING_IN_SD = 0.3
"""Of a layer whose kernel was seen with other kernel sizes, strides or multipliers only: TinyMaix's
1x1 convolutions by its 5x5 ones are off by 0.26, root mean square."""


def assure_program(prediction: Prediction, powers: Calibration | None,
                   times: Mapping[str, float] | None) -> Certainty:
    """Return the intervals of a prediction of machine code: a program's, our image's, a library's.

    Parameters
    ----------
    prediction
        Of a program, at stated prices of time.
    powers
        What its powers were learnt from; by default they are stated.
    times
        Factors of its times, of networks on its kernels; by default times are stated.

    Returns
    -------
    Certainty
        Of the whole and of its layers; what two builds of a program have in common they share.

    Notes
    -----
    What a learnt kernel leaves open: the residual of its instructions, `GUESSED_SD` where one shape
    was seen, `STANDING_IN_SD` where its kernel stands in for another, and `DRIFT_SD` for each
    factor e a layer's sizes lie beyond those seen; of a layer nobody saw, `BORROWED_SD`.
    """
    deployed = prediction.deployment
    learnt, core = deployed.runtime.learnt is not None, deployed.board.core.model
    left = tell_left(prediction) if learnt else np.zeros(len(prediction.layers))
    weights = np.array([layer.time_us for layer in prediction.layers]) / (prediction.time_us or 1)
    band = core_band()
    shares = _split(prediction.bill)
    variances = np.array([CORE_SD, WAITING_SD])**2
    splits = [_split(layer.bill) for layer in prediction.layers]
    sds = [math.sqrt(float(split**2 @ variances) + (split.sum() * LAYER_SD["open"])**2) + more
           for split, more in zip(splits, left.tolist(), strict=True)]
    missing = float(weights @ left)
    sd = math.sqrt(float(shares**2 @ variances)) + missing
    energies = ([_bound_energy(whole, one, band) for whole, one in zip(
        [prediction.energy_uj, *(layer.energy_uj for layer in prediction.layers)], [sd, *sds],
        strict=True)] if powers is None else
        _bound_powers(prediction, powers, np.array([sd, *sds]), band))
    return Certainty(
        calibration="instructions as "
        + _name_reading(prediction) + (
            f", at prices of networks on {deployed.target.name_kernels(deployed)}" if times
            else ", at stated prices")
        + (f"; power as of networks measured on {powers.powers_of}"
           if powers and prediction.energy_uj else ""),
        time_us=_span(bound(prediction.time_us, sd, band), deployed),
        energy_uj=energies[0], basis=band.basis,
        errors=band.count, layers=tuple(LayerCertainty(
            time_us=bound(layer.time_us, one, band), energy_uj=energy)
            for layer, one, energy in zip(prediction.layers, sds, energies[1:], strict=True)),
        extrapolating=() if core in {row.core for row in list_measured()} else (
            f"no measurement of any {core} is learnt from",), unidentified=(),
        draw=Draw(source=("program", prediction.board.name),
                  reach=np.sqrt(variances) * shares, time=shares, row_sd=0.0, network_sd=0.0,
                  unlearned_sd=missing, network=prediction.graph.architecture_id))


def _span(interval: Interval, deployment: Deployment) -> Interval:
    """Return the interval of an image over all replacement policies its caches may have."""
    if not deployment.runtime.is_compiled:
        return interval
    policies = replacement_range(deployment)
    return interval.scale(policies.low, policies.high)


def _bound_powers(prediction: Prediction, powers: Calibration, sds: np.ndarray,
                  band: Band) -> list[Interval | None]:
    """Return intervals of the whole energy and of layers' at learnt powers."""
    terms = np.array([power_terms(bill) for bill in (
        prediction.bill, *(layer.bill for layer in prediction.layers))])
    times_us = np.array([layer.time_us for layer in prediction.layers])
    return bound_terms(powers, terms, sds, band, concentrate(times_us), band, least=between_sd(
        prediction.graph.architecture_id, powers.entry, time=False))


def _name_reading(prediction: Prediction) -> str:
    """Say where instructions are from: "instructions as ..."."""
    deployment = prediction.deployment
    if deployment.runtime.learnt is not None:
        return "programs of the library run them"
    return "they ran" if deployment.target.executes else "its image has them"


def tell_left(prediction: Prediction) -> np.ndarray:
    """Return how far learnt kernels leave each layer's cost open, shape (layers,)."""
    deployment, found = prediction.deployment, []
    graph, learnt = deployment.executed, deployment.runtime.learnt
    assert learnt is not None
    for layer, made in zip(graph.layers, prediction.layers, strict=True):
        kernel, stands_in = learnt.choose(GraphLayer(graph, layer), layer_dtype(graph, layer))
        if made.alias or kernel is None or learnt.isa != deployment.board.core.isa:
            found.append(0.0 if made.alias else BORROWED_SD)
            continue
        distance = kernel.distance(measure_shape(GraphLayer(graph, layer)))
        guessed = (STANDING_IN_SD if stands_in else
                   GUESSED_SD if kernel.distinct == 1 and distance else 0.0)
        found.append(math.hypot(kernel.residual, guessed) + DRIFT_SD * distance)
    return np.array(found)


def _split(bill: Bill) -> np.ndarray:
    """Return the shares of time of the core and of waiting for memories, shape (2,).

    What is left is sleep, which a clock ends.
    """
    waiting = math.fsum(line.cycles for line in bill.lines if waits_on_memory(line.event))
    asleep = math.fsum(line.cycles for line in bill.lines if line.event == "sleep")
    total = math.fsum(line.cycles for line in bill.lines) or 1.0
    return np.array([total - waiting - asleep, waiting]) / total


def _bound_energy(energy_uj: float | None, sd: float, band: Band) -> Interval | None:
    if not energy_uj:
        return None
    return bound(energy_uj, math.hypot(sd, POWER_SD), band)
