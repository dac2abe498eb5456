"""Where tensors live: lifetimes, an arena plan, and weights laid out in their memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from hwmodels.frozen import NamedCounts, frozen
from twin.deployment.memories import Buffer, Home, align, place_greedily, spread_buffers
from twin.network.graph import Graph, GraphLayer, Layer, Tensor
from twin.network.operators import Form, is_alias, list_states, traits
from twin.runtimes.lowering import Site
from twin.runtimes.runtime import Runtime

if TYPE_CHECKING:
    from hwmodels.schedule import TaskBuffer


@frozen
class ArenaSlot:
    """A buffer of the arena and the layers it is alive in.

    Parameters
    ----------
    name
        Tensor name, or "scratch of NAME".
    tensor
        Tensor index; -1 for scratch.
    first_layer, last_layer
        Layer positions of its life, both included.
    """

    name: str
    tensor: int
    offset_bytes: int
    size_bytes: int
    first_layer: int
    last_layer: int


@frozen
class Placement:
    """A memory plan.

    Parameters
    ----------
    arena
        Every buffer, scratch included; aliases share their source's slot.
    arena_bytes
        High-water mark of the arena.
    live_bytes
        Bytes alive while each layer runs.
    peak_layer
        Position of the layer with most live bytes.
    parameter_bytes
        Per-channel requantisation parameters kept in the arena's memory.
    weight_offsets : tuple of (int, int)
        (tensor index, offset in bytes) of every constant in the weights' memory.
    weights_bytes
        Extent of all constants.
    parts_bytes
        High-water mark in each memory of a split arena, which sum to `arena_bytes`; offsets go on
        from one to the next. Empty: one memory.
    """

    arena: tuple[ArenaSlot, ...]
    arena_bytes: int
    live_bytes: tuple[int, ...]
    peak_layer: int
    parameter_bytes: int
    weight_offsets: tuple[tuple[int, int], ...]
    weights_bytes: int
    parts_bytes: tuple[int, ...] = ()
    _slots: dict[int, ArenaSlot] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the buffers by tensor."""
        object.__setattr__(self, "_slots", {slot.tensor: slot for slot in reversed(self.arena)})

    @property
    def hides_lives(self) -> bool:
        """Whether a compiler states one total for all its buffers, which have no bytes each."""
        return any(not slot.size_bytes for slot in self.arena)

    @property
    def first_bytes(self) -> int:
        """High-water mark of the arena in its first memory."""
        return self.parts_bytes[0] if self.parts_bytes else self.arena_bytes

    @property
    def scratch_bytes(self) -> int:
        """Largest scratch buffer; the arena has its place."""
        return max((slot.size_bytes for slot in self.arena if slot.tensor < 0), default=0)

    def slot(self, tensor: int) -> ArenaSlot | None:
        """Return the buffer that holds a tensor, None for constants."""
        return self._slots.get(tensor)


@frozen
class Fusion:
    """What an accelerator takes off the memory plan.

    Parameters
    ----------
    accelerated
        Positions of layers it runs: they need no scratch.
    buffers
        Tensors that are kept otherwise than whole, by tensor; of no bytes: they never reach
        memory.
    ends
        Position of the last layer that runs together with each, where that is a later one.
    """

    accelerated: Collection[int] = ()
    buffers: Mapping[int, TaskBuffer | Buffer] = field(default_factory=dict)
    ends: Mapping[int, int] = field(default_factory=dict)


NO_FUSION = Fusion()


