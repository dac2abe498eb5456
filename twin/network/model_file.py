"""A model file: how its name ends, what its network is called, and its bytes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePath

from hwmodels.files import LARGEST_BYTES, read_regular
from twin.errors import ModelError

MODELS = (".tflite", ".onnx", ".json", ".pte", ".espdl")
"""Endings of the files this reads; .json is a layer list (`twin.network.readers.layer_list`)."""

CONTAINERS = (".zip", ".eim", ".elf", ".axf", ".out", ".bin", ".c", ".cc", ".cpp", ".h", ".hpp",
              ".ino", ".lite", ".gz", ".tgz", ".tar")
"""Endings of files a model may be inside (`twin.network.readers.container`)."""

SUFFIXES = MODELS + CONTAINERS
"""Endings of all files a network is read from."""

_MOST_SUBGRAPHS = 1 << 10


def name_model(model: str) -> str:
    """Return what a model is called: a zoo name, or the stem of its file or of its member."""
    file, _, member = model.rpartition(":")
    file = member if file.lower().endswith(CONTAINERS) else model
    return PurePath(file).stem.removesuffix(".mltk") if file.lower().endswith(SUFFIXES) else file


def read_bytes(path: str, largest_bytes: int = LARGEST_BYTES) -> bytes:
    """Read a model file whole.

    Parameters
    ----------
    largest_bytes
        A larger one is refused unread.

    Returns
    -------
    bytes
        At least one.

    Raises
    ------
    ModelError
        When it is missing, a directory, empty, unreadable or too large.
    """
    try:
        content = read_regular(path, largest_bytes)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}; accepted: a model file") from None
    if not content:
        raise ModelError(f"{path}: the file is empty")
    return content


def is_tflite(content: bytes, begin: int = 0) -> bool:
    """Whether tables of a TensorFlow Lite model of schema 3, with a subgraph, begin there."""
    from hwmodels.flatbuffer import Flatbuffer, FlatbufferError

    with suppress(FlatbufferError):
        root = Flatbuffer(content, begin).root
        return root.number(0, "I") == 3 and 0 < len(root.vector(2, "I")) < _MOST_SUBGRAPHS
    return False
