"""A built image as its file holds it: functions, constants, disassembly, places."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hwmodels.program.elf import ALLOCATED, ARM, CONTENT, WRITABLE, read_elf_file
from hwmodels.program.listing import Listed, disassemble
from twin.errors import FirmwareError

_OPAQUE = ".model_weights"
"""Constants that are data of the network: no branch may hang on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function's name and the addresses of its first byte and of the one behind its last."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BuiltImage:
    """An ELF file of the firmware.

    Parameters
    ----------
    path : Path
        The file.
    functions : tuple of Function
        By address.
    symbols : mapping of str to (int, int)
        Address and size of each named thing.
    constants : tuple of (int, bytes)
        What is never written and is not the network's data.
    sections : mapping of str to (int, int)
        First address, and the one behind the last, of what memory holds.
    """

    path: Path
    functions: tuple[Function, ...]
    symbols: Mapping[str, tuple[int, int]]
    constants: tuple[tuple[int, bytes], ...]
    sections: Mapping[str, tuple[int, int]]

    @cached_property
    def instructions(self) -> Mapping[int, Listed]:
        """The disassembly, by address."""
        return disassemble(self.path)

    @cached_property
    def _starts(self) -> list[int]:
        return [function.start for function in self.functions]

    def function_at(self, address: int) -> Function:
        """Return the function an address lies in.

        Raises
        ------
        FirmwareError
            When it lies in none.
        """
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self.functions[place].end:
            raise FirmwareError(f"{self.path}: no function at 0x{address:08x}")
        return self.functions[place]

    def function(self, name: str) -> Function:
        """Return a function by name.

        Raises
        ------
        FirmwareError
            When the image has none of that name.
        """
        if name in self.symbols:
            return self.function_at(self.symbols[name][0] & ~1)
        raise FirmwareError(f"{self.path}: no function {name!r} in the image; was it stripped?")

    def constant(self, address: int, size_bytes: int, signed: bool = False) -> int | None:
        """Return a constant, or None where memory is written or holds the network's data."""
        for start, content in self.constants:
            if start <= address and address + size_bytes <= start + len(content):
                raw = content[address - start:address - start + size_bytes]
                return int.from_bytes(raw, "little", signed=signed)
        return None


def read_built_image(path: str | Path) -> BuiltImage:
    """Read an image of an Arm Cortex-M.

    Parameters
    ----------
    path : path
        ELF file with its symbols, as `twin firmware build` leaves it.

    Raises
    ------
    FirmwareError
        When it is no such file.
    """
    elf = read_elf_file(path, FirmwareError)
    if elf.machine != ARM:
        raise FirmwareError(f"{path}: of machine {elf.machine}; accepted: an image of an Arm "
                            "Cortex-M")
    if not elf.symbols:
        raise FirmwareError(f"{path}: no symbols; accepted: an image that is not stripped")
    functions = {one.value & ~1: Function(name=one.name, start=one.value & ~1,
                                          end=(one.value & ~1) + one.size_bytes)
                 for one in elf.symbols if one.is_function and one.size_bytes}
    return BuiltImage(
        path=Path(path), functions=tuple(functions[start] for start in sorted(functions)),
        symbols={one.name: (one.value, one.size_bytes) for one in elf.symbols},
        constants=tuple((one.address, elf.data(one)) for one in elf.allocated
                        if not one.flags & WRITABLE and one.kind == CONTENT
                        and one.name != _OPAQUE),
        sections={one.name: (one.address, one.address + one.size_bytes)
                  for one in elf.sections if one.flags & ALLOCATED})
