"""The folder of one kept run: what was asked, what it read, what stood between, the result.

    session.json    request, command, hashes of inputs and files, versions
    inputs/         the files and folders it read
    graph.json, placement.json, kernels.json, counts.json; image.elf of a runtime that is compiled
    result.json     the document, as `--json` prints it

Each run has a folder of its own, made and never opened, so runs side by side cannot share one. A
run that was killed or refused leaves its folder without a result.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hwmodels.errors import reworded
from hwmodels.extensions import named_folders
from hwmodels.files import (
    LARGEST_JSON_BYTES,
    DocumentError,
    JsonObject,
    open_regular,
    parse_json,
    read_regular_text,
    write_whole,
)
from hwmodels.frozen import frozen
from twin.api.sessions.request import INPUTS, Request, read_request
from twin.errors import SessionError
from twin.studies.study.tasks import made_with

HEAD = "session.json"
RESULT = "result.json"
SCHEMA = 1

LEFT = frozenset((HEAD, RESULT, INPUTS, "graph.json", "placement.json", "kernels.json",
                  "counts.json", "image.elf", "cold.json", "cold.jsonl", "warm.json", "warm.jsonl"))
"""All that a run leaves in its folder."""

MOST_HEAD_BYTES = 1 << 24

MOST_FILES = 10_000
MOST_BYTES = 1 << 30
"""Of what one run read, or one bundle holds."""

OWN_FILES = ("TWIN_BOARDS", "TWIN_CORES", "TWIN_RUNTIMES")
"""Name folders of files a run may read; their copies are in `inputs`, by these names."""

DIGITS = 9
"""Significant digits of figures that a report's hash is of: machines add in other orders."""


@frozen
class Session:
    """A kept run.

    Parameters
    ----------
    head : mapping
        All of `session.json`.
    """

    folder: Path
    request: Request
    head: JsonObject

    @property
    def is_finished(self) -> bool:
        """Whether it has a result."""
        return bool(self.head.get("report_hash"))

    def read_result(self) -> Any:
        """Return the document of its result; raises `SessionError` where there is none."""
        return _read(self.folder / RESULT, LARGEST_JSON_BYTES)


def begin_session(root: str | Path, request: Request, command: Sequence[str] = ()) -> Session:
    """Make the folder of a run, with copies of the files it is about to read.

    Parameters
    ----------
    root : str or Path
        Folder of sessions; made where there is none.
    request : Request
        Whose files are as the user named them.

    Returns
    -------
    Session
        Whose request names the copies.

    Raises
    ------
    SessionError
        When the folder cannot be made, or an input cannot be copied.
    """
    began = datetime.now(UTC)
    try:
        folder = _make_folder(Path(root), f"{began:%Y%m%d-%H%M%S}-"
                              f"{began.microsecond // 1000:03d}-{request.verb}")
        arguments = request.rename(lambda name, path: _keep(Path(path), folder / INPUTS, name))
        for variable in OWN_FILES:
            for place in named_folders(variable, "YAML"):
                for file in sorted(place.glob("*.yaml")):
                    _keep(file, folder / INPUTS, variable)
    except OSError as error:
        raise SessionError(f"{error.filename or root}: the run cannot be kept: "
                           f"{error.strerror}") from error
    request = replace(request, arguments=arguments)
    head = {"schema": SCHEMA, "kind": "session", "verb": request.verb,
            "arguments": request.arguments, "command": list(command),
            "began": f"{began:%Y-%m-%dT%H:%M:%SZ}", **made_with(),
            "inputs": hash_files(folder, INPUTS)}
    return _write_head(Session(folder=folder, request=request, head=head))


def end_session(session: Session, document: JsonObject, artefacts: JsonObject) -> Session:
    """Write a result and what stood between; the head is last, so it names only what is there."""
    document = relative(document, session.folder)
    files = {**artefacts, RESULT: document}
    for name, content in files.items():
        _write(session.folder / name, content)
    return _write_head(replace(session, head={
        **session.head, "files": {name: hash_file(session.folder / name) for name in files},
        "report_hash": hash_report(repeated(session.request.verb, document))}))


@contextmanager
def kept_files(session: Session) -> Iterator[None]:
    """Look up boards, cores and runtimes of one's own in a run's folder, where it kept any."""
    kept = {variable: str(place) for variable in OWN_FILES
            if (place := (session.folder / INPUTS / variable).absolute()).is_dir()}
    before = {variable: os.environ.get(variable) for variable in kept}
    os.environ.update(kept)
    try:
        yield
    finally:
        for variable, value in before.items():
            os.environ.pop(variable)
            if value is not None:
                os.environ[variable] = value


def open_session(folder: str | Path) -> Session:
    """Return the session of a folder; raises `SessionError` for one that is none."""
    path = Path(folder) / HEAD
    if not path.exists():
        raise SessionError(f"{folder}: is not a folder of a kept run; accepted: one that --keep "
                           "made")
    head = _read(path, MOST_HEAD_BYTES)
    if not isinstance(head, dict) or head.get("kind") != "session":
        raise SessionError(f"{path}: is not of a kept run")
    if head.get("schema") != SCHEMA:
        raise SessionError(f"{path}: schema {str(head.get('schema'))[:20]}; accepted: {SCHEMA}")
    with reworded(SessionError, SessionError, f"{path}: "):
        for name in ("inputs", "files"):
            if not isinstance(head.get(name, {}), dict):
                raise SessionError(f"{name}: a mapping of names to hashes is expected")
        request = read_request(head)
    return Session(folder=Path(folder), request=request, head=head)


