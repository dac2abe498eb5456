"""Kernels of ExecuTorch to canonical operators: the table of what is read, and how.

Names are those of the ATen, `quantized_decomposed`, `dim_order_ops` and `cortex_m` operator sets;
arguments are in the order of their schemas (pytorch/executorch, kernels/portable/functions.yaml and
backends/cortex_m/ops/operators.yaml). A kernel's output, given last, is not among its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from twin.network.graph import Quantization, Window
from twin.network.operators import OPERATORS
from twin.network.readers.executorch_values import Reader
from twin.network.readers.refusal import UnsupportedError

Convert = Callable[[Reader], Any]


class Tie(Enum):
    """Whether a kernel reads and writes images, keeps the axes of what it reads, or neither."""

    IMAGE, KEEP, NONE = range(3)


class Kernel(NamedTuple):
    """How a kernel becomes a layer, and what it says of layouts."""

    convert: Convert
    tie: Tie = Tie.KEEP


def _plain(op: str, count: int = 1, /, **options: Any) -> Convert:
    """Of an operator whose first `count` tensors are its operands, numbers made constants."""
    def convert(reader: Reader) -> None:
        like = reader.call.outputs[0]
        found = reader.tensors()[:count]
        inputs = [reader.data(i, like) for i in found]
        if len(found) < count:
            number = reader.argument(1 if len(found) == 1 else 2)
            dtype = reader.program.values[found[0]].dtype
            inputs.append(reader.constant(np.array(number).astype(dtype)))
        if any(0 < len(reader.shape(i)) < len(reader.shape(like)) and reader.values(i) is None
               and list(reader.axes(like)) != sorted(reader.axes(like)) for i in found):
            raise UnsupportedError("operands of different ranks, one of them an image")
        reader.emit(op, inputs, **options)

    return convert


def _leaky(reader: Reader) -> None:
    _plain("leaky_relu", alpha=float(reader.argument(1, 0.01)))(reader)


def _clamp(reader: Reader) -> None:
    """Clamp, HardTanh: an activation where the bounds are those of one."""
    low, high = reader.argument(1), reader.argument(2)
    op = {(0.0, None): "relu", (0.0, 6.0): "relu6"}.get((low, high))
    bounds: dict[str, Any] = {name: float(value) for name, value in (("low", low), ("high", high))
                              if value is not None and op is None}
    _plain(op or "clip", 1, **bounds)(reader)


def _rows(op: str, **options: Any) -> Convert:
    def convert(reader: Reader) -> None:
        value = reader.tensors()[0]
        axis = reader.axis(value, reader.argument(1, -1))
        reader.emit(op, [reader.data(value)], axis=axis, **options)

    return convert


def _reduction(op: str) -> Convert:
    def convert(reader: Reader) -> None:
        value = reader.tensors()[0]
        rank = len(reader.shape(value))
        axes = {axis % rank for axis in reader.argument(1) or range(rank)}
        keep = bool(reader.argument(2, False))
        stored = tuple(place for place, axis in enumerate(reader.axes(value))
                       if axis in axes or (axis < 0 and not keep))
        reader.emit(op, [reader.data(value)], axes=stored, keep_dims=keep)

    return convert


def _join(reader: Reader) -> None:
    made, axis = reader.call.outputs[0], reader.argument(1, 0)
    parts = [i for i in reader.tensors() if math.prod(reader.shape(i))]
    reader.emit("concatenation", [reader.data(i, made) for i in parts],
                axis=reader.axis(made, axis))


def _split(reader: Reader) -> None:
    value = reader.tensors()[0]
    reader.emit("split", [reader.data(value)], axis=reader.axis(value, reader.argument(2, 0)))


def _slice(select: bool) -> Convert:
    """Of slice (axis, start, end, step) and select (axis, place)."""
    def convert(reader: Reader) -> None:
        value = reader.tensors()[0]
        axis, start = reader.argument(1, 0), reader.argument(2, 0)
        size, place = reader.shape(value)[axis], reader.axis(value, axis)
        begin = [0] * len(reader.axes(value))
        strides = [1] * len(begin)
        begin[place] = min(max(start + size * (start < 0), 0), size - 1)
        strides[place] = 1 if select else reader.argument(4, 1)
        reader.emit("slice", [reader.data(value)], begin=tuple(begin), strides=tuple(strides))

    return convert


def _pad(reader: Reader) -> None:
    """Pad: ATen counts pairs from the last axis on, Cortex-M states four before and after."""
    value = reader.tensors()[0]
    rank, first = len(reader.shape(value)), reader.argument(1)
    if reader.call.name == "cortex_m::pad":
        # As the data lie: an image's are channel last.
        after = reader.argument(2)
        axes = reader.program.values[value].order
        pairs = dict(zip(axes, zip(first[-rank:], after[-rank:], strict=True), strict=True))
        number = reader.argument(3, 0)
    else:
        pairs = {rank - 1 - n: (first[2 * n], first[2 * n + 1]) for n in range(len(first) // 2)}
        number = reader.argument(2, 0)
    reader.emit("pad", [reader.data(value)], mode="constant", value=float(number),
                paddings=tuple(pairs.get(axis, (0, 0)) for axis in reader.axes(value)))


def _copied(op: str) -> Convert:
    def convert(reader: Reader) -> None:
        value = reader.tensors()[0]
        known = reader.values(value)
        if known is not None and op == "reshape_copy":
            reader.learn(known.reshape(reader.shape(reader.call.outputs[0])))
        reader.emit(op, [reader.data(value)])

    return convert


def _permute(reader: Reader) -> None:
    """Permutations, and copies into another type or order of dimensions."""
    value, made = reader.tensors()[0], reader.call.outputs[0]
    if reader.program.values[value].dtype != reader.program.values[made].dtype:
        reader.emit("cast", [reader.data(value, made)])
        return
    perm = list(range(len(reader.shape(value))))
    given = reader.argument(1)
    if reader.call.name == "transpose":
        first, second = given, reader.argument(2)
        perm[first], perm[second] = perm[second], perm[first]
    elif reader.call.name in ("permute", "cortex_m::transpose"):
        perm = [axis % len(perm) for axis in given]
    elif reader.call.name == "t":
        perm.reverse()
    known = reader.values(value)
    if known is not None:
        reader.learn(known.transpose(perm))
    before = reader.axes(value)
    wanted = [perm[axis] if axis >= 0 else axis for axis in reader.axes(made)]
    moved = wanted != list(before) and sorted(wanted) == sorted(before)
    options: dict[str, Any] = {}
    if moved:
        options["perm"] = tuple(before.index(axis) for axis in wanted)
    reader.emit("transpose" if moved else "reshape_copy", [reader.data(value)], **options)


def _fill(reader: Reader) -> None:
    made = reader.program.values[reader.call.outputs[0]]
    number = reader.argument(1, 0) if "full" in reader.call.name else float("one" in
                                                                          reader.call.name)
    reader.emit("broadcast_to", [reader.constant(np.array([number]).astype(made.dtype))])


def _product(data: int, weights: int, bias: int | None) -> Convert:
    """Of products with a matrix [in, out] or, of `linear`, [out, in]; places are arguments."""
    def convert(reader: Reader) -> None:
        inputs = reader.call.inputs
        known = reader.values(inputs[weights])
        source = reader.data(inputs[data])
        if known is None or known.ndim != 2:
            if bias is not None:
                raise UnsupportedError("weights computed at run time")
            turned = "rhs" in reader.call.name or "batch_matmul" in reader.call.name
            reader.emit("batch_matmul", [source, reader.data(inputs[weights])], adj_x=False,
                        adj_y=turned)
            return
        matrix = known if "linear" in reader.call.name else known.T
        scaled = None
        if reader.call.name == "cortex_m::quantized_linear":
            scaled = Quantization(scales=_scales(reader.argument(7), reader.argument(8)),
                                  zero_points=(0,))
        found = [source, reader.constant(matrix, reader.program.values[inputs[weights]].name,
                                         scaled)]
        if bias is not None and reader.program.values[inputs[bias]] is not None:
            found.append(reader.data(inputs[bias]))
        reader.emit("fully_connected", found)

    return convert


def _pair(given: Sequence[int] | int | None, default: int, rank: int) -> tuple[int, int]:
    """Return a number for rows and one for columns; signals have one row."""
    both = tuple(given) if isinstance(given, tuple) else (default if given is None else given,)
    if not both:
        both = (default,)
    if rank == 3:
        return default, both[-1]
    return both[0], both[-1]


def _window(reader: Reader, kernel: tuple[int, int], stride: tuple[int, int],
            padding: tuple[int, int], dilation: tuple[int, int]) -> Window:
    """Return a window whose padding behind is what its output needs, where that is more."""
    value, made = reader.tensors()[0], reader.call.outputs[0]
    axes = "_nhwc" in reader.call.kernel
    sizes, wanted = (_rows_and_columns(reader.shape(i), axes) for i in (value, made))
    if min(*kernel, *stride, *dilation) < 1 or min(padding) < 0:
        raise UnsupportedError(f"kernel {kernel}, stride {stride}, padding {padding}")
    around: list[int] = []
    for size, out, k, s, p, d in zip(sizes, wanted, kernel, stride, padding, dilation, strict=True):
        reach = (k - 1) * d + 1
        exact = (size + 2 * p - reach) // s + 1 == out
        around += [p, p if exact else max(0, (out - 1) * s + reach - size - p)]
    return Window(kernel=kernel, stride=stride, dilation=dilation,
                  padding=(around[0], around[1], around[2], around[3]))


def _rows_and_columns(shape: tuple[int, ...], last: bool) -> tuple[int, int]:
    if len(shape) not in (3, 4):
        raise UnsupportedError(f"{len(shape)} dimensions")
    if last:
        return shape[-3], shape[-2]
    return (1 if len(shape) == 3 else shape[-2]), shape[-1]


def _convolution(reader: Reader) -> None:
    """ATen convolution: weights [out, in / groups, ...], transposed [in, out / groups, ...]."""
    inputs, rank = reader.call.inputs, len(reader.shape(reader.call.inputs[0]))
    weights = reader.values(inputs[1])
    if weights is None:
        raise UnsupportedError("weights computed at run time")
    transposed, groups = bool(reader.argument(6)), reader.argument(8, 1)
    if rank == 3:
        weights = weights[:, :, None]
    if weights.ndim != 4:
        raise UnsupportedError(f"{rank} dimensions")
    if transposed:
        if groups != 1:
            raise UnsupportedError(f"transposed, {groups} groups")
        op, weights = "transpose_conv_2d", weights.transpose(1, 2, 3, 0)
    elif groups > 1 and weights.shape[1] == 1:
        op, weights = "depthwise_conv_2d", weights.transpose(1, 2, 3, 0)
    else:
        op, weights = "conv_2d", weights.transpose(0, 2, 3, 1)
    settings = [_pair(reader.argument(place), default, rank)
                for place, default in ((3, 1), (4, 0), (5, 1))]
    _emit_filters(reader, op, weights, groups, settings)


def _scales(multipliers: Any, shifts: Any) -> tuple[float, ...]:
    """Return multiplier x 2^(shift - 31): scales of weights where all others are one."""
    with np.errstate(over="ignore"):  # of a damaged file: no scale is infinite
        found = np.ldexp(np.asarray(multipliers, float) / 2**31, np.asarray(shifts))
    return tuple(found.tolist())


def _cortex_convolution(op: str) -> Convert:
    """CMSIS-NN's: weights as its kernels take them, multipliers and shifts of each channel."""
    def convert(reader: Reader) -> None:
        weights = reader.values(reader.call.inputs[1])
        if weights is None or weights.ndim != 4:
            raise UnsupportedError("weights computed at run time")
        settings = [_pair(reader.argument(place), 1, 4) for place in (3, 4, 5)]
        if op == "transpose_conv_2d":
            settings[2] = _pair(reader.argument(6), 1, 4)
        places = (8, 9) if op == "conv_2d" else (9, 10)
        multipliers, shifts = (reader.values(reader.call.inputs[place]) for place in places)
        groups = weights.shape[3] // reader.argument(6) if op == "depthwise_conv_2d" else 1
        _emit_filters(reader, op, weights, groups, settings, _scales(multipliers, shifts))

    return convert


