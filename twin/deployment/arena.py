"""The buffer a program states for a network's activations: how many bytes, and of what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hwmodels.frozen import frozen
from twin.deployment.memories import Buffer, align, place_greedily
from twin.network.operators import list_states
from twin.runtimes import tflm

if TYPE_CHECKING:
    from twin.network.graph import Graph
    from twin.runtimes.runtime import ArenaRule


@frozen
class Arena:
    """Bytes of the buffer a program gives its runtime.

    Parameters
    ----------
    name
        As code calls it: kTensorArenaSize, AI_NETWORK_DATA_ACTIVATIONS_SIZE.
    planned_bytes
        Activations and scratch, as laid out over their lives; non-persistent.
    persistent
        Bytes that are kept throughout, by kind.
    needed_bytes
        Least size that works, alignment and what is needed while the plan is made included.
    recorded_bytes
        In use where TFLM's benchmark tool records it: it adds records and resource variables.
    input_bytes, output_bytes
        Of the network's inputs and outputs, which lie in it.
    unknown
        What is not known of its contents: at least this much is needed.
    """

    name: str
    planned_bytes: int
    persistent: Mapping[str, int]
    needed_bytes: int
    input_bytes: int
    output_bytes: int
    recorded_bytes: int | None = None
    unknown: tuple[str, ...] = ()

    @property
    def persistent_bytes(self) -> int:
        """Bytes that are kept throughout."""
        return sum(self.persistent.values())

    @property
    def total_bytes(self) -> int:
        """Bytes in use once tensors are allocated: `arena_used_bytes()`."""
        return self.planned_bytes + self.persistent_bytes

    @property
    def description(self) -> str:
        """The size a program states for it, and what is in it."""
        kept = ", ".join(f"{kind} {size:,}" for kind, size in self.persistent.items())
        parts = [f"{self.planned_bytes:,} non-persistent + {self.persistent_bytes:,} persistent "
                f"({kept})" if kept else
                f"with {self.input_bytes:,} of input, {self.output_bytes:,} of output"]
        if (spare := self.needed_bytes - self.total_bytes) > 15:
            parts[0] += f" + {spare:,} while it is planned"
        if self.recorded_bytes is not None:
            parts.append(f"{self.recorded_bytes:,} in TFLM's benchmark tool")
        parts += [f"more for {what}, of unknown size" for what in self.unknown]
        return f"{self.name} >= {self.needed_bytes:,} bytes: " + "; ".join(parts)


def plan_arena(graph: Graph, rule: ArenaRule, isa: str, planned: int, kept: int) -> Arena:
    """Return the arena of a network.

    Parameters
    ----------
    graph
        As its file states it.
    rule
        What the runtime's file says of it.
    isa
        Instruction set, which kernel data depend on.
    planned, kept
        Bytes of activations and of per-channel parameters, where no release is known.

    Notes
    -----
    TFLM takes persistent data from the end of the arena downwards, each rounded down to its
    alignment, and plans everything else from the start.
    """
    ends = {f"{name}_bytes": sum(graph.tensors[i].size_bytes for i in tensors)
            for name, tensors in (("input", graph.inputs), ("output", graph.outputs))}
    if rule.release is None or "64" in isa:  # sizes are those of 32-bit pointers
        return Arena(name=rule.name, planned_bytes=planned, needed_bytes=planned + kept, **ends,
                     persistent={"kernel data": kept} if kept else {}, unknown=(
                         rule.unknown if rule.release is None else ("its structures on 64 bits",)))
    asks, recording = (tflm.list_asks(graph, rule.kernels, rule.release, isa, recording=recording)
                       for recording in (False, True))
    planned = plan_activations(graph, asks.scratch)
    persistent = _stack(asks.persistent)
    before = sum(_stack(ask for ask in asks.persistent if ask[0] != tflm.KINDS[-1]).values())
    total = planned + sum(persistent.values())
    return Arena(
        name=rule.name, planned_bytes=planned, persistent=persistent, **ends,
        unknown=(*rule.unknown, *asks.unknown),
        needed_bytes=align(max(total, align(before, tflm.ALIGNMENT_BYTES) + asks.planning_bytes),
                           tflm.ALIGNMENT_BYTES),
        recorded_bytes=planned + sum(_stack(recording.persistent).values()))


def _stack(asks: Iterable[tflm.Ask]) -> dict[str, int]:
    """Return bytes by kind of data taken from the end downwards, with what alignment wastes."""
    taken, kinds = 0, dict.fromkeys(tflm.KINDS, 0)
    for kind, size, alignment in asks:
        end = align(taken + size, alignment)
        kinds[kind] += end - taken
        taken = end
    return {kind: size for kind, size in kinds.items() if size}


def plan_activations(graph: Graph, scratch: Mapping[int, tuple[int, ...]]) -> int:
    """Return bytes of TFLM's greedy plan: the largest first, of equals the last asked for.

    References
    ----------
    tflite-micro: greedy_memory_planner.cc, micro_allocation_info.cc.
    """
    first = dict.fromkeys(graph.inputs, 0)
    last = dict(first)
    for position, layer in enumerate(graph.layers, 1):
        for tensor in layer.outputs:
            first.setdefault(tensor, position)
        last.update(dict.fromkeys(layer.tensors, position))
    last.update(dict.fromkeys(graph.outputs, len(graph.layers)))
    kept = {*list_states(graph), -1}
    buffers = [Buffer(name=graph.tensors[i].name, tensors=[i], first=first[i], last=last[i],
                      size_bytes=align(graph.tensors[i].size_bytes, tflm.ALIGNMENT_BYTES))
               for i in sorted(first) if i not in kept and not graph.tensors[i].is_constant]
    buffers += [Buffer(name="scratch", tensors=[], first=position + 1, last=position + 1,
                       size_bytes=align(size, tflm.ALIGNMENT_BYTES))
                for position, sizes in scratch.items() for size in sizes]
    order = sorted(range(len(buffers)), key=lambda i: (-buffers[i].size_bytes, -i))
    place_greedily(buffers, tflm.ALIGNMENT_BYTES, order)
    return max((one.offset_bytes + one.size_bytes for one in buffers), default=0)
