"""Where tensors live: the pool of an accelerator each buffer is in, and what spills.

Pools of one memory follow one another, so a buffer may begin in one and end in the next, as the
compiler's virtual pools let it. What finds no room in the pool asked for by name goes to the others
of its memory, those asked for by nothing else first; then to the next memory the accelerator
reaches, on the chip before outside it; weights that find none in theirs stay in the flash.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hwmodels.board.facts import Board
from hwmodels.frozen import NamedCounts, frozen
from hwmodels.schedule import Npu, Pool
from twin.deployment.memories import Buffer, Home, find_offset
from twin.deployment.placement import ArenaSlot
from twin.errors import DoesNotFitError

RAM_ROLES = ("npu_ram", "sram", "external_ram")
"""Memories activations may be in."""


@frozen
class Wish:
    """Where something is wanted: a memory, and a pool of it or None for any."""

    memory: str
    pool: str | None = None


@frozen
class Demand:
    """What looks for a place.

    Parameters
    ----------
    slots
        Activations and scratch with their lives, planned for one memory without bounds.
    constants : tuple of (int, int)
        Tensor and bytes of each that leaves the flash, in execution order.
    arena, weights
        Where the two are wanted.
    reserved
        Bytes of a memory kept for other things.
    layers
        Of the network: how long constants live.
    name
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


@frozen
class PoolPlan:
    """Every tensor's pool.

    Parameters
    ----------
    homes
        By tensor, of scratch by -1 - position; constants left in flash are not among them.
    used : tuple of (str, int)
        Bytes of each pool in use, up to the highest.
    spilled : tuple of (str, str, int, int)
        What spilled ("buffers", "weights") to which memory or pool, how many, how many bytes.
    """

    homes: Mapping[int, Home]
    used: NamedCounts
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

    def ends(self) -> Iterable[tuple[Pool, int]]:
        """Pools, and the offset each ends at."""
        end = 0
        for pool in self.pools:
            end += pool.size_bytes
            yield pool, end

    def home(self, buffer: Buffer) -> Home:
        pool = next((pool for pool, end in self.ends() if buffer.offset_bytes < end),
                    self.pools[-1])
        return Home(pool=pool.name, memory=pool.memory, address=self.address + buffer.offset_bytes)

    def stretch(self, first: Pool, last: Pool) -> _Window:
        """From a pool's first byte to the end of another."""
        ends = {pool.name: end for pool, end in self.ends()}
        return _Window(region=self, start=ends[first.name] - first.size_bytes,
                       end=min(ends[last.name], self.size_bytes))


@frozen
class _Window:
    """Offsets of a region something may be placed in."""

    region: _Region
    start: int
    end: int

    def after(self) -> _Window:
        """From the first pool on that nothing is in."""
        high = max((b.offset_bytes + b.size_bytes for b in self.region.placed
                    if b.offset_bytes < self.end), default=0)
        start = next((end for end in (0, *(end for _, end in self.region.ends()))
                      if end >= max(high, self.start)), self.end)
        return replace(self, start=start)


@frozen
class _Settled:
    """What has found a place, and what of it is not where it was wanted."""

    homes: dict[int, Home] = field(default_factory=dict)
    spilled: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def settle(self, what: str, buffer: Buffer, region: _Region, wish: Wish) -> None:
        region.placed.append(buffer)
        home = region.home(buffer)
        self.homes.update(dict.fromkeys(buffer.tensors, home))
        if home.memory != wish.memory or (wish.pool and home.pool != wish.pool):
            where = home.memory if home.memory != wish.memory else home.pool
            self.spill(what, where, buffer.size_bytes)

    def spill(self, what: str, where: str, size_bytes: int) -> None:
        self.spilled.setdefault((what, where), []).append(size_bytes)


def plan_pools(board: Board, npu: Npu, demand: Demand) -> PoolPlan:
    """Give every buffer a place.

    Parameters
    ----------
    demand
        What looks for a place.

    Returns
    -------
    PoolPlan
        The plan of one memory as it is where it fits there; else the largest buffers first,
        each at the lowest offset free over its life in the first memory with room. Constants come
        after, from the first pool on that no activation is in.

    Raises
    ------
    DoesNotFitError
        When a buffer finds no room anywhere.
    """
    regions, found = _make_regions(board, npu, demand), _Settled()
    _place_activations(demand, board, regions, found)
    activation_bytes = sum(used for _, used in _used(regions))
    weight_bytes = _place_constants(demand, board, regions, found)
    return PoolPlan(
        homes=found.homes, activation_bytes=activation_bytes, weight_bytes=weight_bytes,
        used=tuple(_used(regions)),
        spilled=tuple((*what, len(sizes), sum(sizes)) for what, sizes in found.spilled.items()))


