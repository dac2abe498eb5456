"""What a prediction's figures grow by: with each learnt price, and with each layer's width.

Time is linear in prices of time and energy in each of both kinds, so differences give their
derivatives; those with widths are differences of two predictions, of the network and of a narrower
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from os import fspath

import numpy as np

from hwmodels.errors import TwinError
from hwmodels.files import File
from hwmodels.frozen import frozen
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.rewrites.layer_channels import NAME, format_channels, read_channels
from twin.network.rewrites.rewrite import load_rewrite, rewrite_network
from twin.network.rewrites.width import DIVISOR, Block, list_blocks
from twin.pricing.batch import Batch
from twin.pricing.batched import predict_many
from twin.pricing.calibration import (
    AUTO,
    choose_calibration,
    choose_kernel_prices,
    choose_powers,
    is_read,
)
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES
from twin.pricing.variation import LEARNT

LINEAR, NUDGE = 0.5, 1e-3
"""Shares a price is moved by to both sides: where a bill is counts times prices, and where more."""


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
                  temperature: str = "warm", calibration: File = AUTO) -> Derivative:
    """Predict an inference with its derivatives: with each learnt price, and each layer's width.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    widths : bool
        Whether narrower networks are predicted: one more prediction for every block of channels.
    step : int
        Channels they lack; half of them where a layer has no more than that.
    temperature, calibration
        As for `twin.predict`.

    Returns
    -------
    Derivative
        Those with prices are exact (on an accelerator: central differences); those with widths
        are differences of two predictions.

    Raises
    ------
    UsageError
        For a step below 1.
    TwinError
        For what `predict` refuses.

    Notes
    -----
    With x a factor on a price and h a share of it, dF/dx = (F(x + h x) - F(x - h x)) / 2 h x, which
    is exact at any h where F is linear in x, as where a bill is counts times prices. With widths
    (F(c) - F(c - step)) / step.

    Examples
    --------
    >>> import twin
    >>> slopes = twin.differentiate(twin.deploy("ad", "nucleo_l4r5zi"), widths=False)
    >>> round(sum(one.factor * one.time_us for one in slopes.prices) / slopes.time_us, 9)
    1.0
    """
    if step < 1:
        raise UsageError(f"step {step}; accepted: 1 channel or more")
    exact = deployment.is_itemised and not deployment.loads
    predict = partial(predict_many, temperature=temperature, calibration=fspath(calibration))
    figures = predict([deployment])
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
            found.append(_compare(block, removed, figures, predict([narrower])))
        except TwinError as error:
            refused.append((block.layers[0], str(error)))
    return Derivative(
        deployment=deployment, time_us=float(figures.time_us[0]), ram_bytes=deployment.ram_bytes,
        energy_uj=_known(figures.energy_uj[0]), flash_bytes=deployment.flash_bytes,
        prices=_move_prices(partial(predict, deployment), _list_factors(
            deployment, fspath(calibration)), LINEAR if exact else NUDGE),
        widths=tuple(found), refused=tuple(refused), is_exact=exact)


def _list_factors(deployment: Deployment, calibration: str) -> dict[str, float]:
    """Return the factor a prediction has on each stated price, by the name it is varied by."""
    chosen = choose_calibration(deployment, calibration)
    drawn = chosen or choose_powers(deployment, calibration)
    if chosen is None and is_read(deployment):
        times = choose_kernel_prices(deployment, calibration)
    else:
        times = {} if chosen is None else dict(zip(TIME_PRICES, chosen.time.factors, strict=True))
    powers = {} if drawn is None or drawn.energy is None else dict(zip(
        ENERGY_PRICES, drawn.energy.factors, strict=True))
    return {f"{LEARNT}.{kind}.{name}": float(factors.get(name, 1.0)) for kind, names, factors in (
        ("time", TIME_PRICES, times), ("energy", ENERGY_PRICES, powers)) for name in names}


def _move_prices(predict: Callable[..., Batch], factors: Mapping[str, float],
                 share: float) -> tuple[PriceSlope, ...]:
    """Return slopes by moving each price to both sides by a share of it."""
    rows = np.repeat(np.array([[*factors.values()]]), 2 * len(factors), axis=0)
    for number in range(len(factors)):
        rows[2 * number:2 * number + 2, number] *= 1 - share, 1 + share
    batch = predict(vary=dict(zip(factors, rows.T, strict=True)))
    by_time, by_energy = (np.diff(values.reshape(-1, 2))[:, 0] / (2 * share)
                          for values in (batch.time_us, batch.energy_uj))
    return tuple(PriceSlope(name=name, factor=factor, time_us=float(time / factor),
                            energy_uj=_known(energy / factor))
                 for (name, factor), time, energy in zip(factors.items(), by_time, by_energy,
                                                         strict=True))


def _list_widths(deployment: Deployment) -> tuple[tuple[Block, ...], dict[int, int]]:
    """Return the blocks of the network as `network.channels` counts layers, and what it asks."""
    rewritten, stage = dict(deployment.rewritten), load_rewrite(NAME).stage
    before = {name: value for name, value in rewritten.items() if load_rewrite(name).stage <= stage}
    graph = deployment.original or deployment.graph
    asked = read_channels(rewritten[NAME]) if NAME in rewritten else {}
    return list_blocks(rewrite_network(graph, before) if before else graph), asked


def _compare(block: Block, removed: int, before: Batch, narrower: Batch) -> WidthSlope:
    def slope(name: str) -> float:
        return float((getattr(before, name)[0] - getattr(narrower, name)[0]) / removed)

    return WidthSlope(
        layers=block.layers, channels=block.channels, removed=removed, time_us=slope("time_us"),
        energy_uj=_known(slope("energy_uj")), ram_bytes=slope("ram_bytes"),
        flash_bytes=slope("flash_bytes"))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
