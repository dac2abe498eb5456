"""Read a layer list: a network known by its layers' shapes only.

The JSON form is that of calibration/datasets/stm32_zoo/layers: an object with "name", "inputs"
([[shape, type], ...]), "macs" and "layers", each {"op", "inp", "out", "dt"} and, for weighted
ones, "w", "stride", "pad" and "act". "from" says which layers one reads where those are not the
latest of its shapes, unread ones before others, as around a shortcut; "act" may say what follows a
sum or product, "pad" how a pool is padded.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hwmodels.files import LARGEST_JSON_BYTES, MISSHAPEN, DocumentError, JsonObject, parse_json
from twin.errors import ModelError
from twin.network.graph import Graph, Shape
from twin.network.model_file import read_bytes
from twin.network.operators import graph_macs
from twin.network.readers.budget import check_operators
from twin.network.readers.refusal import refuse_unknown
from twin.network.readers.verification import verify_graph
from twin.network.zoo.builder import IMAGE, MOST_WEIGHTS, PROBABILITY, SIGNED, Builder

_DTYPES = {"i8": "int8", "u8": "uint8", "f32": "float32"}
_QUANTIZATION = {"int8": SIGNED, "uint8": IMAGE, "float32": None}
_ACTIVATIONS = {None: None, "NONE": None, "RELU": "relu", "RELU6": "relu6"}
_PADDINGS = {"SAME": "same", "VALID": "valid"}
_SHAPE_ARITHMETIC = {"SHAPE", "STRIDED_SLICE", "PACK"}
_PLAIN = {"QUANTIZE", "DEQUANTIZE", "LOGISTIC"}
_PAIRED = {"ADD", "MUL", "MINIMUM", "MAXIMUM"}
_WINDOWED = {"CONV_2D", "DEPTHWISE_CONV_2D"}
_REDUCED = {"MEAN", "REDUCE_MAX"}
_POOLED = {"MAX_POOL_2D", "AVERAGE_POOL_2D"}
_OPERATORS = {"RESHAPE", *_SHAPE_ARITHMETIC, *_PLAIN, *_PAIRED, *_WINDOWED, *_REDUCED, *_POOLED,
              "FULLY_CONNECTED", "SOFTMAX", "PAD", "TRANSPOSE", "CONCATENATION", "TILE",
              "RESIZE_BILINEAR"}
_RENAMED = {"OP69": "TILE"}
"""Operators a list names by their number in TensorFlow Lite's schema."""


def read_layer_list(path: str | Path, *, assume_unsupported: str | None = None) -> Graph:
    """Read a layer list and connect it.

    Parameters
    ----------
    path : str or Path
        Of the JSON file.
    assume_unsupported
        "copy" to keep unknown operators as assumed memory copies.

    Returns
    -------
    Graph
        Of the stated shapes, with seeded random int8 weights.

    Raises
    ------
    ModelError
        When the file is not such a list, or its layers, shapes and multiply-accumulates do not
        agree with each other.

    Notes
    -----
    A list gives shapes only. What is inferred:

    - Connections: a layer reads the latest tensor of the right shape nobody has read yet, else
      the latest of that shape. The second operand of a sum is never what the layer that made
      the first reads: a residual skips two layers at least. A dense convolution that follows
      a linear one of unchanged shape stands beside it, not behind it (a projection shortcut).
    - Pooling windows: the whole map where one value is left, else 3x3 or 2x2 unpadded, else
      3x3 padded, at the stride the shapes imply; the first that gives the stated output.
    - A sum or product with one listed input has a constant for the other: a vector over
      channels, or a scalar for minimum and maximum. A TILE repeats a constant over all but its
      last two axes: how often is what it reads.
    - Paddings are split evenly, the odd one behind; a transpose is the first permutation that
      fits. Shape arithmetic (SHAPE, STRIDED_SLICE, PACK) computes constants and is omitted.
    """
    path = str(path)
    content, reader = read_bytes(path, LARGEST_JSON_BYTES), None
    try:
        document = parse_json(content.decode("utf-8"))
        if not isinstance(document, dict):
            raise ValueError("a list of layers is a mapping with name, macs, inputs and layers")
        reader = _Reader(path, document)
        graph = reader.read(assume_unsupported)
        stated_macs = document["macs"]
    except ModelError:
        raise
    except (DocumentError, ValueError) as error:
        raise ModelError(f"{path}: not a layer list: {error}") from None
    except KeyError as error:
        place = "" if reader is None else reader.place
        raise ModelError(f"{path}: not a layer list: {place}{error} is missing") from None
    except MISSHAPEN as error:
        place = "" if reader is None else reader.place
        raise ModelError(f"{path}: not a layer list: {place}{type(error).__name__} {error}") \
            from None
    graph = replace(graph, source=path, sha256=hashlib.sha256(content).hexdigest())
    verify_graph(graph)
    if graph_macs(graph) != stated_macs:
        raise ModelError(f"{path}: macs says {stated_macs}, the layers make {graph_macs(graph)}")
    return graph