class Plan:
    """The plan of a core: one arena, every layer on the core, nothing placed by itself.

    A target with a machine of its own derives from it; each part is worked out when first asked.
    """

    @property
    def fusion(self) -> Fusion:
        """What is taken off the memory plan."""
        return NO_FUSION

    @property
    def homes(self) -> Mapping[int, Home]:
        """Tensors placed by themselves, scratch by -1 - position; the arena has all others."""
        return {}

    @property
    def rooms(self) -> tuple[int, ...]:
        """Bytes for buffers in each memory of a split arena; empty: one memory."""
        return ()

    @property
    def spilled(self) -> Mapping[str, int]:
        """Bytes of weights in memories besides the one they belong in."""
        return {}

    @property
    def used(self) -> NamedCounts:
        """Bytes in use of each pool of an accelerator."""
        return ()

    @property
    def filled(self) -> Mapping[str, tuple[int, int]]:
        """Bytes in use of each RAM that holds pools, and its size."""
        return {}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each layer stays on the host, "" where it does not; none without an accelerator."""
        return ()

    def held_bytes(self, placement: Placement) -> tuple[int, int]:
        """Bytes of activations and of weights, the latter where they are kept in RAM."""
        return placement.arena_bytes, placement.weights_bytes


def fuse_pooling(graph: Graph) -> Fusion:
    """Return what of convolutions a pooling right behind each, its one reader, leaves in memory.

    That is as many rows of its output as the pooling's window has; what it reads lives on. Where
    the window has all rows nothing is gained, and both keep their own buffers.
    """
    readers = [*graph.outputs, *(tensor for layer in graph.layers for tensor in layer.inputs)]
    buffers, ends = {}, {}
    for after, (layer, pool) in enumerate(pairwise(graph.layers), 1):
        tensor = layer.target_id
        whole = graph.tensors[tensor]
        if (traits(layer).is_convolution and pool.window and not traits(pool).is_convolution
                and pool.source_id == tensor and readers.count(tensor) == 1
                and pool.window.kernel[0] < whole.shape[1]):
            ends[after - 1] = after
            buffers[tensor] = Buffer(
                name=whole.name, tensors=[tensor], first=after - 1, last=after,
                size_bytes=whole.size_bytes // whole.shape[1] * pool.window.kernel[0])
    return Fusion(buffers=buffers, ends=ends)


def requantisation_bytes(graph: Graph, layer: Layer) -> int:
    """Bytes of 32-bit requantisation multipliers and shifts a layer keeps.

    Notes
    -----
    Integer convolutions keep one pair per output channel even where the file's scale is per
    tensor; a fully connected layer only where its scales are per channel.
    """
    if len(layer.inputs) < 2 or layer.inputs[1] < 0:
        return 0
    weights = graph.input(layer, 1)
    if not weights.is_constant or weights.quantization is None:
        return 0
    operator = traits(layer)
    if operator.filters is not None and operator.form is not Form.PRODUCT:
        return 8 * graph.output(layer).channels
    return 8 * max(1, len(weights.quantization.scales))


def plan_placement(graph: Graph, runtime: Runtime, isa: str, fusion: Fusion = NO_FUSION,
                   rooms: Sequence[int] = ()) -> Placement:
    """Plan the arena (greedy by size, as TFLite Micro does) and lay out the weights.

    Parameters
    ----------
    runtime
        Says alignment, scratch, and which operators work in place.
    isa
        Instruction set, which scratch sizes depend on.
    fusion
        What an accelerator runs.
    rooms
        Bytes in each memory the arena is split between; empty: it is one.

    Returns
    -------
    Placement
        With offsets relative to the arena and to the weights.

    Notes
    -----
    Buffers are placed largest first at the lowest offset free over their whole life; where the
    runtime lets outputs overlap inputs, where the arena grows least. A layer's scratch lives in
    that layer only. Network inputs live from the first layer to their last reader, outputs to the
    end, recurrent states always. A program that brings its own plan takes at least as much as that.

    References
    ----------
    TFLite Micro, GreedyMemoryPlanner: tensorflow/lite/micro/memory_planner.
    """
    if runtime.fuses_pooling and fusion is NO_FUSION:
        fusion = fuse_pooling(graph)
    requests = _collect_requests(graph, runtime, isa, fusion)
    arena_bytes, parts = _lay_out_arena(graph, runtime, requests, rooms)
    slots = [
        ArenaSlot(name=request.name, tensor=tensor, offset_bytes=request.offset_bytes,
                  size_bytes=request.size_bytes, first_layer=request.first, last_layer=request.last)
        for request in requests for tensor in request.tensors
    ]
    live = [_covered_bytes(alive, runtime.alignment_bytes)
            for alive in _list_alive(requests, max(1, len(graph.layers)))]
    sizes = constant_sizes(graph)
    parameter_bytes = sum(requantisation_bytes(graph, layer) for layer in graph.layers)
    in_arena = runtime.parameters_in == "arena"
    return Placement(
        arena=tuple(slots),
        arena_bytes=max(arena_bytes, sum(graph.planned_bytes if runtime.files else ())),
        parts_bytes=parts,
        live_bytes=tuple(live), peak_layer=max(range(len(live)), key=lambda i: (live[i], -i)),
        parameter_bytes=parameter_bytes if in_arena else 0,
        weight_offsets=tuple(zip(sizes, accumulate(sizes.values(), initial=0), strict=False)),
        weights_bytes=sum(sizes.values()) + (0 if in_arena else parameter_bytes),
    )


def _lay_out_arena(graph: Graph, runtime: Runtime, requests: Sequence[Buffer],
                   rooms: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Give buffers their offsets; return bytes of the arena, and of its part in each room."""
    lay_out = partial(_lay_out_buffers, graph, runtime)
    if not rooms:
        return lay_out(requests), ()
    parts = spread_buffers(requests, rooms, lay_out)
    return sum(parts), parts


