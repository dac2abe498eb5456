"""Read a .tflite flatbuffer: tensors, quantisation, operators, in the file's order.

References
----------
The TensorFlow Lite schema, version 3, as generated in the PyPI package `tflite`. That package
imports every table at once, two hundred modules; a reader imports those of tables it meets.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from twin.errors import ModelError
from twin.network.graph import Graph, Layer, Quantization, Shape, Tensor, TensorIds
from twin.network.model_file import is_tflite, read_bytes
from twin.network.readers.budget import Budget, check_tensors
from twin.network.readers.extended import find_converter
from twin.network.readers.refusal import (
    UnsupportedError,
    copy_layer,
    refuse_compiled,
    refuse_unknown,
)
from twin.network.readers.tflite_control import RESOURCE, Inliner, Subgraph
from twin.network.readers.tflite_nodes import Converter, Node
from twin.network.readers.tflite_operators import CONVERTERS
from twin.network.readers.tflite_shapes import list_needed, settle_shapes
from twin.network.readers.tflite_variables import Variables, find_variables
from twin.network.readers.verification import verify_graph

IDENTIFIER = b"TFL3"

DTYPES = {0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16",
          9: "int8", 10: "float64", 12: "uint64", 13: RESOURCE, 15: "uint32", 16: "uint16",
          17: "int4"}
"""Schema TensorType by number; what is missing here (strings, complex ...) is refused."""

CONTROL_FLOW = {"STABLEHLO_WHILE", "STABLEHLO_COMPOSITE", "STABLEHLO_REDUCE_WINDOW",
                "STABLEHLO_SCATTER", "STABLEHLO_SORT"}
"""Operators that run another subgraph, besides those `tflite_control` puts in line."""


@dataclass(slots=True)
class _File:
    """A model being read; `place` says what is being read, for errors.

    Tensors of all subgraphs are numbered through, the first one's as in the file; `homes` says
    where each is stated, None for one the reader made. `unsettled` are shapes with -1 where open.
    """

    path: str
    content: bytes
    model: Any
    budget: Budget
    place: str = "header"
    tensors: dict[int, Tensor] = field(default_factory=dict)
    homes: list[tuple[Any, int] | None] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    states: dict[int | bytes, TensorIds] = field(default_factory=dict)
    variables: Variables = field(default_factory=Variables)
    unsettled: dict[int, tuple[int, ...]] = field(default_factory=dict)


def read_tflite(path: str | Path, *, assume_unsupported: str | None = None,
                content: bytes | None = None) -> Graph:
    """Read a .tflite file.

    Parameters
    ----------
    assume_unsupported
        "copy" to keep unknown operators as assumed memory copies.
    content
        What the file would hold, where it is inside another.

    Returns
    -------
    Graph
        With the file's tensors, those no operator touches omitted.

    Raises
    ------
    ModelError
        Naming file, operator and tensor.

    Notes
    -----
    The bodies of loops, branches and calls are put in line; an operator of a loop says how often
    it runs. Integer shape arithmetic (SHAPE, STRIDED_SLICE, PACK feeding a RESHAPE) computes
    constants in a static graph; it is omitted, so a runtime that does execute it pays a few
    dispatches more. An open batch is one where one is stored, as interpreters take it; other
    open dimensions must follow from the inputs.
    """
    path = str(path)
    content = read_bytes(path) if content is None else content
    if content[4:8] != IDENTIFIER and not is_tflite(content):  # Interpreters take it without.
        raise ModelError(f"{path}: not a TensorFlow Lite file: bytes 4 to 7 are "
                         f"{content[4:8]!r}, expected {IDENTIFIER!r}")
    file = _File(path=path, content=content, model=None, budget=Budget(path, len(content)))
    try:
        with _single_tables("tflite"):
            graph = _read_graph(file, assume_unsupported)
    except ModelError:
        raise
    except struct.error:
        raise ModelError(f"{path}: malformed at {file.place}: it points past the end of the file, "
                         f"which has {len(content):,} bytes; is it cut short?") from None
    except Exception as error:
        # Offsets of a damaged flatbuffer lead anywhere: to numpy, index and codec errors alike.
        raise ModelError(f"{path}: cannot be read at {file.place}: {error}") from None
    return verify_graph(graph)


@contextlib.contextmanager
def _single_tables(package: str) -> Iterator[None]:
    """Let modules of a package be imported without the package, which would import them all."""
    spec = None if package in sys.modules else importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        yield
        return
    stand_in = ModuleType(package)
    stand_in.__path__, stand_in.__spec__ = spec.submodule_search_locations, spec
    sys.modules[package] = stand_in
    try:
        yield
    finally:  # Whoever imports the package gets the package.
        if sys.modules.get(package) is stand_in:
            del sys.modules[package]


def _read_graph(file: _File, assume_unsupported: str | None) -> Graph:
    from tflite.Model import Model

    file.model = Model.GetRootAs(file.content)
    if file.model.SubgraphsLength() < 1:
        raise ModelError(f"{file.path}: no subgraph")
    file.names = _operator_names(file)
    main = _open_subgraph(file, 0)
    for i in (*main.inputs, *main.outputs):
        if not 0 <= i < len(main.ids):
            raise ModelError(f"{file.path}: input or output tensor {i} does not exist")
    inliner = Inliner(file.path, file.model.SubgraphsLength(), lambda graph: _read_nodes(
        file, graph), lambda number: _open_subgraph(file, number),
        lambda tensor: _add(file, tensor), lambda i: _tensor(file, i))
    nodes = inliner.inline(main)
    outputs = tuple(main.ids[i] for i in main.outputs)
    needed = list_needed(nodes, outputs, _find_converter)
    notes = (*inliner.notes, *settle_shapes(nodes, file.unsettled, _find_converter))
    file.variables = find_variables(nodes, inliner.starters)
    layers = _convert(file, needed, assume_unsupported)
    graph = _assemble(file, layers, main, outputs, (*notes, *file.variables.note_missing()))
    kept = {id(node) for node in needed}
    tensors = sum(file.model.Subgraphs(i).TensorsLength()
                  for i in range(file.model.SubgraphsLength()))
    beside = len(file.content) + sum(file.variables.missing.values()) - graph.constant_bytes
    return replace(graph, overhead_bytes=beside, left_out=(
        max(0, tensors - len(graph.tensors)),
        tuple(node.builtin.lower() for node in nodes if id(node) not in kept)))


def _open_subgraph(file: _File, number: int) -> Subgraph:
    """Return a subgraph with numbers of its own for its tensors."""
    table = file.model.Subgraphs(number)
    count = _bounded(file, table.TensorsLength(), "tensors")
    check_tensors(file.path, len(file.homes) + count)
    first = len(file.homes)
    file.homes += [(table, index) for index in range(count)]
    return Subgraph(number=number, ids=list(range(first, first + count)),
                    inputs=_ids(table.InputsAsNumpy()), outputs=_ids(table.OutputsAsNumpy()))


def _bounded(file: _File, count: int, what: str) -> int:
    # Each entry of a vector of tables takes a four-byte offset.
    if count > len(file.content) // 4:
        raise ModelError(f"{file.path}: malformed: {count} {what} in {len(file.content)} bytes")
    return count


def _ids(vector: Any) -> TensorIds:
    return () if isinstance(vector, int) else tuple(vector.tolist())


def _read_nodes(file: _File, graph: Subgraph) -> list[Node]:
    """Read a subgraph's operators; their tensors are those of the subgraph."""
    nodes = []
    table = file.model.Subgraphs(graph.number)
    inside = f"subgraph {graph.number} " if graph.number else ""
    for index in range(_bounded(file, table.OperatorsLength(), "operators")):
        file.place = f"{inside}operator {index}"
        operator = table.Operators(index)
        name = file.names[operator.OpcodeIndex()]
        file.place = f"{inside}operator {index} {name}"
        inputs = _ids(operator.InputsAsNumpy())
        outputs = _ids(operator.OutputsAsNumpy())
        for i in (*inputs, *outputs):
            if not -1 <= i < len(graph.ids):
                raise ModelError(f"{file.path}: {file.place}: tensor {i} does not exist; there "
                                 f"are {len(graph.ids)}")
        if name in CONTROL_FLOW:
            raise ModelError(f"{file.path}: {file.place} runs another subgraph; only loops, "
                             "branches and calls are read")
        while inputs and inputs[-1] == -1:
            inputs = inputs[:-1]
        nodes.append(Node(place=f"{file.path}: {file.place}", index=index, builtin=name,
                          inputs=inputs, outputs=outputs, operator=operator,
                          tensor=lambda i: _tensor(file, i), add=lambda t: _add(file, t),
                          state=lambda i, like: _state(file, i, like),
                          amend=file.tensors.__setitem__))
    return nodes


