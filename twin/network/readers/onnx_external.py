"""Constants an .onnx file keeps in files beside it, as exporters of large networks write them.

Only files inside the model's own folder are opened, whatever the file asks for: a model that
was sent by somebody cannot read what lies elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hwmodels.files import LARGEST_BYTES, read_regular
from twin.errors import ModelError
from twin.network.graph import DTYPE_BITS
from twin.network.readers.onnx_nodes import DTYPES

_SAVE = "or save with onnx.save(..., save_as_external_data=False)"


def take_external_data(path: str, proto: Any) -> bytes:
    """Put constants that lie in other files into the model.

    Returns
    -------
    bytes
        Content of the files read, in the order they were met.

    Raises
    ------
    ModelError
        Naming the tensor: the file is missing, outside the model's folder or too short.
    """
    contents: dict[Path, bytes] = {}
    taken = 0
    for tensor in [one for nodes in (proto.graph, *proto.functions) for one in list_tensors(nodes)]:
        if tensor.data_location != tensor.EXTERNAL:
            continue
        stated = {entry.key: entry.value for entry in tensor.external_data}
        where = f"{path}: tensor {tensor.name!r}"
        content = _read_beside(path, where, stated.get("location", ""), contents)
        bits = DTYPE_BITS.get(DTYPES.get(tensor.data_type, ""), 8)
        size = (math.prod(tensor.dims, start=bits) + 7) // 8
        try:
            start, length = int(stated.get("offset", 0)), int(stated.get("length", size))
        except ValueError:
            raise ModelError(f"{where}: offset and length must be whole numbers of bytes") from None
        if min(start, size) < 0 or length != size or start + size > len(content):
            raise ModelError(f"{where}: takes {size:,} bytes from byte {start:,} of "
                             f"{stated.get('location')!r}, {length:,} are stated and the file has "
                             f"{len(content):,}; is it cut short?")
        taken += size
        if taken > LARGEST_BYTES:
            raise ModelError(f"{where}: more than {LARGEST_BYTES:,} bytes of weights; at most "
                             "these are read")
        tensor.raw_data = content[start:start + size]
        tensor.data_location = tensor.DEFAULT
        del tensor.external_data[:]
    return b"".join(contents.values())


def _read_beside(path: str, where: str, location: str, contents: dict[Path, bytes]) -> bytes:
    folder = Path(path).parent.resolve()
    try:
        file = (folder / location).resolve()
        if not file.is_relative_to(folder):
            raise ModelError(f"{where}: weights are in {location!r}, outside the model's folder; "
                             f"accepted: a file beside the model, {_SAVE}")
        if file not in contents:
            contents[file] = read_regular(file, LARGEST_BYTES - sum(map(len, contents.values())))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{where}: weights are in {location!r} beside the model: "
                         f"{reason[0].lower()}{reason[1:]}; put it there, {_SAVE}") from None
    return contents[file]


def list_tensors(graph: Any) -> Iterator[Any]:
    """Every constant of a graph or a function, those of its attributes and branches too."""
    for one in getattr(graph, "sparse_initializer", ()):
        yield from (one.values, one.indices)
    yield from getattr(graph, "initializer", ())
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for one in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (one.values, one.indices)
            for branch in (attribute.g, *attribute.graphs):
                yield from list_tensors(branch)
