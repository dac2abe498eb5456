"""A deployment: model, board, runtime, placement and clocks: all a prediction depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, load_board
from hwmodels.bus.contention import Load
from hwmodels.npu import Npu
from hwmodels.quantities import join_words
from twin.deployment.accelerator.choices import take_offload
from twin.deployment.accelerator.epochs import Step, plan_steps
from twin.deployment.accelerator.grouping import Grouping, Planner, plan_groups
from twin.deployment.accelerator.pools import Demand, PoolPlan, Wish, describe_spills, plan_pools
from twin.deployment.accelerator.weight_width import narrow_weights
from twin.deployment.memories import choose_memory, choose_pool
from twin.deployment.placement import Fusion, Placement, check_fit, plan_placement
from twin.deployment.transfers import Buffers, plan_buffers, take_loads, take_via, tile_memory
from twin.errors import PlacementError, RuntimeRefusedError
from twin.network.graph import Graph
from twin.network.readers import read_model
from twin.network.rewrites.dead_channels import drop_dead_channels
from twin.network.rewrites.fused_padding import fuse_padding
from twin.runtimes import Runtime, load_runtime
from twin.runtimes.choice import choose_runtime

FLASH_ROLES = ("flash", "external_flash", "rom")
"""Memories that are not written while a network runs."""

PLACEMENT_KEYS = ("placement.weights", "placement.arena", "placement.code")


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
    weights_pool, arena_pool : str or None
        Pools of an accelerator they were asked to be in; None: any of their memory.
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

    @cached_property
    def executed(self) -> Graph:
        """The graph that runs: without dead channels where the runtime removes them."""
        graph = self.graph
        if self.runtime.drops_dead_channels:
            graph = drop_dead_channels(graph)
        if self.runtime.fuses_padding:
            graph = fuse_padding(graph)
        if self.weight_bits is None or self.planner is None:
            return graph
        return narrow_weights(graph, self.weight_bits, self.planner)

    @property
    def constants(self) -> str:
        """Memory of constants without a place of their own: of an accelerator's, a flash."""
        asked = self.board.memory(self.weights)
        if self.runtime.offload is None or asked.role in FLASH_ROLES:
            return asked.name
        return dict(self.board.placement)["weights"]

    @cached_property
    def planner(self) -> Planner | None:
        """What an accelerator's schedule depends on; None unless the runtime offloads."""
        if self.runtime.offload is None or self.board.npu is None:
            return None
        return Planner(npu=self.board.npu, offload=self.runtime.offload, weights=self.constants,
                       arena=self.arena, host=self.host,
                       channel_first_inputs=self.graph.source.endswith(".onnx"))

    @cached_property
    def grouping(self) -> Grouping | None:
        """Which layers an accelerator runs, and which together."""
        return None if self.planner is None else plan_groups(self.executed, self.planner)

    @cached_property
    def fusion(self) -> Fusion:
        """What an accelerator takes off the memory plan."""
        return Fusion() if self.grouping is None else self.grouping.fusion(self.executed)

    @cached_property
    def pools(self) -> PoolPlan | None:
        """Where an accelerator's buffers are; None without one."""
        if self.planner is None:
            return None
        board, placement, runtime = self.board, self.placement, self.runtime
        reserved = {self.code: runtime.code_bytes}
        reserved[self.arena] = reserved.get(self.arena, 0) + runtime.ram_bytes
        moves = board.memory(self.weights).role not in FLASH_ROLES
        return plan_pools(board, self.planner.npu, Demand(
            slots=placement.arena, constants=self._stored_constants() if moves else (),
            arena=Wish(memory=self.arena, pool=self.arena_pool),
            weights=Wish(memory=self.weights, pool=self.weights_pool),
            reserved=reserved, layers=len(self.executed.layers),
            alignment_bytes=runtime.alignment_bytes, name=self.graph.name))

    def _stored_constants(self) -> tuple[tuple[int, int], ...]:
        """Constants in execution order, with the bytes the accelerator's compiler stores."""
        graph, grouping = self.executed, self.grouping
        assert grouping is not None, "asked of a runtime that offloads"
        sizes: dict[int, int] = {}
        for position, layer in enumerate(graph.layers):
            work = grouping.works.get(position)
            for place, tensor_id in enumerate(layer.inputs):
                if tensor_id >= 0 and graph.tensors[tensor_id].is_constant:
                    streamed = work.weight_bytes if work is not None and place == 1 else 0
                    sizes.setdefault(tensor_id, streamed or graph.tensors[tensor_id].size_bytes)
        return tuple(sizes.items())

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What runs where, in order; none unless the runtime offloads."""
        if self.planner is None or self.pools is None:
            return ()
        return plan_steps(self.executed, self.planner, self.pools.names, self.grouping)

    @property
    def offloaded(self) -> Collection[int]:
        """Positions of the layers an accelerator runs."""
        return self.fusion.offloaded

    @cached_property
    def placement(self) -> Placement:
        """The memory plan of the graph that runs."""
        return plan_placement(self.executed, self.runtime, self.board.core.isa, self.fusion)

    @cached_property
    def buffers(self) -> Buffers | None:
        """Where weights that come by DMA come to; None when they do not."""
        return None if self.weights_via is None else plan_buffers(self.executed)

    @property
    def ram_parts(self) -> dict[str, int]:
        """What peak RAM is made of, in bytes; weights where they are kept in RAM."""
        plan, pools = self.placement, self.pools
        kept = self.board.memory(self.weights).role not in FLASH_ROLES
        arena, weights = (plan.arena_bytes, plan.weights_bytes) if pools is None else (
            pools.activation_bytes, pools.weight_bytes)
        return {"arena": arena, "parameters": plan.parameter_bytes,
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

    def replace(self, overrides: Mapping[str, object] | None = None, /,
                **fields: object) -> Deployment:
        """Return a changed deployment; board paths are validated by the board's own rules.

        Parameters
        ----------
        overrides : mapping of str to object
            Dotted paths: "runtime", "placement.weights", "placement.arena", "placement.code",
            "offload.host" (operators or layer indices kept on the host, by commas),
            "placement.weight_bits" (4 or 8, of an accelerator), those of
            `twin.deployment.transfers`, or any path of the board file.
        **fields
            Fields of the dataclass.

        Raises
        ------
        TwinError
            When a path does not exist or the board forbids the value.
        """
        overrides = dict(overrides or {})
        changed = dataclasses.replace(self, **fields)  # type: ignore[arg-type]
        if "runtime" in overrides:
            runtime = load_runtime(str(overrides.pop("runtime")))
            changed = dataclasses.replace(changed, runtime=runtime)
            if _default_arena(self.board, self.runtime) == self.arena and not self.arena_pool:
                overrides.setdefault("placement.arena", _default_arena(self.board, runtime))
        changed = take_offload(changed, overrides)
        places = {key: str(overrides.pop(key)) for key in PLACEMENT_KEYS if key in overrides}
        changed = take_via(changed, overrides)
        moving = {path: overrides.pop(path) for path in [*overrides] if path.startswith("load.")}
        if overrides:
            changed = dataclasses.replace(changed, board=change_board(changed.board, overrides))
        placed = place(changed.graph, changed.board, changed.runtime,
                     weights=places.get("placement.weights",
                                        changed.weights_pool or changed.weights),
                     arena=places.get("placement.arena", changed.arena_pool or changed.arena),
                     code=places.get("placement.code", changed.code), host=changed.host,
                     weight_bits=changed.weight_bits)
        moved = dataclasses.replace(
            placed, weights_via=changed.weights_via, tiles=changed.tiles,
            loads=take_loads(placed.board, changed.loads, moving))
        _check(moved)
        return moved


def deploy(model: str | Path | Graph, board: str | Path | Board, *, runtime: str | None = None,
           clock_hz: float | None = None, weights: str | None = None, arena: str | None = None,
           assume_unsupported: str | None = None) -> Deployment:
    """Put a model on a board.

    Parameters
    ----------
    model : str, Path or Graph
        A .tflite or .onnx file, the name of a zoo network, or a graph.
    board : str, Path or Board
        A board's name or alias, a board file, or a board.
    runtime : str, optional
        "name@version"; by default the one that suits the model's types.
    clock_hz : float, optional
        CPU clock in hertz.
    weights, arena : str, optional
        Memory role ("flash", "sram", "tcm", ...), memory name, or an NPU's pool ("npuRAM4").
    assume_unsupported : str, optional
        "copy" prices unknown operators as memory copies, marked `assumed`.

    Returns
    -------
    Deployment
        Placed, and checked to fit.
    """
    graph = model if isinstance(model, Graph) else read_model(
        model, assume_unsupported=assume_unsupported)
    machine = board if isinstance(board, Board) else load_board(board)
    if clock_hz is not None:
        machine = change_board(machine, {f"clocks.{machine.core.clock}.frequency_hz": clock_hz})
    library, said = choose_runtime(graph, runtime)
    placed = place(graph, machine, library, weights=weights, arena=arena,
                   code=dict(machine.placement)["code"])
    return _add_notes(placed, said, first=True)


def place(graph: Graph, board: Board, runtime: Runtime, *, weights: str | None,
          arena: str | None, code: str, host: tuple[str, ...] = (),
          weight_bits: int | None = None) -> Deployment:
    """Choose memories and check that everything fits.

    Raises
    ------
    PlacementError
        When a role has no memory on the board, or nothing that was allowed is large enough.
    RuntimeRefusedError
        When the runtime needs an accelerator the board does not have.
    """
    weights = weights or dict(board.placement)["weights"]
    arena_asked = arena or _default_arena(board, runtime)
    draft = Deployment(graph=graph, board=board, runtime=runtime, host=host,
                       weight_bits=weight_bits,
                       weights=choose_memory(board, weights).name,
                       weights_pool=choose_pool(board, weights),
                       arena=choose_memory(board, arena_asked).name,
                       arena_pool=choose_pool(board, arena_asked),
                       code=choose_memory(board, code).name)
    if board.memory(draft.arena).role in FLASH_ROLES:
        raise PlacementError(f"{board.name}: the arena cannot be in {draft.arena}, which is "
                             f"{board.memory(draft.arena).role}; accepted: a memory of role tcm, "
                             "sram, external_ram or npu_ram")
    if draft.pools is not None:
        _check_reach(draft)
        draft = _add_notes(draft, describe_spills(draft.pools))
    elif arena is None:
        roomy, notes = _roomy_arena(draft)
        if roomy != draft.arena:
            draft = dataclasses.replace(draft, arena=roomy)
        draft = _add_notes(draft, notes)
    _check(draft)
    return draft


def _default_arena(board: Board, runtime: Runtime) -> str:
    """Memory of the arena where nobody asks for another: an accelerator's own, if it is used."""
    if runtime.offload is not None:
        return _accelerator(board, runtime).pools[0].memory
    return choose_memory(board, dict(board.placement)["arena"]).name


