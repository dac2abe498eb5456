"""What a prediction's figures grow by: with each learnt price, and with each layer's width.

Time is linear in prices of time and energy in both kinds, so their derivatives are exact; those
with widths are differences of two predictions, of the network and of a narrower one.
"""

from __future__ import annotations

import math

import numpy as np

from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.rewrites.layer_channels import NAME, format_channels, read_channels
from twin.network.rewrites.rewrite import load_rewrite, rewrite_network
from twin.network.rewrites.width import DIVISOR, Block, list_blocks
from twin.pricing.batched import predict_batch
from twin.pricing.calibration import AUTO, choose_calibration, choose_powers
from twin.pricing.itemised import POWERS, itemise
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES
from twin.pricing.variation import LEARNT

NUDGE = 1e-3
"""By which a price is moved to both sides where a bill is more than counts times prices."""


@frozen
class PriceSlope:
    """What a figure grows by per unit of the factor on a stated price.

    Parameters
    ----------
    name
        As `predict_many` varies it: "learnt.time.memory".
    factor
        Where the derivative is taken.
    time_us, energy_uj
        Per unit of the factor; None is not known.
    """

    name: str
    factor: float
    time_us: float
    energy_uj: float | None


@frozen
class WidthSlope:
    """What a figure grows by per channel of a layer.

    Parameters
    ----------
    layers
        That write these channels together.
    removed
        Channels the narrower network lacks.
    time_us, energy_uj
        Per channel; None is not known.
    ram_bytes, flash_bytes
        Per channel; RAM is of the layer where most is alive, so for others it is 0.
    """

    layers: tuple[int, ...]
    channels: int
    removed: int
    time_us: float
    energy_uj: float | None
    ram_bytes: float
    flash_bytes: float


