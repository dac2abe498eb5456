"""Which layers Vela puts on an Ethos-U, and as which tasks: read from what it compiled.

Three kinds of networks come here: one before Vela, which is written as a .tflite file and compiled;
one Vela compiled, whose operators `ethos-u` are layers of their own; and a program of ExecuTorch
with delegates of Ethos-U, which are read as those are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from hwmodels.board.file import load_board
from hwmodels.board.npu import Npu
from hwmodels.errors import TwinError, reworded
from hwmodels.file_cache import Same
from hwmodels.files import JsonObject
from hwmodels.frozen import NamedCounts, frozen
from hwmodels.quantities import list_by_key
from hwmodels.schedule import TaskBuffer, TaskRun
from twin.errors import ModelError, RuntimeRefusedError
from twin.network.graph import Graph, Layer
from twin.network.operators import follow_aliases, is_alias, layer_macs
from twin.network.rewrites.patches import live_bytes
from twin.network.writers.tflite import encode_tflite
from twin.runtimes.compiler import Compiler, Planner
from twin.runtimes.ethos_u.commands import Stream, read_stream
from twin.runtimes.ethos_u.counters import FIGURES, count_run, list_totals
from twin.runtimes.ethos_u.tasks import make_tasks
from twin.runtimes.ethos_u.traffic import MODES
from twin.runtimes.ethos_u.vela import (
    OPTIMISE,
    Compilation,
    Sources,
    check_memory_mode,
    compile_network,
)
from twin.runtimes.partition import Group, Grouping, Reason, Step, Why

COMPILED = "ethos_u"
"""Operator of a graph that is a command stream: its first input, a constant."""


@frozen
class _Region:
    """Layers that run as one stream.

    Parameters
    ----------
    layers
        Positions, in execution order.
    sources : tuple of (int, int)
        Byte of a command, and position of the layer it comes from.
    """

    layers: tuple[int, ...]
    stream: Stream
    sources: Sources


@dataclass(frozen=True, kw_only=True)
class EthosU(Compiler):
    """Vela's mapping, and Arm's PMU as the profiler."""

    channel_name: ClassVar[str] = "AXI stream"
    kinds: ClassVar[Mapping[str, str]] = {
        "task": "npu", "move": "npu", "host": "cpu", "copy": "dma"}
    activation_bits: ClassVar[tuple[int, ...]] = (8, 16, 32)
    summed: ClassVar[tuple[str, ...]] = ("pool_", *FIGURES)
    memory_modes: ClassVar[tuple[str, ...]] = tuple(MODES)
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"optimise": OPTIMISE}

    def config_of(self, graph: Graph) -> str:
        """Return the size the first command stream was compiled for."""
        return next((_stream_of(graph, layer).config for layer in graph.layers
                     if layer.op == COMPILED), "")

    def group(self, graph: Graph, planner: Planner) -> Grouping:
        """Return the layers of each stream, and those Vela leaves to the CPU."""
        _check(planner.npu)
        if _is_compiled(graph):
            return _group_compiled(graph, planner.npu)
        return _group_network(graph, compiled_of(graph, planner.npu, tuple(planner.host)),
                              planner.npu)

    def schedule(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping) -> tuple[Step, ...]:
        """Return a task for each command of each stream, and the host's operators between them."""
        npu = planner.npu
        regions = {region.layers: region for region in _regions(graph, planner, grouping)}
        steps: list[Step] = []
        for group in grouping.groups:
            if group.kind == "task":
                steps += _list_steps(graph, regions[group.layers], npu)
            else:
                steps.append(self.leave_step(
                    graph, group, npu, f"cpu_{graph.layers[group.chain[0]].index}"))
        return tuple(steps)

    def place(self, npu: Npu) -> Mapping[str, str]:
        """Return the memories constants and arena are in: as the memory mode says."""
        _check(npu)
        constants, arena, _ = MODES[npu.memory_mode]
        last = len(npu.pools) - 1
        return {"weights": npu.pools[min(constants, last)].memory,
                "arena": npu.pools[min(arena, last)].memory}

    def list_remarks(self, graph: Graph, planner: Planner) -> Iterator[str]:
        """Yield another family than the chip's, what Vela made, and its own estimate beside it."""
        npu = planner.npu
        with suppress(TwinError):  # A user's board may be no file of a known name.
            own = load_board(npu.name).npu
            if own is not None and not npu.sizes and (
                    own.config.rpartition("-")[0] != npu.config.rpartition("-")[0]):
                yield (f"assumed: {npu.config} in place of the {own.config} of {npu.name}, with "
                       "its memories: another family than its chip's")
        if _is_compiled(graph):
            return
        made = compiled_of(graph, planner.npu, tuple(planner.host))
        streams = made.file.streams
        estimate = float(dict(made.summary).get("cycles_total") or 0.0)
        yield (f"compiled by Vela {made.version} for {planner.npu.config} in "
               f"{planner.npu.memory_mode}: constants "
               f"{sum(one.constant_bytes for one in streams):,}, arena "
               f"{max((one.arena_bytes for one in streams), default=0):,}, fast scratch "
               f"{max((one.scratch_bytes for one in streams), default=0):,} bytes; its own "
               f"estimate, of which no figure here is made: {estimate:,.0f} NPU cycles")

    def describe_runs(self, runs: Sequence[TaskRun]) -> list[JsonObject]:
        """Return the predicted counterpart of each figure of the PMU, for each task."""
        return [{"pmu": {name: round(value) for name, value in count_run(run).items()}}
                for run in runs]

    def count_runs(self, runs: Sequence[TaskRun]) -> list[dict[str, float]]:
        """Return the counters any accelerator has, and those of Arm's PMU."""
        return [own | count_run(run)
                for own, run in zip(super().count_runs(runs), runs, strict=True)]

    def list_task(self, name: str, kind: str, index: int, counters: Mapping[str, float],
                  totals: Mapping[str, float], clocks_hz: Mapping[str, float]) -> list[str]:
        """Return a line for a task: its name, and its counters."""
        shown = " ".join(f"{counter}={value:.0f}" for counter, value in counters.items())
        return [f"{index:4} {name:28} {shown}"]

    def list_model(self, totals: Mapping[str, float], clocks_hz: Mapping[str, float]) -> list[str]:
        """Return what ml-embedded-evaluation-kit prints of an inference."""
        return list_totals(totals)


