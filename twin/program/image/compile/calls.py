"""Each layer as C: a constant struct of the kernel's, and the call that uses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hwmodels.frozen import frozen
from twin.deployment.placement import Placement
from twin.errors import RuntimeRefusedError
from twin.network.arithmetic import find_operation, parameters
from twin.network.arithmetic.integer import check_concatenation, padding_amounts
from twin.network.arithmetic.requantisation import (
    Requantisation,
    activation_range,
    single,
    weighted,
)
from twin.network.graph import Graph, Layer
from twin.program.image.compile.plan import Image
from twin.runtimes.firmware import is_pointwise

Fields = Mapping[str, object]


@frozen
class Context:
    """What the C of a layer is written from."""

    graph: Graph
    placement: Placement
    image: Image

    def arena(self, tensor: int) -> str:
        """Address of a computed tensor, or of a layer's scratch, in the arena."""
        slot = self.placement.slot(tensor)
        assert slot is not None, f"tensor {tensor} has no place"
        return f"model_arena + {slot.offset_bytes}"

    def constant(self, ctype: str, offset: int) -> str:
        """Address of a constant."""
        return f"(const {ctype} *)(const void *)(model_weights + {offset})"

    def floating(self, layer: Layer) -> bool:
        """Whether a layer reads floats."""
        return self.graph.input(layer).dtype == "float32"


@frozen
class Call:
    """One call: the kernel, its struct's fields, and the addresses behind the struct."""

    kernel: str
    fields: Fields
    arguments: tuple[str, ...]
    struct: str = ""


def emit_layer(context: Context, position: int) -> str:
    """Write one layer as C: its structs and the function `run_POSITION`.

    Raises
    ------
    RuntimeRefusedError
        When the firmware has no kernel for the layer.
    """
    layer = context.graph.layers[position]
    find_operation(context.graph, layer)
    if layer.op not in _WRITERS:
        raise RuntimeRefusedError(f"layer {layer.index} {layer.op}: the firmware has no kernel "
                                  f"for it; it has {', '.join(sorted(_WRITERS))}")
    calls = _WRITERS[layer.op](context, layer, position)
    structs, body = [], []
    for place, call in enumerate(calls):
        name = f"layer_{position}" + (f"_{place}" if place else "")
        structs.append(f"static const struct {call.struct or call.kernel} {name} = "
                       f"{_initialiser(call.fields)};\n")
        arguments = ", ".join((f"&{name}", *(f"(void *)({text})" for text in call.arguments)))
        body.append(f"    {call.kernel}({arguments});\n")
    return "".join((f"/* {layer.index}: {_comment(layer)} */\n", *structs,
                    f"static void run_{position}(void)\n{{\n", *body, "}\n"))


def _comment(layer: Layer) -> str:
    """Operator and name, with nothing in it that could end a C comment or span lines."""
    name = "".join(c for c in layer.name if c.isascii() and (c.isalnum() or c in " _.:-"))[:60]
    return f"{layer.op} {name}"


def _initialiser(fields: Fields) -> str:
    parts = (f".{name} = {_literal(value)}" for name, value in fields.items())
    return "{" + ", ".join(parts) + "}"


def _literal(value: object) -> str:
    if isinstance(value, Mapping):
        return _initialiser(value)
    if isinstance(value, tuple | list):
        return "{" + ", ".join(_literal(item) for item in value) + "}"
    if isinstance(value, float):
        if math.isinf(value):
            return "-3.40282347e38f" if value < 0 else "3.40282347e38f"
        text = f"{np.float32(value):.9g}"
        return text + ("f" if "." in text or "e" in text else ".0f")
    if isinstance(value, int) and value == -(1 << 31):
        return "(-2147483647 - 1)"
    return str(value)


