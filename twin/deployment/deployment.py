"""A deployment: model, board, runtime, placement and clocks: all a prediction depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol

from hwmodels.board.facts import FLASH_ROLES, Board
from hwmodels.board.file import change_board, list_boards, load_board
from hwmodels.counts import Bill, Counts, Prices
from hwmodels.frozen import entity
from hwmodels.kernel import Lowered
from hwmodels.quantities import Settings
from twin.deployment.changed_board import change_own_board
from twin.deployment.choice import BEST, DEFAULT, choose_runtime, list_best
from twin.deployment.costs import Costs, LayerCost
from twin.deployment.draft import Draft, Placer
from twin.deployment.memories import choose_memories, choose_memory, choose_pool
from twin.deployment.settling import check_draft, settle
from twin.deployment.support import check_network
from twin.errors import DoesNotFitError, PlacementError, RuntimeRefusedError, UsageError
from twin.network.graph import Graph
from twin.runtimes import Runtime
from twin.runtimes.targets import load_target

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from hwmodels.paths.traffic import KernelTraffic
    from twin.deployment.changes import Change

PREDICT = "twin.pricing.calibrated:predict_calibrated"
"""What compares deployments, "module:function" as `twin.runtimes.targets` names targets."""

PriceOnCore = Callable[..., tuple[LayerCost, ...]]
"""`twin.pricing.lines.price_on_core`."""


@entity
class Deployment(Draft):
    """A network placed on a board under a runtime; every what-if is a changed Deployment.

    Its fields are those of `Draft`; it was checked to fit, unless made by hand.
    """

    @property
    def target(self) -> Target:
        """How the runtime's kernels get onto the board."""
        return load_target(self.runtime.target)

    @property
    def store_name(self) -> str:
        """What the image fills: a flash, or a memory a loader fills, which no flash limits."""
        return "loaded" if self.store.loaded and not self.target.executes else "flash"

    @property
    def is_itemised(self) -> bool:
        """Whether its bill is counts of kernels on the core times prices, and nothing beside."""
        return not self.accelerated and self.transfers is None

    def replace(self, overrides: Settings | None = None, /, **fields: object) -> Deployment:
        """Return a changed deployment; board paths are validated by the board's own rules.

        Parameters
        ----------
        overrides
            Dotted paths: those of `twin.deployment.changes.list_paths`, or any of the board file.
            Without any, and without fields, the deployment is returned as it is.
        **fields
            Fields of the dataclass.

        Raises
        ------
        TwinError
            When a path does not exist or the board forbids the value.
        """
        if not (overrides or fields):
            return self
        from twin.deployment.changes import parse_changes

        if isinstance(overrides, (str, list, tuple)):
            raise UsageError(f"replace: {overrides!r} is no mapping; accepted: one of paths, such "
                             "as {'placement.arena': 'sram'}")
        named = {f"placement.{what}": fields.pop(what) for what in ("weights", "arena", "code")
                 if what in fields}
        changed, overrides = dataclasses.replace(self, **fields), {  # type: ignore[arg-type]
            **named, **(overrides or {})}
        if overrides.get("runtime") == BEST:
            overrides["runtime"] = find_best(changed.graph, changed.board, **changed.places)
        return _apply(changed, parse_changes(overrides, changed.graph, changed.board,
                                             changed.runtime, changed.original, changed.rewritten))


class Target(Placer, Protocol):
    """How a runtime's kernels get onto hardware; `twin.deployment.core.Core` is a core's."""

    executes: bool

    def lower(self, deployment: Deployment) -> tuple[Lowered, ...]:
        """Return the core's kernels, one tuple per layer; of an alias none."""

    def content(self, deployment: Deployment) -> str:
        """Return what kernels depend on besides the deployment, as a hash or nothing."""

    def price(self, deployment: Deployment, prices: Prices, price_on_core: PriceOnCore, *,
              cold: bool) -> Costs:
        """Return what every layer costs, and the accelerator's tasks."""

    def executed_traffic(self, deployment: Deployment, *, cold: bool) -> tuple[KernelTraffic, ...]:
        """Return what functions of a program did to caches and memories, where it executes."""

    def count_setup(self, deployment: Deployment) -> Counts:
        """Count what is done once before the first inference, besides preparing operators."""

    def name_kernels(self, deployment: Deployment) -> str:
        """Return the runtime whose kernels machine code has, for their prices; "" where unknown."""

    def remarks(self, deployment: Deployment, temperature: str) -> Iterator[str]:
        """Yield what a reader of the figures must know."""

    def estimate_energy(self, board: Board, bill: Bill) -> tuple[float, Interval] | None:
        """Return what an accelerator and its memories draw, in microjoules."""


