"""Folders that appear whole or not at all, and what a killed process left of them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def draft_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Give an empty folder to fill and rename; what is still there at the end is removed.

    Parameters
    ----------
    parent : Path
        Where it is made, on the file system of the folder it becomes.
    prefix : str
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
            locked = stack.enter_context(lock(folder, wait=wait, make=False)) is not None
        yield locked