@frozen
class Derivative:
    """A prediction's figures and their derivatives.

    Parameters
    ----------
    energy_uj
        None is not known.
    ram_bytes, flash_bytes
        Peak RAM; weights and code.
    prices
        Of every learnt price, those of time first.
    widths
        Of every block of channels that can be narrowed, in the order of layers.
    refused : tuple of (int, str)
        Layers whose narrower network cannot be, with the reason.
    is_exact
        Whether those with prices are exact; else differences (accelerators, other masters).
    """

    deployment: Deployment
    time_us: float
    energy_uj: float | None
    ram_bytes: int
    flash_bytes: int
    prices: tuple[PriceSlope, ...]
    widths: tuple[WidthSlope, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()
    is_exact: bool = True

    def price(self, name: str) -> PriceSlope:
        """Return the slope of a price by its name; raises `UsageError` for none."""
        for one in self.prices:
            if one.name == name:
                return one
        raise UsageError(f"{name}: no such price; accepted: "
                         + ", ".join(one.name for one in self.prices))

    def width(self, layer: int) -> WidthSlope:
        """Return the slope of the channels a layer writes; raises `UsageError` for none."""
        for one in self.widths:
            if layer in one.layers:
                return one
        raise UsageError(f"layer {layer}: has no width that was changed; accepted: " + ", ".join(
            str(one.layers[0]) for one in self.widths))


def differentiate(deployment: Deployment, *, widths: bool = True, step: int = DIVISOR,
                  temperature: str = "warm", calibration: str = AUTO) -> Derivative:
    """Return a prediction's figures with their derivatives.

    Parameters
    ----------
    widths
        Whether narrower networks are predicted: one for every block of channels.
    step
        Channels they lack; half of them where a layer has no more than that.
    temperature, calibration
        As for `predict`.

    Notes
    -----
    With C_k the cycles under price k, t and p the factors on prices of time and power, E_kj the
    energy of work and b what being powered costs a cycle: dT/dt_k = C_k / f, dE/dt_k = sum_j
    E_kj p_j + C_k b, dE/dp_j = sum_k t_k E_kj. With widths (F(c) - F(c - step)) / step.
    """
    if step < 1:
        raise UsageError(f"step {step}; accepted: 1 channel or more")
    exact = deployment.is_itemised and not deployment.loads
    figures, prices = (_read_slopes(deployment, temperature, calibration) if exact else
                       _nudge(deployment, temperature, calibration))
    found: list[WidthSlope] = []
    refused: list[tuple[int, str]] = []
    blocks, asked = _list_widths(deployment) if widths else ((), {})
    for block in blocks:
        removed = step if block.channels > step else block.channels // 2
        if not removed:
            continue
        try:
            narrower = deployment.replace({NAME: format_channels(
                {**{layer: count for layer, count in asked.items() if layer not in block.layers},
                 block.layers[0]: block.channels - removed})})
            found.append(_compare(block, removed, figures,
                                  _predict(narrower, temperature, calibration)))
        except TwinError as error:
            refused.append((block.layers[0], str(error)))
    return Derivative(
        deployment=deployment, time_us=figures.time_us, energy_uj=_known(figures.energy_uj),
        ram_bytes=figures.ram_bytes, flash_bytes=figures.flash_bytes, prices=prices,
        widths=tuple(found), refused=tuple(refused), is_exact=exact)


@frozen
class _Figures:
    """What one deployment costs; NaN is not known."""

    time_us: float
    energy_uj: float
    ram_bytes: int
    flash_bytes: int


def _predict(deployment: Deployment, temperature: str, calibration: str) -> _Figures:
    """Return the figures of a deployment, without the work an interval would be."""
    if deployment.is_itemised and not deployment.loads:
        return _read_slopes(deployment, temperature, calibration)[0]
    batch = predict_batch([deployment], temperature=temperature, calibration=calibration)
    return _Figures(time_us=float(batch.time_us[0]), energy_uj=float(batch.energy_uj[0]),
                    ram_bytes=int(batch.ram_bytes[0]), flash_bytes=int(batch.flash_bytes[0]))


def _read_slopes(deployment: Deployment, temperature: str, calibration: str,
                 ) -> tuple[_Figures, tuple[PriceSlope, ...]]:
    """Return figures and exact slopes of a bill that is counts times prices."""
    item = itemise(deployment, cold=temperature == "cold", unsure=False)
    time, power = _list_factors(deployment, calibration)
    board = deployment.board
    hertz = board.core_clock.frequency_hz
    cycles = (item.work + item.rest).sum(axis=0)
    energy_pj = item.energy_pj.sum(axis=0)
    background = np.array([item.clock_tree_pj[0], item.leakage_pj[0] * 1e9 / hertz])  # pJ a cycle
    drawn = background @ power[POWERS:]
    by_time = 1e-6 * (energy_pj @ power[:POWERS] + cycles * drawn)
    by_power = 1e-6 * np.concatenate([time @ energy_pj, time @ cycles * background])
    slopes = [PriceSlope(name=f"{LEARNT}.time.{name}", factor=float(factor), time_us=float(
        1e6 * count / hertz), energy_uj=_known(float(energy)))
        for name, factor, count, energy in zip(TIME_PRICES, time, cycles, by_time, strict=True)]
    slopes += [PriceSlope(name=f"{LEARNT}.energy.{name}", factor=float(factor), time_us=0.0,
                          energy_uj=_known(float(energy)))
               for name, factor, energy in zip(ENERGY_PRICES, power, by_power, strict=True)]
    return _Figures(
        time_us=float(1e6 * (time @ cycles) / hertz), energy_uj=float(power @ by_power),
        ram_bytes=deployment.ram_bytes, flash_bytes=deployment.flash_bytes), tuple(slopes)


def _list_factors(deployment: Deployment, calibration: str) -> tuple[np.ndarray, np.ndarray]:
    chosen = choose_calibration(deployment, calibration)
    time = None if chosen is None else chosen.time
    drawn = chosen or choose_powers(deployment, calibration)
    power = None if drawn is None else drawn.energy
    return (np.ones(len(TIME_PRICES)) if time is None else time.factors,
            np.ones(len(ENERGY_PRICES)) if power is None else power.factors)


def _nudge(deployment: Deployment, temperature: str, calibration: str,
           ) -> tuple[_Figures, tuple[PriceSlope, ...]]:
    """Return figures and slopes by differences to both sides."""
    time, power = _list_factors(deployment, calibration)
    names = [*(f"{LEARNT}.time.{name}" for name in TIME_PRICES),
             *(f"{LEARNT}.energy.{name}" for name in ENERGY_PRICES)]
    factors = np.concatenate([time, power])
    rows = np.repeat(factors[None], 2 * len(names), axis=0)
    for number in range(len(names)):
        rows[2 * number, number] *= 1 - NUDGE
        rows[2 * number + 1, number] *= 1 + NUDGE
    batch = predict_batch(deployment, vary=dict(zip(names, rows.T, strict=True)),
                          temperature=temperature, calibration=calibration)
    slopes = []
    for number, name in enumerate(names):
        wide = 2 * NUDGE * factors[number]
        by_time, by_energy = (
            (values[2 * number + 1] - values[2 * number]) / wide
            for values in (batch.time_us, batch.energy_uj))
        slopes.append(PriceSlope(name=name, factor=float(factors[number]),
                                 time_us=float(by_time), energy_uj=_known(float(by_energy))))
    return _predict(deployment, temperature, calibration), tuple(slopes)


def _list_widths(deployment: Deployment) -> tuple[tuple[Block, ...], dict[int, int]]:
    """Return the blocks of the network as `network.channels` counts layers, and what it asks."""
    rewritten, stage = dict(deployment.rewritten), load_rewrite(NAME).stage
    before = {name: value for name, value in rewritten.items() if load_rewrite(name).stage <= stage}
    graph = deployment.original or deployment.graph
    asked = read_channels(rewritten[NAME]) if NAME in rewritten else {}
    return list_blocks(rewrite_network(graph, before) if before else graph), asked


def _compare(block: Block, removed: int, figures: _Figures, narrower: _Figures) -> WidthSlope:
    return WidthSlope(
        layers=block.layers, channels=block.channels, removed=removed,
        time_us=(figures.time_us - narrower.time_us) / removed,
        energy_uj=_known((figures.energy_uj - narrower.energy_uj) / removed),
        ram_bytes=(figures.ram_bytes - narrower.ram_bytes) / removed,
        flash_bytes=(figures.flash_bytes - narrower.flash_bytes) / removed)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
