"""Memories by the names people give them, and which buffers leave one that has no room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hwmodels.board.facts import MEMORY_ROLES, Board, Memory
from hwmodels.errors import did_you_mean
from hwmodels.frozen import frozen
from hwmodels.quantities import join_words
from twin.errors import DoesNotFitError, PlacementError, UsageError


@dataclass(slots=True, kw_only=True)
class Buffer:
    """A buffer waiting for its place; grows as aliases and in-place outputs join it."""

    name: str
    tensors: list[int]
    size_bytes: int
    first: int
    last: int
    offset_bytes: int = -1


@frozen
class Home:
    """Where a tensor is that is placed by itself: pool, memory, address."""

    pool: str
    memory: str
    address: int


def align(size_bytes: int, alignment_bytes: int) -> int:
    """Round a size up to a multiple of the alignment."""
    return -(-size_bytes // alignment_bytes) * alignment_bytes


def place_greedily(requests: Sequence[Buffer], alignment_bytes: int,
                   order: Sequence[int] = ()) -> None:
    """Set offsets in order, by size if none is given: each the lowest free over its whole life."""
    beside = list_neighbours(requests)
    placed: set[int] = set()
    by_size = sorted(range(len(requests)),
                     key=lambda i: (-requests[i].size_bytes, requests[i].first, i))
    for i in order or by_size:
        requests[i].offset_bytes = find_offset(
            requests[i], (requests[j] for j in beside[i] if j in placed), alignment_bytes)
        placed.add(i)


def list_neighbours(buffers: Sequence[Buffer]) -> list[list[int]]:
    """For each buffer those alive with it; the work is that of the pairs there are."""
    beside: list[list[int]] = [[] for _ in buffers]
    alive: list[int] = []
    for i in sorted(range(len(buffers)), key=lambda i: buffers[i].first):
        alive = [j for j in alive if buffers[j].last >= buffers[i].first]
        for j in alive:
            beside[i].append(j)
            beside[j].append(i)
        alive.append(i)
    return beside


def find_offset(buffer: Buffer, placed: Iterable[Buffer], alignment_bytes: int,
                start_bytes: int = 0) -> int:
    """Return the lowest offset, from `start_bytes` on, free over the whole life of a buffer."""
    size = align(buffer.size_bytes, alignment_bytes)
    offset = start_bytes
    for other in sorted((other for other in placed
                         if other.first <= buffer.last and buffer.first <= other.last),
                        key=lambda other: other.offset_bytes):
        if offset + size <= other.offset_bytes:
            break
        offset = max(offset, other.offset_bytes + align(other.size_bytes, alignment_bytes))
    return offset


def check_fit(what: str, needed_bytes: int, memory: str, available_bytes: int,
              short: Mapping[str, int] = MappingProxyType({})) -> None:
    """Refuse a placement that does not fit; `short`: bytes lacking, by memory.

    Raises
    ------
    DoesNotFitError
        Naming what, how much it needs and how much there is.
    """
    if needed_bytes > available_bytes:
        raise DoesNotFitError(
            f"does not fit: {what} needs {needed_bytes:,} bytes, "
            f"{memory} has {available_bytes:,} bytes", short)


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


def choose_memories(board: Board, split: bool, what: str, wanted: str) -> tuple[str, ...]:
    """Return the names of memories joined by "+", as `choose_memory` finds each.

    Parameters
    ----------
    split
        Whether they may be several.
    what
        What is placed, "arena" or "weights".
    wanted
        "sram", "sram+sdram".

    Raises
    ------
    UsageError, PlacementError
        When there is none of a name, or several where one is accepted.
    """
    names = tuple(choose_memory(board, one.strip()).name for one in wanted.split("+"))
    if len(names) > 1 and not split:
        raise PlacementError(f"placement.{what}: {wanted!r} are several memories; accepted with "
                             "this runtime: one")
    if len(set(names)) < len(names):
        raise UsageError(f"placement.{what}: {wanted!r} names {names[0]} twice")
    return names


def choose_pool(board: Board, wanted: str) -> str | None:
    """Return the pool of the accelerator that is meant, None where none is."""
    pools = () if board.npu is None else board.npu.pools
    return next((pool.name for pool in pools if _fold(pool.name) == _fold(wanted)), None)


def find_roomy(board: Board, arena: str, needed_bytes: int) -> tuple[str, tuple[str, ...]]:
    """Return the arena's memory, or the next that holds the arena, with a note of it.

    Parameters
    ----------
    board
        Whose memories of role tcm and sram are looked at.
    arena
        Memory it would be in.
    needed_bytes
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
    needs
        Bytes needed by memory.
    holds : sequence of (str, str)
        Memory, and what it holds, in words.

    Raises
    ------
    DoesNotFitError
        Naming what, how much it needs and how much there is.
    """
    short = {memory: needed - size for memory, needed in needs.items()
             if needed > (size := board.memory(memory).size_bytes)}
    for memory in sorted(short, key=lambda name: -short[name]):
        held = join_words([what for name, what in holds if name == memory])
        what = f"RAM ({held})" if memory == arena else held
        check_fit(f"{network}: {what}", needs[memory], f"{memory} of {board.name}",
                  board.memory(memory).size_bytes, short)


def _fold(name: str) -> str:
    """Return a name as it is compared: npu_ram, NPU-RAM and npuRAM are one."""
    return name.lower().replace("-", "").replace("_", "")


_COMING_BACK = 32
"""Of the buffers that left, so many are tried again."""


LayOut = Callable[[Sequence[Buffer]], int]
"""Places buffers in one memory, and returns the bytes they take."""


def spread_buffers(buffers: Sequence[Buffer], rooms: Sequence[int],
                   lay_out: LayOut) -> tuple[int, ...]:
    """Give every buffer one of several memories and a place in it.

    Parameters
    ----------
    buffers
        Their `offset_bytes` is set; offsets go on from one memory to the next.
    rooms
        Bytes of each memory, best first; the last takes what is left.
    lay_out
        Sets offsets of some buffers, from 0 on, and returns the bytes they take.

    Returns
    -------
    tuple of int
        Bytes used of each memory.

    Notes
    -----
    The largest buffers leave a memory until the others have room in it; then those come back, again
    the largest first, that still have. How ST's tools choose is not known.
    """
    left = list(buffers)
    parts: list[int] = []
    for room in rooms[:-1]:
        kept, out = _fill(left, room, lay_out)
        parts.append(_move(kept, sum(parts), lay_out))
        left = out
    parts.append(_move(left, sum(parts), lay_out))
    return tuple(parts)


def _fill(buffers: Sequence[Buffer], room: int, lay_out: LayOut,
          ) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers that stay in a memory, and those that leave it."""
    order = sorted(buffers, key=lambda one: (-one.size_bytes, one.first))
    fewest, most = sum(one.size_bytes > room for one in order), len(order)
    while fewest < most:
        leaving = (fewest + most) // 2
        fewest, most = ((fewest, leaving) if lay_out(order[leaving:]) <= room
                        else (leaving + 1, most))
    kept, out = order[fewest:], order[:fewest]
    for one in [one for one in out if one.size_bytes <= room][:_COMING_BACK]:
        if lay_out([*kept, one]) <= room:
            kept.append(one)
            out.remove(one)
    return kept, out


def _move(buffers: Sequence[Buffer], start: int, lay_out: LayOut) -> int:
    used = lay_out(buffers)
    for one in buffers:
        one.offset_bytes += start
    return used