def _add_notes(deployment: Deployment, notes: tuple[str, ...], *,
               first: bool = False) -> Deployment:
    """Return a deployment with more notes, which change nothing that was computed of it."""
    if not notes:
        return deployment
    noted = dataclasses.replace(deployment, notes=(
        (*notes, *deployment.notes) if first else (*deployment.notes, *notes)))
    vars(noted).update({name: value for name, value in vars(deployment).items()
                        if name not in vars(noted)})
    return noted


def _accelerator(board: Board, runtime: Runtime) -> Npu:
    assert runtime.offload is not None
    if board.npu is None or board.npu.family != runtime.offload.family:
        has = board.npu.family if board.npu is not None else "none"
        raise RuntimeRefusedError(f"runtime {runtime.identity} needs a {runtime.offload.family} "
                                  f"accelerator; {board.name} has {has}")
    return board.npu


def _roomy_arena(draft: Deployment) -> tuple[str, tuple[str, ...]]:
    """Return the default arena memory, or the next that holds the arena, with a note of it."""
    default = draft.board.memory(draft.arena)
    if draft.working_ram_bytes <= default.size_bytes:
        return default.name, ()
    allowed = [memory for memory in draft.board.memories if memory.role in ("tcm", "sram")]
    larger = [memory for memory in allowed if memory.size_bytes >= draft.working_ram_bytes]
    if not larger:
        # Refused below, naming the roomiest.
        return max(allowed, key=lambda memory: memory.size_bytes, default=default).name, ()
    chosen = min(larger, key=lambda memory: (memory.role == "external_ram", memory.size_bytes))
    return chosen.name, (f"arena placed in {chosen.name}: {default.name} has "
                         f"{default.size_bytes:,} bytes, {draft.working_ram_bytes:,} are needed",)


