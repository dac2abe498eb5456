"""A deployment: model, board, runtime, placement and clocks: all a prediction depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hwmodels.board.facts import Board, Memory
from hwmodels.board.file import change_board, load_board
from hwmodels.counts import Bill, Counts, Prices
from hwmodels.errors import UnknownPathError
from hwmodels.kernel import Kernel
from twin.deployment.costs import EpochPrediction, LayerCost
from twin.deployment.memories import check_room, choose_memories, choose_memory, choose_pool
from twin.deployment.placement import Placement, Plan, plan_placement
from twin.errors import DoesNotFitError, PlacementError, UsageError
from twin.network.graph import Graph
from twin.network.readers import read_model
from twin.runtimes import Runtime
from twin.runtimes.choice import check_network, choose_runtime
from twin.runtimes.runtime import load_target

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from hwmodels.bus.contention import Load
    from twin.deployment.changes import Change, WhatIf
    from twin.deployment.transfers import Buffers, Transfers

FLASH_ROLES = ("flash", "external_flash", "rom")
"""Memories that are not written while a network runs."""

PriceOnCore = Callable[..., tuple[LayerCost, ...]]
"""`twin.prediction.host.price_on_core`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Deployment:
    """A network placed on a board under a runtime; every what-if is a changed Deployment.

    Parameters
    ----------
    graph : Graph
        The network as its file states it.
    board : Board
        With clocks and voltage as deployed.
    runtime : Runtime
        Kernel library.
    weights, arena, code : str
        Names of the memories that hold them.
    notes : tuple of str
        Choices made on the way that a reader should know of.
    chosen : tuple of str
        Of them, what was said of the choice of the runtime; it goes with it.
    host : tuple of str
        Operators, or indices of layers, kept on the host core of an accelerator.
    weight_bits : int or None
        Width convolution weights are narrowed to; None: as the file states them.
    loads : tuple of Load
        What other masters do meanwhile.
    weights_via : str or None
        DMA controller that brings the weights, layer by layer; None: they are read in place.
    tiles : str or None
        Memory it brings them to; None: the arena's.
    weights_spill, arena_spill : tuple of str
        Memories they go on in, in order, where they are split.
    weights_pool, arena_pool : str or None
        Pools of an accelerator they were asked to be in; None: any of their memory.
    own_scale : str or None
        Voltage scale of the board, where a changed clock took another; None: it is in force.
    scale_told : bool
        Whether somebody named the scale: clocks changed later keep it.
    original : Graph or None
        The network before it was changed by `network.` paths; None: it was not.
    rewritten : tuple of (str, str)
        What was asked of it: path and value.
    extension : str or None
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
    loads: tuple[Load, ...] = ()
    weights_via: str | None = None
    tiles: str | None = None
    weights_pool: str | None = None
    arena_pool: str | None = None
    weights_spill: tuple[str, ...] = ()
    arena_spill: tuple[str, ...] = ()
    own_scale: str | None = None
    scale_told: bool = False
    chosen: tuple[str, ...] = ()
    original: Graph | None = None
    rewritten: tuple[tuple[str, str], ...] = ()
    extension: str | None = None

    @property
    def isa(self) -> str:
        """Instruction set the kernels are built for: the core's, or without its extensions."""
        if self.extension is None:
            return self.board.core.isa
        from twin.deployment.kernels import without_extension

        return without_extension(self.board.core.isa, self.extension)

    @property
    def target(self) -> Target:
        """How the runtime's kernels get onto the board."""
        return load_target(self.runtime.target)

    @cached_property
    def plan(self) -> Plan:
        """What the target worked out: what is fused away, what has a place of its own."""
        return self.target.plan(self)

    @cached_property
    def executed(self) -> Graph:
        """The graph that runs: without dead channels where the runtime removes them."""
        graph = self.graph
        if self.runtime.drops_dead_channels:
            from twin.network.rewrites.dead_channels import drop_dead_channels

            graph = drop_dead_channels(graph)
        if self.runtime.fuses_padding:
            from twin.network.rewrites.fused_padding import fuse_padding

            graph = fuse_padding(graph)
        if self.runtime.copies_shapes:
            from twin.network.rewrites.copied_shapes import copy_shapes

            graph = copy_shapes(graph)
        return self.target.rewrite(graph, self)

    @property
    def constants(self) -> str:
        """Memory of constants without a place of their own."""
        return self.target.constants(self)

    @cached_property
    def placement(self) -> Placement:
        """The memory plan of the graph that runs."""
        return plan_placement(self.executed, self.runtime, self.isa, self.plan.fusion,
                              self.plan.rooms)

    @property
    def weights_named(self) -> str:
        """Memories of the weights as `placement.weights` takes them, "flash+nor"."""
        return "+".join((self.weights, *self.weights_spill))

    @property
    def arena_named(self) -> str:
        """Memories of the arena as `placement.arena` takes them, "sram+sdram"."""
        return "+".join((self.arena, *self.arena_spill))

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
        if self.target.offloads:
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

    @property
    def ram_parts(self) -> dict[str, int]:
        """What peak RAM is made of, in bytes; weights where they are kept in RAM."""
        kept = self.board.memory(self.weights).role not in FLASH_ROLES
        arena, weights = self.plan.held_bytes(self.placement)
        return {"arena": arena, "parameters": self.placement.parameter_bytes,
                "runtime": self.runtime.ram_bytes,
                "buffers": self.buffers.size_bytes if self.buffers is not None else 0,
                "weights": weights if kept else 0}

    @property
    def working_ram_bytes(self) -> int:
        """RAM of arena, requantisation parameters and the runtime's own."""
        return self.ram_bytes - self.ram_parts["weights"]

    @property
    def ram_bytes(self) -> int:
        """Peak RAM: working memory, and the weights where they are kept in RAM."""
        return sum(self.ram_parts.values())

    @property
    def flash_bytes(self) -> int:
        """Flash: weights and the runtime's code."""
        return self.placement.weights_bytes + self.runtime.code_bytes

    def noted(self, notes: tuple[str, ...], *, first: bool = False) -> Deployment:
        """Return a deployment with more notes, which change nothing that was computed of it."""
        if not notes:
            return self
        return self._carry(dataclasses.replace(self, notes=(
            (*notes, *self.notes) if first else (*self.notes, *notes))))

    def repriced(self, board: Board, runtime: Runtime) -> Deployment:
        """Return a deployment at other prices, which change nothing of where anything is."""
        return self._carry(dataclasses.replace(self, board=board, runtime=runtime))

    def _carry(self, other: Deployment) -> Deployment:
        """Give what was worked out of this deployment to one that is placed the same."""
        vars(other).update({name: value for name, value in vars(self).items()
                            if name not in vars(other)})
        return other

    def replace(self, overrides: Mapping[str, object] | None = None, /,
                **fields: object) -> Deployment:
        """Return a changed deployment; board paths are validated by the board's own rules.

        Parameters
        ----------
        overrides : mapping of str to object
            Dotted paths: those of `twin.deployment.changes.list_paths`, or any of the board file.
        **fields
            Fields of the dataclass.

        Raises
        ------
        TwinError
            When a path does not exist or the board forbids the value.
        """
        from twin.deployment.changes import parse_changes

        changed = dataclasses.replace(self, **fields)  # type: ignore[arg-type]
        return _apply(changed, parse_changes(overrides or {}, changed.graph, changed.board,
                                             changed.runtime, changed.original,
                                             changed.rewritten))


