"""A folder that one process measures into at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from twin.errors import UsageError

CLAIM = ".claim"
"""Name of the file that is locked while a process measures into its folder."""


@contextmanager
def claim_folder(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made where there is none, for this process alone.

    Parameters
    ----------
    folder : Path
        Removed at the end where it was made here and stayed empty.

    Raises
    ------
    UsageError
        When another process holds it, or it cannot be made.

    Notes
    -----
    The lock is the system's, on a file in the folder: it ends with its process, however that
    ends, and the file with it or with the next claim. Writers of single files lock the folder
    itself. Not on Windows, nor where a file system has no locks.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made ({error.strerror})") from error
    try:
        with _lock(folder):
            yield
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Not on Windows.
        yield
        return
    taken = UsageError(f"{folder}: another process measures into it; wait for it, or give "
                       "another -o")
    place = folder / CLAIM
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise UsageError(f"{place}: cannot be written ({error.strerror})") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise taken from error
        except OSError:  # A file system without locks.
            pass
        if not place.exists() or not os.path.samestat(os.fstat(descriptor), place.stat()):
            raise taken  # Who held it has just removed it.
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
