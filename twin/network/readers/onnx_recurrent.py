"""ONNX LSTM, GRU and RNN: one layer a direction, what two directions make joined.

With one sequence (batch 1) the file's layouts hold the same bytes: time, features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twin.network.readers.onnx_fusion import Group
from twin.network.readers.onnx_layout import PLAIN
from twin.network.readers.onnx_nodes import Node
from twin.network.readers.onnx_values import OnnxReader
from twin.network.readers.refusal import UnsupportedError

_SEQUENCES, _CLIP = 4, 7
"""Inputs: lengths of sequences; peepholes."""

_STATES = (5, 6)


def convert_recurrent(op: str, gates: tuple[int, ...]) -> Callable[[OnnxReader, Group], None]:
    """Return the converter of an operator whose gates come in that order of the file."""
    def convert(reader: OnnxReader, group: Group) -> None:
        node = group.node
        if node.input(_CLIP):
            raise UnsupportedError("peepholes")
        _check_lengths(reader, node)
        used = [name for name in node.outputs if name
                and (reader.has_consumers(name) or name in reader.model.outputs)]
        directions = reader.shape(node.inputs[1])[0]
        if directions == 1:
            options: dict[str, Any] = {"reverse": True} if _is_reversed(node) else {}
            reader.emit(group, op, _inputs(reader, group, gates, 0, 1), PLAIN, outputs=used,
                        **options)
            return
        _emit_both(reader, group, op, gates, used)

    return convert


def _is_reversed(node: Node) -> bool:
    return node.option("direction", "forward") == "reverse"


def _check_lengths(reader: OnnxReader, node: Node) -> None:
    """Refuse a batch; a sequence shorter than its tensor is taken to fill it."""
    shape = reader.shape(node.source)
    time, batch = shape[:2] if not node.option("layout", 0) else shape[1::-1]
    if batch != 1:
        raise UnsupportedError(f"a batch of {batch} sequences")
    if not node.input(_SEQUENCES):
        return
    lengths = reader.model.constants.get(node.inputs[_SEQUENCES])
    if lengths is None or int(lengths.reshape(-1)[0]) != time:
        reader.model.notes.append(f"{node.op} {node.result!r} is taken to run all {time} "
                                  "steps of its sequence (assumed)")


def _inputs(reader: OnnxReader, group: Group, gates: tuple[int, ...], direction: int,
            directions: int) -> list[int]:
    """Tensors of one direction: data, weights, recurrent weights, bias, states."""
    node = group.node

    def arrange(values: np.ndarray) -> np.ndarray:
        # Gates in canonical order; a bias has them twice.
        blocks = values[direction].reshape(
            -1, len(gates), values.shape[1] // len(gates) // (2 if values.ndim == 2 else 1),
            *values.shape[2:])
        return blocks[:, list(gates)].reshape(values.shape[1:])

    inputs = [reader.data(group, 0, PLAIN), reader.weights(group, 1, arrange),
              reader.weights(group, 2, arrange)]
    inputs.append(reader.weights(group, 3, arrange) if node.input(3) else -1)
    for place in _STATES:
        computed = node.input(place) and not reader.is_constant(node.inputs[place])
        if not computed:
            inputs.append(-1)
        elif directions == 1:
            inputs.append(reader.data(group, place, PLAIN))
        else:
            inputs.append(_cut(reader, group, place, direction))
    while inputs[-1] == -1:
        inputs.pop()
    return inputs


def _cut(reader: OnnxReader, group: Group, place: int, direction: int) -> int:
    """One direction's part of a state."""
    shape = reader.shape(group.node.inputs[place])
    axis = 1 if group.node.option("layout", 0) else 0
    made = [1 if each == axis else size for each, size in enumerate(shape)]
    begin = tuple(direction if each == axis else 0 for each in range(len(shape)))
    return reader.add_layer("slice", [reader.data(group, place, PLAIN)], [made],
                            begin=begin, strides=(1,) * len(shape))[0]


def _emit_both(reader: OnnxReader, group: Group, op: str, gates: tuple[int, ...],
               used: list[str]) -> None:
    node, last = group.node, bool(group.node.option("layout", 0))
    whole = {name: place for place, name in enumerate(node.outputs) if name in used}
    # The directions stand behind the time in Y, and in front of all in the last states.
    axes = {name: (2 if last else 1) if place == 0 else (1 if last else 0)
            for name, place in whole.items()}
    shapes = [tuple(1 if axis == axes[name] else size
                    for axis, size in enumerate(reader.shape(name))) for name in used]
    halves: list[list[int]] = []
    for direction in range(2):
        options: dict[str, Any] = {"reverse": True} if direction else {}
        halves.append(reader.add_layer(
            op, _inputs(reader, group, gates, direction, 2), shapes, **options))
    for number, name in enumerate(used):
        reader.emit(group, "concatenation", [half[number] for half in halves], PLAIN,
                    outputs=[name], axis=axes[name])
