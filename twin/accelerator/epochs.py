"""From a graph to the steps of an inference: epochs on the accelerator, operators on the host.

    steps = plan_steps(graph, planner)      what runs where, in execution order
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from hwmodels.npu import Epoch, Link, Npu, StreamEngine, UnitWork
from twin.graph import DTYPE_BITS, Graph, Layer
from twin.operators import bytes_moved, is_alias
from twin.runtimes.neural_art.streams import (
    bind_engines,
    move_tensors,
    pool_of,
    read_activation,
    read_weights,
    transpose_layout,
    write_activation,
)
from twin.runtimes.neural_art.units import UNITS, Work, plan_work
from twin.runtimes.offload import Offload

STEP_KINDS = ("epoch", "host", "alias")

_SECOND_OPERAND = ("add", "sub", "mul", "minimum", "maximum", "prelu")
"""Chained operators whose second input is streamed in."""

_WINDOWED = ("conv_2d", "depthwise_conv_2d", "average_pool_2d", "max_pool_2d")
"""Operators that pad for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing of an inference.

    Parameters
    ----------
    kind : str
        One of `STEP_KINDS`.
    layers : tuple of int
        Positions in the graph it computes; of a layout transpose, of the layer that reads it.
    epoch : Epoch or None
        What the accelerator is asked; of kind "sw" for the host, None for an alias.
    shares : tuple of float
        What part of an epoch each layer is charged; they sum to one.
    """

    kind: str
    layers: tuple[int, ...]
    epoch: Epoch | None = None
    shares: tuple[float, ...] = ()


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
        Memories that hold them.
    host : collection of str
        Operators, or indices of layers, kept on the host core.
    channel_first_inputs : bool
        Whether the network's inputs arrive channel first and are transposed.
    """

    npu: Npu
    offload: Offload
    weights: str
    arena: str
    host: Collection[str] = ()
    channel_first_inputs: bool = False


def plan_steps(graph: Graph, planner: Planner) -> tuple[Step, ...]:
    """Return what runs where, in execution order.

    Parameters
    ----------
    graph : Graph
        The network that runs.
    planner : Planner
        Accelerator, rules, placement and choices.

    Returns
    -------
    tuple of Step
        Every layer is in exactly one step, and in one more for each input transposed for it.

    Notes
    -----
    An epoch is a layer followed by the element-wise ones that read its output and nothing of it
    later, while units and engines last. Padding and a change of 8-bit types join the layer that
    follows.
    """
    plan = _Plan(graph, planner)
    steps = _transpose_inputs(graph, planner) if planner.channel_first_inputs else []
    joined: list[int] = []
    taken: set[int] = set()
    for position, layer in enumerate(graph.layers):
        if position in taken:
            continue
        if is_alias(layer):
            steps.append(Step(kind="alias", layers=(position,)))
        elif not runs_on_npu(graph, layer, planner):
            steps.append(Step(kind="host", layers=(position,), shares=(1.0,), epoch=Epoch(
                name="", kind="sw", operations=((layer.op, 1),), layers=(layer.index,))))
        elif plan.joins_next(position):
            joined.append(position)
        elif layer.op in planner.offload.moved_operators:
            steps.append(_move_step(graph, position, planner))
        else:
            chain = plan.extend_chain(position)
            taken.update(chain)
            steps.append(plan.make_step(tuple(joined), chain))
            joined = []
    return tuple(_name_epochs(steps))


def runs_on_npu(graph: Graph, layer: Layer, planner: Planner) -> bool:
    """Whether the accelerator runs a layer under these rules and choices."""
    offload = planner.offload
    if layer.op in planner.host or str(layer.index) in planner.host:
        return False
    if layer.op in offload.host_operators:
        return False
    if layer.op not in UNITS and layer.op not in offload.moved_operators:
        return False
    touched = [graph.tensors[i] for i in (layer.inputs[0], *layer.outputs)]
    if any(DTYPE_BITS[tensor.dtype] != 8 for tensor in touched):
        return False
    return _averaged(graph, layer) <= offload.pool_window_elements


