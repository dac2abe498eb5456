"""What a runtime hands to an accelerator: which operators, by which rules, at what cost.

Facts of a compiler and its driver, not of the machine: the machine is `hwmodels.npu.Npu`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hwmodels.errors import did_you_mean
from twin.errors import RuntimeRefusedError
from twin.network.operators import OPERATORS
from twin.runtimes.units import UnitRules

Number = Callable[[str, Any], float]
"""(key, leaf of the file) -> its value, its fact kept."""

RULES = {
    "by-role": "twin.runtimes.units:UnitRules",
    "neural-art": "twin.runtimes.neural_art.rules:NeuralArt",
}
"""Where the rules of each compiler are: "module:Class"."""

_CONVERT: Mapping[str, Callable[[float], float]] = {"int": int, "float": float}
"""Types of the numbers a compiler's rules are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """How a compiler maps a network onto an accelerator.

    Parameters
    ----------
    family : str
        Accelerators it compiles for: `Npu.family`.
    host_operators : tuple of str
        Operators that always run on the host core.
    moved_operators : tuple of str
        Operators that only move data: engines move it, the host steps them ("hybrid").
    move_cycles : float
        Host cycles to step one moved operator, its engines' hand-over apart.
    rules : UnitRules
        How a layer becomes work for units, and which layers share an epoch.
    """

    family: str
    host_operators: tuple[str, ...]
    moved_operators: tuple[str, ...]
    move_cycles: float
    rules: UnitRules


def read_offload(where: str, leaves: Mapping[str, Any], number: Number) -> Offload:
    """Read the `offload` section of a runtime file.

    Parameters
    ----------
    where : str
        File and key, for errors.
    leaves : mapping
        The section. `rules` is a name of `RULES`, or "module:Class" of one's own; absent:
        by-role. The fields of the class are further keys.
    number : callable
        Reads a number with its source.

    Raises
    ------
    RuntimeRefusedError
        Naming the key and what would be accepted.
    """
    kind = _find_rules(where, str(leaves.get("rules", "by-role")))
    needed = ("family", *(part.name for part in dataclasses.fields(kind)), "host_operators",
              "moved_operators", "move_cycles")
    for key in leaves:
        if key not in (*needed, "rules"):
            raise RuntimeRefusedError(f"{where}.{key}: unknown key; "
                                      + did_you_mean(key, (*needed, "rules")))
    missing = [key for key in needed if key not in leaves]
    if missing:
        raise RuntimeRefusedError(f"{where}.{missing[0]}: missing")
    for key in ("host_operators", "moved_operators"):
        for op in leaves[key]:
            if op not in OPERATORS:
                raise RuntimeRefusedError(f"{where}.{key}: no operator {op!r}; "
                                          + did_you_mean(op, OPERATORS))
    return Offload(
        family=str(leaves["family"]), host_operators=tuple(leaves["host_operators"]),
        moved_operators=tuple(leaves["moved_operators"]),
        rules=_read_rules(kind, where, leaves, number),
        move_cycles=number("offload.move_cycles", leaves["move_cycles"]))


def _find_rules(where: str, name: str) -> type[UnitRules]:
    module, _, kind = RULES.get(name, name).partition(":")
    if not kind:
        raise RuntimeRefusedError(f"{where}.rules: no rules {name!r}; {did_you_mean(name, RULES)}, "
                                  "or module:Class of your own")
    try:
        found = getattr(import_module(module), kind)
    except (ImportError, AttributeError, ValueError) as error:
        raise RuntimeRefusedError(f"{where}.rules: {name!r} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, UnitRules)):
        raise RuntimeRefusedError(f"{where}.rules: {name!r} is {found!r}; accepted: a class "
                                  "beneath twin.runtimes.units.UnitRules")
    return found


def _read_rules(kind: type[UnitRules], where: str, leaves: Mapping[str, Any],
                number: Number) -> UnitRules:
    """Return rules with each field as the file states it: a word it accepts, or a number."""
    values: dict[str, object] = {}
    for part in dataclasses.fields(kind):
        accepted = part.metadata.get("accepted")
        if accepted is None:
            convert = _CONVERT.get(part.type if isinstance(part.type, str) else part.type.__name__)
            if convert is None:
                raise RuntimeRefusedError(f"{where}.{part.name}: {kind.__name__} declares it as "
                                          f"{part.type}; accepted: int, float, or a str with "
                                          "metadata `accepted`")
            values[part.name] = convert(number(f"offload.{part.name}", leaves[part.name]))
        elif leaves[part.name] in accepted:
            values[part.name] = leaves[part.name]
        else:
            raise RuntimeRefusedError(f"{where}.{part.name}: {leaves[part.name]!r}; accepted: "
                                      + ", ".join(accepted))
    return kind(**values)
