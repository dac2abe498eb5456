"""The tables of an ELF file, read from its bytes: no table costs more than the file has.

A library that reads whatever a table says takes gigabytes where many names share one long text, or
a table names more entries than there are; so counts and names are bounded here before use.
pyelftools 0.33 takes 1.0 GB and 7 s for a file of 1.1 MB whose 1,000 sections share a name of
1 MiB; here it is refused within a millisecond. Tests read images by pyelftools, too.

References
----------
Tool Interface Standard (TIS) Executable and Linking Format, version 1.2, book I.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from hwmodels.board.facts import Span
from hwmodels.errors import TwinError, reworded
from hwmodels.files import read_regular
from hwmodels.frozen import frozen, record

LARGEST_FILE_BYTES = 256 << 20
_CPU_ARCH = 6
MOST_SEGMENTS, MOST_SECTIONS, MOST_SYMBOLS = 4096, 4096, 1 << 18
LONGEST_NAME = 1 << 16
MOST_NAME_BYTES = 32 << 20

_LAYOUTS = {1: ("<HHIIIIIHHHHHH", "<IIIIIIII", "<IIIIIIIIII", "<IIIBBH"),
            2: ("<HHIQQQIHHHHHH", "<IIQQQQQQ", "<IIQQQQIIQQ", "<IBBHQQ")}
"""Header, segment, section and symbol, of 32 and of 64 bits."""
_SEGMENT = {1: (0, 1, 2, 3, 4, 5, 6), 2: (0, 2, 3, 4, 5, 6, 1)}
_SYMBOL = {1: (0, 1, 2, 3, 5), 2: (0, 4, 5, 1, 3)}
"""Where fields of `Segment` are in a header; in a symbol name, value, size, kind and section."""

EXECUTABLE = 2
LOAD, CONTENT, SYMBOLS, UNSTORED = 1, 1, 2, 8
ALLOCATED, WRITABLE, CODE = 2, 1, 4
ARENA = re.compile(r"arena|activations|workspace", re.IGNORECASE)
"""In names of what libraries keep buffers in: TFLM, ST Edge AI and X-CUBE-AI, microTVM."""
FUNCTION, _FILE, _SECTION = 2, 4, 3


def lies_in(address: int, spans: Iterable[Span]) -> bool:
    """Whether an address is in one of several spans, each without the address it ends at."""
    return any(low <= address < high for low, high in spans)


class ElfError(TwinError):
    """A file is not an ELF file, is damaged, or has larger tables than a program."""


@record
class Segment:
    """A program header: where its bytes are in the file, are loaded, and run, and its rights."""

    kind: int
    offset: int
    runs: int
    loaded: int
    file_bytes: int
    memory_bytes: int
    rights: int


@frozen
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


@frozen
class Symbol:
    """A symbol that names a place: of functions `is_function`, of local ones their file."""

    name: str
    value: int
    size_bytes: int
    is_function: bool
    file: str = ""


@frozen
class Tables:
    """What an ELF file's header leads to.

    Parameters
    ----------
    bits
        32 or 64.
    segments, sections
        In the order of the file.
    """

    content: bytes
    bits: int
    kind: int
    machine: int
    entry: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]

    @property
    def loads(self) -> list[Segment]:
        """Segments a loader brings into memory."""
        return [one for one in self.segments if one.kind == LOAD]

    @property
    def allocated(self) -> list[Section]:
        """Sections memory holds while the program runs."""
        return [one for one in self.sections if one.flags & ALLOCATED and one.size_bytes]

    @property
    def arm_architecture(self) -> int | None:
        """Value of the build attribute Tag_CPU_arch, None where no such attribute is.

        Reference: Addenda to the ABI for the Arm Architecture (IHI 0045), 3.2 and 3.3.6.1.
        """
        section = self.section(".ARM.attributes")
        data = b"" if section is None else self.data(section)
        rest = iter(data.partition(b"aeabi\0")[2][5:])  # behind the file's tag and its size
        for tag in rest:
            text = tag in (4, 5) or (tag > 32 and tag % 2)  # ended by a zero
            value = shift = 0
            for byte in rest:
                value, shift = value | (byte & 127) << shift, shift + 7
                if not (byte if text else byte & 128):
                    break
            if tag == _CPU_ARCH:
                return value
        return None

    def section(self, name: str) -> Section | None:
        """Return the first section of a name."""
        return next((one for one in self.sections if one.name == name), None)

    def data(self, part: Section | Segment) -> bytes:
        """Return what the file has of a section or segment."""
        if isinstance(part, Segment):
            return self.content[part.offset:part.offset + part.file_bytes]
        return self.content[part.offset:part.offset + part.size_bytes] if part.stored else b""

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols that name a place in the program.

        Raises
        ------
        ElfError
            For more symbols, or longer names, than a program has.
        """
        return tuple(self._read_symbols())

    def symbol(self, name: str) -> Symbol | None:
        """Return the first symbol of a name."""
        return next((one for one in self.symbols if one.name == name), None)

    def _read_symbols(self) -> Iterator[Symbol]:
        table = next((one for one in self.sections if one.kind == SYMBOLS), None)
        if table is None:
            return
        form = _LAYOUTS[self.bits // 32][3]
        size = struct.calcsize(form)
        if table.entry_bytes != size or table.link >= len(self.sections):
            raise ElfError("its table of symbols is of another form")
        count = table.size_bytes // size
        if count > MOST_SYMBOLS:
            raise ElfError(f"{count:,} symbols; accepted: up to {MOST_SYMBOLS:,}")
        words = self.sections[table.link]
        names: dict[int, str] = {}
        left, file = MOST_NAME_BYTES, ""
        data = self.content[table.offset:table.offset + size * count]
        for fields in struct.iter_unpack(form, data[:len(data) // size * size]):
            at, value, size_bytes, info, place = (fields[one] for one in _SYMBOL[self.bits // 32])
            if not at or not place or info & 15 == _SECTION:
                continue
            if at not in names:
                names[at] = _read_text(self.content, words.offset + at)
                left -= len(names[at])
                if left < 0:
                    raise ElfError(f"names of symbols are longer than {MOST_NAME_BYTES:,} "
                                   "characters together")
            if info & 15 == _FILE:
                file = names[at]
                continue
            yield Symbol(name=names[at], value=value, size_bytes=size_bytes,
                         is_function=info & 15 == FUNCTION, file="" if info >> 4 else file)


def read_elf_file(path: str | Path, refuse: type[TwinError], what: str = "image") -> Tables:
    """Read the tables of an ELF file.

    Parameters
    ----------
    refuse
        What is raised, naming the file, for one that cannot be read or is none.
    what
        What it should be, for the refusal.
    """
    with reworded(OSError, refuse, f"{path}: cannot be read (", ")"):
        content = read_regular(Path(path), LARGEST_FILE_BYTES)
    if content[:4] != b"\x7fELF":
        raise refuse(f"{path}: not an ELF {what}; accepted: the linker's output, before objcopy")
    try:
        tables = read_tables(content)
        tables.symbols  # noqa: B018  (bounded while it is read)
    except struct.error as error:
        raise refuse(f"{path}: a damaged ELF file: it has {len(content):,} bytes, and its tables "
                     "lie behind them; accepted: the linker's output, whole") from error
    except ElfError as error:
        raise refuse(f"{path}: {error}") from error
    return tables


def read_tables(content: bytes) -> Tables:
    """Read the headers of a file.

    Raises
    ------
    ElfError
        When it is not little endian, or its tables are longer than a program's.
    struct.error
        When it is cut.
    """
    if content[4:6] not in (b"\1\1", b"\2\1"):
        raise ElfError("of no known class, or big endian; accepted: a little-endian program")
    header, segment, section, _ = _LAYOUTS[content[4]]
    (kind, machine, _, entry, first_segment, first_section, _, _, segment_bytes, segments,
     section_bytes, sections, names_in) = struct.unpack_from(header, content, 16)
    for what, count, most, size, form in (
            ("segments", segments, MOST_SEGMENTS, segment_bytes, segment),
            ("sections", sections, MOST_SECTIONS, section_bytes, section)):
        if count > most or (count and size < struct.calcsize(form)):
            raise ElfError(f"{count:,} {what} of {size} bytes; accepted: up to {most:,}")
    found = [struct.unpack_from(segment, content, first_segment + place * segment_bytes)
             for place in range(segments)]
    heads = [struct.unpack_from(section, content, first_section + place * section_bytes)
             for place in range(sections)]
    names_at = heads[names_in][4] if names_in < len(heads) else 0
    return Tables(
        content=content, bits=32 * content[4], kind=kind, machine=machine, entry=entry,
        segments=tuple(
            Segment(*(head[one] for one in _SEGMENT[content[4]])) for head in found),
        sections=tuple(Section(
            name=_read_text(content, names_at + head[0]), kind=head[1], flags=head[2],
            address=head[3], offset=head[4], size_bytes=head[5], link=head[6],
            entry_bytes=head[9]) for head in heads))


def _read_text(content: bytes, at: int) -> str:
    """Return the text at an offset; raises `ElfError` for one that is too long for a name."""
    end = content.find(b"\0", at, at + LONGEST_NAME)
    if end < 0 and at + LONGEST_NAME <= len(content):
        raise ElfError(f"a name of more than {LONGEST_NAME:,} characters")
    return content[at:max(end, at)].decode("utf-8", "replace")
