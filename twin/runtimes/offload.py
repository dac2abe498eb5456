"""The `offload` section of a runtime's file, read: a compiler by name, and what it hands over."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from hwmodels.errors import check_known, check_word, did_you_mean, reworded
from hwmodels.files import check_keys
from twin.errors import RuntimeRefusedError
from twin.network.operators import OPERATORS
from twin.runtimes.compiler import Compiler, Offload, Spread

INPUT_COPIES = ("none", "plain", "scattered")
"""What is done with an input image first: read as it is; copied; copied an element a beat."""

Number = Callable[[str, Any], float]
"""(key, its entry in the file) -> its value, its fact kept."""

RULES = {
    "ethos-u": "twin.runtimes.ethos_u.rules:EthosU",
    "ai8x": "twin.runtimes.ai8x.rules:Ai8x",
    "by-role": "twin.runtimes.units:UnitRules",
    "gap": "twin.runtimes.gap.rules:Gap",
    "systolic": "twin.runtimes.systolic.rules:Systolic",
    "neural-art": "twin.runtimes.neural_art.rules:NeuralArt",
}
"""Where the rules of each compiler are: "module:Class"."""

_KEYS = {"task": "epoch"}
"""Keys of `spread` that are no names of fields."""

_CONVERT: Mapping[str, Callable[[float], float]] = {"int": int, "float": float}
"""Types of the numbers a compiler's rules are made of."""


def read_offload(where: str, leaves: Mapping[str, Any], number: Number) -> Offload:
    """Read the `offload` section of a runtime file.

    Parameters
    ----------
    where
        File and key, for errors.
    leaves
        The section. `rules` is a name of `RULES`, or "module:Class" of one's own; absent:
        by-role. The fields of the class are further keys.
    number
        Reads a number with its source.

    Raises
    ------
    RuntimeRefusedError
        Naming the key and what would be accepted.
    """
    kind = _find_rules(where, str(leaves.get("rules", "by-role")))
    needed = ("family", *(part.name for part in dataclasses.fields(kind)), "host_operators",
              "moved_operators", "move_cycles")
    known = (*needed, "rules", "spread", "input_copy")
    check_keys(f"{where}.", leaves, known, RuntimeRefusedError, needed)
    for key in ("host_operators", "moved_operators"):
        for op in leaves[key]:
            check_known(f"{where}.{key}: no operator", op, OPERATORS, RuntimeRefusedError)
    copied = str(leaves.get("input_copy", "none"))
    check_word(f"{where}.input_copy:", copied, INPUT_COPIES, RuntimeRefusedError)
    return Offload(
        input_copy=copied, family=str(leaves["family"]),
        host_operators=tuple(leaves["host_operators"]),
        moved_operators=tuple(leaves["moved_operators"]),
        rules=_read_rules(kind, where, leaves, number),
        move_cycles=number("offload.move_cycles", leaves["move_cycles"]),
        spread=_read_spread(f"{where}.spread", leaves.get("spread") or {}, number))


def _read_spread(where: str, leaves: Mapping[str, Any], number: Number) -> Spread:
    """Read `offload.spread`: numbers with their source, and the names of profiled units."""
    known = [_KEYS.get(part.name, part.name) for part in dataclasses.fields(Spread)]
    check_keys(f"{where}.", leaves, known, RuntimeRefusedError)
    lists = ("profiled", "boards", "sizes", "host_known", "measured")
    values: dict[str, Any] = {key: number(f"offload.spread.{key}", raw)
                              for key, raw in leaves.items() if key not in lists}
    if "families" in values:
        values["families"] = int(values["families"])
    values |= {key: tuple(str(name) for name in leaves.get(key, ())) for key in lists}
    return Spread(**{name: values[key] for part in dataclasses.fields(Spread)
                     if (key := _KEYS.get(name := part.name, name)) in values})


def _find_rules(where: str, name: str) -> type[Compiler]:
    place = RULES.get(name, name)
    if ":" not in place:
        raise RuntimeRefusedError(f"{where}.rules: no rules {name!r}; {did_you_mean(name, RULES)}, "
                                  "or module:Class of your own")
    with reworded((ImportError, AttributeError, ValueError), RuntimeRefusedError,
                  f"{where}.rules: {name!r} cannot be loaded: "):
        found = resolve_name(place)
    if not (isinstance(found, type) and issubclass(found, Compiler)):
        raise RuntimeRefusedError(f"{where}.rules: {name!r} is {found!r}; accepted: a class "
                                  "beneath twin.runtimes.compiler.Compiler")
    return found


def _read_rules(kind: type[Compiler], where: str, leaves: Mapping[str, Any],
                number: Number) -> Compiler:
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
        else:
            check_word(f"{where}.{part.name}:", leaves[part.name], accepted, RuntimeRefusedError)
            values[part.name] = leaves[part.name]
    return kind(**values)