def describe_spills(plan: PoolPlan) -> tuple[str, ...]:
    """Say what did not fit where it was wanted."""
    return tuple(f"pools: {count} of the {what}, {size:,} bytes, find no room where they are "
                 "wanted: " + ("left in flash" if where == "flash" else f"placed in {where}")
                 for what, where, count, size in plan.spilled)


def _place_activations(demand: Demand, board: Board, regions: Sequence[_Region],
                       found: _Settled) -> None:
    """Place the arena's buffers: as planned where they fit as one, else the largest first."""
    windows = _list_windows(regions, board, demand.arena, demand.weights)
    buffers, first = _gather(demand.slots), windows[0]
    fits = max((b.offset_bytes + b.size_bytes for b in buffers),
               default=0) <= first.end - first.start
    for buffer in buffers if fits else sorted(buffers, key=lambda b: (-b.size_bytes, b.first)):
        if fits:
            buffer.offset_bytes += first.start
        region = first.region if fits else _find_room(buffer, windows, demand.alignment_bytes)
        if region is None:
            rooms = ", ".join(f"{r.memory} {r.size_bytes:,}" for r in regions
                              if board.memory(r.memory).role in RAM_ROLES)
            raise DoesNotFitError(f"does not fit: {demand.name}: RAM (arena and runtime) needs a "
                                  f"buffer of {buffer.size_bytes:,} bytes beside those alive with "
                                  f"it; pools have, in bytes: {rooms}")
        found.settle("buffers", buffer, region, demand.arena)


def _place_constants(demand: Demand, board: Board, regions: Sequence[_Region],
                     found: _Settled) -> int:
    """Place constants in the memory they are wanted in; return bytes of those that found room."""
    weight_bytes = 0
    wanted = [window for window in _list_windows(regions, board, demand.weights, demand.arena)
              if window.region.memory == demand.weights.memory]
    clear = [window.after() for window in wanted]
    for tensor, size in demand.constants:
        buffer = Buffer(name="", tensors=[tensor], size_bytes=size, first=0, last=demand.layers)
        region = (_find_room(buffer, clear, demand.alignment_bytes)
                  or _find_room(buffer, wanted, demand.alignment_bytes))
        if region is None:
            found.spill("weights", "flash", size)
            continue
        found.settle("weights", buffer, region, demand.weights)
        weight_bytes += size
    return weight_bytes


def _make_regions(board: Board, npu: Npu, demand: Demand) -> list[_Region]:
    """Pools of a memory fill it up to its end: what is before them is not the accelerator's."""
    regions = []
    used = [pool for pool in npu.pools if pool.holds_buffers]
    for memory in dict.fromkeys(pool.memory for pool in used):
        pools = tuple(pool for pool in used if pool.memory == memory)
        whole, size = board.memory(memory), sum(pool.size_bytes for pool in pools)
        before = whole.size_bytes - size
        left = size - max(0, demand.reserved.get(memory, 0) - before)
        regions.append(_Region(pools=pools, address=whole.address + before,
                               size_bytes=max(0, left)))
    return regions


def _list_windows(regions: Sequence[_Region], board: Board, wish: Wish,
                  other: Wish) -> list[_Window]:
    """Where to look, in order: the pool asked for, its memory, the chip, outside it.

    In each memory the pools that something else asks for by name come last.
    """
    def rank(region: _Region) -> tuple[bool, bool, int]:
        role = board.memory(region.memory).role
        return region.memory != wish.memory, role == "external_ram", RAM_ROLES.index(role)

    windows = []
    for region in sorted((region for region in regions if board.memory(region.memory).role
                          in RAM_ROLES), key=rank):
        windows += [region.stretch(pool, pool) for pool in region.pools if pool.name == wish.pool]
        for taken, pools in itertools.groupby(region.pools, lambda p: p.name == other.pool):
            if not taken and other.pool != wish.pool:
                part = list(pools)
                windows.append(region.stretch(part[0], part[-1]))
        windows.append(region.stretch(region.pools[0], region.pools[-1]))
    return windows


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


def _find_room(buffer: Buffer, windows: Iterable[_Window], alignment_bytes: int) -> _Region | None:
    """Set a buffer's offset in the first window with room; return its region, None without one."""
    for window in windows:
        offset = find_offset(buffer, window.region.placed, alignment_bytes, window.start)
        if offset + buffer.size_bytes <= window.end:
            buffer.offset_bytes = offset
            return window.region
    return None


def _used(regions: Iterable[_Region]) -> Iterable[tuple[str, int]]:
    """Bytes of each pool up to the highest buffer that reaches into it."""
    for region in regions:
        for pool, end in region.ends():
            start = end - pool.size_bytes
            used = max((min(end, b.offset_bytes + b.size_bytes) - start for b in region.placed
                        if b.offset_bytes < end), default=0)
            if used > 0:
                yield pool.name, used
