"""How sure a prediction of an accelerator is: by where its time passes, and what was learnt there.

    var(log T) = network^2 + sum over parts of (share x sd)^2 + sum over tasks of (share x task)^2

A task alone is surer of its cycles than of being a task at all: `schedule` stands for the
compiler cutting the network otherwise. Deviations are the runtime's (`offload.spread`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibration.fitting.intervals import LEVEL, Band, Interval, bound, find_ends
from hwmodels.board.facts import Board
from hwmodels.columns import Floats, Ints
from hwmodels.counts import Bill, BillLine
from hwmodels.quantities import list_first
from hwmodels.schedule import Npu, Task
from twin.deployment.costs import HAND_OVER_EVENTS, TaskPrediction, bill_us
from twin.deployment.deployment import Deployment
from twin.network.graph import Graph
from twin.pricing.accelerator.energy import NORMAL, sum_energy
from twin.pricing.certainty import Certainty, LayerCertainty
from twin.pricing.draw import Draw
from twin.pricing.extrapolation import Reason, name_changes
from twin.pricing.prediction import Prediction
from twin.runtimes.compiler import Spread
from twin.runtimes.partition import Step

PARTS = ("hardware", "hand_over", "moved", "host", "strange", "outside", "unseen")
"""Where time passes; `hardware` is tasks as they were profiled, and has no deviation in common."""

_REASONS = {
    "outside": "{:.0%} of the time waits for flash or memory outside the chip",
    "unseen": "{:.0%} of the time is in units, widths, a size or on a board no profiled task used",
    "strange": "{:.0%} of the time is operators on the host that no row of this compiler has",
    "host": "{:.0%} of the time is operators on the host, whose kernels are another library's",
}
"""What makes a prediction an extrapolation, from `NOTABLE` of the time on."""

NOTABLE = 0.25


def assure_tasks(prediction: Prediction) -> Certainty:
    """Return the intervals of a prediction of an accelerator.

    Parameters
    ----------
    prediction
        On an accelerator.

    Returns
    -------
    Certainty
        Of the inference, its layers and its tasks. A layer's deviation is that of its tasks;
        energy adds the deviations of its prices to that of time.
    """
    deployment, board = prediction.deployment, prediction.board
    mapping = deployment.runtime.mapping
    spread, tasks = mapping.spread, prediction.tasks
    parts = np.array([split_time(task, board, spread, knows_host(
        task.step, deployment.executed, spread)) for task in tasks]).reshape(1, -1)
    task, part = np.divmod(np.arange(parts.shape[1]), len(PARTS))
    shares, own = share_parts(parts, part, np.array([prediction.time_us]), spread)
    alone = deviate_tasks(parts, task, part, len(tasks), spread)[0]
    by_name = dict(zip([one.name for one in tasks], alone.tolist(), strict=True))
    sds = [max((by_name[name] for name in layer.tasks), default=0.0) for layer in prediction.layers]
    energies = np.array([sum_energy(bill, board) for bill in (
        prediction.bill, *(layer.bill for layer in prediction.layers))]).T
    draw, = list_draws(deployment, shares, own)
    return make_certainty(
        prediction, [*deviate(shares, own, spread).tolist(), *sds, *alone.tolist()], energies,
        band_of(spread),
        calibration=f"spread of {mapping.family} networks and profiled tasks, "
                    f"{spread.families} families" if spread.families else
                    f"assumed spread: no time of {mapping.family} networks was learnt from",
        extrapolating=tuple(text for holds, text in find_reasons(deployment, shares)
                            if np.all(holds)),
        measured=board.measured_name in spread.measured, draw=draw)


def share_parts(parts: Floats, part: Ints, time_us: Floats, spread: Spread,
                ) -> tuple[Floats, Floats]:
    """Return shares of total times by part, and how unsure what tasks have of their own makes them.

    Parameters
    ----------
    parts : ndarray of float, (rows, pairs)
        Microseconds of each part of each task.
    part : ndarray of int, (pairs,)
        Of `PARTS`.
    time_us : ndarray of float, (rows,)
        The totals.

    Returns
    -------
    tuple of ndarray of float, (rows, parts) and (rows,)
    """
    shares = parts / _or_one(time_us)[:, None]
    return (np.stack([shares[:, part == one].sum(axis=1) for one in range(len(PARTS))], axis=1),
            np.linalg.norm(shares[:, part == PARTS.index("hardware")], axis=1) * spread.task)


def list_draws(deployment: Deployment, shares: Floats, own: Floats) -> list[Draw]:
    """Return what totals are uncertain by, of each row of `share_parts`."""
    spread = deployment.runtime.mapping.spread
    sds = np.array([spread.sd(name) for name in PARTS])
    return [Draw(source=("accelerator", deployment.board.name, deployment.runtime.identity),
                 reach=sds * row, time=row, row_sd=row_sd, network_sd=spread.network,
                 network=deployment.graph.architecture_id)
            for row, row_sd in zip(shares, own.tolist(), strict=True)]


def find_reasons(deployment: Deployment, shares: Floats) -> list[Reason]:
    """Return why nothing measured supports predictions, of rows of `share_parts`."""
    spread, name = deployment.runtime.mapping.spread, deployment.board.measured_name
    changed = name_changes(deployment, name) if name in spread.measured else ()
    by_part = dict(zip(PARTS, shares.T, strict=True))
    return [(bool(changed), f"{list_first(changed, 2)} where it was measured"),
            *((by_part[one] >= NOTABLE, text.format(by_part[one][0]))
              for one, text in _REASONS.items())]


def doubt_release(prediction: Prediction) -> Prediction:
    """Return a prediction that stands for another release of its library, as unsure as these are.

    Only the inference's time and energy; layers and tasks keep their intervals.
    """
    found, offload = prediction.certainty, prediction.runtime.offload
    if found is None or offload is None:
        return prediction
    reach = offload.spread.reach * offload.spread.releases

    def widen(value: float, known: Interval) -> Interval:
        down, up = (math.hypot(math.log(value / known.low), reach),
                    math.hypot(math.log(known.high / value), reach))
        return Interval(low=value * math.exp(-down), high=value * math.exp(up), level=known.level)

    return replace(prediction, certainty=replace(
        found, time_us=widen(prediction.time_us, found.time_us),
        energy_uj=None if found.energy_uj is None or prediction.energy_uj is None
        else widen(prediction.energy_uj, found.energy_uj)))


def make_certainty(prediction: Prediction, sds: Sequence[float], energies: Floats, band: Band,
                   **rest: Any) -> Certainty:
    """Return intervals of an inference, its layers and its tasks.

    Parameters
    ----------
    sds
        Of the logarithms of their times, in this order.
    energies : ndarray of float, (2, 1 + layers)
        Picojoules, and by how much their prices make each unsure.
    **rest
        Further fields of the result.
    """
    layers, count = prediction.layers, len(prediction.layers)
    times_us = [prediction.time_us, *(one.time_us for one in layers),
                *(one.time_us for one in prediction.tasks)]
    whole, *bounds = [bound(us, sd, band) for us, sd in zip(times_us, sds, strict=True)]
    drawn, *each = [make_interval(*ends) for ends in zip(*bound_energies(
        energies[0], energies[1], np.array(sds[:count + 1]), band), strict=True)]
    return Certainty(
        time_us=whole, energy_uj=drawn, basis=band.basis, errors=band.count, unidentified=(),
        layers=tuple([LayerCertainty(time_us=us, energy_uj=energy) for us, energy in zip(
            bounds[:count], each, strict=True)]), tasks=tuple(bounds[count:]), **rest)


def deviate(shares: Floats, own: Floats, spread: Spread) -> Floats:
    """Return how sure total times are, shape (rows,), of rows of `share_parts`."""
    sds = np.array([spread.sd(name) for name in PARTS])
    found: Floats = np.sqrt(own**2 + spread.network**2 + ((shares * sds)**2).sum(axis=1))
    return found


def deviate_tasks(parts: Floats, task: Ints, part: Ints, count: int, spread: Spread) -> Floats:
    """Return how sure the times of tasks are, shape (rows, count); pairs are of tasks."""
    own = np.array([spread.task if name == "hardware" else spread.sd(name) for name in PARTS])
    totals, variance = np.zeros((2, count, len(parts)))
    np.add.at(totals, task, parts.T)
    shares = parts.T / _or_one(totals)[task] * own[part][:, None]
    np.add.at(variance, task, shares ** 2)
    return np.where(totals != 0, np.sqrt(variance + spread.schedule ** 2), 0.0).T


def band_of(spread: Spread) -> Band:
    """Return how many deviations an interval of an accelerator reaches."""
    return Band(down=spread.reach, up=spread.reach, level=LEVEL, basis="model-based",
                count=spread.families)


def bound_energies(energy_pj: Floats, unsure_pj: Floats, sd: Floats,
                   band: Band) -> tuple[Floats, Floats]:
    """Return ends of energies in microjoules, NaN where there is none: times', and prices' besides.

    Parameters
    ----------
    energy_pj, unsure_pj : ndarray of float, (...)
        Energies, and each line of them times the relative deviation of its price, added up.
    sd : ndarray of float, (...)
        Of the logarithms of the times.
    band
        Of the times; prices' are normal.
    """
    energy_pj = np.where(energy_pj != 0, energy_pj, np.nan)
    return find_ends(energy_pj * 1e-6, (sd, band), (
        np.sqrt(np.log1p((unsure_pj / energy_pj) ** 2)), NORMAL))


def _or_one(values: Floats) -> Floats:
    found: Floats = np.where(values != 0, values, 1.0)
    return found


def make_interval(low: float, high: float) -> Interval | None:
    """Return an interval of its ends; None where they are not known."""
    return Interval(low=float(low), high=float(high), level=LEVEL) if low == low else None


def knows_host(step: Step, graph: Graph, spread: Spread) -> bool:
    """Whether rows have the operators of a step on the host."""
    return all(graph.layers[i].op in spread.host_known for i in step.layers)


def split_time(task: TaskPrediction, board: Board, spread: Spread, known: bool) -> list[float]:
    """Return the microseconds of a task by part.

    Parameters
    ----------
    board
        Whose clocks its bill counts.
    spread
        Which units were profiled, by role.
    known
        Whether rows have its operators on the host.
    """
    lines: dict[str, list[BillLine]] = {name: [] for name in PARTS}
    npu = board.accelerator
    seen = was_profiled(task.run.task, npu, spread)
    for line in task.bill.lines:
        if line.cycles:
            lines[name_part(line.event, line.place, line.clock, npu, seen=seen,
                            known=known)].append(line)
    return [bill_us(Bill(tuple(own)), board) for own in lines.values()]


def was_profiled(task: Task, npu: Npu, spread: Spread) -> bool:
    """Whether profiled tasks had the units of a task, its widths, this board and this size."""
    return (not spread.boards or npu.name in spread.boards) and (
        not spread.sizes or npu.config in spread.sizes) and all(
        set(npu.roles(unit.kind)) <= set(spread.profiled) and unit.mac_bits == (8, 8)
               for unit in task.units)


def name_part(event: str, place: str, clock: str, npu: Npu, *, seen: bool, known: bool) -> str:
    """Return which of `PARTS` the time of a line is.

    Parameters
    ----------
    seen
        Whether profiled tasks had the units of its task.
    known
        Whether rows have the operators of its task on the host.
    """
    if clock != npu.clock:
        if event not in HAND_OVER_EVENTS:
            return "host" if known else "strange"
        return "moved" if place == "stepping" else "hand_over"
    pool = place.removeprefix("latency:")
    if event in ("npu_flash_wait", "npu_external_wait") and any(
            one.name == pool and one.shared for one in npu.pools):
        return "outside"
    return "hardware" if seen else "unseen"
