"""A model file's bytes, or why they cannot be had."""

from __future__ import annotations

from hwmodels.files import read_regular
from twin.errors import ModelError

MAX_BYTES = 2**31 - 1
"""Largest file read: flatbuffers address themselves with signed 32-bit offsets, protocol buffers
refuse more than 2 GiB; no microcontroller holds a fraction of it."""


def read_bytes(path: str) -> bytes:
    """Read a model file whole.

    Parameters
    ----------
    path : str
        Of the file.

    Returns
    -------
    bytes
        At least one.

    Raises
    ------
    ModelError
        When it is missing, a directory, empty, unreadable or larger than `MAX_BYTES`.
    """
    try:
        content = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}; accepted: a model file") from None
    if not content:
        raise ModelError(f"{path}: empty file")
    return content
