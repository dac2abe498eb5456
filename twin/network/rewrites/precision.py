"""The numbers a network computes in: int8, 16-bit activations, 32-bit or 16-bit floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from hwmodels.quantities import Ends
from twin.errors import AlreadySoError, NotApplicableError
from twin.network.graph import Graph, Layer, Quantization, Tensor
from twin.network.operators import CLAMPS, COPY, Form, traits
from twin.network.rewrites.numbers import (
    activation_scale,
    quantise_bias,
    quantise_weights,
    range_of,
    real_values,
)
from twin.network.rewrites.rewrite import Rewrite, read_choice, rebuild

PRECISIONS = ("int8", "int16x8", "float32", "float16")

_STORED = ("int8", "uint8", "int16")
_FLOATS = ("float32", "float16")
_ASSUMED = (-4.0, 4.0)
"""Range of an activation nobody measured (assumed): costs do not depend on it, outputs do."""

Ranges = Mapping[int, Ends]


def change_precision(graph: Graph, precision: str, ranges: Ranges | None = None) -> Graph:
    """Return a network that computes in other numbers.

    Parameters
    ----------
    graph
        Quantised or of floats.
    precision
        One of `PRECISIONS`; int16x8: activations of 16 bits, weights of 8, sums of 64.
    ranges : mapping of int to (float, float), optional
        Least and largest value of each activation, by tensor index, where the file has none.

    Raises
    ------
    AlreadySoError
        When it computes in these already.
    NotApplicableError
        When it keeps what cannot be converted.

    Notes
    -----
    Weights are really rounded. Activations without a range are taken to lie within -4 and 4:
    that does not change a cost, but outputs mean nothing then.
    """
    text = f"network.precision={precision}"
    present = _present(graph)
    if precision == present:
        raise AlreadySoError(f"{text}: {graph.name} computes in it already")
    if any(traits(layer).form is Form.RECURRENT for layer in graph.layers):
        raise NotApplicableError(f"{text}: {graph.name} has recurrent layers, whose inner scales "
                                 "are not converted")
    if precision in _FLOATS:
        return _to_float(graph, precision)
    known = dict(ranges or {})
    for i, tensor in enumerate(graph.tensors):
        found = None if tensor.is_constant else range_of(tensor)
        if found is not None:
            known.setdefault(i, found)
    return _to_integers(graph if present in ("int8", "int16x8") else _to_float(graph, "float32"),
                        "int16" if precision == "int16x8" else "int8", known)


def _present(graph: Graph) -> str:
    """Return what most layers of a network compute in, as `PRECISIONS` names it."""
    found = [graph.output(layer).dtype for layer in graph.layers if not traits(layer).converts]
    most = max(sorted(set(found)), key=found.count, default="")
    return {"int16": "int16x8", "uint8": "uint8"}.get(most, most)


def _to_float(graph: Graph, dtype: str) -> Graph:
    """Return the network in floats, layers that only change types omitted."""
    renamed: dict[int, int] = {}
    layers = []
    for layer in graph.layers:
        inputs = tuple(renamed.get(i, i) for i in layer.inputs)
        converts = traits(layer).converts
        if converts and layer.target_id not in graph.outputs:
            renamed[layer.target_id] = inputs[0]
            continue
        layers.append(replace(layer, inputs=inputs, op=COPY if converts else layer.op))
    if layers and layers[-1].op == COPY:
        last = layers.pop()
        renamed[last.target_id] = last.source_id
    return rebuild(graph, (_float_tensor(tensor, dtype) for tensor in graph.tensors), layers,
                   outputs=tuple(renamed.get(i, i) for i in graph.outputs))


def _float_tensor(tensor: Tensor, dtype: str) -> Tensor:
    if tensor.quantization is None and tensor.dtype not in (*_STORED, *_FLOATS, "int4"):
        return tensor
    if not tensor.is_constant:
        return replace(tensor, dtype=dtype, quantization=None)
    values = real_values(tensor)
    largest, most = float(np.abs(values).max(initial=0.0)), float(np.finfo(dtype).max)
    if largest > most:
        raise NotApplicableError(f"tensor {tensor.name}: values up to {largest:.4g}; {dtype} holds "
                             f"{most:.4g}; accepted: float32")
    return replace(tensor, dtype=dtype, quantization=None, data=values.astype(dtype))


def _to_integers(graph: Graph, dtype: str, ranges: Ranges) -> Graph:
    """Return the network with activations of a type, and weights of 8 bits."""
    tensors = list(graph.tensors)
    for i in graph.inputs:
        if tensors[i].dtype in (*_STORED, "float32"):
            tensors[i] = _store(tensors[i], dtype, ranges.get(i, _ASSUMED))
    for layer in graph.layers:
        for place, i in enumerate(layer.outputs):
            if tensors[i].dtype in (*_STORED, "float32"):
                tensors[i] = _store_output(tensors, layer, place, dtype, ranges)
        _store_constants(tensors, layer, dtype)
    return replace(graph, tensors=tuple(tensors))


def _store(tensor: Tensor, dtype: str, within: Ends) -> Tensor:
    return replace(tensor, dtype=dtype, quantization=activation_scale(dtype, *within))


def _store_output(tensors: list[Tensor], layer: Layer, place: int, dtype: str,
                  ranges: Ranges) -> Tensor:
    tensor, i = tensors[layer.outputs[place]], layer.outputs[place]
    source = tensors[layer.source_id]
    operator = traits(layer)
    if operator.keeps_scale and source.dtype == dtype:
        return replace(tensor, dtype=dtype, quantization=source.quantization)
    if operator.span is not None:
        (low, high), narrow = operator.span, dtype == "int8"
        return replace(tensor, dtype=dtype, quantization=Quantization(
            scales=((high - low) / 255 if narrow else 1 / 32768,),
            zero_points=(-128 if narrow and not low else 0,)))
    rectified = (0.0, 6.0) if layer.activation in CLAMPS else _ASSUMED
    return _store(tensor, dtype, ranges.get(i, rectified))


def _store_constants(tensors: list[Tensor], layer: Layer, dtype: str) -> None:
    """Quantise what a layer reads besides activations."""
    source, axis = tensors[layer.source_id], traits(layer).filters
    for place, i in enumerate(layer.inputs):
        if i < 0 or not tensors[i].is_constant or (axis is not None and place == 2):
            continue
        tensor = tensors[i]
        if axis is not None and place == 1:
            if tensor.dtype not in ("int8", "int4"):
                tensors[i] = quantise_weights(tensor, "int8", axis)
        elif tensor.dtype in (*_STORED, "float32") and (tensor.dtype != dtype):
            tensors[i] = quantise_weights(tensor, dtype, None)
    bias = layer.inputs[2] if axis is not None and len(layer.inputs) > 2 else -1
    if bias < 0 or not tensors[bias].is_constant or source.quantization is None:
        return
    weights = tensors[layer.inputs[1]].quantization
    if weights is not None:
        tensors[bias] = quantise_bias(tensors[bias], source.quantization, weights,
                                      "int64" if dtype == "int16" else "int32")


def _values(graph: Graph) -> tuple[str, ...]:
    present = _present(graph)
    return tuple(one for one in PRECISIONS if one != present)


REWRITE = Rewrite(
    name="network.precision", accepted=", ".join(PRECISIONS),
    does="weights and activations are in other numbers", effort="conversion",
    costs="accuracy not known until it is measured (`twin accuracy`)", stage=70,
    values=_values, read=partial(read_choice, "network.precision", PRECISIONS),
    apply=change_precision)


def narrow_weights(graph: Graph, dtype: str) -> Graph:
    """Return a quantised network whose weights are of 4 or of 8 bits.

    Parameters
    ----------
    graph
        With int8 or int16 activations.
    dtype
        "int4" or "int8".

    Raises
    ------
    AlreadySoError
        When they have that width already.
    NotApplicableError
        When there are no integer weights.

    Notes
    -----
    Weights are rounded to the nearest of 15 values of their channel; biases are kept in the
    products' scale, which changes with them.
    """
    tensors = list(graph.tensors)
    shared = {i for i, readers in graph.readers.items() if len(readers) > 1}
    changed = 0
    for layer in graph.layers:
        if traits(layer).filters is None or layer.inputs[1] in shared:
            continue
        weights, source = tensors[layer.inputs[1]], tensors[layer.source_id].quantization
        if not weights.is_constant or weights.quantization is None or source is None or (
                weights.dtype == dtype or weights.dtype not in ("int8", "int4")
                or np.any(weights.quantization.zero_points)):
            continue
        changed += 1
        tensors[layer.inputs[1]] = narrowed = quantise_weights(
            weights, dtype, weights.quantization.axis)
        bias = layer.bias
        if bias >= 0 and tensors[bias].is_constant and bias not in shared:
            assert narrowed.quantization is not None
            tensors[bias] = quantise_bias(tensors[bias], source, narrowed.quantization,
                                          tensors[bias].dtype)
    if not changed:
        already = any(graph.input(layer, 1).dtype == dtype for layer in graph.layers
                      if traits(layer).filters is not None)
        raise (AlreadySoError if already else NotApplicableError)(
            f"network.weights={dtype}: {graph.name} has no "
            f"{'8' if dtype == 'int4' else '4'}-bit integer weights")
    return replace(graph, tensors=tuple(tensors))
