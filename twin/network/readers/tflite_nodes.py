"""An operator of a .tflite file, as the functions see it that make layers of operators."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from hwmodels.frozen import frozen
from twin.errors import ModelError
from twin.network.graph import Layer, Shape, Tensor, TensorIds, Window
from twin.network.readers.refusal import UnsupportedError

ACTIVATIONS = {0: None, 1: "relu", 2: "relu_n1_to_1", 3: "relu6", 4: "tanh"}


@frozen
class Node:
    """An operator of the file, as converters see it.

    Parameters
    ----------
    place
        File and operator, for errors.
    index
        Position in the file.
    builtin
        The schema's name of the operator.
    inputs, outputs
        Tensor indices of the file; trailing absent inputs removed.
    operator
        The flatbuffer table.
    tensor
        index -> Tensor.
    add
        Tensor -> index, for one put together from several or made between two layers.
    state
        (index of a variable, Tensor like it) -> indices of what it holds, and is filled from.
    amend
        (index, Tensor) -> None: what the file does not say of a result.
    repeats
        How often it runs: turns of the loops around it.
    """

    place: str
    index: int
    builtin: str
    inputs: TensorIds
    outputs: TensorIds
    operator: Any
    tensor: Callable[[int], Tensor]
    add: Callable[[Tensor], int]
    state: Callable[[int, Tensor], tuple[int, ...]]
    amend: Callable[[int, Tensor], None]
    repeats: int = 1

    def options(self, table: str) -> Any:
        """Return the operator's options, which must be of that schema table."""
        kind = importlib.import_module("tflite.BuiltinOptions").BuiltinOptions
        given = self.operator.BuiltinOptionsType()
        if given != getattr(kind, table) or self.operator.BuiltinOptions() is None:
            raise ModelError(f"{self.place}: options of type {given}, expected {table}")
        union = self.operator.BuiltinOptions()
        options = getattr(importlib.import_module(f"tflite.{table}"), table)()
        options.Init(union.Bytes, union.Pos)
        return options

    def input(self, place: int) -> int:
        """Return the tensor index of a required input."""
        if place >= len(self.inputs) or self.inputs[place] < 0:
            raise ModelError(f"{self.place}: input {place} is missing")
        return self.inputs[place]

    def shape(self, place: int) -> Shape:
        """Return the shape of a required input."""
        return self.tensor(self.input(place)).shape

    def values(self, place: int) -> np.ndarray:
        """Return the values of an input that must be a constant."""
        tensor = self.tensor(self.input(place))
        if tensor.data is None:
            raise ModelError(f"{self.place}: input {place} {tensor.name!r} is computed at run "
                             "time; only constants are read here")
        return tensor.data

    def integers(self, place: int) -> tuple[int, ...]:
        """Return the values of a constant input as flat integers."""
        return tuple(int(value) for value in self.values(place).reshape(-1))

    def axes(self, place: int, rank: int) -> tuple[int, ...]:
        """Return constant axes of a tensor of that rank, counted from the front."""
        return tuple(self.axis(value, rank) for value in self.integers(place))

    def axis(self, value: int, rank: int) -> int:
        """Return an axis counted from the front."""
        if not -rank <= value < rank:
            raise ModelError(f"{self.place}: axis {value} of a tensor with {rank} dimensions")
        return value % rank

    def activation(self, code: int) -> str | None:
        """Return the name of a fused activation."""
        if code not in ACTIVATIONS:
            raise UnsupportedError(f"fused activation {code}")
        return ACTIVATIONS[code]

    def layer(self, op: str, inputs: TensorIds | None = None, *,
              window: Window | None = None, activation: str | None = None, groups: int = 1,
              **options: Any) -> Layer:
        """Return a layer writing this operator's outputs."""
        if not self.outputs:
            raise ModelError(f"{self.place}: writes nothing")
        return Layer(index=0, name="", op=op, inputs=self.inputs if inputs is None else inputs,
                     outputs=self.outputs, window=window, activation=activation, groups=groups,
                     options=tuple(sorted(options.items())))


@frozen
class Converter:
    """How one builtin becomes a layer, and which of its inputs carry data."""

    convert: Callable[[Node], Layer | tuple[Layer, ...]]
    data: tuple[int, ...]


def plain(op: str) -> Callable[[Node], Layer]:
    """Return the converter of what takes its inputs as they are and has no options."""
    return lambda node: node.layer(op)


def data_first(convert: Callable[[Node], Layer | tuple[Layer, ...]]) -> Converter:
    """Return a converter of an operator whose first input alone is data."""
    return Converter(convert=convert, data=(0,))


def data_all(convert: Callable[[Node], Layer | tuple[Layer, ...]]) -> Converter:
    """Return a converter of an operator all of whose inputs are data."""
    return Converter(convert=convert, data=tuple(range(64)))
