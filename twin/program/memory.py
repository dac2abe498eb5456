"""The memories a program finds: its board's, filled with what its file loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ctypes import addressof, c_char
from mmap import mmap
from typing import Any

from hwmodels.board.facts import Board
from twin.errors import ProgramError
from twin.program.elf import Elf

PAGE = 4096
READ_WRITE_RUN = 7
TRACED_CORES = {"cortex-m55": "cortex-m55", "cortex-m85": "cortex-m55"}
"""What QEMU emulates of each core that Unicorn does not run."""
LARGEST_BYTES = 512 << 20

Span = tuple[int, int]
"""First address, and the one behind the last."""


def map_memories(machine: Any, elf: Elf, board: Board, files: Mapping[int, bytes]
                 ) -> tuple[Span, ...]:
    """Give an emulator the board's memories and room for files; return the spans there are."""
    shared = [span for one in board.memories if one.windows for span in one.spans]
    spans = [(one.address, one.address + one.size_bytes) for one in board.memories
             if not one.windows and (one.address or one.role != "npu_ram")]
    spans += [(address, address + len(content)) for address, content in files.items()
              if not any(low <= address < high for low, high in shared)]
    merged: list[list[int]] = []
    for low, high in sorted((low // PAGE * PAGE, -(-high // PAGE) * PAGE) for low, high in spans):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    if sum(high - low for low, high in merged) > LARGEST_BYTES:
        raise ProgramError(f"{board.name}: more than {LARGEST_BYTES >> 20} MiB of memory")
    for low, high in merged:
        machine.mem_map(low, high - low)
    return (*((low, high) for low, high in merged), *_map_windows(machine, board))


def _map_windows(machine: Any, board: Board) -> Iterator[Span]:
    """Give an emulator memories that answer at several addresses; yield where."""
    for one in board.memories:
        if one.windows:
            size = -(-one.size_bytes // PAGE) * PAGE
            content = mmap(-1, size)
            machine.twin_windows = [*getattr(machine, "twin_windows", ()), content]
            at = addressof((c_char * size).from_buffer(content))
            for low, _ in one.spans:
                machine.mem_map_ptr(low, size, READ_WRITE_RUN, at)
                yield low, low + size


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
