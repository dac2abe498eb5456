"""Where tensors live: the pool of an accelerator each buffer is in, and what spills.

Pools of one memory follow one another, so a buffer may begin in one and end in the next, as the
compiler's virtual pools let it; where one of them is asked for by name, each stands alone. A buffer
that finds no room in the memory it was meant for goes to the next one the accelerator reaches, on
the chip before outside it; weights that find none stay in the flash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hwmodels.board.facts import Board
from hwmodels.npu import Npu, Pool
from twin.errors import DoesNotFitError
from twin.placement import ArenaSlot, Buffer, find_offset

RAM_ROLES = ("npu_ram", "sram", "external_ram")
"""Memories activations may be in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Where something is wanted: a memory, and a pool of it or None for any."""

    memory: str
    pool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What looks for a place.

    Parameters
    ----------
    slots : tuple of ArenaSlot
        Activations and scratch with their lives, planned for one memory without bounds.
    constants : tuple of (int, int)
        Tensor and bytes of each that leaves the flash, in execution order.
    arena, weights : Wish
        Where the two are wanted.
    reserved : mapping of str to int
        Bytes of a memory kept for other things.
    layers : int
        Of the network: how long constants live.
    alignment_bytes : int
        Of every buffer.
    name : str
        Of the network, for the error.
    """

    slots: tuple[ArenaSlot, ...]
    constants: tuple[tuple[int, int], ...]
    arena: Wish
    weights: Wish
    reserved: Mapping[str, int]
    layers: int
    alignment_bytes: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a tensor is."""

    pool: str
    memory: str
    address: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """Every tensor's pool.

    Parameters
    ----------
    homes : mapping of int to Home
        By tensor, of scratch by -1 - position; constants left in flash are not among them.
    used : tuple of (str, int)
        Bytes of each pool in use, up to the highest.
    activation_bytes, weight_bytes : int
        Of the above.
    spilled : tuple of (str, str, int, int)
        What spilled ("buffers", "weights") to which memory, how many, how many bytes.
    """

    homes: Mapping[int, Home]
    used: tuple[tuple[str, int], ...]
    activation_bytes: int
    weight_bytes: int
    spilled: tuple[tuple[str, str, int, int], ...]

    @property
    def names(self) -> Mapping[int, str]:
        """Pool by tensor."""
        return {tensor: home.pool for tensor, home in self.homes.items()}


@dataclass(slots=True, kw_only=True)
class _Region:
    """Pools that are filled as one, from an address on."""

    pools: tuple[Pool, ...]
    address: int
    size_bytes: int
    placed: list[Buffer] = field(default_factory=list)

    @property
    def memory(self) -> str:
        return self.pools[0].memory

    @property
    def high_bytes(self) -> int:
        return max((b.offset_bytes + b.size_bytes for b in self.placed), default=0)

    def ends(self) -> Iterable[tuple[Pool, int]]:
        """Pools, and the offset each ends at."""
        end = 0
        for pool in self.pools:
            end += pool.size_bytes
            yield pool, end

    def home(self, buffer: Buffer) -> Home:
        pool = next((pool for pool, end in self.ends() if buffer.offset_bytes < end),
                    self.pools[-1])
        return Home(pool=pool.name, memory=pool.memory,
                    address=self.address + buffer.offset_bytes)


def plan_pools(board: Board, npu: Npu, demand: Demand) -> PoolPlan:
    """Give every buffer a place.

    Parameters
    ----------
    board, npu
        The machine.
    demand : Demand
        What looks for a place.

    Returns
    -------
    PoolPlan
        The plan of one memory as it is where it fits its pools; else the largest buffers first,
        each at the lowest offset free over its life in the first memory with room. Constants come
        after, from the first pool on that no activation is in.

    Raises
    ------
    DoesNotFitError
        When a buffer finds no room anywhere.
    """
    regions = _make_regions(board, npu, demand)
    homes: dict[int, Home] = {}
    spilled: dict[tuple[str, str], list[int]] = {}
    order = _order(regions, board, demand.arena, demand.weights)
    buffers = _gather(demand.slots)
    fits = max((b.offset_bytes + b.size_bytes for b in buffers), default=0) <= order[0].size_bytes
    for buffer in buffers if fits else sorted(buffers, key=lambda b: (-b.size_bytes, b.first)):
        region = order[0] if fits else _find_room(buffer, order, demand.alignment_bytes)
        if region is None:
            rooms = ", ".join(f"{r.memory} {r.size_bytes:,}" for r in order)
            raise DoesNotFitError(f"does not fit: {demand.name}: RAM (arena and runtime) needs a "
                                  f"buffer of {buffer.size_bytes:,} bytes beside those alive with "
                                  f"it; pools have, in bytes: {rooms}")
        region.placed.append(buffer)
        homes |= dict.fromkeys(buffer.tensors, region.home(buffer))
        if region.memory != demand.arena.memory:
            spilled.setdefault(("buffers", region.memory), []).append(buffer.size_bytes)
    activation_bytes = sum(region.high_bytes for region in order)
    weight_bytes = 0
    wanted = [region for region in _order(regions, board, demand.weights, demand.arena)
              if region.memory == demand.weights.memory]
    starts = {id(region): min((end for _, end in region.ends() if end >= region.high_bytes),
                              default=0) if region.placed else 0 for region in wanted}
    for tensor, size in demand.constants:
        buffer = Buffer(name="", tensors=[tensor], size_bytes=size, first=0, last=demand.layers)
        region = (_find_room(buffer, wanted, demand.alignment_bytes, starts)
                  or _find_room(buffer, wanted, demand.alignment_bytes))
        if region is None:
            spilled.setdefault(("weights", "flash"), []).append(size)
            continue
        region.placed.append(buffer)
        homes[tensor] = region.home(buffer)
        weight_bytes += size
    return PoolPlan(
        homes=homes, activation_bytes=activation_bytes, weight_bytes=weight_bytes,
        used=tuple(_used(regions)),
        spilled=tuple((*what, len(sizes), sum(sizes)) for what, sizes in spilled.items()))


def _make_regions(board: Board, npu: Npu, demand: Demand) -> list[_Region]:
    """Pools of a memory fill it up to its end: what is before them is not the accelerator's."""
    regions = []
    for memory in dict.fromkeys(pool.memory for pool in npu.pools):
        pools = tuple(pool for pool in npu.pools if pool.memory == memory)
        whole = board.memory(memory)
        before = whole.size_bytes - sum(pool.size_bytes for pool in pools)
        left = sum(pool.size_bytes for pool in pools) - max(
            0, demand.reserved.get(memory, 0) - before)
        address = whole.address + before
        named = any(wish.memory == memory and wish.pool for wish in (demand.arena, demand.weights))
        for part in [(pool,) for pool in pools] if named else [pools]:
            size = sum(pool.size_bytes for pool in part)
            regions.append(_Region(pools=part, address=address,
                                   size_bytes=max(0, min(size, left))))
            address, left = address + size, left - size
    return regions


