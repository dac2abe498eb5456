"""Kernels of ExecuTorch to canonical operators: the table of what is read, and how.

executorch_layers.yaml has the rows; this module has what they name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hwmodels.file_cache import read_yaml_once
from twin.network.graph import (
    Options,
    Quantization,
    RowsColumns,
    Window,
    options_of_reduction,
    options_of_slice,
)
from twin.network.operators import OPERATORS
from twin.network.readers.ethos_u import as_constant
from twin.network.readers.executorch_values import Reader
from twin.network.readers.refusal import UnsupportedError

Convert = Callable[[Reader], Any]


class Tie(Enum):
    """Whether a kernel reads and writes images, keeps the axes of what it reads, or neither."""

    IMAGE, KEEP, NONE = range(3)


class Kernel(NamedTuple):
    """How a kernel becomes a layer, and what it says of layouts."""

    convert: Convert
    tie: Tie


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "int": int, "float": float, "bool": bool, "not": operator.not_}


def _plain(reader: Reader, *, op: str, operands: int | None = 1, axis: int | None = None,
           **options: Any) -> None:
    """Of an operator whose first tensors are its operands; numbers become constants."""
    like, found = reader.call.outputs[0], reader.tensors()[:operands]
    inputs = [reader.data(i, like) for i in found]
    if operands is not None and len(found) < operands:
        inputs.append(reader.constant(np.array(reader.argument(len(found))).astype(
            reader.program.values[found[0]].dtype)))
    values = {name: _KINDS[value["kind"]](reader.argument(value["place"], value["default"]))
              if isinstance(value, dict) else value for name, value in options.items()}
    if axis is not None:
        values["axis"] = reader.axis(found[0], reader.argument(axis, -1 if axis else 0))
    reader.emit(op, inputs, **values)


def _clamp(reader: Reader) -> None:
    """Clamp, HardTanh: an activation where the bounds are those of one."""
    low, high = reader.argument(1), reader.argument(2)
    op = {(0, None): "relu", (0, 6): "relu6"}.get((low, high), "clip")
    bounds: Options = {name: float(value) for name, value in (("low", low), ("high", high))
                              if value is not None and op == "clip"}
    reader.emit(op, [reader.data(reader.tensors()[0])], **bounds)


def _reduction(reader: Reader, op: str) -> None:
    value, keep = reader.tensors()[0], bool(reader.argument(2, False))
    rank = len(reader.shape(value))
    axes = {axis % rank for axis in reader.argument(1) or range(rank)}
    reader.emit(op, [reader.data(value)], **options_of_reduction(reader.axes(value), axes, keep))


def _slice(reader: Reader) -> None:
    """Slices (axis, start, end, step) and selections (axis, place)."""
    value = reader.tensors()[0]
    axis, start = reader.argument(1, 0), reader.argument(2, 0)
    size, step = reader.shape(value)[axis], reader.argument(4, 1)
    cut = (min(max(start + size * (start < 0), 0), size - 1), step)
    reader.emit("slice", [reader.data(value)], **options_of_slice(
        len(reader.axes(value)), {reader.axis(value, axis): cut}))


def _pad(reader: Reader) -> None:
    """Pad: ATen counts pairs from the last axis on, Cortex-M states four as the data lie."""
    value = reader.tensors()[0]
    rank, amounts = len(reader.shape(value)), reader.argument(1)
    if reader.call.name == "cortex_m::pad":
        both = zip(amounts[-rank:], reader.argument(2)[-rank:], strict=True)
        pairs = dict(zip(reader.program.values[value].order, both, strict=True))
    else:
        pairs = {rank - 1 - n // 2: amounts[n:n + 2] for n in range(0, len(amounts), 2)}
    reader.emit("pad", [reader.data(value)], mode="constant",
                value=float(reader.argument(2 if len(reader.call.inputs) < 4 else 3, 0)),
                paddings=tuple(pairs.get(axis, (0, 0)) for axis in reader.axes(value)))


def _delegate(reader: Reader) -> None:
    """Code for an Ethos-U: its commands and weights are constants, its arena is an option."""
    code = reader.call.delegate
    if code is None:
        raise UnsupportedError("without its code")
    held = [reader.constant(as_constant(part), f"{name}_{reader.call.place}")
            for name, part in (("commands", code.stream), ("weights", code.constants))]
    reader.emit("ethos_u", [*held, *(reader.data(i) for i in reader.tensors())],
                arena_bytes=code.arena_bytes, scratch_bytes=0)


def _permute(reader: Reader) -> None:
    """Permutations, and copies into another shape, type or order of dimensions."""
    value, made = reader.tensors()[0], reader.call.outputs[0]
    name, shape = reader.call.name, reader.shape(made)
    if reader.program.values[value].dtype != reader.program.values[made].dtype:
        reader.emit("cast", [reader.data(value, made)])
        return
    perm = list(range(len(reader.shape(value))))
    if name in ("permute", "cortex_m::transpose"):
        perm = [axis % len(perm) for axis in reader.argument(1)]
    known, before = reader.values(value), reader.axes(value)
    if known is not None:
        reader.learn(known.transpose(perm).reshape(shape))
    wanted = [perm[axis] if 0 <= axis < len(perm) else -1 for axis in reader.axes(made)]
    if name not in SHAPED and wanted != list(before) and sorted(wanted) == sorted(before):
        reader.emit("transpose", [reader.data(value)],
                    perm=tuple(before.index(axis) for axis in wanted))
    else:
        reader.emit("reshape_copy", [reader.data(value)])


def _fill(reader: Reader) -> None:
    dtype = reader.program.values[reader.call.outputs[0]].dtype
    reader.emit("broadcast_to", [reader.constant(np.zeros(1, dtype))])


def _product(reader: Reader, data: int, weights: int, bias: int | None = None) -> None:
    """Of products with a matrix [in, out] or, of `linear`, [out, in]; places are arguments."""
    inputs, name = reader.call.inputs, reader.call.name
    known, source = reader.values(inputs[weights]), reader.data(inputs[data])
    if known is None or known.ndim != 2:
        if bias is not None:
            raise UnsupportedError("weights computed at run time")
        reader.emit("batch_matmul", [source, reader.data(inputs[weights])], adj_x=False,
                    adj_y=name.startswith("cortex_m"))
        return
    scales = _scales(reader.argument(7), reader.argument(8)) if "quantized" in name else None
    found = [source, _weights(reader, inputs[weights], known if "linear" in name else known.T,
                              scales, None)]
    reader.emit("fully_connected", found + _bias(reader, bias))


def _bias(reader: Reader, place: int | None) -> list[int]:
    given = None if place is None else reader.call.inputs[place]
    return [] if given is None or reader.program.values[given] is None else [reader.data(given)]


def _weights(reader: Reader, value: int, values: np.ndarray, scales: tuple[float, ...] | None,
             axis: int | None) -> int:
    quantization = None if scales is None else Quantization(
        scales=scales, zero_points=(0,) * len(scales), axis=axis)
    return reader.constant(values, reader.program.values[value].name, quantization)


def _scales(multipliers: Any, shifts: Any) -> tuple[float, ...]:
    """Return multiplier x 2^(shift - 31): scales of weights where all others are one."""
    with np.errstate(over="ignore"):  # of a damaged file: no scale is infinite
        found = np.ldexp(np.asarray(multipliers, float) / 2**31, np.asarray(shifts))
    return tuple(found.tolist())


def _pair(given: Sequence[int] | None, default: int, rank: int) -> RowsColumns:
    """Return a number for rows and one for columns; signals have one row."""
    both = tuple(given or (default,))
    return (default if rank == 3 else both[0]), both[-1]


def _window(reader: Reader, kernel: RowsColumns, stride: RowsColumns,
            padding: RowsColumns, dilation: RowsColumns = (1, 1)) -> Window:
    """Return a window whose padding behind is what its output needs, where that is another."""
    if min(*kernel, *stride, *dilation) < 1 or min(padding) < 0:
        raise UnsupportedError(f"kernel {kernel}, stride {stride}, padding {padding}")
    around: list[int] = []
    for size, out, k, s, p, d in zip(*_extents(reader), kernel, stride, padding, dilation,
                                     strict=True):
        reach = (k - 1) * d + 1
        exact = (size + 2 * p - reach) // s + 1 == out
        around += [p, p if exact else max(0, (out - 1) * s + reach - size - p)]
    return Window(kernel=kernel, stride=stride, dilation=dilation,
                  padding=(around[0], around[1], around[2], around[3]))


def _extents(reader: Reader) -> list[RowsColumns]:
    """Return rows and columns of what the call reads and writes."""
    shapes = [reader.shape(i) for i in (reader.tensors()[0], reader.call.outputs[0])]
    if any(len(shape) not in (3, 4) for shape in shapes):
        raise UnsupportedError(f"{len(shapes[0])} dimensions")
    return [(1 if len(shape) == 3 else shape[-2], shape[-1]) for shape in shapes]


def _convolution(reader: Reader) -> None:
    """ATen convolution: weights [out, in / groups, ...], transposed [in, out / groups, ...]."""
    groups, weights = reader.argument(8, 1), _filters(reader)
    if reader.argument(6):
        if groups != 1:
            raise UnsupportedError(f"transposed, {groups} groups")
        op, order = "transpose_conv_2d", (1, 2, 3, 0)
    elif groups > 1 and weights.shape[1] == 1:
        op, order = "depthwise_conv_2d", (1, 2, 3, 0)
    else:
        op, order = "conv_2d", (0, 2, 3, 1)
    _emit_filters(reader, op, weights.transpose(order), groups, 5)


def _cortex_convolution(reader: Reader, op: str, dilation: int, multipliers: int) -> None:
    """CMSIS-NN's: weights as its kernels take them, multipliers and shifts of each channel."""
    weights = _filters(reader)
    scales = _scales(*(reader.values(reader.call.inputs[place])
                       for place in (multipliers, multipliers + 1)))
    groups = weights.shape[3] // reader.argument(6) if op == "depthwise_conv_2d" else 1
    _emit_filters(reader, op, weights, groups, dilation, scales)


