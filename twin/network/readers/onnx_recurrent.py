"""ONNX LSTM, GRU and RNN: one layer a direction, what two directions make joined.

With one sequence (batch 1) the file's layouts hold the same bytes: time, features.
"""

from __future__ import annotations

import numpy as np

from twin.network.graph import Options
from twin.network.readers.onnx_layout import PLAIN
from twin.network.readers.onnx_reader import OnnxReader
from twin.network.readers.refusal import UnsupportedError

_SEQUENCES, _CLIP = 4, 7
"""Inputs: lengths of sequences; peepholes."""

_STATES = (5, 6)


def convert_recurrent(reader: OnnxReader, op: str, gates: tuple[int, ...]) -> None:
    """Convert an operator whose gates come in that order of the file."""
    if reader.node.input(_CLIP):
        raise UnsupportedError("peepholes")
    _check_lengths(reader)
    used = reader.read_results()
    if reader.kernel_shape[0] == 1:
        options: Options = {"reverse": True} if reader.node.option("direction") == "reverse" else {}
        reader.emit(op, _inputs(reader, gates, 0, 1), PLAIN, outputs=used, **options)
    else:
        _emit_both(reader, op, gates, used)


def _check_lengths(reader: OnnxReader) -> None:
    """Refuse a batch; a sequence shorter than its tensor is taken to fill it."""
    node = reader.node
    shape = reader.source_shape
    time, batch = shape[:2] if not node.option("layout", 0) else shape[1::-1]
    if batch != 1:
        raise UnsupportedError(f"a batch of {batch} sequences")
    if not node.input(_SEQUENCES):
        return
    lengths = reader.model.constants.get(node.inputs[_SEQUENCES])
    if lengths is None or int(lengths.reshape(-1)[0]) != time:
        reader.model.notes.append(f"{node.op} {node.result!r} is taken to run all {time} "
                                  "steps of its sequence (assumed)")


def _inputs(reader: OnnxReader, gates: tuple[int, ...], direction: int,
            directions: int) -> list[int]:
    """Tensors of one direction: data, weights, recurrent weights, bias, states."""
    node = reader.node

    def arrange(values: np.ndarray) -> np.ndarray:
        # Gates in canonical order; a bias has them twice.
        blocks = values[direction].reshape(
            -1, len(gates), values.shape[1] // len(gates) // (2 if values.ndim == 2 else 1),
            *values.shape[2:])
        return blocks[:, list(gates)].reshape(values.shape[1:])

    inputs = [reader.data(PLAIN), reader.weights(1, arrange), reader.weights(2, arrange)]
    inputs.append(reader.weights(3, arrange) if node.input(3) else -1)
    for place in _STATES:
        computed = node.input(place) and not reader.is_constant(node.inputs[place])
        if not computed:
            inputs.append(-1)
        elif directions == 1:
            inputs.append(reader.data(PLAIN, place))
        else:
            inputs.append(_cut(reader, place, direction))
    while inputs[-1] == -1:
        inputs.pop()
    return inputs


def _cut(reader: OnnxReader, place: int, direction: int) -> int:
    """One direction's part of a state."""
    shape = reader.shape(reader.node.inputs[place])
    axis = 1 if reader.node.option("layout", 0) else 0
    made = [1 if each == axis else size for each, size in enumerate(shape)]
    begin = tuple(direction if each == axis else 0 for each in range(len(shape)))
    return reader.add_layer("slice", [reader.data(PLAIN, place)], [made],
                            begin=begin, strides=(1,) * len(shape))[0]


def _emit_both(reader: OnnxReader, op: str, gates: tuple[int, ...], used: list[str]) -> None:
    node, last = reader.node, bool(reader.node.option("layout", 0))
    whole = {name: place for place, name in enumerate(node.outputs) if name in used}
    # The directions stand behind the time in Y, and in front of all in the last states.
    axes = {name: (2 if last else 1) if place == 0 else (1 if last else 0)
            for name, place in whole.items()}
    shapes = [tuple(1 if axis == axes[name] else size
                    for axis, size in enumerate(reader.shape(name))) for name in used]
    halves: list[list[int]] = []
    for direction in range(2):
        options: Options = {"reverse": True} if direction else {}
        halves.append(reader.add_layer(op, _inputs(reader, gates, direction, 2), shapes, **options))
    for number, name in enumerate(used):
        reader.emit("concatenation", [half[number] for half in halves], PLAIN,
                    outputs=[name], axis=axes[name])
