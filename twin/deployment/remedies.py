"""What would fit, where something does not: another memory, or several where a runtime splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hwmodels.board.facts import Board, Memory
from twin.deployment.split import further_memories

_RAM_ROLES = ("tcm", "sram", "npu_ram", "external_ram")
_STORED_ROLES = ("flash", "external_flash", "external_ram")

Fits = Callable[[str | None, str | None], bool]
"""(weights, arena), None: where they are now -> whether everything has room."""


def name_remedy(board: Board, *, splits: bool, weights: str, arena: str, fits: Fits) -> str:
    """Say which memory, or which split, would hold what does not fit.

    Parameters
    ----------
    board : Board
        The machine.
    splits : bool
        Whether the runtime may use several memories.
    weights, arena : str
        Where they are.
    fits : callable
        Tries a placement.

    Returns
    -------
    str
        A clause for the error.

    Notes
    -----
    Memories of the chip come first, then those beside it, then splits; the arena is moved alone,
    then the weights, then both.
    """
    rams = [*_others(board, arena, _RAM_ROLES), *_splits(board, arena, splits)]
    stores = [*_others(board, weights, _STORED_ROLES), *_splits(board, weights, splits)]
    for store, ram in (*((None, one) for one in rams), *((one, None) for one in stores),
                       *((store, ram) for store in stores for ram in rams)):
        if fits(store, ram):
            told = [f"--set placement.{what}={name}"
                    for what, name in (("weights", store), ("arena", ram)) if name is not None]
            return f"with {' '.join(told)} it fits"
    return f"no other memory of {board.name} holds it"


def _others(board: Board, memory: str, roles: tuple[str, ...]) -> Iterator[str]:
    """Names of other memories of some roles: chip, flash beside it, RAM; the largest first."""
    def rank(one: Memory) -> tuple[bool, bool, int]:
        return one.role.startswith("external"), one.role == "external_ram", -one.size_bytes

    for one in sorted(board.memories, key=rank):
        if one.role in roles and one.name != memory:
            yield one.name


def _splits(board: Board, memory: str, splits: bool) -> Iterator[str]:
    if splits and (further := further_memories(board, memory)):
        yield "+".join((memory, *further))
