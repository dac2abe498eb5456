"""A program as its ELF file holds it: what is loaded where, its functions, where it starts."""

from __future__ import annotations

import difflib
import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np

from hwmodels.board.facts import Span, Spans
from hwmodels.errors import TwinError
from hwmodels.frozen import entity, frozen
from hwmodels.isa import MACHINES, OTHERS
from hwmodels.program.elf import (
    ALLOCATED,
    ARENA,
    CODE,
    EXECUTABLE,
    UNSTORED,
    WRITABLE,
    Section,
    Segment,
    Tables,
    lies_in,
    read_elf_file,
)
from hwmodels.program.encodings import encoding_of
from hwmodels.program.listing import Listed, disassemble
from twin.errors import ProgramError

LARGEST_LOAD_BYTES = 128 << 20
LARGEST_CODE_BYTES = 32 << 20
MOST_COMPARED = 20_000
"""Names among which near ones are looked for: it takes a second."""

LEAST_ARENA_BYTES = 64
"""Of one: smaller ones of that name are pointers and sizes."""

_KINDS = {1: "a relocatable object file: link it first",
          3: "a shared or position-independent file: link it at fixed addresses",
          4: "a core dump"}
"""Types of files that are no programs of a microcontroller."""
_VECTORS = ("__Vectors", "g_pfnVectors", "vectors", "_vector_table", "__vector_table",
            "__isr_vector", "_vectors", "__VECTOR_TABLE", "vector_table", "__vectors")
_VECTOR_SECTIONS = (".isr_vector", ".vectors", ".intvec", "rom_start", ".vector_table",
                    ".interrupt_vector", ".text")


@frozen
class Function:
    """A function: its name, as linked and as written in its source, its addresses, its file."""

    symbol: str
    name: str
    start: int
    end: int
    file: str = ""


