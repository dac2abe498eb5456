"""Small graphs for the readers', writers' and operators' tests."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from twin.network.graph import Graph, Layer, Quantization, Tensor, Window
from twin.network.zoo.builder import Builder

MODELS = [Path(folder) for folder in os.environ.get("TWIN_MODELS", "").split(os.pathsep) if folder]
MLPERF_TINY = {"kws": "kws_ref_model.tflite", "ic": "ic_pretrainedResnet_quant.tflite",
               "vww": "vww_96_int8.tflite", "ad": "ad01_int8.tflite",
               "sww": "sww_str_ww_ref_model.tflite"}
QUANTIZED = Quantization(scales=(0.5,), zero_points=(3,))
needs_models = pytest.mark.skipif(
    not MODELS, reason="TWIN_MODELS names no folder of MLPerf Tiny's .tflite files")


def list_models(*suffixes: str) -> list[Path]:
    """Files of the folders of TWIN_MODELS with one of the endings."""
    return sorted(path for folder in MODELS for path in folder.iterdir() if path.suffix in suffixes)


def model_file(name: str) -> Path:
    """Path of a reference model; skips where no folder has it."""
    paths = [folder / MLPERF_TINY.get(name, name) for folder in MODELS]
    found = next((path for path in paths if path.is_file()), None)
    return found or pytest.skip(f"no folder of TWIN_MODELS has {paths[0].name}" if paths else
                                "TWIN_MODELS names no folder")


def tensor(shape, dtype="int8", data=None, name="", quantization=QUANTIZED):
    """A tensor; `data` may be "random"."""
    if isinstance(data, str):
        random = np.random.default_rng(len(shape) + sum(shape))
        data = random.integers(-8, 8, shape).astype("int8" if dtype == "int4" else dtype)
    if dtype in ("float32", "float16"):
        quantization = None
    return Tensor(name=name, shape=tuple(shape), dtype=dtype, data=data,
                  quantization=quantization)


def one_layer(op, inputs, outputs, **layer) -> Graph:
    """A graph of one layer; constants among the inputs are those with data."""
    options = tuple(sorted(layer.pop("options", {}).items()))
    tensors = [Tensor(name=t.name or f"t{number}", shape=t.shape, dtype=t.dtype, data=t.data,
                      quantization=t.quantization) for number, t in enumerate((*inputs, *outputs))]
    places = tuple(range(len(inputs)))
    made = tuple(range(len(inputs), len(tensors)))
    return Graph(
        name="made", source="made", sha256="0" * 64, tensors=tuple(tensors),
        layers=(Layer(index=0, name=tensors[made[0]].name, op=op, inputs=places, outputs=made,
                      options=options, **layer),),
        inputs=tuple(i for i in places if tensors[i].data is None), outputs=made)


def conv_graph(dtype="int8", weights=None, **changes) -> Graph:
    """One 3x3 convolution, 8x6x3 to 8x6x4, with bias and relu."""
    weights = weights or ("float32" if dtype == "float32" else "int8")
    bias = {"float32": "float32", "int16": "int64"}.get(dtype, "int32")
    channel = Quantization(scales=(0.5, 0.25, 0.125, 1.0), zero_points=(0,) * 4, axis=0)
    layer = {"window": Window(kernel=(3, 3), padding=(1, 1, 1, 1)), "activation": "relu"}
    return one_layer(
        "conv_2d",
        [tensor((1, 8, 6, 3), dtype),
         tensor((4, 3, 3, 3), weights, "random", quantization=channel),
         tensor((4,), bias, "random", quantization=channel)],
        [tensor((1, 8, 6, 4), dtype)], **{**layer, **changes})


def assert_same_graph(left: Graph, right: Graph) -> None:
    """Equal layers, tensors, data and quantisation, up to the numbering of tensors."""
    assert left.architecture_id == right.architecture_id
    assert len(left.layers) == len(right.layers)
    number = {-1: -1}
    for one, other in zip(left.layers, right.layers, strict=True):
        for i, j in zip((*one.inputs, *one.outputs), (*other.inputs, *other.outputs),
                        strict=True):
            assert number.setdefault(i, j) == j
        for key in ("index", "name", "op", "window", "activation", "groups", "options",
                    "assumed"):
            assert getattr(one, key) == getattr(other, key), (one.name, key)
    assert tuple(number[i] for i in left.inputs) == right.inputs
    assert tuple(number[i] for i in left.outputs) == right.outputs
    del number[-1]
    for i, j in number.items():
        one, other = left.tensors[i], right.tensors[j]
        for key in ("name", "shape", "dtype", "quantization"):
            assert getattr(one, key) == getattr(other, key), (one.name, key)
        assert one.is_constant == other.is_constant
        if one.is_constant:
            np.testing.assert_array_equal(one.data, other.data)


def chain(sizes: list[int], op: str = "relu", links: list[int] | None = None) -> Graph:
    """A network of element-wise layers; layer i reads tensor links[i] and writes tensor i + 1."""
    tensors = tuple(Tensor(name=f"t{i}", shape=(1, size), dtype="int8",
                           quantization=Quantization(scales=(1.0,), zero_points=(0,)))
                    for i, size in enumerate(sizes))
    links = links or list(range(len(sizes) - 1))
    layers = tuple(Layer(index=i, name=f"l{i}", op=op, inputs=(links[i],), outputs=(i + 1,))
                   for i in range(len(sizes) - 1))
    return Graph(name="chain", source="test", sha256="0", tensors=tensors, layers=layers,
                 inputs=(0,), outputs=(len(sizes) - 1,))


def separable(name: str, size: tuple[int, int], depths: Sequence[int], units: int) -> Graph:
    """A chain of depthwise and pointwise convolutions, and a fully connected layer."""
    made = Builder(name, 5)
    here = made.input((1, *size, depths[0]))
    for depth in depths[1:]:
        here = made.conv(made.depthwise(here, (3, 3), (1, 1), padding="same"), depth, 1)
    return made.finish(made.fully_connected(made.flatten(here), units))