class _Reader:
    """Connects one list; `_unread` holds tensors nobody has read yet, oldest first."""

    def __init__(self, path: str, document: JsonObject) -> None:
        self._path = path
        self.place = ""
        self._document = document
        self._net = Builder(document["name"], zlib.crc32(document["name"].encode()))
        self._made: list[int] = []
        self._unread: list[int] = []

    def read(self, assume_unsupported: str | None) -> Graph:
        """Build every layer and return the graph."""
        check_operators(self._path, len(self._document["layers"]))
        unknown = []
        for number, entry in enumerate(self._document["layers"]):
            self.place = f"layer {number}: "
            entry["op"] = _RENAMED.get(entry["op"], entry["op"])
            if entry["op"] not in _OPERATORS:
                unknown.append(f"{number} {entry['op']}")
        refuse_unknown(self._path, unknown, assume_unsupported)
        self.place = "inputs: "
        for shape, named in self._document["inputs"]:
            dtype = self._word(_DTYPES, named, "type")
            self._remember(self._net.input(shape, dtype, _QUANTIZATION[dtype]))
        for number, entry in enumerate(self._document["layers"]):
            self.place = f"layer {number} {entry['op']}: "
            if entry["op"] not in _SHAPE_ARITHMETIC:
                self._add_layer(number, entry)
        self.place = ""
        return self._net.finish(*self._unread)

    def _word(self, known: Mapping[Any, Any], word: Any, key: str) -> Any:
        """Return what a word of the list stands for; another is refused by its place."""
        if isinstance(word, str | None) and word in known:
            return known[word]
        accepted = ", ".join(str(one) for one in known if one is not None)
        raise ModelError(f"{self._path}: {self.place}{key} {word!r}; accepted: {accepted}")

    def _add_layer(self, number: int, entry: JsonObject) -> None:
        shapes = [tuple(shape) for shape in entry["inp"]]
        if entry["op"] == "RESHAPE":
            shapes = shapes[:1]
        sources = [self._constant(entry)] if entry["op"] == "TILE" else \
            self._sources(number, entry, shapes) if "from" not in entry else \
            self._stated(entry["from"], shapes)
        output = self._convert(entry, sources)
        stated = tuple(entry["out"][0])
        if self._net.shape(output) != stated:
            raise ModelError(f"{self._path}: layer {number} {entry['op']}: output "
                             f"{list(stated)} stated, {list(self._net.shape(output))} computed")
        self._remember(output)

    def _remember(self, tensor: int) -> None:
        self._made.append(tensor)
        self._unread.append(tensor)

    def _sources(self, number: int, entry: JsonObject, shapes: list[Shape]) -> list[int]:
        """Tensors a layer reads, those of a sum or product oldest first."""
        chosen: list[int] = []
        for shape in shapes:
            found = self._latest(shape, chosen)
            if found is None:
                raise ModelError(f"{self._path}: layer {number} {entry['op']}: no tensor of "
                                 f"shape {list(shape)} comes before it")
            chosen.append(found)
        for tensor in chosen:
            if tensor in self._unread:
                self._unread.remove(tensor)
        return sorted(chosen) if entry["op"] == "ADD" else chosen

    def _stated(self, places: list[int], shapes: list[Shape]) -> list[int]:
        """Tensors a layer says it reads: results of earlier layers by number, -1 the input."""
        if not all(place in range(-1, len(self._made) - 1) for place in places):
            raise ModelError(f"{self._path}: {self.place}from {places}; accepted: numbers of "
                             "layers before it, -1 for the input")
        sources = [self._made[place + 1] for place in places]
        found = [self._net.shape(tensor) for tensor in sources]
        if found != shapes:
            raise ModelError(f"{self._path}: {self.place}inp {shapes}; from {places} is {found}")
        self._unread = [tensor for tensor in self._unread if tensor not in sources]
        return sources

    def _latest(self, shape: Shape, avoid: list[int]) -> int | None:
        for tensors in (self._unread, self._made):
            for tensor in reversed(tensors):
                if self._net.shape(tensor) == shape and tensor not in avoid:
                    return tensor
        return None

    def _convert(self, entry: JsonObject, sources: list[int]) -> int:
        net, op = self._net, entry["op"]
        output = tuple(entry["out"][0])
        if op in _WINDOWED:
            return self._convert_window(entry, sources[0])
        if op == "FULLY_CONNECTED":
            return net.fully_connected(sources[0], entry["w"][0],
                                       self._word(_ACTIVATIONS, entry.get("act"), "act"))
        if op in _POOLED:
            kernel, stride, padding = _pool_window(net.shape(sources[0]), output, entry.get("pad"))
            return net.pool(op.lower(), sources[0], kernel, stride, padding=padding)
        if op in _REDUCED:
            axes = tuple(range(1, len(net.shape(sources[0])) - 1))
            return net.layer(op.lower(), sources, output, axes=axes,
                             quantization=net.quantization(sources[0]),
                             keep_dims=len(output) == len(net.shape(sources[0])))
        if op in _PAIRED:
            if len(sources) == 1:
                sources = [*sources, self._constant(entry)]
            return net.layer(op.lower(), sources, output, activation=self._word(
                _ACTIVATIONS, entry.get("act"), "act"))
        if op == "SOFTMAX":
            return net.softmax(sources[0])
        if op == "CONCATENATION":
            axis = next(axis for axis, size in enumerate(net.shape(sources[0]))
                        if size != output[axis])
            return net.layer("concatenation", sources, output, axis=axis,
                             quantization=net.quantization(sources[0]))
        if op in _MOVED:
            return net.layer(op.lower(), sources, output,
                             quantization=net.quantization(sources[0]),
                             **_MOVED[op](net.shape(sources[0]), output))
        dtype = self._word(_DTYPES, entry["dt"], "dt")
        if op not in _PLAIN:
            return net.layer("copy", sources, output, dtype=dtype, of=op, assumed=True,
                             quantization=_QUANTIZATION[dtype])
        quantization = PROBABILITY if op == "LOGISTIC" else _QUANTIZATION[dtype]
        return net.layer(op.lower(), sources, output, dtype=dtype, quantization=quantization)

    def _convert_window(self, entry: JsonObject, source: int) -> int:
        count, height, width, depth = entry["w"]
        stride = (entry["stride"][0], entry["stride"][1])
        padding = self._word(_PADDINGS, entry["pad"], "pad")
        activation = self._word(_ACTIVATIONS, entry["act"], "act")
        if entry["op"] == "CONV_2D":
            return self._net.conv(source, count, (height, width), stride, padding=padding,
                                  activation=activation)
        if depth != self._net.shape(source)[3]:
            raise ModelError(f"{self._path}: DEPTHWISE_CONV_2D with {depth} filters for "
                             f"{self._net.shape(source)[3]} channels")
        return self._net.depthwise(source, (height, width), stride, padding=padding,
                                   activation=activation)

    def _constant(self, entry: JsonObject) -> int:
        """Add the constant that is added, multiplied, compared or repeated."""
        made = entry["out"][0]
        shape = ((1,) * len(made[:-2]) + tuple(made[-2:]) if entry["op"] == "TILE"
                 else (made[-1] if entry["op"] in ("ADD", "MUL") else 1,))
        size = math.prod(shape)
        if size > MOST_WEIGHTS:
            raise ValueError(f"{size:,} values; at most {MOST_WEIGHTS:,} are read")
        values = np.arange(1, size + 1, dtype=np.int64) % 127
        return self._net.tensor(f"constant_{len(self._made)}", shape,
                                data=values.astype(np.int8).reshape(shape))


