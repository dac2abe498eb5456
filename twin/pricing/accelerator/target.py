"""The target of runtimes that hand layers to an accelerator; the host core runs the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from calibration.fitting.intervals import Interval
from hwmodels.board.facts import FLASH_ROLES, Board
from hwmodels.counts import Bill, Counts, Prices
from hwmodels.errors import check_word, did_you_mean
from hwmodels.quantities import join_words
from twin.deployment.accelerator.copies import count_copies
from twin.deployment.accelerator.plan import TaskPlan, plan_of
from twin.deployment.accelerator.pools import describe_spills
from twin.deployment.accelerator.weight_width import narrow_weights
from twin.deployment.changes import Choose, WhatIf
from twin.deployment.core import Core
from twin.deployment.costs import Costs
from twin.deployment.deployment import Deployment, PriceOnCore
from twin.deployment.draft import Draft
from twin.deployment.memories import check_fit
from twin.errors import PlacementError, RuntimeRefusedError, UsageError
from twin.network.graph import Graph
from twin.network.operators import OPERATORS
from twin.pricing.accelerator.costs import price_schedule
from twin.pricing.accelerator.energy import estimate_npu_energy
from twin.pricing.accelerator.remarks import list_remarks
from twin.runtimes import Runtime


def _read_host(text: str, graph: Graph, board: Board) -> Choose:
    kept = tuple(name.strip() for name in text.split(",") if name.strip())
    known = [str(layer.index) for layer in graph.layers]
    for name in kept:
        if name not in OPERATORS and name not in known:
            raise UsageError(f"offload.host: {name!r} is neither an operator nor a layer; "
                             + did_you_mean(name, OPERATORS))
    return Choose(field="host", value=kept)


def _read_bits(text: str, graph: Graph, board: Board) -> Choose:
    check_word("placement.weight_bits:", text, ("4", "8"), UsageError)
    return Choose(field="weight_bits", value=int(text))


def _read_tile_rows(text: str, graph: Graph, board: Board) -> Choose:
    if text != "auto" and not (text.isdecimal() and int(text)):
        raise UsageError(f"offload.tile_rows: {text!r}; accepted: auto, or a number from 1 on")
    return Choose(field="tile_rows", value=None if text == "auto" else int(text))


def _read_buffers(text: str, graph: Graph, board: Board) -> Choose:
    check_word("offload.buffers:", text, ("1", "2"), UsageError)
    return Choose(field="tile_buffers", value=int(text))


class Accelerator(Core):
    """Tasks of the accelerator, planned by its compiler's rules; other layers on the host core."""

    borrowed = "its schedule is inferred, host operators run CMSIS-NN"
    paths = (
        WhatIf(name="offload.host", accepted="operators or layer indices, by commas",
             does="what is kept on the host core", read=_read_host),
        WhatIf(name="placement.weight_bits", accepted="4, 8", read=_read_bits,
             does="width convolution weights are narrowed to", aliases=("offload.weight_bits",)),
        WhatIf(name="offload.tile_rows", accepted="auto, a number from 1 on", read=_read_tile_rows,
               does="rows of outputs of a tile, where the compiler tiles"),
        WhatIf(name="offload.buffers", accepted="1, 2", read=_read_buffers,
               does="buffers of a tile's operands: with 2 transfers run beside the units"),
    )

    def check(self, board: Board, runtime: Runtime) -> None:
        """Refuse a board without the accelerator the runtime compiles for."""
        if not runtime.accelerated:
            raise RuntimeRefusedError(f"runtime {runtime.identity}: target {runtime.target} needs "
                                      "a section `offload`; there is none")
        family = runtime.mapping.family
        if board.npu is None or board.npu.family != family:
            has = board.npu.family if board.npu is not None else "none"
            raise RuntimeRefusedError(f"runtime {runtime.identity} needs an accelerator of family "
                                      f"{family}; {board.name} has {has}")

    def default_places(self, board: Board, runtime: Runtime) -> Mapping[str, str]:
        """Return the memories the accelerator's compiler lays networks out for."""
        return {**super().default_places(board, runtime),
                **runtime.compiler.place(board.accelerator)}

    def constants(self, deployment: Draft) -> str:
        """Return the weights' memory where that is a flash, else the board's flash."""
        asked = deployment.board.memory(deployment.weights)
        return asked.name if asked.role in FLASH_ROLES else dict(
            deployment.board.placement)["weights"]

    def rewrite(self, graph: Graph, deployment: Draft) -> Graph:
        """Narrow weights where that was asked for."""
        if deployment.weight_bits is None:
            return graph
        return narrow_weights(graph, deployment.weight_bits, deployment.runtime.compiler.group(
            graph, plan_of(deployment).planner).reasons)

    def plan(self, deployment: Draft) -> TaskPlan:
        """Return groups, pools and steps."""
        return TaskPlan(deployment)

    def settle(self, draft: Draft, *, asked: bool) -> tuple[str, tuple[str, ...]]:
        """Keep the arena, refuse memories out of reach, and say what spilled."""
        pools = plan_of(draft).pools
        _check_reach(draft)
        return draft.arena, describe_spills(pools)

    def needs(self, draft: Draft) -> dict[str, int]:
        """Weights in a flash; what the pools hold has found its place."""
        flash = draft.board.memory(draft.weights).role in FLASH_ROLES
        return {draft.weights: draft.placement.weights_bytes} if flash else {}

    def check_fit(self, draft: Draft, needs: dict[str, int]) -> None:
        """Refuse weights the pools of their memory do not hold."""
        if draft.weights in needs:
            pools = [pool for pool in draft.board.accelerator.pools if pool.memory == draft.weights]
            check_fit(f"{draft.graph.name}: weights", draft.placement.weights_bytes,
                      join_words([pool.name for pool in pools]),
                      sum(pool.size_bytes for pool in pools))

    def price(self, deployment: Deployment, prices: Prices, price_on_core: PriceOnCore, *,
              cold: bool) -> Costs:
        """Price tasks, host operators and the hand-over; the host is cold in either case."""
        return price_schedule(deployment, prices, price_on_core)

    def count_setup(self, deployment: Deployment) -> Counts:
        """Count copying the weights to their pools."""
        return count_copies(deployment)

    def remarks(self, deployment: Deployment, temperature: str) -> Iterator[str]:
        """Yield what is omitted and what is assumed."""
        return list_remarks(deployment, temperature)

    def estimate_energy(self, board: Board, bill: Bill) -> tuple[float, Interval] | None:
        """Return the energy of accelerator and memories, and where nine in ten would lie."""
        return estimate_npu_energy(bill, board)