def _averaged(graph: Graph, layer: Layer) -> int:
    """Elements an averaging operator takes for each output, 1 for any other."""
    if layer.op == "mean":
        inputs = graph.tensors[layer.inputs[0]].elements
        return inputs // max(1, graph.tensors[layer.outputs[0]].elements)
    if layer.op == "average_pool_2d" and layer.window is not None:
        return layer.window.kernel[0] * layer.window.kernel[1]
    return 1


class _Plan:
    """A network under the compiler's rules, with what is looked up often kept."""

    def __init__(self, graph: Graph, planner: Planner) -> None:
        self.graph = graph
        self.planner = planner
        self.arena = pool_of(planner.npu, planner.arena).name
        self.weights = pool_of(planner.npu, planner.weights, beside=self.arena).name
        self.works: dict[int, Work] = {}
        self.readers: dict[int, list[int]] = {}
        for position, layer in enumerate(graph.layers):
            for tensor_id in dict.fromkeys(layer.inputs):
                self.readers.setdefault(tensor_id, []).append(position)

    def work(self, position: int) -> Work:
        """What a layer asks of the units."""
        if position not in self.works:
            self.works[position] = plan_work(self.graph, self.graph.layers[position],
                                             self.planner.npu, self.planner.offload)
        return self.works[position]

    def joins_next(self, position: int) -> bool:
        """Whether a pad or a change of 8-bit types disappears into the layer that reads it."""
        layer = self.graph.layers[position]
        follower = self._only_reader(position)
        if layer.op not in ("pad", "quantize") or follower != position + 1:
            return False
        reader = self.graph.layers[follower]
        if not runs_on_npu(self.graph, reader, self.planner):
            return False
        if layer.op == "pad":
            return reader.op in _WINDOWED
        return UNITS.get(reader.op) == "CONV_ACC" or (
            reader.op == "pad" and self.joins_next(follower))

    def extend_chain(self, position: int) -> tuple[int, ...]:
        """Return a layer and the element-wise ones after it that fit one epoch."""
        chain = [position]
        while True:
            last = self.graph.layers[chain[-1]]
            follower = self._only_reader(chain[-1])
            if follower is None or follower != chain[-1] + 1:
                return tuple(chain)
            layer = self.graph.layers[follower]
            same = (self.graph.tensors[last.outputs[0]].shape
                    == self.graph.tensors[layer.outputs[0]].shape)
            if not (same and UNITS.get(layer.op) in ("ARITH_ACC", "ACTIV_ACC")
                    and runs_on_npu(self.graph, layer, self.planner)
                    and self._fits((*chain, follower))):
                return tuple(chain)
            chain.append(follower)

    def make_step(self, joined: tuple[int, ...], chain: tuple[int, ...]) -> Step:
        """Return the epoch of a chain and of the layers that joined it."""
        fed = self._engines(chain)
        if joined:  # The stream starts where the joined layers read.
            source = self.graph.tensors[self.graph.layers[joined[0]].inputs[0]]
            fed[0] = (replace(fed[0][0], bytes=source.size_bytes,
                              buffer_bytes=source.size_bytes), 0)
        engines = bind_engines([engine for engine, _ in fed], self.planner.npu)
        works = [self.work(i) for i in chain]
        operations: dict[str, int] = {}
        for work in works:
            for name, count in work.operations:
                operations[name] = operations.get(name, 0) + count
        positions = (*joined, *chain)
        efforts = [self._effort(i, i in chain) for i in positions]
        return Step(
            kind="epoch", layers=positions,
            shares=tuple(effort / sum(efforts) for effort in efforts),
            epoch=Epoch(name="", kind="hw", units=tuple(u for work in works for u in work.units),
                        engines=engines, operations=tuple(operations.items()),
                        links=_link(engines, [unit for _, unit in fed],
                                    sum(len(work.units) for work in works)),
                        layers=tuple(self.graph.layers[i].index for i in positions)))

    def _only_reader(self, position: int) -> int | None:
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
                and len(self._engines(chain)) <= npu.engines)

    def _engines(self, chain: tuple[int, ...]) -> list[tuple[StreamEngine, int]]:
        """Engines of a chain, each with the unit it feeds; the last one takes the result.

        Those in are the first input, weights and second operands.
        """
        made = {self.graph.layers[i].outputs[0] for i in chain}
        engines: list[tuple[StreamEngine, int]] = []
        unit = 0
        for i in chain:
            layer, work = self.graph.layers[i], self.work(i)
            narrow = work.units[0].kind == "DECUN_ACC"  # Unpacks the weights, not the input.
            for place, tensor_id in enumerate(layer.inputs[:2]):
                if tensor_id < 0 or tensor_id in made or (
                        place and layer.op not in _SECOND_OPERAND):
                    continue
                tensor = self.graph.tensors[tensor_id]
                pool = self.weights if tensor.is_constant else self.arena
                engines.append((read_activation(tensor, pool, scattered=work.scattered),
                                unit + narrow))
            engines += [(engine, unit)
                        for engine in read_weights(work, self.weights, encoded=narrow)]
            unit += len(work.units)
        result = self.graph.tensors[self.graph.layers[chain[-1]].outputs[0]]
        engines.append((write_activation(result, self.arena,
                                         scattered=self.work(chain[0]).scattered), unit - 1))
        return engines

    def _effort(self, position: int, computing: bool) -> float:
        """Cycles a layer would need alone, for its share: compute, or eight bytes a cycle."""
        compute = max((unit.compute_cycles or 0 for unit in self.work(position).units),
                      default=0) if computing else 0
        return max(compute, bytes_moved(self.graph, self.graph.layers[position]) / 8, 1.0)


