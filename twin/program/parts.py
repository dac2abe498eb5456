"""Whether a program looks linked for the board: what its file and its accesses tell of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.files import read_yaml
from twin.program.elf import Elf

CORE_REGISTERS = 0xE0000000
"""From here on registers are of the core, not of a part."""
_KIB = 1024
MOST_NAMED = 3


@lru_cache(maxsize=1)
def _shipped() -> Any:
    return read_yaml(Path(__file__).with_name("parts.yaml"))


def list_blocks(part: str) -> tuple[tuple[int, int], ...]:
    """Return where a part has peripherals: first addresses, and those behind the last.

    Parameters
    ----------
    part : str
        As board files name it; nothing is returned of one nobody listed.
    """
    told = _shipped().get(part)
    words = told["blocks_kib"].split() if told else ()
    pairs = (word.partition("-")[::2] for word in words)
    return tuple((int(low, 16) * _KIB, int(high, 16) * _KIB) for low, high in pairs)


def doubt_board(elf: Elf, board: Board, stack: int, touched: Sequence[tuple[int, str]]
                ) -> Iterator[str]:
    """Yield what speaks against a program being linked for a board, a line each.

    Parameters
    ----------
    elf : Elf
        The program.
    board : Board
        It was run on.
    stack : int
        Where its stack begins, by its vector table; 0 where it has none.
    touched : sequence of (int, str)
        Registers of peripherals it used, each with the place that did first.
    """
    blocks = list_blocks(board.soc)
    used = [one for one in touched if one[0] < CORE_REGISTERS]
    strange = [one for one in used if not any(low <= one[0] < high for low, high in blocks)]
    if blocks and strange:
        named = ", ".join(f"0x{address:08x} in {place}" for address, place in strange[:MOST_NAMED])
        yield (f"of another board? {len(strange)} of {len(used)} registers it used are of no "
               f"peripheral of an {board.soc}: {named}"
               + (" and more" if len(strange) > MOST_NAMED else ""))
    spans = [span for one in board.memories for span in one.spans]
    outside = [one for one in elf.parts
               if not any(low <= one.address < high for low, high in spans)]
    if outside:
        yield ("of another board? " + ", ".join(
            f"{one.name or 'a segment'} lies at 0x{one.address:08x}" for one in
            outside[:MOST_NAMED]) + f", where {board.name} has no memory")
    if stack % _KIB == 0 and _is_end_of_ram(elf, stack) and stack not in {
            high for _, high in spans}:
        yield (f"of another board? its stack begins at 0x{stack:08x}, as at the end of a RAM, and "
               f"no memory of {board.name} ends there")


def is_untold(board: Board, touched: Sequence[tuple[int, str]]) -> bool:
    """Whether a part's list is there, and the program used no register to hold against it."""
    return bool(list_blocks(board.soc)) and all(one[0] >= CORE_REGISTERS for one in touched)


def _is_end_of_ram(elf: Elf, stack: int) -> bool:
    """Whether a stack begins where nothing of the file lies: a linker script put it at an end."""
    return stack > 0 and not any(
        one.address < stack <= one.address + one.size_bytes
        or (one.address >= stack and one.address - stack < _KIB) for one in elf.parts)


def list_touched(elf: Elf, touched: Iterable[tuple[int, int]]) -> list[tuple[int, str]]:
    """Return registers with the names of the places that used them first, by address."""
    return [(word, elf.name_place(block)) for word, block in sorted(touched)]
