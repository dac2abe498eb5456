"""The memories a program finds: its board's, filled with what its file loads."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from mmap import mmap
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.program.emulator import merge_pages
from twin.errors import ProgramError
from twin.program.elf import Elf

PAGE = 4096
READ_WRITE_RUN = 7
LARGEST_BYTES = 512 << 20

Span = tuple[int, int]
"""First address, and the one behind the last."""


Held = tuple[tuple[Span, mmap], ...]
"""Spans of memory, and what of this process holds them."""


def map_memories(machine: Any, board: Board, files: Mapping[int, bytes]) -> Held:
    """Give an emulator the board's memories, some at several addresses, and room for files."""
    shared = [span for one in board.memories if one.windows for span in one.spans]
    spans = [(one.address, one.address + one.size_bytes) for one in board.memories
             if not one.windows and (one.address or one.role != "npu_ram")]
    spans += [(address, address + len(content)) for address, content in files.items()
              if not any(low <= address < high for low, high in shared)]
    merged = merge_pages(spans, PAGE)
    if sum(high - low for low, high in merged) > LARGEST_BYTES:
        raise ProgramError(f"{board.name}: more than {LARGEST_BYTES >> 20} MiB of memory")
    held = [((low, high), mmap(-1, high - low)) for low, high in merged]
    for one in board.memories:
        if one.windows:
            size = -(-one.size_bytes // PAGE) * PAGE
            pages = mmap(-1, size)
            held += [((low, low + size), pages) for low, _ in one.spans]
    for (low, high), pages in held:
        machine.mem_map_ptr(low, high - low, READ_WRITE_RUN, address_of(pages))
    return tuple(held)


def address_of(pages: mmap) -> int:
    """Return where in this process pages lie."""
    return ctypes.addressof(ctypes.c_char.from_buffer(pages))


def place_pieces(machine: Any, elf: Elf, spans: tuple[Span, ...], files: Mapping[int, bytes],
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
    for address, content in files.items():
        machine.mem_write(address, content)
