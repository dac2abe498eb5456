"""Build a graph layer by layer: any, or a quantised one with seeded random weights."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from twin.network.graph import Graph, Layer, Quantization, RowsColumns, Shape, Tensor, Window

# Activations are scaled for values of about unit variance, which He-initialised weights keep:
# six standard deviations above zero after a rectifier, four to either side otherwise.
# Files keep scales as float32, so these are.
RECTIFIED = Quantization(scales=(float(np.float32(6 / 255)),), zero_points=(-128,))
SIGNED = Quantization(scales=(float(np.float32(8 / 255)),), zero_points=(0,))
IMAGE = Quantization(scales=(float(np.float32(1 / 255)),), zero_points=(0,))
"""Of unsigned pixels between 0 and 1."""
PROBABILITY = Quantization(scales=(1 / 256,), zero_points=(-128,))
"""What TensorFlow Lite demands of the output of softmax and logistic."""

_WEIGHT_RMS = 127 / math.sqrt(3)  # of integers uniform in [-127, 127]

MOST_WEIGHTS = 2**27
"""Weights that are made at random for a network; no part holds half of them."""


class GraphDraft:
    """Tensors and layers made so far, each numbered in the order it is added."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._layers: list[Layer] = []

    def add_tensor(self, tensor: Tensor) -> int:
        """Add a tensor and return its index."""
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def append_layer(self, name: str, op: str, inputs: Sequence[int], outputs: Sequence[int], *,
                     window: Window | None = None, activation: str | None = None, groups: int = 1,
                     assumed: bool = False, **options: Any) -> None:
        """Add a layer behind the others; what is no field of a `Layer` is an option."""
        self._layers.append(Layer(
            index=len(self._layers), name=name, op=op, inputs=tuple(inputs),
            outputs=tuple(outputs), window=window, activation=activation, groups=groups,
            assumed=assumed, options=tuple(sorted(options.items()))))


