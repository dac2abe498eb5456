"""Shapes of a network worked out anew from other input shapes: resolution and batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from twin.errors import NotApplicableError
from twin.network.graph import Graph, Layer, Window, same_padding
from twin.network.operators import Form, traits

Shape = tuple[int, ...]


def infer_shapes(graph: Graph, inputs: Mapping[int, Shape], said: str) -> Graph:
    """Return a graph whose inputs have other shapes, every layer following.

    Parameters
    ----------
    graph : Graph
        As read.
    inputs : mapping of int to tuple of int
        New shapes of its inputs; those not named stay.
    said : str
        What was asked, for the refusal.

    Returns
    -------
    Graph
        Same layers; windows padded as TensorFlow pads SAME are padded anew, pooling over the
        whole of its input stays so.

    Raises
    ------
    NotApplicableError
        Naming the layer whose weights, constants or shape only fit the old input.
    """
    shapes: dict[int, Shape] = {i: tensor.shape for i, tensor in enumerate(graph.tensors)}
    shapes.update(inputs)
    layers = []
    for layer in graph.layers:
        old = [graph.tensors[i].shape if i >= 0 else () for i in layer.inputs]
        new = [shapes[i] if i >= 0 else () for i in layer.inputs]
        if old == new:
            layers.append(layer)
            continue
        try:
            changed, written = _RULES.get(traits(layer).form, _refuse)(
                graph, layer, old, new)
            if any(size < 1 for shape in written for size in shape):
                raise _NoRoomError("its window is larger than what is left of the image")
        except _NoRoomError as reason:
            raise NotApplicableError(f"{said}: layer {layer.index} {layer.op} {layer.name!r} of "
                                     f"{graph.name}: {reason}") from None
        layers.append(changed)
        shapes.update(zip(layer.outputs, written, strict=True))
    return replace(graph, layers=tuple(layers), tensors=tuple(
        tensor if tensor.shape == shapes[i] else replace(tensor, shape=shapes[i])
        for i, tensor in enumerate(graph.tensors)))


class _NoRoomError(Exception):
    """Why a layer does not follow."""


Rule = Callable[[Graph, Layer, list[Shape], list[Shape]], tuple[Layer, list[Shape]]]


def _outputs(graph: Graph, layer: Layer) -> list[Shape]:
    return [graph.tensors[i].shape for i in layer.outputs]


def _refuse(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
            ) -> tuple[Layer, list[Shape]]:
    raise _NoRoomError(f"its shape at another input is not known (it reads {list(new[0])} in "
                       f"place of {list(old[0])})")


def _slide(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
           ) -> tuple[Layer, list[Shape]]:
    assert layer.window is not None
    window, pools = layer.window, traits(layer).is_pool
    kernel, padding = list(window.kernel), list(window.padding)
    for place in (0, 1):
        was, now = old[0][place + 1], new[0][place + 1]
        pads = (padding[2 * place], padding[2 * place + 1])
        if was == now:
            continue
        if pools and kernel[place] == was and not any(pads):
            kernel[place] = now
        elif any(pads) and pads == same_padding(was, kernel[place], window.stride[place],
                                                window.dilation[place]):
            padding[2 * place:2 * place + 2] = same_padding(
                now, kernel[place], window.stride[place], window.dilation[place])
    global_stride = tuple(
        size if pools and window.stride[place] == old[0][place + 1]
        and kernel[place] == new[0][place + 1] else window.stride[place]
        for place, size in enumerate(new[0][1:3]))
    slid = Window(kernel=(kernel[0], kernel[1]), stride=(global_stride[0], global_stride[1]),
                  dilation=window.dilation,
                  padding=(padding[0], padding[1], padding[2], padding[3]))
    channels = graph.tensors[layer.outputs[0]].shape[3]
    return replace(layer, window=slid), [(new[0][0], *_slid(slid, new[0]), channels)]


def _slid(window: Window, shape: Shape) -> Shape:
    sizes = []
    for place in (0, 1):
        before, after = window.padding[2 * place:2 * place + 2]
        reach = (window.kernel[place] - 1) * window.dilation[place] + 1
        room = shape[place + 1] + before + after - reach
        sizes.append(0 if room < 0 else room // window.stride[place] + 1)
    return tuple(sizes)


def _connect(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
             ) -> tuple[Layer, list[Shape]]:
    depth = old[1][1]
    rows = math.prod(new[0]) // depth
    fits = new[0][-1] == depth or (new[0][0] != old[0][0] and new[0][1:] == old[0][1:])
    if not fits or math.prod(new[0]) % depth:
        raise _NoRoomError(f"its weights are for {depth} inputs, of which the image at that "
                           f"resolution has {math.prod(new[0])}")
    output = _outputs(graph, layer)[0]
    scaled = rows * old[1][0]
    if math.prod(output) == scaled:
        return layer, [output]
    return layer, [_scale_one_axis(old[0], new[0], output, scaled)]


def _scale_one_axis(old: Shape, new: Shape, output: Shape, elements: int) -> Shape:
    """Return a shape of so many elements that differs from an old one in one axis."""
    if math.prod(output) == elements:
        return output
    last = len(output) - 1
    if old and new and old[0] != new[0] and old[1:] == new[1:]:
        order = [0]
    elif output and old and output[-1] == old[-1] == new[-1]:
        order = [axis for axis in range(1, last) if output[axis] > 1] or [last]
    else:
        order = [last, *range(1, last)]
    for axis in order:
        rest = math.prod(output[:axis]) * math.prod(output[axis + 1:])
        if elements % rest == 0:
            return (*output[:axis], elements // rest, *output[axis + 1:])
    raise _NoRoomError(f"{list(output)} cannot hold {elements} elements")


def _reshape(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
             ) -> tuple[Layer, list[Shape]]:
    return layer, [_scale_one_axis(old[0], new[0], _outputs(graph, layer)[0], math.prod(new[0]))]


def _same(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
          ) -> tuple[Layer, list[Shape]]:
    return layer, [new[0]] * len(layer.outputs)


def _broadcast(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
               ) -> tuple[Layer, list[Shape]]:
    try:
        return layer, [tuple(map(int, np.broadcast_shapes(*new)))]
    except ValueError:
        raise _NoRoomError("its operands no longer have the same shape: "
                           + " and ".join(str(list(shape)) for shape in new)) from None


def _concatenate(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
                 ) -> tuple[Layer, list[Shape]]:
    axis = layer.option("axis", 0)
    first = new[0]
    return layer, [(*first[:axis], sum(shape[axis] for shape in new), *first[axis + 1:])]


def _reduce(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
            ) -> tuple[Layer, list[Shape]]:
    axes, kept = layer.option("axes", ()), layer.option("keep_dims", False)
    return layer, [tuple(1 if axis in axes else size for axis, size in enumerate(new[0])
                         if kept or axis not in axes)]


def _pad(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
         ) -> tuple[Layer, list[Shape]]:
    return layer, [tuple(size + sum(pair) for size, pair in zip(
        new[0], layer.option("paddings", ()), strict=True))]


def _transpose(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
               ) -> tuple[Layer, list[Shape]]:
    return layer, [tuple(new[0][axis] for axis in layer.option("perm", ()))]


def _resize(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
            ) -> tuple[Layer, list[Shape]]:
    """Keep the ratio of a resize; one to a fixed size keeps that."""
    output = _outputs(graph, layer)[0]
    sizes = [now * out // was if out % was == 0 or was % out == 0 else out
             for was, now, out in zip(old[0][1:3], new[0][1:3], output[1:3], strict=True)]
    return layer, [(new[0][0], *sizes, output[3])]


def _split(graph: Graph, layer: Layer, old: list[Shape], new: list[Shape]
           ) -> tuple[Layer, list[Shape]]:
    """Follow splits and slices along axes whose size stays."""
    written = []
    for output in _outputs(graph, layer):
        cut = [axis for axis, size in enumerate(output) if size != old[0][axis]]
        if len(output) != len(old[0]) or any(old[0][axis] != new[0][axis] for axis in cut):
            raise _NoRoomError("it cuts along an axis whose size changes")
        written.append(tuple(output[axis] if axis in cut else size
                             for axis, size in enumerate(new[0])))
    return layer, written


_RULES: dict[Form, Rule] = {
    Form.WINDOW: _slide, Form.PRODUCT: _connect, Form.RESHAPE: _reshape,
    Form.ELEMENTWISE: _same, Form.ROWS: _same, Form.BROADCAST: _broadcast,
    Form.JOIN: _concatenate, Form.PAD: _pad, Form.PERMUTE: _transpose, Form.REDUCE: _reduce,
    Form.RESIZE: _resize, Form.CUT: _split,
}