def _operator_names(file: _File) -> list[str]:
    from tflite.BuiltinOperator import BuiltinOperator

    by_code = {code: name for name, code in vars(BuiltinOperator).items()
               if not name.startswith("_")}
    names = []
    for number in range(_bounded(file, file.model.OperatorCodesLength(), "operator codes")):
        file.place = f"operator code {number}"
        entry = file.model.OperatorCodes(number)
        # Files older than the 127th operator keep the code in the deprecated byte.
        code = max(entry.DeprecatedBuiltinCode(), entry.BuiltinCode())
        custom = entry.CustomCode()
        if custom is not None and code == BuiltinOperator.CUSTOM:
            names.append(f"CUSTOM {custom.decode(errors='replace')}")
        else:
            names.append(by_code.get(code, f"builtin {code}"))
    return names


def _find_converter(builtin: str) -> Converter | None:
    return CONVERTERS.get(builtin) or find_converter("TFLITE", builtin)


def _convert(file: _File, nodes: list[Node], assume_unsupported: str | None) -> list[Layer]:
    layers: list[Layer] = []
    unknown: list[str] = []
    for name, count in Counter(node.builtin for node in nodes).items():
        refuse_compiled(file.path, name.removeprefix("CUSTOM "), count, len(nodes))
    for node in nodes:
        file.place = f"operator {node.index} {node.builtin}"
        for i in (*node.inputs, *node.outputs):
            stated = file.unsettled.get(i, ())
            if -1 in stated[1:] or (stated and node.tensor(i).shape[0] != 1):
                raise ModelError(f"{node.place}: tensor {i} {node.tensor(i).name!r}: dynamic shape "
                                 f"{list(stated)}; export with every dimension fixed")
        try:
            converter = _find_converter(node.builtin)
            if converter is None:
                raise UnsupportedError("")
            made = converter.convert(node)
        except UnsupportedError as refusal:
            unknown.append(f"{node.index} {node.builtin}{refusal.suffix}")
            made = copy_layer(node.inputs, node.outputs, node.builtin)
        for layer in (made,) if isinstance(made, Layer) else made:
            name = node.tensor(layer.target_id).name if layer.outputs else ""
            layers.append(replace(layer, index=len(layers), name=name, repeats=node.repeats))
    refuse_unknown(file.path, unknown, assume_unsupported)
    return layers


