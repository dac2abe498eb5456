"""Networks of the zoo over sequences: a keyword transformer, a recurrent one."""

from __future__ import annotations

import math

import numpy as np

from twin.network.graph import Graph, Quantization
from twin.network.zoo.builder import PROBABILITY, SIGNED, Builder
from twin.network.zoo.networks import start


def keyword_transformer(name: str = "kwt1", depth: int = 12, width: int = 64, heads: int = 1,
                        classes: int = 35) -> Graph:
    """KWT: a transformer on 98 frames of 40 coefficients; KWT-1 by default.

    Notes
    -----
    Normalisations are spelt out as TensorFlow Lite's converter does: mean, squared difference,
    mean, sum with epsilon, reciprocal root, then products and sums.

    References
    ----------
    Berg, O'Connor and Cruz, Keyword Transformer, 2021, table 1.
    """
    net = start(name)
    x = _dense(net, net.input((1, 98, 40)), width)
    token = net.tensor("class_token", (1, 1, width), data=np.ones((1, 1, width), np.int8))
    x = net.layer("concatenation", (token, x), (1, 99, width), axis=1)
    places = net.tensor("positions", (1, 99, width), data=np.ones((1, 99, width), np.int8))
    x = net.add(x, places)
    for _ in range(depth):
        x = _normalise(net, net.add(x, _attend(net, x, heads)))
        inner = net.layer("gelu", (_dense(net, x, 4 * width),), (1, 99, 4 * width))
        x = _normalise(net, net.add(x, _dense(net, inner, width)))
    first = net.layer("slice", (x,), (1, 1, width), begin=(0, 0, 0), strides=(1, 1, 1))
    return net.finish(net.softmax(net.fully_connected(net.flatten(first), classes)))


def lstm(name: str = "lstm", steps: int = 49, features: int = 10, units: int = 64,
         classes: int = 12) -> Graph:
    """Keyword spotting by one LSTM layer over 49 frames of 10 coefficients.

    References
    ----------
    Zhang et al., Hello Edge, 2017, section 3.3; the LSTM as TensorFlow Lite fuses Keras's.
    """
    net = start(name)
    source = net.input((1, steps, features))
    scale = Quantization(scales=(1 / 128 / math.sqrt(units),), zero_points=(0,))
    weights = [net.tensor(f"lstm/{what}", (4 * units, depth), quantization=scale,
                          data=net.integers((4 * units, depth)))
               for what, depth in (("weights", features), ("recurrent", units))]
    bias = net.tensor("lstm/bias", (4 * units,), "int32",
                      data=np.zeros(4 * units, np.int32), quantization=None)
    hidden = net.tensor("lstm/hidden", (1, units))
    cell = net.tensor("lstm/cell", (1, units), "int16")
    last = net.layer("lstm", (source, *weights, bias, hidden, cell), (1, units))
    return net.finish(net.softmax(net.fully_connected(last, classes)))


def _dense(net: Builder, source: int, units: int) -> int:
    """Return a fully connected layer of every row."""
    return net.fully_connected(source, units, rows=True)


def _attend(net: Builder, source: int, heads: int) -> int:
    _, rows, width = net.shape(source)
    each = width // heads
    parts = []
    for _ in range(3):
        x = _dense(net, source, width)
        x = net.layer("reshape", (x,), (1, rows, heads, each))
        parts.append(net.layer("transpose", (x,), (1, heads, rows, each), perm=(0, 2, 1, 3)))
    query, key, value = parts
    scores = net.layer("batch_matmul", (query, key), (1, heads, rows, rows), adj_x=False,
                       adj_y=True)
    factor = net.tensor("scale", (), data=np.asarray(64, np.int8))
    scores = net.layer("mul", (scores, factor), (1, heads, rows, rows))
    shares = net.layer("softmax", (scores,), (1, heads, rows, rows), quantization=PROBABILITY,
                       axis=3, beta=1.0)
    mixed = net.layer("batch_matmul", (shares, value), (1, heads, rows, each), adj_x=False,
                      adj_y=False)
    mixed = net.layer("transpose", (mixed,), (1, rows, heads, each), perm=(0, 2, 1, 3))
    return _dense(net, net.layer("reshape", (mixed,), (1, rows, width)), width)


def _normalise(net: Builder, source: int) -> int:
    shape = net.shape(source)
    kept = (*shape[:-1], 1)
    mean = net.layer("mean", (source,), kept, axes=(2,), keep_dims=True)
    apart = net.layer("squared_difference", (source, mean), shape)
    variance = net.layer("mean", (apart,), kept, axes=(2,), keep_dims=True)
    epsilon = net.tensor("epsilon", (), data=np.asarray(1, np.int8), quantization=SIGNED)
    root = net.layer("rsqrt", (net.layer("add", (variance, epsilon), kept),), kept)
    gamma, beta = (net.tensor(what, shape[-1:], data=np.ones(shape[-1], np.int8))
                   for what in ("gamma", "beta"))
    factor = net.layer("mul", (root, gamma), shape)
    scaled = net.layer("mul", (source, factor), shape)
    shifted = net.layer("mul", (mean, factor), shape)
    offset = net.layer("sub", (beta, shifted), shape)
    return net.layer("add", (scaled, offset), shape)