def _is_compiled(graph: Graph) -> bool:
    """Whether Vela compiled the network before."""
    return any(layer.op == COMPILED for layer in graph.layers)


def _check(npu: Npu) -> None:
    if not npu.config:
        raise RuntimeRefusedError(f"{npu.name}: npu.config is not stated; accepted: a size of "
                                  "hwmodels/npus/ethos-u.yaml")
    check_memory_mode(npu)
    arena, u55 = npu.pools[-1], npu.config.startswith("ethos-u55")
    if npu.memory_mode == "Dedicated_Sram" and (u55 or arena.byte_event == "npu_flash_byte"):
        raise RuntimeRefusedError("npu.memory_mode: Dedicated_Sram: " + (
            "an Ethos-U55's second port" if u55 else
            f"{arena.name}, the last of npu.pools, where the arena would be,")
            + " only reads; accepted: Sram_Only, Shared_Sram")
    if npu.scratch_bytes > npu.pools[0].size_bytes:
        raise RuntimeRefusedError(f"npu.scratch_bytes: {npu.scratch_bytes:,}; accepted: at most "
                                  f"the {npu.pools[0].size_bytes:,} of {npu.pools[0].name}")


def compiled_of(graph: Graph, npu: Npu, host: tuple[str, ...] = ()) -> Compilation:
    """Return what Vela makes of a network for an accelerator.

    Parameters
    ----------
    graph
        The network; its tensors are named by number, so that those of the result can be found.
    host
        Operators Vela leaves to the CPU by option.

    Raises
    ------
    RuntimeRefusedError
        When the network cannot be written for Vela, or a layer is asked for by its number.
    """
    if numbered := [name for name in host if name.isdigit()]:
        raise RuntimeRefusedError(f"offload.host: layer {numbered[0]}: Vela keeps all operators of "
                                  "a type on the CPU, or none; accepted: operators")
    return _compile(Same((graph,)), npu, tuple(sorted(name.upper() for name in host)))


@lru_cache(maxsize=64)
def _compile(key: Same[tuple[Graph]], npu: Npu, host: tuple[str, ...]) -> Compilation:
    graph = key.parts[0]
    named = replace(graph, tensors=tuple(replace(tensor, name=f"t{number}")
                                         for number, tensor in enumerate(graph.tensors)))
    with reworded(ModelError, RuntimeRefusedError, f"{graph.name}: cannot be written for Vela: "):
        content = encode_tflite(named)
    return compile_network(content, npu, host, live_bytes(graph))


