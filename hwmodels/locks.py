"""Locks of the system on files and folders: they end with their process, however that ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


class NoLocksError(OSError):
    """A file system has no locks."""


@contextlib.contextmanager
def lock(path: Path, *, wait: bool = False, make: bool = True) -> Iterator[int | None]:
    """Hold the lock of a file for this process.

    Parameters
    ----------
    path : Path
        Made where it is missing, readable for its user alone; what is in it stays. A link is not
        followed, and a pipe opened without waiting.
    wait : bool
        Whether to wait for another process that holds it.
    make : bool
        False for a file or folder that is there, opened to read.

    Yields
    ------
    int or None
        Its descriptor; None where the system has no such locks: on Windows.

    Raises
    ------
    BlockingIOError
        When another process holds it, and it is not waited for.
    NoLocksError
        Where the file system has none: whether that is borne is for who asks.
    OSError
        When it cannot be opened.
    """
    try:
        import fcntl
    except ImportError:
        yield None
        return
    flags = (os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK) if make else os.O_RDONLY
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError as error:
            raise NoLocksError(error.errno, error.strerror) from error
        yield descriptor
    finally:
        os.close(descriptor)