def _lay_out_buffers(graph: Graph, runtime: Runtime, buffers: Sequence[Buffer]) -> int:
    """Place buffers in one memory and return the bytes they take."""
    sizes = [align(buffer.size_bytes, runtime.alignment_bytes) for buffer in buffers]
    if runtime.overlaps:
        from twin.deployment.overlap import place_overlapping

        place_overlapping(buffers, sizes, _overlap_distances(graph, runtime, buffers))
    else:
        place_greedily(buffers, runtime.alignment_bytes)
    return max((buffer.offset_bytes + size for buffer, size in zip(buffers, sizes, strict=True)),
               default=0)


def _collect_requests(graph: Graph, runtime: Runtime, isa: str, fusion: Fusion) -> list[Buffer]:
    last_reader = _last_readers(graph, fusion.ends)
    held: dict[int, Buffer] = {}
    requests: list[Buffer] = []

    def hold(tensor_id: int, first: int) -> None:
        tensor = graph.tensors[tensor_id]
        own = fusion.buffers.get(tensor_id) or Buffer(
            name=tensor.name, tensors=[tensor_id], size_bytes=tensor.size_bytes, first=first,
            last=max(first, last_reader.get(tensor_id, first)))
        request = Buffer(name=tensor.name, tensors=[tensor_id], size_bytes=own.size_bytes,
                         first=own.first, last=own.last)
        held[tensor_id] = request
        requests.append(request)

    for tensor_id in (*graph.inputs, *list_states(graph)):
        hold(tensor_id, 0)
    for position, layer in enumerate(graph.layers):
        source = _reused_input(graph, layer, position, runtime, held)
        for tensor_id in layer.outputs:
            if source is not None:
                source.tensors.append(tensor_id)
                source.last = max(source.last, last_reader.get(tensor_id, position))
                held[tensor_id] = source
                source = None
            else:
                hold(tensor_id, position)
        scratch = 0 if position in fusion.accelerated else _scratch(graph, layer, runtime, isa)
        if scratch:
            requests.append(Buffer(name=f"scratch of {layer.name}", tensors=[-1 - position],
                                   size_bytes=scratch, first=position, last=position))
    return requests


def _scratch(graph: Graph, layer: Layer, runtime: Runtime, isa: str) -> int:
    if is_alias(layer):
        return 0
    dtype = layer_dtype(graph, layer)
    lowering = runtime.lowering(layer.op, dtype, isa)
    if reads_packed(graph, layer):
        from twin.runtimes.lowering.packed import take_apart

        lowering = take_apart(lowering, GraphLayer(graph, layer), in_loops=runtime.splits_in_loops)
    return lowering.scratch_bytes(Site(graph=graph, layer=layer, isa=isa, fpu=None, operands=()))


