"""The tables of a 32-bit ELF file, read from its bytes: no table costs more than the file has.

A library that reads whatever a table says takes gigabytes where many names share one long text, or
a table names more entries than there are; so counts and names are bounded here before use.

References
----------
Tool Interface Standard (TIS) Executable and Linking Format, version 1.2, book I.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from twin.errors import ProgramError

MOST_SEGMENTS, MOST_SECTIONS, MOST_SYMBOLS = 4096, 4096, 1 << 18
LONGEST_NAME = 1 << 16
MOST_NAME_BYTES = 32 << 20

EXECUTABLE, ARM, RISCV, LOAD, SYMBOLS, UNSTORED = 2, 40, 243, 1, 2, 8
ALLOCATED, WRITABLE, CODE = 2, 1, 4
ARENA = re.compile(r"arena|activations|workspace", re.IGNORECASE)
"""In names of what libraries keep buffers in: TFLM, ST Edge AI and X-CUBE-AI, microTVM."""
FUNCTION, _FILE, _SECTION = 2, 4, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A program header: where its bytes are in the file, are loaded, and run, and its rights."""

    kind: int
    offset: int
    runs: int
    loaded: int
    file_bytes: int
    memory_bytes: int
    rights: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section header with its name."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size_bytes: int
    link: int
    entry_bytes: int

    @property
    def content(self) -> str:
        """What it holds: code, constants, stack, arena, data."""
        if self.flags & CODE:
            return "code"
        if not self.flags & WRITABLE:
            return "constants"
        if "stack" in self.name:
            return "stack"
        return "arena" if ARENA.search(self.name) else "data"

    @property
    def stored(self) -> bool:
        """Whether the file has its content."""
        return self.kind != UNSTORED


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A symbol that names a place: of functions `is_function`."""

    name: str
    value: int
    size_bytes: int
    is_function: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What an ELF file's header leads to.

    Parameters
    ----------
    content : bytes
        The file.
    kind, machine, entry : int
        As its header says.
    segments, sections : tuple
        In the order of the file.
    """

    content: bytes
    kind: int
    machine: int
    entry: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]

    def symbols(self) -> Iterator[Symbol]:
        """Yield the symbols that name a place in the program.

        Raises
        ------
        ProgramError
            For more symbols, or longer names, than a program has.
        """
        table = next((one for one in self.sections if one.kind == SYMBOLS), None)
        if table is None:
            return
        if table.entry_bytes != 16 or table.link >= len(self.sections):
            raise ProgramError("its table of symbols is of another form")
        count = table.size_bytes // 16
        if count > MOST_SYMBOLS:
            raise ProgramError(f"{count:,} symbols; accepted: up to {MOST_SYMBOLS:,}")
        words = self.sections[table.link]
        names: dict[int, str] = {}
        left = MOST_NAME_BYTES
        data = self.content[table.offset:table.offset + 16 * count]
        for at, value, size, told, _, place in struct.iter_unpack("<IIIBBH",
                                                                  data[:len(data) // 16 * 16]):
            if not at or not place or told & 15 in (_FILE, _SECTION):
                continue
            if at not in names:
                names[at] = read_name(self.content, words.offset + at)
                left -= len(names[at])
                if left < 0:
                    raise ProgramError(f"names of symbols are longer than {MOST_NAME_BYTES:,} "
                                       "characters together")
            yield Symbol(name=names[at], value=value, size_bytes=size,
                         is_function=told & 15 == FUNCTION)


def read_tables(content: bytes) -> Tables:
    """Read the headers of a file.

    Raises
    ------
    ProgramError
        When it is not of 32 bits, little endian, or its tables are longer than a program's.
    struct.error
        When it is cut.
    """
    if content[4:6] != b"\1\1":
        raise ProgramError("not of 32 bits, or big endian; accepted: a little-endian program of "
                           "an Arm Cortex-M, or of RISC-V with 32 bits")
    (kind, machine, _, entry, first_segment, first_section, _, _, segment_bytes, segments,
     section_bytes, sections, names_in) = struct.unpack_from("<HHIIIIIHHHHHH", content, 16)
    for what, count, most, size, least in (
            ("segments", segments, MOST_SEGMENTS, segment_bytes, 32),
            ("sections", sections, MOST_SECTIONS, section_bytes, 40)):
        if count > most or (count and size < least):
            raise ProgramError(f"{count:,} {what} of {size} bytes; accepted: up to {most:,}")
    found = [_read_segment(content, first_segment + place * segment_bytes)
             for place in range(segments)]
    heads = [struct.unpack_from("<IIIIIIIIII", content, first_section + place * section_bytes)
             for place in range(sections)]
    names_at = heads[names_in][4] if names_in < len(heads) else 0
    return Tables(
        content=content, kind=kind, machine=machine, entry=entry, segments=tuple(found),
        sections=tuple(Section(
            name=read_name(content, names_at + head[0]), kind=head[1], flags=head[2],
            address=head[3], offset=head[4], size_bytes=head[5], link=head[6],
            entry_bytes=head[9]) for head in heads))


def _read_segment(content: bytes, at: int) -> Segment:
    kind, offset, runs, loaded, file_bytes, memory_bytes, rights, _ = struct.unpack_from(
        "<IIIIIIII", content, at)
    return Segment(kind=kind, offset=offset, runs=runs, loaded=loaded, file_bytes=file_bytes,
                   memory_bytes=memory_bytes, rights=rights)


def read_name(content: bytes, at: int) -> str:
    """Return the text at an offset; raises `ProgramError` for one that is too long for a name."""
    end = content.find(b"\0", at, at + LONGEST_NAME)
    if end < 0 and at + LONGEST_NAME <= len(content):
        raise ProgramError(f"a name of more than {LONGEST_NAME:,} characters")
    return content[at:max(end, at)].decode("utf-8", "replace")
