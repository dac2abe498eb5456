"""The plan of a deployment with an accelerator: groups, pools, steps, each when first asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from hwmodels.board.facts import FLASH_ROLES
from hwmodels.frozen import NamedCounts
from hwmodels.quantities import sum_by_key
from twin.deployment.accelerator.pools import Demand, PoolPlan, Wish, plan_pools
from twin.deployment.draft import Draft
from twin.deployment.memories import Home
from twin.deployment.placement import Fusion, Placement, Plan
from twin.errors import RuntimeRefusedError
from twin.runtimes.compiler import Planner
from twin.runtimes.partition import Grouping, Step


class TaskPlan(Plan):
    """What an accelerator runs of a network, and where its buffers are.

    Parameters
    ----------
    deployment
        On a board with the accelerator.
    """

    def __init__(self, deployment: Draft) -> None:
        self._deployment = deployment

    @cached_property
    def planner(self) -> Planner:
        """What the schedule depends on."""
        deployment = self._deployment
        return Planner(npu=deployment.board.accelerator, offload=deployment.runtime.mapping,
                       weights=deployment.constants, arena=deployment.arena, host=deployment.host,
                       tile_rows=deployment.tile_rows, buffers=deployment.tile_buffers,
                       channel_first=deployment.graph.channel_first)

    @cached_property
    def grouping(self) -> Grouping:
        """Which layers the accelerator runs, and which together."""
        return self._deployment.runtime.compiler.group(self._deployment.executed, self.planner)

    @cached_property
    def fusion(self) -> Fusion:
        """What the accelerator takes off the memory plan."""
        groups = [group for group in self.grouping.groups if group.kind in ("task", "move")]
        return Fusion(
            accelerated=frozenset(i for group in groups for i in group.layers),
            buffers=self.grouping.buffers,
            ends={i: group.layers[-1] for group in groups for i in group.layers[:-1]})

    @cached_property
    def pools(self) -> PoolPlan:
        """Where the accelerator's buffers are."""
        deployment = self._deployment
        board, placement, runtime = deployment.board, deployment.placement, deployment.runtime
        reserved = sum_by_key(((deployment.code, runtime.code_bytes),
                               (deployment.arena, runtime.ram_bytes)))
        moves = board.memory(deployment.weights).role not in FLASH_ROLES
        plan = plan_pools(board, self.planner.npu, Demand(
            slots=placement.arena, constants=self._stored_constants() if moves else (),
            arena=Wish(memory=deployment.arena, pool=deployment.arena_pool),
            weights=Wish(memory=deployment.weights, pool=deployment.weights_pool),
            reserved=reserved, layers=len(deployment.executed.layers),
            alignment_bytes=runtime.alignment_bytes, name=deployment.graph.name))
        scratch = self.grouping.scratch
        return replace(plan, used=scratch + plan.used,
                       activation_bytes=plan.activation_bytes + sum(dict(scratch).values()))

    def _stored_constants(self) -> tuple[tuple[int, int], ...]:
        """Constants in execution order, with the bytes the accelerator's compiler stores."""
        graph = self._deployment.executed
        sizes: dict[int, int] = {}
        for position, layer in enumerate(graph.layers):
            work = self.grouping.works.get(position)
            for place, tensor_id in enumerate(layer.inputs):
                if tensor_id >= 0 and graph.tensors[tensor_id].is_constant:
                    streamed = work.weight_bytes if work is not None and place == 1 else 0
                    sizes.setdefault(tensor_id, streamed or graph.tensors[tensor_id].size_bytes)
        return tuple(sizes.items())

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What runs where, in order.

        Raises
        ------
        RuntimeRefusedError
            When the compiler states more transfers at once than there are channels.
        """
        deployment, npu = self._deployment, self.planner.npu
        steps = deployment.runtime.compiler.schedule(
            deployment.executed, self.planner, self.pools.names, self.grouping)
        for task in (step.task for step in steps if step.task is not None):
            if len(task.transfers) > npu.engines:
                raise RuntimeRefusedError(
                    f"{deployment.runtime.identity}: {task.name}: {len(task.transfers)} transfers "
                    f"at once, {npu.name} has {npu.engines} channels")
        return steps

    @property
    def homes(self) -> Mapping[int, Home]:
        """Every tensor that is in a pool."""
        return self.pools.homes

    @property
    def used(self) -> NamedCounts:
        """Bytes of each pool in use."""
        return self.pools.used

    @property
    def filled(self) -> Mapping[str, tuple[int, int]]:
        """Bytes in use of each RAM buffers are in, and its size."""
        deployment = self._deployment
        parts = deployment.ram_parts
        code = ((deployment.code, parts["code"]),) if parts["code"] else ()
        return {name: (used, deployment.board.memory(name).size_bytes)
                for name, used in sum_by_key((
                    (deployment.arena, parts["runtime"]), *code,
                    *((self.planner.npu.pool(name).memory, used)
                      for name, used in self.pools.used))).items()}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each layer stays on the host."""
        return self.grouping.reasons

    def held_bytes(self, placement: Placement) -> tuple[int, int]:
        """Bytes of the pools' activations and weights."""
        return self.pools.activation_bytes, self.pools.weight_bytes


def plan_of(deployment: Draft) -> TaskPlan:
    """Return the plan of a deployment on an accelerator."""
    plan = deployment.plan
    assert isinstance(plan, TaskPlan), "asked of a runtime of the core"
    return plan
