"""What each line of a structure's counts costs, and the time of all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hwmodels.counts import COPYING, ISSUE_EVENTS, Prices
from hwmodels.paths.exposure import expose_once
from hwmodels.paths.timing import Floats, stack_columns
from twin.pricing.structure import Structure
from twin.runtimes import Runtime
from twin.runtimes.runtime import COPY

CORE_EVENTS = (*ISSUE_EVENTS, "branch_refill", "pipeline_stall")
"""What an efficiency of a runtime scales."""

_ON_CORE = frozenset(CORE_EVENTS)


def family_of(family: str, place: str) -> str:
    """Return the family whose efficiency scales a core event of a kernel: copying has its own."""
    return COPY if place == COPYING else family


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lines:
    """Lines of a structure's counts as prices see them.

    Parameters
    ----------
    keys : tuple of (str, str, str)
        Event, place and family each price is looked up by; "" for what no efficiency scales.
    number : ndarray of int, (lines,)
        Key of each line.
    layers : ndarray of int, (lines,)
        Layer of each.
    order : ndarray of int, (lines,)
        Lines as bills merge them: by event, place and operand, then by layer.
    groups : tuple of tuple of (int, int)
        Where each line of the whole bill begins and ends in that order, layer by layer.
    """

    keys: tuple[tuple[str, str, str], ...]
    number: NDArray[np.int64]
    layers: NDArray[np.int64]
    order: NDArray[np.int64]
    groups: tuple[tuple[tuple[int, int], ...], ...]


@lru_cache(maxsize=256)
def list_lines(structure: Structure) -> Lines:
    """Return the lines of a structure."""
    return _order_lines(structure.sheet.lines, tuple([
        (layer, kernel.family) for layer, calls in enumerate(structure.layers)
        for kernel in calls]))


@lru_cache(maxsize=64)
def _order_lines(lines: tuple[tuple[int, str, str, str], ...],
                 kernels: tuple[tuple[int, str], ...]) -> Lines:
    """Return lines of kernels of layers and families: the same under most cache policies."""
    numbers: dict[tuple[str, str, str], int] = {}
    number, layers, places = [], [], []
    for kernel, event, place, operand in lines:
        layer, family = kernels[kernel]
        key = (event, place, family_of(family, place) if event in _ON_CORE else "")
        number.append(numbers.setdefault(key, len(numbers)))
        layers.append(layer)
        places.append((event, place, operand, layer))
    order = sorted(range(len(places)), key=places.__getitem__)
    groups: dict[tuple[str, str, str], dict[int, list[int]]] = {}
    for at, line in enumerate(order):
        event, place, operand, layer = places[line]
        groups.setdefault((event, place, operand), {}).setdefault(layer, []).append(at)
    return Lines(
        keys=tuple(numbers), number=np.array(number, np.int64), layers=np.array(layers, np.int64),
        order=np.array(order, np.int64),
        groups=tuple(tuple((parts[0], parts[-1] + 1) for parts in group.values())
                     for group in groups.values()))


def count_calls(structure: Structure, runtime: Runtime) -> list[int]:
    """Return how often each layer calls a kernel."""
    return [max(sum(kernel.calls for kernel in layer), int(runtime.dispatches_aliases))
            for layer in structure.layers]


def rate_lines(structure: Structure, prices: Prices, efficiency: Mapping[str, float],
               ) -> tuple[Floats, Floats]:
    """Return cycles of each exposed event, and picojoules of each that occurred.

    Parameters
    ----------
    structure : Structure
        Whose lines are priced.
    prices : Prices
        From `twin.pricing.host.runtime_prices`.
    efficiency : mapping of str to float
        By family; 1 where absent.

    Returns
    -------
    tuple of ndarray, (lines,)
        NaN for energy that is not known. Where prices are of many boards, (n, lines).
    """
    lines = list_lines(structure)
    cycles, energies = [], []
    for event, place, family in lines.keys:
        price, factor = prices.price(event, place), efficiency.get(family, 1.0)
        cycles.append(price.cycles * factor)
        energies.append(math.nan if price.pj is None else price.pj * factor)
    return (stack_columns(cycles)[..., lines.number],
            stack_columns(energies)[..., lines.number])


def time_us(structure: Structure, timing: Floats, prices: Prices, runtime: Runtime,
            hertz: float) -> float:
    """Return the time of an inference, to the last bit what `predict` says of it.

    Parameters
    ----------
    structure : Structure
        Of the whole network on the core.
    timing : ndarray of float, (width,)
        Of `hwmodels.paths.timing.read_timing`.
    prices : Prices
        From `twin.pricing.host.runtime_prices`.
    runtime : Runtime
        For its efficiencies and calls.
    hertz : float
        Clock of the core.
    """
    _, exposed = expose_once(structure.sheet, timing)
    cycles = exposed * rate_lines(structure, prices, runtime.efficiency)[0]
    lines = list_lines(structure)
    ordered = cycles[lines.order].tolist()
    call = prices.price("kernel_dispatch", "").cycles
    total = math.fsum((
        math.fsum(calls * call for calls in count_calls(structure, runtime)),
        *(math.fsum(ordered[begin] if end - begin == 1 else math.fsum(ordered[begin:end])
                    for begin, end in group) for group in lines.groups)))
    return total / hertz * 1e6
