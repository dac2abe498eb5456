"""The target of a runtime whose kernels run on the board's main core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hwmodels.board.facts import Board
from hwmodels.counts import Bill, Counts, Prices
from hwmodels.kernel import Kernel
from hwmodels.simulator import add_background
from twin.deployment.costs import EpochPrediction, LayerCost
from twin.deployment.deployment import Deployment, PriceOnCore
from twin.deployment.memories import choose_memory, find_roomy
from twin.deployment.placement import Plan
from twin.deployment.sites import lower_on_core
from twin.network.graph import Graph
from twin.runtimes import Runtime, list_compilers

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from twin.deployment.changes import WhatIf


class Core:
    """Kernels lowered by the runtime's library, one after another on the core.

    Other targets derive from it and replace what is different; `twin.deployment.deployment.Target`
    says what each part is asked for.
    """

    offloads = False
    borrowed = "its loops are taken to be those of CMSIS-NN"
    paths: tuple[WhatIf, ...] = ()

    def check(self, board: Board, runtime: Runtime) -> None:
        """Accept every board: each has a core."""

    def default_arena(self, board: Board) -> str:
        """Return the memory the board file names."""
        return choose_memory(board, dict(board.placement)["arena"]).name

    def constants(self, deployment: Deployment) -> str:
        """Return the memory of the weights."""
        return deployment.weights

    def rewrite(self, graph: Graph, deployment: Deployment) -> Graph:
        """Return the graph as it is."""
        return graph

    def plan(self, deployment: Deployment) -> Plan:
        """Return the plan of a core."""
        return Plan()

    def settle(self, draft: Deployment, *, asked: bool) -> tuple[str, tuple[str, ...]]:
        """Choose a memory with room where none was asked for."""
        if asked:
            return draft.arena, ()
        return find_roomy(draft.board, draft.arena, draft.working_ram_bytes)

    def needs(self, draft: Deployment) -> dict[str, int]:
        """Arena and weights in one memory each."""
        needs = {draft.arena: draft.working_ram_bytes}
        needs[draft.weights] = needs.get(draft.weights, 0) + draft.placement.weights_bytes
        return needs

    def check_fit(self, draft: Deployment, needs: dict[str, int]) -> None:
        """Nothing more has to fit than what `needs` says."""

    def lower(self, deployment: Deployment) -> tuple[tuple[Kernel, ...], ...]:
        """Return the library's kernels of every layer."""
        return lower_on_core(deployment)

    def price(self, deployment: Deployment, prices: Prices, price_on_core: PriceOnCore, *,
              cold: bool) -> tuple[tuple[LayerCost, ...], tuple[EpochPrediction, ...]]:
        """Price every layer on the core, with what being powered costs meanwhile."""
        costs = price_on_core(deployment, deployment.target.lower(deployment), prices, cold=cold)
        return tuple(replace(cost, bill=add_background(cost.bill, deployment.board, prices))
                     for cost in costs), ()

    def count_setup(self, deployment: Deployment) -> Counts:
        """Nothing is copied before the first inference."""
        return Counts()

    def remarks(self, deployment: Deployment, temperature: str) -> Iterator[str]:
        """Say of an accelerator on the board that it is not used."""
        board = deployment.board
        if board.npu is not None:
            able = list_compilers(board.npu.family)
            yield (f"the {board.npu.family} NPU of {board.name} is not used: "
                   f"{deployment.runtime.identity} runs on the {board.core.model}; "
                   + (f"--runtime {' or '.join(able)} uses it" if able else
                      "no runtime here compiles for it"))

    def estimate_energy(self, board: Board, bill: Bill) -> tuple[float, Interval] | None:
        """There is no accelerator that draws anything."""
        return None
