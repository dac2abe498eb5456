"""How sure a prediction of an accelerator is: by where its time passes, and what was learnt there.

    var(log T) = network^2 + sum over parts of (share x sd)^2 + sum over epochs of (share x epoch)^2

An epoch alone is surer of its cycles than of being an epoch at all: `schedule` stands for the
compiler cutting the network otherwise. Deviations are the runtime's (`offload.spread`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from calibration.fitting.intervals import LEVEL, Band, Interval, bound
from hwmodels.board.facts import Board
from hwmodels.counts import Bill, BillLine
from hwmodels.npu import Epoch, Npu
from twin.deployment.costs import HAND_OVER_EVENTS, EpochPrediction, Step, bill_us
from twin.network.graph import Graph
from twin.pricing.accelerator.energy import DEVIATIONS, energy_sd
from twin.pricing.certainty import Certainty, Draw, LayerCertainty
from twin.pricing.prediction import Prediction
from twin.runtimes.offload import Spread

PARTS = ("hardware", "hand_over", "moved", "host", "strange", "outside", "unseen")
"""Where time passes; `hardware` is epochs as they were profiled, and has no deviation in common."""

_REASONS = {
    "outside": "{:.0%} of the time waits for memory outside the chip that no profiled epoch used",
    "unseen": "{:.0%} of the time is in units or widths no profiled epoch used",
    "strange": "{:.0%} of the time is operators on the host that no row of this compiler has",
    "host": "{:.0%} of the time is operators on the host, whose kernels are another library's",
}
"""What makes a prediction an extrapolation, from `NOTABLE` of the time on."""

NOTABLE = 0.25


def assure_offloaded(prediction: Prediction) -> Certainty:
    """Return the intervals of a prediction of an accelerator.

    Parameters
    ----------
    prediction : Prediction
        Of a runtime that offloads.

    Returns
    -------
    Certainty
        Of the inference, its layers and its epochs. A layer's deviation is that of its epochs;
        energy adds the deviations of its prices to that of time.
    """
    deployment, board = prediction.deployment, prediction.deployment.board
    offload = deployment.runtime.offload
    assert offload is not None, "asked of a runtime that offloads"
    spread = offload.spread
    band = Band(down=spread.reach, up=spread.reach, level=LEVEL, basis="model-based",
                count=spread.families)
    graph = deployment.executed
    parts = [split_time(epoch, board, spread, knows_host(epoch.step, graph, spread))
             for epoch in prediction.epochs]
    total_us = prediction.time_us or 1.0
    shares = {name: math.fsum(part[name] for part in parts) / total_us for name in PARTS}
    own = math.hypot(*(part["hardware"] / total_us * spread.epoch for part in parts), 0.0)
    sd = math.hypot(spread.network, own,
                    *(shares[name] * spread.sd(name) for name in PARTS))
    alone = [epoch_sd(part, spread) for part in parts]
    energy = _bound_energy(prediction.energy_uj, prediction.bill, sd, board, band)
    return Certainty(
        calibration=f"spread of {offload.family} networks and profiled epochs, "
                    f"{spread.families} families",
        time_us=bound(prediction.time_us, sd, band), energy_uj=energy, basis=band.basis,
        errors=band.count,
        layers=tuple(_bound_layers(prediction, alone, band)),
        epochs=tuple(bound(epoch.time_us, one, band)
                     for epoch, one in zip(prediction.epochs, alone, strict=True)),
        extrapolating=tuple(reason.format(shares[name]) for name, reason in _REASONS.items()
                            if shares[name] >= NOTABLE),
        unidentified=(),
        draw=Draw(source=("accelerator", board.name, deployment.runtime.identity),
                  covariance=np.diag([spread.sd(name) ** 2 for name in PARTS]),
                  time=np.array([shares[name] for name in PARTS]), row_sd=own,
                  network_sd=spread.network, network=deployment.graph.architecture_id))


def knows_host(step: Step, graph: Graph, spread: Spread) -> bool:
    """Whether rows have the operators of a step on the host."""
    return all(graph.layers[i].op in spread.host_known for i in step.layers)


def split_time(epoch: EpochPrediction, board: Board, spread: Spread,
               known: bool = True) -> Mapping[str, float]:
    """Return the microseconds of an epoch by part.

    Parameters
    ----------
    epoch : EpochPrediction
        Of an inference.
    board : Board
        Whose clocks its bill counts.
    spread : Spread
        Which units were profiled, by role.
    known : bool
        Whether rows have its operators on the host.
    """
    lines: dict[str, list[BillLine]] = {name: [] for name in PARTS}
    npu = board.npu
    assert npu is not None, "a deployment that offloads has an accelerator"
    seen = was_profiled(epoch.run.epoch, npu, spread)
    for line in epoch.bill.lines:
        if line.cycles:
            lines[name_part(line.event, line.place, line.clock, npu, seen=seen,
                            known=known)].append(line)
    return {name: bill_us(Bill(tuple(own)), board) for name, own in lines.items()}


def epoch_sd(part: Mapping[str, float], spread: Spread) -> float:
    """Return the deviation of the logarithm of one epoch's time, from its time by part."""
    whole = math.fsum(part.values())
    if not whole:
        return 0.0
    return math.hypot(spread.schedule, part["hardware"] / whole * spread.epoch,
                      *(part[name] / whole * spread.sd(name) for name in PARTS))


def was_profiled(epoch: Epoch, npu: Npu, spread: Spread) -> bool:
    """Whether profiled epochs had the units of an epoch, at its widths."""
    return all(set(npu.roles(unit.kind)) <= set(spread.profiled) and unit.mac_bits == (8, 8)
               for unit in epoch.units)


def name_part(event: str, place: str, clock: str, npu: Npu, *, seen: bool, known: bool) -> str:
    """Return which of `PARTS` the time of a line is.

    Parameters
    ----------
    event, place, clock : str
        Of the line.
    npu : Npu
        The machine.
    seen : bool
        Whether profiled epochs had the units of its epoch.
    known : bool
        Whether rows have the operators of its epoch on the host.
    """
    if clock != npu.clock:
        if event not in HAND_OVER_EVENTS:
            return "host" if known else "strange"
        return "moved" if place == "stepping" else "hand_over"
    pool = place.removeprefix("latency:")
    if event == "npu_external_wait" and any(one.name == pool and one.shared for one in npu.pools):
        return "outside"
    return "hardware" if seen else "unseen"


def _bound_layers(prediction: Prediction, alone: Sequence[float],
                  band: Band) -> Iterator[LayerCertainty]:
    """Yield intervals of layers: a layer in several epochs is as unsure as the least sure."""
    board = prediction.deployment.board
    by_name = {epoch.name: sd for epoch, sd in zip(prediction.epochs, alone, strict=True)}
    for layer in prediction.layers:
        sd = max((by_name[name] for name in layer.epochs), default=0.0)
        yield LayerCertainty(
            time_us=bound(layer.time_us, sd, band),
            energy_uj=_bound_energy(layer.energy_uj, layer.bill, sd, board, band))


def _bound_energy(energy_uj: float | None, bill: Bill, time_sd: float, board: Board,
                  band: Band) -> Interval | None:
    """Bounds of an energy: time by its band, prices by the normal deviates of the board file's."""
    if not energy_uj:
        return None
    prices = DEVIATIONS * energy_sd(bill.lines, board)
    return Interval(low=energy_uj * math.exp(-math.hypot(band.down * time_sd, prices)),
                    high=energy_uj * math.exp(math.hypot(band.up * time_sd, prices)),
                    level=band.level)
