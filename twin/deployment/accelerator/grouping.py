"""Which layers an accelerator runs, and which of them share an epoch.

Which pool a tensor is in changes none of this, so it comes before memory is planned: what is fused
away needs none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hwmodels.npu import Npu
from twin.deployment.placement import Fusion
from twin.network.graph import DTYPE_BITS, Graph, Layer
from twin.network.operators import Form, is_alias, traits
from twin.runtimes.offload import Offload
from twin.runtimes.units import Work, has_second_operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """What the plan of a network depends on besides the network.

    Parameters
    ----------
    npu : Npu
        The accelerator.
    offload : Offload
        The compiler's rules.
    weights, arena : str
        Memories of tensors that are not placed one by one.
    host : collection of str
        Operators, or indices of layers, kept on the host core.
    channel_first : bool
        Whether the network's inputs and outputs are channel first and are transposed.
    """

    npu: Npu
    offload: Offload
    weights: str
    arena: str
    host: Collection[str] = ()
    channel_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers that run as one.

    Parameters
    ----------
    kind : str
        "epoch", "move" (engines alone, stepped by the host), "host" or "alias".
    chain : tuple of int
        Positions in the graph, in execution order; of "host", "move" and "alias" one.
    joined : tuple of int
        Positions of the layers before them that disappear into the first.
    """

    kind: str
    chain: tuple[int, ...]
    joined: tuple[int, ...] = ()

    @property
    def layers(self) -> tuple[int, ...]:
        """All positions, in execution order."""
        return (*self.joined, *self.chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """A network cut into groups.

    Parameters
    ----------
    groups : tuple of Group
        Every layer is in exactly one.
    works : mapping of int to Work
        What layers in epochs ask of the units, by position.
    reasons : tuple of str
        Why each layer stays on the host; "" for those that do not.
    """

    groups: tuple[Group, ...]
    works: Mapping[int, Work]
    reasons: tuple[str, ...]

    def fusion(self, graph: Graph) -> Fusion:
        """Find what of the graph needs no memory of its own and what lives as long as its epoch."""
        epochs = [group for group in self.groups if group.kind in ("epoch", "move")]
        return Fusion(
            offloaded=frozenset(i for group in epochs for i in group.layers),
            streamed=frozenset(graph.layers[i].outputs[0]
                               for group in epochs for i in group.layers[:-1]),
            ends={i: group.layers[-1] for group in epochs for i in group.layers[:-1]})


def plan_groups(graph: Graph, planner: Planner) -> Grouping:
    """Return which layers run where, and which share an epoch.

    Parameters
    ----------
    graph : Graph
        The network that runs.
    planner : Planner
        Accelerator, rules and choices.

    Returns
    -------
    Grouping
        In execution order.

    Notes
    -----
    An epoch is a layer followed by the element-wise ones that read its output and nothing of it
    later, while units and engines last. Padding and a change of 8-bit types join the layer that
    follows.
    """
    return _Cut(graph, planner).run()


def explain_host(graph: Graph, layer: Layer, planner: Planner) -> str:
    """Return why a layer stays on the host, "" when the accelerator runs it.

    Parameters
    ----------
    graph : Graph
        The network.
    layer : Layer
        No alias.
    planner : Planner
        Accelerator, rules and choices.
    """
    npu, offload = planner.npu, planner.offload
    if layer.op in planner.host or str(layer.index) in planner.host:
        return "kept there by offload.host"
    types = dict.fromkeys(graph.tensors[i].dtype for i in (layer.inputs[0], *layer.outputs))
    wide = [dtype for dtype in types if DTYPE_BITS[dtype] != 8]
    if wide:
        return f"{wide[0]}, the NPU computes 8-bit integers"
    moved, needed = layer.op in offload.moved_operators, offload.rules.list_roles(layer)
    if layer.op in offload.host_operators or layer.repeats > 1 or not (moved or needed):
        return "no operator of the NPU"
    if not moved:
        if reason := offload.rules.explain_host(graph, layer, npu):
            return reason
        lacking = [roles for roles in needed if npu.unit_for(*roles) is None]
        if lacking:
            return f"needs a unit for {' or '.join(lacking[0])}, there is none"
    # Input and result stream, and weights, unless they are staged, or a second operand.
    weights = offload.rules.multiplies(layer) and npu.staging is None
    engines = 3 if weights or has_second_operand(layer) else 2
    return f"needs {engines} stream engines of {npu.engines}" if engines > npu.engines else ""


class _Cut:
    """A network under the compiler's rules, with what is looked up often kept."""

    def __init__(self, graph: Graph, planner: Planner) -> None:
        self.graph = graph
        self.planner = planner
        self.rules = planner.offload.rules
        self.reasons = tuple("" if is_alias(layer) else explain_host(graph, layer, planner)
                             for layer in graph.layers)
        self.works: dict[int, Work] = {}
        self.readers: dict[int, list[int]] = {}
        for position, layer in enumerate(graph.layers):
            for tensor_id in dict.fromkeys(layer.inputs):
                self.readers.setdefault(tensor_id, []).append(position)

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
                groups.append(Group(kind="epoch", chain=chain, joined=tuple(joined)))
                joined = []
        return Grouping(groups=tuple(groups), works=self.works, reasons=self.reasons)

    def work(self, position: int) -> Work:
        """Return what a layer asks of the units."""
        if position not in self.works:
            self.works[position] = self.rules.plan_work(
                self.graph, self.graph.layers[position], self.planner.npu)
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
        """Return a layer and the element-wise ones after it that fit one epoch."""
        chain = [position]
        while True:
            self.work(chain[-1])
            last = self.graph.layers[chain[-1]]
            follower = self.only_reader(chain[-1])
            if follower is None or follower != chain[-1] + 1 or self.reasons[follower]:
                return tuple(chain)
            layer = self.graph.layers[follower]
            same = (self.graph.tensors[last.outputs[0]].shape
                    == self.graph.tensors[layer.outputs[0]].shape)
            if not (same and self.rules.follows(layer) and self._fits((*chain, follower))):
                return tuple(chain)
            chain.append(follower)

    def only_reader(self, position: int) -> int | None:
        layer = self.graph.layers[position]
        readers = self.readers.get(layer.outputs[0], [])
        alone = len(layer.outputs) == 1 and layer.outputs[0] not in self.graph.outputs
        return readers[0] if alone and len(readers) == 1 else None

    def _fits(self, chain: tuple[int, ...]) -> bool:
        needed: dict[str, int] = {}
        for unit in (unit for i in chain for unit in self.work(i).units):
            needed[unit.kind] = needed.get(unit.kind, 0) + unit.count
        npu = self.planner.npu
        return (all(count <= npu.unit(kind).count for kind, count in needed.items())
                and self._count_engines(chain) <= npu.engines)

    def _count_engines(self, chain: tuple[int, ...]) -> int:
        made = {self.graph.layers[i].outputs[0] for i in chain}
        read = sum(1 for i in chain
                   for tensor_id in streamed_inputs(self.graph.layers[i], made, self.work(i)))
        return read + sum(self.work(i).weight_streams for i in chain) + 1


def streamed_inputs(layer: Layer, made: Collection[int], work: Work) -> list[int]:
    """Tensors a layer of a chain streams in besides its weights; `made` in the chain itself."""
    read = 2 if has_second_operand(layer) and not work.loaded else 1
    return [tensor_id for tensor_id in layer.inputs[:read]
            if tensor_id >= 0 and tensor_id not in made]