class Target(Protocol):
    """How a runtime's kernels get onto hardware; `twin.deployment.core.Core` is a core's.

    Attributes
    ----------
    offloads : bool
        Whether layers run elsewhere than on the core.
    borrowed : str
        What stands in for the structure of a closed runtime, in words.
    paths : tuple of WhatIf
        What-if paths it adds.
    """

    offloads: bool
    borrowed: str
    paths: tuple[WhatIf, ...]

    def check(self, board: Board, runtime: Runtime) -> None:
        """Refuse a board that lacks what the runtime needs."""

    def default_arena(self, board: Board) -> str:
        """Return the memory of the arena where nobody asks for another."""

    def constants(self, deployment: Deployment) -> str:
        """Return the memory of constants without a place of their own."""

    def rewrite(self, graph: Graph, deployment: Deployment) -> Graph:
        """Return the graph that runs, of the one the runtime's compiler made."""

    def plan(self, deployment: Deployment) -> Plan:
        """Return what is fused away, and what has a place of its own."""

    def settle(self, draft: Deployment, *, asked: bool) -> tuple[str, tuple[str, ...]]:
        """Return the arena's memory, and notes; `asked`: somebody named it."""

    def needs(self, draft: Deployment) -> dict[str, int]:
        """Return bytes of arena and weights by memory, code apart."""

    def check_fit(self, draft: Deployment, needs: dict[str, int]) -> None:
        """Refuse what does not fit for reasons of the target's own."""

    def lower(self, deployment: Deployment) -> tuple[tuple[Kernel, ...], ...]:
        """Return the core's kernels, one tuple per layer; of an alias none."""

    def content(self, deployment: Deployment) -> str:
        """Return what kernels depend on besides the deployment, as a hash or nothing."""

    def price(self, deployment: Deployment, prices: Prices, price_on_core: PriceOnCore, *,
              cold: bool) -> tuple[tuple[LayerCost, ...], tuple[EpochPrediction, ...]]:
        """Return what every layer costs, and the accelerator's epochs."""

    def count_setup(self, deployment: Deployment) -> Counts:
        """Count what is done once before the first inference, besides preparing operators."""

    def remarks(self, deployment: Deployment, temperature: str) -> Iterator[str]:
        """Yield what a reader of the figures must know."""

    def estimate_energy(self, board: Board, bill: Bill) -> tuple[float, Interval] | None:
        """Return what an accelerator and its memories draw, in microjoules."""


