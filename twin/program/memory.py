"""The memories a program finds: its board's, filled with what its file loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwmodels.board.facts import Board
from twin.errors import ProgramError
from twin.program.elf import Elf

PAGE = 4096
DEVICES = ((0x40000000, 0x20000000), (0xE0000000, 0x100000))
"""Address and bytes of what is no memory: a part's peripherals, and the core's own."""
TRACED_CORES = {"cortex-m55": "cortex-m55", "cortex-m85": "cortex-m55"}
"""What QEMU emulates of each core that Unicorn does not run."""
LARGEST_BYTES = 512 << 20

Span = tuple[int, int]
"""First address, and the one behind the last."""


def map_memories(machine: Any, elf: Elf, board: Board, files: Mapping[int, bytes]
                 ) -> tuple[Span, ...]:
    """Give an emulator the board's memories and room for files; return the spans there are."""
    spans = [(one.address, one.address + one.size_bytes) for one in board.memories
             if one.address or one.role != "npu_ram"]
    spans += [(address, address + len(content)) for address, content in files.items()]
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
    return tuple((low, high) for low, high in merged)


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
