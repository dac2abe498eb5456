"""A made-up compiler for the tile array: compressed weights, cascades, softmax on the lanes.

It states what no rule of ours knows: how often a layer's input is walked, how small its weights
are kept, which share of the array computes, and tasks that interleave the stripes of two layers, so
that what one hands to the other fits a few rows. Named by `runtimes/tile-cascade.yaml`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hwmodels.schedule import Npu, Task, TaskBuffer, Transfer, UnitWork
from twin.network.graph import Graph, GraphLayer, Layer
from twin.network.operators import traits
from twin.runtimes.compiler import Planner
from twin.runtimes.partition import Group, Grouping, Step, Work
from twin.runtimes.units import UnitRules


@dataclass(frozen=True, kw_only=True)
class TileCascade(UnitRules):
    """Rules of the made-up compiler.

    Parameters
    ----------
    kept_share : float
        Compressed weights over plain ones.
    channels_per_pass : int
        Output channels the array computes in one walk over the input.
    stripes : int
        Parts each layer of a cascade is cut into.
    sequencer_cycles : int
        From one stripe to the next, without the host.
    """

    kept_share: float
    channels_per_pass: int
    stripes: int
    sequencer_cycles: int

    def list_roles(self, layer: Layer) -> tuple[tuple[str, ...], ...]:
        """Return the roles a layer needs: the lanes have a table for softmax."""
        return (("activation",),) if layer.op == "softmax" else super().list_roles(layer)

    def plan_work(self, site: GraphLayer, npu: Npu) -> Work:
        """Return what a layer asks of the units, and how it is walked."""
        work = super().plan_work(site, npu)
        if site.op == "softmax":  # maximum, exponents and their sum, quotients
            return replace(work, passes={"input": 3})
        if not self.multiplies(site.layer):
            return work
        plain, channels = work.weight_bytes, site.output.channels
        decoder, passes = npu.unit_for("weight_decode"), math.ceil(
            channels / self.channels_per_pass)
        assert decoder is not None, "the board has one"
        array = replace(work.units[0], useful=min(
            1.0, channels / (passes * self.channels_per_pass)))
        return replace(
            work, units=(UnitWork(kind=decoder.kind, ops=plain), array), unpacked=True,
            weight_bytes=math.ceil(plain * self.kept_share), passes={"input": passes})

    def group(self, graph: Graph, planner: Planner) -> Grouping:
        """Return groups by role, those of a cascade as one, with a few rows between its layers."""
        plain = super().group(graph, planner)
        groups, buffers = [], dict(plain.buffers)
        for parts in _pair(graph, plain.groups):
            groups.append(parts[0] if len(parts) == 1 else Group(
                kind="task", chain=tuple(i for part in parts for i in part.layers)))
            for first, second in itertools.pairwise(parts):
                (tensor,) = graph.layers[first.layers[-1]].outputs
                buffers[tensor] = TaskBuffer(
                    tensor=tensor, size_bytes=self._roll(graph, tensor, second.layers[0]),
                    first=first.layers[-1], last=second.layers[-1])
        return replace(plain, groups=tuple(groups), buffers=buffers)

    def _roll(self, graph: Graph, tensor: int, reader: int) -> int:
        """Bytes between two layers of a cascade: two stripes, and rows a window reaches over."""
        held, window = graph.tensors[tensor], graph.layers[reader].window
        rows = 2 * math.ceil(held.shape[1] / self.stripes) + (
            window.kernel[0] - 1 if window is not None else 0)
        return held.size_bytes * min(rows, held.shape[1]) // held.shape[1]

    def schedule(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping) -> tuple[Step, ...]:
        """Return tasks by role; those of a cascade stripe by stripe, the second a stripe behind."""
        plain = super().group(graph, planner)
        steps = list(super().schedule(graph, planner, pools, plain))
        for parts in _pair(graph, plain.groups):
            if len(parts) == 2:
                own = [step for step in steps if step.layers in [part.layers for part in parts]]
                place = steps.index(own[0])
                steps[place:place + 2] = self._interleave(own)
        return tuple(steps)

    def _interleave(self, steps: Sequence[Step]) -> list[Step]:
        """Return the stripes of two layers in turns; the host acts before and after all of them."""
        order = sorted((number + which, which, number) for which in range(2)
                       for number in range(self.stripes))
        tasks = [self._cut(steps[which].task, number) for _, which, number in order]
        first, last = steps[0].task, steps[1].task
        tasks[0] = replace(tasks[0], start_cycles=first.start_cycles,
                           host_before_cycles=first.host_before_cycles)
        tasks[-1] = replace(tasks[-1], host_after_cycles=last.host_after_cycles)
        return [replace(steps[which], task=task)
                for (_, which, _), task in zip(order, tasks, strict=True)]

    def _cut(self, task: Task, number: int) -> Task:
        """Return one stripe: its part of the work; weights come, and are kept, with the first."""
        later = number > 0
        return replace(
            task, name=f"{task.name}.{number}", links=() if later else task.links,
            units=tuple(self._part(unit, number) for unit in task.units[later:]),
            transfers=tuple(self._walk(one, number) for one in task.transfers
                            if not (later and one.operand == "weights")),
            start_cycles=self.sequencer_cycles, host_before_cycles=0, host_after_cycles=0)

    def _part(self, unit: UnitWork, number: int) -> UnitWork:
        return replace(unit, macs=self._share(unit.macs, number),
                       ops=self._share(unit.ops, number))

    def _walk(self, transfer: Transfer, number: int) -> Transfer:
        whole = transfer.operand == "weights"
        return transfer if whole else replace(transfer, bytes=self._share(transfer.bytes, number))

    def _share(self, amount: int, number: int) -> int:
        return amount * (number + 1) // self.stripes - amount * number // self.stripes


def _pair(graph: Graph, groups: Sequence[Group]) -> list[tuple[Group, ...]]:
    """Return groups, two convolutions in one where the second alone reads the first."""
    readers = [tensor for layer in graph.layers for tensor in layer.inputs]
    found: list[tuple[Group, ...]] = []
    for group in groups:
        before = found[-1] if found else ()
        if len(before) == 1 and all(
                one.kind == "task" and not one.joined and len(one.chain) == 1
                and traits(graph.layers[one.chain[0]]).filters is not None
                and len(graph.tensors[graph.layers[one.chain[0]].outputs[0]].shape) == 4
                for one in (*before, group)):
            (tensor,) = graph.layers[before[0].chain[0]].outputs
            if (readers.count(tensor) == 1 and tensor not in graph.outputs
                    and tensor in graph.layers[group.chain[0]].inputs):
                found[-1] = (*before, group)
                continue
        found.append((group,))
    return found