def _pool_window(source: Shape, output: Shape,
                 stated: str | None) -> tuple[tuple[int, int], int, str]:
    """First likely window, of the padding that is stated, that turns one shape into the other."""
    if output[1:3] == (1, 1):
        return (source[1], source[2]), max(source[1:3]), "valid"
    stride = max(1, round(source[1] / output[1]))
    for kernel, padding in ((3, "valid"), (2, "valid"), (3, "same")):
        reach = 0 if padding == "same" else kernel - 1
        if stated in (None, padding.upper()) and all(-(-(size - reach) // stride) == made
               for size, made in zip(source[1:3], output[1:3], strict=True)):
            return (kernel, kernel), stride, padding
    raise ValueError(f"no pooling window turns {source} into {output}")


def _pad(source: Shape, output: Shape) -> JsonObject:
    added = [made - size for size, made in zip(source, output, strict=True)]
    return {"mode": "constant", "value": 0.0,
            "paddings": tuple((total // 2, total - total // 2) for total in added)}


def _transpose(source: Shape, output: Shape) -> JsonObject:
    left = list(range(len(source)))
    perm = []
    for size in output:
        axis = next((axis for axis in left if source[axis] == size), None)
        if axis is None:
            break
        left.remove(axis)
        perm.append(axis)
    if left or len(perm) != len(output) or math.prod(source) == 1:
        raise ValueError(f"no permutation turns {source} into {output}")
    return {"perm": tuple(perm)}


_MOVED: dict[str, Callable[[Shape, Shape], JsonObject]] = {
    "PAD": _pad, "TRANSPOSE": _transpose,
    **dict.fromkeys(("RESHAPE", "TILE", "RESIZE_BILINEAR"), lambda source, output: {})}
"""Operators that only move data, and their options by the shapes they read and write."""
