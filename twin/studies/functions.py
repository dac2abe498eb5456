"""Functions of the user: FILE.py:FUNCTION, and steps that work on the rows of a study."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from hwmodels.errors import did_you_mean
from hwmodels.extensions import find_entries, load_entry
from twin.errors import UsageError

GROUP = "twin.postprocess"
Rows = Sequence[Mapping[str, Any]]


def load_function(name: str, option: str) -> Callable[..., Any]:
    """Return the function FILE.py:FUNCTION names; raises `UsageError` naming the option."""
    path, _, wanted = name.rpartition(":")
    if not Path(path).is_file():
        raise UsageError(f"{option} {name}: there is no file {path}")
    try:
        function: Callable[..., Any] = getattr(
            _run_file(path, Path(path).stat().st_mtime_ns), wanted)
    except Exception as error:
        raise UsageError(f"{option} {name}: cannot be loaded: {error}") from error
    if not callable(function):
        raise UsageError(f"{option} {name}: {wanted} is not a function")
    return function


@lru_cache(maxsize=16)
def _run_file(path: str, _changed_ns: int) -> ModuleType:
    """Return a file as a module; one that has not changed runs once in a process."""
    spec = importlib.util.spec_from_file_location("twin_user", path)
    assert spec is not None and spec.loader is not None, "the file ends in .py"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_step(name: str) -> Callable[[Rows], Any]:
    """Return the step FILE.py:FUNCTION names, or that of an installed package."""
    if ".py:" in name:
        return load_function(name, "postprocess:")
    if name not in find_entries(GROUP):
        raise UsageError(f"postprocess: {name}: " + (
            did_you_mean(name, find_entries(GROUP)) if find_entries(GROUP) else
            "accepted: FILE.py:FUNCTION, or a step of an installed package"))
    step: Callable[[Rows], Any] = load_entry(GROUP, name)
    return step


def process_rows(steps: Iterable[str], rows: Rows) -> Rows:
    """Return rows as the steps leave them, one after the other.

    Parameters
    ----------
    steps
        As `load_step` takes them; each is called with a list of rows, a mapping from column to
        value each, and returns such a list.

    Raises
    ------
    UsageError
        Naming the step that fails or returns something else.
    """
    for name in steps:
        step = load_step(name)
        try:
            rows = step([dict(row) for row in rows])
        except Exception as error:  # whatever code of others does
            raise UsageError(f"postprocess: {name}: {type(error).__name__}: {error}") from error
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            raise UsageError(f"postprocess: {name}: returned {type(rows).__name__}; accepted: a "
                             "list of rows, each a mapping from column to value")
    return rows
