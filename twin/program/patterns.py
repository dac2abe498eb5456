"""Which functions of a program are layers, copies, and of which family; data in patterns.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from hwmodels.errors import did_you_mean
from hwmodels.files import read_yaml
from twin.errors import ProgramError
from twin.network.operators import FUNCTION
from twin.program.elf import Elf, Function

AUTO, NONE = "auto", "none"
NOT = "!"
"""What a pattern begins with whose functions are no layers."""
ELSE = "elementwise"
"""Family of what no pattern knows."""


@lru_cache(maxsize=1)
def _shipped() -> Any:
    return read_yaml(Path(__file__).with_name("patterns.yaml"))


def _matches(function: Function, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(function.name, one) or fnmatchcase(function.symbol, one)
               for one in patterns)


def choose_layers(elf: Elf, asked: str) -> tuple[str, tuple[Function, ...]]:
    """Return the functions whose calls are layers, and how they were chosen.

    Parameters
    ----------
    asked
        "auto": the first shipped set the program has functions of; "none"; a set's name; or
        patterns separated by commas, those of what is not a layer behind `!`.

    Raises
    ------
    ProgramError
        When nothing in the program matches what was asked for.
    """
    if asked == NONE:
        return NONE, ()
    sets = _shipped()["sets"]
    if asked == AUTO:
        for name, one in sets.items():
            if any(_matches(function, one["needs"]) for function in elf.functions):
                found = _find(elf, one["layers"])
                if found:
                    return name, found
        return NONE, ()
    patterns: Sequence[str] = sets[asked]["layers"] if asked in sets else asked.split(",")
    found = _find(elf, patterns)
    if not found:
        plain = asked not in sets and not set(asked) & set("*?[,!")
        having = [name for name, one in sets.items() if _find(elf, one["layers"])]
        hint = (did_you_mean(asked, [*sets, *(one.name for one in elf.functions)]) if plain
                else f"accepted: {', '.join([*having, NONE])}, or patterns such as "
                     "'run_*,!run_init*'")
        raise ProgramError(f"{elf.path}: --layers {asked}: no function matches; {hint}")
    return asked, found


def _find(elf: Elf, patterns: Iterable[str]) -> tuple[Function, ...]:
    """Return functions of a pattern, and of none that begins with `!`."""
    words = [one.strip() for one in patterns]
    excluded = [one[1:] for one in words if one.startswith(NOT)]
    wanted = [one for one in words if not one.startswith(NOT)]
    return tuple(one for one in elf.functions
                 if _matches(one, wanted) and not _matches(one, excluded))


def find_entry(elf: Elf, which: str) -> tuple[str, bool] | None:
    """Return the function a known library runs ("invoke") or prepares ("setup") a network with.

    With it whether the program waits to be asked, so that it is called; None for no such function.
    """
    names = {one.name for one in elf.functions}
    return next(((name, one.get("call", False)) for one in _shipped()["sets"].values()
                 for name in one.get(which, ()) if name in names), None)


def name_layer(function: Function) -> str:
    """Return what a layer is called: of TFLite Micro's evaluations the operator, by their file."""
    scope, _, short = function.name.rpartition("::")
    operator = Path(function.file).stem
    if scope != "tflite" or not operator or not short.startswith("Eval"):
        return function.name
    return f"{operator} {short.removeprefix('Eval')}".strip()


def is_copy(function: Function) -> bool:
    """Whether a function only moves data."""
    return _matches(function, _shipped()["copies"])


def family_of(function: Function) -> str:
    """Return the operator family in a function's name."""
    for family, patterns in _shipped()["families"].items():
        if _matches(function, patterns):
            return str(family)
    return ELSE


def name_library(elf: Elf) -> str:
    """Return the runtime whose measured prices hold for a program's kernels; "" for none."""
    for name, needs in _shipped()["libraries"].items():
        if any(_matches(function, needs) for function in elf.functions):
            return str(name)
    return ""


_ANY = ("data_movement", "quantize", ELSE)
"""Families of what every layer may do besides its own work."""


def name_kind(families: Sequence[str]) -> str:
    """Return what a layer is by the families of its functions, the heaviest first."""
    own = {family for family in families if family not in _ANY}
    return next((str(family) for family in _shipped()["families"] if family in own), families[0])


def call_layer(functions: Sequence[tuple[str, str]]) -> str:
    """Return what a layer is called, by name and family of its functions, the heaviest first.

    A product of matrices whose name says no more may be a 1x1 convolution: it is a "matmul"; what
    no pattern knows is a function.
    """
    kind = name_kind([family for _, family in functions])
    if kind != "fully_connected":
        return FUNCTION if kind == ELSE else kind
    shipped = _shipped()
    certain = [one for one in shipped["families"][kind] if one not in shipped["products"]]
    return kind if any(fnmatchcase(name, one) for name, family in functions if family == kind
                       for one in certain) else "matmul"
