"""Native code around compiled loops: functions they call by name, and how they are called back.

A loop calls an `External` as a function; LLVM looks its symbol up when the loop's machine code is
loaded, so the library that has it is loaded before, or its address told.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

BOUNDLESS = 1 << 40
"""Words of an array behind a pointer alone; its real size is the business of what is in it."""

Emit = Callable[[str], str]
"""Adds an instruction of LLVM that gives a value; returns its name."""


@dataclass(frozen=True)
class External:
    """A native function that loops call.

    Parameters
    ----------
    name : str
        Symbol.
    result : str
        "i64" or "i32"; loops take it as a signed number.
    arguments : tuple of str
        "i64", "i32" or "ptr"; of an array the address is passed.
    """

    name: str
    result: str
    arguments: tuple[str, ...]

    def __call__(self, *arguments: Any) -> Any:
        """Stand in for the types a loop sees; nothing but a compiled loop calls it."""
        raise TypeError(f"{self.name} is called by compiled loops only")

    @property
    def declaration(self) -> str:
        """Return its line of an LLVM module."""
        return f"declare {self.result} @{self.name}({', '.join(self.arguments)})"

    def write(self, emit: Emit, given: Sequence[str]) -> str:
        """Write a call; return the name of what it gives, of 64 bits."""
        passed = []
        for kind, text in zip(self.arguments, given, strict=True):
            narrow = kind == "i32" and text.startswith("%")
            passed.append(f"{kind} {emit(f'trunc i64 {text} to i32') if narrow else text}")
        found = emit(f"call {self.result} @{self.name}({', '.join(passed)})")
        return found if self.result == "i64" else emit(f"sext {self.result} {found} to i64")


class HostRead:
    """Up to 4 bytes at an address of this process, as an unsigned number."""

    declaration = ""

    def __call__(self, address: Any, size: Any) -> Any:
        """Read, in Python."""
        return int.from_bytes(ctypes.string_at(int(address), int(size)), "little")

    def write(self, emit: Emit, given: Sequence[str]) -> str:
        """Write a read of 1, 2 or 4 bytes; 4 of them must be there to be read."""
        address, size = given
        place, found = emit(f"inttoptr i64 {address} to ptr"), "0"
        for bits in (8, 16, 32):
            wide = emit(f"zext i{bits} {emit(f'load i{bits}, ptr {place}, align 1')} to i64")
            taken = emit(f"icmp eq i64 {size}, {bits // 8}")
            found = emit(f"select i1 {taken}, i64 {wide}, i64 {found}")
        return found


read_host = HostRead()


def write_callback(name: str, arguments: Sequence[str], symbol: str) -> str:
    """Return a function of LLVM that native code calls and that calls a translated one.

    Parameters
    ----------
    name, symbol : str
        Of itself, and of the function it calls, which returns nothing.
    arguments : sequence of str
        As native code passes them, "i64", "i32" or "ptr"; a pointer is of an array of words.
    """
    lines, passed = [], []
    for place, kind in enumerate(arguments):
        text = f"%given.{place}"
        if kind == "i32":
            lines.append(f"%wide.{place} = sext i32 {text} to i64")
            text = f"%wide.{place}"
        passed.append(f"ptr {text}, i64 {BOUNDLESS}" if kind == "ptr" else f"i64 {text}")
    given = ", ".join(f"{kind} %given.{place}" for place, kind in enumerate(arguments))
    return "\n".join([f"define void @{name}({given}) nounwind {{", ".top:", *lines,
                      f"call void @{symbol}({', '.join(passed)})", "ret void", "}", ""])