def _group_compiled(graph: Graph, npu: Npu) -> Grouping:
    """Return the groups of a network Vela compiled: each stream is a layer."""
    groups, reasons = [], []
    for position, layer in enumerate(graph.layers):
        kind = ("task" if layer.op == COMPILED else "alias" if is_alias(layer) else "host")
        groups.append(Group(kind=kind, chain=(position,)))
        reasons.append(Reason("Vela left it to the CPU" if kind == "host" else "", Why.RULE))
        if kind == "task":
            config = _stream_of(graph, layer).config
            if config != npu.config:
                raise RuntimeRefusedError(
                    f"{graph.name}: compiled for {config}, the NPU is {npu.config}, whose driver "
                    f"refuses it; accepted: --set npu.config={config}, or the file from before "
                    "Vela")
    return Grouping(groups=tuple(groups), works={}, reasons=tuple(reasons), buffers={},
                    scratch=_keep_scratch(npu, (layer.option("scratch_bytes", 0)
                                                for layer in graph.layers)))


def _keep_scratch(npu: Npu, sizes: Iterable[object]) -> NamedCounts:
    """Return the fast scratch of streams, which run one after another: pool and bytes."""
    most = max((size for size in sizes if isinstance(size, int)), default=0)
    return ((npu.pools[0].name, most),) if most and npu.memory_mode == "Dedicated_Sram" else ()


def _stream_of(graph: Graph, layer: Layer) -> Stream:
    data = graph.input(layer).data
    assert data is not None, "the reader keeps the command stream as a constant"
    return _read_payload(data.tobytes(), f"{graph.source}: layer {layer.index}")


@lru_cache(maxsize=64)
def _read_payload(payload: bytes, where: str) -> Stream:
    return read_stream(payload, where)


def _list_groups(graph: Graph, compilation: Compilation) -> list[tuple[Group, int]]:
    """Return the groups of a network in the order Vela runs them, each with its stream or -1."""
    writers = _find_writers(graph)
    order = [(own, writers.get(_tensor_of(name), -1)) for own, name in compilation.file.order]
    regions = _share_regions(graph, compilation, {position for own, position in order if not own})
    groups: list[tuple[Group, int]] = []
    number = 0
    for own, position in order:
        if own:
            layers = tuple(sorted(i for i, region in regions.items() if region == number))
            if layers:
                groups.append((Group(kind="task", chain=layers), number))
            number += 1
        elif position >= 0:
            kind = "alias" if is_alias(graph.layers[position]) else "host"
            groups.append((Group(kind=kind, chain=(position,)), -1))
    placed = {i for group, _ in groups for i in group.layers}
    return groups + [(Group(kind="alias", chain=(i,)), -1) for i in range(len(graph.layers))
                     if i not in placed]


def _find_writers(graph: Graph) -> dict[int, int]:
    """Return the position of the layer that writes each tensor."""
    return {tensor: position for position, layer in enumerate(graph.layers)
            for tensor in layer.outputs}


def _group_network(graph: Graph, compilation: Compilation, npu: Npu) -> Grouping:
    groups = _list_groups(graph, compilation)
    kept = {group.chain[0] for group, _ in groups if group.kind == "host"}
    return Grouping(
        groups=tuple(group for group, _ in groups), works={},
        buffers=_list_buffers(graph, groups, compilation),
        scratch=_keep_scratch(npu, (one.scratch_bytes for one in compilation.file.streams)),
        reasons=tuple(Reason(_explain(graph.layers[i], compilation) if i in kept else "", Why.RULE)
                      for i in range(len(graph.layers))))


def _tensor_of(name: str) -> int:
    return int(name[1:]) if name[:1] == "t" and name[1:].isdigit() else -1


def _explain(layer: Layer, compilation: Compilation) -> str:
    name = f"t{layer.target_id}"
    line_found = next((line for line in compilation.warnings if f"'{name}'" in line
                 or f" {name} " in line), "")
    return line_found or f"Vela {compilation.version} leaves it to the CPU"


