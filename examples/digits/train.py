"""Train 48 small convolutional networks on scikit-learn's digits and write them as int8 .tflite.

    python examples/digits/train.py data FOLDER   # digits.npz and digits4.npz alone: a second
    python examples/digits/train.py all FOLDER    # and the networks: about ten minutes

NumPy alone trains: Adam, cross-entropy, 40 epochs, no augmentation, seed 0. The 1,797 images of
8 x 8 are split by their order: 1,200 to train (the first 100 of them give ranges of activations),
597 to test. `digits.npz` and `digits4.npz` (images of 4 x 4, means of 2 x 2) are written beside the
networks; FLOAT are written as float32 too.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from twin.network.arithmetic import run_network
from twin.network.graph import Graph, Layer, Tensor, Window, same_padding
from twin.network.rewrites.precision import change_precision
from twin.network.writers.tflite import encode_tflite
from twin.studies.accuracy import store_input

TRAINED, RANGED, CLASSES = 1200, 100, 10
EPOCHS, BATCH, RATE = 40, 32, 3e-3
WIDTHS, BLOCKS, KINDS, SIDES = (1, 2, 4, 8, 12, 16), (1, 2), ("conv", "separable"), (4, 8)
FLOAT = ("conv_8_2_8", "separable_8_2_8", "conv_16_1_8", "separable_4_1_8")


def load(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images from 0 to 1, shape (1797, side, side, 1), and labels."""
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8, 1).astype(np.float32) / 16
    if side == 4:
        images = images.reshape(-1, 4, 2, 4, 2, 1).mean(axis=(2, 4))
    return images, labels


class Conv:
    """A convolution of padding SAME and ReLU, of all channels or depthwise."""

    def __init__(self, rng: Any, size: int, inputs: int, outputs: int, stride: int,
                 depthwise: bool) -> None:
        self.size, self.stride, self.depthwise = size, stride, depthwise
        fan = size * size * (1 if depthwise else inputs)
        shape = (size, size, inputs) if depthwise else (size, size, inputs, outputs)
        self.weights = [rng.normal(0, np.sqrt(2 / fan), shape).astype(np.float32),
                        np.zeros(outputs, np.float32)]

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs of a batch in NHWC."""
        self.pads = same_padding(x.shape[1], self.size, self.stride, 1)
        self.padded = np.pad(x, ((0, 0), self.pads, self.pads, (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(
            self.padded, (self.size, self.size), (1, 2))[:, ::self.stride, ::self.stride]
        self.windows = windows
        how = "nhwcij,ijc->nhwc" if self.depthwise else "nhwcij,ijco->nhwo"
        out = np.einsum(how, windows, self.weights[0], optimize=True) + self.weights[1]
        self.positive = out > 0
        return out * self.positive

    def backward(self, grad: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return gradients of the inputs and of weights and bias."""
        grad = grad * self.positive
        d, s, how = self.depthwise, self.stride, "nhwcij,nhw{0}->ijc{1}"
        weights = np.einsum(how.format("c", "") if d else how.format("o", "o"), self.windows, grad,
                            optimize=True)
        back, (before, after) = np.zeros_like(self.padded), self.pads
        rows, columns = grad.shape[1] * s, grad.shape[2] * s
        for i, j in itertools.product(range(self.size), repeat=2):
            part = grad * self.weights[0][i, j] if d else grad @ self.weights[0][i, j].T
            back[:, i:i + rows:s, j:j + columns:s] += part
        side = back.shape[1]
        return (back[:, before:side - after, before:side - after],
                [weights, grad.sum(axis=(0, 1, 2))])


def build(rng: Any, kind: str, width: int, blocks: int) -> list[Conv]:
    """Return the convolutions: a 3x3 one, then blocks of stride 2 and twice the channels."""
    layers, depth = [Conv(rng, 3, 1, width, 1, False)], width
    for _ in range(blocks):
        if kind == "conv":
            layers.append(Conv(rng, 3, depth, 2 * depth, 2, False))
        else:
            layers += [Conv(rng, 3, depth, depth, 2, True),
                       Conv(rng, 1, depth, 2 * depth, 1, False)]
        depth *= 2
    return layers


