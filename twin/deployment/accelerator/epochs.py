"""From a graph to the steps of an inference: epochs on the accelerator, operators on the host.

steps = plan_steps(graph, planner)      what runs where, in execution order
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hwmodels.npu import THROUGH, Epoch, Link, StreamEngine, UnitWork
from hwmodels.npu.binding import bind_engines
from twin.deployment.accelerator.grouping import (
    Group,
    Grouping,
    Planner,
    plan_groups,
    streamed_inputs,
)
from twin.deployment.accelerator.streams import (
    copy_image,
    move_tensors,
    pool_of,
    read_activation,
    read_weights,
    stage_weights,
    transpose_layout,
    write_activation,
)
from twin.deployment.costs import Step
from twin.network.graph import DTYPE_BITS, Graph, Tensor
from twin.network.operators import is_alias


def plan_steps(graph: Graph, planner: Planner, pools: Mapping[int, str] | None = None,
               grouping: Grouping | None = None) -> tuple[Step, ...]:
    """Return what runs where, in execution order.

    Parameters
    ----------
    graph : Graph
        The network that runs.
    planner : Planner
        Accelerator, rules, memories and choices.
    pools : mapping of int to str, optional
        Pool of each tensor that was placed; others are in the first pool of their memory.
    grouping : Grouping, optional
        From `plan_groups`, where it is known already.

    Returns
    -------
    tuple of Step
        Every layer is in exactly one step, and in one more for each input copied, each input or
        output transposed and for its weights where they are staged.
    """
    plan = _Plan(graph, planner, pools or {}, grouping or plan_groups(graph, planner))
    steps = plan.copy_inputs()
    for group in plan.grouping.groups:
        steps += [*plan.stage_weights(group), plan.make_step(group)]
    return (*steps, *(plan.transpose_outputs() if planner.channel_first else ()))


class _Plan:
    """A network with a pool for each tensor; epochs are named in the order they are made."""

    def __init__(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping) -> None:
        self.graph = graph
        self.planner = planner
        self.pools = pools
        self.grouping = grouping
        self.arena = pool_of(planner.npu, planner.arena).name
        self.weights = pool_of(planner.npu, planner.weights, beside=self.arena).name
        self.named = 0

    def next_name(self) -> str:
        """Count what is not an alias from 1, as the compiler does, host operators included."""
        self.named += 1
        return f"epoch_{self.named}"

    def pool(self, tensor_id: int) -> str:
        """Pool of a tensor."""
        constant = self.graph.tensors[tensor_id].is_constant
        return self.pools.get(tensor_id) or (self.weights if constant else self.arena)

    def make_step(self, group: Group) -> Step:
        """Return what a group becomes."""
        if group.kind == "alias":
            return Step(kind="alias", layers=group.layers)
        if group.kind == "epoch":
            return self._chain_step(group)
        layer = self.graph.layers[group.chain[0]]
        if group.kind == "move":
            return self._move_step(group.chain[0])
        return Step(kind="host", layers=group.layers, shares=(1.0,), epoch=Epoch(
            name=self.next_name(), kind="sw", operations=((layer.op, 1),), layers=(layer.index,)))

    def _chain_step(self, group: Group) -> Step:
        fed = self._engines(group.chain)
        if group.joined:  # The stream starts where the joined layers read.
            source_id = self.graph.layers[group.joined[0]].inputs[0]
            size = self.graph.tensors[source_id].size_bytes
            fed[0] = (replace(fed[0][0], bytes=size, buffer_bytes=size,
                              pool=self.pool(source_id)), 0)
        engines = bind_engines([engine for engine, _ in fed], self.planner.npu)
        works = [self.grouping.works[i] for i in group.chain]
        operations: dict[str, int] = {}
        for work in works:
            for name, count in work.operations:
                operations[name] = operations.get(name, 0) + count
        efforts = [self._effort(i) for i in group.layers]
        return Step(
            kind="epoch", layers=group.layers,
            shares=tuple(effort / sum(efforts) for effort in efforts),
            epoch=Epoch(name=self.next_name(), kind="hw", engines=engines,
                        units=tuple(unit for work in works for unit in work.units),
                        operations=tuple(operations.items()),
                        links=_link(engines, [unit for _, unit in fed],
                                    sum(len(work.units) for work in works)),
                        layers=tuple(self.graph.layers[i].index for i in group.layers)))

    def _engines(self, chain: tuple[int, ...]) -> list[tuple[StreamEngine, int]]:
        """Engines of a chain, each with the unit it feeds; the last one takes the result.

        Those in are the first input, weights and second operands.
        """
        made = {self.graph.layers[i].outputs[0] for i in chain}
        engines: list[tuple[StreamEngine, int]] = []
        unit = 0
        for i in chain:
            layer, work = self.graph.layers[i], self.grouping.works[i]
            narrow = work.unpacked  # The first unit takes the weights, the next the input.
            rows = layer.window.kernel[0] if layer.window is not None else 1
            engines += [(read_activation(self.graph.tensors[tensor_id], self.pool(tensor_id),
                                         scattered=work.scattered, rows=rows), unit + narrow)
                        for tensor_id in streamed_inputs(layer, made, work)]
            if work.weight_streams:
                engines += [(engine, unit) for engine in read_weights(
                    work, self.pool(layer.inputs[1]), encoded=narrow)]
            unit += len(work.units)
        result = self.graph.layers[chain[-1]].outputs[0]
        engines.append((write_activation(
            self.graph.tensors[result], self.pool(result),
            scattered=self.grouping.works[chain[0]].scattered), unit - 1))
        return engines

    def _effort(self, position: int) -> int:
        """Work of a layer, for its share: multiply-accumulates, and elements it gives."""
        layer = self.graph.layers[position]
        work = self.grouping.works.get(position)
        macs = 0 if work is None else sum(unit.macs for unit in work.units)
        return macs + max(1, self.graph.tensors[layer.outputs[0]].elements)

    def _move_step(self, position: int) -> Step:
        layer, npu = self.graph.layers[position], self.planner.npu
        engines = move_tensors(self.graph, layer, self.pool)
        kept = engines[:npu.engines - npu.engines % 2]
        left = engines[len(kept):]
        if left:  # More pieces than engines: the last pair walks the rest, too.
            bytes_left = sum(engine.bytes for engine in left if engine.direction == "in")
            kept[-2:] = [replace(engine, bytes=engine.bytes + bytes_left) for engine in kept[-2:]]
        return Step(kind="epoch", layers=(position,), shares=(1.0,), epoch=Epoch(
            name=self.next_name(), kind="hybrid", engines=bind_engines(kept, npu),
            units=(UnitWork(kind=THROUGH, count=max(1, len(kept) // 2)),),
            operations=((layer.op, 1),), layers=(layer.index,)))

    def stage_weights(self, group: Group) -> list[Step]:
        """Return copies of a chain's weights to the pool they are staged in, one epoch each."""
        steps = []
        for position in group.chain if group.kind == "epoch" else ():
            layer, work = self.graph.layers[position], self.grouping.works[position]
            if work.staged_in:
                engines = stage_weights(work, self.pool(layer.inputs[1]))
                steps.append(self._copy_step(position, engines))
        return steps

    def _copy_step(self, position: int, engines: Sequence[StreamEngine]) -> Step:
        return Step(kind="epoch", layers=(position,), shares=(1.0,), epoch=Epoch(
            name=self.next_name(), kind="copy", units=(UnitWork(kind=THROUGH),),
            engines=bind_engines(engines, self.planner.npu),
            operations=(("memcpy.identity", 1),),
            layers=(self.graph.layers[position].index,)))

    def copy_inputs(self) -> list[Step]:
        """Transpose inputs that come channel first, copy images as the runtime says, an epoch each.

        A copy is made for an epoch; an operator of the host reads what the application wrote. An
        input of one channel, both of whose layouts are the same, is taken to need none (assumed).
        """
        graph, rule, steps = self.graph, self.planner.offload.input_copy, []
        for tensor_id in graph.inputs:
            tensor = graph.tensors[tensor_id]
            reader = next((position for position, layer in enumerate(graph.layers)
                           if tensor_id in layer.inputs and not is_alias(layer)), None)
            if reader is None or not self._has_layout(tensor):
                continue
            if self.planner.channel_first:
                steps.append(self._copy_step(
                    reader, transpose_layout(tensor, self.pool(tensor_id))))
            elif rule != "none" and not self.grouping.reasons[reader]:
                steps.append(self._copy_step(reader, copy_image(
                    tensor, self.pool(tensor_id), scattered=rule == "scattered")))
        return steps

    def transpose_outputs(self) -> list[Step]:
        """Layout transposes of outputs that are handed back channel first, one epoch each."""
        graph, steps = self.graph, []
        for tensor_id in graph.outputs:
            tensor = graph.tensors[tensor_id]
            writer = next((position for position, layer in enumerate(graph.layers)
                           if tensor_id in layer.outputs), None)
            if writer is not None and self._has_layout(tensor):
                steps.append(self._copy_step(
                    writer, transpose_layout(tensor, self.pool(tensor_id))))
        return steps

    def _has_layout(self, tensor: Tensor) -> bool:
        """Whether engines would reorder a tensor that is channel first."""
        return (len(tensor.shape) == 4 and tensor.shape[-1] > 1
                and math.prod(tensor.shape[1:3]) > 1 and DTYPE_BITS[tensor.dtype] == 8
                and self.planner.npu.engines > 1)


def _link(engines: Sequence[StreamEngine], units: Sequence[int], count: int) -> tuple[Link, ...]:
    """Dataflow of a chain: every engine in feeds its unit, each unit the next, the last one out."""
    links = [Link(f"E{engine.index}", f"U{unit}") if engine.direction == "in"
             else Link(f"U{unit}", f"E{engine.index}")
             for engine, unit in zip(engines, units, strict=True)]
    return (*links, *(Link(f"U{unit}", f"U{unit + 1}") for unit in range(count - 1)))
