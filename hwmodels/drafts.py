"""Folders that appear whole or not at all, and what a killed process left of them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def draft_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Give an empty folder to fill and rename; what is still there at the end is removed.

    Parameters
    ----------
    parent
        Where it is made, on the file system of the folder it becomes.
    prefix
        Its name begins so; sixteen hexadecimal digits follow.

    Raises
    ------
    OSError
        When it cannot be made.

    Notes
    -----
    Drafts of the same prefix whose process is gone, even by SIGKILL, are removed first: each is
    locked while somebody fills it, and the kernel lets a lock go with its process. Where the
    system has no such locks nothing is swept.
    """
    with locked(parent) as sweeps:
        if sweeps:
            _sweep(parent, prefix)
        draft = parent / f"{prefix}{os.urandom(8).hex()}"
        draft.mkdir(mode=0o777)
        held = contextlib.ExitStack()
        held.enter_context(locked(draft))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        held.close()


@contextlib.contextmanager
def renewed_files(folder: Path, prefix: str, obsolete: Iterable[str] = (), *,
                  within: Path | None = None) -> Iterator[Path]:
    """Give a draft whose files move into a folder at the end; what fails leaves the folder alone.

    Parameters
    ----------
    folder
        Made where there is none. Files of other names stay.
    obsolete
        Names that go where the draft has no such file.
    within
        Where the draft is, on the same file system; by default in the folder.

    Raises
    ------
    OSError
        When a folder lies where a file is to go, or something cannot be written.

    Notes
    -----
    Files are renamed one by one; Ctrl-C and SIGTERM wait until all are. The draft must not be in a
    folder whose lock this process holds, as that of another draft.
    """
    within = folder if within is None else within
    within.mkdir(parents=True, exist_ok=True)
    with draft_folder(within, prefix) as draft:
        yield draft
        folder.mkdir(parents=True, exist_ok=True)
        made = sorted(one.name for one in draft.iterdir())
        for name in made:
            if (folder / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(folder / name))
        with _uninterrupted():
            for name in made:
                os.replace(draft / name, folder / name)
            for name in {*obsolete} - {*made}:
                (folder / name).unlink(missing_ok=True)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let signals that end a command wait; Python hands them to its main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda which, _: came.append(which))
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for asked in came:
            signal.raise_signal(asked)


def _sweep(parent: Path, prefix: str) -> None:
    """Remove drafts nobody holds."""
    ours = re.compile(re.escape(prefix) + "[0-9a-f]{16}")
    for one in list(parent.iterdir()):
        if ours.fullmatch(one.name) and one.is_dir() and not one.is_symlink():
            with locked(one, wait=False) as left:
                if left:
                    shutil.rmtree(one, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a folder; False where somebody else does, or where there are none."""
    from hwmodels.locks import lock

    with contextlib.ExitStack() as stack:
        locked = False
        with contextlib.suppress(OSError):
            stack.enter_context(lock(folder, wait=wait, make=False))
            locked = True
        yield locked
