"""Random networks over every kernel of the firmware, and what their tests need of the machine."""

from __future__ import annotations

import hashlib
import math
import shutil

import numpy as np
import pytest

from twin.network.graph import Graph, Layer, Quantization, Tensor, Window

WINDOWED = ("conv", "pointwise", "depthwise", "average_pool_2d", "max_pool_2d")
ELEMENTWISE = ("add", "relu", "logistic", "hard_swish", "quantize", "pad", "concatenation")

needs_make = pytest.mark.skipif(shutil.which("make") is None or shutil.which("cc") is None,
                                reason="needs make and a C compiler for the host")


def needs_tools(*programs: str) -> pytest.MarkDecorator:
    """Skip without one of these programs."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


class NetworkMaker:
    """A chain of random layers; every size, scale and zero point comes from the seed."""

    def __init__(self, seed: int, dtype: str = "int8") -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = dtype
        self.tensors: list[Tensor] = []
        self.layers: list[Layer] = []

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def quantization(self) -> Quantization | None:
        if self.dtype != "int8":
            return None
        return Quantization(scales=(float(np.float32(self.random.uniform(0.02, 0.2))),),
                            zero_points=(self.number(-128, 127),))

    def tensor(self, shape, *, dtype=None, data=None, quantization=None) -> int:
        self.tensors.append(Tensor(name=f"t{len(self.tensors)}", shape=tuple(shape),
                                   dtype=dtype or self.dtype, data=data,
                                   quantization=quantization))
        return len(self.tensors) - 1

    def layer(self, op, inputs, shape, *, quantization=None, **fields) -> int:
        options = tuple(sorted(fields.pop("options", {}).items()))
        output = self.tensor(shape, quantization=quantization or self.quantization())
        self.layers.append(Layer(index=len(self.layers), name=f"{op}_{len(self.layers)}", op=op,
                                 inputs=tuple(inputs), outputs=(output,), options=options,
                                 **fields))
        return output

    def activation(self) -> str | None:
        return [None, "relu", "relu6", "relu_n1_to_1"][self.number(0, 3)]

    def window(self, shape, kernel, *, dilated: bool) -> tuple[Window, tuple[int, int]]:
        """A window whose every position touches the image, and the output's height and width."""
        stride = (self.number(1, 2), self.number(1, 2))
        dilation = (self.number(1, 2), self.number(1, 2)) if dilated else (1, 1)
        kernel = tuple(min(k, 1 + (size - 1) // d)
                       for k, size, d in zip(kernel, shape, dilation, strict=True))
        padding = [self.number(0, (k - 1) * d)
                   for k, d in zip(kernel, dilation, strict=True) for _ in range(2)]
        out = tuple((size + before + after - (k - 1) * d - 1) // s + 1
                    for size, before, after, k, d, s in zip(
                        shape, padding[::2], padding[1::2], kernel, dilation, stride,
                        strict=True))
        return Window(kernel=kernel, stride=stride, dilation=dilation,
                      padding=tuple(padding)), out

    def weighted(self, op, source, weights_shape, channels, shape, depth, **fields) -> int:
        output = self.quantization()
        inputs = [source]
        if self.dtype == "int8":
            data = self.random.integers(-127, 128, weights_shape).astype(np.int8)
            # Sums of `depth` products spread by about 70 * 70 * sqrt(depth): to some 60 steps.
            scale = 60 * output.scales[0] / (
                self.tensors[source].quantization.scales[0] * 4900 * math.sqrt(depth))
            several = self.number(0, 2) > 0
            count = channels if several else 1
            scales = tuple(float(np.float32(s))
                           for s in scale * self.random.uniform(0.3, 2.0, count))
            axis = {"depthwise_conv_2d": 3}.get(op, 0) if count > 1 else None
            quantization = Quantization(scales=scales, zero_points=(0,) * count, axis=axis)
            bias = self.random.integers(-30000, 30000, channels).astype(np.int32)
        else:
            data = self.random.normal(0, 1 / math.sqrt(depth), weights_shape).astype(np.float32)
            quantization, bias = None, self.random.normal(size=channels).astype(np.float32)
        inputs.append(self.tensor(weights_shape, data=data, quantization=quantization))
        if self.number(0, 3):
            inputs.append(self.tensor((channels,), data=bias,
                                      dtype="int32" if self.dtype == "int8" else "float32"))
        return self.layer(op, inputs, shape, quantization=output, activation=self.activation(),
                          **fields)

    def slide(self, kind: str, source: int) -> int:
        _, height, width, depth = self.tensors[source].shape
        kernel = (1, 1) if kind == "pointwise" else (self.number(1, 4), self.number(1, 4))
        if kind == "pointwise":
            window, out = Window(kernel=(1, 1)), (height, width)
        else:
            window, out = self.window((height, width), kernel, dilated="pool" not in kind)
        taps = math.prod(window.kernel)
        if kind in ("conv", "pointwise"):
            channels = self.number(1, 9)
            return self.weighted("conv_2d", source, (channels, *window.kernel, depth), channels,
                                 (1, *out, channels), taps * depth, window=window)
        if kind == "depthwise":
            channels = depth * self.number(1, 2)
            return self.weighted("depthwise_conv_2d", source, (1, *window.kernel, channels),
                                 channels, (1, *out, channels), taps, window=window, groups=depth)
        # Pools: no window may lie outside the image, or there would be nothing to average.
        window = Window(kernel=window.kernel, stride=window.stride,
                        padding=tuple(min(p, window.kernel[i // 2] - 1)
                                      for i, p in enumerate(window.padding)))
        return self.layer(kind, (source,), (1, *out, depth), window=window,
                          activation=self.activation(),
                          quantization=self.tensors[source].quantization)

    def element(self, kind: str, source: int, other: int) -> int:
        shape = self.tensors[source].shape
        if kind == "add":
            same = self.tensors[other].shape == shape
            return self.layer("add", (source, other if same else source), shape,
                              activation=self.activation())
        if kind == "pad":
            before = [(0, 0), *((self.number(0, 2), self.number(0, 2)) for _ in range(3))]
            padded = tuple(s + a + b for s, (a, b) in zip(shape, before, strict=True))
            return self.layer("pad", (source,), padded, options={"paddings": tuple(before)},
                              quantization=self.tensors[source].quantization)
        if kind == "concatenation":
            axis = self.number(1, 3)
            joined = tuple(2 * s if i == axis else s for i, s in enumerate(shape))
            return self.layer("concatenation", (source, source), joined, options={"axis": axis},
                              quantization=self.tensors[source].quantization)
        if self.dtype != "int8":
            return source
        return self.layer(kind, (source,), shape)

    def finish(self, source: int, inputs: tuple[int, ...]) -> Graph:
        """Mean or flatten, a fully connected layer and a softmax."""
        shape = self.tensors[source].shape
        if self.number(0, 1):
            source = self.layer("mean", (source,), (1, shape[3]),
                                options={"axes": (1, 2), "keep_dims": False})
        else:
            source = self.layer("reshape", (source,), (1, math.prod(shape)),
                                quantization=self.tensors[source].quantization)
        units, depth = self.number(2, 7), self.tensors[source].shape[1]
        source = self.weighted("fully_connected", source, (units, depth), units, (1, units), depth)
        probability = Quantization(scales=(1 / 256,), zero_points=(-128,))
        output = self.layer("softmax", (source,), (1, units),
                            quantization=probability if self.dtype == "int8" else None,
                            options={"axis": 1, "beta": 1.0})
        digest = hashlib.sha256(repr((self.layers, self.tensors)).encode())
        for tensor in self.tensors:
            if tensor.data is not None:
                digest.update(np.ascontiguousarray(tensor.data).tobytes())
        return Graph(name="random", source="random", sha256=digest.hexdigest(),
                     tensors=tuple(self.tensors), layers=tuple(self.layers), inputs=inputs,
                     outputs=(output,))


def random_network(seed: int, *, kinds: tuple[str, ...] | None = None, dtype: str = "int8",
                   layers: int = 10) -> Graph:
    """A network of random layers on an image of up to 12 x 12 x 9, kept at least 3 x 3."""
    maker = NetworkMaker(seed, dtype)
    shape = (1, maker.number(6, 12), maker.number(6, 12), maker.number(1, 9))
    first = before = here = maker.tensor(shape, quantization=maker.quantization())
    order = kinds or tuple(maker.random.permutation([*WINDOWED, *ELEMENTWISE]))[:layers]
    for kind in order:
        shape = maker.tensors[here].shape
        if min(shape[1:3]) < 3 or math.prod(shape) > 12_000:
            break
        made = (maker.slide if kind in WINDOWED else
                lambda k, s, b=before: maker.element(k, s, b))(str(kind), here)
        before, here = here, made
    return maker.finish(here, (first,))
