"""Layers done by the layer before or behind them, or taken apart again.

A fused activation is a clamp of the convolution's own requantisation; fused padding is a border
the window is taken to see; a constant sum is the convolution's bias.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from twin.errors import AlreadySoError, NotApplicableError
from twin.network.graph import Graph, Layer, Shape, Tensor, Window
from twin.network.operators import ADD, CLAMPS, PAD, traits
from twin.network.rewrites.numbers import quantise_bias, real_values
from twin.network.rewrites.rewrite import Rewrite, pad_layer, read_choice, rebuild

KINDS = ("activation", "pad", "add", "all", "none")


def fuse_activations(graph: Graph) -> Graph:
    """Let layers clamp what they write, where a rectifier is all that reads it."""
    readers, gone = graph.readers, dict[int, Layer]()
    for layer in graph.layers:
        reader = _only_reader(graph, readers, layer)
        if (traits(layer).fuses_clamp and layer.activation is None and reader is not None
                and reader.op in CLAMPS):
            gone[layer.index] = reader
    dropped = {reader.index for reader in gone.values()}
    return _or_same(graph, dropped, lambda: rebuild(graph, graph.tensors, (
        replace(layer, activation=gone[layer.index].op, outputs=gone[layer.index].outputs)
        if layer.index in gone else layer
        for layer in graph.layers if layer.index not in dropped)))


def fuse_pads(graph: Graph) -> Graph:
    """Let convolutions pad for themselves, where what they pad is what SAME pads.

    Notes
    -----
    Files and kernel libraries say SAME or VALID; other borders are left as layers, unless the
    runtime says that it fuses them.
    """
    readers, windows, dropped = graph.readers, dict[int, Window](), dict[int, int]()
    for layer in graph.layers:
        reader = _only_reader(graph, readers, layer)
        if layer.op != PAD or reader is None or not traits(reader).is_convolution:
            continue
        window = _pad_window(graph, layer, reader)
        if window is not None and reader.source_id == layer.target_id:
            windows[reader.index], dropped[layer.target_id] = window, layer.source_id
    return _or_same(graph, dropped, lambda: rebuild(graph, graph.tensors, (
        replace(layer, window=windows[layer.index],
                inputs=(dropped[layer.source_id], *layer.inputs[1:]))
        if layer.index in windows else layer
        for layer in graph.layers if layer.target_id not in dropped)))


def _pad_window(graph: Graph, pad: Layer, reader: Layer) -> Window | None:
    """Return the window of a layer that pads for itself; None where it is not SAME."""
    amounts, window = pad.option("paddings", ()), reader.window
    assert window is not None
    if (len(amounts) != 4 or any((*amounts[0], *amounts[3])) or any(window.padding)
            or pad.option("mode") != "constant" or pad.option("value") != 0.0):
        return None
    wanted = window.pad_same(*graph.input(pad).shape[1:3])
    return wanted if wanted.padding == (*amounts[1], *amounts[2]) else None


def fuse_sums(graph: Graph) -> Graph:
    """Add constants a layer's output is summed with to its bias.

    Raises
    ------
    NotApplicableError
        Where sums are of two activations: no kernel library here adds while it convolves.
    """
    readers, tensors = graph.readers, list(graph.tensors)
    joined, dropped = dict[int, Layer](), set[int]()
    for layer in graph.layers:
        reader = _only_reader(graph, readers, layer)
        if (not traits(layer).sums_products or layer.activation is not None
                or reader is None or reader.op != ADD or layer.index in joined):
            continue
        constant = next((i for i in reader.inputs if tensors[i].is_constant), None)
        bias = layer.bias
        channels = tensors[layer.target_id].channels
        if (constant is None or bias < 0 or not tensors[bias].is_constant
                or tensors[constant].elements not in (1, channels)
                or len(readers.get(bias, ())) > 1):
            continue
        tensors[bias] = _sum_bias(tensors, layer, bias, constant)
        joined[layer.index] = replace(layer, outputs=reader.outputs, activation=reader.activation)
        dropped.add(reader.index)
    if not dropped and any(layer.op == ADD for layer in graph.layers):
        raise NotApplicableError(
            f"network.fusion=add: the sums of {graph.name} are of two activations; no kernel "
            "library of a core adds while it convolves (neural-art chains them in an epoch by "
            "itself)")
    return _or_same(graph, dropped, lambda: rebuild(graph, tensors, (
        joined.get(layer.index, layer) for layer in graph.layers if layer.index not in dropped)))


def _sum_bias(tensors: list[Tensor], layer: Layer, bias: int, constant: int) -> Tensor:
    values = (real_values(tensors[bias]).reshape(-1)
              + real_values(tensors[constant]).reshape(-1)).reshape(tensors[bias].shape)
    if tensors[bias].dtype == "float32":
        return replace(tensors[bias], data=values.astype(np.float32))
    source = tensors[layer.source_id].quantization
    weights = tensors[layer.inputs[1]].quantization
    assert source is not None and weights is not None
    real = replace(tensors[bias], data=values, dtype="float32", quantization=None)
    return quantise_bias(real, source, weights, tensors[bias].dtype)


def take_apart(graph: Graph) -> Graph:
    """Give activations and padding layers of their own: what the network costs unfused.

    Notes
    -----
    What a convolution writes before its clamp has the scale of what the clamp writes: costs do
    not depend on it. Padding of pooling stays: a padded zero could win.
    """
    tensors, layers = list(graph.tensors), list[Layer]()

    def between(layer: Layer, shape: Shape, like: int, kind: str) -> int:
        tensors.append(replace(tensors[like], name=f"{layer.name}/{kind}", shape=shape))
        return len(tensors) - 1

    for layer in graph.layers:
        window, padded = layer.window, layer
        if traits(layer).is_convolution and window is not None and any(window.padding):
            top, bottom, left, right = window.padding
            batch, height, width, channels = tensors[layer.source_id].shape
            made = between(layer, (batch, height + top + bottom, width + left + right, channels),
                           layer.source_id, "pad")
            layers.append(pad_layer(f"{layer.name}/pad", layer.source_id, made, (top, bottom),
                                    (left, right)))
            padded = replace(layer, inputs=(made, *layer.inputs[1:]),
                             window=replace(window, padding=(0, 0, 0, 0)))
        if layer.activation is not None and layer.activation in CLAMPS and (
                traits(layer).fuses_clamp):
            made = between(layer, tensors[layer.target_id].shape, layer.target_id, "sum")
            layers.append(replace(padded, activation=None, outputs=(made,)))
            layers.append(Layer(index=0, name=layer.name, op=layer.activation, inputs=(made,),
                                outputs=layer.outputs))
        else:
            layers.append(padded)
    return _or_same(graph, len(layers) > len(graph.layers), lambda: rebuild(graph, tensors, layers))


def _only_reader(graph: Graph, readers: dict[int, list[Layer]], layer: Layer) -> Layer | None:
    """Return the one layer that reads what a layer writes; None: several, or an output."""
    found = readers.get(layer.target_id, [])
    return found[0] if len(found) == 1 and layer.target_id not in graph.outputs else None


def _or_same(graph: Graph, changed: object, make: Callable[[], Graph]) -> Graph:
    return make() if changed else graph


def fuse(graph: Graph, kind: str) -> Graph:
    """Fuse what can be, of one kind or of all; "none" takes apart what is fused.

    Raises
    ------
    AlreadySoError
        When there is nothing to fuse, or nothing fused.
    """
    if kind == "all":
        changed = fuse_activations(fuse_pads(graph))
        with suppress(NotApplicableError):
            changed = fuse_sums(changed)
    else:
        changed = {"activation": fuse_activations, "pad": fuse_pads, "add": fuse_sums,
                   "none": take_apart}[kind](graph)
    if changed is graph:
        nothing = {"activation": "no rectifier is a layer of its own behind a layer that can clamp",
                   "pad": "no padding ahead of a convolution is what SAME pads",
                   "add": "nothing constant is added to what a layer writes",
                   "all": "there is nothing left to fuse",
                   "none": "no activation or padding is fused"}[kind]
        raise AlreadySoError(f"network.fusion={kind}: {nothing} in {graph.name}")
    return changed


def _values(graph: Graph) -> tuple[str, ...]:
    return ("all", "none")


REWRITE = Rewrite(
    name="network.fusion", accepted=", ".join(KINDS),
    does="activations, padding and constant sums are part of the layer beside them (all), or "
         "layers of their own (none)", effort="conversion", costs="", stage=50,
    values=_values, read=partial(read_choice, "network.fusion", KINDS), apply=fuse)