def _emit_filters(reader: Reader, op: str, weights: np.ndarray, groups: int,
                  settings: Sequence[tuple[int, int]],
                  scales: tuple[float, ...] | None = None) -> None:
    stride, padding, dilation = settings
    kernel = (weights.shape[1], weights.shape[2])
    window = Window(kernel=kernel, stride=stride, padding=(*padding[:1] * 2, *padding[1:] * 2)) \
        if op == "transpose_conv_2d" else _window(reader, kernel, stride, padding, dilation)
    spec = reader.program.values[reader.call.inputs[1]]
    quantization = None if scales is None else Quantization(
        scales=scales, zero_points=(0,) * len(scales), axis=OPERATORS[op].filters)
    found = [reader.data(reader.call.inputs[0]), reader.constant(weights, spec.name, quantization)]
    if reader.program.values[reader.call.inputs[2]] is not None:
        found.append(reader.data(reader.call.inputs[2]))
    reader.emit(op, found, window=window, groups=groups)


def _pool(op: str, *, dilated: bool = False) -> Convert:
    def convert(reader: Reader) -> None:
        value = reader.tensors()[0]
        rank = len(reader.shape(value))
        kernel = _pair(reader.argument(1), 1, rank)
        given = reader.argument(2)
        stride = _pair(given, 1, rank) if given else kernel
        window = _window(reader, kernel, stride, _pair(reader.argument(3), 0, rank),
                         _pair(reader.argument(4), 1, rank) if dilated else (1, 1))
        counts = not dilated and reader.call.name == "avg_pool2d" and any(window.padding) and (
            reader.argument(5, True))
        reader.emit(op, [reader.data(value)], window=window,
                    **({"count_include_pad": True} if counts else {}))

    return convert


