"""A deployment: model, board, runtime, placement and clocks: all a prediction depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hwmodels.board import MEMORY_ROLES, Board, Memory
from hwmodels.board_file import change_board, load_board
from hwmodels.errors import did_you_mean
from twin.dead_channels import drop_dead_channels
from twin.errors import PlacementError, UsageError
from twin.graph import Graph
from twin.placement import Placement, check_fit, plan_placement
from twin.readers import read_model
from twin.runtimes import Runtime, load_runtime

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
    """

    graph: Graph
    board: Board
    runtime: Runtime
    weights: str
    arena: str
    code: str
    notes: tuple[str, ...] = ()

    @cached_property
    def executed(self) -> Graph:
        """The graph that runs: without dead channels where the runtime removes them."""
        if self.runtime.drops_dead_channels:
            return drop_dead_channels(self.graph)
        return self.graph

    @cached_property
    def placement(self) -> Placement:
        """The memory plan of the graph that runs."""
        return plan_placement(self.executed, self.runtime, self.board.core.isa)

    @property
    def ram_bytes(self) -> int:
        """Peak RAM: arena, requantisation parameters kept in RAM, and the runtime's own."""
        return (self.placement.arena_bytes + self.placement.parameter_bytes
                + self.runtime.ram_bytes)

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
            or any path of the board file.
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
        places = {key: str(overrides.pop(key)) for key in PLACEMENT_KEYS if key in overrides}
        if overrides:
            changed = dataclasses.replace(changed, board=change_board(changed.board, overrides))
        return place(changed.graph, changed.board, changed.runtime,
                     weights=places.get("placement.weights", changed.weights),
                     arena=places.get("placement.arena", changed.arena),
                     code=places.get("placement.code", changed.code))


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
        Memory role ("flash", "sram", "tcm", ...) or memory name.
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
    library = load_runtime(runtime) if runtime else default_runtime(graph)
    defaults = dict(machine.placement)
    return place(graph, machine, library, weights=weights, arena=arena, code=defaults["code"])


def default_runtime(graph: Graph) -> Runtime:
    """Return the runtime that suits the model: CMSIS-NN for integers, plain C for float."""
    floating = any(graph.tensors[layer.outputs[0]].dtype == "float32"
                   and layer.op not in ("dequantize",) for layer in graph.layers)
    return load_runtime("float-reference" if floating else "tflm-cmsis-nn")


def place(graph: Graph, board: Board, runtime: Runtime, *, weights: str | None,
          arena: str | None, code: str) -> Deployment:
    """Choose memories and check that everything fits.

    Raises
    ------
    PlacementError
        When a role has no memory on the board, or nothing that was allowed is large enough.
    """
    defaults = dict(board.placement)
    notes: list[str] = []
    draft = Deployment(graph=graph, board=board, runtime=runtime,
                       weights=_memory(board, weights or defaults["weights"]).name,
                       arena=_memory(board, arena or defaults["arena"]).name,
                       code=_memory(board, code).name)
    if arena is None:
        draft = dataclasses.replace(draft, arena=_roomy_arena(draft, notes))
    _check(draft)
    return dataclasses.replace(draft, notes=tuple(notes))


def _memory(board: Board, wanted: str) -> Memory:
    """Return the memory of that name, or the largest of that role."""
    for memory in board.memories:
        if memory.name == wanted:
            return memory
    of_role = [memory for memory in board.memories if memory.role == wanted]
    if not of_role:
        present = {memory.role for memory in board.memories}
        known = {memory.name for memory in board.memories} | present
        if wanted not in MEMORY_ROLES:
            raise UsageError(f"{board.name} has no memory {wanted!r}; "
                             + did_you_mean(wanted, known))
        raise PlacementError(f"{board.name} has no memory of role {wanted!r}; it has: "
                             + ", ".join(sorted(present)))
    return max(of_role, key=lambda memory: memory.size_bytes)


def _roomy_arena(draft: Deployment, notes: list[str]) -> str:
    """Return the default arena memory, or the next that holds the arena."""
    default = draft.board.memory(draft.arena)
    if draft.ram_bytes <= default.size_bytes:
        return default.name
    on_chip = [memory for memory in draft.board.memories if memory.role in ("tcm", "sram")]
    larger = [memory for memory in on_chip if memory.size_bytes >= draft.ram_bytes]
    if not larger:
        # Refused below, naming the roomiest.
        return max(on_chip, key=lambda memory: memory.size_bytes, default=default).name
    chosen = min(larger, key=lambda memory: memory.size_bytes)
    notes.append(f"arena placed in {chosen.name}: {default.name} has {default.size_bytes:,} "
                 f"bytes, {draft.ram_bytes:,} are needed")
    return chosen.name


def _check(draft: Deployment) -> None:
    board = draft.board
    needs = {draft.arena: draft.ram_bytes}
    needs[draft.weights] = needs.get(draft.weights, 0) + draft.placement.weights_bytes
    needs[draft.code] = needs.get(draft.code, 0) + draft.runtime.code_bytes
    names = {draft.arena: "RAM (arena and runtime)", draft.weights: "weights",
             draft.code: "code"}
    if draft.weights == draft.code:
        names[draft.weights] = "weights and code"
    for memory, needed in needs.items():
        check_fit(f"{draft.graph.name}: {names[memory]}", needed,
                  f"{memory} of {board.name}", board.memory(memory).size_bytes)
