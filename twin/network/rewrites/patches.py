"""The first layers computed patch by patch, so that no whole large activation is ever alive.

Neighbouring patches overlap by what their windows reach (the halo), which is computed twice:
more multiply-accumulates, less memory. Patches are cut from the input by slices and joined by
concatenations, so the network runs wherever these do, and answers bit for bit as before. Residual
blocks are split too: what goes past a block is cut to what the sum needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from twin.errors import NotApplicableError, UsageError
from twin.network.graph import Graph, Layer, Shape, Tensor, Window
from twin.network.operators import CONCATENATION, SLICE, Form, is_alias, traits
from twin.network.rewrites.rewrite import Rewrite, pad_layer, rebuild

MOST = 16
"""Patches along a side at most."""

_FORM = re.compile(r"(\d{1,9})(?:x(\d{1,9}))?(?::(\d{1,9}))?")

Span = tuple[int, int]
"""First and one past the last row or column."""

Area = tuple[Span, Span]
"""Rows and columns."""


@lru_cache(maxsize=32)  # They share their constants with the network.
def compute_by_patches(graph: Graph, rows: int, columns: int, depth: int | None = None) -> Graph:
    """Return a network whose first layers run patch by patch.

    Parameters
    ----------
    graph
        That begins with convolutions on an image, in a chain or in residual blocks.
    rows, columns
        Patches along height and width of what the last of these layers writes.
    depth
        Layers that are split, behind which one tensor is alive; by default as many as leave the
        least memory alive.

    Raises
    ------
    NotApplicableError
        When it does not begin with such a chain, a side is too short, or memory would not fall.

    Notes
    -----
    Memory is that of activations alive together, in their order of execution, without scratch.

    References
    ----------
    Lin et al., MCUNetV2: Memory-efficient Patch-based Inference for Tiny Deep Learning, 2021.
    """
    text = f"network.patches={rows}x{columns}" + ("" if depth is None else f":{depth}")
    stages = _find_stages(graph)
    if not stages:
        raise NotApplicableError(f"{text}: {graph.name} does not begin with a chain of "
                                 "convolutions on an image")
    lengths = [len(stage) for stage in stages]
    if depth is not None and depth not in lengths:
        raise NotApplicableError(f"{text}: {graph.name} begins with a chain of {lengths[-1]} "
                                 "layers that can be split; accepted: "
                                 + ", ".join(map(str, lengths)))
    best: Graph | None = None
    for stage in stages:
        if depth not in (None, len(stage)):
            continue
        _, height, width, _ = graph.tensors[stage[-1].target_id].shape
        if height < rows or width < columns:
            break
        split = _Split(graph=graph, stage=stage, rows=rows, columns=columns).build()
        if best is None or live_bytes(split) < live_bytes(best):
            best = split
    if best is None:
        raise NotApplicableError(f"{text}: what the split layers write has fewer rows or columns "
                                 "than patches")
    if live_bytes(best) >= live_bytes(graph):
        raise NotApplicableError(
            f"{text}: patches save no RAM here: {live_bytes(best):,} bytes of activations would be "
            f"alive, {live_bytes(graph):,} are without patches")
    return best


def live_bytes(graph: Graph) -> int:
    """Return the most bytes of activations alive at once, layers in their order."""
    last = _list_last_uses(graph)
    alive = {i: graph.tensors[i].size_bytes for i in graph.inputs}
    most = 0
    for position, layer in enumerate(graph.layers):
        alive.update((i, 0 if is_alias(layer) else graph.tensors[i].size_bytes)
                     for i in layer.outputs)
        most = max(most, sum(alive.values()))
        alive = {i: size for i, size in alive.items() if last.get(i, -1) > position}
    return most


def _list_last_uses(graph: Graph) -> dict[int, int]:
    """Return the last layer that reads each tensor; one behind all for outputs."""
    last = {i: place for place, layer in enumerate(graph.layers) for i in layer.inputs}
    return last | dict.fromkeys(graph.outputs, len(graph.layers))


def _find_stages(graph: Graph) -> tuple[tuple[Layer, ...], ...]:
    """Return the first layers, as far as they can be split, at every place one tensor is alive."""
    if len(graph.inputs) != 1 or len(graph.entry.shape) != 4 or graph.entry.shape[0] != 1:
        return ()
    last = _list_last_uses(graph)
    made, found = {graph.inputs[0]}, list[tuple[Layer, ...]]()
    for place, layer in enumerate(graph.layers):
        if not _is_split(graph, layer, made):
            break
        made.add(layer.target_id)
        alive = {i for i in made if last.get(i, -1) > place}
        if alive == {layer.target_id}:
            found.append(graph.layers[:place + 1])
    return tuple(found)


def _is_split(graph: Graph, layer: Layer, made: set[int]) -> bool:
    """Whether a layer can run on a part of what it reads."""
    read = graph.list_data(layer)
    if not set(read) <= made or len(layer.outputs) != 1:
        return False
    operator = traits(layer)
    if operator.form is Form.BROADCAST:
        shape = graph.output(layer).shape
        return len(read) == len(layer.inputs) and all(graph.tensors[i].shape == shape for i in read)
    plain = operator.is_pool and layer.window is not None and not any(layer.window.padding)
    return read == layer.inputs[:1] and (
        operator.is_convolution or operator.form is Form.ELEMENTWISE or plain)


@dataclass(slots=True)
class _Split:
    """A graph being taken apart into patches."""

    graph: Graph
    stage: tuple[Layer, ...]
    rows: int
    columns: int
    tensors: list[Tensor] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    def build(self) -> Graph:
        """Return the graph: every patch, then all joined, then the layers behind."""
        self.tensors = list(self.graph.tensors)
        output = self.stage[-1].target_id
        _, height, width, _ = self.tensors[output].shape
        bands = []
        for band in _cut(height, self.rows):
            parts = [self._compute(band, part) for part in _cut(width, self.columns)]
            bands.append(self._join(parts, 2, None if self.rows > 1 else output))
        self._join(bands, 1, output)
        rest = [layer for layer in self.graph.layers if layer not in self.stage]
        return rebuild(self.graph, self.tensors, (*self.layers, *rest))

    def _compute(self, band: Span, part: Span) -> int:
        """Add the layers of one patch and return what they write."""
        areas: dict[int, Area] = {self.stage[-1].target_id: (band, part)}
        for layer in reversed(self.stage):
            for i in self.graph.list_data(layer):
                need = self._reach(layer, i, areas[layer.target_id])
                areas[i] = _hull(areas[i], need) if i in areas else need
        label, source = f"patch_{band[0]}_{part[0]}", self.graph.inputs[0]
        whole = self.graph.tensors[source].shape
        patches = {source: self._slice(source, areas[source], ((0, whole[1]), (0, whole[2])),
                                       f"{label}/slice")}
        for layer in self.stage:
            after = areas[layer.target_id]
            sources = []
            for place, i in enumerate(self.graph.list_data(layer)):
                need = self._reach(layer, i, after)
                sources.append(self._slice(patches[i], need, areas[i],
                                           f"{label}/{layer.name}/slice_{place}"))
            patches[layer.target_id] = self._apply(layer, sources, after, label)
        return patches[self.stage[-1].target_id]

    def _reach(self, layer: Layer, source: int, after: Area) -> Area:
        """Return what a layer reads of a tensor for an area of what it writes."""
        shape = self.graph.tensors[source].shape
        rows, columns = (_reach(span, layer.window, place, shape[place + 1])
                         for place, span in enumerate(after))
        return rows, columns

    def _add(self, like: int, name: str, shape: Shape) -> int:
        self.tensors.append(replace(self.tensors[like], name=name, shape=shape))
        return len(self.tensors) - 1

    def _slice(self, source: int, area: Area, held: Area, name: str) -> int:
        """Add a slice of a tensor that holds an area; of all of it, none."""
        if area == held:
            return source
        rows, columns = area
        made = self._add(source, name, (1, rows[1] - rows[0], columns[1] - columns[0],
                                        self.tensors[source].shape[3]))
        begin = (0, rows[0] - held[0][0], columns[0] - held[1][0], 0)
        self.layers.append(Layer(
            index=0, name=name, op=SLICE, inputs=(source,), outputs=(made,),
            options=(("begin", begin), ("strides", (1, 1, 1, 1)))))
        return made

    def _apply(self, layer: Layer, sources: list[int], after: Area, label: str) -> int:
        """Add one layer on one patch, its border padded where the image ends."""
        window, like, source = layer.window, layer.target_id, sources[0]
        if window is not None:
            shape = self.graph.input(layer).shape
            before = self._reach(layer, layer.source_id, after)
            rows, columns = (_pads(before[place], after[place], window, place, shape[place + 1])
                             for place in (0, 1))
            source, window = self._pad(layer, source, window, (rows, columns), label)
        channels = self.graph.tensors[like].shape[3]
        made = self._add(like, f"{label}/{layer.name}",
                         (1, after[0][1] - after[0][0], after[1][1] - after[1][0], channels))
        inputs = (source, *(sources[1:] if len(sources) > 1 else layer.inputs[1:]))
        self.layers.append(replace(layer, name=f"{label}/{layer.name}", window=window,
                                   inputs=inputs, outputs=(made,)))
        return made

    def _pad(self, layer: Layer, source: int, window: Window, pads: Area,
             label: str) -> tuple[int, Window]:
        """Return what the window slides over: padded by a layer where it is not SAME or VALID."""
        _, height, width, channels = self.tensors[source].shape
        padded = replace(window, padding=(*pads[0], *pads[1]))
        if not any(padded.padding) or padded == window.pad_same(height, width):
            return source, padded
        made = self._add(source, f"{label}/{layer.name}/pad",
                         (1, height + sum(pads[0]), width + sum(pads[1]), channels))
        self.layers.append(pad_layer(f"{label}/{layer.name}/pad", source, made, *pads))
        return made, replace(window, padding=(0, 0, 0, 0))

    def _join(self, parts: list[int], axis: int, into: int | None) -> int:
        """Add a concatenation; of one part, none."""
        if len(parts) == 1 and into is None:
            return parts[0]
        if parts == [into]:
            return parts[0]
        shape = list(self.tensors[parts[0]].shape)
        shape[axis] = sum(self.tensors[part].shape[axis] for part in parts)
        if into is None:
            into = self._add(parts[0], f"{self.tensors[parts[0]].name}/joined", tuple(shape))
        self.layers.append(Layer(index=0, name=self.tensors[into].name, op=CONCATENATION,
                                 inputs=tuple(parts), outputs=(into,), options=(("axis", axis),)))
        return into


def _cut(size: int, parts: int) -> Iterator[Span]:
    """Yield spans of nearly equal length."""
    for part in range(parts):
        yield size * part // parts, size * (part + 1) // parts


def _hull(one: Area, other: Area) -> Area:
    """Return the smallest area around two."""
    rows, columns = ((min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(one, other, strict=True))
    return rows, columns


def _reach(span: Span, window: Window | None, place: int, size: int) -> Span:
    """Return the rows or columns of its input that a span of an output needs."""
    if window is None:
        return span
    first = span[0] * window.stride[place] - window.padding[2 * place]
    last = (span[1] - 1) * window.stride[place] - window.padding[2 * place]
    return max(0, first), min(size, last + (window.kernel[place] - 1) * window.dilation[place] + 1)


def _pads(before: Span, after: Span, window: Window, place: int, size: int) -> Span:
    """Return the padding of a patch at the edges of the image: what its window reaches beyond."""
    first = after[0] * window.stride[place] - window.padding[2 * place]
    end = ((after[1] - 1) * window.stride[place] - window.padding[2 * place]
           + (window.kernel[place] - 1) * window.dilation[place] + 1)
    return max(0, before[0] - first), max(0, end - before[1])


def _read(text: str) -> tuple[int, int, int | None]:
    found = _FORM.fullmatch(text.lower().replace(" ", ""))
    numbers = [int(one) if one else None for one in found.groups()] if found else []
    rows = numbers[0] if numbers else None
    columns = (numbers[1] or rows) if numbers else None
    if rows is None or columns is None or not (1 <= rows <= MOST and 1 <= columns <= MOST
                                               and rows * columns > 1):
        raise UsageError(f"network.patches: {text!r}; accepted: patches along a side such as 3, "
                         f"rows x columns such as 4x1, at most {MOST}, with the layers to split "
                         "behind a colon, such as 3x3:5")
    return rows, columns, numbers[2]


REWRITE = Rewrite(
    name="network.patches", accepted="patches along a side such as 3, rows x columns, 3x3:LAYERS",
    does="the first layers run patch by patch, what overlaps twice: less memory, more work",
    effort="conversion", costs="", stage=60, neutral=1.0, whole=True,
    values=lambda graph: ("2", "3", "4x1"), read=_read,
    apply=lambda graph, patches: compute_by_patches(graph, *patches))
