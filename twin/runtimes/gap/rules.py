"""What a tool for GAP makes of a network: layers on NE16 or the cluster, tiles through L1.

Convolutions of 1x1 and 3x3 and fully connected layers run on NE16 where there is one, all else on
the cores; nothing of a network runs on the fabric controller but what starts it. Activations and
weights lie in L2, weights that find no room there in the flash.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import ClassVar

from hwmodels.frozen import NamedCounts, NamedTexts, frozen
from hwmodels.quantities import list_first
from hwmodels.schedule import Npu, Task, Transfer, UnitKind, UnitWork
from hwmodels.schedule.tiles import Tile, bill_tiles, pipeline_tiles
from twin.errors import RuntimeRefusedError
from twin.network.graph import Graph, GraphLayer, Layer
from twin.network.operators import Form, layer_macs, traits
from twin.runtimes.by_role.transfers import pool_of
from twin.runtimes.compiler import Planner
from twin.runtimes.gap import cluster, ne16
from twin.runtimes.gap.tiling import Piece, Shape, cut_layer, list_sizes, move, read_shape
from twin.runtimes.partition import Group, Grouping, Reason, Step, Why, Work
from twin.runtimes.units import UnitRules

_MOST_TIMES = 8
"""Times the fewest tiles of a layer up to which more are tried."""

_BEFORE = ("relu", "relu6", "relu_n1_to_1", None)


@frozen
class Gap(UnitRules):
    """Rules of a tool that tiles.

    Parameters
    ----------
    reserved_bytes
        Of L1: stacks of the cores and the tool's own.
    layer_cycles
        From the end of a layer to the first transfer of the next.
    tile_cycles, transfer_cycles
        To start the units on a tile, and for each of its transfers.
    """

    channel_name: ClassVar[str] = "DMA channel"
    kinds: ClassVar[Mapping[str, str]] = {
        "task": "tile", "move": "tile", "host": "host", "copy": "copy"}

    reserved_bytes: int
    layer_cycles: int
    tile_cycles: int
    transfer_cycles: int

    def list_roles(self, layer: Layer) -> tuple[tuple[str, ...], ...]:
        """Return the roles it needs: any operator with counted kernels runs on the cores."""
        if layer.op == "softmax" or traits(layer).form in (Form.JOIN, Form.CUT, Form.PAD):
            return (("activation",),)
        return super(Gap, self).list_roles(layer)

    def find_unit(self, layer: Layer, npu: Npu) -> UnitKind | None:
        """Return NE16 for what it computes, else the cores."""
        engine = next((unit for unit in npu.units if unit.kind == "NE16"), None)
        if engine is not None and job_kind(layer) is not None:
            return engine
        return npu.unit(cluster.UNIT)

    def explain_host(self, site: GraphLayer, npu: Npu) -> str:
        """Return why no tile of a layer fits, or ""."""
        if traits(site.layer).filters == 0 and site.op == "transpose_conv_2d":
            return "no kernel of the cluster is counted for it"
        if traits(site.layer).is_depthwise and site.source.channels != (
                site.output.channels):
            return "several filters a channel"
        _, ways = self._find_ways(site, site.layer.source_id, npu, None, 2)
        scratch = npu.scratch
        return "" if ways or scratch is None else Reason(
            f"{scratch.name} of {scratch.size_bytes:,} bytes holds no row of it, even for one core",
            Why.MEMORY)

    def list_remarks(self, graph: Graph, planner: Planner) -> Iterator[str]:
        """Yield which convolutions leave cores idle, whose columns would find no room."""
        npu, scratch = planner.npu, planner.npu.scratch
        fewer = [step.layer.index for step in graph.steps if traits(step.layer).is_convolution
                 and npu is not self._find_ways(step, step.layer.source_id, npu, None, 2)[0]]
        if fewer and scratch is not None:
            yield (f"{scratch.name} of {scratch.size_bytes:,} bytes has no room for the columns all"
                   f" cores copy windows to: layers {list_first(fewer, 8)} leave cores idle")

    def joins(self, layer: Layer, reader: Layer) -> bool:
        """Whether padding disappears into the window that reads it."""
        return traits(layer).form is Form.PAD and traits(reader).form is Form.WINDOW

    def follows(self, layer: Layer) -> bool:
        """Whether it clamps what the layer before requantises anyway."""
        return traits(layer).clamps

    def plan_work(self, site: GraphLayer, npu: Npu) -> Work:
        """Return the layer's work as one tile; `schedule` cuts it."""
        weights = site.weights.size_bytes if (traits(site.layer).filters is not None) else 0
        shape = read_shape(site, site.layer.source_id)
        part = cluster.Part(rows=shape.rows, columns=shape.columns, channels=shape.channels)
        return Work(units=(self._work(site, part, npu),), operations=((site.op, 1),),
                    weight_bytes=weights)

    def schedule(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping) -> tuple[Step, ...]:
        """Return the tiles of each layer, in order; the host acts before the first of many."""
        npu, steps, inside = planner.npu, [], False
        resident = npu.resident
        left = resident.size_bytes if resident is not None else 0
        for group in grouping.groups:
            layers = tuple(graph.layers[i].index for i in group.layers)
            name = f"{self.task_name}_{layers[0]}"
            if group.kind in ("alias", "host"):
                inside = inside and group.kind == "alias"
                steps.append(self.leave_step(graph, group, npu, name))
            else:
                weights = grouping.works[group.chain[0]].weight_bytes
                stays = resident is not None and weights <= left
                left -= weights if stays else 0
                task = Task(name=name, kind=self.kinds["task"], layers=layers,
                            operations=tuple((graph.layers[i].op, 1) for i in group.layers),
                            start_cycles=self.layer_cycles,
                            host_before_cycles=0 if inside else round(npu.hand_over.pre_cycles),
                            host_after_cycles=0 if inside else round(npu.hand_over.post_cycles))
                kept = resident.name if stays and resident is not None else pool_of(
                    npu, planner.weights).name
                steps += self._tile(graph, group, planner, task, pools, kept)
                inside = True
        return tuple(steps)

    def _tile(self, graph: Graph, group: Group, planner: Planner, task: Task,
              pools: Mapping[int, str], kept: str) -> list[Step]:
        """Return the steps of a layer."""
        npu, site = planner.npu, GraphLayer(graph, graph.layers[group.chain[0]])
        source = (graph.layers[group.joined[0]] if group.joined else site.layer).source_id
        arena = pool_of(npu, planner.arena).name
        places = {"weights": kept, "input": pools.get(source, arena),
                  "output": pools.get(graph.layers[group.chain[-1]].target_id, arena)}
        tiles, buffers = self._choose_tiles(site, source, npu, planner.tile_rows,
                                            planner.buffers or 2, tuple(places.items()))
        share = tuple(1 / len(group.layers) for _ in group.layers)
        return [Step(kind="task", layers=group.layers, shares=share, task=one)
                for one in pipeline_tiles(task, tiles, buffers)]

    def _make_tile(self, site: GraphLayer, piece: Piece, npu: Npu,
                   pools: Mapping[str, str]) -> Tile:
        unit = self.find_unit(site.layer, npu)
        port = npu.interfaces[0].name
        apart = traits(site.layer).is_depthwise and unit is not None and unit.kind == cluster.UNIT
        reads: tuple[Transfer, ...] = tuple(
            move(size, 1 if apart and operand == "input" else run, "in", operand, pools[operand],
                 port) for operand, size, run in piece.reads)
        writes = (move(piece.written_bytes, piece.run_bytes, "out", "output", pools["output"],
                       port),)
        return Tile(units=(self._work(site, piece.part, npu),), reads=reads, writes=writes,
                    start_cycles=self.tile_cycles + self.transfer_cycles * (len(reads) + 1))

    @lru_cache(maxsize=128)  # noqa: B019  (rules are few and live as long as the process)
    def _choose_tiles(self, site: GraphLayer, source: int, npu: Npu, tile_rows: int | None,
                      buffers: int, places: NamedTexts) -> tuple[list[Tile], int]:
        """Return tiles that take the fewest cycles and how many buffers each operand has.

        `places` are pools by operand.
        """
        machine, listed = self._find_ways(site, source, npu, tile_rows, buffers)
        make = lru_cache(maxsize=None)(partial(
            self._make_tile, site, npu=machine, pools=dict(places)))
        shape = read_shape(site, source)
        sizes = {(held, rows, channels): math.ceil(shape.rows / rows) * math.ceil(
            shape.channels / channels) for held, rows, channels in listed}
        most = _MOST_TIMES * min(sizes.values(), default=0)
        ways = [([make(piece) for piece in cut_layer(shape, rows, channels)], held)
                for (held, rows, channels), tiles in sizes.items() if tiles <= most]
        cycles = bill_tiles(ways, npu)
        return min(zip(cycles, ways, strict=True), key=lambda one: one[0], default=(
            0, ([], buffers)))[1]

    @lru_cache(maxsize=256)  # noqa: B019  (rules are few and live as long as the process)
    def _find_ways(self, site: GraphLayer, source: int, npu: Npu, tile_rows: int | None,
                   buffers: int) -> tuple[Npu, list[tuple[int, int, int]]]:
        """Return ways to cut a layer, and the machine with half its cores as often as none fits.

        Each core copies two windows to columns of its own.
        """
        shape, machine = read_shape(site, source), npu
        while True:
            cores = machine.unit(cluster.UNIT)
            ways = list(self._list_ways(site, shape, machine, tile_rows, buffers))
            if ways or cores.count == 1:
                return machine if ways else npu, ways
            machine = replace(machine, units=tuple(
                replace(unit, count=cores.count // 2) if unit is cores else unit
                for unit in machine.units))

    def _list_ways(self, site: GraphLayer, shape: Shape, npu: Npu, tile_rows: int | None,
                   buffers: int) -> Iterator[tuple[int, int, int]]:
        """Yield ways to cut a layer: buffers of each operand, rows and channels of a tile."""
        scratch, unit = npu.scratch, self.find_unit(site.layer, npu)
        if scratch is None:
            raise RuntimeRefusedError(f"{npu.name}: no pool of the accelerator states `scratch`; "
                                      "accepted: a board with a local memory tiles pass through")
        if scratch.size_bytes <= self.reserved_bytes:
            raise RuntimeRefusedError(
                f"npu.pools.{scratch.name}.size_bytes: {scratch.size_bytes:,} bytes leave no room "
                f"for tiles, stacks and the tool take {self.reserved_bytes:,}; accepted: more")
        on_engine = unit is not None and unit.kind == "NE16"
        step = (ne16.DEEP if traits(site.layer).is_depthwise else ne16.WIDE) if on_engine else 4
        for held, channels in dict.fromkeys(itertools.product((buffers, 1), (step, 4))):
            yield from ((held, *size) for size in list_sizes(
                shape, scratch.size_bytes - self.reserved_bytes, tile_rows, held, channels,
                lambda part: 0 if on_engine else _columns_bytes(site, npu)))

    def _work(self, site: GraphLayer, part: cluster.Part, npu: Npu) -> UnitWork:
        """Return the unit's work for a part of a layer."""
        unit = self.find_unit(site.layer, npu)
        assert unit is not None, "the cluster runs what nothing else does"
        outputs = site.output.elements
        done = part.pixels * part.channels
        macs = layer_macs(site.graph, site.layer) * done // max(1, outputs) if (
            traits(site.layer).filters is not None) else 0
        waits: NamedCounts = ()
        if unit.kind == "NE16":
            cycles = ne16.count_cycles(_make_job(site, part))
        else:
            found = cluster.count_cycles(site, part, npu)
            cycles, waits = found.cycles, found.waits
        peak = unit.peak_macs("8x8") * unit.count
        return UnitWork(kind=unit.kind, count=unit.count, macs=macs, compute_cycles=cycles,
                        ops=0 if macs else done, waits=waits,
                        useful=min(1.0, macs / (peak * max(1, cycles))) if macs else None)


