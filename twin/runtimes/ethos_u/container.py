"""Files Vela wrote: operators `ethos-u` with their streams, memories and tensors."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

from hwmodels.frozen import frozen
from twin.errors import ModelError
from twin.runtimes.ethos_u.commands import Stream, read_stream

OPERATOR = "ethos-u"
"""Name of the custom operator."""

CONSTANTS, ARENA, SCRATCH = 0, 1, 2
"""Regions of its first memories: constants, arena, fast scratch."""


@frozen
class CompiledStream:
    """One operator `ethos-u`.

    Parameters
    ----------
    payload
        Its command stream with the driver's actions, in base 64.
    constant_bytes, arena_bytes, scratch_bytes
        Of its memories; a fast scratch that is the arena itself counts nothing.
    inputs, outputs
        Names of the tensors it reads and writes.
    """

    payload: str
    constant_bytes: int
    arena_bytes: int
    scratch_bytes: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def stream(self) -> Stream:
        """The decoded stream."""
        return _decode(self.payload, OPERATOR)


@lru_cache(maxsize=64)
def _decode(payload: str, where: str) -> Stream:
    return read_stream(base64.b64decode(payload), where)


@frozen
class CompiledFile:
    """A .tflite file Vela wrote.

    Parameters
    ----------
    streams
        In order.
    order : tuple of (bool, str)
        Of each operator: whether it is one of the streams, and its first output's name.
    """

    streams: tuple[CompiledStream, ...]
    order: tuple[tuple[bool, str], ...]


def read_compiled(content: bytes, where: str) -> CompiledFile:
    """Read a .tflite file Vela wrote.

    Raises
    ------
    ModelError
        When it is none, or damaged.
    """
    from tflite.Model import Model

    streams, order = [], []
    try:
        model = Model.GetRootAs(content)
        graph = model.Subgraphs(0)
        for number in range(graph.OperatorsLength()):
            operator = graph.Operators(number)
            inputs, outputs = (_names(graph, places) for places in (
                operator.InputsAsNumpy(), operator.OutputsAsNumpy()))
            own = model.OperatorCodes(operator.OpcodeIndex()).CustomCode() == OPERATOR.encode()
            order.append((own, outputs[0] if outputs else ""))
            if own:
                streams.append(_read_operator(model, graph, operator, inputs, outputs))
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{where}: cannot be read: {error}") from None
    return CompiledFile(streams=tuple(streams), order=tuple(order))


def _read_operator(model: Any, graph: Any, operator: Any, inputs: tuple[str, ...],
                   outputs: tuple[str, ...]) -> CompiledStream:
    places = [int(place) for place in operator.InputsAsNumpy()]
    stream, constants, arena, scratch = places[:4]
    data = model.Buffers(graph.Tensors(stream).Buffer()).DataAsNumpy()

    def size(place: int) -> int:
        shape = graph.Tensors(place).ShapeAsNumpy()
        return 0 if isinstance(shape, int) else int(shape.prod())

    return CompiledStream(
        payload=base64.b64encode(data.tobytes()).decode("ascii"), constant_bytes=size(constants),
        arena_bytes=size(arena), scratch_bytes=size(scratch) if scratch != arena else 0,
        inputs=inputs[4:], outputs=outputs)


def _names(graph: Any, places: Any) -> tuple[str, ...]:
    numbers = [] if isinstance(places, int) else places.tolist()
    return tuple(graph.Tensors(place).Name().decode(errors="replace")
                 for place in numbers if place >= 0)