@entity
class Elf:
    """A program for an Arm Cortex-M or a RISC-V core of 32 bits.

    Parameters
    ----------
    path
        The file.
    sha256
        Of its bytes.
    pieces : tuple of (int, int, bytes)
        Load address, address it runs at, content.
    code : tuple of (int, int)
        Addresses of code: first, and one behind the last.
    constants : tuple of (int, int)
        Of what is never written.
    data_end
        Behind the last variable with a place of its own.
    symbols
        Address of each named thing, bit 0 of functions cleared.
    entry
        Where the file says it begins.
    machine
        Kind of machine code.
    parts
        What of the file is there while it runs.
    arenas : tuple of (int, int)
        Of variables whose name says that buffers lie in them.
    architecture
        As an Arm program's build attributes state it, None where they do not.
    stripped
        Whether it has no symbols: functions are then what its code calls.
    """

    path: Path
    sha256: str
    pieces: tuple[tuple[int, int, bytes], ...]
    code: Spans
    constants: Spans
    data_end: int
    functions: tuple[Function, ...]
    symbols: Mapping[str, int]
    entry: int
    machine: str
    parts: tuple[Section, ...]
    arenas: Spans
    stripped: bool
    architecture: int | None = None

    @cached_property
    def sections(self) -> Mapping[str, Span]:
        """First address, and the one behind the last, by name."""
        return {one.name: (one.address, one.address + one.size_bytes) for one in self.parts}

    @cached_property
    def instructions(self) -> Mapping[int, Listed]:
        """The disassembly of an Arm program, by address."""
        return disassemble(self.path, self.machine)

    @cached_property
    def _starts(self) -> list[int]:
        return [function.start for function in self.functions]

    def function_at(self, address: int) -> Function | None:
        """Return the function an address lies in, None for none."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self.functions[place].end:
            return None
        return self.functions[place]

    def with_function(self, address: int) -> Elf:
        """Return a program without symbols that knows of one function more, where one begins."""
        if address in (one.start for one in self.functions) or not lies_in(address, self.code):
            return self
        starts = {address, *(one.start for one in self.functions)}
        return replace(self, functions=name_starts(starts, self.code))

    def find_halfwords(self, pattern: bytes) -> list[int]:
        """Return where in code two bytes stand, at even addresses."""
        return [runs + 2 * int(place) for _, runs, content in self.pieces
                for place in np.flatnonzero(np.frombuffer(
                    content[:len(content) // 2 * 2], "<u2") == int.from_bytes(pattern, "little"))
                if lies_in(runs + 2 * int(place), self.code)]

    def with_copy(self, address: int, code: bytes) -> Elf:
        """Return a program that knows of a function copied to where a block of its runs."""
        source = next((function for _, runs, content in self.pieces
                       if code in content and (function := self.function_at(
                           runs + content.index(code))) is not None), None)
        if source is None:
            return self
        first = next(runs + content.index(code) for _, runs, content in self.pieces
                     if code in content)
        start = address - (first - source.start)
        made = Function(symbol=f"{source.symbol}@0x{start:08x}", name=f"{source.name} in RAM",
                        start=start, end=start + source.end - source.start)
        return replace(self, functions=tuple(sorted((*self.functions, made),
                                                    key=lambda one: one.start)))

    def name_place(self, address: int) -> str:
        """Return an address as people read it: "main+0x12"."""
        found = self.function_at(address)
        if found is None:
            return f"0x{address:08x}"
        past = address - found.start
        return f"{found.name}+0x{past:x}" if past else found.name

    def address_of(self, symbol: str, option: str) -> int:
        """Return the address of a symbol, by its name in the file or in the source, or a number.

        Raises
        ------
        ProgramError
            Naming the nearest symbols where there is none.
        """
        if symbol in self.symbols:
            return self.symbols[symbol]
        try:
            return int(symbol, 16) & ~1 if symbol.lower().startswith("0x") else int("", 0)
        except ValueError:
            pass
        found = [one.start for one in self.functions if one.name == symbol]
        if len(set(found)) == 1:
            return found[0]
        if found:
            raise ProgramError(f"{self.path}: {option} {symbol}: {len(found)} functions of that "
                               "name; accepted: one as `nm` prints it, or 0xADDRESS")
        names = [one.name for one in self.functions]
        near = difflib.get_close_matches(
            symbol, [*self.symbols, *names][:MOST_COMPARED], 3, 0.5) or [
            name for name in names if symbol.lower() in name.lower()][:3]
        hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else (
            "accepted: a symbol of the program, or 0xADDRESS")
        raise ProgramError(f"{self.path}: {option}: no symbol {symbol!r}; {hint}")

    def vector_tables(self) -> Iterable[int]:
        """Addresses a vector table may lie at, the likeliest first."""
        yield from (self.symbols[name] for name in _VECTORS if name in self.symbols)
        yield from (self.sections[name][0] for name in _VECTOR_SECTIONS if name in self.sections)
        yield from sorted(start for start, _, content in self.pieces if len(content) >= 8)


def read_elf(path: str | Path, refuse: type[TwinError] = ProgramError, what: str = "file") -> Elf:
    """Read a program.

    Parameters
    ----------
    path
        ELF file of an Arm Cortex-M or a RISC-V core. Without symbols functions are what its code
        calls, named by their addresses.
    refuse
        Raised for a file that is none, or larger than a microcontroller's program can be.
    what
        What it should be, for the refusal.
    """
    file = read_elf_file(path, refuse, what)
    try:
        return _read(Path(path), file)
    except ProgramError as error:
        raise refuse(f"{path}: {error}") from error


def _read(path: Path, file: Tables) -> Elf:
    if file.bits != 32:
        raise ProgramError("not of 32 bits, or big endian; accepted: a little-endian program of "
                           "an Arm Cortex-M, or of RISC-V with 32 bits")
    kind = next((one for one in MACHINES.values() if one.elf_machine == file.machine), None)
    if kind is None or not kind.unicorn:
        what = kind.description if kind else OTHERS.get(file.machine, "machine")
        accepted = ", or of ".join(f"{one.description} ({one.elf_machine})"
                                   for one in MACHINES.values() if one.unicorn)
        raise ProgramError(f"a program for {what} ({file.machine}); accepted: of {accepted}")
    if file.kind != EXECUTABLE:
        what = _KINDS.get(file.kind, f"of type {file.kind}")
        raise ProgramError(f"{what}; accepted: a linked program (type {EXECUTABLE}, EXEC)")
    loads = file.loads
    if sum(max(one.file_bytes, one.memory_bytes) for one in loads) > LARGEST_LOAD_BYTES:
        raise ProgramError(f"loads more than {LARGEST_LOAD_BYTES >> 20} MiB; accepted: a "
                           "program of a microcontroller")
    pieces = tuple((one.loaded, one.runs, file.data(one)) for one in loads if one.file_bytes)
    sections = file.allocated or [_describe(one) for one in loads if one.memory_bytes]
    spans = [(one, (one.address, one.address + one.size_bytes)) for one in sections]
    code = {span for one, span in spans if one.flags & CODE} or {
        (one.runs, one.runs + one.memory_bytes) for one in loads if one.rights & 1}
    if not pieces or not code:
        raise ProgramError("no code in it; accepted: a linked program")
    if sum(high - low for low, high in code) > LARGEST_CODE_BYTES:
        raise ProgramError(f"code of more than {LARGEST_CODE_BYTES >> 20} MiB; accepted: a "
                           "program of a microcontroller")
    functions, symbols, arenas = _read_symbols(file)
    stripped = not symbols
    if stripped:
        functions = name_called([one for one in pieces if any(
            low < one[1] + len(one[2]) and one[1] < high for low, high in code)], code, kind.name,
            file.entry & ~1)
    return Elf(
        path=path, sha256=hashlib.sha256(file.content).hexdigest(), pieces=pieces,
        code=tuple(sorted(code)), functions=functions, symbols=symbols,
        constants=tuple(span for one, span in spans if not one.flags & WRITABLE),
        data_end=max((span[1] for one, span in spans if one.flags & WRITABLE
                      and "stack" not in one.name), default=0),
        entry=file.entry & ~1, machine=kind.name, stripped=stripped,
        architecture=file.arm_architecture,
        parts=tuple(sections), arenas=arenas)


def _describe(segment: Segment) -> Section:
    """Return a segment as the section it stands for in a file without any."""
    return Section(
        name="", kind=1 if segment.file_bytes else UNSTORED, link=0, entry_bytes=0,
        flags=ALLOCATED | WRITABLE * (segment.rights >> 1 & 1) | CODE * (segment.rights & 1),
        address=segment.runs, offset=segment.offset, size_bytes=segment.memory_bytes)


def _read_symbols(file: Tables) -> tuple[tuple[Function, ...], dict[str, int], Spans]:
    symbols: dict[str, int] = {}
    arenas: set[Span] = set()
    starts: dict[int, tuple[str, int, str]] = {}
    for one in file.symbols:
        if not one.name or one.name.startswith("$"):
            continue
        symbols[one.name] = one.value & ~1 if one.is_function else one.value
        if one.is_function:
            known = starts.get(one.value & ~1)
            if known is None or known[1] < one.size_bytes:
                starts[one.value & ~1] = (one.name, one.size_bytes, one.file)
        elif one.size_bytes >= LEAST_ARENA_BYTES and ARENA.search(one.name):
            arenas.add((one.value, one.value + one.size_bytes))
    functions = []
    order = sorted(starts)
    for start, following in zip_longest(order, order[1:]):
        symbol, size, source = starts[start]
        # Functions of assembly files often state no size: they go on to the next.
        end = start + size if size else min(following or start + 4096, start + 4096)
        functions.append(Function(symbol=symbol, name=demangle(symbol), start=start, end=end,
                                  file=source))
    return tuple(functions), symbols, tuple(sorted(arenas))


def name_called(pieces: Iterable[tuple[int, int, bytes]], code: Iterable[Span],
                machine: str, entry: int) -> tuple[Function, ...]:
    """Return the functions of a program without symbols: what direct calls in its code go to.

    Parameters
    ----------
    pieces : iterable of (int, int, bytes)
        Those with code: load address, address it runs at, content.
    code : iterable of (int, int)
        Addresses of code.
    machine
        As `Elf` has it.
    """
    find_calls = encoding_of(machine).find_calls
    return name_starts({entry, *(int(one) for _, runs, content in pieces
                                 for one in find_calls(content, runs))}, code)


def name_starts(starts: Iterable[int], code: Iterable[Span]) -> tuple[Function, ...]:
    """Return functions nobody named: each goes on to the next, or to the end of its code."""
    found = []
    for low, high in sorted(code):
        inside = sorted(one for one in starts if low <= one < high)
        for start, end in pairwise([*inside, high]):
            name = f"0x{start:08x}"
            found.append(Function(symbol=name, name=name, start=start, end=end))
    return tuple(found)


def demangle(symbol: str) -> str:
    """Return the qualified name of a C++ symbol (Itanium ABI) without its types; others as is."""
    if not symbol.startswith("_ZN"):
        rest, parts = (symbol[2:], 1) if symbol.startswith("_Z") else ("", 0)
    else:
        rest, parts = symbol[3:].lstrip("KVr"), 64
    names: list[str] = []
    while rest[:1].isdigit() and len(names) < parts:
        digits = rest[:len(rest) - len(rest.lstrip("0123456789"))]
        if len(digits) > 4:
            return symbol
        size = int(digits)
        name, rest = rest[len(digits):len(digits) + size], rest[len(digits) + size:]
        if name != "_GLOBAL__N_1":
            names.append(name)
    return "::".join(names) or symbol
