"""Which layers an accelerator runs, and which of them share a task, going by what units do.

Which memory a tensor is in changes none of this, so it comes before memory is planned: what is
fused away needs none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, Protocol

from hwmodels.board.npu import Npu
from hwmodels.quantities import list_by_key, sum_by_key
from hwmodels.schedule import TaskBuffer
from twin.network.graph import DTYPE_BITS, Graph, GraphLayer, Layer
from twin.network.operators import Form, is_alias, traits
from twin.runtimes.compiler import Planner
from twin.runtimes.partition import Group, Grouping, Reason, Why, Work


class LayerRules(Protocol):
    """What a compiler that goes by roles says of one layer."""

    task_name: ClassVar[str]
    channel_name: ClassVar[str]
    kinds: ClassVar[Mapping[str, str]]
    activation_bits: ClassVar[tuple[int, ...]]

    def explain_host(self, site: GraphLayer, npu: Npu) -> str:
        """Return why it stays on the host, or ""."""

    def list_roles(self, layer: Layer) -> tuple[tuple[str, ...], ...]:
        """Return the roles it needs units for."""

    def multiplies(self, layer: Layer) -> bool:
        """Whether it multiplies and accumulates against weights."""

    def plan_work(self, site: GraphLayer, npu: Npu) -> Work:
        """Return what it asks of the units."""

    def joins(self, layer: Layer, reader: Layer) -> bool:
        """Whether it disappears into the layer that reads it."""

    def follows(self, layer: Layer) -> bool:
        """Whether it may share the task of the one it reads."""


def plan_groups(graph: Graph, planner: Planner, rules: LayerRules) -> Grouping:
    """Return which layers run where, and which share a task, in execution order.

    Notes
    -----
    A task is a layer followed by those the compiler lets follow that read its output, and nothing
    of it later, while units and channels last. Padding and a change of 8-bit types join the layer
    that follows.
    """
    return _Cut(graph, planner, rules).run()


def explain_host(graph: Graph, layer: Layer, planner: Planner, rules: LayerRules) -> Reason:
    """Return why a layer that is not an alias stays on the host, empty when it does not."""
    npu, offload = planner.npu, planner.offload
    if layer.op in planner.host or str(layer.index) in planner.host:
        return Reason("kept there by offload.host", Why.ASKED)
    types = dict.fromkeys(graph.tensors[i].dtype for i in (layer.source_id, *layer.outputs))
    wide = [dtype for dtype in types if DTYPE_BITS[dtype] not in rules.activation_bits]
    if wide:
        bits = " and ".join(f"{one}-bit" for one in rules.activation_bits)
        return Reason(f"{wide[0]}, the NPU computes {bits} integers", Why.TYPE)
    moved, needed = layer.op in offload.moved_operators, rules.list_roles(layer)
    if layer.op in offload.host_operators or layer.repeats > 1 or not (moved or needed):
        return Reason("no operator of the NPU", Why.OPERATOR)
    if not moved:
        if reason := rules.explain_host(GraphLayer(graph, layer), npu):
            return reason if isinstance(reason, Reason) else Reason(reason)
        lacking = [roles for roles in needed if npu.unit_for(*roles) is None]
        if lacking:
            return Reason(f"needs a unit for {' or '.join(lacking[0])}, there is none", Why.UNITS)
    # Input and result stream, and weights, unless they are staged, or a second operand.
    weights = rules.multiplies(layer) and npu.staging is None
    channels = 3 if weights or has_second_operand(layer) else 2
    return Reason("" if channels <= npu.engines else
                  f"needs {channels} {rules.channel_name}s of {npu.engines}", Why.CHANNELS)


class _Cut:
    """A network under the compiler's rules, with what is looked up often kept."""

    def __init__(self, graph: Graph, planner: Planner, rules: LayerRules) -> None:
        self.graph, self.planner, self.rules = graph, planner, rules
        self.reasons = tuple(
            Reason("") if is_alias(layer) else explain_host(graph, layer, planner, rules)
            for layer in graph.layers)
        self.works: dict[int, Work] = {}
        self.readers = list_by_key(
            (tensor_id, position) for position, layer in enumerate(graph.layers)
            for tensor_id in dict.fromkeys(layer.inputs))

    def run(self) -> Grouping:
        groups: list[Group] = []
        joined: list[int] = []
        taken: set[int] = set()
        for position, layer in enumerate(self.graph.layers):
            if position in taken:
                continue
            if is_alias(layer):
                groups.append(Group(kind="alias", chain=(position,)))
            elif self.reasons[position]:
                groups.append(Group(kind="host", chain=(position,)))
            elif self.joins_next(position):
                joined.append(position)
            elif layer.op in self.planner.offload.moved_operators:
                groups.append(Group(kind="move", chain=(position,)))
            else:
                chain = self.extend_chain(position)
                taken.update(chain)
                groups.append(Group(kind="task", chain=chain, joined=tuple(joined)))
                joined = []
        buffers = {tensor: TaskBuffer(tensor=tensor, size_bytes=0, first=i, last=group.layers[-1])
                   for group in groups for i in group.layers[:-1]
                   for tensor in self.graph.layers[i].outputs[:1]}
        return Grouping(groups=tuple(groups), works=self.works, reasons=self.reasons,
                        buffers=buffers)

    def work(self, position: int) -> Work:
        """Return what a layer asks of the units."""
        if position not in self.works:
            self.works[position] = self.rules.plan_work(
                GraphLayer(self.graph, self.graph.layers[position]), self.planner.npu)
        return self.works[position]

    def joins_next(self, position: int) -> bool:
        """Whether a pad or a change of 8-bit types disappears into the layer that reads it."""
        follower = self.only_reader(position)
        if follower != position + 1 or self.reasons[follower]:
            return False
        reader = self.graph.layers[follower]
        # What a pad hides in must be there itself: the pad joins the layer behind it.
        pads = traits(reader).form is Form.PAD
        return self.rules.joins(self.graph.layers[position], reader) and (
            not pads or self.joins_next(follower))

    def extend_chain(self, position: int) -> tuple[int, ...]:
        """Return a layer and the element-wise ones after it that fit one task."""
        chain = [position]
        while True:
            self.work(chain[-1])
            last = self.graph.layers[chain[-1]]
            follower = self.only_reader(chain[-1])
            if follower is None or follower != chain[-1] + 1 or self.reasons[follower]:
                return tuple(chain)
            layer = self.graph.layers[follower]
            same = traits(layer).form is Form.WINDOW or (
                self.graph.output(last).shape == self.graph.output(layer).shape)
            if not (same and self.rules.follows(layer) and self._fits((*chain, follower))):
                return tuple(chain)
            chain.append(follower)

    def only_reader(self, position: int) -> int | None:
        layer = self.graph.layers[position]
        readers = self.readers.get(layer.target_id, [])
        alone = len(layer.outputs) == 1 and layer.target_id not in self.graph.outputs
        return readers[0] if alone and len(readers) == 1 else None

    def _fits(self, chain: tuple[int, ...]) -> bool:
        needed = sum_by_key((unit.kind, unit.count) for i in chain for unit in self.work(i).units)
        npu = self.planner.npu
        return (all(count <= npu.unit(kind).count for kind, count in needed.items())
                and self._count_channels(chain) <= npu.engines)

    def _count_channels(self, chain: tuple[int, ...]) -> int:
        made = {self.graph.layers[i].target_id for i in chain}
        read = sum(1 for i in chain
                   for tensor_id in streamed_inputs(self.graph.layers[i], made, self.work(i)))
        return read + sum(self.work(i).weight_streams for i in chain) + 1


def streamed_inputs(layer: Layer, made: Collection[int], work: Work) -> list[int]:
    """Tensors a layer of a chain streams in besides its weights; `made` in the chain itself."""
    read = 2 if has_second_operand(layer) and not work.loaded else 1
    return [tensor_id for tensor_id in layer.inputs[:read]
            if tensor_id >= 0 and tensor_id not in made]


def has_second_operand(layer: Layer) -> bool:
    """Whether a layer has a second input that is streamed in: an activation, or a constant."""
    return traits(layer).form is Form.BROADCAST and len(layer.inputs) > 1 and layer.inputs[1] >= 0
