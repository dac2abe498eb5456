"""What a program leaves of each memory region: from its linker's map, or from its ELF file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os import fspath
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.files import File
from hwmodels.frozen import frozen
from hwmodels.isa import load_isa
from hwmodels.program.elf import ARENA, EXECUTABLE, read_elf_file
from twin.errors import ProgramError, UsageError

MOST_BYTES = 64 << 20
WEIGHTS = re.compile(r"model|weights|network", re.IGNORECASE)
"""Names of variables that hold a network's constants."""

_REGION = re.compile(r"^([\w.$-]+) +0x([0-9a-f]{1,16}) +0x([0-9a-f]{1,16})(?: +[xrwail!]+)?$",
                     re.MULTILINE | re.IGNORECASE)
_PART = re.compile(r"^( ?)(\.?[\w.$-]+)\s+0x([0-9a-f]{1,16})\s+0x([0-9a-f]{1,16})"
                   r"(?:\s+load address 0x([0-9a-f]{1,16}))?", re.MULTILINE | re.IGNORECASE)
_ARMLINK = re.compile(r"Execution Region (\S+) \((?:Exec base|Base): 0x([0-9a-f]{1,8}),"
                      r"(?: Load base: 0x[0-9a-f]{1,8},)?"
                      r" Size: 0x([0-9a-f]{1,8}), Max: 0x([0-9a-f]{1,8})",
                      re.IGNORECASE)
_NOT_STORED = (".bss", ".noinit", ".heap", ".stack")
"""Sections GNU ld gives a load address, though nothing is loaded."""
_NOT_LOADED = (".debug", ".comment", ".ARM.attributes", ".riscv.attributes", ".stab", ".note.GNU")

Span = tuple[int, int]
"""First address, and bytes."""

Program = tuple[list[tuple[str, Span]], list[Span], list[tuple[str, Span]]]
"""Regions by name, sections, and variables by name."""


@frozen
class Region:
    """A memory region and what a program takes of it.

    Parameters
    ----------
    name
        As the linker's script or the board's file calls it.
    start, size_bytes
        Its address and extent, as far as the board has memory there.
    stated_bytes
        Its extent as the linker's script states it.
    used_bytes
        Of the program's sections, where they run and where they are loaded from.
    arena_bytes, weights_bytes
        Of them, variables named as an arena, and as a network's constants.
    """

    name: str
    start: int
    size_bytes: int
    stated_bytes: int
    used_bytes: int
    arena_bytes: int = 0
    weights_bytes: int = 0

    @property
    def left_bytes(self) -> int:
        """What the program does not take; negative where it overflows the region."""
        return self.size_bytes - self.used_bytes


def read_regions(path: File, board: Board) -> tuple[Region, ...]:
    """Return the regions of a .map file of GNU ld or armlink, or of an ELF on a board.

    Raises
    ------
    UsageError
        For a file that is neither, cannot be read, or is too large.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"--map {path}: cannot be read: {error}") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"--map {path}: more than {MOST_BYTES >> 20} MiB; accepted: the map of "
                         "one program")
    if content.startswith(b"\x7fELF"):
        return _read_elf(path, board)
    text = content.decode(errors="replace").replace("\r\n", "\n")
    try:
        spaces, parts, named = _read_armlink(text) or _read_gnu(text)
    except UsageError as error:
        raise UsageError(f"--map {path}: {error}") from error
    if not spaces:
        raise UsageError(f"--map {path}: no memory regions in it; accepted: a map of GNU ld "
                         "(-Wl,-Map=) or armlink (--map), or a linked ELF file")
    return _share(spaces, parts, named, board)


def _read_armlink(text: str) -> Program | None:
    """Ignores which variables are arenas."""
    found = [(one[1], int(one[2], 16), int(one[3], 16), int(one[4], 16))
             for one in _ARMLINK.finditer(text)]
    return ([(name, (start, most)) for name, start, _, most in found],
            [(start, used) for _, start, used, _ in found], []) if found else None


def _read_gnu(text: str) -> Program:
    head, marked, body = text.partition("\nLinker script and memory map")
    spaces = [(found[1], (int(found[2], 16), int(found[3], 16)))
              for found in _REGION.finditer(head.partition("\nMemory Configuration")[2])
              if found[1] != "*default*"] if marked else []
    parts: list[Span] = []
    named: list[tuple[str, Span]] = []
    for inner, name, at, size, loaded in _PART.findall(body):
        span = (int(at, 16), int(size, 16))
        if inner:
            named.append((name, span))
        elif not name.startswith(_NOT_LOADED):
            parts += [span, *([(int(loaded, 16), span[1])]
                               if loaded and not name.startswith(_NOT_STORED) else [])]
    if spaces and "\nOUTPUT(" not in body:
        raise UsageError("cut short: no OUTPUT(...) line, which GNU ld writes after the sections; "
                         "accepted: the whole map")
    return spaces, parts, named


def _read_elf(path: File, board: Board) -> tuple[Region, ...]:
    file = read_elf_file(fspath(path), ProgramError, "linked program")
    if file.kind != EXECUTABLE or file.machine != load_isa(board.core.isa).code.elf_machine:
        raise UsageError(f"--map {path}: of type {file.kind} and machine {file.machine}; accepted: "
                         f"a linked program (type {EXECUTABLE}, EXEC) for the {board.core.model} "
                         f"of {board.name}")
    parts = [(one.address, one.size_bytes) for one in file.allocated]
    parts += [(one.loaded, one.file_bytes) for one in file.loads if one.loaded != one.runs]
    regions = _share([(memory.name, (memory.address, memory.size_bytes))
                      for memory in board.memories], parts, [
                          (one.name, (one.value, one.size_bytes)) for one in file.symbols
                          if not one.is_function], board)
    if not any(one.used_bytes for one in regions):
        raise UsageError(f"--map {path}: no section in a memory of {board.name}; accepted: a "
                         "program linked for it")
    return regions


def _share(spaces: Iterable[tuple[str, Span]], parts: Sequence[Span],
           named: Sequence[tuple[str, Span]], board: Board) -> tuple[Region, ...]:
    """Give each region what lies in it, and no more room than the board has memory there."""
    memories = [span for memory in board.memories for span in memory.spans]
    found = []
    for name, (start, stated) in spaces:
        there = sum(max(0, min(high, start + stated) - max(low, start)) for low, high in memories)
        found.append(Region(
            name=name, start=start, stated_bytes=stated, size_bytes=there or stated,
            used_bytes=_within(parts, start, stated),
            arena_bytes=_within([one for what, one in named if ARENA.search(what)], start, stated),
            weights_bytes=_within([one for what, one in named if WEIGHTS.search(what)], start,
                                  stated)))
    return tuple(found)


def _within(spans: Iterable[Span], start: int, size: int) -> int:
    return sum(length for at, length in dict.fromkeys(spans) if start <= at < start + size)
