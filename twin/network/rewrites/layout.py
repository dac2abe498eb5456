"""The order of axes at the network's edges: transposes at its inputs and outputs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from twin.errors import AlreadySoError, NotApplicableError
from twin.network.graph import Graph, Layer, Shape
from twin.network.operators import TRANSPOSE
from twin.network.rewrites.rewrite import Rewrite, read_choice, rebuild

LAYOUTS = ("channels_last", "channels_first")

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def feed_channels_last(graph: Graph) -> Graph:
    """Leave out transposes at the edges: whoever fills the input writes it channels last.

    Raises
    ------
    AlreadySoError
        When no input is transposed first, and no output last.
    """
    readers = graph.readers
    inputs, outputs, dropped = list(graph.inputs), list(graph.outputs), set[int]()
    for layer in graph.layers:
        if layer.op != TRANSPOSE or len(layer.option("perm", ())) != 4:
            continue
        source, target = layer.source_id, layer.target_id
        if source in inputs and len(readers[source]) == 1:
            inputs[inputs.index(source)] = target
        elif target in outputs and len(readers[source]) == 1:
            outputs[outputs.index(target)] = source
        else:
            continue
        dropped.add(layer.index)
    if not dropped:
        raise AlreadySoError(f"network.layout=channels_last: {graph.name} transposes neither "
                             "inputs nor outputs: it is fed channels last already")
    return rebuild(graph, graph.tensors,
                   (layer for layer in graph.layers if layer.index not in dropped),
                   inputs=tuple(inputs), outputs=tuple(outputs))


def feed_channels_first(graph: Graph) -> Graph:
    """Take images channels first, as cameras by planes and PyTorch have them.

    Raises
    ------
    NotApplicableError
        When there is no image of several channels.
    """
    tensors, first, last = list(graph.tensors), list[Layer](), list[Layer]()
    inputs, outputs = list(graph.inputs), list(graph.outputs)

    def add(like: int, shape: Shape) -> int:
        tensors.append(replace(tensors[like], name=f"{tensors[like].name}/channels_first",
                               shape=shape))
        return len(tensors) - 1

    for edge, layers, perm in ((inputs, first, _TO_LAST), (outputs, last, _TO_FIRST)):
        for place, tensor_id in enumerate(edge):
            shape = tensors[tensor_id].shape
            if len(shape) != 4 or shape[3] == 1 or shape[1] * shape[2] == 1:
                continue
            turned = add(tensor_id, tuple(shape[axis] for axis in _TO_FIRST))
            read, written = (turned, tensor_id) if edge is inputs else (tensor_id, turned)
            layers.append(Layer(index=0, name=tensors[written].name, op=TRANSPOSE,
                                inputs=(read,), outputs=(written,), options=(("perm", perm),)))
            edge[place] = turned
    if not (first or last):
        raise NotApplicableError(f"network.layout=channels_first: {graph.name} has no image of "
                                 "several channels at its edges")
    return rebuild(graph, tensors, (*first, *graph.layers, *last), inputs=tuple(inputs),
                   outputs=tuple(outputs))


def _values(graph: Graph) -> tuple[str, ...]:
    return ("channels_last",) if any(layer.op == TRANSPOSE for layer in graph.layers) else ()


REWRITE = Rewrite(
    name="network.layout", accepted=", ".join(LAYOUTS),
    does="images go in and out with channels last (transposes at the edges fall) or first",
    effort="rebuild", costs="", stage=40, values=_values,
    read=partial(read_choice, "network.layout", LAYOUTS),
    apply=lambda graph, layout: (feed_channels_last if layout == "channels_last"
                                 else feed_channels_first)(graph))
