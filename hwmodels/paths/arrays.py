"""Access statistics of kernels as a struct of arrays, for `hwmodels.paths.exposure`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from hwmodels.board.facts import Board, Cache
from hwmodels.cache import OperandCounts, OwnerCounts
from hwmodels.counts import order_of
from hwmodels.paths.exposure import Numbers, Steps, TrafficArrays
from hwmodels.paths.timing import Floats, Places
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.paths.ways import data_cache, lower_cache

Thing = TypeVar("Thing", bound=Hashable)

Line = tuple[int, str, str, str]
"""Kernel, event, place and operand."""

MOST_MERGED = 64
"""Sequences of lines whose order is kept."""


def lay_out(traffic: Sequence[KernelTraffic], board: Board, code_memory: str) -> TrafficArrays:
    """Return the arrays of kernels that ran one after another.

    Parameters
    ----------
    board
        They ran on, or one of the same geometry.
    code_memory
        What code is fetched from.
    """
    draft = _Draft(board, code_memory)
    for number, one in enumerate(traffic):
        draft.add(number, one)
    return draft.finish()


class _Draft:
    """Columns while kernels are added."""

    def __init__(self, board: Board, code_memory: str) -> None:
        self.board, self.code_memory = board, code_memory
        self.memories: list[str] = []
        self.fills: list[tuple[str, str]] = []
        self.write_backs: list[tuple[str, str]] = []
        self.caches: list[str] = []
        self.raw: list[Line] = []
        self.kept: list[int] = []
        self.broken: list[int] = []
        self.constant: list[tuple[float, float]] = []
        self.cycles: list[tuple[float, float]] = []
        self.hits: list[tuple[float, ...]] = []
        self.latent: list[tuple[float, ...]] = []
        self.flash_reads: list[tuple[float, ...]] = []
        self.conflicts: list[tuple[float, ...]] = []
        self.code: list[tuple[float, ...]] = []
        self.blocks: list[tuple[float, ...]] = []
        self.ranks: list[list[tuple[int, bool, int, int, int, int]]] = []
        self.rank = 0

    def add(self, kernel: int, traffic: KernelTraffic) -> None:
        """Add a kernel: what the core did, its data, its code."""
        self.kernel, self.rank, data = kernel, 0, traffic.data
        refills = data.counts.total("read_misses")
        self.cycles.append((traffic.core_cycles,
                            traffic.core_cycles / refills if refills else math.inf))
        for line in traffic.issued.lines:
            self.line(line.event, line.place, line.operand, line.occurred, line.exposed, kept=True)
        for operand, reads in zip(data.counts.operands, data.array_reads, strict=True):
            cache = data_cache(self.board, self.board.memory(operand.memory))
            if not (operand.reads or operand.writes):
                continue
            if cache is None:
                self.add_direct(operand, reads)
            else:
                self.add_looked_up(operand, cache)
        for owner in data.counts.owners:
            self.add_owner(owner)
        for name, first, counts in data.lower:
            cache, upper = self.cache(name), self.cache(first)
            for operand in counts.operands:
                self.add_fills(operand, cache, upper)
            for owner in counts.owners:
                self.add_write_back(owner, cache)
        self.add_code(traffic)
        for line in traffic.waits:
            self.line(line.event, line.place, line.operand, line.occurred, line.exposed, kept=True)

    def line(self, event: str, place: str, operand: str, occurred: float = 0,
             exposed: float = 0, *, kept: bool = False) -> int:
        """Add a raw line and return its column."""
        column = len(self.raw)
        self.raw.append((self.kernel, event, place, operand))
        self.constant.append((occurred, exposed))
        if kept:
            self.kept.append(column)
        if not isinstance(occurred, int):
            self.broken.append(column)
        return column

    def cache(self, name: str) -> Cache:
        """Return a cache of the board that was looked up."""
        cache = self.board.cache(name)
        assert cache is not None, f"{name} was looked up"
        return cache

    def add_direct(self, operand: OperandCounts, reads: int) -> None:
        """Add the accesses of an operand no cache holds."""
        memory, role = self.board.memory(operand.memory), operand.role
        accesses = operand.reads + operand.writes
        place = _number(self.memories, memory.name)
        if memory.role == "tcm":
            self.line("tcm_access", memory.name, role, accesses)
        elif memory.role in ("external_ram", "external_flash"):
            self.line("external_wait", memory.name, role, accesses, accesses)
        elif memory.role == "flash":
            # Every access crosses the bus; only those that leave the latched line read the array.
            self.flash_reads.append((self.line("flash_wait", memory.name, role, 0.0), place, reads,
                                accesses))
        else:
            self.line("sram_access", memory.name, role, accesses)
            self.latent.append((self.line("sram_wait", memory.name, role), place, accesses))

    def add_looked_up(self, operand: OperandCounts, cache: Cache) -> None:
        """Add the look-ups of an operand in the first cache, and its misses there."""
        memory, role = operand.memory, operand.role
        touches = operand.read_touches + operand.write_touches
        self.hits.append((self.line("dcache_access", cache.name, role, touches),
                          _number(self.caches, cache.name), touches))
        if operand.write_throughs:
            self.line("write_through", memory, role, operand.write_throughs)
        below = lower_cache(self.board, cache, self.board.memory(memory))
        if below is None:
            self.add_fills(operand, cache, cache)
            return
        for event, misses in (("dcache_read_refill", operand.read_misses),
                              ("dcache_write_refill", operand.write_misses)):
            if misses:
                waited = event == "dcache_read_refill" or _waits_for_stores(cache)
                self.line(event, below.name, role, misses, misses if waited else 0)

    def add_fills(self, operand: OperandCounts, cache: Cache, first: Cache) -> None:
        """Add lines filled from memory; `first` says whether a store waits for its line."""
        memory, role = operand.memory, operand.role
        if operand.write_misses:
            self.line("dcache_write_refill", memory, role, operand.write_misses,
                      operand.write_misses if _waits_for_stores(first) else 0)
        if operand.read_misses:
            _number(self.memories, memory)
            self.step(True, _number(self.fills, (cache.name, memory)), operand.read_misses,
                      self.line("dcache_read_refill", memory, role),
                      self.line("flash_wait", memory, role, 0.0))

    def add_owner(self, owner: OwnerCounts) -> None:
        """Add dirty lines that had to leave the first cache."""
        if not owner.write_backs:
            return
        memory = self.board.memory(owner.memory)
        cache = data_cache(self.board, memory)
        assert cache is not None, f"a line of {memory.name} was in a cache"
        below = lower_cache(self.board, cache, memory)
        if below is not None:
            self.line("write_back", below.name, owner.role, owner.write_backs)
        else:
            self.add_write_back(owner, cache)

    def add_write_back(self, owner: OwnerCounts, cache: Cache) -> None:
        """Add dirty lines written to memory."""
        if owner.write_backs:
            self.step(False, _number(self.write_backs, (cache.name, owner.memory)),
                      owner.write_backs, self.line("write_back", owner.memory, owner.role), 0)

    def step(self, fills: bool, place: int, events: int, line: int, waits: int) -> None:
        """Add what uses up the core's own cycles, behind what did before."""
        if self.rank == len(self.ranks):
            self.ranks.append([])
        self.ranks[self.rank].append((self.kernel, fills, place, events, line, waits))
        self.rank += 1

    def add_code(self, traffic: KernelTraffic) -> None:
        """Add instructions fetched, and data that meets them in a bank."""
        code, memory = traffic.code, self.code_memory
        if code.misses:
            self.code.append((self.line("icache_refill", memory, "", code.misses), code.misses))
        if code.blocks:
            column = self.line("fetch_wait", memory, "", 0.0)
            self.blocks += [(self.kernel, column, block.size_bytes, block.trips, block.entries,
                             block.pass_cycles) for block in code.blocks]
        if not traffic.core_cycles:
            return
        for operand, same in zip(traffic.data.counts.operands, code.shared, strict=False):
            if operand.memory == memory and not operand.cached:
                self.conflicts.append((
                    self.line("sram_conflict", memory, operand.role, 0.0), code.fetched_bytes,
                    traffic.core_cycles, operand.reads + operand.writes, same))

    def finish(self) -> TrafficArrays:
        """Return the arrays: lines merged kernel by kernel, steps by their place in a kernel."""
        order, slots, merges = _merge_lines(tuple(self.raw))
        kept, whole = np.zeros(len(order), dtype=bool), np.ones(len(order), dtype=bool)
        kept[slots[self.kept]] = True
        whole[slots[self.broken]] = False
        core_cycles, between = _columns(self.cycles, 2)
        return TrafficArrays(
            places=Places(memories=tuple(self.memories), fills=tuple(self.fills),
                          write_backs=tuple(self.write_backs), caches=tuple(self.caches),
                          code=self.code_memory),
            kernels=len(self.cycles), lines=order, kept=kept, whole=tuple(whole.tolist()),
            constant=_columns(self.constant, 2), merges=merges,
            core_cycles=core_cycles, between=between,
            hits=_columns(self.hits, 3), latent=_columns(self.latent, 3),
            flash_reads=_columns(self.flash_reads, 4), conflicts=_columns(self.conflicts, 5),
            code=_columns(self.code, 2), blocks=_columns(self.blocks, 6),
            steps=tuple([_steps(chosen, fills) for rank in self.ranks for fills in (True, False)
                         if (chosen := [step for step in rank if step[1] == fills])]))


