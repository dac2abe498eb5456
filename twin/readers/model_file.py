"""A model file's bytes, or why they cannot be had."""

from __future__ import annotations

from pathlib import Path

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
    file = Path(path)
    try:
        if file.is_dir():
            raise ModelError(f"{path}: a directory; accepted: a model file")
        size_bytes = file.stat().st_size
        if size_bytes > MAX_BYTES:
            raise ModelError(f"{path}: {size_bytes} bytes; at most {MAX_BYTES} are read")
        content = file.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from None
    if not content:
        raise ModelError(f"{path}: empty file")
    return content