def _check_reach(draft: Deployment) -> None:
    """Refuse memories the accelerator cannot reach."""
    assert draft.board.npu is not None, "asked of a runtime that offloads"
    reached = {pool.memory: pool.name for pool in draft.board.npu.pools}
    for what, memory in (("arena", draft.arena), ("weights", draft.weights)):
        able = [name for name in reached
                if what == "weights" or draft.board.memory(name).role not in FLASH_ROLES]
        if memory not in reached:
            raise PlacementError(f"{draft.board.name}: the NPU does not reach {memory}, where the "
                                 f"{what} would be; accepted: {', '.join(able)}, or a pool: "
                                 + ", ".join(pool.name for pool in draft.board.npu.pools
                                             if pool.memory in able))


def _check(draft: Deployment) -> None:
    board = draft.board
    # What an accelerator's pools hold has found its place.
    needs = {draft.arena: draft.working_ram_bytes} if draft.pools is None else {}
    if draft.pools is None or board.memory(draft.weights).role in FLASH_ROLES:
        needs[draft.weights] = needs.get(draft.weights, 0) + draft.placement.weights_bytes
    needs[draft.code] = needs.get(draft.code, 0) + draft.runtime.code_bytes
    holds = [(draft.arena, "arena"), (draft.arena, "runtime"), (draft.weights, "weights"),
             (draft.code, "code")]
    if draft.buffers is not None and (tiles := tile_memory(draft).name) != draft.arena:
        needs[draft.arena] -= draft.buffers.size_bytes
        needs[tiles] = needs.get(tiles, 0) + draft.buffers.size_bytes
        holds.append((tiles, "buffers of weights"))
    for memory, needed in needs.items():
        held = join_words([what for name, what in holds if name == memory])
        what = f"RAM ({held})" if memory == draft.arena else held
        check_fit(f"{draft.graph.name}: {what}", needed, f"{memory} of {board.name}",
                  board.memory(memory).size_bytes)
    if draft.pools is not None and draft.planner is not None and draft.weights in needs:
        pools = [pool for pool in draft.planner.npu.pools if pool.memory == draft.weights]
        check_fit(f"{draft.graph.name}: weights", draft.placement.weights_bytes,
                  join_words([pool.name for pool in pools]),
                  sum(pool.size_bytes for pool in pools))
