"""What other installed packages add: their entry points by group, looked up only where ours end.

    twin.boards     a package whose folder holds board files
    twin.runtimes   a package whose folder holds runtime files
    twin.operators  a module; the entry's name is the operator's
    twin.importers  a module; the entry's name is the log format's
    twin.figures    a function of a prediction; the entry's name is the picture's
    twin.policies   a module; the entry's name is the cache replacement policy's
    twin.cores      a package whose folder holds core files
    twin.features   a mapping of what-if paths to values; the entry's name is the feature's
    twin.postprocess  a function of a study's rows; the entry's name is the step's
    twin.backends   a class that runs a network for `twin measure`; the name is the back end's
    twin.meters     a module with `read_recording`; the entry's name is the meter's
    twin.emulators  a module with `PORT` and `run`; the entry's name is the virtual board's

Nothing is imported until a name is asked for that the project itself does not have, or everything
of a group is listed: reading the list of installed packages takes longer than a prediction.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodels.errors import BoardError, ExtensionError, TwinError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = ("twin.boards", "twin.runtimes", "twin.operators", "twin.importers", "twin.figures",
          "twin.policies", "twin.cores", "twin.features", "twin.postprocess", "twin.backends",
          "twin.meters", "twin.emulators")


@cache
def find_entries(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name.

    Raises
    ------
    ExtensionError
        When two packages claim one name.
    """
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda one: (one.name, one.value)):
        if entry.name in found and found[entry.name].value != entry.value:
            first = found[entry.name]
            raise ExtensionError(f"{group}: {entry.name} is claimed by {first.value} of "
                                 f"{_owner(first)} and by {entry.value} of {_owner(entry)}; "
                                 "uninstall one")
        found[entry.name] = entry
    return found


@cache
def load_entry(group: str, name: str) -> Any:
    """Import what an entry point names.

    Raises
    ------
    ExtensionError
        When there is none of that name, or its code fails.
    """
    entry = find_entries(group).get(name)
    if entry is None:
        raise ExtensionError(f"{group}: no installed package has {name!r}")
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # whatever code of others does
        raise ExtensionError(f"{_owner(entry)}: {group}: {name} = {entry.value} cannot be "
                             f"imported: {type(error).__name__}: {error}") from error


def named_folders(variable: str, what: str) -> list[Path]:
    """Return the folders of files an environment variable names.

    Raises
    ------
    BoardError
        For one that is not a folder.
    """
    folders = [Path(name) for name in os.environ.get(variable, "").split(os.pathsep) if name]
    for folder in folders:
        if not folder.is_dir():
            raise BoardError(f"{variable}: {folder} is not a folder; accepted: folders of {what} "
                             f"files, separated by {os.pathsep!r}")
    return folders


@cache
def find_folders(group: str) -> tuple[Path, ...]:
    """Return the folders of the packages of a group.

    Raises
    ------
    ExtensionError
        For one that is no package with a folder of its own.
    """
    from importlib.util import find_spec

    found: list[Path] = []
    for name, entry in find_entries(group).items():
        try:
            spec = find_spec(entry.value)
        except (ImportError, ValueError) as error:
            raise ExtensionError(f"{_owner(entry)}: {group}: {name} = {entry.value}: {error}"
                                 ) from error
        places = [] if spec is None else [*(spec.submodule_search_locations or ())]
        if not places:
            raise ExtensionError(f"{_owner(entry)}: {group}: {name} = {entry.value} is no package; "
                                 "accepted: one whose folder holds the files")
        found += map(Path, places)
    return tuple(found)


@cache
def hash_package(module: str) -> str:
    """Return a hash of the sources and tables of the installed package a module belongs to."""
    from importlib.util import find_spec

    spec = find_spec(module.partition(".")[0])
    folders = [] if spec is None else [*(spec.submodule_search_locations or ())]
    files = [Path(folder, file) for place in folders for folder, _, names in os.walk(place)
             for file in names if file.endswith((".py", ".yaml", ".csv"))]
    if spec is not None and spec.origin is not None:
        files.append(Path(spec.origin))
    digest = hashlib.sha256()
    for file in sorted({*files}):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def take(group: str, name: str, what: str) -> Any:
    """Return what a module of an entry point has to have; raises `ExtensionError` without it."""
    module = load_entry(group, name)
    if not hasattr(module, what):
        entry = find_entries(group)[name]
        raise ExtensionError(f"{_owner(entry)}: {group}: {name} = {entry.value}: has no {what}")
    return getattr(module, what)


@contextmanager
def blamed(group: str, name: str) -> Iterator[None]:
    """Blame an extension for what its code does within: raises `ExtensionError` naming it."""
    try:
        yield
    except TwinError:
        raise
    except (Exception, SystemExit) as error:
        entry = find_entries(group)[name]
        raise ExtensionError(f"{_owner(entry)}: {group}: {name} = {entry.value}: "
                             f"{type(error).__name__}: {error}") from error


def _owner(entry: EntryPoint) -> str:
    return "an installed package" if entry.dist is None else entry.dist.name
