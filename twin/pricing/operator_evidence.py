"""What measured rows leave open of an operator, beside the price it is charged under."""

from __future__ import annotations

import math
from collections.abc import Mapping

from calibration.fitting.intervals import OPERATOR_SD, SHOWN, remaining_sd
from hwmodels.board.facts import Board
from hwmodels.isa import load_isa
from twin.deployment.deployment import Deployment
from twin.deployment.placement import layer_dtype
from twin.network.operators import OPERATORS

EXTERNAL = "memory outside the chip"
"""Waiting for it is treated as an operator: a row with much of one informs the next."""


def name_operators(deployment: Deployment) -> tuple[str, ...]:
    """Return which operator each layer is to a kernel library: its name, type and instructions.

    Parameters
    ----------
    deployment
        Whose executed network is named.

    Returns
    -------
    tuple of str
        One per layer: "conv_2d int8 dsp"; other types and other instructions run other code.
    """
    graph = deployment.executed
    code = load_isa(deployment.board.core.isa).extensions[0]
    return tuple(f"{layer.op} {layer_dtype(graph, layer)} {code}" for layer in graph.layers)


OWN_PRICE = tuple(name for name, operator in OPERATORS.items() if operator.sums_products)
"""Operators that a price of time is stated of: no other of its family is beside them."""


def operator_sd(name: str, evidence: Mapping[str, float], sd: float) -> float:
    """Return what rows leave open of an operator beside its price.

    Parameters
    ----------
    name
        From `name_operators`, or `EXTERNAL`.
    evidence
        How well rows of the library know each: `intervals.remaining_sd`.
    sd
        Before any row: `OPERATOR_SD` or `BORROWED_SD`.

    Notes
    -----
    Where rows show code of its type and instructions, nothing of one in `OWN_PRICE`: the price's
    deviation is all of it; of others, `SHOWN` of what is assumed where they show none. Code of one
    library on another instruction set follows one structure: it deviates from what rows show there
    by `OPERATOR_SD`.
    """
    operator, _, code = name.partition(" ")
    shown = any(f"{other} {code}" in evidence for other in OWN_PRICE)
    if shown and operator in OWN_PRICE:
        return 0.0
    alike = name.rpartition(" ")[0]
    elsewhere = max((information for other, information in evidence.items()
                     if other.rpartition(" ")[0] == alike), default=0.0)
    return min(remaining_sd(evidence.get(name, 0.0), SHOWN * sd if shown else sd),
               math.hypot(OPERATOR_SD, remaining_sd(elsewhere, sd)))


def list_external(board: Board) -> frozenset[str]:
    """Return the memories of a board that are outside the chip."""
    return frozenset(memory.name for memory in board.memories
                     if memory.role in ("external_ram", "external_flash"))
