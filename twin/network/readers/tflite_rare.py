"""TensorFlow Lite operators few networks have: of detectors, of streams, of odd exporters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from twin.network.graph import Layer, options_of_slice
from twin.network.readers.ethos_u import ETHOS_U
from twin.network.readers.refusal import UnsupportedError
from twin.network.readers.tflite_nodes import Converter, Node, data_all, data_first, plain

DETECTION = "CUSTOM TFLite_Detection_PostProcess"

_MOST_DETECTIONS = 2**16


def _detection(node: Node) -> Layer:
    """Boxes, classes, scores and their number; sizes the file leaves open follow from options."""
    options = _custom_options(node)
    kept = int(options.get("max_detections", 10)) * int(options.get("max_classes_per_detection", 1))
    if not 0 < kept <= _MOST_DETECTIONS:
        raise UnsupportedError(f"{kept} detections")
    shapes = ((1, kept, 4), (1, kept), (1, kept), (1,))
    for index, shape in zip(node.outputs, shapes, strict=False):
        if node.tensor(index).shape != shape:
            node.amend(index, replace(node.tensor(index), shape=shape))
    return node.layer("detection_postprocess", classes=int(options.get("num_classes", 1)),
                      detections=kept, regular=bool(options.get("use_regular_nms", False)))


def _custom_options(node: Node) -> dict[str, Any]:
    """Return the options of a custom operator, which flexbuffers hold."""
    from flatbuffers import flexbuffers

    stored = node.operator.CustomOptionsAsNumpy()
    if isinstance(stored, int):
        return {}
    found = flexbuffers.Loads(bytearray(stored.tobytes()))
    return found if isinstance(found, dict) else {}


def _read_variable(node: Node) -> Layer:
    """Copy a variable that lives from one inference to the next."""
    target = node.tensor(node.outputs[0])
    return node.layer("read_variable", node.state(node.input(0), target))


def _assign_variable(node: Node) -> Layer:
    """Copy a value into a variable; what it held is read before, so it is a tensor of its own."""
    value = node.tensor(node.input(1))
    made = node.add(replace(value, name=f"{value.name}/kept", data=None))
    return replace(node, outputs=(made,)).layer("assign_variable", (node.input(1),))


def _state(node: Node) -> Layer:
    return node.layer("copy", of="WHILE")


def _clip(low: float, high: float) -> Callable[[Node], Layer]:
    return lambda node: node.layer("clip", low=low, high=high)


def _top(node: Node) -> Layer:
    return node.layer("top_k", node.inputs[:1], axis=len(node.shape(0)) - 1)


def _reverse(node: Node) -> Layer:
    """Read an axis from its end: a slice that steps back."""
    shape = node.shape(0)
    axes = node.axes(1, len(shape))
    return node.layer("slice", node.inputs[:1], **options_of_slice(
        len(shape), {axis: (shape[axis] - 1, -1) for axis in axes}))


def _sum_of_many(node: Node) -> tuple[Layer, ...]:
    """One sum of two after another."""
    total, made = node.input(0), []
    target = node.tensor(node.outputs[0])
    for place in range(1, len(node.inputs)):
        last = place == len(node.inputs) - 1
        result = node.outputs[0] if last else node.add(
            replace(target, name=f"{target.name}/sum{place}"))
        made.append(replace(node, outputs=(result,)).layer("add", (total, node.input(place))))
        total = result
    if not made:
        raise UnsupportedError("one operand")
    return tuple(made)


def _looked_up(node: Node) -> Layer:
    return node.layer("gather", (node.input(1), node.input(0)), axis=0)


def _scattered(node: Node) -> Layer:
    """Write values at places; the shape is the result's."""
    return node.layer("scatter_nd", (node.input(1), node.input(0)))


_SIGNAL = {"SignalWindow": "signal_window", "SignalFftAutoScale": "signal_fft_auto_scale",
           "SignalRfft": "signal_rfft", "SignalEnergy": "signal_energy",
           "SignalFilterBank": "signal_filter_bank",
           "SignalFilterBankSquareRoot": "signal_filter_bank_square_root",
           "SignalFilterBankSpectralSubtraction": "signal_filter_bank_spectral_subtraction",
           "SignalPCAN": "signal_pcan", "SignalFilterBankLog": "signal_filter_bank_log"}

RARE: Mapping[str, Converter] = {
    DETECTION: Converter(convert=_detection, data=(0, 1, 2)),
    **ETHOS_U,
    "READ_VARIABLE": Converter(convert=_read_variable, data=()),
    "ASSIGN_VARIABLE": Converter(convert=_assign_variable, data=(1,)),
    "copy": data_first(_state), "TOPK_V2": data_first(_top), "REVERSE_V2": data_first(_reverse),
    "RELU_0_TO_1": data_first(_clip(0.0, 1.0)), "RELU_N1_TO_1": data_first(_clip(-1.0, 1.0)),
    "ADD_N": data_all(_sum_of_many), "EMBEDDING_LOOKUP": data_all(_looked_up),
    "CUMSUM": data_first(lambda node: node.layer("cumsum", node.inputs[:1])),
    "GATHER_ND": data_all(plain("gather_nd")),
    "SCATTER_ND": Converter(convert=_scattered, data=(0, 1)),
    **{f"CUSTOM {name}": data_all(plain(op)) for name, op in _SIGNAL.items()},
}
"""Operators this reads, by builtin name, and custom ones by theirs."""
