"""Whether a program looks linked for the board: what its file and its accesses tell of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwmodels.board.facts import Board
from hwmodels.program.elf import lies_in
from twin.program.elf import Elf
from twin.program.part import load_part
from twin.program.peripherals import CORE_REGISTERS

MOST_NAMED = 3
_PAGE = 1024


def doubt_board(elf: Elf, board: Board, touched: Mapping[int, int]) -> Iterator[str]:
    """Yield what speaks against a program being linked for a board, or that nothing could tell.

    Parameters
    ----------
    touched
        Registers of peripherals it used, each with the code that did first.
    """
    part = load_part(board.soc)
    blocks = (*part.blocks, *((base, base + _PAGE) for base in part.names))
    used = [one for one in sorted(touched) if one < CORE_REGISTERS]
    strange = [one for one in used if not lies_in(one, blocks)]
    if part.blocks and strange:
        named = ", ".join(f"0x{one:08x} in {elf.name_place(touched[one])}"
                          for one in strange[:MOST_NAMED])
        yield (f"of another board? {len(strange)} of {len(used)} registers it used are of no "
               f"peripheral of an {board.soc}: {named}"
               + (" and more" if len(strange) > MOST_NAMED else ""))
    spans = [span for one in board.memories for span in one.spans]
    outside = [one for one in elf.parts if not lies_in(one.address, spans)]
    if outside:
        yield ("of another board? " + ", ".join(
            f"{one.name or 'a segment'} lies at 0x{one.address:08x}" for one in
            outside[:MOST_NAMED]) + f", where {board.name} has no memory")
    elif not (part.blocks and used):
        yield ("not checked whether it is of another board: " + (
            "up to the end of the billed part no use of a peripheral was seen to hold against an "
            f"{board.soc}" if part.blocks else
            f"which peripherals an {board.soc} has is not listed")
            + ", and all of it lies in the board's memories")
