"""From a graph to the steps of an inference: tasks on the accelerator, operators on the host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hwmodels.quantities import sum_by_key
from hwmodels.schedule import THROUGH, Link, Task, Transfer, UnitWork
from hwmodels.schedule.launch import launch_tasks
from twin.network.graph import DTYPE_BITS, Graph
from twin.network.operators import is_alias
from twin.runtimes.by_role.grouping import LayerRules, streamed_inputs
from twin.runtimes.by_role.transfers import (
    bind_transfers,
    copy_image,
    move_tensors,
    pool_of,
    read_activation,
    read_weights,
    stage_weights,
    write_activation,
)
from twin.runtimes.compiler import Planner
from twin.runtimes.partition import Group, Grouping, Step, Work

COPY = "memcpy.identity"
"""Operation of a copy, for reports."""


def plan_steps(graph: Graph, planner: Planner, pools: Mapping[int, str], grouping: Grouping,
               rules: LayerRules) -> tuple[Step, ...]:
    """Return what runs where, in execution order; `Compiler.schedule` says of what.

    Every layer is in exactly one step, and in one more for each input copied, each input or output
    transposed and for its weights where they are staged.
    """
    plan = _Plan(graph, planner, pools, grouping, rules)
    steps = plan.copy_inputs()
    for group in grouping.groups:
        steps += [*plan.stage_weights(group), plan.make_step(group)]
    return launch_steps((*steps, *(plan.transpose_outputs() if planner.channel_first else ())),
                        planner)


def launch_steps(steps: Sequence[Step], planner: Planner) -> tuple[Step, ...]:
    """Return steps whose tasks state what launching them costs, as the board says it."""
    asked = [(step.task, step.stepped) for step in steps if step.task is not None]
    tasks = iter(launch_tasks([task for task, _ in asked], planner.npu,
                              stepped=[stepped for _, stepped in asked]))
    return tuple(step if step.task is None else replace(step, task=next(tasks)) for step in steps)


class _Plan:
    """A network with a memory for each tensor; tasks are named in the order they are made."""

    def __init__(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping, rules: LayerRules) -> None:
        self.graph, self.planner, self.pools = graph, planner, pools
        self.grouping, self.rules = grouping, rules
        self.arena = pool_of(planner.npu, planner.arena).name
        self.weights = pool_of(planner.npu, planner.weights, beside=self.arena).name
        self.named = 0

    def next_name(self) -> str:
        """Count what is not an alias from 1, as the compiler does, host operators included."""
        self.named += 1
        return f"{self.rules.task_name}_{self.named}"

    def pool(self, tensor_id: int) -> str:
        """Pool of a tensor."""
        constant = self.graph.tensors[tensor_id].is_constant
        return self.pools.get(tensor_id) or (self.weights if constant else self.arena)

    def make_step(self, group: Group) -> Step:
        """Return what a group becomes."""
        if group.kind == "alias":
            return Step(kind="alias", layers=group.layers)
        if group.kind == "task":
            return self._chain_step(group)
        position = group.chain[0]
        layer = self.graph.layers[position]
        if group.kind == "move":
            return self._step(position, "move", layer.op, self._share_channels(
                move_tensors(self.graph, layer, self.pool)))
        return replace(self._step(position, "host", layer.op, ()), kind="host")

    def _step(self, position: int, kind: str, operation: str,
              transfers: Sequence[Transfer]) -> Step:
        """Return a step of one layer whose transfers pass no unit."""
        bound = bind_transfers(transfers, self.planner.npu)
        pairs = len(bound) // 2
        return Step(
            kind="task", layers=(position,), shares=(1.0,), stepped=kind == "move", task=Task(
                name=self.next_name(), kind=self.rules.kinds[kind], transfers=bound,
                units=(UnitWork(kind=THROUGH, count=pairs),) if pairs else (),
                operations=((operation, 1),), layers=(self.graph.layers[position].index,)))

    def _share_channels(self, transfers: list[Transfer]) -> list[Transfer]:
        """Return a pair of transfers for each pair of channels; the last walks the rest, too."""
        channels = self.planner.npu.engines
        kept, left = (transfers[:channels - channels % 2], transfers[channels - channels % 2:])
        bytes_left = sum(one.bytes for one in left if one.direction == "in")
        kept[-2:] = [replace(one, bytes=one.bytes + bytes_left) for one in kept[-2:]]
        return kept

    def _chain_step(self, group: Group) -> Step:
        fed = self._transfers(group.chain)
        if group.joined:  # The stream starts where the joined layers read.
            source_id = self.graph.layers[group.joined[0]].source_id
            size = self.graph.tensors[source_id].size_bytes
            fed[0] = (replace(fed[0][0], bytes=size, buffer_bytes=size,
                              pool=self.pool(source_id)), 0)
        transfers = bind_transfers([one for one, _ in fed], self.planner.npu)
        works = [self.grouping.works[i] for i in group.chain]
        units = tuple(unit for work in works for unit in work.units)
        operations = sum_by_key(pair for work in works for pair in work.operations)
        efforts = [self._effort(i) for i in group.layers]
        return Step(
            kind="task", layers=group.layers,
            shares=tuple(effort / sum(efforts) for effort in efforts),
            task=Task(name=self.next_name(), kind=self.rules.kinds["task"], transfers=transfers,
                      units=units, operations=tuple(operations.items()),
                      links=_link(transfers, [unit for _, unit in fed], len(units)),
                      layers=tuple(self.graph.layers[i].index for i in group.layers)))

    def _transfers(self, chain: tuple[int, ...]) -> list[tuple[Transfer, int]]:
        """Transfers of a chain, each with the unit it feeds; the last one takes the result.

        Those in are the first input, weights and second operands.
        """
        made = {self.graph.layers[i].target_id for i in chain}
        fed: list[tuple[Transfer, int]] = []
        unit = 0
        for i in chain:
            layer, work = self.graph.layers[i], self.grouping.works[i]
            first = unit + work.unpacked  # The first unit takes the weights, the next the input.
            rows = layer.kernel[0]
            own = [(read_activation(self.graph.tensors[tensor_id], self.pool(tensor_id),
                                    scattered=work.scattered, rows=rows), first)
                   for tensor_id in streamed_inputs(layer, made, work)]
            if work.weight_streams:
                own += [(one, unit) for one in read_weights(work, self.pool(layer.inputs[1]))]
            fed += [(_repeat(one, work), feeds) for one, feeds in own]
            unit += len(work.units)
        result = self.graph.layers[chain[-1]].target_id
        fed.append((_repeat(write_activation(
            self.graph.tensors[result], self.pool(result),
            scattered=self.grouping.works[chain[0]].scattered),
            self.grouping.works[chain[-1]]), unit - 1))
        return fed

    def _effort(self, position: int) -> int:
        """Work of a layer, for its share: multiply-accumulates, and elements it gives."""
        layer = self.graph.layers[position]
        work = self.grouping.works.get(position)
        macs = 0 if work is None else sum(unit.macs for unit in work.units)
        return macs + max(1, self.graph.output(layer).elements)

    def stage_weights(self, group: Group) -> list[Step]:
        """Return copies of a chain's weights to the memory they are staged in, a task each."""
        return [self._step(position, "copy", COPY, stage_weights(
                    self.grouping.works[position],
                    self.pool(self.graph.layers[position].inputs[1])))
                for position in (group.chain if group.kind == "task" else ())
                if self.grouping.works[position].staged_in]

    def copy_inputs(self) -> list[Step]:
        """Transpose inputs that come channel first, copy images as the runtime says, a task each.

        A copy is made for a task; an operator of the host reads what the application wrote. An
        input of one channel, both of whose layouts are the same, is taken to need none (assumed).
        """
        rule, steps, first = self.planner.offload.input_copy, [], self.planner.channel_first
        for tensor_id in self.graph.inputs:
            reader = next((position for position, layer in enumerate(self.graph.layers)
                           if tensor_id in layer.inputs and not is_alias(layer)), None)
            if reader is not None and (first or (rule != "none"
                                                 and not self.grouping.reasons[reader])):
                steps += self._copy_image(reader, tensor_id, scattered=first or rule == "scattered")
        return steps

    def transpose_outputs(self) -> list[Step]:
        """Layout transposes of outputs that are handed back channel first, a task each."""
        return [step for tensor_id in self.graph.outputs
                for writer in [position for position, layer in enumerate(self.graph.layers)
                               if tensor_id in layer.outputs][:1]
                for step in self._copy_image(writer, tensor_id, scattered=True)]

    def _copy_image(self, position: int, tensor_id: int, *, scattered: bool) -> list[Step]:
        """Return a copy of a tensor within its memory, none where it has no layout to change."""
        tensor = self.graph.tensors[tensor_id]
        if not (len(tensor.shape) == 4 and tensor.channels > 1
                and math.prod(tensor.shape[1:3]) > 1 and self.planner.npu.engines > 1
                and DTYPE_BITS[tensor.dtype] in self.rules.activation_bits):
            return []
        return [self._step(position, "copy", COPY, copy_image(
            tensor, self.pool(tensor_id), scattered=scattered))]


def _repeat(transfer: Transfer, work: Work) -> Transfer:
    """Return a transfer with the passes a compiler states of its operand."""
    passes = (work.passes or {}).get(transfer.operand, 1)
    return transfer if passes == 1 else replace(transfer, repeats=passes)


def _link(transfers: Sequence[Transfer], units: Sequence[int], count: int) -> tuple[Link, ...]:
    """Dataflow of a chain: every one in feeds its unit, each unit the next, the last one out."""
    links = [Link(f"E{one.channel}", f"U{unit}") if one.direction == "in"
             else Link(f"U{unit}", f"E{one.channel}")
             for one, unit in zip(transfers, units, strict=True)]
    return (*links, *(Link(f"U{unit}", f"U{unit + 1}") for unit in range(count - 1)))