def _assemble(file: _File, layers: list[Layer], main: Subgraph, outputs: TensorIds,
              notes: tuple[str, ...]) -> Graph:
    file.place = "graph inputs"
    inputs = main.inputs
    used = {i for layer in layers for i in layer.tensors}.union(inputs, outputs)
    order = {old: new for new, old in enumerate(sorted(used - {-1}))}
    order[-1] = -1
    windowed = any(layer.window is not None for layer in layers)
    for i in inputs:
        tensor = _tensor(file, i)
        if len(tensor.shape) == 2 and tensor.shape[0] > 1 and not windowed:
            rows, size = tensor.shape
            notes += (f"input: {tensor.name!r} [{rows}, {size}] is read as {rows} rows of {size}, "
                      f"a batch or a sequence: figures are of all {rows}; export [1, {size}] for "
                      "those of one",)
    return Graph(
        name=Path(file.path).stem, source=file.path,
        sha256=hashlib.sha256(file.content).hexdigest(),
        tensors=tuple(_tensor(file, i) for i in order if i >= 0),
        layers=tuple(replace(layer, inputs=tuple(order[i] for i in layer.inputs),
                             outputs=tuple(order[i] for i in layer.outputs))
                     for layer in layers),
        inputs=tuple(order[i] for i in inputs), outputs=tuple(order[i] for i in outputs),
        notes=notes)


def _add(file: _File, tensor: Tensor) -> int:
    if tensor.data is not None:
        file.budget.take(tensor.data.nbytes, f"{file.place}: {tensor.name!r}")
    file.homes.append(None)
    check_tensors(file.path, len(file.homes))
    file.tensors[len(file.homes) - 1] = tensor
    return len(file.homes) - 1