def job_kind(layer: Layer) -> str | None:
    """Return the kind of job of NE16 a layer is; None where it computes no such."""
    window = layer.window
    if layer.op == "fully_connected":
        return "conv1x1"
    if window is None or not traits(layer).is_convolution or window.dilation != (1, 1) or (
            window.stride not in ((1, 1), (2, 2)) or layer.activation not in _BEFORE):
        return None
    if traits(layer).is_depthwise:
        return "depthwise3x3" if window.kernel == (3, 3) else None
    if layer.groups != 1:
        return None
    return {(1, 1): "conv1x1", (3, 3): "conv3x3"}.get(window.kernel)


def _make_job(site: GraphLayer, part: cluster.Part) -> ne16.Job:
    """Return a part of a layer as a job; with a stride of two a tile gives 2 by 2 outputs."""
    kind = job_kind(site.layer)
    assert kind is not None, "NE16 was chosen"
    strided = site.layer.window is not None and site.layer.window.stride == (2, 2)
    rows, columns = (math.ceil(size / 2) * 3 if strided else size
                     for size in (part.rows, part.columns))
    return ne16.Job(kind=kind, rows=rows, columns=columns, outputs=part.channels,
                    inputs=site.source.channels)


def _columns_bytes(site: GraphLayer, npu: Npu) -> int:
    """Bytes of the columns the cores copy windows to: two each."""
    if not traits(site.layer).is_convolution:
        return 0
    window = math.prod(site.layer.kernel)
    depth = 1 if traits(site.layer).is_depthwise else site.source.channels
    return 2 * window * depth * npu.unit(cluster.UNIT).count