def _window(context: Context, layer: Layer) -> Fields:
    window = layer.sliding_window
    data = context.graph.input(layer).shape
    output = context.graph.output(layer).shape
    return {
        "in_h": data[1], "in_w": data[2], "in_c": data[3],
        "out_h": output[1], "out_w": output[2], "out_c": output[3],
        "kernel_h": window.kernel[0], "kernel_w": window.kernel[1],
        "stride_h": window.stride[0], "stride_w": window.stride[1],
        "dilation_h": window.dilation[0], "dilation_w": window.dilation[1],
        "pad_top": window.padding[0], "pad_left": window.padding[2],
    }


def _requant(context: Context, requantisation: Requantisation, offset: int) -> Fields:
    channels = len(requantisation.multipliers)
    return {
        "multiplier": context.constant("int32_t", offset),
        "shift": context.constant("int32_t", offset + 4 * channels),
        "step": int(channels > 1), "offset": requantisation.offset,
        "low": requantisation.low, "high": requantisation.high,
    }


def _weights(context: Context, layer: Layer, position: int) -> dict[str, object]:
    """Fields every weighted layer has."""
    ctype, biases = ("float", "float") if context.floating(layer) else ("int8_t", "int32_t")
    fields: dict[str, object] = {
        "weights": context.constant(ctype, context.image.weights[layer.inputs[1]]),
        "bias": context.constant(biases, context.image.bias[position]),
    }
    if context.floating(layer):
        fields["low"], fields["high"] = parameters.float_range(layer)
    else:
        fields["requant"] = _requant(context, weighted(context.graph, layer),
                                     context.image.parameters[position])
    return fields


def _ends(context: Context, layer: Layer) -> tuple[str, ...]:
    """Addresses of the data inputs and the output."""
    inputs = context.graph.list_data(layer)
    return tuple(context.arena(tensor) for tensor in (*inputs, layer.target_id))


def _border(context: Context, layer: Layer) -> Fields:
    """Value of what lies around an input of integers: its zero point."""
    if context.floating(layer):
        return {}
    return {"border": single(context.graph.input(layer))[1]}


def _call(context: Context, layer: Layer, kernel: str, fields: Fields, *more: str,
          struct: str = "", typed: bool = True) -> tuple[Call, ...]:
    """Return the call of a kernel for the layer's type; `more` stands behind its ends."""
    suffix = ("_f32" if context.floating(layer) else "_s8") if typed else ""
    return (Call(kernel=kernel + suffix, struct=struct and struct + suffix, fields=fields,
                 arguments=(*_ends(context, layer), *more)),)