@lru_cache(maxsize=MOST_MERGED)
def _merge_lines(raw: tuple[Line, ...]) -> tuple[
        tuple[Line, ...], Numbers, tuple[tuple[Numbers, Numbers], ...]]:
    """Return raw lines merged and in order, where each is among those, and `TrafficArrays.merges`.

    They are the same under most replacement policies and of most sizes of a cache.
    """
    order = tuple(sorted(set(raw), key=lambda key: (key[0], *order_of(*key[1:]))))
    slot = {key: number for number, key in enumerate(order)}
    slots, met = [slot[key] for key in raw], [0] * len(order)
    merges: list[tuple[list[int], list[int]]] = []
    for column, at in enumerate(slots):
        if met[at] == len(merges):
            merges.append(([], []))
        columns, merged = merges[met[at]]
        columns.append(column)
        merged.append(at)
        met[at] += 1
    return order, np.array(slots, dtype=np.int64), tuple(
        [(np.array(columns), np.array(merged)) for columns, merged in merges])


def _steps(rows: Sequence[tuple[int, bool, int, int, int, int]], fills: bool) -> Steps:
    kernels, _, places, events, lines, waits = (np.array(column) for column in zip(
        *rows, strict=True))
    return Steps(kernels=kernels, places=places, events=events.astype(np.float64), lines=lines,
                 waits=waits, fills=fills)


def _columns(rows: Sequence[Sequence[float]], width: int) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(-1, width).T


def _number(known: list[Thing], one: Thing) -> int:
    """Return the place of a thing in a list, at whose end it is put where it is new."""
    if one not in known:
        known.append(one)
    return known.index(one)


def _waits_for_stores(first: Cache) -> bool:
    """Whether the core waits while a line is filled for a store, at whatever level.

    A write-back cache takes a store that misses into its buffer; one that does not allocate
    passes it on behind the core.
    """
    return first.write == "through" and first.allocate == "read_write"
