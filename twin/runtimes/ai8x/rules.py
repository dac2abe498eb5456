"""What ADI's ai8xize maps to an ai8x accelerator: layers with the pooling or addition before them.

The tool demands networks of its own operators and quantisation; a network of another tool is taken
as it would be trained again for it, and what the accelerator cannot run stays on the host core,
which the tool itself would refuse. Weights and data have memories of their own in the accelerator:
weights are loaded once, layers follow one another without the host, which loads inputs and reads
results word by word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from hwmodels.frozen import frozen
from hwmodels.schedule import Npu, Task, UnitWork
from twin.network.graph import Graph, GraphLayer, Layer, RowsColumns
from twin.network.operators import Form, follow_aliases, layer_macs, traits
from twin.runtimes.ai8x.cycles import LayerShape, count_cycles
from twin.runtimes.compiler import Planner
from twin.runtimes.partition import Group, Grouping, Reason, Step, Why, Work
from twin.runtimes.units import UnitRules, count_elements

PROCESSORS = 64
"""Of both chips; each reads one channel."""

KERNEL_BYTES = 9
"""Of a word of weight memory: a kernel of 3 by 3, or nine weights of other kernels."""

_WRITTEN_TOGETHER = 4
"""Channels of one word of data memory."""

_GROUP = 16
"""Processors whose outputs are written one word after another."""

_PLAIN_PASSES = 16
"""Up to so many passes and pixels a fully connected layer needs no cycle to flatten."""


@frozen
class Ai8x(UnitRules):
    """Rules of ai8xize.

    Parameters
    ----------
    most_channels
        Inputs or outputs of a layer.
    most_flattened, most_pixels
        Inputs of a fully connected layer behind an image, and pixels of that image.
    data_instances
        Memories the data memory is made of: four channels lie whole in one.
    load_cycles, unload_cycles
        Host cycles for each word of an input written, and of a result read.
    """

    kinds: ClassVar[Mapping[str, str]] = {
        "task": "cnn", "move": "cnn", "host": "host", "copy": "copy"}

    most_channels: int
    most_flattened: int
    most_pixels: int
    data_instances: int
    load_cycles: float
    unload_cycles: float

    def group(self, graph: Graph, planner: Planner) -> Grouping:
        """Return layers as the accelerator runs them, while weight memory lasts."""
        found = super(Ai8x, self).group(graph, planner)
        held = _count_kernels(planner.npu)
        full: list[int] = []
        for group in found.groups:
            words = sum(kernel_words(GraphLayer(graph, graph.layers[i]), PROCESSORS)
                        for i in group.chain if group.kind == "task")
            held -= words
            if words and held < 0:
                full += group.chain[:1]
                held += words
        if not full:
            return found
        again = super(Ai8x, self).group(graph, replace(
            planner, host=(*planner.host, *(str(graph.layers[i].index) for i in full))))
        reasons = list(again.reasons)
        for i in full:
            reasons[i] = Reason(f"weight memory holds {_count_kernels(planner.npu):,} kernels a "
                                "processor, all taken", Why.MEMORY)
        return replace(again, reasons=tuple(reasons))

    def explain_host(self, site: GraphLayer, npu: Npu) -> str:
        """Return which limit of the accelerator a layer exceeds, or ""."""
        shapes = [site.graph.tensors[i].shape for i in (site.layer.source_id, *site.layer.outputs)]
        instance = npu.pools[0].size_bytes // self.data_instances
        for shape in shapes:
            lies = math.prod(shape[1:-1]) * math.ceil(shape[-1] / PROCESSORS) * _WRITTEN_TOGETHER
            if len(shape) > 1 and lies > instance:
                return Reason(f"four channels of {lies:,} bytes, a data memory holds "
                              f"{instance:,}: streaming is not modelled", Why.MEMORY)
        channels = max(shape[-1] for shape in shapes)
        if site.layer.activation not in (None, "relu", "relu6"):
            return f"activation {site.layer.activation}; accepted: relu"
        if site.op == "fully_connected":
            return self._explain_dense(site)
        if channels > self.most_channels:
            return f"{channels} channels; accepted: up to {self.most_channels}"
        form = traits(site.layer).form
        if form is Form.BROADCAST:
            first, second = site.reads[:2]
            same = first.shape == second.shape and not second.is_constant
            return "" if same and site.op in ("add", "sub") else (
                f"{site.op} of other than two images of one shape; accepted: add, sub")
        if form is Form.WINDOW:
            return _explain_window(site.layer, npu)
        window = site.layer.window
        if site.op == "transpose_conv_2d" and (
                window is None or window.kernel != (3, 3) or window.stride != (2, 2)):
            return "a transposed convolution of another kernel or stride; accepted: 3x3, 2"
        return ""

    def _explain_dense(self, site: GraphLayer) -> str:
        inputs, outputs = (tensor.channels for tensor in site.ends)
        pixels = _flattened_pixels(site)
        most = self.most_flattened if pixels > 1 else self.most_channels
        if inputs > most or outputs > self.most_channels or pixels > self.most_pixels:
            return (f"{inputs} inputs of {pixels} pixels and {outputs} outputs; accepted: up to "
                    f"{most} and {self.most_channels}")
        return ""

    def joins(self, layer: Layer, reader: Layer) -> bool:
        """Whether it runs in flight: pooling, addition and padding before a convolution."""
        if not traits(reader).is_convolution or reader.op == "transpose_conv_2d":
            return False
        return traits(layer).form is Form.PAD or traits(layer).is_pool or layer.op in ("add", "sub")

    def plan_work(self, site: GraphLayer, npu: Npu) -> Work:
        """Return the cycles of the layer alone, by its maker's formula."""
        unit = self.find_unit(site.layer, npu)
        assert unit is not None, "a layer without units stays on the host"
        macs = layer_macs(site.graph, site.layer)
        cycles = count_cycles(shape_of(site.graph, (site.layer.index,)))
        peak = unit.peak_macs("8x8") * unit.count
        return Work(
            units=(UnitWork(
                kind=unit.kind, count=unit.count, macs=macs, compute_cycles=cycles,
                ops=0 if macs else count_elements(site),
                useful=min(1.0, macs / (peak * cycles)) if macs else None),),
            operations=((site.op, 1),),
            weight_bytes=kernel_words(site, PROCESSORS) * KERNEL_BYTES * min(
                PROCESSORS, site.source.channels))

    def schedule(self, graph: Graph, planner: Planner, pools: Mapping[int, str],
                 grouping: Grouping) -> tuple[Step, ...]:
        """Return a task for each layer of the accelerator, in the formula's cycles."""
        kinds = {i: group.kind for group in grouping.groups for i in group.layers}
        off = {tensor for i, layer in enumerate(graph.layers) if kinds[i] == "task"
               for tensor in layer.outputs}
        sources = follow_aliases(graph)
        read = {sources.get(tensor, tensor) for tensor in (*graph.outputs, *(
            i for place, layer in enumerate(graph.layers) if kinds[place] == "host"
            for i in layer.inputs))}
        steps, inside = [], False
        for group in grouping.groups:
            first, last = (graph.layers[group.layers[place]] for place in (0, -1))
            name = f"{self.task_name}_{first.index}"
            if group.kind in ("alias", "host"):
                inside = inside and group.kind == "alias"
                steps.append(self.leave_step(graph, group, planner.npu, name))
                continue
            given = [i for i in (sources.get(i, i) for i in first.inputs[:2])
                     if i not in off and not graph.tensors[i].is_constant]
            taken = [i for i in last.outputs if i in read]
            over = planner.npu.hand_over
            task = Task(
                name=name, kind=self.kinds[group.kind],
                operations=tuple((graph.layers[i].op, 1) for i in group.layers),
                layers=tuple(graph.layers[i].index for i in group.layers),
                units=self._list_units(graph, group, grouping),
                start_cycles=0 if inside else planner.npu.start_cycles,
                host_before_cycles=round(self.load_cycles * _count_words(graph, given)
                                         + (0 if inside else over.pre_cycles)),
                host_after_cycles=round(self.unload_cycles * _count_words(graph, taken)
                                        + (over.post_cycles if taken else 0)))
            inside = True
            shares = _share(graph, group.layers)
            steps.append(Step(kind="task", layers=group.layers, shares=shares, task=task))
        return tuple(steps)

    def _list_units(self, graph: Graph, group: Group, grouping: Grouping) -> tuple[UnitWork, ...]:
        """Return the work of a group's layer; what is joined to it runs in its cycles."""
        (unit,) = grouping.works[group.chain[0]].units
        cycles = count_cycles(shape_of(graph, group.layers))
        useful = unit.useful and unit.useful * (unit.compute_cycles or cycles) / cycles
        return (replace(unit, compute_cycles=cycles, useful=useful),)