def _order(regions: Sequence[_Region], board: Board, wish: Wish, other: Wish) -> list[_Region]:
    """Regions as they are filled: the pool asked for, its memory, the chip, outside it."""
    able = [region for region in regions if board.memory(region.memory).role in RAM_ROLES]

    def rank(region: _Region) -> tuple[bool, bool, bool, bool, int]:
        names = [pool.name for pool in region.pools]
        role = board.memory(region.memory).role
        return (wish.pool not in names if wish.pool else False, region.memory != wish.memory,
                role == "external_ram", other.pool in names, RAM_ROLES.index(role))

    return sorted(able, key=rank)


def _gather(slots: Iterable[ArenaSlot]) -> list[Buffer]:
    """Buffers of an arena: slots that share one are one; those of streamed tensors are none."""
    found: dict[tuple[str, int, int, int], Buffer] = {}
    for slot in slots:
        if slot.size_bytes:
            key = (slot.name, slot.offset_bytes, slot.first_layer, slot.last_layer)
            found.setdefault(key, Buffer(
                name=slot.name, tensors=[], size_bytes=slot.size_bytes, first=slot.first_layer,
                last=slot.last_layer, offset_bytes=slot.offset_bytes)).tensors.append(slot.tensor)
    return list(found.values())


def _find_room(buffer: Buffer, regions: Sequence[_Region], alignment_bytes: int,
               starts: Mapping[int, int] | None = None) -> _Region | None:
    """The first region with room, the buffer's offset set; None without one."""
    for region in regions:
        start = 0 if starts is None else starts[id(region)]
        offset = find_offset(buffer, region.placed, alignment_bytes, start)
        if offset + buffer.size_bytes <= region.size_bytes:
            buffer.offset_bytes = offset
            return region
    return None


def _used(regions: Iterable[_Region]) -> Iterable[tuple[str, int]]:
    for region in regions:
        high = region.high_bytes
        for pool, end in region.ends():
            used = min(pool.size_bytes, high - (end - pool.size_bytes))
            if used > 0:
                yield pool.name, used
