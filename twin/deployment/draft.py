"""A draft: a network with memories named for it, before anybody checked that it fits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol, Self

from hwmodels.board.facts import FLASH_ROLES, Board, Memory
from hwmodels.file_cache import Same
from hwmodels.frozen import NamedTexts, entity
from twin.deployment.arena import Arena, plan_arena
from twin.deployment.placement import Fusion, Placement, Plan, plan_placement
from twin.errors import UsageError
from twin.network.graph import Graph
from twin.runtimes import Runtime, tflm
from twin.runtimes.targets import load_target

if TYPE_CHECKING:
    from hwmodels.bus.contention import Load
    from twin.deployment.changes import WhatIf
    from twin.deployment.transfers import Buffers, Transfers

KEPT = "kept_to_be_copied"
"""Part of the RAM: what start-up copies from RAM to RAM, where it is kept."""

MOST_KEPT = 16
"""Networks and memory plans, for the next deployment of the same; each holds its constants."""


@entity
class Draft:
    """A network on a board under a runtime, and the memories named for it.

    Parameters
    ----------
    graph
        The network as its file states it.
    board
        With clocks and voltage as deployed.
    runtime
        Kernel library.
    notes
        Choices made on the way that a reader should know of.
    chosen
        Those of `notes` on the choice of the runtime, dropped with it.
    host
        Operators, or indices of layers, kept on the host core of an accelerator.
    weight_bits
        Width convolution weights are narrowed to; None: as the file states them.
    loads
        What other masters do meanwhile.
    tile_rows, tile_buffers
        Rows of outputs of a tile, and buffers of each operand, where an accelerator's compiler
        tiles; None: as it chooses.
    weights_via
        DMA controller that brings the weights, layer by layer; None: they are read in place.
    tiles
        Memory it brings them to; None: the arena's.
    weights_spill, arena_spill
        Memories they go on in, in order, where they are split.
    weights_pool, arena_pool
        Pools of an accelerator they were asked to be in; None: any of their memory.
    asked
        Of "weights" and "arena" those somebody named the memory of: a change leaves them there.
    own_scale
        Voltage scale of the board, where a changed clock took another; None: it is in force.
    scale_stated
        Whether somebody named the scale: clocks changed later keep it.
    original
        The network before it was changed by `network.` paths; None: it was not.
    rewritten : tuple of (str, str)
        What was asked of it: path and value.
    extension
        Code the kernels are built with: "c", "dsp" or "mve"; None: the best the core can run.
    """

    graph: Graph
    board: Board
    runtime: Runtime
    weights: str
    arena: str
    code: str
    notes: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    weight_bits: int | None = None
    tile_rows: int | None = None
    tile_buffers: int | None = None
    loads: tuple[Load, ...] = ()
    weights_via: str | None = None
    tiles: str | None = None
    weights_pool: str | None = None
    arena_pool: str | None = None
    weights_spill: tuple[str, ...] = ()
    arena_spill: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    own_scale: str | None = None
    scale_stated: bool = False
    chosen: tuple[str, ...] = ()
    original: Graph | None = None
    rewritten: NamedTexts = ()
    extension: str | None = None

    @property
    def isa(self) -> str:
        """Instruction set the kernels are built for: the core's, or without its extensions."""
        if self.extension is None:
            return self.board.core.isa
        from twin.deployment.kernels import without_extension

        return without_extension(self.board.core.isa, self.extension)

    @property
    def target(self) -> Placer:
        """How the runtime's kernels get onto the board."""
        return load_target(self.runtime.target)

    @property
    def accelerated(self) -> bool:
        """Whether layers are tasks on an accelerator."""
        return self.runtime.accelerated

    @cached_property
    def plan(self) -> Plan:
        """What the target worked out: what is fused away, what has a place of its own."""
        return self.target.plan(self)

    @cached_property
    def executed(self) -> Graph:
        """The graph that runs: without dead channels where the runtime removes them."""
        return self.target.rewrite(_convert(
            self.graph, drops_dead_channels=self.runtime.drops_dead_channels,
            fuses_padding=self.runtime.fuses_padding, merges_scales=self.runtime.merges_scales,
            copies_shapes=self.runtime.copies_shapes), self)

    @property
    def constants(self) -> str:
        """Memory of constants without a place of their own."""
        return self.target.constants(self)

    @cached_property
    def placement(self) -> Placement:
        """The memory plan of the graph that runs."""
        return _place(Same((self.executed, self.runtime, self.plan.fusion)), self.isa,
                      tuple(self.plan.rooms))

    @property
    def weights_named(self) -> str:
        """Memories of the weights as `placement.weights` takes them, "flash+nor"."""
        return "+".join((self.weights, *self.weights_spill))

    @property
    def arena_named(self) -> str:
        """Memories of the arena as `placement.arena` takes them, "sram+sdram"."""
        return "+".join((self.arena, *self.arena_spill))

    @property
    def places(self) -> dict[str, str | None]:
        """Where somebody asked weights and arena to be; None: nobody did."""
        named = {"weights": self.weights_pool or self.weights_named,
                 "arena": self.arena_pool or self.arena_named}
        return {what: name if what in self.asked else None for what, name in named.items()}

    @cached_property
    def buffers(self) -> Buffers | None:
        """Where weights that come by DMA come to; None when they do not."""
        if self.weights_via is None:
            return None
        from twin.deployment.transfers import plan_buffers

        return plan_buffers(self.executed)

    @property
    def tile_memory(self) -> Memory:
        """Memory of the buffers weights come to."""
        if self.accelerated:
            raise UsageError(f"placement.weights_via: {self.runtime.identity} brings weights by "
                             "itself; accepted with a runtime of the core")
        from twin.deployment.transfers import tile_memory

        return tile_memory(self.board, self.arena, self.tiles)

    @property
    def transfers(self) -> Transfers | None:
        """What brings the weights; None where they are read in place."""
        if self.weights_via is None or self.buffers is None:
            return None
        from twin.deployment.transfers import Transfers

        return Transfers(board=self.board, controller=self.board.dma_controller(self.weights_via),
                         source=self.board.memory(self.weights), target=self.tile_memory,
                         buffers=self.buffers)

    @cached_property
    def buffer(self) -> Arena | None:
        """The buffer a program gives the runtime: kTensorArenaSize and its like."""
        if self.runtime.arena is None or self.accelerated:
            return None
        return plan_arena(self.graph, self.runtime.arena, self.isa,
                          self.plan.held_bytes(self.placement)[0], self.placement.parameter_bytes)

    @property
    def ram_parts(self) -> dict[str, int]:
        """What peak RAM is made of, in bytes; weights and code where they are kept in RAM."""
        kept, runs = (self.board.memory(name).role not in FLASH_ROLES
                      for name in (self.weights, self.code))
        arena, weights = self.plan.held_bytes(self.placement)
        whole = self.buffer is not None and bool(self.buffer.persistent)
        return {"arena": self.buffer.needed_bytes if self.buffer and whole else arena,
                "parameters": 0 if whole else self.placement.parameter_bytes,
                "runtime": self.runtime.ram_bytes,
                "buffers": self.buffers.size_bytes if self.buffers is not None else 0,
                "weights": 0 if not kept else (
                    self.linked_bytes if self.runtime.links_model else weights),
                "code": self.runtime.code_bytes if runs else 0, **self.target.own_ram(self)}

    @property
    def ram_memories(self) -> frozenset[str]:
        """Memories that hold the arena, and weights and code kept in RAM."""
        held = {self.arena, *self.arena_spill, self.weights, self.code}
        held |= {home.memory for home in self.plan.homes.values()}
        if self.board.npu is not None:
            held |= {self.board.npu.pool(name).memory for name, _ in self.plan.used}
        return frozenset(one.name for one in self.board.memories
                         if one.name in held and one.role not in FLASH_ROLES)

    @property
    def ram_room_bytes(self) -> int:
        """Size of `ram_memories`."""
        return sum(self.board.memory(name).size_bytes for name in self.ram_memories)

    @property
    def working_ram_bytes(self) -> int:
        """RAM of arena, requantisation parameters and the runtime's own."""
        parts = self.ram_parts
        return self.ram_bytes - sum(parts.get(name, 0) for name in ("weights", "code", KEPT))

    @property
    def ram_bytes(self) -> int:
        """Peak RAM: working memory, and weights and code where they are kept in RAM."""
        return sum(self.ram_parts.values())

    @property
    def linked_bytes(self) -> int:
        """Bytes of weights as a program links them: TFLite Micro, the model file whole."""
        return (tflm.measure_file(self.graph) if self.runtime.links_model
                else self.placement.weights_bytes)

    @property
    def flash_bytes(self) -> int:
        """Flash: weights and the runtime's code; of our own image only what is linked there."""
        weights, code = (self.board.memory(name).role in FLASH_ROLES
                         for name in (self.weights, self.code))
        loaded = self.runtime.is_compiled and not code  # a debugger brings it into RAM
        return ((0 if loaded and not weights else self.linked_bytes)
                + (0 if loaded else self.runtime.code_bytes))

    @property
    def store(self) -> Memory:
        """Memory that keeps the weights: theirs, or the largest flash they are copied from.

        One that is loaded before the program starts keeps what is in it.
        """
        weights = self.board.memory(self.weights)
        flash = [one for one in self.board.memories if one.role in FLASH_ROLES]
        return weights if weights in flash or weights.loaded or not flash else max(
            flash, key=lambda one: one.size_bytes)

    @property
    def flash_room_bytes(self) -> int:
        """Size of the flash the image is kept in, even where weights are copied to RAM."""
        return self.store.size_bytes + sum(
            self.board.memory(name).size_bytes for name in self.weights_spill
            if self.store.name == self.weights)

    def noted(self, notes: tuple[str, ...], *, first: bool = False) -> Self:
        """Return a deployment with more notes, which change nothing that was computed of it."""
        if not notes:
            return self
        return self._carry(replace(self, notes=(
            (*notes, *self.notes) if first else (*self.notes, *notes))))

    def repriced(self, board: Board, runtime: Runtime) -> Self:
        """Return a deployment at other prices, which change nothing of where anything is."""
        return self._carry(replace(self, board=board, runtime=runtime))

    def _carry(self, other: Self) -> Self:
        """Give what was worked out of this deployment to one that is placed the same."""
        vars(other).update({name: value for name, value in vars(self).items()
                            if name not in vars(other)})
        return other


