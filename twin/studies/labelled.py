"""Labelled data of a user: arrays of an .npz file, read as numbers and within bounds."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from hwmodels.files import BoundedReader, open_regular
from hwmodels.frozen import frozen
from twin.errors import UsageError
from twin.network.graph import Shape

INPUTS, LABELS = ("x", "inputs", "images"), ("y", "labels", "targets")
"""Names of the arrays of a data file."""

LARGEST_BYTES = (1 << 31) - 1
MOST_ADDED_BYTES = 1 << 28
"""What arrays may unpack to beyond the size of their file."""

MOST_SAMPLES = 10_000_000
MOST_MEMBERS = 1000
"""Arrays of a file; two are read."""

MOST_LISTED_BYTES = 1 << 23
"""What lists them."""

_LONGEST_HEADER_BYTES = 10_000
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What NumPy writes."""

_DAMAGED = (OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, SyntaxError,
            RecursionError, MemoryError, NotImplementedError, RuntimeError, ArithmeticError,
            tokenize.TokenError, zipfile.BadZipFile, zlib.error)
"""What `zipfile` and NumPy's reader of headers raise for files that are none of theirs."""


@frozen
class Data:
    """Inputs and what they are.

    Parameters
    ----------
    inputs
        Samples along the first axis: real numbers, or as the network stores them.
    labels : ndarray of int
        The right class of each.
    """

    inputs: np.ndarray
    labels: np.ndarray


def read_data(path: str | Path) -> Data:
    """Read an .npz file of inputs and labels.

    Raises
    ------
    UsageError
        Naming the file and what is accepted.
    """
    try:
        names, arrays = _read_arrays(path, (INPUTS, LABELS))
    except _DAMAGED as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read: {reason}; accepted: an .npz file of inputs "
                         "(x) and labels (y)") from error
    x, y = arrays
    if x is None or y is None:
        raise UsageError(f"{path}: holds {', '.join(names[:8]) or 'nothing'}; accepted: inputs as "
                         f"{' or '.join(INPUTS)}, labels as {' or '.join(LABELS)}")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "iub" or x.ndim < 2 or len(x) != len(y) or not len(y):
        raise UsageError(f"{path}: inputs of shape {list(x.shape)}, labels {y.dtype} of shape "
                         f"{list(y.shape)}; accepted: as many whole-number labels as inputs")
    if len(y) > MOST_SAMPLES:
        raise UsageError(f"{path}: has {len(y):,} samples; at most {MOST_SAMPLES:,} are read")
    if x.dtype.kind not in "iuf":
        raise UsageError(f"{path}: inputs are {x.dtype}; accepted: numbers")
    return Data(inputs=x, labels=y.astype(np.int64))


def _read_arrays(path: str | Path, wanted: Sequence[Sequence[str]]
                 ) -> tuple[list[str], list[np.ndarray | None]]:
    """Return the names in a file, and of each choice of names the array of the first it has."""
    with BoundedReader(open_regular(path, LARGEST_BYTES), MOST_LISTED_BYTES) as stream:
        if stream.read(6) == np.lib.format.MAGIC_PREFIX:
            raise ValueError("is a single array")
        with zipfile.ZipFile(stream) as file:
            stream.most_bytes = LARGEST_BYTES
            members = {one.filename.removesuffix(".npy"): one
                       for one in file.infolist()[:MOST_MEMBERS]}
            found = [next((members[name] for name in choice if name in members), None)
                     for choice in wanted]
            unpacked = sum(one.file_size for one in found if one is not None)
            most = stream.seek(0, 2) + MOST_ADDED_BYTES
            if unpacked > most:
                raise ValueError(f"unpacks to {unpacked:,} bytes; at most {most:,} are")
            return list(members), [None if one is None else _read_array(file, one) for one in found]


def _read_array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return an array that has the bytes its header says, before any is made."""
    if member.compress_type not in _PACKED:
        raise ValueError(f"{member.filename} is packed by method {member.compress_type}")
    with file.open(member) as stream:
        shape, fortran, dtype, begin = _read_header(stream)
        count = math.prod(shape)
        if dtype.hasobject or dtype.fields is not None:
            raise ValueError(f"{member.filename} holds objects, not numbers")
        if min(shape, default=0) < 0 or count * dtype.itemsize != member.file_size - begin:
            raise ValueError(f"{member.filename} says that it holds {list(shape)} of {dtype}, in "
                             f"{member.file_size - begin:,} bytes")
        content = stream.read()
    return np.frombuffer(content, dtype, count).reshape(shape, order="F" if fortran else "C")


def _read_header(stream: Any) -> tuple[Shape, bool, np.dtype[Any], int]:
    """Return shape, whether in Fortran's order, type, and where an array's bytes begin."""
    head = stream.read(12)
    if len(head) < 12 or head[:6] != np.lib.format.MAGIC_PREFIX or head[6] not in (1, 2, 3):
        raise ValueError("an array of it is not as NumPy writes them")
    width = 2 if head[6] == 1 else 4
    length = int.from_bytes(head[8:8 + width], "little")
    if length > _LONGEST_HEADER_BYTES:
        raise ValueError(f"an array's header has {length:,} bytes")
    rest = stream.read(length - (4 - width))
    parse = (np.lib.format.read_array_header_1_0 if width == 2
             else np.lib.format.read_array_header_2_0)
    shape, fortran, dtype = parse(BytesIO((head + rest)[8:]))
    return shape, fortran, dtype, 8 + width + length
