"""Put a model file in place whole or not at all."""

from __future__ import annotations

from pathlib import Path

from hwmodels.files import write_whole
from twin.errors import ModelError


def replace_file(path: str | Path, content: bytes) -> None:
    """Write bytes beside a file, then rename them over it.

    Raises
    ------
    ModelError
        When the folder does not exist or cannot be written; an older file stays as it was.
    """
    try:
        write_whole(path, content)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error  # an OSError names our temporary file
        raise ModelError(f"{path}: cannot be written: {why}") from None
