"""Blocks scheduled before, by their text: a library's are the same in every network.

One file a core in the user's cache, sealed, and hung on the core's facts and on the code that
schedules; what is not in it is scheduled as ever, and added when the process ends. `TWIN_FILES`,
empty, keeps none.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from hwmodels.core.timing import CoreTiming
from hwmodels.file_cache import pack, unpack
from hwmodels.kernels.store import Store, fingerprint_sources, open_files

MOST_BLOCKS = 1024
"""Of a core; those this process asked for come first."""

LONGEST_TEXT = 1 << 14


class KeptBlocks:
    """Schedules of one core.

    Parameters
    ----------
    store : Store
        Where they lie.
    name : str
        Of the entry: core, and what they hang on.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name
        self.known, self.asked = self._load(), dict[str, Any]()
        self.fresh = False
        atexit.register(self.save)

    def _load(self) -> dict[str, Any]:
        with contextlib.suppress(ValueError):
            found = json.loads(self.store.load(self.name) or b"{}")
            if type(found) is dict:
                return found
        return {}

    def find(self, code: str) -> Any:
        """Return the schedule of a block; None where it is not kept."""
        packed = self.known.get(code)
        if packed is None:
            return None
        with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, ImportError):
            made = unpack(packed)
            self.asked[code] = packed
            return made
        return None

    def add(self, code: str, timing: Any) -> None:
        """Note the schedule of a block."""
        if len(code) <= LONGEST_TEXT:
            self.asked[code] = pack(timing)
            self.fresh = True

    def save(self) -> None:
        """Keep what is new, with what other processes kept meanwhile."""
        if not self.fresh:
            return
        every = list((self.asked | {code: packed for code, packed in self._load().items()
                                    if code not in self.asked}).items())
        entry = json.dumps(dict(every[:MOST_BLOCKS]), separators=(",", ":"))
        self.store.save(self.name, entry.encode())
        self.fresh = False


@functools.lru_cache(maxsize=16)
def open_blocks(timing: CoreTiming) -> KeptBlocks | None:
    """Return what is kept of a core; None where nothing can be."""
    store = open_files()
    if store is None or store.key is None:
        return None
    here = Path(__file__).parent
    core = hashlib.sha256(repr(timing).encode()).hexdigest()[:24]
    table = hashlib.sha256((here.parent / "mnemonics.yaml").read_bytes()).hexdigest()
    sources = hashlib.sha256("".join((table, *map(fingerprint_sources, (
        here, here.parent / "isa", here.parent)))).encode()).hexdigest()[:24]
    return KeptBlocks(store, f"blocks-{core}.{sources}.kept")
