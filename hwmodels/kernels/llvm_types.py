"""Types of loops as LLVM writes them, and values with their text."""

from typing import NamedTuple

SIGNED, UNSIGNED, TRUTH, NOTHING = "i", "u", "b", "none"
LLVM_TYPES = {SIGNED: "i64", UNSIGNED: "i64", TRUTH: "i1", NOTHING: "void"}


class Value(NamedTuple):
    """What an expression is: its type and its text in LLVM; of a tuple, its parts."""

    kind: str
    text: str
    parts: tuple["Value", ...] = ()


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
