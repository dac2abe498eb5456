"""What was counted, kept by content on disk, and what of a board it depends on.

Bounded, and worthless when damaged: `TWIN_COUNTS` names another folder than the user's cache;
empty, nothing is kept. Two processes at once write whole files of the same content. An entry is
sealed with the folder's own key, so one that is damaged or planted is not read, and what it held is
counted again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import zlib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodels.board.facts import Board, Cache, Core, Memory
from hwmodels.errors import BoardError, TwinError, reworded
from hwmodels.files import hash_files, list_files, parse_json
from hwmodels.folders import user_folder
from hwmodels.kernels.store import Store, write_private

if TYPE_CHECKING:
    from hwmodels.core.timing import CoreTiming

_CACHE_FIELDS = tuple(one.name for one in fields(Cache)
                      if one.name not in ("hit_cycles", "critical_word_first"))

_MEMORY_FIELDS = tuple(one.name for one in fields(Memory) if one.name not in (
    "bus", "clock", "latency_cycles", "line_latency_cycles", "wait_states", "prefetch",
    "bytes_per_cycle", "serial", "sdram", "read_charge_pc"))
"""All that is not timing, nor a note: a fact that is new is taken to change what is met."""

LARGEST_FOLDER_BYTES = 64 << 20
MOST_ENTRIES = 4096
"""Of the folder: the entries not used for longest go."""

LARGEST_ENTRY_BYTES = 16 << 20
"""Of a network of thousands of kernels, unpacked; larger ones are not kept."""

STALE_NS = 86_400_000_000_000
"""Age at which counts of other code are nobody's."""

SAVES_BETWEEN_LOOKS = 64
"""Entries a process writes before it looks at the folder's size again."""

_SOURCES = ("hwmodels", "twin/runtimes", "twin/deployment", "twin/network/graph.py",
            "twin/network/operators.py", "twin/network/rewrites",
            "twin/pricing/structure.py", "twin/pricing/accelerator", "twin/program")
"""What decides what is counted."""


def read_geometry(board: Board) -> tuple[object, ...]:
    """Return what of a board is the same at every clock, wait and bandwidth."""
    return (describe_cores(board), tuple(_shape(cache) for cache in board.caches),
            tuple(_place(memory) for memory in board.memories))


def describe_cores(board: Board) -> tuple[object, ...]:
    """Return a board's cores, with what their files say where some are a user's."""
    if not os.environ.get("TWIN_CORES"):
        return board.cores
    return tuple((core, read_core(board, core)) for core in board.cores)


def read_core(board: Board, core: Core) -> CoreTiming:
    """Return how a core of a board is timed; a model that is none is refused by the board's key."""
    from hwmodels.core.file import load_core

    with reworded(BoardError, BoardError, f"{board.name}:cores.{core.name}.model: "):
        return load_core(core.model)


def _shape(cache: Cache) -> tuple[object, ...]:
    return tuple(getattr(cache, name) for name in _CACHE_FIELDS)


def _place(memory: Memory) -> tuple[object, ...]:
    return tuple(getattr(memory, name) for name in _MEMORY_FIELDS)


class CountStore(Store):
    """Kept counts; the folder never holds more than a few thousand."""

    saves = 0

    def save(self, name: str, entry: bytes) -> None:
        """Keep an entry."""
        if not self.key:
            return
        self.sweep()
        with contextlib.suppress(OSError):
            write_private(self.folder / name, self._seal(name, entry) + entry)
            if self.saves % SAVES_BETWEEN_LOOKS == 0:
                self.tidy()
            self.saves += 1

    def tidy(self) -> None:
        """Drop entries of other code nobody read for a day, and the oldest of too many.

        Several versions of the code may run side by side, and share the folder.
        """
        found, stale_ns = [], time.time_ns() - STALE_NS
        for path in self.folder.glob("counts.*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((f".{hash_code()[:16]}." in path.name, status.st_mtime_ns,
                              status.st_size, path))
        size = number = 0
        for current, used, own, path in sorted(found, reverse=True):
            size, number = size + own, number + 1
            if ((not current and used < stale_ns) or size > LARGEST_FOLDER_BYTES
                    or number > MOST_ENTRIES):
                with contextlib.suppress(OSError):
                    path.unlink()


def counts_folder() -> Path | None:
    """Folder of kept counts; None where there is none."""
    if os.environ.get("TWIN_COUNTS") == "":
        return None
    try:
        return user_folder("TWIN_COUNTS", "counts")
    except RuntimeError:  # a user without a home
        return None


@functools.cache
def _store_at(folder: Path) -> CountStore:
    return CountStore(folder)


def _store() -> CountStore | None:
    folder = counts_folder()
    return None if folder is None else _store_at(folder)


@functools.cache
def hash_code() -> str:
    """Return a hash of the source files that decide what is counted."""
    root = str(Path(__file__).parents[2])
    return hash_files(root, list_files(root, _SOURCES, (".py", ".yaml", ".csv"),
                                       frozenset({"boards", "__pycache__"})))


def _name_entry(key: str) -> str:
    return f"counts.{hash_code()[:16]}.{key}"


def load_counts(key: str) -> Any:
    """Return the document kept under a key; None where there is none."""
    store = _store()
    entry = None if store is None else store.load(_name_entry(key))
    if store is None or entry is None:
        return None
    with contextlib.suppress(OSError):
        os.utime(store.folder / _name_entry(key))
    try:
        unpacked = zlib.decompressobj().decompress(entry, LARGEST_ENTRY_BYTES + 1)
        return parse_json(unpacked.decode())
    except (zlib.error, ValueError, TwinError):
        return None


def save_counts(key: str, document: Any) -> None:
    """Keep a document, as far as there is room; nothing here fails."""
    store = _store()
    if store is None:
        return
    content = json.dumps(document, separators=(",", ":")).encode()
    if len(content) <= LARGEST_ENTRY_BYTES:
        store.save(_name_entry(key), zlib.compress(content, 1))