def deploy(model: str | Path | Graph, board: str | Path | Board, *, runtime: str | None = None,
           clock_hz: float | None = None, weights: str | None = None, arena: str | None = None,
           assume_unsupported: str | None = None, follow_clock: bool = True,
           network: Mapping[str, object] | None = None) -> Deployment:
    """Put a model on a board.

    Parameters
    ----------
    model : str, Path or Graph
        A .tflite or .onnx file, the name of a zoo network, or a graph.
    board : str, Path or Board
        A board's name or alias, a board file, or a board.
    runtime : str, optional
        "name@version"; by default the one best known on the board. A name nobody described is a
        library of its own, at the spread between libraries.
    clock_hz : float, optional
        CPU clock in hertz.
    follow_clock : bool
        Whether another clock takes the lowest voltage scale it may run at; what is measured or
        published keeps the board's.
    weights, arena : str, optional
        Memory role ("flash", "sram", "tcm", ...), memory name, or an NPU's pool ("npuRAM4").
    assume_unsupported : str, optional
        "copy" prices unknown operators as memory copies, marked `assumed`.
    network : mapping of str to object, optional
        Changes of the network, as `replace` takes them ("network.width": 0.5): for one that only
        fits when it is changed.

    Returns
    -------
    Deployment
        Placed, and checked to fit.
    """
    graph = model if isinstance(model, Graph) else read_model(
        model, assume_unsupported=assume_unsupported)
    original = graph
    if network:
        from twin.network.rewrites.rewrite import rewrite_network

        graph = rewrite_network(graph, network)
    stated = machine = board if isinstance(board, Board) else load_board(board)
    if clock_hz is not None:
        machine = change_board(machine, {f"clocks.{machine.core.clock}.frequency_hz": clock_hz},
                               follow_clock=follow_clock)
    library, said = choose_runtime(graph, runtime, machine)
    placed = place(graph, machine, library, weights=weights, arena=arena,
                   code=dict(machine.placement)["code"])
    return dataclasses.replace(placed.noted((*graph.notes, *said), first=True),
                               chosen=said, own_scale=_other_scale(stated, machine),
                               original=original if network else None,
                               rewritten=tuple((name, str(value)) for name, value
                                               in (network or {}).items()))


def place(graph: Graph, board: Board, runtime: Runtime, *, weights: str | None,
          arena: str | None, code: str, host: tuple[str, ...] = (),
          weight_bits: int | None = None, extension: str | None = None,
          remedy: bool = True) -> Deployment:
    """Choose memories and check that everything fits.

    Raises
    ------
    PlacementError
        When a role has no memory on the board, or nothing that was allowed is large enough; with
        what would fit, unless `remedy` is false.
    RuntimeRefusedError
        When the runtime needs an accelerator the board does not have.
    """
    target: Target = load_target(runtime.target)
    target.check(board, runtime)
    weights_asked = weights or dict(board.placement)["weights"]
    arena_asked = arena or target.default_arena(board)
    weights_in, arena_in = (choose_memories(board, runtime.splits_memories, what, text)
                            for what, text in (("weights", weights_asked), ("arena", arena_asked)))
    draft = Deployment(graph=graph, board=board, runtime=runtime, host=host,
                       weight_bits=weight_bits, extension=extension,
                       weights=weights_in[0], weights_spill=weights_in[1:],
                       weights_pool=choose_pool(board, weights_asked),
                       arena=arena_in[0], arena_spill=arena_in[1:],
                       arena_pool=choose_pool(board, arena_asked),
                       code=choose_memory(board, code).name)
    for name in arena_in:
        if board.memory(name).role in FLASH_ROLES:
            raise PlacementError(f"{board.name}: the arena cannot be in {name}, which is "
                                 f"{board.memory(name).role}; accepted: a memory of role tcm, "
                                 "sram, external_ram or npu_ram")
    try:
        return _settle(draft, arena=arena is None, weights=weights is None)
    except DoesNotFitError as error:
        if not remedy:
            raise
        raise DoesNotFitError(f"{error}; {_name_remedy(draft, weights, arena)}") from error


