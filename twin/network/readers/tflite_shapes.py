"""Shapes a .tflite file leaves open, worked out from its inputs as an interpreter does.

Converters leave the batch open, and behind products over three dimensions every dimension of
what is reshaped by computed amounts. The amounts are evaluated, and shapes follow in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from twin.network.graph import Layer, Shape
from twin.network.readers.refusal import UnsupportedError
from twin.network.readers.tflite_control import RESOURCE
from twin.network.readers.tflite_nodes import Converter, Node
from twin.network.shapes import follow_layer

_MOST_VALUES = 64
"""Of a shape being computed."""


def _same(data: np.ndarray, *others: np.ndarray) -> np.ndarray:
    return data


def _joined(*values: np.ndarray) -> np.ndarray:
    return np.hstack(values)


_FOLDS: Mapping[str, Callable[..., Any]] = {
    "GATHER": np.take, "REDUCE_PROD": lambda data, axes: np.prod(data), "MUL": np.multiply,
    "ADD": np.add, "SUB": np.subtract, "FLOOR_DIV": np.floor_divide, "CONCATENATION": _joined,
    "PACK": _joined,
    # One element in most files: of more the end follows from how many are written.
    "STRIDED_SLICE": lambda data, begin, end, step: data[int(begin[0])::int(step[0])],
    **dict.fromkeys(("CAST", "RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _same),
}
"""Operators of shape arithmetic: values -> values in any shape."""


def list_needed(nodes: Sequence[Node], outputs: Sequence[int],
                find_converter: Callable[[str], Converter | None]) -> list[Node]:
    """Return the operators, without those that only compute shapes the file states anyway."""
    wanted = set(outputs)
    needed = []
    for node in reversed(nodes):
        converter = find_converter(node.builtin)
        integers = all(node.tensor(i).dtype in ("int32", "int64", RESOURCE) for i in node.outputs)
        if not node.outputs or wanted.intersection(node.outputs) or not integers:
            needed.append(node)
            places = range(len(node.inputs)) if converter is None else converter.data
            wanted.update(node.inputs[place] for place in places if place < len(node.inputs))
    return needed[::-1]


def settle_shapes(nodes: Sequence[Node], unsettled: dict[int, Shape],
                  find_converter: Callable[[str], Converter | None]) -> list[str]:
    """Give tensors of open shape the one that follows from their operator's inputs.

    Parameters
    ----------
    nodes
        In the order they run.
    unsettled
        Stated shape by tensor, -1 where open; loses those that become known.

    Returns
    -------
    list of str
        One note where a shape is another than the one the file stores beside it.
    """
    known: dict[int, np.ndarray] = {}
    stored: dict[int, Shape] = {}
    notes: list[str] = []
    for node in nodes if unsettled else ():
        _fold(node, known)
        if not any(-1 in unsettled.get(i, ())[1:] for i in node.outputs) and not any(
                i in stored for i in node.inputs):
            continue
        for i, shape in zip(node.outputs, _follow(node, known, stored, find_converter),
                            strict=False):
            stated, tensor = unsettled.get(i, ()), node.tensor(i)
            if len(stated) != len(shape) or any(
                    size not in (-1, made) for size, made in zip(stated, shape, strict=True)):
                continue
            del unsettled[i]
            if shape != tensor.shape:
                stored[i] = tensor.shape
                node.amend(i, replace(tensor, shape=shape))
                notes = notes or [
                    f"shapes: {tensor.name!r} and others, open in the file and stored as "
                    f"{list(tensor.shape)}, follow from the input ({list(shape)}); TFLite Micro "
                    "takes the stored ones and does not start: export a concrete function of "
                    "fixed shapes"]
    return notes


def _fold(node: Node, known: dict[int, np.ndarray]) -> None:
    """Evaluate an operator of shape arithmetic whose inputs are known."""
    target = node.tensor(node.outputs[0]) if len(node.outputs) == 1 else None
    if target is None or target.dtype not in ("int32", "int64"):
        return
    values = [_value(node, i, known) for i in node.inputs if i >= 0]
    present = [each for each in values if each is not None and each.size <= _MOST_VALUES]
    fold = _FOLDS.get(node.builtin)
    if node.builtin == "SHAPE":
        known[node.outputs[0]] = np.array(node.shape(0))
    elif fold is not None and len(present) == len(values) > 0:
        value = np.ravel(fold(*present))[:target.elements]
        if value.size == target.elements:
            known[node.outputs[0]] = value.reshape(target.shape)


def _value(node: Node, i: int, known: Mapping[int, np.ndarray]) -> np.ndarray | None:
    return known[i] if i in known else node.tensor(i).data


def _follow(node: Node, known: Mapping[int, np.ndarray], stored: Mapping[int, Shape],
            find_converter: Callable[[str], Converter | None]) -> Sequence[Shape]:
    """Shapes an operator writes; none where they are not known."""
    made = [node.tensor(i).shape for i in node.outputs]
    if node.builtin == "RESHAPE":
        target = _value(node, node.inputs[1], known) if len(node.inputs) > 1 else None
        return [] if target is None else _filled(target.reshape(-1).tolist(),
                                                 math.prod(node.shape(0)))
    converter = find_converter(node.builtin)
    try:
        layer = None if converter is None else converter.convert(node)
    except UnsupportedError:
        layer = None
    if not isinstance(layer, Layer):
        return []
    new = [node.tensor(i).shape if i >= 0 else () for i in layer.inputs]
    if layer.op == "batch_matmul":
        left, right = new[0], new[1]
        return [(*np.broadcast_shapes(left[:-2], right[:-2]),
                 left[-1 if layer.option("adj_x", False) else -2],
                 right[-2 if layer.option("adj_y", False) else -1])]
    old = [stored.get(i, shape) for i, shape in zip(layer.inputs, new, strict=True)]
    return follow_layer(layer, old, new, made)


def _filled(target: list[int], elements: int) -> Sequence[Shape]:
    rest = math.prod(size for size in target if size >= 0)
    if target.count(-1) == 1 and rest and elements % rest == 0:
        target = [elements // rest if size < 0 else size for size in target]
    return [tuple(target)] if min(target, default=1) > 0 and math.prod(target) == elements else []