def _state(file: _File, variable: int, like: Tensor) -> tuple[int, ...]:
    """Return the tensor that holds what a variable names, and the one it is filled from."""
    key = file.variables.names.get(variable, variable)
    if key not in file.states:
        name = _tensor(file, variable).name or f"variable {variable}"
        state = replace(like, name=name, data=None)
        values = file.variables.values(key, file.place, like)
        first = () if values is None else (_add(file, replace(state, data=values)),)
        file.states[key] = (_add(file, state), *first)
    return file.states[key]


def _tensor(file: _File, index: int) -> Tensor:
    if index not in file.tensors:
        before, file.place = file.place, f"{file.place}: tensor {index}"
        home = file.homes[index]
        assert home is not None
        file.tensors[index], stated = _read_tensor(file, *home)
        if -1 in stated:
            file.unsettled[index] = stated
        file.place = before
    return file.tensors[index]


def _read_tensor(file: _File, table: Any, index: int) -> tuple[Tensor, tuple[int, ...]]:
    """Return a tensor and the shape the file states, -1 where it is open."""
    entry = table.Tensors(index)
    name = (entry.Name() or b"").decode(errors="replace")
    place = f"{file.path}: {file.place} {name!r}"
    dtype = DTYPES.get(entry.Type())
    if dtype is None:
        raise ModelError(f"{place}: type number {entry.Type()}; accepted: "
                         f"{', '.join(DTYPES.values())}")
    if entry.Sparsity() is not None:
        raise ModelError(f"{place}: sparse storage; export with dense weights")
    stated = shape = _ids(entry.ShapeAsNumpy())
    signature = _ids(entry.ShapeSignatureAsNumpy())
    if len(signature) == len(shape):
        stated = signature
    stated = tuple(-1 if min(size, was) < 1 else was
                   for size, was in zip(stated, shape, strict=True))
    shape = tuple(max(size, 1) for size in shape)
    return Tensor(name=name, shape=shape, dtype=dtype,
                  quantization=_read_quantization(entry, shape),
                  data=_read_data(file, place, entry.Buffer(), shape, dtype)), stated


def _read_quantization(entry: Any, shape: Shape) -> Quantization | None:
    table = entry.Quantization()
    scales = None if table is None else table.ScaleAsNumpy()
    if scales is None or isinstance(scales, int) or len(scales) == 0:
        return None
    zero_points = _ids(table.ZeroPointAsNumpy()) or (0,) * len(scales)
    # Interpreters read the dimension of filters only; old converters wrote a bias any number.
    axis = None if len(scales) == 1 else 0 if len(shape) == 1 else table.QuantizedDimension()
    return Quantization(scales=tuple(scales.tolist()), zero_points=zero_points, axis=axis)


def _read_data(file: _File, place: str, number: int, shape: Shape, dtype: str) -> np.ndarray | None:
    if number >= file.model.BuffersLength():
        raise ModelError(f"{place}: buffer {number} does not exist")
    buffer = file.model.Buffers(number)
    raw = buffer.DataAsNumpy()
    if buffer.Offset() > 1:
        # Files past 2 GiB keep weights behind the flatbuffer.
        raw = np.frombuffer(file.content, np.uint8, buffer.Size(), buffer.Offset())
    if isinstance(raw, int) or len(raw) == 0:
        return None
    elements = int(np.prod(shape, dtype=np.int64))
    if dtype == "int4":
        if len(raw) != (elements + 1) // 2:
            raise ModelError(f"{place}: {len(raw)} bytes of data for {elements} 4-bit elements")
        # Two elements a byte, the first in the low half; shifting left first extends the sign.
        halves = np.stack([raw << 4, raw & 0xF0], axis=1).view(np.int8) >> 4
        return halves.reshape(-1)[:elements].reshape(shape)
    wanted_bytes = elements * np.dtype(dtype).itemsize
    if len(raw) != wanted_bytes:
        raise ModelError(f"{place}: {len(raw)} bytes of data, expected {wanted_bytes} for "
                         f"{dtype} {list(shape)}")
    return raw.view(np.dtype(dtype).newbyteorder("<")).reshape(shape)
