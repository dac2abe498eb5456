"""Files read once: what was made of a file's content, kept for the next process.

`TWIN_FILES` names another folder; empty, nothing is kept. An entry is sealed with the folder's own
key and depends on the content and on the code that read it; where there is none, or it is damaged,
the file is read as it was the first time. So a command imports no parser and no validator.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from hwmodels.errors import reworded
from hwmodels.files import LARGEST_YAML_BYTES, DocumentError, parse_yaml, read_regular
from hwmodels.kernels.store import fingerprint_sources, open_files

Made = TypeVar("Made")
Name = TypeVar("Name")
Parts = TypeVar("Parts", bound=tuple[object, ...])

MOST_ENTRIES = 512
"""Of the folder: those nobody has asked for the longest go, a quarter at a time."""


class Same(Generic[Parts]):
    """Key of what is kept of nouns in memory: equal to another of the very same nouns.

    Parameters
    ----------
    parts
        Held, so that no other object can take the place of one that is forgotten.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def __hash__(self) -> int:
        """Return the hash of which they are."""
        return hash(tuple(map(id, self.parts)))

    def __eq__(self, other: object) -> bool:
        """Return whether all are the same objects."""
        return isinstance(other, Same) and len(self.parts) == len(other.parts) and all(
            one is another for one, another in zip(self.parts, other.parts, strict=True))


def keep_newest(kept: OrderedDict[Name, Made], name: Name, made: Made, most: int) -> None:
    """Keep something in memory as the newest of so many; the oldest go."""
    kept[name] = made
    kept.move_to_end(name)
    while len(kept) > most:
        kept.popitem(last=False)


class UnpackableError(TypeError):
    """A noun holds what a kept file cannot."""


def make_once(kind: str, file: str | Path, content: bytes, code: Path,
              make: Callable[[], Made]) -> Made:
    """Return what is made of a file, kept or made.

    Parameters
    ----------
    kind
        What is made: "board".
    file : str or Path
        Its name; of each the newest content is kept.
    code
        Folder of the modules that make it; a change of one is one of all.
    make
        Makes it of the content alone: dataclasses, tuples, lists, dicts, numbers and text.

    Returns
    -------
    object
        Equal to what `make` returns. What `make` raises is not kept.
    """
    store = open_files()
    if store is None:
        return make()
    place = hashlib.sha256(f"{kind}\0{file}".encode()).hexdigest()[:16]
    read = hashlib.sha256(content + fingerprint_sources(code).encode()
                          + fingerprint_sources(Path(__file__).parent).encode()).hexdigest()[:32]
    name = f"{kind}-{place}.{read}.json"
    entry = store.load(name)
    if entry is not None:
        with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, ImportError):
            kept: Made = unpack(json.loads(entry))
            with contextlib.suppress(OSError):
                os.utime(store.folder / name)
            return kept
    made = make()
    with contextlib.suppress(UnpackableError):
        packed = pack(made)
        text = json.dumps(packed, separators=(",", ":"))
        if pack(unpack(json.loads(text))) == packed:
            store.save(name, text.encode())
            _tidy(store.folder)
    return made


def read_yaml_once(path: str | Path) -> Any:
    """Return a YAML file as lists and mappings; errors as those of `hwmodels.files.read_yaml`."""
    try:
        content = read_regular(path, LARGEST_YAML_BYTES)
    except OSError as error:
        raise DocumentError(error.strerror or str(error)) from error

    def parse() -> Any:
        with reworded(UnicodeDecodeError, DocumentError, "not UTF-8 text: "):
            return parse_yaml(content.decode())

    return make_once("yaml", path, content, Path(__file__).parent, parse)


def pack(value: Any) -> Any:
    """Return a noun as JSON can say it; lists, dicts and dataclasses differ from tuples."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is tuple:
        return [pack(one) for one in value]
    if kind is list:
        return {"list": [pack(one) for one in value]}
    if kind is dict:
        return {"dict": [[pack(key), pack(one)] for key, one in value.items()]}
    if dataclasses.is_dataclass(kind):
        return {"noun": f"{kind.__module__}:{kind.__qualname__}", "of": [
            pack(getattr(value, name)) for name in _fields(value.__class__)]}
    raise UnpackableError(f"{kind.__qualname__} is not kept")


def unpack(value: Any) -> Any:
    """Return what `pack` was given."""
    if type(value) is list:
        return tuple([unpack(one) for one in value])
    if type(value) is not dict:
        return value
    if "noun" in value:
        kind: Any = _class(value["noun"])
        return kind(**dict(zip(_fields(kind), map(unpack, value["of"]), strict=True)))
    if "dict" in value:
        return {unpack(key): unpack(one) for key, one in value["dict"]}
    return [unpack(one) for one in value["list"]]


@functools.cache
def _class(name: str) -> type[Any]:
    found = resolve_name(name)
    if not dataclasses.is_dataclass(found) or not isinstance(found, type):
        raise UnpackableError(f"{name} is no noun")
    return found


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


def _tidy(folder: Path) -> None:
    with contextlib.suppress(OSError):
        entries = [*folder.glob("*.json")]
        if len(entries) > MOST_ENTRIES:
            entries.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in entries[:-(3 * MOST_ENTRIES // 4)]:
                path.unlink()