def _settle(draft: Deployment, *, arena: bool, weights: bool) -> Deployment:
    """Choose memories where nobody asked for one, and refuse what does not fit."""
    chosen, notes = draft.target.settle(draft, asked=not arena)
    if chosen != draft.arena:
        draft = dataclasses.replace(draft, arena=chosen)
    draft = draft.noted(notes)
    if not draft.runtime.splits_memories:
        _check(draft)
        return draft
    split = _split(draft, arena=arena, weights=weights)
    try:
        _check(split)
    except DoesNotFitError:
        _check(draft)  # Names the memory it belongs in, not the last of those it was split between.
        raise
    return split


def _name_remedy(draft: Deployment, weights_asked: str | None, arena_asked: str | None) -> str:
    """Say what would fit where a draft does not."""
    from twin.deployment.remedies import name_remedy

    board, offloads = draft.board, draft.target.offloads
    needed = {} if offloads else {"arena": draft.working_ram_bytes,
                                  "weights": draft.placement.weights_bytes}

    def fits(weights: str | None, arena: str | None) -> bool:
        for what, name in (("weights", weights), ("arena", arena)):
            if name and needed.get(what, 0) > sum(
                    board.memory(one).size_bytes for one in name.split("+")):
                return False
        try:
            place(draft.graph, board, draft.runtime, weights=weights or weights_asked,
                  arena=arena or arena_asked, code=draft.code, host=draft.host,
                  weight_bits=draft.weight_bits, extension=draft.extension, remedy=False)
        except PlacementError:
            return False
        return True

    return name_remedy(board, splits=draft.runtime.splits_memories, weights=draft.weights,
                       arena=draft.arena, fits=fits)


def _split(draft: Deployment, *, arena: bool, weights: bool) -> Deployment:
    """Go on in further memories with what has no room where nobody asked for it to be."""
    full = [name for name, needed in _needs(draft).items()
            if needed > draft.board.memory(name).size_bytes]
    if full and (arena or weights):
        from twin.deployment.split import further_memories

        if arena and draft.arena in full:
            draft = dataclasses.replace(
                draft, arena_spill=further_memories(draft.board, draft.arena))
        if weights and draft.weights in full:
            draft = dataclasses.replace(
                draft, weights_spill=further_memories(draft.board, draft.weights))
    if draft.arena_spill or draft.weights_spill:
        from twin.deployment.split import describe_split

        further, spilled = draft.placement.parts_bytes[1:], draft.plan.spilled
        draft = draft.noted(describe_split(
            {draft.weights: draft.placement.weights_bytes - sum(spilled.values()), **spilled},
            {draft.arena: draft.placement.first_bytes,
             **dict(zip(draft.arena_spill, further, strict=True))}))
    return draft


