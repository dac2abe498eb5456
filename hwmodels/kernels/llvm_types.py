"""Types of loops as LLVM writes them, values with their text, and who knows functions."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

SIGNED, UNSIGNED, TRUTH, NOTHING = "i", "u", "b", "none"
Function = Callable[..., Any]
LLVM_TYPES = {SIGNED: "i64", UNSIGNED: "i64", TRUTH: "i1", NOTHING: "void"}


class Value(NamedTuple):
    """What an expression is: its type and its text in LLVM; of a tuple, its parts."""

    kind: str
    text: str
    parts: tuple["Value", ...] = ()


class Translator(Protocol):
    """What knows the functions an expression may call."""

    parts: dict[Function, bool]
    externals: set[str]

    def translate(self, function: Function, kinds: tuple[str, ...],
                  linkage: str = ...) -> tuple[str, tuple[str, ...]]:
        """Return the symbol of a function for types, and the types of its result."""

    def name_loop(self) -> str:
        """Return a name for a loop whose turns are done several at once."""


def declare(kind: str, name: str, attribute: str = "") -> str:
    """Return an argument of a definition or a call: an array is a pointer and its dimensions."""
    if kind in LLVM_TYPES:
        return f"{LLVM_TYPES[kind]} {name}"
    return ", ".join([f"ptr{attribute} {name}",
                      *(f"i64 {name}.{number}" for number in range(int(kind[1])))])


def type_of(kinds: tuple[str, ...]) -> str:
    """Return the LLVM type of a result."""
    if not kinds:
        return "void"
    inner = ", ".join(LLVM_TYPES[kind] for kind in kinds)
    return inner if len(kinds) == 1 else f"{{ {inner} }}"