def reads_packed(graph: Graph, layer: Layer) -> bool:
    """Whether a layer's weights are of 4 bits: the core takes them apart first."""
    if len(layer.inputs) < 2 or layer.inputs[1] < 0:
        return False
    weights = graph.input(layer, 1)
    return weights.is_constant and weights.dtype in ("int4", "uint4")


def layer_dtype(graph: Graph, layer: Layer) -> str:
    """Type of the activations a layer works on: float32 if it reads or writes any.

    A change of type works on what it reads.
    """
    tensors: list[Tensor] = [*graph.ends(layer)]
    return "float32" if any(t.dtype == "float32" for t in tensors) and (
        not traits(layer).converts) else tensors[0].dtype


def _last_readers(graph: Graph, ends: Mapping[int, int]) -> dict[int, int]:
    last = {tensor_id: ends.get(position, position)
            for position, layer in enumerate(graph.layers) for tensor_id in layer.inputs}
    # A state must survive to the next inference, an output until it is read.
    return last | dict.fromkeys((*graph.outputs, *list_states(graph)),
                                max(0, len(graph.layers) - 1))


def _reused_input(graph: Graph, layer: Layer, position: int, runtime: Runtime,
                  held: dict[int, Buffer]) -> Buffer | None:
    """Return the buffer the first output may share: an alias's, or one that dies in place."""
    if is_alias(layer):
        return held.get(layer.source_id)
    if layer.op not in runtime.in_place:
        return None
    wanted = graph.output(layer).size_bytes
    for tensor_id in layer.inputs:
        request = held.get(tensor_id)
        if (request is not None and request.last == position and request.size_bytes >= wanted
                and tensor_id not in graph.inputs):
            return request
    return None


def _overlap_distances(graph: Graph, runtime: Runtime,
                       buffers: Sequence[Buffer]) -> dict[tuple[int, int], int]:
    """Pairs of (input, output) buffers that may share memory, and how far apart they start."""
    from twin.deployment.overlap import overlap_distance_bytes

    holder = {tensor: i for i, buffer in enumerate(buffers) for tensor in buffer.tensors}
    distances = {}
    for position, layer in enumerate(graph.layers):
        behind, ahead = (holder.get(tensors[0]) for tensors in (layer.inputs, layer.outputs))
        if (behind is None or ahead is None or behind == ahead
                or buffers[behind].last != position or buffers[ahead].first != position):
            continue
        distance = overlap_distance_bytes(graph, layer, runtime.in_place)
        if distance is not None:
            distances[behind, ahead] = align(distance, runtime.alignment_bytes)
    return distances


def _list_alive(buffers: list[Buffer], positions: int) -> list[list[Buffer]]:
    """Buffers in use while each layer runs."""
    alive: list[list[Buffer]] = [[] for _ in range(positions)]
    for buffer in buffers:
        for position in range(buffer.first, min(buffer.last + 1, positions)):
            alive[position].append(buffer)
    return alive


def _covered_bytes(alive: list[Buffer], alignment_bytes: int) -> int:
    """Bytes of the arena in use by buffers that are alive together, shared ones once."""
    covered = end = 0
    for buffer in sorted(alive, key=lambda buffer: buffer.offset_bytes):
        until = buffer.offset_bytes + align(buffer.size_bytes, alignment_bytes)
        covered += max(0, until - max(end, buffer.offset_bytes))
        end = max(end, until)
    return covered


def constant_sizes(graph: Graph) -> dict[int, int]:
    """Return the aligned size of every constant, in the order layers read them."""
    # FlatBuffers and linkers both align constant buffers to 16 bytes.
    return {tensor_id: align(graph.tensors[tensor_id].size_bytes, 16)
            for layer in graph.layers for tensor_id in layer.inputs
            if tensor_id >= 0 and graph.tensors[tensor_id].is_constant}