def _write_product(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    output = context.graph.output(layer)
    columns = output.channels
    weights = context.graph.input(layer, 1)
    return _call(context, layer, "matmul", {
        "rows": output.elements // columns, "depth": weights.elements // columns,
        "columns": columns, **_weights(context, layer, position), **_border(context, layer)})


def _write_convolution(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    if is_pointwise(context.graph, layer):
        return _write_product(context, layer, position)
    scratch = context.placement.slot(-1 - position)
    return _call(context, layer, "conv", {
        "window": _window(context, layer), **_weights(context, layer, position),
        **_border(context, layer)}, f"model_arena + {scratch.offset_bytes}" if scratch else "0")


def _write_depthwise(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    data = context.graph.input(layer)
    output = context.graph.output(layer)
    offset = {} if context.floating(layer) else {"input_offset": -single(data)[1]}
    return _call(context, layer, "depthwise", {
        "window": _window(context, layer), "multiplier": output.shape[3] // data.shape[3],
        **_weights(context, layer, position), **offset})


def _write_pool(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    low, high = (parameters.float_range(layer) if context.floating(layer)
                 else activation_range(layer, context.graph.output(layer)))
    return _call(context, layer, layer.op.removesuffix("_2d"), {
        "window": _window(context, layer), "low": low, "high": high}, struct="pool")


def _write_add(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    count = context.graph.output(layer).elements
    if context.floating(layer):
        low, high = parameters.float_range(layer)
        return _call(context, layer, "add", {"count": count, "low": low, "high": high})
    sums = parameters.addition(context.graph, layer)
    return _call(context, layer, "add", {
        "count": count, "offset": sums.offsets, "multiplier": sums.multipliers[:2],
        "shift": sums.shifts[:2], "out_multiplier": sums.multipliers[2],
        "out_shift": sums.shifts[2], "out_offset": sums.out_offset, "low": sums.low,
        "high": sums.high})


def _write_mean(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    requantisation, offset, positions = parameters.averaging(context.graph, layer)
    fields: dict[str, object] = {
        "positions": positions, "channels": context.graph.input(layer).shape[3]}
    if not context.floating(layer):
        fields["input_offset"] = offset
        fields["requant"] = _requant(context, requantisation, context.image.table[position])
    return _call(context, layer, "mean", fields)


def _write_softmax(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    data = context.graph.input(layer)
    depth = data.channels
    table = {"beta": float(layer.option("beta", 1.0))} if context.floating(layer) else {
        "exponential": context.constant("uint32_t", context.image.table[position])}
    return _call(context, layer, "softmax", {
        "rows": data.elements // depth, "depth": depth, **table})


def _write_pad(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    data = context.graph.input(layer)
    amounts = padding_amounts(layer, data)
    if context.floating(layer):
        width = 4
        value = int(np.float32(layer.option("value", 0.0) or 0.0).view(np.uint32))
    else:
        width, value = 1, single(data)[1] & 0xFF
    return _call(context, layer, "pad_nhwc", {
        "in_h": data.shape[1], "in_w": data.shape[2], "in_c": data.shape[3],
        "before": [before for before, _ in amounts[1:]],
        "after": [after for _, after in amounts[1:]], "element_bytes": width, "value": value},
        typed=False)


def _write_concatenation(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    check_concatenation(context.graph, layer)
    axis = layer.option("axis")
    width = 4 if context.floating(layer) else 1
    output = context.graph.output(layer)
    out_bytes = math.prod(output.shape[axis:]) * width
    calls, offset = [], 0
    for tensor in layer.inputs:
        part = context.graph.tensors[tensor]
        in_bytes = math.prod(part.shape[axis:]) * width
        fields = {"rows": math.prod(part.shape[:axis]), "in_bytes": in_bytes,
                  "out_bytes": out_bytes, "offset_bytes": offset}
        calls.append(Call(kernel="concat_part", fields=fields, arguments=(
            context.arena(tensor), context.arena(layer.target_id))))
        offset += in_bytes
    return tuple(calls)


def _write_lookup(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    if context.floating(layer):
        return _write_quantisation(context, layer, "quantize_s8", layer.target_id)
    return _call(context, layer, "lookup", {
        "count": context.graph.output(layer).elements,
        "table": context.constant("int8_t", context.image.table[position])})


def _write_dequantise(context: Context, layer: Layer, position: int) -> tuple[Call, ...]:
    return _write_quantisation(context, layer, "dequantize_s8", layer.source_id)


def _write_quantisation(context: Context, layer: Layer, kernel: str,
                        stored: int) -> tuple[Call, ...]:
    tensor = context.graph.tensors[stored]
    scale, zero_point = single(tensor)
    return _call(context, layer, kernel, {
        "count": tensor.elements, "scale": scale, "zero_point": zero_point},
        struct="quantize_s8", typed=False)


_WRITERS: Mapping[str, Callable[[Context, Layer, int], tuple[Call, ...]]] = {
    "conv_2d": _write_convolution, "depthwise_conv_2d": _write_depthwise,
    "fully_connected": _write_product, "average_pool_2d": _write_pool,
    "max_pool_2d": _write_pool, "add": _write_add, "mean": _write_mean,
    "softmax": _write_softmax, "pad": _write_pad, "concatenation": _write_concatenation,
    "dequantize": _write_dequantise, **dict.fromkeys(parameters.LOOKUPS, _write_lookup),
}
