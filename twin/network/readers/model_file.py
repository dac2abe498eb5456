"""The bytes of a model file, or why they cannot be had."""

from __future__ import annotations

from contextlib import suppress

from hwmodels.files import LARGEST_BYTES, read_regular
from twin.errors import ModelError

_MOST_SUBGRAPHS = 1 << 10


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
