"""A model put on a board: where and under what was asked, or where changes to be made have it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, load_board
from hwmodels.quantities import Settings
from twin.deployment.changed_board import other_scale
from twin.deployment.choice import BEST, DEFAULT, default_runtime, list_defaults
from twin.deployment.deployment import Deployment, find_best, place_under
from twin.deployment.support import runs
from twin.errors import NotApplicableError, PlacementError, RuntimeRefusedError
from twin.network.graph import Graph
from twin.network.readers import read_model


def deploy(model: str | Path | Graph, board: str | Path | Board, *, runtime: str | None = None,
           clock_hz: float | None = None, weights: str | None = None, arena: str | None = None,
           assume_unsupported: str | None = None, follow_clock: bool = True,
           network: Settings | None = None) -> Deployment:
    """Put a model on a board.

    Parameters
    ----------
    model : str, Path or Graph
        A .tflite or .onnx file, the name of a zoo network, or a graph.
    board : str, Path or Board
        A board's name or alias, a board file, or a board.
    runtime
        "name@version"; "default" or None: what the board's vendor builds; "best": the fastest of
        those measured on it; "unknown": nobody described it, at the spread between libraries.
    clock_hz
        CPU clock in hertz.
    follow_clock
        Whether another clock takes the lowest voltage scale it may run at; what is measured or
        published keeps the board's.
    weights, arena
        Memory role ("flash", "sram", "tcm", ...), memory name, or an NPU's pool ("npuRAM4").
    assume_unsupported
        "copy" prices unknown operators as memory copies, marked `assumed`.
    network
        Changes of the network, as `replace` takes them ("network.width": 0.5): for one that only
        fits when it is changed.

    Returns
    -------
    Deployment
        Placed, and checked to fit.
    """
    graph = model if isinstance(model, Graph) else read_model(
        model, assume_unsupported=assume_unsupported)
    original, rewritten = graph, dict[str, str]()
    if network:
        from twin.network.rewrites.rewrite import drop_neutral, rewrite_network

        rewritten = drop_neutral(network)
        graph = rewrite_network(graph, rewritten)
        rewritten = {} if graph is original else rewritten
    stated = machine = board if isinstance(board, Board) else load_board(board)
    if clock_hz is not None:
        machine = change_board(machine, {f"clocks.{machine.core.clock}.frequency_hz": clock_hz},
                               follow_clock=follow_clock)
    if runtime == BEST:
        runtime = find_best(graph, machine, weights, arena)
    placed, notes = place_under(graph, machine, runtime, weights, arena)
    return replace(placed.noted((*graph.notes, *notes), first=True), chosen=notes,
                   own_scale=other_scale(stated, placed.board),
                   original=original if rewritten else None, rewritten=tuple(rewritten.items()))


def deploy_towards(model: str | Path | Graph, board: str | Path | Board,
                   changes: Settings, **chosen: Any) -> Deployment:
    """Put a model on a board where it fits, or else where and as changes to be made have it.

    Parameters
    ----------
    model, board, **chosen
        Of `deploy`.
    changes
        Of `Deployment.replace`, which is to make them: where the model fits as it is, none is made
        here; else those of network, memories' sizes and places are.

    Raises
    ------
    PlacementError, RuntimeRefusedError
        When it fits, or is for the NPU, neither way.

    Notes
    -----
    Where no runtime is asked for, the first of the defaults whose kernels can be had as changes
    have them: compiler levels are of libraries that were counted.
    """
    kernels = {path: str(one) for path, one in changes.items() if path.startswith("kernels.")}
    if kernels and chosen.get("runtime") in (None, DEFAULT):
        if not isinstance(model, Graph):
            model = read_model(model, assume_unsupported=chosen.get("assume_unsupported"))
        able = _find_able(model, board if isinstance(board, Board) else load_board(board), kernels)
        if able is not None:
            notes = (f"runtime: {able}, the first by default with {', '.join(kernels)} to choose: "
                    "none was asked for",)
            return note_choice(deploy_towards(model, board, changes, **{**chosen, "runtime": able}),
                               notes)
    try:
        return deploy(model, board, **chosen)
    except (PlacementError, RuntimeRefusedError):
        room = choose_room(changes)
        if not room:
            raise
    network, sizes = ({path: room.pop(path) for path in [*room] if path.startswith(stems)}
                      for stems in ("network.", ("memories.", "npu.")))
    places = {path.removeprefix("placement."): str(value) for path, value in room.items()}
    machine = board if isinstance(board, Board) else load_board(board)
    return deploy(model, change_board(machine, sizes), **{"network": network, **chosen, **places})


def note_choice(made: Deployment, notes: tuple[str, ...]) -> Deployment:
    """Return a deployment that says first what was chosen for it, and why."""
    return replace(made.noted(notes, first=True), chosen=notes)


def _find_able(graph: Graph, board: Board, kernels: Mapping[str, str]) -> str | None:
    """Return the first default library with such kernels, where the first of all has none."""
    from twin.deployment.kernels import choose_kernels, list_levels

    first, counted = default_runtime(graph, board), None
    for library in (first, *list_defaults(board)):
        with suppress(NotApplicableError):
            choose_kernels(kernels, library, board)
            if library is first or runs(graph, library, board):
                return None if library is first else library.identity
        if "kernels.level" in kernels and list_levels(library):
            counted = counted or library.identity  # which says what it was counted at
    return counted


def choose_room(changes: Settings) -> dict[str, object]:
    """Return the changes by which a model may fit that does not fit as it is."""
    return {path: value for path, value in changes.items()
            if path.startswith(("network.", "memories."))
            or path in ("placement.weights", "placement.arena", "npu.config", "npu.memory_mode")}