def _check_reach(draft: Draft) -> None:
    """Refuse memories out of reach, for tiles or loaded weights alone, or of another mode."""
    npu = draft.board.accelerator
    for what, memory in (("arena", draft.arena), ("weights", draft.weights)):
        reached = dict.fromkeys(pool.memory for pool in npu.pools if not pool.scratch and (
            what == "weights" or not pool.resident))
        able = [name for name in reached
                if what == "weights" or draft.board.memory(name).role not in FLASH_ROLES]
        if memory not in reached:
            raise PlacementError(f"{draft.board.name}: the NPU holds no {what} in {memory}; "
                                 f"accepted: {', '.join(able)}, or a pool: " + ", ".join(
                                     pool.name for pool in npu.pools if pool.memory in able))
    places = draft.runtime.compiler.list_places(npu)
    asked = {"weights": draft.weights, "arena": draft.arena}
    if places and places[npu.memory_mode] != asked:
        words = {mode: f"weights in {where['weights']}, arena in {where['arena']}"
                 for mode, where in places.items()}
        able = [f"npu.memory_mode={mode}" for mode in places if places[mode] == asked] or [
            f"npu.memory_mode={mode} ({there})" for mode, there in words.items()]
        raise PlacementError(
            f"{draft.board.name}: placement: npu.memory_mode={npu.memory_mode} has "
            f"{words[npu.memory_mode]}, not weights in {draft.weights}, arena in {draft.arena}; "
            f"accepted: --set {' or '.join(able)}")
