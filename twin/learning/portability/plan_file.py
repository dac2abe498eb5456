"""Plan files: which micro-benchmarks to run on which board, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwmodels.errors import did_you_mean
from hwmodels.files import DocumentError, read_yaml, write_whole
from twin.errors import UsageError

SCHEMA = 1
_KEYS = ("schema", "board", "benchmarks", "runtime", "model", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """Micro-benchmarks to run.

    Parameters
    ----------
    board : str or None
        Name or file of the board; None where none is asked for.
    benchmarks : tuple of str
        By name, as `twin.learning.portability.probes` has them.
    runtime, model : str or None
        Whose prediction they are to narrow.
    expected : str
        What they are expected to do, for people.
    """

    board: str | None
    benchmarks: tuple[str, ...]
    runtime: str | None = None
    model: str | None = None
    expected: str = ""


def write_plan(path: str | Path, plan: PlanFile) -> Path:
    """Write a plan.

    Raises
    ------
    UsageError
        When it cannot be written.
    """
    import yaml

    path = Path(path)
    document: dict[str, Any] = {"schema": SCHEMA, "board": plan.board,
                                "benchmarks": list(plan.benchmarks), "runtime": plan.runtime,
                                "model": plan.model, "expected": plan.expected}
    try:
        write_whole(path, yaml.safe_dump(
            {key: value for key, value in document.items() if value},
            sort_keys=False, allow_unicode=True).encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error
    return path


def read_plan(text: str) -> PlanFile:
    """Read a plan: a file, or names of micro-benchmarks by comma.

    Parameters
    ----------
    text : str
        Path of a YAML file, or "latency:flash,mac:int8", or "all".

    Raises
    ------
    UsageError
        Naming the file and the key that will not do.
    """
    if not text.endswith((".yaml", ".yml")) and not Path(text).exists():
        asked = tuple(name.strip() for name in text.split(",") if name.strip())
        if not asked:
            raise UsageError(f"--plan {text!r} names nothing; accepted: a file of `twin plan`, "
                             "names such as latency:flash,mac:int8, or all")
        return PlanFile(board=None, benchmarks=asked)
    try:
        document = read_yaml(text)
    except DocumentError as error:
        raise UsageError(f"{text}: cannot be read ({error})") from error
    if not isinstance(document, Mapping):
        raise UsageError(f"{text}: is no plan; accepted: what `twin plan -o` writes")
    for key in document:
        if key not in _KEYS:
            raise UsageError(f"{text}:{key}: is not known; {did_you_mean(str(key), _KEYS)}")
    if document.get("schema") != SCHEMA:
        raise UsageError(f"{text}:schema: is {document.get('schema')!r}; accepted: {SCHEMA}")
    names = document.get("benchmarks")
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise UsageError(f"{text}:benchmarks: is {names!r}; accepted: a list of names")
    for key in ("board", "runtime", "model", "expected"):
        if not isinstance(document.get(key, ""), str):
            raise UsageError(f"{text}:{key}: is {document[key]!r}; accepted: text")
    return PlanFile(board=document.get("board"), benchmarks=tuple(names),
                    runtime=document.get("runtime"), model=document.get("model"),
                    expected=document.get("expected", ""))
