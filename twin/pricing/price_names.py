"""Names of learnt prices, and which event of which kernel is charged under each.

Time is split by who does the work: one price per operator family of the kernel library for what
the core executes, one for calling kernels, one for waiting on memories. Energy is split by what
draws it: activity, stalls, memories, clock tree, leakage.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from hwmodels.counts import COPYING, CORE_EVENTS, ISSUE_EVENTS, Bill
from hwmodels.frozen import NamedNumbers
from twin.runtimes.runtime import COPY, FAMILIES

WIDE, STREAM = "conv_wide", "stream"
"""Prices that part another by the shape of layers: convolutions to many channels, and waiting for
memory in fully connected layers, most of it for weights, each of which is read once.
"""

OWN_FAMILIES = ("conv", WIDE, "pointwise", "depthwise", "fully_connected", "elementwise", "pool",
                "reduce", "quantize", COPY)
"""Families with a price of their own; the rest share "other": too little time to tell apart."""

TIME_PRICES = (*OWN_FAMILIES, "other", "call", "memory", STREAM)
"""Prices of time, each a factor on what the lowered kernels and the datasheet say."""

ENERGY_PRICES = ("activity", "stall", "memory", "clock_tree", "leakage")
"""Prices of energy, each a factor on what the datasheet's currents say."""

STALL_EVENTS = ("pipeline_stall", "branch_refill")
"""Core events in which nothing issues."""


def family_of(family: str, place: str) -> str:
    """Return the family whose efficiency scales a core event of a kernel: copying has its own."""
    return COPY if place == COPYING else family


def price_of_family(family: str) -> str:
    """Return the time price an operator family is charged under."""
    return family if family in OWN_FAMILIES else "other"


FAMILIES_OF = {price: tuple(family for family in FAMILIES if price_of_family(family) == price)
               for price in (*OWN_FAMILIES, "other")}
"""Operator families behind each price of executed work."""


@cache
def waits_on_memory(event: str) -> bool:
    """Whether an event is charged under the time price of memories."""
    return event not in (*CORE_EVENTS, "kernel_dispatch", "clock_tree", "leakage", "sleep")


def name_work(event: str, place: str, family: str, wide: float) -> str:
    """Return what scales an event of a kernel: a family, with its width where it is mixed.

    Of every event of a fully connected kernel that waits on memory, whatever operand it is for, it
    is `STREAM`; of other events outside the core "".

    Parameters
    ----------
    wide
        How wide a convolution is, 0 to 1.
    """
    if event not in CORE_EVENTS:
        return STREAM if family == "fully_connected" and waits_on_memory(event) else ""
    work = family_of(family, place)
    return f"{work} {wide}" if wide and work == "conv" else work


@cache
def list_parts(work: str) -> NamedNumbers:
    """Return the families whose efficiencies a line's work mixes, each with its weight."""
    family, _, wide = work.partition(" ")
    return ((family, 1 - float(wide)), (WIDE, float(wide))) if wide else ((family, 1.0),)


def mix_efficiency(efficiency: Mapping[str, float], work: str) -> float:
    """Return what the cycles of a line are multiplied by: `name_work`."""
    return sum(weight * efficiency.get(family, efficiency.get("conv", 1.0) if family == WIDE
                                       else 1.0) for family, weight in list_parts(work))


@cache
def time_price(event: str, family: str) -> int:
    """Return the place in `TIME_PRICES` of the price an event of a family is charged under."""
    return TIME_PRICES.index(
        price_of_family(family) if event in CORE_EVENTS else
        "call" if not waits_on_memory(event) else STREAM if family == STREAM else "memory")


@cache
def power_of(event: str) -> str:
    """Return the energy price an event is charged under."""
    if event in ("clock_tree", "leakage"):
        return event
    if event in STALL_EVENTS:
        return "stall"
    return "activity" if event in (*ISSUE_EVENTS, "kernel_dispatch") else "memory"


EXECUTED = ("conv", "pointwise", "depthwise", "fully_connected", "elementwise", "pool", "memory")
"""Prices of time that hold for a library's kernels wherever they are linked into: the rest are of
its runtime, or of what lowering assumes of data."""


def power_terms(bill: Bill) -> np.ndarray:
    """Return picojoules by energy price, shape (energy prices,); NaN is not known."""
    terms = dict.fromkeys(ENERGY_PRICES, 0.0)
    for line in bill.lines:
        terms[power_of(line.event)] += np.nan if line.energy_pj is None else line.energy_pj
    return np.array(list(terms.values()))