class Builder(GraphDraft):
    """A graph under construction; methods add a layer and return its output tensor's index.

    Parameters
    ----------
    seed
        Of the random weights: the same seed gives the same graph.
    """

    def __init__(self, name: str, seed: int) -> None:
        super().__init__()
        self.name = name
        self._random = np.random.default_rng(seed)
        self._inputs: list[int] = []
        self._dead: dict[int, np.ndarray] = {}
        self._weights = 0

    def shape(self, tensor: int) -> Shape:
        """Return the shape of a tensor."""
        return self._tensors[tensor].shape

    def quantization(self, tensor: int) -> Quantization | None:
        """Return the quantisation of a tensor."""
        return self._tensors[tensor].quantization

    def tensor(self, name: str, shape: Sequence[int], dtype: str = "int8",
               quantization: Quantization | None = SIGNED, data: np.ndarray | None = None) -> int:
        """Add a tensor and return its index."""
        return self.add_tensor(Tensor(name=name, shape=tuple(shape), dtype=dtype, data=data,
                                      quantization=quantization))

    def input(self, shape: Sequence[int], dtype: str = "int8",
              quantization: Quantization | None = SIGNED) -> int:
        """Add an input of the network."""
        self._inputs.append(self.tensor("input", shape, dtype, quantization))
        return self._inputs[-1]

    def layer(self, op: str, inputs: Sequence[int], shape: Sequence[int], *,
              quantization: Quantization | None = SIGNED, dtype: str = "int8",
              **options: Any) -> int:
        """Add a layer with one output of that shape and return the output."""
        name = f"{op}_{len(self._layers)}"
        output = self.tensor(name, shape, dtype, quantization)
        self.append_layer(name, op, inputs, (output,), **options)
        return output

    def layers(self, op: str, inputs: Sequence[int], shapes: Sequence[Sequence[int]],
               **options: Any) -> tuple[int, ...]:
        """Add a layer with several float outputs and return them."""
        first = self.layer(op, inputs, shapes[0], dtype="float32", quantization=None, **options)
        last = self._layers[-1]
        more = tuple(self.tensor(f"{last.name}/{number}", shape, "float32", None)
                     for number, shape in enumerate(shapes[1:], 1))
        self._layers[-1] = replace(last, outputs=(first, *more))
        return first, *more

    def integers(self, shape: Shape) -> np.ndarray:
        """Return random weights."""
        return self._integers(shape)

    def conv(self, source: int, channels: int, kernel: int | RowsColumns,
             stride: int | RowsColumns = 1, *, padding: str = "same",
             activation: str | None = "relu", live: int | None = None) -> int:
        """Add a convolution.

        Parameters
        ----------
        source
            Input tensor, NHWC.
        channels
            Output channels.
        kernel, stride : int or (height, width)
            Of the window.
        padding
            "same" or "valid".
        live
            All but that many output channels, chosen at random, get zero weights here and in
            the next convolution or fully connected layer that reads them.
        """
        window = self._window(source, kernel, stride, padding)
        depth = self.shape(source)[3]
        weights = self._integers((channels, *window.kernel, depth))
        if source in self._dead:
            weights[..., self._dead[source]] = 0
        dead = None
        if live is not None:
            dead = np.zeros(channels, bool)
            dead[self._random.permutation(channels)[live:]] = True
            weights[dead] = 0
        fan_in = math.prod(window.kernel) * depth
        output = self._weighted("conv_2d", source, weights, axis=0, fan_in=fan_in,
                                shape=self._slid(source, window, channels), window=window,
                                activation=activation)
        if dead is not None:
            self._dead[output] = dead
        return output

    def depthwise(self, source: int, kernel: int | RowsColumns,
                  stride: int | RowsColumns = 1, *, padding: str = "same",
                  activation: str | None = "relu") -> int:
        """Add a depthwise convolution with one filter per channel."""
        window = self._window(source, kernel, stride, padding)
        channels = self.shape(source)[3]
        weights = self._integers((1, *window.kernel, channels))
        output = self._weighted("depthwise_conv_2d", source, weights, axis=3,
                                fan_in=math.prod(window.kernel),
                                shape=self._slid(source, window, channels), window=window,
                                activation=activation, groups=channels)
        return self._pass_dead(source, output)

    def fully_connected(self, source: int, units: int, activation: str | None = None, *,
                        rows: bool = False) -> int:
        """Add a fully connected layer with one scale for all its weights, of all or of each row."""
        inputs = self.shape(source)[-1]
        weights = self._integers((units, inputs))
        if source in self._dead:
            weights[:, self._dead[source]] = 0
        return self._weighted("fully_connected", source, weights, axis=None, fan_in=inputs,
                              shape=(*self.shape(source)[:-1], units) if rows else (1, units),
                              activation=activation)

    def pool(self, op: str, source: int, kernel: int | RowsColumns,
             stride: int | RowsColumns | None = None, *, padding: str = "valid") -> int:
        """Add average_pool_2d or max_pool_2d; the stride is the kernel's unless given."""
        window = self._window(source, kernel, kernel if stride is None else stride, padding)
        output = self.layer(op, (source,), self._slid(source, window, self.shape(source)[3]),
                            quantization=self.quantization(source), window=window)
        return self._pass_dead(source, output)

    def mean(self, source: int) -> int:
        """Add a mean over height and width."""
        batch, _, _, channels = self.shape(source)
        output = self.layer("mean", (source,), (batch, channels), axes=(1, 2), keep_dims=False,
                            quantization=self.quantization(source))
        return self._pass_dead(source, output)

    def flatten(self, source: int) -> int:
        """Add a reshape to (1, elements)."""
        shape = self.shape(source)
        output = self.layer("reshape", (source,), (1, math.prod(shape)),
                            quantization=self.quantization(source))
        return self._pass_dead(source, output) if math.prod(shape[:-1]) == 1 else output

    def add(self, left: int, right: int, activation: str | None = None) -> int:
        """Add an element-wise sum."""
        return self.layer("add", (left, right), self.shape(left), activation=activation,
                          quantization=RECTIFIED if activation else SIGNED)

    def concatenate(self, *sources: int) -> int:
        """Add a concatenation of channels."""
        channels = sum(self.shape(source)[3] for source in sources)
        return self.layer("concatenation", sources, (*self.shape(sources[0])[:3], channels),
                          quantization=self.quantization(sources[0]), axis=3)

    def softmax(self, source: int) -> int:
        """Add a softmax over the last axis."""
        shape = self.shape(source)
        return self.layer("softmax", (source,), shape, quantization=PROBABILITY,
                          axis=len(shape) - 1, beta=1.0)

    def finish(self, *outputs: int, source: str | None = None) -> Graph:
        """Return the graph, whose constants can only be read."""
        for tensor in self._tensors:
            if tensor.data is not None:
                tensor.data.setflags(write=False)
        return Graph(name=self.name, source=source or f"zoo:{self.name}",
                     sha256=_content_hash(self._tensors, self._layers),
                     tensors=tuple(self._tensors), layers=tuple(self._layers),
                     inputs=tuple(self._inputs), outputs=outputs)

    def _weighted(self, op: str, source: int, weights: np.ndarray, *, axis: int | None,
                  fan_in: int, shape: Sequence[int], activation: str | None,
                  window: Window | None = None, groups: int = 1) -> int:
        name = f"{op}_{len(self._layers)}"
        channels = shape[-1]
        # He initialisation: weights of variance 2 / fan-in keep the variance of activations.
        scale = math.sqrt(2 / fan_in) / _WEIGHT_RMS
        count = 1 if axis is None else channels
        # Trained per-channel scales differ by about this much.
        factors = np.ones(1) if axis is None else self._random.uniform(0.5, 1.5, channels)
        scales = tuple((scale * factors).astype(np.float32).tolist())
        axis = axis if count > 1 else None
        weights_id = self.tensor(
            f"{name}/weights", weights.shape, data=weights,
            quantization=Quantization(scales=scales, zero_points=(0,) * count, axis=axis))
        entry = self.quantization(source)
        if entry is None:
            raise ValueError(f"{name} reads a tensor that is not quantised, and its "
                             "weights are; accepted: an int8 or uint8 input")
        bias_scales = np.float32(entry.scales[0]) * np.asarray(scales, np.float32)
        bias = self._random.uniform(-0.1, 0.1, channels) / bias_scales
        bias_id = self.tensor(
            f"{name}/bias", (channels,), "int32", data=np.rint(bias).astype(np.int32),
            quantization=Quantization(scales=tuple(bias_scales.tolist()),
                                      zero_points=(0,) * count, axis=None if count == 1 else 0))
        return self.layer(op, (source, weights_id, bias_id), shape, window=window,
                          activation=activation, groups=groups,
                          quantization=RECTIFIED if activation else SIGNED)

    def _integers(self, shape: Shape) -> np.ndarray:
        # A channel has scales and a bias besides, as numbers of Python.
        self._weights += math.prod(shape) + 256 * max(shape[0], shape[-1])
        if self._weights > MOST_WEIGHTS:
            raise ValueError(f"layer {len(self._layers)} has weights of shape "
                             f"{list(shape)}; at most {MOST_WEIGHTS:,} are made for a network")
        return self._random.integers(-127, 128, shape, dtype=np.int8)

    def _window(self, source: int, kernel: int | RowsColumns, stride: int | RowsColumns,
                padding: str) -> Window:
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        stride = (stride, stride) if isinstance(stride, int) else stride
        window = Window(kernel=kernel, stride=stride)
        return window.pad_same(*self.shape(source)[1:3]) if padding == "same" else window

    def _slid(self, source: int, window: Window, channels: int) -> tuple[int, ...]:
        batch, height, width, _ = self.shape(source)
        return batch, *window.slide(height, width), channels

    def _pass_dead(self, source: int, output: int) -> int:
        if source in self._dead:
            self._dead[output] = self._dead[source]
        return output


def _content_hash(tensors: list[Tensor], layers: list[Layer]) -> str:
    digest = hashlib.sha256(repr(layers).encode())
    for tensor in tensors:
        digest.update(f"{tensor.shape}{tensor.dtype}{tensor.quantization}".encode())
        if tensor.data is not None:
            digest.update(np.ascontiguousarray(tensor.data).data)
    return digest.hexdigest()
