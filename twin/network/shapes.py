"""Shapes that follow from others: at another resolution or batch, or where a file is open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from twin.errors import ModelError, NotApplicableError
from twin.network.graph import Graph, Layer, Shape, Shapes, Window, same_padding
from twin.network.operators import Form, traits

Rule = Callable[[Layer, Shapes, Shapes, Shapes], Shapes]
"""(layer, shapes it read, shapes it reads, shapes it wrote) -> shapes it writes."""


def infer_shapes(graph: Graph, inputs: Mapping[int, Shape], setting: str) -> Graph:
    """Return a graph whose inputs have other shapes, every layer following.

    Parameters
    ----------
    inputs
        New shapes of its inputs; those not named stay.
    setting
        What was asked, for the refusal.

    Returns
    -------
    Graph
        Same layers; windows padded as TensorFlow pads SAME are padded again, pooling over the
        whole of its input stays so.

    Raises
    ------
    NotApplicableError
        Naming the layer whose weights, constants or shape only fit the old input.
    """
    shapes: dict[int, Shape] = {i: tensor.shape for i, tensor in enumerate(graph.tensors)}
    if shapes == {**shapes, **inputs}:
        return graph
    shapes.update(inputs)
    layers = []
    for layer in graph.layers:
        old = [graph.tensors[i].shape if i >= 0 else () for i in layer.inputs]
        new = [shapes[i] if i >= 0 else () for i in layer.inputs]
        if old == new:
            layers.append(layer)
            continue
        made, form = [graph.tensors[i].shape for i in layer.outputs], traits(layer).form
        try:
            if form is Form.WINDOW:
                layer = replace(layer, window=_reframe(layer, old[0], new[0]))
            written = _RULES.get(form, _refuse)(layer, old, new, made)
            if any(size < 1 for shape in written for size in shape):
                raise _NoRoomError("its window is larger than what is left of the image")
        except _NoRoomError as reason:
            raise NotApplicableError(f"{setting}: layer {layer.index} {layer.op} {layer.name!r} of "
                                     f"{graph.name}: {reason}") from None
        layers.append(layer)
        shapes.update(zip(layer.outputs, written, strict=True))
    return replace(graph, layers=tuple(layers), tensors=tuple(
        tensor if tensor.shape == shapes[i] else replace(tensor, shape=shapes[i])
        for i, tensor in enumerate(graph.tensors)))


def follow_layer(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    """Return the shapes a layer writes; none where they are not known.

    Parameters
    ----------
    layer
        Its window as the new shapes need it.
    old, new
        Shapes it read, and reads.
    """
    try:
        return _RULES.get(traits(layer).form, _refuse)(layer, old, new, made)
    except _NoRoomError:
        return []


class _NoRoomError(Exception):
    """Why a layer does not follow."""


def _refuse(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    raise _NoRoomError(f"its shape at another input is not known (it reads {list(new[0])} in "
                       f"place of {list(old[0])})")


def _reframe(layer: Layer, old: Shape, new: Shape) -> Window:
    """Return a window that is padded again, or covers its input again."""
    window, pools = layer.sliding_window, traits(layer).is_pool
    kernel, stride, padding = list(window.kernel), list(window.stride), list(window.padding)
    for place, (was, now) in enumerate(zip(old[1:3], new[1:3], strict=True)):
        pads = (padding[2 * place], padding[2 * place + 1])
        sizes = (kernel[place], stride[place], window.dilation[place])
        if was != now and pools and kernel[place] == was and not any(pads):
            kernel[place] = now
        elif was != now and any(pads) and pads == same_padding(was, *sizes):
            padding[2 * place:2 * place + 2] = same_padding(now, *sizes)
        if pools and stride[place] == was and kernel[place] == now:
            stride[place] = now
    return Window(kernel=(kernel[0], kernel[1]), stride=(stride[0], stride[1]),
                  dilation=window.dilation,
                  padding=(padding[0], padding[1], padding[2], padding[3]))


def _slide(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    rows, columns = layer.sliding_window.slide(*new[0][1:3])
    return [(new[0][0], max(0, rows), max(0, columns), made[0][3])]


def _connect(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    depth = old[1][1]
    if new[0][-1] == depth and len(new[0]) == len(made[0]):
        return [(*new[0][:-1], old[1][0])]
    rows = math.prod(new[0]) // depth
    fits = new[0][-1] == depth or (new[0][0] != old[0][0] and new[0][1:] == old[0][1:])
    if not fits or math.prod(new[0]) % depth:
        raise _NoRoomError(f"its weights are for {depth} inputs, of which the image at that "
                           f"resolution has {math.prod(new[0])}")
    return [_scale_one_axis(old[0], new[0], made[0], rows * old[1][0])]


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


def _reshape(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    return [_scale_one_axis(old[0], new[0], made[0], math.prod(new[0]))]


def _same(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    return [new[0]] * len(layer.outputs)


def _broadcast(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    try:
        return [tuple(map(int, np.broadcast_shapes(*new)))]
    except ValueError:
        raise _NoRoomError("its operands no longer have the same shape: "
                           + " and ".join(str(list(shape)) for shape in new)) from None


def _concatenate(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    axis = layer.option("axis", 0)
    return [(*new[0][:axis], sum(shape[axis] for shape in new), *new[0][axis + 1:])]


def _reduce(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    axes, kept = layer.option("axes", ()), layer.option("keep_dims", False)
    return [tuple(1 if axis in axes else size for axis, size in enumerate(new[0])
                         if kept or axis not in axes)]


def _pad(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    return [tuple(size + sum(pair) for size, pair in zip(
        new[0], layer.option("paddings", ()), strict=True))]


def _transpose(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    return [tuple(new[0][axis] for axis in layer.option("perm", ()))]


def _resize(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    """Keep the ratio of a resize; one to a fixed size keeps that."""
    output = made[0]
    sizes = [now * out // was if out % was == 0 or was % out == 0 else out
             for was, now, out in zip(old[0][1:3], new[0][1:3], output[1:3], strict=True)]
    return [(new[0][0], *sizes, output[3])]


def _split(layer: Layer, old: Shapes, new: Shapes, made: Shapes) -> Shapes:
    """Follow splits and slices along axes whose size stays."""
    written = []
    for output in made:
        cut = [axis for axis, size in enumerate(output) if size != old[0][axis]]
        if len(output) != len(old[0]) or any(old[0][axis] != new[0][axis] for axis in cut):
            raise _NoRoomError("it cuts along an axis whose size changes")
        written.append(tuple(output[axis] if axis in cut else size
                             for axis, size in enumerate(new[0])))
    return written


_RULES: dict[Form, Rule] = {
    Form.WINDOW: _slide, Form.PRODUCT: _connect, Form.RESHAPE: _reshape,
    Form.ELEMENTWISE: _same, Form.ROWS: _same, Form.BROADCAST: _broadcast,
    Form.JOIN: _concatenate, Form.PAD: _pad, Form.PERMUTE: _transpose, Form.REDUCE: _reduce,
    Form.RESIZE: _resize, Form.CUT: _split,
}


def check_batch(graph: Graph) -> Graph:
    """Return a graph as read, with a note where it takes several inputs at a time.

    Raises
    ------
    ModelError
        Where its layers are not what they are of one input, so many times.
    """
    sizes = {graph.tensors[i].shape[0] for i in graph.inputs if graph.tensors[i].shape}
    batch = max(sizes, default=1)
    if batch == 1 or not any(layer.window is not None for layer in graph.layers):
        return graph  # Rows without a window may be a sequence.
    text = f"{graph.source}: batch {batch} of its input"
    try:
        if len(sizes) > 1:
            raise NotApplicableError("other inputs have another first axis")
        shapes = {i: graph.tensors[i].shape for i in graph.inputs}
        one = infer_shapes(graph, {i: (1, *shape[1:]) for i, shape in shapes.items()}, text)
        again = infer_shapes(one, shapes, text)
    except NotApplicableError as error:
        raise ModelError(f"{text}: {error}; export the model with batch 1") from error
    if any(tensor.shape != other.shape for tensor, other in zip(
            graph.tensors, again.tensors, strict=True)):
        raise ModelError(f"{text}: its layers mix the inputs; export the model with batch 1")
    return replace(graph, notes=(*graph.notes, f"input: a batch of {batch}; figures are of all "
                                 f"{batch} inputs"))