def _adaptive(reader: Reader) -> None:
    """Adaptive pooling where every window is as large as the next."""
    value, made = reader.tensors()[0], reader.call.outputs[0]
    sizes, wanted = (_rows_and_columns(reader.shape(i), False) for i in (value, made))
    if any(out < 1 or size % out for size, out in zip(sizes, wanted, strict=True)):
        raise UnsupportedError(f"{sizes} to {wanted}: windows of unequal size")
    kernel = (sizes[0] // wanted[0], sizes[1] // wanted[1])
    reader.emit("average_pool_2d", [reader.data(value)],
                window=_window(reader, kernel, kernel, (0, 0), (1, 1)))


def _resize(op: str) -> Convert:
    def convert(reader: Reader) -> None:
        corners = bool(reader.argument(2, False)) if op == "resize_bilinear" else False
        reader.emit(op, [reader.data(reader.tensors()[0])], align_corners=corners,
                    half_pixel_centers=not corners)

    return convert


def _normalise(reader: Reader) -> None:
    """Batch normalisation as a product with a constant, of layers as one of rows; assumed."""
    value = reader.tensors()[0]
    if "batch_norm" in reader.call.name:
        known = reader.values(reader.call.inputs[3])
        if known is None:
            raise UnsupportedError("mean computed at run time")
        shape = known.reshape((-1,) + (1,) * (len(reader.shape(value)) - 2))
        moved = shape.reshape(-1) if reader.axes(value)[-1] == 1 else shape
        reader.emit("mul", [reader.data(value), reader.constant(moved)], assumed=True)
    else:
        reader.emit("l2_normalization", [reader.data(value)], assumed=True)


def _quantizer(op: str) -> Convert:
    def convert(reader: Reader) -> None:
        value = reader.tensors()[0]
        known = reader.values(value)
        if op == "dequantize" and known is not None:
            reader.learn(known.astype(np.float32))
        source = reader.data(value)
        scale, zero = reader.argument(1), reader.argument(2)
        made = reader.emit(op, [source])
        if isinstance(scale, float) and isinstance(zero, int):
            reader.set_quantization(made if op == "quantize" else source, scale, zero)

    return convert


def _lookup(data: int, places: int) -> Convert:
    def convert(reader: Reader) -> None:
        inputs = [reader.data(reader.call.inputs[place]) for place in (data, places)]
        reader.emit("gather", inputs, axis=0)

    return convert


def _shuffle(reader: Reader) -> None:
    reader.emit("depth_to_space", [reader.data(reader.tensors()[0])], block=reader.argument(1),
                order="crd")


def _alike(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_ONE = {**_alike("relu", "tanh", "gelu", "exp", "log", "sqrt", "rsqrt", "abs", "neg", "sin", "cos",
                 "floor", "ceil", "round", "erf", "elu", "reciprocal", "sign", "logical_not"),
        "sigmoid": "logistic", "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid",
        "cortex_m::quantized_sigmoid": "logistic"}
_TWO = {**_alike("add", "sub", "mul", "div", "minimum", "maximum", "pow", "logical_and",
                 "logical_or"),
        "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "lt": "less",
        "le": "less_equal", "fmod": "floor_mod", "remainder": "floor_mod",
        "cortex_m::minimum": "minimum", "cortex_m::maximum": "maximum",
        **{f"cortex_m::quantized_{name}": name for name in ("add", "mul", "div")}}
_COPIES = {**dict.fromkeys(("view", "squeeze", "unsqueeze", "alias", "clone", "lift_fresh"),
                           "reshape_copy"),
           "executorch_prim::et_view": "reshape", "expand": "broadcast_to", "repeat": "tile"}

KERNELS: Mapping[str, Kernel] = {
    **{name: Kernel(_plain(op)) for name, op in _ONE.items()},
    **{name: Kernel(_plain(op, 2)) for name, op in _TWO.items()},
    **{name: Kernel(_copied(op), Tie.NONE) for name, op in _COPIES.items()},
    "where": Kernel(_plain("select", 3)), "leaky_relu": Kernel(_leaky),
    "clamp": Kernel(_clamp), "hardtanh": Kernel(_clamp),
    "_softmax": Kernel(_rows("softmax", beta=1.0)),
    "cortex_m::softmax": Kernel(_rows("softmax", beta=1.0)),
    "_log_softmax": Kernel(_rows("log_softmax")), "cumsum": Kernel(_rows("cumsum")),
    **{name: Kernel(_reduction(op), Tie.NONE) for name, op in (
        ("mean", "mean"), ("sum", "sum"), ("amax", "reduce_max"), ("amin", "reduce_min"))},
    "argmax": Kernel(_rows("arg_max"), Tie.NONE), "argmin": Kernel(_rows("arg_min"), Tie.NONE),
    "cat": Kernel(_join), "split_with_sizes": Kernel(_split), "split": Kernel(_split),
    "slice": Kernel(_slice(select=False)), "select": Kernel(_slice(select=True), Tie.NONE),
    "constant_pad_nd": Kernel(_pad), "cortex_m::pad": Kernel(_pad),
    **{name: Kernel(_permute, Tie.NONE) for name in (
        "permute", "transpose", "t", "cortex_m::transpose")},
    **{f"dim_order_ops::_{name}_dim_order": Kernel(_permute, Tie.NONE) for name in (
        "to", "clone", "empty")},
    "_to": Kernel(_permute, Tie.NONE),
    **{name: Kernel(_fill, Tie.NONE) for name in ("full", "full_like", "zeros", "ones")},
    "addmm": Kernel(_product(1, 2, 0), Tie.NONE), "linear": Kernel(_product(0, 1, 2), Tie.NONE),
    "mm": Kernel(_product(0, 1, None), Tie.NONE), "bmm": Kernel(_product(0, 1, None), Tie.NONE),
    "cortex_m::quantized_linear": Kernel(_product(0, 1, 2), Tie.NONE),
    "cortex_m::quantized_batch_matmul": Kernel(_product(0, 2, None), Tie.NONE),
    "convolution": Kernel(_convolution, Tie.IMAGE),
    **{f"cortex_m::quantized_{name}2d": Kernel(_cortex_convolution(op), Tie.IMAGE)
       for name, op in (("conv", "conv_2d"), ("depthwise_conv", "depthwise_conv_2d"),
                        ("transpose_conv", "transpose_conv_2d"))},
    **{name: Kernel(_pool("average_pool_2d"), Tie.IMAGE) for name in (
        "avg_pool2d", "cortex_m::quantized_avg_pool2d")},
    **{name: Kernel(_pool("max_pool_2d", dilated=True), Tie.IMAGE) for name in (
        "max_pool2d_with_indices", "max_pool2d", "cortex_m::quantized_max_pool2d")},
    **{name: Kernel(_adaptive, Tie.IMAGE) for name in (
        "_adaptive_avg_pool2d", "adaptive_avg_pool2d")},
    "upsample_nearest2d": Kernel(_resize("resize_nearest"), Tie.IMAGE),
    "upsample_bilinear2d": Kernel(_resize("resize_bilinear"), Tie.IMAGE),
    "pixel_shuffle": Kernel(_shuffle, Tie.IMAGE),
    "_native_batch_norm_legit_no_training": Kernel(_normalise),
    "native_layer_norm": Kernel(_normalise, Tie.NONE),
    **{f"{room}::{name}_per_{what}": Kernel(_quantizer(name)) for name in (
        "quantize", "dequantize") for room, what in (
        ("quantized_decomposed", "tensor"), ("quantized_decomposed", "channel"),
        ("cortex_m", "tensor"))},
    "cortex_m::quantized_activation": Kernel(_lookup(1, 0)),
    "embedding": Kernel(_lookup(0, 1), Tie.NONE),
}
"""Kernels by their name, without `aten::`, what is behind the dot, and `_copy`."""
