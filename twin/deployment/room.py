"""Room in a board's memories: which has enough, and what is said where none has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwmodels.board.facts import Board
from hwmodels.quantities import join_words
from twin.deployment.placement import check_fit


def find_roomy(board: Board, arena: str, needed_bytes: int) -> tuple[str, tuple[str, ...]]:
    """Return the arena's memory, or the next that holds the arena, with a note of it.

    Parameters
    ----------
    board : Board
        Whose memories of role tcm and sram are looked at.
    arena : str
        Memory it would be in.
    needed_bytes : int
        Of arena, requantisation parameters and the runtime's own.
    """
    default = board.memory(arena)
    if needed_bytes <= default.size_bytes:
        return arena, ()
    allowed = [memory for memory in board.memories if memory.role in ("tcm", "sram")]
    larger = [memory for memory in allowed if memory.size_bytes >= needed_bytes]
    if not larger:
        # Refused later, naming the roomiest.
        return max(allowed, key=lambda memory: memory.size_bytes, default=default).name, ()
    chosen = min(larger, key=lambda memory: (memory.role == "external_ram", memory.size_bytes))
    return chosen.name, (f"arena placed in {chosen.name}: {default.name} has "
                         f"{default.size_bytes:,} bytes, {needed_bytes:,} are needed",)


def check_room(network: str, board: Board, arena: str, needs: Mapping[str, int],
               holds: Sequence[tuple[str, str]]) -> None:
    """Refuse memories that are too small.

    Parameters
    ----------
    network : str
        For the error.
    board : Board
        Whose memories they are.
    arena : str
        Memory of the arena.
    needs : mapping of str to int
        Bytes needed by memory.
    holds : sequence of (str, str)
        Memory, and what it holds, in words.

    Raises
    ------
    DoesNotFitError
        Naming what, how much it needs and how much there is.
    """
    for memory, needed in needs.items():
        held = join_words([what for name, what in holds if name == memory])
        what = f"RAM ({held})" if memory == arena else held
        check_fit(f"{network}: {what}", needed, f"{memory} of {board.name}",
                  board.memory(memory).size_bytes)
