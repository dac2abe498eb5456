"""What reading a file may cost beyond its own size, checked before anything is allocated."""

from __future__ import annotations

from twin.errors import ModelError

MAX_OPERATORS = 10_000
"""More operators than any network for a microcontroller has; each takes a millisecond or two."""

FREE_BYTES = 2**27
"""What constants made from constants may take, however small the file is."""

TIMES_FILE = 4
"""How often a file's own size they may take besides."""


MAX_TENSORS = 2**19
"""Tensors of all subgraphs together, those of a graph that is called twice counted twice."""


class Budget:
    """Bytes a reader may still make out of a file.

    Parameters
    ----------
    path
        Of the file, for errors.
    """

    def __init__(self, path: str, file_bytes: int) -> None:
        self._path = path
        self._whole = self._left = FREE_BYTES + TIMES_FILE * file_bytes

    def take(self, size_bytes: int, what: str) -> None:
        """Account for bytes about to be made.

        Raises
        ------
        ModelError
            When they are more than is left.
        """
        if size_bytes > self._left:
            raise ModelError(f"{self._path}: {what} makes {size_bytes:,} bytes out of constants; "
                             f"at most {self._whole:,} for a file of this size")
        self._left -= size_bytes


def check_tensors(path: str, count: int) -> None:
    """Refuse a file of more tensors than `MAX_TENSORS`.

    Raises
    ------
    ModelError
        Naming the file and both numbers.
    """
    if count > MAX_TENSORS:
        raise ModelError(f"{path}: {count:,} tensors; at most {MAX_TENSORS:,} are read")


def check_operators(path: str, count: int) -> None:
    """Refuse a file of more operators than `MAX_OPERATORS`.

    Raises
    ------
    ModelError
        Naming the file and both numbers.
    """
    if count > MAX_OPERATORS:
        raise ModelError(f"{path}: {count:,} operators; at most {MAX_OPERATORS:,} are read")
