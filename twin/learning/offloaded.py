"""Learnt factors on an accelerator and its host: many at once, of one structure and timing.

With t and p the factors on prices of time and power, c the cycles of a layer by clock and price,
and E its energies, both at stated prices,

    cycles = t c      energy = sum over k, j of t_k E_kj p_j + what being powered costs meanwhile

What being powered costs follows from the time that passes on each clock, as in
`twin.prediction.accelerator`: the host waits, its clock tree runs, it leaks, the accelerator idles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.counts import CAUSES, EVENTS, Prices
from hwmodels.paths.exposure import expose_once
from hwmodels.paths.timing import Floats, read_timing
from twin.deployment.accelerator.plan import plan_of
from twin.deployment.core import lower_network
from twin.deployment.deployment import Deployment
from twin.learning.batch import Batch
from twin.learning.repricing import power_of, waits_on_memory
from twin.learning.rows import ROWS
from twin.learning.tally import ENERGY_PRICES, TIME_PRICES, price_of_family
from twin.prediction.accelerator.columns import POWERED, pass_time
from twin.prediction.accelerator.offload import list_host_groups, pick_layers
from twin.prediction.host import runtime_prices
from twin.prediction.prediction import Prediction
from twin.prediction.rates import CORE_EVENTS, list_lines, rate_lines
from twin.prediction.structure import find_structure

_CALL, _MEMORY = TIME_PRICES.index("call"), TIME_PRICES.index("memory")
_CAUSE = {event: CAUSES.index(described.cause) for event, described in EVENTS.items()}
_POWER = {event: ENERGY_PRICES.index(power_of(event)) for event in EVENTS}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offloaded:
    """What one inference costs by price, at stated prices and one timing.

    Parameters
    ----------
    board : Board
        Whose clocks pass.
    clocks : tuple of str
        The accelerator's, the host's, then any others.
    cycles : ndarray of float, (clocks, time prices, layers)
        Of each layer.
    cause_cycles : ndarray of float, (clocks, time prices, causes)
        Of the whole.
    energy_pj : ndarray of float, (time prices, energy prices, layers)
        Of work; NaN is not known.
    cause_pj : ndarray of float, (time prices, energy prices, causes)
        Of the whole; NaN is not known.
    powered_pj : ndarray of float, (powered events,)
        Of one of what is paid for while time passes; NaN is not known.
    """

    board: Board
    clocks: tuple[str, ...]
    cycles: Floats
    cause_cycles: Floats
    energy_pj: Floats
    cause_pj: Floats
    powered_pj: Floats


class _Sums:
    """Costs added up by price."""

    def __init__(self, layers: int, clocks: int) -> None:
        prices, powers = len(TIME_PRICES), len(ENERGY_PRICES)
        self.cycles = np.zeros((clocks, prices, layers))
        self.cause_cycles = np.zeros((clocks, prices, len(CAUSES)))
        self.energy_pj = np.zeros((prices, powers, layers))
        self.cause_pj = np.zeros((prices, powers, len(CAUSES)))

    def add(self, event: str, price: int, clock: int, layer: int, cycles: float,
            pj: float | None) -> None:
        """Add what one event costs a layer."""
        cause, power, known = _CAUSE[event], _POWER[event], math.nan if pj is None else pj
        self.cycles[clock, price, layer] += cycles
        self.cause_cycles[clock, price, cause] += cycles
        self.energy_pj[price, power, layer] += known
        self.cause_pj[price, power, cause] += known


def itemise_offloaded(prediction: Prediction) -> Offloaded:
    """Return the costs of a prediction of an accelerator by price.

    Parameters
    ----------
    prediction : Prediction
        At stated prices, of a runtime that offloads.
    """
    deployment = prediction.deployment
    board, prices = deployment.board, runtime_prices(deployment)
    assert board.npu is not None, "a deployment that offloads has an accelerator"
    clocks = tuple(dict.fromkeys((board.npu.clock, board.core.clock, *prediction.bill.clocks())))
    sums = _Sums(len(prediction.layers), len(clocks))
    for number, layer in enumerate(prediction.layers):
        for line in layer.bill.lines:
            if line.event not in POWERED and line.event not in CORE_EVENTS:
                price = _MEMORY if waits_on_memory(line.event) else _CALL
                sums.add(line.event, price, clocks.index(line.clock), number, line.cycles,
                         line.energy_pj)
    _add_kernels(sums, deployment, prices, clocks.index(board.core.clock))
    stated = [prices.price(event, "").pj for event in POWERED]
    return Offloaded(
        board=board, clocks=clocks, cycles=sums.cycles, cause_cycles=sums.cause_cycles,
        energy_pj=sums.energy_pj, cause_pj=sums.cause_pj,
        powered_pj=np.array([math.nan if pj is None else pj for pj in stated]))


def _add_kernels(sums: _Sums, deployment: Deployment, prices: Prices, clock: int) -> None:
    """Add what the host's kernels execute, by the family of each."""
    lower = cache(partial(lower_network, deployment))
    for group in list_host_groups(plan_of(deployment).steps):
        structure = find_structure(deployment, partial(pick_layers, lower, group), cold=True,
                                   part=tuple(group))
        lines = list_lines(structure)
        occurred, exposed = expose_once(structure.sheet, read_timing(
            deployment.board, structure.sheet.places))
        rates = rate_lines(structure, prices, deployment.runtime.efficiency)
        for number, layer, many, shown, cycles, pj in zip(
                lines.number.tolist(), lines.layers.tolist(), occurred.tolist(), exposed.tolist(),
                rates[0].tolist(), rates[1].tolist(), strict=True):
            event, _, family = lines.keys[number]
            if event in CORE_EVENTS and (many or shown):
                sums.add(event, TIME_PRICES.index(price_of_family(family)), clock, group[layer],
                         shown * cycles, many * pj)