def place_under(graph: Graph, board: Board, wanted: str | None, weights: str | None,
                arena: str | None) -> tuple[Deployment, tuple[str, ...]]:
    """Return a network placed under the library wanted of it, and notes on that choice.

    Parameters
    ----------
    wanted, weights, arena
        As `twin.deployment.deploy.deploy` takes them, but for "best".
    """
    library, notes = choose_runtime(graph, wanted, board)
    board, sized = _size_npu(graph, board, library)
    return place(graph, board, library, weights=weights, arena=arena,
                 code=dict(board.placement)["code"]), notes + sized


def _size_npu(graph: Graph, board: Board, library: Runtime) -> tuple[Board, tuple[str, ...]]:
    """Return a board with the NPU a network was compiled for, where it states memories of that."""
    config = library.compiler.config_of(graph) if library.accelerated else ""
    npu = board.npu
    if not config or (npu is not None and (config == npu.config or not npu.sizes)):
        return board, ()
    if npu is None or config not in npu.sizes:
        boards = [name for name in list_boards() if (one := load_board(name).npu) is not None
                  and config in (one.config, *one.sizes)]
        has = "no NPU" if npu is None else f"{npu.config or npu.family}"
        raise RuntimeRefusedError(f"{graph.name}: compiled for {config}, {board.name} has {has}; "
                                  f"accepted: -b {' or '.join(boards)}, or the file from before "
                                  "its compiler")
    return change_board(board, {"npu.config": config}), (
        f"npu.config: {config}, which {graph.name} was compiled for",)


def find_best(graph: Graph, board: Board, weights: str | None, arena: str | None) -> str:
    """Return the library measured on a board that is fastest, of those that run a network there."""
    found = []
    for name in list_best(board):
        with suppress(PlacementError, RuntimeRefusedError):
            found.append(place_under(graph, board, name, weights, arena)[0])
    return pick_fastest(found).runtime.identity if found else DEFAULT


def pick_fastest(candidates: Sequence[Deployment]) -> Deployment:
    """Return the deployment whose inference is predicted to take least time, caches warm."""
    if len(candidates) == 1:
        return candidates[0]
    predict = resolve_name(PREDICT)
    return min(candidates, key=lambda one: float(predict(one).time_us))


def place(graph: Graph, board: Board, runtime: Runtime, *, weights: str | None, arena: str | None,
          code: str, host: tuple[str, ...] = (), weight_bits: int | None = None,
          extension: str | None = None, remedy: bool = True) -> Deployment:
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
    places = target.default_places(board, runtime)
    weights_asked, arena_asked = weights or places["weights"], arena or places["arena"]
    weights_in, arena_in = (choose_memories(board, runtime.splits_memories, what, text)
                            for what, text in (("weights", weights_asked), ("arena", arena_asked)))
    draft = Deployment(graph=graph, board=board, runtime=runtime, host=host,
                       weight_bits=weight_bits, extension=extension,
                       weights=weights_in[0], weights_spill=weights_in[1:],
                       weights_pool=choose_pool(board, weights_asked),
                       arena=arena_in[0], arena_spill=arena_in[1:],
                       arena_pool=choose_pool(board, arena_asked),
                       asked=tuple(what for what, text in (("weights", weights), ("arena", arena))
                                   if text), code=choose_memory(board, code).name)
    for name in arena_in:
        if board.memory(name).role in FLASH_ROLES:
            raise PlacementError(f"{board.name}: the arena cannot be in {name}, which is "
                                 f"{board.memory(name).role}; accepted: a memory of role tcm, "
                                 "sram, external_ram or npu_ram")
    try:
        return settle(draft, arena=arena is None, weights=weights is None)
    except DoesNotFitError as error:
        if not remedy:
            raise
        return _move(draft, error)


