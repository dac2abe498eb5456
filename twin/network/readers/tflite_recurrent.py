"""TensorFlow Lite's recurrent operators: LSTM and RNN, one direction or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from twin.network.graph import Layer, Quantization, Tensor, TensorIds
from twin.network.readers.refusal import UnsupportedError
from twin.network.readers.tflite_nodes import Converter, Node, data_all


def _lstm(node: Node) -> Layer:
    """Stack the four gates of input, recurrent weights and bias into one tensor each."""
    present = [place for place in range(len(node.inputs)) if node.inputs[place] >= 0]
    if len(node.inputs) < 20 or not set(present).isdisjoint((9, 10, 11, 16, 17, 20, 21, 22, 23)):
        raise UnsupportedError("basic, peephole, projected or normalised variant")
    if not set(range(1, 9)).issubset(present) or not set(range(12, 16)).issubset(present):
        raise UnsupportedError("coupled input and forget gates")
    stacked = [_stacked(node, places) for places in ((1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15))]
    return node.layer("lstm", (node.input(0), *stacked, node.inputs[18], node.inputs[19]))


def _both_lstm(node: Node) -> tuple[Layer, ...]:
    """Two directions, whose results are joined unless the file keeps them apart."""
    inputs = (*node.inputs, *(-1,) * (48 - len(node.inputs)))
    unused = (9, 10, 11, 16, 17, 26, 27, 28, 33, 34, *range(39, 48))
    if any(inputs[place] >= 0 for place in unused):
        raise UnsupportedError("peephole, projected or auxiliary variant")
    halves = []
    for first, state in ((1, 35), (18, 37)):
        stacked = [_stacked(node, tuple(range(first + start, first + start + 4)))
                   for start in (0, 4, 11)]
        halves.append((node.input(0), *stacked, inputs[state], inputs[state + 1]))
    merged = bool(node.options("BidirectionalSequenceLSTMOptions").MergeOutputs())
    return _joined(node, "lstm", halves, merged)


def _rnn(node: Node) -> Layer:
    """Input, weights, recurrent weights, bias and the hidden state stand in canonical order."""
    return node.layer("rnn", node.inputs[:5])


def _both_rnn(node: Node) -> tuple[Layer, ...]:
    if len(node.inputs) > 9:
        raise UnsupportedError("auxiliary input")
    halves = [(node.input(0), *node.inputs[first:first + 4]) for first in (1, 5)]
    merged = bool(node.options("BidirectionalSequenceRNNOptions").MergeOutputs())
    return _joined(node, "rnn", halves, merged)


def _joined(node: Node, op: str, halves: list[TensorIds], merged: bool) -> tuple[Layer, ...]:
    """One layer a direction, and what joins the two."""
    outputs = node.outputs
    if merged:
        whole = node.tensor(outputs[0])
        half = (*whole.shape[:-1], whole.shape[-1] // 2)
        outputs = tuple(node.add(replace(whole, name=f"{whole.name}/{name}", shape=half))
                        for name in ("forward", "backward"))
    forward = replace(node, outputs=outputs[:1]).layer(op, halves[0])
    backward = replace(node, outputs=outputs[1:2]).layer(op, halves[1], reverse=True)
    if not merged:
        return forward, backward
    rank = len(node.tensor(node.outputs[0]).shape)
    return forward, backward, node.layer("concatenation", outputs, axis=rank - 1)


def _stacked(node: Node, places: TensorIds) -> int:
    parts = [node.tensor(node.input(place)) for place in places]
    data = np.concatenate([node.values(place) for place in places])
    quantization = None
    if all(part.quantization is not None for part in parts):
        scales: list[float] = []
        zero_points: list[int] = []
        for part in parts:
            assert part.quantization is not None
            repeats = part.shape[0] // len(part.quantization.scales)
            scales += np.repeat(part.quantization.scales, repeats).tolist()
            zero_points += np.repeat(part.quantization.zero_points, repeats).tolist()
        quantization = Quantization(scales=tuple(scales), zero_points=tuple(zero_points), axis=0)
    return node.add(Tensor(name=parts[0].name, shape=data.shape, dtype=parts[0].dtype,
                           quantization=quantization, data=data))


RECURRENT: Mapping[str, Converter] = {
    "LSTM": data_all(_lstm), "UNIDIRECTIONAL_SEQUENCE_LSTM": data_all(_lstm),
    "BIDIRECTIONAL_SEQUENCE_LSTM": data_all(_both_lstm), "RNN": data_all(_rnn),
    "UNIDIRECTIONAL_SEQUENCE_RNN": data_all(_rnn),
    "BIDIRECTIONAL_SEQUENCE_RNN": data_all(_both_rnn),
}
"""Builtin operators this reads."""
