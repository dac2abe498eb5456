"""Each layer as C: a constant struct of the kernel's, and the call that uses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hwmodels.frozen import frozen
from twin.deployment.placement import Placement
from twin.network.arithmetic import find_operation, parameters
from twin.network.arithmetic.integer import check_concatenation, padding_amounts
from twin.network.arithmetic.requantisation import (
    Requantisation,
    activation_range,
    single,
    weighted,
)
from twin.network.graph import GraphLayer, Layer
from twin.program.image.compile.plan import Image
from twin.runtimes.firmware import is_pointwise

Fields = Mapping[str, object]


@frozen
class Site(GraphLayer):
    """What the C of a layer is written from."""

    placement: Placement
    image: Image
    position: int

    def arena(self, tensor: int) -> str:
        """Address of a computed tensor, or of a layer's scratch, in the arena."""
        slot = self.placement.slot(tensor)
        assert slot is not None, f"tensor {tensor} has no place"
        return f"model_arena + {slot.offset_bytes}"

    def constant(self, ctype: str, offset: int) -> str:
        """Address of a constant."""
        return f"(const {ctype} *)(const void *)(model_weights + {offset})"

    @property
    def floating(self) -> bool:
        """Whether it reads floats."""
        return self.source.dtype == "float32"


@frozen
class Call:
    """One call: the kernel, its struct's fields, and the addresses behind the struct."""

    kernel: str
    fields: Fields
    arguments: tuple[str, ...]
    struct: str = ""


def emit_layer(site: Site) -> str:
    """Write one layer as C: its structs and the function `run_POSITION`.

    Raises
    ------
    RuntimeRefusedError
        When the firmware has no kernel for the layer.
    """
    layer, position = site.layer, site.position
    find_operation(site)
    if layer.op not in _WRITERS:
        raise site.refuse("the firmware has no kernel for it; it has "
                          f"{', '.join(sorted(_WRITERS))}")
    calls = _WRITERS[layer.op](site)
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


def _window(site: Site) -> Fields:
    window, data, output = site.layer.sliding_window, site.source.shape, site.shape
    return {
        "in_h": data[1], "in_w": data[2], "in_c": data[3],
        "out_h": output[1], "out_w": output[2], "out_c": output[3],
        "kernel_h": window.kernel[0], "kernel_w": window.kernel[1],
        "stride_h": window.stride[0], "stride_w": window.stride[1],
        "dilation_h": window.dilation[0], "dilation_w": window.dilation[1],
        "pad_top": window.padding[0], "pad_left": window.padding[2],
    }


def _requant(site: Site, requantisation: Requantisation, offset: int) -> Fields:
    channels = len(requantisation.multipliers)
    return {
        "multiplier": site.constant("int32_t", offset),
        "shift": site.constant("int32_t", offset + 4 * channels),
        "step": int(channels > 1), "offset": requantisation.offset,
        "low": requantisation.low, "high": requantisation.high,
    }


def _weights(site: Site) -> dict[str, object]:
    """Fields every weighted layer has."""
    ctype, biases = ("float", "float") if site.floating else ("int8_t", "int32_t")
    fields: dict[str, object] = {
        "weights": site.constant(ctype, site.image.weights[site.layer.inputs[1]]),
        "bias": site.constant(biases, site.image.bias[site.position]),
    }
    if site.floating:
        fields["low"], fields["high"] = parameters.float_range(site)
    else:
        fields["requant"] = _requant(site, weighted(site), site.image.parameters[site.position])
    return fields


def _ends(site: Site) -> tuple[str, ...]:
    """Addresses of the data inputs and the output."""
    inputs = site.graph.list_data(site.layer)
    return tuple(site.arena(tensor) for tensor in (*inputs, site.layer.target_id))


def _border(site: Site) -> Fields:
    """Value of what lies around an input of integers: its zero point."""
    if site.floating:
        return {}
    return {"border": single(site.source)[1]}


def _call(site: Site, kernel: str, fields: Fields, *more: str,
          struct: str = "", typed: bool = True) -> tuple[Call, ...]:
    """Return the call of a kernel for the layer's type; `more` stands behind its ends."""
    suffix = ("_f32" if site.floating else "_s8") if typed else ""
    return (Call(kernel=kernel + suffix, struct=struct and struct + suffix, fields=fields,
                 arguments=(*_ends(site), *more)),)


def _write_product(site: Site) -> tuple[Call, ...]:
    output, columns = site.output, site.output.channels
    return _call(site, "matmul", {
        "rows": output.elements // columns, "depth": site.weights.elements // columns,
        "columns": columns, **_weights(site), **_border(site)})