def shape_of(graph: Graph, positions: tuple[int, ...]) -> LayerShape:
    """Return a layer, and those that run in flight before it, as the accelerator's registers.

    Notes
    -----
    A row of pixels stands upright; a fully connected layer behind an image reads its pixels one
    by one. A channel-by-channel convolution writes four channels a cycle (assumed: the published
    formula is of the chip without it).
    """
    layers = [graph.layers[i] for i in positions]
    main = next((one for one in layers if traits(one).filters is not None), layers[0])
    pool = next((one for one in layers if traits(one).is_pool or one.op == "mean"), None)
    source, result = (tensor.shape for tensor in graph.ends(main))
    pixels = _flattened_pixels(GraphLayer(graph, main))
    passes = math.ceil(source[-1] // pixels / PROCESSORS)
    channels = result[-1]
    if main.op == "fully_connected":
        return LayerShape(pooled=(pixels, math.prod(source[:-1])), channels=channels,
                          passes=passes, flattens=passes * pixels > _PLAIN_PASSES)
    window, (image, padding) = _pool_window(graph, pool), _read_image(graph, layers, main)
    operands = 1 + any(one.op in ("add", "sub") for one in layers)
    if traits(main).filters is None:
        if max(window) > 1 and passes > 1:
            passes = 2 * passes - 1
        slots = math.ceil(min(_GROUP, channels) / _WRITTEN_TOGETHER)
        return LayerShape(pooled=image, channels=channels, pool=window, passes=passes,
                          operands=operands, convolves=False, slots=slots)
    kernel = main.kernel
    if kernel[0] == 1 and image[0] == 1:
        kernel, image, padding, window = kernel[::-1], image[::-1], padding[::-1], window[::-1]
    if traits(main).is_depthwise:
        channels = math.ceil(channels / passes / _WRITTEN_TOGETHER)
    return LayerShape(pooled=image, padding=padding, kernel=kernel, pool=window, passes=passes,
                      channels=channels, operands=operands)


def _read_image(graph: Graph, layers: list[Layer], main: Layer,
                ) -> tuple[RowsColumns, RowsColumns]:
    """Return the image behind the pooling unit, and the padding around it."""
    source, result = (tensor.shape for tensor in graph.ends(main))
    if traits(main).filters is None:
        rows, columns = result[1:3] if len(result) == 4 else (1, 1)
        return (rows, columns), (0, 0)
    rows, columns = source[1:3]
    if main.op == "transpose_conv_2d":
        return (2 * rows, 2 * columns), (1, 1)
    top, _, left, _ = main.sliding_window.padding
    for pad in (one for one in layers if traits(one).form is Form.PAD):
        before = pad.option("paddings", ((0, 0),) * 4)
        rows, columns = graph.input(pad).shape[1:3]
        top, left = top + before[1][0], left + before[2][0]
    return (rows, columns), (top, left)


def _pool_window(graph: Graph, pool: Layer | None) -> RowsColumns:
    if pool is None:
        return 1, 1
    if pool.window is not None:
        return pool.window.kernel
    shape = graph.input(pool).shape
    return shape[1], shape[2]


def _explain_window(layer: Layer, npu: Npu) -> str:
    """Return what of a window the accelerator has not, or ""."""
    window = layer.sliding_window
    rows, columns = window.kernel
    if traits(layer).is_pool:
        if any(window.padding) or max(rows, columns) > 16 or window.stride[0] != window.stride[1]:
            return "pooling with padding, a window above 16 or two strides; accepted: none of them"
        return ""
    flat = min(rows, columns) == 1 and max(rows, columns) <= 9
    if (rows, columns) not in ((1, 1), (3, 3)) and not flat:
        return f"a kernel of {rows}x{columns}; accepted: 1x1, 3x3, or up to 9 in one dimension"
    if window.stride != (1, 1):
        return "a stride; accepted: 1, with pooling before the convolution instead"
    top, bottom, left, right = window.padding
    if top != bottom or left != right or max(window.padding) > 2 or window.dilation != (1, 1):
        return "dilation, or padding that differs by side or is above 2; accepted: none of them"
    if layer.groups > 1 and npu.unit_for("depthwise") is None:
        return f"{layer.groups} groups; accepted: 1"
    return ""


def kernel_words(site: GraphLayer, processors: int) -> int:
    """Return the words of weight memory a layer takes of each processor, in fours."""
    if traits(site.layer).filters is None:
        return 0
    shape = site.source.shape
    channels = site.output.channels
    weights = math.prod(site.layer.kernel)
    each = math.ceil(shape[-1] / processors) * (1 if traits(site.layer).is_depthwise else channels)
    return math.ceil(math.ceil(each * weights / KERNEL_BYTES) / 4) * 4


def _count_kernels(npu: Npu) -> int:
    pool = npu.resident
    return pool.size_bytes // (PROCESSORS * KERNEL_BYTES) if pool is not None else 0


def _flattened_pixels(site: GraphLayer) -> int:
    """Pixels of the image a fully connected layer reads as one vector."""
    if site.op != "fully_connected":
        return 1
    shape = site.graph.tensors[follow_aliases(site.graph).get(
        site.layer.source_id, site.layer.source_id)].shape
    whole = site.source.channels
    return max(1, whole // shape[-1]) if len(shape) == 4 else 1


def _count_words(graph: Graph, tensors: list[int]) -> int:
    return sum(math.ceil(graph.tensors[i].elements / _WRITTEN_TOGETHER) for i in tensors)


def _share(graph: Graph, positions: tuple[int, ...]) -> tuple[float, ...]:
    """Return what part of a task each layer is charged: by elements and multiply-accumulates."""
    efforts = [layer_macs(graph, layer) + count_elements(GraphLayer(graph, layer))
               for layer in (graph.layers[i] for i in positions)]
    return tuple(effort / sum(efforts) for effort in efforts)