def _share_regions(graph: Graph, compilation: Compilation, host: set[int]) -> dict[int, int]:
    """Return the stream of each layer that is not on the host.

    A layer no command comes from was merged into another: into the one that reads it, or, at the
    end, the one it reads.
    """
    found = {position: number for number, sources in enumerate(compilation.sources)
             for _, position in sources if position < len(graph.layers) and position not in host}
    if not compilation.file.streams:
        return found
    readers = list_by_key((tensor, position) for position, layer in enumerate(graph.layers)
                          for tensor in layer.inputs)
    writers = _find_writers(graph)
    for position in reversed(range(len(graph.layers))):
        if position not in found and position not in host:
            near = [found[i] for tensor in graph.layers[position].outputs
                    for i in readers.get(tensor, ()) if i in found]
            if near:
                found[position] = near[0]
    for position, layer in enumerate(graph.layers):
        if position not in found and position not in host:
            near = [found[writers[tensor]] for tensor in layer.inputs
                    if writers.get(tensor) in found]
            if near:
                found[position] = near[0]
    return found


def _list_buffers(graph: Graph, groups: Sequence[tuple[Group, int]],
                  compilation: Compilation) -> dict[int, TaskBuffer]:
    """Return tensors inside a stream: its arena, all of it charged to the first of them.

    What another group reads, under whichever shape, is no such tensor.
    """
    sources = follow_aliases(graph)
    buffers: dict[int, TaskBuffer] = {}
    readers: dict[int, set[int]] = {}
    for place, (group, _) in enumerate(groups):
        for tensor in (tensor for i in group.layers for tensor in graph.layers[i].inputs):
            readers.setdefault(tensor, set()).add(place)
    for place, (group, number) in enumerate(groups):
        if number < 0:
            continue
        stream = compilation.file.streams[number]
        ends = {_tensor_of(name) for name in (*stream.inputs, *stream.outputs)}
        ends |= {*graph.outputs, *(tensor for tensor, places in readers.items()
                                   if places != {place})}
        ends = {sources.get(tensor, tensor) for tensor in ends}
        inner = [tensor for i in group.layers for tensor in graph.layers[i].outputs
                 if sources.get(tensor, tensor) not in ends]
        beside = sum(graph.tensors[tensor].size_bytes for name in (*stream.inputs, *stream.outputs)
                     if (tensor := _tensor_of(name)) >= 0)
        left = max(0, stream.arena_bytes - beside)
        for tensor in inner:
            buffers[tensor] = TaskBuffer(tensor=tensor, size_bytes=left, first=group.layers[0],
                                         last=group.layers[-1])
            left = 0
    return buffers


def _regions(graph: Graph, planner: Planner, grouping: Grouping) -> list[_Region]:
    """Return the streams of a grouping's tasks."""
    chains = [group.layers for group in grouping.groups if group.kind == "task"]
    if _is_compiled(graph):
        return [_Region(layers=chain, stream=_stream_of(graph, graph.layers[chain[0]]), sources=())
                for chain in chains]
    compilation = compiled_of(graph, planner.npu, tuple(planner.host))
    return [_Region(layers=group.layers, stream=compilation.file.streams[number].stream,
                    sources=compilation.sources[number])
            for group, number in _list_groups(graph, compilation) if number >= 0]


def _list_steps(graph: Graph, region: _Region, npu: Npu) -> list[Step]:
    """Return the tasks of a stream, each with the layers it computes; the driver starts the first.

    A task has the layers of all its commands, which may be a chain, and shares its time by their
    multiply-accumulates. Layers no command comes from are charged nothing but stand with the
    first task.
    """
    tasks = make_tasks(region.stream, npu, npu.memory_mode)
    silent = set(region.layers) - {layer for _, layer in region.sources}
    starts = [int(task.name.rpartition("@")[2]) for task in tasks]
    steps: list[Step] = []
    own: tuple[int, ...] = region.layers[:1]
    for number, (task, start, end) in enumerate(zip(tasks, starts, [*starts[1:], math.inf],
                                                    strict=True)):
        own = tuple(dict.fromkeys(layer for offset, layer in region.sources
                                  if start <= offset < end)) or own[-1:]
        layers = (*own, *sorted(silent - {*own})) if not number else own
        efforts = [max(1, layer_macs(graph, graph.layers[i])) if i in own else 0 for i in layers]
        steps.append(Step(
            kind="task", layers=layers, shares=tuple(one / sum(efforts) for one in efforts),
            task=replace(
                task, layers=tuple(graph.layers[i].index for i in layers),
                host_before_cycles=round(npu.hand_over.pre_cycles) if not number else 0,
                host_after_cycles=round(npu.hand_over.post_cycles)
                if number == len(tasks) - 1 else 0)))
    return steps
