"""Methods of nouns, compiled once: what `dataclasses` writes for a class is the same each time.

A command makes a hundred classes to answer one question, and compiling their methods takes a fifth
of its time. Compiled code is kept by that text in the user's cache, sealed with the folder's key as
machine code is; what is not kept, or damaged, is compiled as ever. `TWIN_FILES`, empty, keeps none.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import importlib.util
import marshal
import sys
from types import CodeType
from typing import Any

from hwmodels.kernels.store import Store, open_files

LARGEST_BYTES = 4 << 20
"""Of what is kept for a command: ten times what the largest uses."""


def keep_dataclass_code(command: str) -> None:
    """Let `dataclasses` run code that is kept, and keep what this process compiles.

    Parameters
    ----------
    command : str
        Whose classes are kept together: letters, digits and `-`.
    """
    store = open_files()
    if store is None or store.key is None:
        return
    name = f"nouns-{command}.{importlib.util.MAGIC_NUMBER.hex()}{sys.flags.optimize}.marshal"
    known, fresh = _load(store, name), False

    def run(text: str, *names: Any) -> None:
        nonlocal fresh
        code = known.get(text)
        if code is None:
            code = known[text] = compile(text, "<string>", "exec", dont_inherit=True)
            fresh = True
        exec(code, *names)

    def save() -> None:
        entry = marshal.dumps(known)
        if fresh and len(entry) <= LARGEST_BYTES:
            store.save(name, entry)

    vars(dataclasses)["exec"] = run
    atexit.register(save)


def _load(store: Store, name: str) -> dict[str, CodeType]:
    with contextlib.suppress(ValueError, EOFError, TypeError):
        found = marshal.loads(store.load(name) or b"")
        if type(found) is dict:
            return found
    return {}
