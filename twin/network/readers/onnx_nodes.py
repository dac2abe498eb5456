"""What an .onnx file is made of while it is prepared: nodes, and what is known of every value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twin.network.graph import Shape

DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
          9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
          21: "uint4", 22: "int4"}
"""TensorProto.DataType by number."""

MICROSOFT = "com.microsoft"


@dataclass(slots=True)
class Node:
    """An operator of the file.

    Parameters
    ----------
    op
        Type, with its domain in front unless it is the standard one.
    name
        As the file names it, may be empty.
    inputs, outputs
        Value names; "" is absent.
    attributes
        Plain Python values.
    """

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    proto: Any = None

    @property
    def source(self) -> str:
        """Name of the first input."""
        return self.inputs[0]

    @property
    def result(self) -> str:
        """Name of the first output."""
        return self.outputs[0]

    def option(self, name: str, default: Any = None) -> Any:
        """Return the attribute of that name, or the default."""
        return self.attributes.get(name, default)

    def input(self, place: int) -> str:
        """Return the name of an input, "" when absent."""
        return self.inputs[place] if place < len(self.inputs) else ""


@dataclass(slots=True)
class OnnxModel:
    """A prepared file: nodes in execution order and what is known of every value.

    `dynamic` names real weights that stay integers although their operator reads float data.
    """

    path: str
    content: bytes
    opset: int
    nodes: list[Node]
    constants: dict[str, np.ndarray]
    shapes: dict[str, Shape]
    dtypes: dict[str, str]
    inputs: list[str]
    outputs: list[str]
    notes: list[str] = field(default_factory=list)
    dynamic: set[str] = field(default_factory=set)

    def consumers(self) -> Mapping[str, list[Node]]:
        """Nodes that read each value."""
        readers: dict[str, list[Node]] = defaultdict(list)
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    readers[name].append(node)
        return readers

    def makers(self) -> Mapping[str, Node]:
        """Node that writes each value."""
        return {name: node for node in self.nodes for name in node.outputs}

    def add_constant(self, name: str, values: np.ndarray) -> str:
        """Add a constant and return its name."""
        self.constants[name] = values
        self.shapes[name], self.dtypes[name] = values.shape, str(values.dtype)
        return name

    def scalar(self, name: str) -> float | None:
        """Value of a constant of one element; None for anything else."""
        values = self.constants.get(name)
        return None if values is None or values.size != 1 else float(values.reshape(-1)[0])


def read_batch_norm(model: OnnxModel, node: Node) -> tuple[np.ndarray, ...]:
    """Return gamma / sqrt(variance + epsilon), beta and mean by channel; () of what is computed.

    A batch normalisation is y = factor (x - mean) + beta.
    """
    parts = [model.constants.get(name) for name in node.inputs[1:5]]
    if any(part is None for part in parts):
        return ()
    gamma, beta, mean, variance = (np.asarray(part, np.float64) for part in parts)
    return gamma / np.sqrt(variance + node.option("epsilon", 1e-5)), beta, mean


def to_proto(node: Node) -> Any:
    """Return the node as the onnx package has it, with its present inputs."""
    import onnx

    if node.proto is not None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node.proto)
        del copy.input[:]
        copy.input.extend(node.inputs)
        copy.op_type, copy.domain = node.op.rpartition(".")[2], node.op.rpartition(".")[0]
        return copy
    domain, _, op = node.op.rpartition(".")
    return onnx.helper.make_node(op, node.inputs, node.outputs, name=node.name, domain=domain,
                                 **node.attributes)


class Rewriter:
    """Nodes made in place of one of the file's; their values get shapes as they are named.

    Parameters
    ----------
    model
        Gets the constants, shapes and types of what is made.
    node
        Replaced; the last node made writes its first output.
    """

    def __init__(self, model: OnnxModel, node: Node) -> None:
        self.model = model
        self.node = node
        self.made: list[Node] = []

    @property
    def shape(self) -> Shape:
        """Shape of what the node reads first."""
        return self.model.shapes[self.node.source]

    def constant(self, values: np.ndarray | float | Sequence[int], dtype: str = "") -> str:
        """Add a constant and return its name."""
        name = f"{self.node.result}/constant{len(self.model.constants)}"
        kind = dtype or self.model.dtypes[self.node.result]
        return self.model.add_constant(name, np.asarray(values).astype(kind))

    def add(self, op: str, inputs: Sequence[str], shape: Sequence[int] | None = None,
            **attributes: Any) -> str:
        """Add a node and return its output, which has the shape of what is replaced by default."""
        output = f"{self.node.result}/{op}{len(self.made)}"
        first = self.node.result
        self.model.shapes[output] = self.model.shapes[first] if shape is None else tuple(shape)
        self.model.dtypes[output] = self.model.dtypes[first]
        self.made.append(Node(op=op, name=self.node.name, inputs=list(inputs), outputs=[output],
                              attributes=attributes))
        return output

    def reduce(self, op: str, source: str, axes: Sequence[int], *, keep: bool = True) -> str:
        """Add a reduction along axes counted from the front."""
        shape = self.model.shapes[source]
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)
                if keep or axis not in axes]
        return self.add(op, [source], kept, axes=list(axes), keepdims=int(keep))

    def finish(self) -> list[Node]:
        """Return the nodes made, the last of which writes what was replaced."""
        self.made[-1].outputs = self.node.outputs[:1]
        return self.made
