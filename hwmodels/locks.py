"""Locks of the system on files and folders: they end with their process, however that ends."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Windows has neither."""


class NoLocksError(OSError):
    """A file system has no locks."""


@contextlib.contextmanager
def lock(path: Path, *, wait: bool = False, make: bool = True) -> Iterator[int]:
    """Hold the lock of a file for this process; yields its descriptor.

    Parameters
    ----------
    path
        Made where it is missing, readable for its user alone; what is in it stays. A link is not
        followed, and a pipe opened without waiting.
    wait
        Whether to wait for another process that holds it.
    make
        False for a file or folder that is there, opened to read.

    Raises
    ------
    BlockingIOError
        When another process holds it, and it is not waited for.
    NoLocksError
        Where the file system has none: whether that is borne is for who asks.
    OSError
        When it cannot be opened.
    """
    from filelock import lock_descriptor

    flags = os.O_RDWR | os.O_CREAT | SAFELY if make else os.O_RDONLY
    descriptor = os.open(path, flags, 0o600)
    try:
        try:
            held = lock_descriptor(descriptor, blocking=wait)
        except OSError as error:
            raise NoLocksError(error.errno, error.strerror) from error
        if not held:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))
        yield descriptor
    finally:
        os.close(descriptor)