def _write_convolution(site: Site) -> tuple[Call, ...]:
    if is_pointwise(site):
        return _write_product(site)
    scratch = site.placement.slot(-1 - site.position)
    return _call(site, "conv", {
        "window": _window(site), **_weights(site), **_border(site)},
        f"model_arena + {scratch.offset_bytes}" if scratch else "0")


def _write_depthwise(site: Site) -> tuple[Call, ...]:
    data, output = site.ends
    offset = {} if site.floating else {"input_offset": -single(data)[1]}
    return _call(site, "depthwise", {
        "window": _window(site), "multiplier": output.shape[3] // data.shape[3],
        **_weights(site), **offset})


def _write_pool(site: Site) -> tuple[Call, ...]:
    low, high = (parameters.float_range if site.floating else activation_range)(site)
    return _call(site, site.op.removesuffix("_2d"), {
        "window": _window(site), "low": low, "high": high}, struct="pool")


def _write_add(site: Site) -> tuple[Call, ...]:
    count = site.output.elements
    if site.floating:
        low, high = parameters.float_range(site)
        return _call(site, "add", {"count": count, "low": low, "high": high})
    sums = parameters.addition(site)
    return _call(site, "add", {
        "count": count, "offset": sums.offsets, "multiplier": sums.multipliers[:2],
        "shift": sums.shifts[:2], "out_multiplier": sums.multipliers[2],
        "out_shift": sums.shifts[2], "out_offset": sums.out_offset, "low": sums.low,
        "high": sums.high})


def _write_mean(site: Site) -> tuple[Call, ...]:
    requantisation, offset, positions = parameters.averaging(site)
    fields: dict[str, object] = {"positions": positions, "channels": site.source.shape[3]}
    if not site.floating:
        fields["input_offset"] = offset
        fields["requant"] = _requant(site, requantisation, site.image.table[site.position])
    return _call(site, "mean", fields)


def _write_softmax(site: Site) -> tuple[Call, ...]:
    data = site.source
    depth = data.channels
    table = {"beta": float(site.option("beta", 1.0))} if site.floating else {
        "exponential": site.constant("uint32_t", site.image.table[site.position])}
    return _call(site, "softmax", {"rows": data.elements // depth, "depth": depth, **table})


def _write_pad(site: Site) -> tuple[Call, ...]:
    data, amounts = site.source, padding_amounts(site)
    if site.floating:
        width = 4
        value = int(np.float32(site.option("value", 0.0) or 0.0).view(np.uint32))
    else:
        width, value = 1, single(data)[1] & 0xFF
    return _call(site, "pad_nhwc", {
        "in_h": data.shape[1], "in_w": data.shape[2], "in_c": data.shape[3],
        "before": [before for before, _ in amounts[1:]],
        "after": [after for _, after in amounts[1:]], "element_bytes": width, "value": value},
        typed=False)


def _write_concatenation(site: Site) -> tuple[Call, ...]:
    check_concatenation(site)
    axis = site.option("axis")
    width = 4 if site.floating else 1
    out_bytes = math.prod(site.shape[axis:]) * width
    calls, offset = [], 0
    for tensor in site.layer.inputs:
        part = site.graph.tensors[tensor]
        in_bytes = math.prod(part.shape[axis:]) * width
        fields = {"rows": math.prod(part.shape[:axis]), "in_bytes": in_bytes,
                  "out_bytes": out_bytes, "offset_bytes": offset}
        calls.append(Call(kernel="concat_part", fields=fields, arguments=(
            site.arena(tensor), site.arena(site.layer.target_id))))
        offset += in_bytes
    return tuple(calls)


def _write_lookup(site: Site) -> tuple[Call, ...]:
    if site.floating:
        return _write_quantisation(site, "quantize_s8", site.layer.target_id)
    return _call(site, "lookup", {
        "count": site.output.elements,
        "table": site.constant("int8_t", site.image.table[site.position])})


def _write_dequantise(site: Site) -> tuple[Call, ...]:
    return _write_quantisation(site, "dequantize_s8", site.layer.source_id)


def _write_quantisation(site: Site, kernel: str, stored: int) -> tuple[Call, ...]:
    tensor = site.graph.tensors[stored]
    scale, zero_point = single(tensor)
    return _call(site, kernel, {
        "count": tensor.elements, "scale": scale, "zero_point": zero_point},
        struct="quantize_s8", typed=False)


_WRITERS: Mapping[str, Callable[[Site], tuple[Call, ...]]] = {
    "conv_2d": _write_convolution, "depthwise_conv_2d": _write_depthwise,
    "fully_connected": _write_product, "average_pool_2d": _write_pool,
    "max_pool_2d": _write_pool, "add": _write_add, "mean": _write_mean,
    "softmax": _write_softmax, "pad": _write_pad, "concatenation": _write_concatenation,
    "dequantize": _write_dequantise, **dict.fromkeys(parameters.LOOKUPS, _write_lookup),
}