def _filters(reader: Reader) -> np.ndarray:
    weights = reader.values(reader.call.inputs[1])
    if weights is None:
        raise UnsupportedError("weights computed at run time")
    weights = weights[:, :, None] if weights.ndim == 3 else weights
    if weights.ndim != 4:
        raise UnsupportedError(f"{weights.ndim} dimensions of weights")
    return weights


def _emit_filters(reader: Reader, op: str, weights: np.ndarray, groups: int, dilation: int,
                  scales: tuple[float, ...] | None = None) -> None:
    rank = len(reader.shape(reader.call.inputs[0]))
    stride, padding, steps = (_pair(reader.argument(place), default, rank) for place, default in (
        (3, 1), (4, 0), (dilation, 1)))
    kernel = (weights.shape[1], weights.shape[2])
    window = Window(kernel=kernel, stride=stride, padding=(
        padding[0], padding[0], padding[1], padding[1])) if op == "transpose_conv_2d" else _window(
            reader, kernel, stride, padding, steps)
    data, value = reader.call.inputs[:2]
    reader.emit(op, [reader.data(data), _weights(reader, value, weights, scales,
                                                 OPERATORS[op].filters),
                     *_bias(reader, 2)], window=window, groups=groups)


def _pool(reader: Reader, op: str) -> None:
    """Of pools (kernel, stride, padding, ...); adaptive ones state what they write."""
    value, largest = reader.tensors()[0], op == "max_pool_2d"
    rank = len(reader.shape(value))
    if "adaptive" in reader.call.name:
        sizes, wanted = _extents(reader)
        kernel = (sizes[0] // max(1, wanted[0]), sizes[1] // max(1, wanted[1]))
        window = _window(reader, kernel, kernel, (0, 0))
    else:
        kernel = _pair(reader.argument(1), 1, rank)
        window = _window(
            reader, kernel, _pair(reader.argument(2) or kernel, 1, rank),
            _pair(reader.argument(3), 0, rank),
            _pair(reader.argument(4), 1, rank) if largest else (1, 1))
    reader.emit(op, [reader.data(value)], window=window)


def _normalise(reader: Reader) -> None:
    """Batch normalisation, priced as a product with a constant; assumed."""
    reader.emit("mul", [reader.data(reader.tensors()[0]), reader.constant(np.ones((), np.float32))],
                assumed=True)


def _quantizer(reader: Reader, op: str) -> None:
    value = reader.tensors()[0]
    known, source = reader.values(value), reader.data(value)
    if op == "dequantize" and known is not None:
        reader.learn(known.astype(np.float32))
    made = reader.emit(op, [source])
    if "per_tensor" in reader.call.name:
        reader.set_quantization(made if op == "quantize" else source, reader.argument(1),
                                reader.argument(2))


def _lookup(reader: Reader, data: int, places: int) -> None:
    reader.emit("gather", [reader.data(reader.call.inputs[place]) for place in (data, places)],
                axis=0)


SHAPED = ("view", "squeeze", "unsqueeze")
"""Kernels that copy into another shape."""

_CONVERTERS: Mapping[str, Callable[..., None]] = {
    "clamp": _clamp, "slice": _slice, "pad": _pad, "permute": _permute, "fill": _fill,
    "convolution": _convolution, "normalise": _normalise, "delegate": _delegate,
    "plain": _plain, "reduction": _reduction, "product": _product, "pool": _pool,
    "cortex_convolution": _cortex_convolution, "quantizer": _quantizer, "lookup": _lookup}


def _read_kernel(*, convert: str = "plain", tie: str = "keep", **facts: Any) -> Kernel:
    return Kernel(partial(_CONVERTERS[convert], **facts), Tie[tie.upper()])


KERNELS: Mapping[str, Kernel] = {
    name: _read_kernel(**row)
    for name, row in read_yaml_once(Path(__file__).with_suffix(".yaml")).items()}
"""Kernels by their name, without `aten::`, what is behind the dot, and `_copy`."""
