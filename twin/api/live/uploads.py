"""What was uploaded: few files, by content, in a folder that goes with the server."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from hwmodels.files import JsonObject, write_whole
from hwmodels.frozen import frozen
from twin.api.live.pool import Pool
from twin.api.live.state import UPLOAD
from twin.errors import UsageError, WorkerError
from twin.network.readers import SUFFIXES as READ

LARGEST_BYTES: Mapping[str, int] = {"model": 32 << 20, "board": 1 << 20}
"""Of an upload, by what it is."""

SUFFIXES: Mapping[str, tuple[str, ...]] = {"model": READ, "board": (".yaml", ".yml")}

MOST_FILES, MOST_BYTES = 24, 256 << 20
"""Kept; the one not uploaded for longest goes."""


@frozen
class Upload:
    """A file that was uploaded and read.

    Parameters
    ----------
    key : str
        Its name in a state: "upload:" and the SHA-256 of its bytes.
    kind : str
        "model" or "board".
    file : str
        Its name, as far as it is letters, digits, dots, dashes and underscores.
    """

    key: str
    kind: str
    file: str
    size_bytes: int
    facts: JsonObject


class Uploads:
    """The files, and the folder they are in."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="twin-serve-"))
        self._kept: OrderedDict[str, Upload] = OrderedDict()
        self._lock = threading.Lock()  # of what is kept
        self._reading: set[str] = set()

    def names(self) -> dict[str, str]:
        """Return the file name of each upload by its key."""
        with self._lock:
            return {key: one.file for key, one in self._kept.items()}

    async def add(self, kind: str, name: str, content: bytes, pool: Pool) -> Upload:
        """Have a file read by a process of its own, and keep it.

        Parameters
        ----------
        kind : str
            "model" or "board".
        name : str
            As the sender calls it; says its kind by its ending, and nothing of it is a path here.

        Raises
        ------
        UsageError
            When it is refused, with why.
        WorkerError
            When reading it took too long or too much memory, or it is being read for another.
        """
        file = clean_name(kind, name)
        if not content or len(content) > LARGEST_BYTES[kind]:
            raise UsageError(f"{file}: has {len(content):,} bytes; accepted: from 1 up to "
                             f"{LARGEST_BYTES[kind]:,}")
        key = UPLOAD + (await asyncio.to_thread(hashlib.sha256, content)).hexdigest()
        with self._lock:
            if key in self._kept and self._kept[key].kind == kind:
                self._kept.move_to_end(key)
                return self._kept[key]
        if key in self._reading:
            raise WorkerError(f"{file}: is being read for another request; ask again")
        self._reading.add(key)
        try:
            made = Upload(key=key, kind=kind, file=file, size_bytes=len(content),
                          facts=await self._read(kind, key, file, content, pool))
        finally:
            self._reading.discard(key)
        with self._lock:
            self._kept[key] = made
            self._drop()
        return made

    async def _read(self, kind: str, key: str, file: str, content: bytes, pool: Pool) -> JsonObject:
        """Write a file where workers find it, and have it read; remove it where it is refused."""
        folder = self.folder / key.removeprefix(UPLOAD)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            await asyncio.to_thread(write_whole, folder / file, content, mode=0o600)
            answer = await pool.ask({"do": kind, "name": key}, None)
            if answer.get("kind") == "WorkerError":
                raise WorkerError(str(answer["refused"]))
            if "found" not in answer:
                raise UsageError(str(answer.get("refused", f"{file}: cannot be read")))
        except WorkerError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise WorkerError(f"{file}: reading it {error}") from None
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        found: JsonObject = answer["found"]
        return found

    def close(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _drop(self) -> None:
        while len(self._kept) > MOST_FILES or sum(
                one.size_bytes for one in self._kept.values()) > MOST_BYTES:
            key, _ = self._kept.popitem(last=False)
            shutil.rmtree(self.folder / key.removeprefix(UPLOAD), ignore_errors=True)


def clean_name(kind: str, name: str) -> str:
    """Return a file name without anything that leads elsewhere.

    Raises
    ------
    UsageError
        For an ending that is none of the kind's.
    """
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, suffix = last.rpartition(".")
    ending = f"{dot}{suffix}".lower()
    if ending not in SUFFIXES[kind]:
        raise UsageError(f"{name[:80]!r}: accepted: a {kind} file ending "
                         f"{', '.join(SUFFIXES[kind])}")
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", stem).strip(".")[:60]
    return f"{plain or kind}{ending}"
