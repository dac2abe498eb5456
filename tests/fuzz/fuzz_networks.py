"""Networks damaged with their form kept, so that what stands behind the parser meets them.

ONNX by field: attributes, shapes, constants and connections; layer lists by key. What is read
is placed and predicted.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fuzz_door import Door

HOSTILE = (0, 1, -1, 2, 3, -2, 7, 64, 255, 1000, 65_535, 65_536, 10**6, 2**31 - 1, 2**31, -2**31,
           2**32, 2**40, 2**62, 2**63 - 1, -2**63)
REALS = (0.0, -0.0, 1e-45, 1e38, 3.5e38, -1.0, 1e-20, float("nan"), float("inf"), float("-inf"))
WORDS = (b"", b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"NOTSET", b"linear", b"cubic", b"reverse",
         b"bidirectional", b"DCR", b"CRD", b"...ij->...ji", b"ii,ij,jk->k", b"\xff\x1b[2J",
         b"wrap", b"edge", b"reflect", b"x" * 3000)
READ = re.compile(r"macs says .*, the layers make (\d+)$")


def predict_network(path: Path, runtime: str = "tflm-reference") -> None:
    """Read, place and predict a network; by a library that has kernels for most types."""
    from twin.deployment.deploy import deploy
    from twin.network.readers import read_model
    from twin.pricing.inference import predict

    predict(deploy(read_model(path), "nucleo_l4r5zi", runtime=runtime))


def predict_list(path: Path) -> None:
    """Read a layer list as one whose sum is right, and predict it."""
    from twin.errors import ModelError

    try:
        predict_network(path, "tflm-cmsis-nn@2023")
    except ModelError as error:
        found = READ.search(str(error))
        if found is None:
            raise
        document = json.loads(path.read_bytes())
        document["macs"] = int(found[1])
        path.write_text(json.dumps(document))
        predict_network(path, "tflm-cmsis-nn@2023")


@lru_cache(maxsize=1)
def onnx_seeds() -> list[bytes]:
    """Networks of one operator or a few, each with attributes, axes or constants to damage."""
    import numpy as np
    from made_onnx import node, save, weights

    image, row, many = {"x": [1, 4, 8, 8]}, {"x": [1, 12]}, np.int64
    made: list[tuple[list[Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = [
        ([node("Conv", "x w b", "y", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2],
               dilations=[1, 1], group=2)], image, {"y": [1, 4, 4, 4]},
         {"w": weights(4, 2, 3, 3), "b": weights(4)}),
        ([node("ConvTranspose", "x w", "y", kernel_shape=[2, 2], strides=[2, 2],
               output_padding=[0, 0], pads=[0, 0, 0, 0])], image, {"y": [1, 2, 16, 16]},
         {"w": weights(4, 2, 2, 2)}),
        ([node("MaxPool", "x", "m", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
          node("AveragePool", "m", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1],
               count_include_pad=1), node("Flatten", "a", "f", axis=1),
          node("Gemm", "f w b", "y", transB=1, alpha=1.0, beta=1.0)], image, {"y": [1, 3]},
         {"w": weights(3, 64), "b": weights(3)}),
        ([node("Transpose", "x", "t", perm=[0, 2, 3, 1]), node("Reshape", "t s", "r"),
          node("Concat", "r r", "c", axis=1), node("Split", "c p", "u v", axis=1),
          node("Add", "u v", "y")], image, {"y": [1, 256]},
         {"s": np.array([1, -1], many), "p": np.array([256, 256], many)}),
        ([node("Slice", "x b e a s", "l"), node("Pad", "l p", "d", mode="constant"),
          node("Gather", "d i", "g", axis=1), node("ReduceMean", "g", "y", axes=[2, 3],
                                                   keepdims=0)], image, {"y": [1, 2]},
         {"b": np.array([0, 1], many), "e": np.array([8, 7], many), "a": np.array([2, 3], many),
          "s": np.array([1, 1], many), "p": np.array([0, 0, 1, 1, 0, 0, 1, 1], many),
          "i": np.array([0, 3], many)}),
        ([node("Resize", "x o k", "r", mode="nearest"), node("DepthToSpace", "r", "d", blocksize=2),
          node("Clip", "d l h", "c"), node("Softmax", "c", "y", axis=1)], image,
         {"y": [1, 1, 32, 32]}, {"o": np.zeros(0, np.float32),
                                 "k": np.array([1, 1, 2, 2], np.float32),
                                 "l": np.array(0, np.float32), "h": np.array(6, np.float32)}),
        ([node("LSTM", "x w r b", "y", hidden_size=4, direction="forward")],
         {"x": [5, 1, 3]}, {"y": [5, 1, 1, 4]},
         {"w": weights(1, 16, 3), "r": weights(1, 16, 4), "b": weights(1, 32)}),
        ([node("MatMul", "x w", "m"), node("Add", "m b", "a"), node("Sigmoid", "a", "s"),
          node("Mul", "a s", "z"), node("Expand", "z e", "t"), node("Unsqueeze", "t u", "q"),
          node("Einsum", "q q", "y", equation="abc,abc->ac")], row, {"y": [1, 5]},
         {"w": weights(12, 5), "b": weights(5), "e": np.array([3, 5], many),
          "u": np.array([0], many)}),
        ([node("Range", "a b c", "n"), node("Cast", "n", "f", to=1), node("Tile", "f t", "g"),
          node("Shape", "g", "h"), node("ConstantOfShape", "h", "o"), node("Mul", "o x", "y")],
         {"x": [1, 24]}, {"y": [1, 24]},
         {"a": np.array(0, many), "b": np.array(12, many), "c": np.array(1, many),
          "t": np.array([2], many)}),
        ([node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
          node("TopK", "d k", "v i", axis=1, largest=1), node("Relu", "v", "y")], row,
         {"y": [1, 3]}, {"s": np.array(0.1, np.float32), "z": np.array(3, np.int8),
                         "k": np.array([3], many)}),
    ]
    with tempfile.TemporaryDirectory() as folder:
        return [save(Path(folder), *parts).read_bytes() for parts in made]


def damage_onnx_deeply(dice: random.Random, data: bytes) -> bytes:
    """Change one to three attributes, shapes, constants or connections of an ONNX graph."""
    import onnx

    model = onnx.load_model_from_string(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        dice.choice(ONNX_CHANGES)(dice, model.graph)
    if dice.random() < 0.05:
        model.opset_import[0].version = dice.choice((0, 1, 7, 11, 13, 25, 2**40))
    return model.SerializeToString()


def _change_attribute(dice: random.Random, graph: Any) -> None:
    nodes = [one for one in graph.node if one.attribute]
    if not nodes:
        return
    attribute = dice.choice(dice.choice(nodes).attribute)
    if attribute.ints:
        _change_list(dice, attribute.ints, HOSTILE)
    elif attribute.floats:
        _change_list(dice, attribute.floats, REALS)
    elif attribute.s:
        attribute.s = dice.choice(WORDS)
    elif dice.random() < 0.5:
        attribute.i = dice.choice(HOSTILE)
    else:
        attribute.f = dice.choice(REALS)
    if dice.random() < 0.1:
        attribute.type = dice.randrange(1, 11)


def _change_list(dice: random.Random, values: Any, hostile: tuple[Any, ...]) -> None:
    change = dice.randrange(4)
    if change == 0:
        del values[dice.randrange(len(values)):]
    elif change == 1:
        values.extend([dice.choice(hostile)] * dice.choice((1, 2, 30, 2000)))
    elif change == 2:
        values[:] = [dice.choice(hostile)] * len(values)
    else:
        values[dice.randrange(len(values))] = dice.choice(hostile)


def _change_shape(dice: random.Random, graph: Any) -> None:
    shape = dice.choice([*graph.input, *graph.output]).type.tensor_type.shape
    change = dice.randrange(4)
    if change == 0 and shape.dim:
        del shape.dim[dice.randrange(len(shape.dim)):]
    elif change == 1:
        for _ in range(dice.choice((1, 3, 70))):
            shape.dim.add().dim_value = dice.choice(HOSTILE)
    elif shape.dim:
        one = dice.choice(shape.dim)
        if change == 2:
            one.dim_param = dice.choice(("n", "", "n+1", "\x1b[2J"))
        else:
            one.dim_value = dice.choice(HOSTILE)


def _change_constant(dice: random.Random, graph: Any) -> None:
    import numpy as np
    from onnx import numpy_helper

    if not graph.initializer:
        return
    one = dice.choice(graph.initializer)
    change = dice.randrange(6)
    if change == 0 and one.dims:
        _change_list(dice, one.dims, HOSTILE)  # its bytes are then too few, or too many
    elif change == 1:
        one.data_type = dice.randrange(0, 24)
    elif change == 2:
        one.raw_data = one.raw_data[:dice.randrange(len(one.raw_data) + 1)]
    else:
        try:
            kind = numpy_helper.to_array(one).dtype
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # damaged before
        count = dice.choice((0, 1, 2, 3, 5, 8, 100))
        values = [dice.choice(HOSTILE if kind.kind == "i" else REALS) for _ in range(count)]
        if kind.kind == "i" and dice.random() < 0.5:
            values = [dice.choice((-3, -1, 0, 1, 2, 9)) for _ in range(count)]
        with np.errstate(all="ignore"):
            array = np.array(values).astype(kind)
        name, shape = one.name, dice.choice(((count,), (1, count), (count, 1, 1), ()))
        if shape == () and count:
            array = array[:1]
        one.CopyFrom(numpy_helper.from_array(
            array.reshape(shape) if shape or array.size == 1 else array, name))


def _change_graph(dice: random.Random, graph: Any) -> None:
    node, change = dice.choice(graph.node), dice.randrange(9)
    names = [name for one in graph.node for name in (*one.input, *one.output)]
    if change == 0 and node.input:  # a circle, a later value, another one
        node.input[dice.randrange(len(node.input))] = dice.choice((*names, *node.output, "none"))
    elif change == 1 and node.output:
        node.output[0] = dice.choice(names)
    elif change == 2:
        node.op_type = dice.choice(graph.node).op_type if dice.random() < 0.3 else \
            dice.choice(OPERATORS)
    elif change == 3 and node.input:
        del node.input[dice.randrange(len(node.input)):]
    elif change == 4:
        node.input.extend([dice.choice(names)] * dice.choice((1, 3, 300)))
    elif change == 5:
        for place in range(dice.choice((2, 50))):  # a chain of the same
            more = graph.node.add()
            more.CopyFrom(node)
            more.input[:] = [graph.node[-2].output[0], *node.input[1:]]
            more.output[:] = [f"more{place}"]
        graph.output[0].name = graph.node[-1].output[0]
    elif change == 6 and graph.initializer:
        graph.initializer.add().CopyFrom(dice.choice(graph.initializer))
    elif change == 7:
        node.output.extend([dice.choice(names)] * dice.choice((1, 100)))
    else:
        graph.output[0].name = dice.choice(names)


ONNX_CHANGES: tuple[Callable[[random.Random, Any], None], ...] = (
    _change_attribute, _change_attribute, _change_shape, _change_constant, _change_constant,
    _change_graph)
OPERATORS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "MaxPool", "GlobalAveragePool", "Where",
             "Concat", "Slice", "Pad", "Gather", "Transpose", "Softmax", "Reshape", "Expand",
             "Tile", "Range", "ConstantOfShape", "Shape", "Squeeze", "Unsqueeze", "Split", "TopK",
             "ReduceMax", "ReduceSum", "LSTM", "GRU", "Einsum", "If", "Loop", "Resize", "Pow",
             "Div", "Mod", "RandomNormal", "NonZero", "OneHot", "ScatterND", "CumSum", "Identity",
             "DequantizeLinear", "BatchNormalization", "LayerNormalization", "Dropout")


@lru_cache(maxsize=1)
def list_seeds() -> list[bytes]:
    """Layer lists: one with every kind of layer."""
    def layer(op: str, inp: list[Any], out: list[int], **more: Any) -> dict[str, Any]:
        return {"op": op, "inp": inp, "out": [out], "dt": "i8", **more}

    def window(size: int) -> dict[str, Any]:
        return {"stride": [size, size], "pad": "SAME", "act": "RELU"}

    image, half = [1, 16, 16, 4], [1, 8, 8, 8]
    every = [
        layer("CONV_2D", [image], half, w=[8, 3, 3, 4], **window(2)),
        layer("DEPTHWISE_CONV_2D", [half], half, w=[1, 3, 3, 8], **window(1)),
        layer("ADD", [half, half], half), layer("MUL", [half], half),
        layer("PAD", [half], [1, 10, 10, 8]),
        layer("MAX_POOL_2D", [[1, 10, 10, 8]], [1, 5, 5, 8]),
        layer("TRANSPOSE", [[1, 5, 5, 8]], [1, 8, 5, 5]),
        layer("RESHAPE", [[1, 8, 5, 5]], [1, 200]),
        layer("FULLY_CONNECTED", [[1, 200]], [1, 10], w=[10, 200], act="NONE"),
        layer("SOFTMAX", [[1, 10]], [1, 10]), layer("LOGISTIC", [[1, 10]], [1, 10])]
    few = [layer("CONV_2D", [[1, 8, 8, 4]], [1, 8, 8, 2], w=[2, 1, 1, 4], **window(1)),
           layer("CONV_2D", [[1, 8, 8, 4]], [1, 8, 8, 2], w=[2, 3, 3, 4], **window(1)),
           layer("CONCATENATION", [[1, 8, 8, 2], [1, 8, 8, 2]], [1, 8, 8, 4]),
           layer("MEAN", [[1, 8, 8, 4]], [1, 1, 1, 4]), layer("QUANTIZE", [[1, 1, 1, 4]],
                                                              [1, 1, 1, 4])]
    return [json.dumps({"name": "x", "inputs": [[layers[0]["inp"][0], "i8"]], "macs": 0,
                        "layers": layers}).encode() for layers in (every, few)]


LIST_VALUES: Mapping[str, tuple[Any, ...]] = {
    "op": ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MEAN", "TRANSPOSE", "PAD",
           "SHAPE", "MAX_POOL_2D", "CONCATENATION", "RESHAPE", "SOFTMAX", "NONE", "", 7, None),
    "dt": ("i8", "u8", "f32", "i64", "", None, 8), "pad": ("SAME", "VALID", "", None, 1, "x" * 999),
    "act": ("NONE", "RELU", "RELU6", "TANH", None, 1, "\x1b[2J")}


def damage_list(dice: random.Random, data: bytes) -> bytes:
    """Give one to three keys of layers hostile values; half of the time what follows agrees."""
    document = json.loads(data)
    layers = document["layers"]
    for _ in range(dice.choice((1, 1, 2, 3))):
        place = dice.randrange(len(layers))
        layer = layers[place]
        key = dice.choice(sorted(layer))
        if key in LIST_VALUES:
            layer[key] = dice.choice(LIST_VALUES[key])
        elif dice.random() < 0.15:
            del layer[key]
        elif dice.random() < 0.1:
            layers[place:place] = [dict(layer)] * dice.choice((1, 30))
        else:
            shapes = layer[key] if key in ("inp", "out") else [layer[key]]
            shape = dice.choice(shapes) if shapes else []
            if isinstance(shape, list) and shape:
                before = list(shape)
                _change_list(dice, shape, (*HOSTILE, 3, 5, 16, 40, 300))
                if dice.random() < 0.5:
                    _follow(document, before, shape)
    return json.dumps(document).encode()


def _follow(document: Any, before: list[int], now: list[int]) -> None:
    """Let everything of one shape have another."""
    for one in document["inputs"]:
        one[0] = list(now) if one[0] == before else one[0]
    for layer in document["layers"]:
        for key in ("inp", "out"):
            if isinstance(layer.get(key), list):
                layer[key] = [list(now) if one == before else one for one in layer[key]]


def damage_wire(dice: random.Random, data: bytes) -> bytes:
    """Answer with payloads of right checksums: fields, lengths, order and repeats changed."""
    from calibration.collecting.wire.frames import REPLY, Frame, encode_frame

    frames = []
    for _ in range(dice.choice((1, 2, 5))):
        body = bytearray(dice.choice((data, bytes(dice.choice((0, 4, 16, 64, 200))))))[:480]
        for _ in range(dice.choice((0, 1, 3))):
            at = dice.randrange(max(len(body) - 3, 1))
            body[at:at + 4] = (dice.choice(HOSTILE) % 2**32).to_bytes(4, "little")
        body = body[:dice.choice((len(body), dice.randrange(len(body) + 1)))][:480]
        frames.append(encode_frame(Frame(
            type=dice.choice((*range(0x80, 0x92), 0xA0, 0xFF)), flags=dice.choice((REPLY, 0, 255)),
            sequence=dice.randrange(1 << 16), reply_to=dice.randrange(1 << 16),
            payload=bytes(body))))
    if dice.random() < 0.3:
        place = dice.randrange(len(frames))
        frames[place] = frames[place][:dice.randrange(len(frames[place]))] + b"\0"
    return b"\0".join(frames * dice.choice((1, 1, 30)))


NETWORKS: Mapping[str, Door] = {
    "network-onnx": Door(seeds=onnx_seeds, enter=predict_network, suffix=".onnx",
                         reshape=damage_onnx_deeply),
    "network-list": Door(seeds=list_seeds, enter=predict_list, suffix=".json",
                         reshape=damage_list),
}
