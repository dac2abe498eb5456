"""Whether a program looks linked for the board: what its file and its accesses tell of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hwmodels.board.facts import Board
from hwmodels.program.elf import lies_in
from twin.program.elf import Elf
from twin.program.part import load_part
from twin.program.peripherals import CORE_REGISTERS

MOST_NAMED = 3
_PAGE = 1024


def doubt_board(elf: Elf, board: Board, touched: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield what speaks against a program being linked for a board, a line each.

    Parameters
    ----------
    touched : sequence of (int, str)
        Registers of peripherals it used, each with the place that did first.
    """
    part = load_part(board.soc)
    blocks = (*part.blocks, *((base, base + _PAGE) for base in part.names))
    used = [one for one in touched if one[0] < CORE_REGISTERS]
    strange = [one for one in used if not lies_in(one[0], blocks)]
    if part.blocks and strange:
        named = ", ".join(f"0x{address:08x} in {place}" for address, place in strange[:MOST_NAMED])
        yield (f"of another board? {len(strange)} of {len(used)} registers it used are of no "
               f"peripheral of an {board.soc}: {named}"
               + (" and more" if len(strange) > MOST_NAMED else ""))
    spans = [span for one in board.memories for span in one.spans]
    outside = [one for one in elf.parts if not lies_in(one.address, spans)]
    if outside:
        yield ("of another board? " + ", ".join(
            f"{one.name or 'a segment'} lies at 0x{one.address:08x}" for one in
            outside[:MOST_NAMED]) + f", where {board.name} has no memory")


def is_unconfirmed(board: Board, touched: Sequence[tuple[int, str]]) -> bool:
    """Whether a part's list is there, and the program used no register to hold against it."""
    return bool(load_part(board.soc).blocks) and all(one[0] >= CORE_REGISTERS for one in touched)


def list_touched(elf: Elf, touched: Iterable[tuple[int, int]]) -> list[tuple[int, str]]:
    """Return registers with the names of the places that used them first, by address."""
    return [(word, elf.name_place(block)) for word, block in sorted(touched)]