@lru_cache(maxsize=MOST_KEPT)
def _convert(graph: Graph, *, drops_dead_channels: bool, fuses_padding: bool,
             merges_scales: bool, copies_shapes: bool) -> Graph:
    """Return the graph a runtime's compiler makes of a network."""
    if drops_dead_channels:
        from twin.network.rewrites.dead_channels import drop_dead_channels

        graph = drop_dead_channels(graph)
    if fuses_padding:
        from twin.network.rewrites.fused_padding import fuse_padding

        graph = fuse_padding(graph)
    if merges_scales:
        from twin.network.rewrites.merged_scales import merge_scales

        graph = merge_scales(graph)
    if copies_shapes:
        from twin.network.rewrites.copied_shapes import copy_shapes

        graph = copy_shapes(graph)
    return graph


@lru_cache(maxsize=MOST_KEPT)
def _place(planned: Same[tuple[Graph, Runtime, Fusion]], isa: str,
           rooms: tuple[int, ...]) -> Placement:
    """Plan memory; boards, clocks and places that change afterwards leave the plan as it is."""
    graph, runtime, fusion = planned.parts
    return plan_placement(graph, runtime, isa, fusion, rooms)


class Placer(Protocol):
    """What a target is asked while a network is placed; `twin.deployment.deployment.Target` is all.

    Attributes
    ----------
    borrowed : str
        What stands in for the structure of a closed runtime, in words.
    paths : tuple of WhatIf
        What-if paths it adds.
    """

    borrowed: str
    paths: tuple[WhatIf, ...]

    def check(self, board: Board, runtime: Runtime) -> None:
        """Refuse a board that lacks what the runtime needs."""

    def default_places(self, board: Board, runtime: Runtime) -> Mapping[str, str]:
        """Return the memories of weights and arena where nobody asks for others."""

    def own_ram(self, draft: Draft) -> Mapping[str, int]:
        """Return bytes of RAM it takes by name, beside what every runtime does."""

    def constants(self, deployment: Draft) -> str:
        """Return the memory of constants without a place of their own."""

    def rewrite(self, graph: Graph, deployment: Draft) -> Graph:
        """Return the graph that runs, of the one the runtime's compiler made."""

    def plan(self, deployment: Draft) -> Plan:
        """Return what is fused away, and what has a place of its own."""

    def settle(self, draft: Draft, *, asked: bool) -> tuple[str, tuple[str, ...]]:
        """Return the arena's memory, and notes; `asked`: somebody named it."""

    def needs(self, draft: Draft) -> dict[str, int]:
        """Return bytes of arena and weights by memory, code apart."""

    def check_fit(self, draft: Draft, needs: dict[str, int]) -> None:
        """Refuse what does not fit for reasons of the target's own."""
