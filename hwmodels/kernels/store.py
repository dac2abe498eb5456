"""What a user's processes keep for each other: sealed entries in folders of the user alone."""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import hmac
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

SEAL_BYTES = SECRET_BYTES = 32
LARGEST_ENTRY_BYTES = 64 << 20
DRAFT_S = 3600.0
"""Age at which what was to become an entry is nobody's: writing one takes milliseconds."""


@functools.cache
def fingerprint_sources(folder: Path) -> str:
    """Hash of a folder's modules: a loop is made of others, so a change of one is one of all."""
    hashed = hashlib.sha256(str(folder).encode())
    for path in sorted(folder.glob("*.py")):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


class Store:
    """Kept entries of one user alone.

    Parameters
    ----------
    folder : Path
        Made where it is missing. One that others can write is not used.

    Notes
    -----
    Each entry begins with a keyed hash of its name and content. The key lies in the folder, made at
    random: a damaged entry, or one that somebody put there who cannot read the folder, is not
    loaded. Nothing here fails: what cannot be kept or loaded is made again, and `refusal` says
    why it was not kept.
    """

    refusal = ""

    def __init__(self, folder: Path) -> None:
        self.folder, self.swept = folder, False

    @functools.cached_property
    def key(self) -> bytes | None:
        """Secret of the folder; None where nothing can be kept safely."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not is_own(os.stat(self.folder)):
                self.refusal = "another user owns it or can write to it"
                return None
            path = self.folder / "key"
            if (found := _read_key(path)) is None:
                with self.hold():
                    if (found := _read_key(path)) is None:  # nor did another process make it
                        with contextlib.suppress(FileNotFoundError):
                            path.unlink()  # Damaged; what it guarded is of no more use.
                        found = os.urandom(SECRET_BYTES)
                        write_private(path, found, awaited=True)
            return found
        except OSError as error:
            self.refusal = error.strerror or str(error)
            return None

    def load(self, name: str) -> bytes | None:
        """Return an entry; None where there is none that this user kept as it is."""
        try:
            content = read_private(self.folder / name) if self.key else b""
        except OSError:
            return None
        seal, entry = content[:SEAL_BYTES], content[SEAL_BYTES:]
        return entry if entry and hmac.compare_digest(seal, self._seal(name, entry)) else None

    def save(self, name: str, entry: bytes) -> None:
        """Keep an entry; those of its function's older sources go.

        Parameters
        ----------
        name : str
            Function, sources and the rest, with dots between them.
        entry : bytes
            Not empty.
        """
        function, sources, _ = name.rsplit(".", 2)
        if not self.key:
            return
        self.sweep()
        try:
            for path in self.folder.glob(f"{glob.escape(function)}.*.*"):
                if path.name.count(".") == name.count(".") and \
                        path.name.rsplit(".", 2)[1] != sources:
                    path.unlink()
            write_private(self.folder / name, self._seal(name, entry) + entry)
        except OSError as error:
            self.refusal = error.strerror or str(error)

    def sweep(self) -> None:
        """Remove, once a process, drafts of processes that were killed as they wrote."""
        if not self.swept:
            self.swept, now_s = True, time.time()
            for path in self.folder.glob(".*.tmp"):
                with contextlib.suppress(OSError):
                    if now_s - path.lstat().st_mtime > DRAFT_S:
                        path.unlink()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Let one process at a time make what is missing; none waits where that is not known."""
        from hwmodels.locks import lock

        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):
                if is_own(os.stat(self.folder)):
                    held.enter_context(lock(self.folder / "lock", wait=True))
            yield

    def _seal(self, name: str, entry: bytes) -> bytes:
        hashed = hashlib.blake2b(name.encode(), key=self.key or b"", digest_size=SEAL_BYTES)
        hashed.update(entry)
        return hashed.digest()


def open_files() -> Store | None:
    """Return where what is made of files is kept, as `TWIN_FILES` has it; None where nothing is."""
    if os.environ.get("TWIN_FILES") == "":
        return None
    from hwmodels.folders import user_folder

    with contextlib.suppress(RuntimeError):  # a user without a home
        return _open(user_folder("TWIN_FILES", "files"))
    return None


@functools.cache
def _open(folder: Path) -> Store:
    return Store(folder)


def read_private(path: Path) -> bytes:
    """Read a regular file of the store; OSError where it is none, or too large to be an entry."""
    from hwmodels.files import read_regular

    return read_regular(path, LARGEST_ENTRY_BYTES)


def _read_key(path: Path) -> bytes | None:
    """Return a folder's secret; None where there is none that its user alone made, whole."""
    with contextlib.suppress(OSError):
        found = read_private(path) if is_own(os.lstat(path)) else b""
        return found if len(found) == SECRET_BYTES else None
    return None


def write_private(path: Path, content: bytes, *, awaited: bool = False) -> None:
    """Write a file that its user alone reads; a sealed one need not be `awaited` on the disk."""
    from hwmodels.files import write_whole

    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.lstat().st_mode):
            path.unlink()  # A pipe would be waited for, a link followed.
    write_whole(path, content, mode=0o600, awaited=awaited)


def is_own(found: os.stat_result) -> bool:
    """Whether it is this user's, and nobody else writes it."""
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
