"""Files read whole: never a pipe one would wait for, never more than there should be."""

from __future__ import annotations

import errno
import os
import stat
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
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
                             | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:  # a null byte in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    except OSError:
        if Path(path).is_dir():  # not opened on Windows
            raise OSError(errno.EISDIR, "is a directory", str(path)) from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            what = "is a directory" if stat.S_ISDIR(found.st_mode) else "is not a regular file"
            raise OSError(errno.EINVAL, what, str(path))
        if found.st_size > largest_bytes:
            raise OSError(errno.EFBIG, f"has {found.st_size:,} bytes; at most {largest_bytes:,} "
                          "are read", str(path))
        with open(descriptor, "rb", closefd=False) as stream:
            return stream.read(min(max(found.st_size, 1 << 20), largest_bytes))
    finally:
        os.close(descriptor)


def read_regular_text(path: str | Path, largest_bytes: int = LARGEST_BYTES) -> str:
    """Read a regular file of UTF-8 text; raises as `read_regular`, and UnicodeDecodeError."""
    return read_regular(path, largest_bytes).decode("utf-8")
