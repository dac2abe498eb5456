"""Operators that are code for an Ethos-U: of TensorFlow Lite files Vela wrote, and of ExecuTorch.

Either becomes one layer `ethos_u`: its first two inputs are the command stream and the constants,
the rest what it reads; the memory it works in is a tensor it writes and nothing reads.

References
----------
.. [1] github:pytorch/executorch, backends/arm/runtime/VelaBinStream.h: blocks of a name of 16
   bytes, a size, padding to 32 bytes, and data padded to 16.
"""

from __future__ import annotations

import numpy as np

from hwmodels.frozen import frozen
from twin.network.graph import Layer, Tensor
from twin.network.readers.refusal import UnsupportedError
from twin.network.readers.tflite_nodes import Converter, Node

_OPERANDS = 4
"""Inputs of the operator before what the network reads: stream, constants, arena, fast scratch."""

_HEADER = 32
_MOST_BLOCKS = 64


def _convert(node: Node) -> Layer:
    """Return the layer of an operator of a .tflite file."""
    if len(node.inputs) < _OPERANDS or node.tensor(node.inputs[0]).data is None:
        raise UnsupportedError("without a command stream")
    stream, constants, arena, scratch, *read = node.inputs
    sizes = [node.tensor(i).elements for i in (arena, scratch)]
    moved = sum(node.tensor(i).size_bytes for i in (*read, *node.outputs) if i >= 0)
    left = max(0, sizes[0] - moved)
    outputs = (*node.outputs, *((node.add(Tensor(
        name="ethos_u_arena", shape=(left,), dtype="uint8")),) if left else ()))
    return Layer(index=0, name="", op="ethos_u", inputs=(stream, constants, *read),
                 outputs=outputs, options=(
                     ("arena_bytes", sizes[0]),
                     ("scratch_bytes", sizes[1] if scratch != arena else 0)))


ETHOS_U = {"CUSTOM ethos-u": Converter(convert=_convert, data=tuple(range(_OPERANDS, 64)))}
"""What the reader of .tflite files takes of it."""

BACKEND = "EthosUBackend"
"""Name of the delegate in a program of ExecuTorch."""


@frozen
class Delegate:
    """The code of a delegate: stream, constants, bytes of the arena, inputs and outputs."""

    stream: bytes
    constants: bytes
    arena_bytes: int
    inputs: int
    outputs: int


def split_delegate(processed: bytes) -> Delegate:
    """Return the blocks of a delegate's data.

    Raises
    ------
    ValueError
        When it is of another form or cut short.
    """
    blocks: dict[str, bytes] = {}
    place = 0
    for _ in range(_MOST_BLOCKS):
        name = processed[place:place + 16].rstrip(b"\0").decode("ascii", "replace")
        size = int.from_bytes(processed[place + 16:place + 20], "little")
        start = place + _HEADER
        if not name or start + size > len(processed):
            raise ValueError("the data of a delegate of Ethos-U ends early; is the file whole?")
        blocks[name] = processed[start:start + size]
        place = start + -(-size // 16) * 16
        if name == "vela_end_stream":
            break
    if not {"cmd_data", "inputs", "outputs"} <= blocks.keys():
        raise ValueError("a delegate of Ethos-U without cmd_data, inputs or outputs; it has "
                         + ", ".join(blocks))
    counts = [int.from_bytes(blocks[name][:4], "little") for name in ("inputs", "outputs")]
    return Delegate(stream=blocks["cmd_data"], constants=blocks.get("weight_data", b""),
                    arena_bytes=int.from_bytes(blocks.get("scratch_size", b"")[:4], "little"),
                    inputs=counts[0], outputs=counts[1])


def as_constant(content: bytes) -> np.ndarray:
    """Return bytes as the values of a constant."""
    return np.frombuffer(content or b"\0", np.uint8)
