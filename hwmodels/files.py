"""Files read whole: never a pipe one would wait for, never more than there should be."""

from __future__ import annotations

import errno
import os
from pathlib import Path

LARGEST_BYTES = (1 << 31) - 1
"""What no file this project reads is near, unless it is another kind of file."""


def read_regular(path: str | Path, largest_bytes: int = LARGEST_BYTES) -> bytes:
    """Read a regular file whole.

    Parameters
    ----------
    path : str or Path
        Of the file.
    largest_bytes : int
        A larger one is refused unread.

    Returns
    -------
    bytes
        Its content.

    Raises
    ------
    OSError
        When it is missing, a folder, a pipe, a device or too large; `strerror` says which.
    """
    try:
        found = os.stat(path)
    except ValueError as error:  # a null byte in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    file = Path(path)
    if not file.is_file():
        what = "is a directory" if file.is_dir() else "is not a regular file"
        raise OSError(errno.EINVAL, what, str(path))
    if found.st_size > largest_bytes:
        raise OSError(errno.EFBIG, f"has {found.st_size:,} bytes; at most {largest_bytes:,} are "
                      "read", str(path))
    return file.read_bytes()


def read_regular_text(path: str | Path, largest_bytes: int = LARGEST_BYTES) -> str:
    """Read a regular file of UTF-8 text; raises as `read_regular`, and UnicodeDecodeError."""
    return read_regular(path, largest_bytes).decode("utf-8")