def fill_offloaded(batch: Batch, rows: np.ndarray, item: Offloaded, *, time: Floats,
                   power: Floats) -> None:
    """Work out rows of a batch that share structure and timing on an accelerator.

    Parameters
    ----------
    batch : Batch
        Whose arrays are written.
    rows : ndarray of int, (n,)
        Which of them.
    item : Offloaded
        Costs at stated prices.
    time, power : ndarray of float, (n, prices)
        Factors on stated prices.
    """
    for begin in range(0, len(rows), ROWS):
        piece = slice(begin, begin + ROWS)
        _fill(batch, rows[piece], item, time[piece], power[piece])


def _fill(batch: Batch, at: np.ndarray, item: Offloaded, time: Floats, power: Floats) -> None:
    layers, causes = item.cycles.shape[2], len(CAUSES)
    us = np.array([1e6 / item.board.clock(clock).frequency_hz for clock in item.clocks])
    passed = time @ item.cycles  # clocks, rows, layers
    by_cause = time @ item.cause_cycles
    whole = passed.sum(axis=2)
    times_us = whole * us[:, None]
    batch.time_us[at] = times_us.sum(axis=0)
    main, which = _main_clock(item, times_us), np.arange(len(at))
    batch.cycles[at] = whole[main, which]
    batch.cause_cycles[at] = by_cause[main, which]
    batch.cause_us[at] = (by_cause * us[:, None, None]).sum(axis=0)
    factors = (time[:, :, None] * power[:, None, :]).reshape(len(at), -1)
    energy = factors @ item.energy_pj.reshape(-1, layers)
    cause_pj = factors @ item.cause_pj.reshape(-1, causes)
    amounts = pass_time(passed.reshape(len(item.clocks), -1).T, item.clocks, item.board)
    for number, event in enumerate(POWERED):
        own = amounts[:, number].reshape(len(at), layers)
        scale = power[:, _POWER[event]] * (time[:, _MEMORY] if waits_on_memory(event) else 1.0)
        spent = np.where(own != 0, own * item.powered_pj[number], 0.0) * scale[:, None]
        energy += spent
        cause_pj[:, _CAUSE[event]] += spent.sum(axis=1)
    batch.energy_uj[at], batch.cause_pj[at] = energy.sum(axis=1) * 1e-6, cause_pj
    if batch.layers is not None:
        batch.layers.time_us[at, :layers] = (passed * us[:, None, None]).sum(axis=0)
        batch.layers.energy_uj[at, :layers] = energy * 1e-6


def _main_clock(item: Offloaded, times_us: Floats) -> np.ndarray:
    """Return the clock most time of each row passes in; the core's where none is longer."""
    core = item.clocks.index(item.board.core.clock)
    longest = np.argmax(times_us, axis=0)
    best = np.take_along_axis(times_us, longest[None], axis=0)[0]
    return np.where(best > times_us[core], longest, core)
