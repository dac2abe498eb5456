"""The memories a program finds: its board's, filled with what its file loads."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from mmap import mmap
from typing import Any

from hwmodels.board.facts import FLASH_ROLES, Board, Span, Spans
from hwmodels.program.elf import lies_in
from hwmodels.program.emulator import import_unicorn, merge_pages
from twin.errors import ProgramError
from twin.program.elf import Elf
from twin.program.part import load_part

PAGE = 4096
READ_RUN, READ_WRITE_RUN = 5, 7
LARGEST_BYTES = 512 << 20
IMAGE_PAGE = 1 << 16
"""Of flash, as an MMU maps it to a program's constants."""
CONSTANTS = "_rodata_reserved_start"
"""Where those begin, in programs of ESP-IDF."""


Held = tuple[tuple[Span, mmap, int], ...]
"""Spans of memory, what of this process holds them, and what a program may do there."""


def map_memories(machine: Any, board: Board, files: Mapping[int, bytes]) -> Held:
    """Give an emulator the board's memories, some at several addresses, and room for files.

    What is flash is not written by a store; what the vendor writes is all ones, but for what the
    part's file states.
    """
    part = load_part(board.soc)
    known = [span for one in board.memories for span in one.spans]
    factory = [span for span in part.factory if not any(low < span[1] and span[0] < high
                                                        for low, high in known)]
    plain = [one for one in board.memories if not one.windows]
    flash = [span for one in plain if one.role in FLASH_ROLES for span in one.spans[:1]]
    ram = [span for one in plain if one.role not in FLASH_ROLES
           and (one.address or one.role != "npu_ram") for span in one.spans[:1]]
    loaded = [(address, address + len(content)) for address, content in files.items()
              if not lies_in(address, (*known, *factory))]
    held = [((low, high), mmap(-1, high - low), rights)
            for rights, spans in ((READ_WRITE_RUN, (*ram, *part.memory, *loaded)),
                                  (READ_RUN, (*factory, *flash)))
            for low, high in merge_pages(spans, PAGE)]
    if sum(high - low for (low, high), _, _ in held) > LARGEST_BYTES:
        raise ProgramError(f"{board.name}: more than {LARGEST_BYTES >> 20} MiB of memory")
    held += _map_windows(board)
    held += [((address, address + high - low), pages, rights)
             for address, base in part.windows.items()
             for (low, high), pages, rights in held if low == base]
    for (low, high), pages, rights in held:
        machine.mem_map_ptr(low, high - low, rights, address_of(pages))
    for low, high in factory:
        machine.mem_write(low, b"\xff" * (high - low))
    spans = [span for span, _, _ in held]
    for words, places in ((part.reset, factory), (part.factory_words, spans)):
        for address, word in words.items():
            if lies_in(address, places):
                machine.mem_write(address, word.to_bytes(4, "little"))
    return tuple(held)


def _map_windows(board: Board) -> list[tuple[Span, mmap, int]]:
    """List the memories that a program finds at several addresses, at each of them."""
    held = []
    for one in board.memories:
        if one.windows:
            size = -(-one.size_bytes // PAGE) * PAGE
            pages = mmap(-1, size)
            rights = READ_RUN if one.role in FLASH_ROLES else READ_WRITE_RUN
            held += [((low, low + size), pages, rights) for low, _ in one.spans]
    return held


def address_of(pages: mmap) -> int:
    """Return where in this process pages lie."""
    return ctypes.addressof(ctypes.c_char.from_buffer(pages))


def place_pieces(machine: Any, elf: Elf, spans: Spans, files: Mapping[int, bytes],
                 board: Board) -> None:
    """Load a program, and the files on top of it.

    Raises
    ------
    ProgramError
        When it is linked for addresses at which the board has no memory.
    """
    def fits(start: int, size: int) -> bool:
        return any(low <= start and start + size <= high for low, high in spans)

    for loaded, runs, content in elf.pieces:
        start = loaded if fits(loaded, len(content)) else runs
        if not fits(start, len(content)):
            raise ProgramError(
                f"{elf.path}: loads {len(content):,} bytes at 0x{loaded:08x}, where {board.name} "
                "has no memory; accepted: a program linked for this board")
        machine.mem_write(start, content)
    _place_header(machine, elf, board)
    for address, content in files.items():
        machine.mem_write(address, content)


def _place_header(machine: Any, elf: Elf, board: Board) -> None:
    """Put the header of a flash image before the constants of a program of ESP-IDF."""
    header, first = load_part(board.soc).image_header, elf.symbols.get(CONSTANTS, 0)
    if header and first:
        machine.mem_write(first - first % IMAGE_PAGE, header)


def find_vectors(machine: Any, elf: Elf, board: Board) -> tuple[int, int, int]:
    """Return where a program's vector table lies, the stack it begins with, and the first code.

    Raises
    ------
    ProgramError
        When no table has a stack in a memory of the board and code of the program.
    """
    ram = [span for one in board.memories for span in one.spans]
    for table in elf.vector_tables():
        try:
            stack, entry = struct.unpack("<II", machine.mem_read(table, 8))
        except import_unicorn().UcError:
            continue
        if entry & 1 and lies_in(entry, elf.code) \
                and any(low < stack <= high for low, high in ram):
            return table, stack, entry
    raise ProgramError(f"{elf.path}: no vector table whose stack is in a memory of "
                       f"{board.name}; accepted: a program linked for this board")
