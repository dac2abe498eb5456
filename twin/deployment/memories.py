"""Memories by the names people give them: of the board, of a role, of an accelerator's pool."""

from __future__ import annotations

from hwmodels.board.facts import MEMORY_ROLES, Board, Memory
from hwmodels.errors import did_you_mean
from twin.errors import PlacementError, UsageError


def choose_memory(board: Board, wanted: str) -> Memory:
    """Return the memory of that name, the one a pool is in, or the largest of that role.

    Raises
    ------
    UsageError, PlacementError
        When there is none, with the nearest names.
    """
    folded = _fold(wanted)
    for memory in board.memories:
        if _fold(memory.name) == folded:
            return memory
    pool = choose_pool(board, wanted)
    if pool is not None and board.npu is not None:
        return board.memory(board.npu.pool(pool).memory)
    of_role = [memory for memory in board.memories if _fold(memory.role) == folded]
    if not of_role:
        present = {memory.role for memory in board.memories}
        if folded not in map(_fold, MEMORY_ROLES):
            pools = () if board.npu is None else (pool.name for pool in board.npu.pools)
            known = {memory.name for memory in board.memories} | present | {*pools}
            raise UsageError(f"{board.name} has no memory {wanted!r}; "
                             + did_you_mean(wanted, known))
        raise PlacementError(f"{board.name} has no memory of role {wanted!r}; it has: "
                             + ", ".join(sorted(present)))
    return max(of_role, key=lambda memory: memory.size_bytes)


def choose_pool(board: Board, wanted: str) -> str | None:
    """Return the pool of the accelerator that is meant, None where none is."""
    pools = () if board.npu is None else board.npu.pools
    return next((pool.name for pool in pools if _fold(pool.name) == _fold(wanted)), None)


def _fold(name: str) -> str:
    """A name as it is compared: npu_ram, NPU-RAM and npuRAM are one."""
    return name.lower().replace("-", "").replace("_", "")