def _apply(before: Deployment, changes: Sequence[Change]) -> Deployment:
    """Return a deployment with changes made, in their order, and placed anew."""
    from twin.deployment import changes as asked
    from twin.deployment.transfers import merge_loads

    after, loads = before, []
    weights: str | None = before.weights_pool or before.weights_named
    arena: str | None = before.arena_pool or before.arena_named
    code = before.code
    for change in changes:
        match change:
            case asked.ChangeNetwork(graph=graph, asked=rewritten):
                after = dataclasses.replace(after, graph=graph, rewritten=rewritten,
                                            original=before.original or before.graph)
            case asked.ChangeRuntime(runtime=runtime):
                after = dataclasses.replace(after, runtime=runtime)
                arena = _follow_arena(before, runtime)
                weights = None if before.weights_spill else weights
            case asked.MoveWeights(memory=memory):
                weights = memory
            case asked.MoveArena(memory=memory):
                arena = memory
            case asked.MoveCode(memory=memory):
                code = memory
            case asked.BringWeights(controller=controller):
                after = dataclasses.replace(after, weights_via=controller)
            case asked.PlaceTiles(memory=tiles):
                after = dataclasses.replace(after, tiles=tiles)
            case asked.Choose(field=field, value=value):
                after = dataclasses.replace(after, **{field: value})  # type: ignore[arg-type]
            case asked.ChangeBoard(settings=settings):
                after = _change_board(after, settings)
            case asked.ChangeLoad():
                loads.append(change)
    if after.graph is not before.graph:
        check_network(after.graph, after.runtime)
    placed = place(after.graph, after.board, after.runtime, weights=weights, arena=arena,
                   code=code, host=after.host, weight_bits=after.weight_bits,
                   extension=after.extension)
    chosen = before.chosen if after.runtime is before.runtime else ()
    placed = placed.noted((*after.graph.notes, *chosen), first=True)
    moved = dataclasses.replace(placed, weights_via=after.weights_via, tiles=after.tiles,
                                chosen=chosen, own_scale=after.own_scale,
                                scale_told=after.scale_told, original=after.original,
                                rewritten=after.rewritten,
                                loads=merge_loads(placed.board, after.loads, loads))
    _check(moved)
    return moved


def _change_board(before: Deployment, settings: Mapping[str, object]) -> Deployment:
    """Change facts of the board; a changed clock takes the lowest scale unless told another."""
    told = before.scale_told or "supply.voltage_scale" in settings
    try:
        board = change_board(before.board, settings, follow_clock=not told)
    except UnknownPathError as error:
        from twin.deployment.changes import name_near_paths

        raise UnknownPathError(
            f"{before.board.name}: {error.path}: no such path; "
            f"{name_near_paths(error.path, before.board)}", error.path) from None
    own = before.own_scale or _other_scale(before.board, board)
    return dataclasses.replace(
        before, board=board, scale_told=told,
        own_scale=None if told or own == board.power.voltage_scale else own)


def boards_of(before: Deployment, settings: Mapping[str, object],
              ) -> Callable[[Mapping[str, object]], Board]:
    """Return what makes the board of a changed deployment, without placing anything.

    Parameters
    ----------
    before : Deployment
        To be changed.
    settings : mapping of str to object
        As of `Deployment.replace`.

    Returns
    -------
    callable
        Takes further settings of the board file; raises what the board forbids.
    """
    from twin.deployment.changes import ChangeBoard, parse_changes

    own: dict[str, object] = {}
    for change in parse_changes(settings, before.graph, before.board, before.runtime):
        if isinstance(change, ChangeBoard):
            own |= change.settings

    def make(more: Mapping[str, object]) -> Board:
        return _change_board(before, {**own, **more}).board

    return make


def _other_scale(stated: Board, board: Board) -> str | None:
    """Return the voltage scale a board states, where another is in force."""
    own = stated.power.voltage_scale
    return None if own == board.power.voltage_scale else own


def _follow_arena(before: Deployment, runtime: Runtime) -> str | None:
    """Where the arena is under another runtime: its default, if it was in the default before."""
    if before.arena_spill:
        return None
    if not before.arena_pool and before.target.default_arena(before.board) == before.arena:
        target: Target = load_target(runtime.target)
        target.check(before.board, runtime)
        return target.default_arena(before.board)
    return before.arena_pool or before.arena


def _needs(draft: Deployment) -> dict[str, int]:
    """Bytes wanted of each memory, code among them."""
    needs = draft.target.needs(draft)
    needs[draft.code] = needs.get(draft.code, 0) + draft.runtime.code_bytes
    return needs


def _check(draft: Deployment) -> None:
    """Refuse what does not fit its memory."""
    needs = _needs(draft)
    holds = [(draft.arena, "arena"), (draft.arena, "runtime"),
             *((name, "arena") for name in draft.arena_spill),
             *((name, "weights") for name in (draft.weights, *draft.weights_spill)),
             (draft.code, "code")]
    if draft.buffers is not None and (tiles := draft.tile_memory.name) != draft.arena:
        needs[draft.arena] -= draft.buffers.size_bytes
        needs[tiles] = needs.get(tiles, 0) + draft.buffers.size_bytes
        holds.append((tiles, "buffers of weights"))
    check_room(draft.graph.name, draft.board, draft.arena, needs, holds)
    draft.target.check_fit(draft, needs)