def train(kind: str, width: int, blocks: int, side: int) -> tuple[list[Conv], list[np.ndarray]]:
    """Return trained convolutions, and weights and bias of the last layer."""
    rng = np.random.default_rng(0)
    images, labels = load(side)
    x, y = images[:TRAINED], labels[:TRAINED]
    layers, last = build(rng, kind, width, blocks), side // 2**blocks
    features = last * last * width * 2**blocks
    dense = [rng.normal(0, np.sqrt(1 / features), (features, CLASSES)).astype(np.float32),
             np.zeros(CLASSES, np.float32)]
    held = [array for one in layers for array in one.weights] + dense
    first, second = ([np.zeros_like(array) for array in held] for _ in range(2))
    step = 0
    for epoch in range(EPOCHS):
        order, rate = rng.permutation(TRAINED), RATE * (1 - epoch / EPOCHS)
        for begin in range(0, TRAINED, BATCH):
            chosen = order[begin:begin + BATCH]
            out = x[chosen]
            for one in layers:
                out = one.forward(out)
            flat = out.reshape(len(chosen), -1)
            scores = flat @ dense[0] + dense[1]
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            wrong = scores / scores.sum(axis=1, keepdims=True)
            wrong[np.arange(len(chosen)), y[chosen]] -= 1
            wrong /= len(chosen)
            grads, back = [flat.T @ wrong, wrong.sum(axis=0)], (wrong @ dense[0].T).reshape(
                out.shape)
            for one in reversed(layers):
                back, own = one.backward(back)
                grads = own + grads
            step += 1
            for array, grad, m, v in zip(held, grads, first, second, strict=True):
                m += 0.1 * (grad - m)
                v += 0.001 * (grad * grad - v)
                array -= (rate * (m / (1 - 0.9**step)) / (
                    np.sqrt(v / (1 - 0.999**step)) + 1e-8)).astype(np.float32)
    return layers, dense


def to_graph(name: str, side: int, layers: list[Conv], dense: list[np.ndarray]) -> Graph:
    """Return a trained network as the twin reads one, of float32."""
    tensors = [Tensor(name="image", shape=(1, side, side, 1), dtype="float32")]
    made: list[Layer] = []

    def add(op: str, shape: tuple[int, ...], data: list[np.ndarray], **more: Any) -> None:
        here = len(made) and made[-1].outputs[0]
        constants = []
        for array in data:
            constants.append(len(tensors))
            tensors.append(Tensor(name=f"{op}_{len(made)}_{len(constants)}", shape=array.shape,
                                  dtype="float32", data=np.ascontiguousarray(array)))
        tensors.append(Tensor(name=f"out_{len(made)}", shape=shape, dtype="float32"))
        made.append(Layer(index=len(made), name=f"{op}_{len(made)}", op=op,
                          inputs=(here, *constants), outputs=(len(tensors) - 1,), **more))

    size = side
    for one in layers:
        out = -(-size // one.stride)
        window = Window(kernel=(one.size,) * 2, stride=(one.stride,) * 2,
                        padding=same_padding(size, one.size, one.stride, 1) * 2)
        depth = len(one.weights[1])
        kernel = (one.weights[0][None] if one.depthwise else one.weights[0].transpose(3, 0, 1, 2))
        add("depthwise_conv_2d" if one.depthwise else "conv_2d", (1, out, out, depth),
            [kernel, one.weights[1]], window=window, activation="relu",
            groups=depth if one.depthwise else 1)
        size = out
    add("reshape", (1, len(dense[0])), [])
    add("fully_connected", (1, CLASSES), [dense[0].T, dense[1]])
    return Graph(name=name, source="examples/digits", sha256="", tensors=tuple(tensors),
                 layers=tuple(made), inputs=(0,), outputs=(len(tensors) - 1,))


def find_ranges(graph: Graph, images: np.ndarray) -> dict[int, tuple[float, float]]:
    """Return least and largest value of every activation over images."""
    ranges: dict[int, tuple[float, float]] = {}
    for image in images:
        stored = store_input(image, graph.tensors[graph.inputs[0]])
        for number, values in run_network(graph, [stored]).items():
            low, high = ranges.get(number, (0.0, 0.0))
            ranges[number] = min(low, float(values.min())), max(high, float(values.max()))
    return ranges


def write_data(folder: Path) -> None:
    """Write the images to test on."""
    folder.mkdir(parents=True, exist_ok=True)
    for side in SIDES:
        images, labels = load(side)
        np.savez_compressed(folder / f"digits{side if side != 8 else ''}.npz",
                            x=images[TRAINED:], y=labels[TRAINED:])


def main(folder: Path) -> None:
    """Train every network, quantise it and write it."""
    write_data(folder)
    for kind, width, blocks, side in itertools.product(KINDS, WIDTHS, BLOCKS, SIDES):
        name = f"{kind}_{width}_{blocks}_{side}"
        graph = to_graph(name, side, *train(kind, width, blocks, side))
        quantised = change_precision(graph, "int8", find_ranges(graph, load(side)[0][:RANGED]))
        (folder / f"{name}.tflite").write_bytes(encode_tflite(quantised))
        if name in FLOAT:
            (folder / f"{name}_float.tflite").write_bytes(encode_tflite(graph))
        print(name, flush=True)


if __name__ == "__main__":
    what, where = sys.argv[1:]
    {"data": write_data, "all": main}[what](Path(where))
