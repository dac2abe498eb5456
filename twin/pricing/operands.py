"""The bill by operand: which of weights, input, output and scratch a line was paid for.

Cycles are split by largest remainder within each line of the ledger, so operands sum to lines
exactly; the total's operands are the sums of the layers'. What the core does by itself has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hwmodels.counts import CAUSES, Bill
from hwmodels.quantities import apportion
from twin.pricing.ledger import Line, line_time_us, make_ledger
from twin.pricing.prediction import Prediction

ROLES = ("weights", "bias", "parameters", "input", "output", "scratch", "state", "")
"""Order operands are shown in; "" is the core itself."""

Part = tuple[str, str, str]
"""(clock, cause, operand)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandLedger:
    """Integer cycles by layer, clock, cause and operand.

    Parameters
    ----------
    layers : tuple of mapping
        Per layer, (clock, cause, operand) -> cycles.
    """

    layers: tuple[Mapping[Part, int], ...]

    @property
    def total(self) -> Mapping[Part, int]:
        """Sum over layers, in the order bills are shown."""
        sums: dict[Part, int] = {}
        for layer in self.layers:
            for part, cycles in layer.items():
                sums[part] = sums.get(part, 0) + cycles
        return dict(sorted(sums.items(), key=lambda item: _order(item[0])))


def make_operand_ledger(prediction: Prediction) -> OperandLedger:
    """Split the lines of a prediction's ledger by operand.

    Parameters
    ----------
    prediction : Prediction
        With bills in real-valued cycles.

    Returns
    -------
    OperandLedger
        Whose parts sum to the lines of `make_ledger`, exactly.
    """
    ledger = make_ledger(prediction)
    return OperandLedger(layers=tuple(
        _split(layer.bill, lines)
        for layer, lines in zip(prediction.layers, ledger.layers, strict=True)))


def split_document(document: dict[str, Any], prediction: Prediction) -> dict[str, Any]:
    """Return a prediction's document with every line of its bills split by operand.

    Parameters
    ----------
    document : dict
        From `to_document`; not changed.
    prediction : Prediction
        Of which it is.

    Returns
    -------
    dict
        Its lines have "operand": a role, or null for what the core does by itself.
    """
    ledger = make_operand_ledger(prediction)
    layers = [{**layer, "bill": _lines(prediction, bill, parts)} for layer, bill, parts in zip(
        document["layers"], (layer.bill for layer in prediction.layers), ledger.layers,
        strict=True)]
    setup = {**document["setup"],
             "bill": [{**line, "operand": None} for line in document["setup"]["bill"]]}
    total = {**document["total"], "bill": _lines(prediction, prediction.bill, ledger.total)}
    return {**document, "layers": layers, "setup": setup, "total": total}


def _split(bill: Bill, lines: Mapping[Line, int]) -> dict[Part, int]:
    parts: dict[Part, int] = {}
    for (clock, cause), cycles in lines.items():
        real: dict[str, float] = {}
        for line in bill.lines:
            if (line.clock, line.cause) == (clock, cause):
                real[line.operand] = real.get(line.operand, 0.0) + line.cycles
        roles = sorted(real, key=_role_order)
        for role, share in zip(roles, apportion([real[role] for role in roles], cycles),
                               strict=True):
            parts[clock, cause, role] = share
    return parts


def _lines(prediction: Prediction, bill: Bill, parts: Mapping[Part, int]) -> list[dict[str, Any]]:
    shown = []
    for (clock, cause, operand), cycles in parts.items():
        mine = [line for line in bill.lines
                if (line.clock, line.cause, line.operand) == (clock, cause, operand)]
        energies = [line.energy_pj for line in mine]
        known = [energy for energy in energies if energy is not None]
        shown.append({
            "cause": cause, "clock": clock, "operand": operand or None, "cycles": cycles,
            "time_us": line_time_us(prediction, clock, math.fsum(line.cycles for line in mine)),
            "energy_uj": math.fsum(known) * 1e-6 if len(known) == len(energies) else None})
    return shown


def _order(part: Part) -> tuple[int, str, int, str]:
    clock, cause, operand = part
    return (CAUSES.index(cause), clock, *_role_order(operand))


def _role_order(operand: str) -> tuple[int, str]:
    place = ROLES.index(operand) if operand in ROLES else len(ROLES) - 1
    return place, operand