def _link(engines: Sequence[StreamEngine], units: Sequence[int], count: int) -> tuple[Link, ...]:
    """Dataflow of a chain: every engine in feeds its unit, each unit the next, the last one out."""
    links = [Link(f"E{engine.index}", f"U{unit}") if engine.direction == "in"
             else Link(f"U{unit}", f"E{engine.index}")
             for engine, unit in zip(engines, units, strict=True)]
    return (*links, *(Link(f"U{unit}", f"U{unit + 1}") for unit in range(count - 1)))


def _move_step(graph: Graph, position: int, planner: Planner) -> Step:
    layer = graph.layers[position]
    arena = pool_of(planner.npu, planner.arena).name
    engines = move_tensors(graph, layer, arena)
    kept = engines[:planner.npu.engines - planner.npu.engines % 2]
    left = engines[len(kept):]
    if left:  # More pieces than engines: the last pair walks the rest, too.
        bytes_left = sum(engine.bytes for engine in left if engine.direction == "in")
        kept[-2:] = [replace(engine, bytes=engine.bytes + bytes_left) for engine in kept[-2:]]
    return Step(kind="epoch", layers=(position,), shares=(1.0,), epoch=Epoch(
        name="", kind="hybrid", engines=bind_engines(kept, planner.npu),
        units=(UnitWork(kind="NULL", count=max(1, len(kept) // 2)),),
        operations=((layer.op, 1),), layers=(layer.index,)))


def _transpose_inputs(graph: Graph, planner: Planner) -> list[Step]:
    """Layout transposes of inputs that arrive channel first, one epoch each."""
    arena = pool_of(planner.npu, planner.arena).name
    steps = []
    for tensor_id in graph.inputs:
        tensor = graph.tensors[tensor_id]
        reader = next((position for position, layer in enumerate(graph.layers)
                       if tensor_id in layer.inputs), None)
        if (reader is not None and len(tensor.shape) == 4 and tensor.shape[-1] > 1
                and DTYPE_BITS[tensor.dtype] == 8):
            steps.append(Step(kind="epoch", layers=(reader,), shares=(1.0,), epoch=Epoch(
                name="", kind="copy", units=(UnitWork(kind="NULL"),),
                engines=bind_engines(transpose_layout(tensor, arena), planner.npu),
                operations=(("memcpy.identity", 1),),
                layers=(graph.layers[reader].index,))))
    return steps


def _name_epochs(steps: list[Step]) -> list[Step]:
    """Number what is not an alias from 1, as the compiler does, host operators included."""
    named = []
    number = 0
    for step in steps:
        number += step.kind != "alias"
        named.append(replace(step, epoch=replace(step.epoch, name=f"epoch_{number}"))
                     if step.epoch is not None else step)
    return named