def _move(draft: Deployment, error: DoesNotFitError) -> Deployment:
    """Return the fastest deployment that fits, of moves of what nobody placed; both move last.

    Raises
    ------
    DoesNotFitError
        With what would fit if what somebody placed were elsewhere, else what lacks least.
    """
    from twin.deployment.split import list_moves, name_nearest

    asked, remedy, short = draft.places, "", {(draft.weights_named, draft.arena_named): error.short}
    fitting = [*_move_code(draft, error)]
    for moves in list_moves(draft.board, draft.runtime.splits_memories, draft.weights, draft.arena):
        for store, ram in moves:
            kept = (store and asked["weights"]) or (ram and asked["arena"])
            if kept and remedy:
                continue
            try:
                placed = place(
                    draft.graph, draft.board, draft.runtime, weights=store or asked["weights"],
                    arena=ram or asked["arena"], code=draft.code, host=draft.host,
                    weight_bits=draft.weight_bits, extension=draft.extension, remedy=False)
            except DoesNotFitError as refused:
                short[store or draft.weights_named, ram or draft.arena_named] = refused.short
            except PlacementError:
                continue
            else:
                if not kept:
                    fitting.append(placed)
                else:
                    remedy = " ".join(f"--set placement.{what}={name}" for what, name in (
                        ("weights", store), ("arena", ram)) if name)
        if fitting:
            fastest = dataclasses.replace(pick_fastest(fitting), asked=draft.asked)
            return fastest.noted((
                f"placement: weights in {fastest.weights_named}, arena in {fastest.arena_named}"
                + f", code in {fastest.code}" * (fastest.code != draft.code)
                + f": the fastest of {len(fitting)} that fit, as with {draft.weights_named} and "
                f"{draft.arena_named} it does not",))
    raise DoesNotFitError(f"{error}; " + (
        f"with {remedy} it fits" if remedy else name_nearest(draft.board, short)), error.short,
        draft) from error


def _move_code(draft: Deployment, error: DoesNotFitError) -> Iterator[Deployment]:
    """Yield deployments that fit with their code in another memory than the board file's."""
    board = draft.board
    if draft.code in error.short and draft.code == choose_memory(
            board, dict(board.placement)["code"]).name:
        for memory in board.memories:
            if memory.name != draft.code and memory.role not in ("npu_ram", "external_ram"):
                with suppress(PlacementError):
                    yield place(draft.graph, board, draft.runtime, **draft.places, host=draft.host,
                                weight_bits=draft.weight_bits, extension=draft.extension,
                                code=memory.name, remedy=False)


def _apply(before: Deployment, changes: Sequence[Change]) -> Deployment:
    """Return a deployment with changes made, in their order, and placed again."""
    from twin.deployment import changes as asked
    from twin.deployment.transfers import merge_loads

    after, loads = before, []
    places = {**before.places, "code": before.code}
    for change in changes:
        match change:
            case asked.ChangeNetwork(graph=graph, asked=rewritten):
                original = (before.original or before.graph) if rewritten else None
                after = dataclasses.replace(after, graph=graph, rewritten=rewritten,
                                            original=original)
            case asked.ChangeRuntime(runtime=runtime, notes=notes):
                after = dataclasses.replace(after, runtime=runtime,
                                            chosen=after.chosen if notes is None else notes)
            case asked.Choose(field=field, value=value) if field in places:
                places[field] = str(value)
            case asked.Choose(field=field, value=value):
                after = dataclasses.replace(after, **{field: value})  # type: ignore[arg-type]
            case asked.ChangeBoard(settings=settings):
                after = change_own_board(after, settings)
            case asked.ChangeLoad():
                loads.append(change)
    if after.graph is not before.graph:
        check_network(after.graph, after.runtime)
    placed = place(after.graph, after.board, after.runtime, weights=places["weights"],
                   arena=places["arena"], code=places["code"] or before.code, host=after.host,
                   weight_bits=after.weight_bits, extension=after.extension)
    placed = placed.noted((*after.graph.notes, *after.chosen), first=True)
    moved = dataclasses.replace(placed, weights_via=after.weights_via, tiles=after.tiles,
                                tile_rows=after.tile_rows, tile_buffers=after.tile_buffers,
                                chosen=after.chosen, own_scale=after.own_scale,
                                scale_stated=after.scale_stated, original=after.original,
                                rewritten=after.rewritten,
                                loads=merge_loads(placed.board, after.loads, loads))
    check_draft(moved)
    return moved