def find_sessions(root: str | Path) -> Iterator[Path]:
    """Yield the folders below a root that hold a kept run, oldest first; links are not followed.

    Notes
    -----
    A study has a `session.json` of its own, and is passed over; a head that cannot be read is not,
    so that `open_session` names it.
    """
    with reworded(OSError, SessionError, f"{root}: cannot be listed: "):
        found = sorted(Path(root).iterdir())
    for folder in found:
        if not folder.is_symlink() and (folder / HEAD).is_file() and not _is_other(folder / HEAD):
            yield folder


def _is_other(path: Path) -> bool:
    """Whether a head can be read and is of something else than a kept run."""
    try:
        head = _read(path, MOST_HEAD_BYTES)
    except SessionError:
        return False
    return not isinstance(head, dict) or head.get("kind") != "session"


def check_removal(folder: Path) -> None:
    """Refuse a folder that is of no kept run, or holds what no run leaves there."""
    open_session(folder)
    odd = [entry.name for entry in folder.iterdir()
           if entry.name not in LEFT and not entry.name.endswith(".tmp")]
    if odd:
        raise SessionError(f"{folder}: holds {min(odd)[:80]!r}, which no run leaves there; nothing "
                           "was removed")


def remove_session(folder: Path) -> None:
    """Delete the folder of a kept run, its head last; it was checked by `check_removal`.

    Raises
    ------
    SessionError
        When it cannot be removed; what another process removes meanwhile is no matter.
    """
    try:
        for entry in sorted(folder.iterdir(), key=lambda one: one.name == HEAD):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        folder.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SessionError(f"{folder}: cannot be removed ({error.strerror})") from error


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a regular file."""
    with open_regular(path, MOST_BYTES) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_files(folder: Path, below: str) -> dict[str, str]:
    """Return the SHA-256 of every file below a part of a folder, by relative path."""
    return {path.relative_to(folder).as_posix(): hash_file(path)
            for path in sorted((folder / below).rglob("*")) if path.is_file()}


def hash_report(document: Any) -> str:
    """Return the hash of what a document says: figures to nine digits, keys in order.

    Notes
    -----
    Machines differ in the last bits of a sum, so that all digits would tell them apart.
    """
    text = json.dumps(rewrite(document, _round), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def repeated(verb: str, value: Any) -> Any:
    """Return what of a result is the same each time.

    That is a measurement without metrics: blocks of runs count what waits on the line, too.
    """
    if verb != "measure":
        return value
    if isinstance(value, Mapping):
        return {key: repeated(verb, one) for key, one in value.items()
                if key not in ("metrics", "bottleneck")}
    return [repeated(verb, one) for one in value] if isinstance(value, list | tuple) else value


def relative(value: Any, folder: Path) -> Any:
    """Return a document with paths below a folder as they are from there."""
    def cut(text: Any) -> Any:
        for prefix in prefixes:
            text = text.replace(prefix, "") if isinstance(text, str) else text
        return text

    prefixes = {f"{folder}/", f"{folder.resolve()}/"}
    return rewrite(value, cut)


def rewrite(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a document with its keys, texts and figures as `change` makes them."""
    if isinstance(value, Mapping):
        return {change(key): rewrite(one, change) for key, one in value.items()}
    return ([rewrite(one, change) for one in value] if isinstance(value, list | tuple)
            else change(value))


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS - 1}e}") if math.isfinite(value) else str(value)
    return value


def _make_folder(root: Path, stem: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    while True:
        folder = root / f"{stem}-{secrets.token_hex(3)}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder


def _keep(source: Path, inputs: Path, name: str) -> str:
    """Copy a file, or a folder's regular files, and return where it is from the session."""
    target = inputs / name / (Path(os.path.abspath(source)).name or "root")
    while target.exists():  # Two files of one list may bear one name.
        target = target.parent / "other" / target.name
    if not source.exists():
        raise SessionError(f"{source}: does not exist")
    files = [source] if source.is_file() else [
        path for path in sorted(source.rglob("*")) if path.is_file() and not path.is_symlink()]
    if len(files) > MOST_FILES or sum(path.stat().st_size for path in files) > MOST_BYTES:
        raise SessionError(f"{source}: too much to keep; accepted: {MOST_FILES:,} files of "
                           f"{MOST_BYTES >> 30} GiB together")
    for path in files:
        copy = target if path == source else target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open_regular(path, MOST_BYTES) as stream, copy.open("xb") as written:
            shutil.copyfileobj(stream, written)
    return f"{INPUTS}/{target.relative_to(inputs).as_posix()}"


def _read(path: Path, most_bytes: int) -> Any:
    with reworded((DocumentError, OSError, UnicodeDecodeError), SessionError,
                  f"{path}: cannot be read: "):
        return parse_json(read_regular_text(path, most_bytes))


def _write_head(session: Session) -> Session:
    _write(session.folder / HEAD, session.head)
    return session


def _write(path: Path, content: Any) -> None:
    if not isinstance(content, bytes):
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        content = f"{text}\n".encode()
    with reworded(OSError, SessionError, f"{path}: cannot be written: "):
        write_whole(path, content)
