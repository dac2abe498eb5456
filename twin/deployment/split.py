"""Arenas and weights in several memories, as tools that take pools place them, and what would fit.

A runtime's file says whether it may (`splits_memories`). What does not fit where it belongs goes on
in the memory beside the chip: buffers, the largest first; weights, where the largest stay on it.
Where something does not fit at all, an error names what would: another memory, or several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property

from hwmodels.board.facts import FLASH_ROLES, Board, Memory
from hwmodels.frozen import entity
from hwmodels.quantities import join_words
from twin.deployment.memories import Home, align
from twin.deployment.placement import Plan, constant_sizes, requantisation_bytes
from twin.network.graph import Graph
from twin.runtimes.runtime import Runtime

_LINE_BYTES = 32


def further_memories(board: Board, memory: str) -> tuple[str, ...]:
    """Return where what does not fit in a memory goes on; empty: nowhere.

    Notes
    -----
    The largest memory of its kind beside the chip; without one, RAM goes on in the other RAM of
    the chip, largest first.

    References
    ----------
    STMicroelectronics, stm32ai-modelzoo-services, common/deployment: for the STM32H747I-DISCO the
    pools of activations are AXI SRAM, then SDRAM; weights fill the internal flash and go on in the
    external one.
    """
    flash = board.memory(memory).role in FLASH_ROLES
    beside = [one for one in board.memories
              if one.name != memory and one.role == ("external_flash" if flash else "external_ram")]
    if beside or flash:
        return tuple(one.name for one in sorted(beside, key=lambda one: -one.size_bytes)[:1])
    return tuple(one.name for one in sorted(board.memories, key=lambda one: -one.size_bytes)
                 if one.name != memory and one.role in ("sram", "tcm"))


def describe_split(weights: Mapping[str, int], arena: Mapping[str, int]) -> tuple[str, ...]:
    """Say what lies where, in bytes by memory; nothing of what lies in one."""
    return tuple(f"{what} split, {how} (assumed): "
                 + ", ".join(f"{size:,} bytes in {name}" for name, size in parts.items())
                 for what, how, parts in (("arena", "each buffer in one memory", arena),
                                          ("weights", "the largest on the chip", weights))
                 if len(parts) > 1)


@entity
class SplitPlan(Plan):
    """The plan of a core whose buffers or weights lie in several memories.

    Parameters
    ----------
    board, runtime
        The machine, and the library.
    weights, arena
        Memories they fill, in order; one where they are not split.
    code
        Memory of the kernels' code.
    """

    graph: Graph
    board: Board
    runtime: Runtime
    weights: tuple[str, ...]
    arena: tuple[str, ...]
    code: str

    @cached_property
    def rooms(self) -> tuple[int, ...]:
        """Bytes for buffers in each memory of the arena; empty where it is one."""
        if len(self.arena) == 1:
            return ()
        taken = self.runtime.ram_bytes + self._parameters("arena")
        return tuple(max(0, (self._room(name) - taken * (name == self.arena[0]))
                         // _LINE_BYTES * _LINE_BYTES) for name in self.arena)

    @cached_property
    def homes(self) -> Mapping[int, Home]:
        """Every constant's own place, where the weights are split."""
        return {tensor: home for tensor, (home, _) in self._constants.items()}

    @cached_property
    def spilled(self) -> Mapping[str, int]:
        """Bytes of weights in each memory they go on in."""
        return {name: self._held(name) for name in self.weights[1:]}

    def _parameters(self, where: str) -> int:
        """Bytes of requantisation parameters, if that is where they are."""
        return sum(requantisation_bytes(self.graph, layer) for layer in self.graph.layers
                   ) if self.runtime.parameters_in == where else 0

    def _held(self, memory: str) -> int:
        return sum(size for home, size in self._constants.values() if home.memory == memory)

    def _code(self, memory: str) -> int:
        return align(self.runtime.code_bytes, _LINE_BYTES) if memory == self.code else 0

    def _room(self, memory: str) -> int:
        """Bytes of a memory that code and weights leave to buffers."""
        held = self._held(memory)
        if memory == self.weights[0]:
            held += self._parameters("weights")
            if len(self.weights) == 1:
                held += sum(constant_sizes(self.graph).values())
        return (self.board.memory(memory).size_bytes - self._code(memory)
                - align(held, _LINE_BYTES))

    @cached_property
    def _constants(self) -> Mapping[int, tuple[Home, int]]:
        """Place and aligned size of each constant: the largest stay, as long as there is room."""
        if len(self.weights) == 1:
            return {}
        taken = {name: self._code(name) for name in self.weights}
        room = {name: self.board.memory(name).size_bytes for name in taken}
        room[self.weights[0]] -= self._parameters("weights")
        sizes = constant_sizes(self.graph)
        placed = {}
        for tensor in sorted(sizes, key=lambda one: (-sizes[one], one)):
            memory = next((name for name in taken if taken[name] + sizes[tensor] <= room[name]),
                          self.weights[-1])
            address = self.board.memory(memory).address + taken[memory]
            placed[tensor] = Home(pool="", memory=memory, address=address), sizes[tensor]
            taken[memory] += sizes[tensor]
        return placed


_RAM_ROLES = ("tcm", "sram", "npu_ram", "external_ram")
_STORED_ROLES = ("flash", "external_flash", "external_ram")
_KEPT_ROLES = (*_STORED_ROLES, "sram")
"""Memories of weights where the board's file copies them to RAM before the first inference."""

Moves = list[tuple[str | None, str | None]]
"""Memories of weights and arena, None: where they are."""


def list_moves(board: Board, splits: bool, weights: str, arena: str) -> tuple[Moves, Moves]:
    """Return other places, nearest first: of arena or weights alone, and of both."""
    rams = [*_others(board, arena, _RAM_ROLES), *_splits(board, arena, splits)]
    stored = _STORED_ROLES if board.memory(weights).role in _STORED_ROLES else _KEPT_ROLES
    stores = [*_others(board, weights, stored), *_splits(board, weights, splits)]
    return ([*((None, one) for one in rams), *((one, None) for one in stores)],
            [(store, ram) for store in stores for ram in rams])


def name_nearest(board: Board, short: Mapping[tuple[str, str], Mapping[str, int]]) -> str:
    """Say which places of (weights, arena) lack least, of bytes short by memory of each."""
    weights, arena = min(short, key=lambda places: sum(short[places].values()) or math.inf)
    lacking = join_words([f"{count:,} bytes short in {name}"
                          for name, count in short[weights, arena].items()])
    return f"no other memory of {board.name} holds it" + (
        f"; nearest: weights in {weights}, arena in {arena}, {lacking}" if lacking else "")


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
