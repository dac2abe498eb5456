"""Learnt prices: factors on what is stated, and which of them an event is charged under.

Time is split by who does the work: one price per operator family of the kernel library for what
the core executes, one for calling kernels, one for waiting on memories. Energy is split by what
draws it: activity, stalls, memories, clock tree, leakage.
"""

from __future__ import annotations

from functools import cache

from hwmodels.board.facts import Board
from hwmodels.counts import COPYING, ISSUE_EVENTS
from hwmodels.isa import load_isa
from twin.deployment.deployment import Deployment
from twin.deployment.placement import layer_dtype
from twin.runtimes.runtime import COPY, FAMILIES

OWN_FAMILIES = ("conv", "pointwise", "depthwise", "fully_connected", "elementwise", "pool",
                "reduce", "quantize", COPY)
"""Families with a price of their own; the rest share "other": too little time to tell apart."""

TIME_PRICES = (*OWN_FAMILIES, "other", "call", "memory")
"""Prices of time, each a factor on what the lowered kernels and the datasheet say."""

ENERGY_PRICES = ("activity", "stall", "memory", "clock_tree", "leakage")
"""Prices of energy, each a factor on what the datasheet's currents say."""

EXTERNAL = "memory outside the chip"
"""Waiting for it is told of like an operator: a row with much of one tells of the next."""

STALL_EVENTS = ("pipeline_stall", "branch_refill")
"""Core events in which nothing issues."""

CORE_EVENTS = (*ISSUE_EVENTS, "branch_refill", "pipeline_stall")
"""What an efficiency of a runtime scales."""


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
    return event not in (*CORE_EVENTS, "kernel_dispatch", "clock_tree", "leakage")


@cache
def time_price(event: str, family: str) -> int:
    """Return the place in `TIME_PRICES` of the price an event of a family is charged under."""
    return TIME_PRICES.index(price_of_family(family) if event in CORE_EVENTS else
                             "memory" if waits_on_memory(event) else "call")


@cache
def power_of(event: str) -> str:
    """Return the energy price an event is charged under."""
    if event in ("clock_tree", "leakage"):
        return event
    if event in STALL_EVENTS:
        return "stall"
    return "activity" if event in (*ISSUE_EVENTS, "kernel_dispatch") else "memory"


def name_operators(deployment: Deployment) -> tuple[str, ...]:
    """Return which operator each layer is to a kernel library: its name, type and instructions.

    Parameters
    ----------
    deployment : Deployment
        Whose executed network is named.

    Returns
    -------
    tuple of str
        One per layer: "conv_2d int8 dsp"; other types and other instructions run other code.
    """
    graph = deployment.executed
    code = load_isa(deployment.board.core.isa).extensions[0]
    return tuple(f"{layer.op} {layer_dtype(graph, layer)} {code}" for layer in graph.layers)


def list_external(board: Board) -> frozenset[str]:
    """Return the memories of a board that are outside the chip."""
    return frozenset(memory.name for memory in board.memories
                     if memory.role in ("external_ram", "external_flash"))
