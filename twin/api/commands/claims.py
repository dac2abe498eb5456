"""A folder or file that one process works on at a time; a second one is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hwmodels.errors import reworded
from hwmodels.locks import NoLocksError, lock
from twin.errors import UsageError

CLAIM = ".claim"
"""Name of the file that is locked while a process writes into its folder."""


@contextmanager
def claim_folder(folder: Path, what: str = "measures into it") -> Iterator[None]:
    """Hold a folder, which is made where there is none, for this process alone.

    Parameters
    ----------
    folder : Path
        Removed at the end where it was made here and stayed empty.
    what : str
        What another process does that holds it.

    Raises
    ------
    UsageError
        When another process holds it, or it cannot be made.

    Notes
    -----
    The lock is the system's, on a file in the folder: it ends with its process, however that
    ends, and the file with it or with the next claim. Writers of single files lock the folder
    itself. None where a file system has no locks.
    """
    made = not folder.exists()
    with reworded(OSError, UsageError, f"{folder}: cannot be made (", ")"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with _claim(folder / CLAIM, f"{folder}: another process {what}; wait for it, or give "
                                    "another -o"):
            yield
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def claim_file(path: Path, what: str) -> Iterator[None]:
    """Hold a file that is read, changed and written again; parameters as of `claim_folder`."""
    with reworded(OSError, UsageError, f"{path.parent}: cannot be made (", ")"):
        path.parent.mkdir(parents=True, exist_ok=True)
    target = Path(os.path.realpath(path))  # of two names of a file there is one claim
    with _claim(target.with_name(f".{target.name[:200]}{CLAIM}"),
                f"{path}: another process {what}; wait for it, or give another -o"):
        yield


@contextmanager
def _claim(place: Path, taken: str) -> Iterator[None]:
    with ExitStack() as held:
        try:
            descriptor = held.enter_context(lock(place))
        except BlockingIOError as error:
            raise UsageError(taken) from error
        except NoLocksError:
            descriptor = None
        except OSError as error:
            raise UsageError(f"{place}: cannot be written ({error.strerror})") from error
        if descriptor is not None and not (
                place.exists() and os.path.samestat(os.fstat(descriptor), place.stat())):
            raise UsageError(taken)  # Who held it has just removed it.
        try:
            yield
        finally:
            with suppress(PermissionError):  # Windows keeps what is open.
                place.unlink(missing_ok=True)
