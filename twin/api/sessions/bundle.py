"""A bundle that travels: kept runs in one zip file, each file with its hash; opened with suspicion.

    bundle.json           schema, and the SHA-256 of every other file
    NAME/session.json, NAME/inputs/..., NAME/result.json, ...

The same runs give the same bytes. Nothing in a bundle is run, and nothing is written outside the
folder it is opened in.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from hwmodels.errors import reworded
from hwmodels.files import (
    BoundedReader,
    DocumentError,
    JsonObject,
    open_regular,
    parse_json,
    read_regular,
    write_whole,
)
from twin.api.sessions.session import HEAD, MOST_BYTES, MOST_FILES, Session, hash_file, open_session
from twin.errors import SessionError

MANIFEST = "bundle.json"
SCHEMA = 1

MOST_RATIO = 200
"""Of a file's size to its packed size; text of figures packs to a twentieth."""

SMALLEST_ALLOWED_BYTES = 1 << 24
"""Unpacked, of a bundle however small."""

MOST_READ_BYTES = 1 << 23
"""At once: what lists the entries is of 300 bytes each."""

_LONGEST = 240
_PART = re.compile(r"[^\x00-\x1f\x7f/\\:*?\"<>|]{1,120}")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_bundle(sessions: Sequence[Session], path: str | Path) -> Path:
    """Pack kept runs into a zip file.

    Parameters
    ----------
    sessions : sequence of Session
        Finished; their folders have different names.
    path : str or Path
        Ends in ".zip"; written whole.

    Raises
    ------
    SessionError
        For a run without a result, one damaged since, or too much of all.
    """
    path = Path(path)
    files: dict[str, Path] = {}
    for session in sessions:
        if not session.is_finished:
            raise SessionError(f"{session.folder}: has no result; accepted: runs that ended")
        name = session.folder.resolve().name
        if f"{name}/{HEAD}" in files:
            raise SessionError(f"{session.folder}: another run is called {name}, too")
        check_unchanged(session)
        for file in sorted(session.folder.rglob("*")):
            if file.is_symlink():
                raise SessionError(f"{file}: is a link; accepted: regular files")
            if file.is_file():
                files[f"{name}/{file.relative_to(session.folder).as_posix()}"] = file
    if len(files) > MOST_FILES or sum(file.stat().st_size for file in files.values()) > MOST_BYTES:
        raise SessionError(f"{path}: too much for a bundle; accepted: {MOST_FILES:,} files of "
                           f"{MOST_BYTES >> 30} GiB together")
    manifest = {"schema": SCHEMA, "kind": "bundle",
                "sessions": [session.folder.resolve().name for session in sessions],
                "files": {name: hash_file(file) for name, file in files.items()}}
    with reworded(OSError, SessionError, f"{path}: cannot be written: "):
        write_whole(path, _pack(manifest, files))
    return path


def check_unchanged(session: Session) -> None:
    """Refuse a run one of whose files is not what its head says."""
    noted = {**session.head.get("inputs", {}), **session.head.get("files", {})}
    for name, digest in noted.items():
        file = session.folder / check_name(str(name))
        with reworded(OSError, SessionError, f"{file}: cannot be read: "):
            same = hash_file(file) == digest
        if not same:
            raise SessionError(f"{file}: was changed after the run: its hash is another")


def open_bundle(path: str | Path, folder: Path) -> tuple[Session, ...]:
    """Unpack a bundle into an empty folder and check every hash.

    Parameters
    ----------
    path : str or Path
        Of the zip file.
    folder : Path
        Exists, and is empty.

    Raises
    ------
    SessionError
        For a file that is not a bundle, damaged, names a place outside, a link, or is too large
        unpacked: before more than a part of it is written.
    """
    try:
        with (BoundedReader(open_regular(path, MOST_BYTES), MOST_READ_BYTES) as stream,
              zipfile.ZipFile(stream) as packed):
            entries = _check_entries(packed, path)
            manifest = _read_manifest(packed, entries, path)
            for name, entry in entries.items():
                if name != MANIFEST:
                    _unpack(packed, entry, folder / name, manifest["files"][name])
    except OSError as error:
        raise SessionError(f"{path}: cannot be read: {error.strerror or error}; accepted: a .zip "
                           "of `twin bundle`") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError,
            ValueError, zlib.error) as error:
        raise SessionError(f"{path}: is not a bundle: {error}") from error
    found = [open_session(folder / check_name(str(name))) for name in manifest["sessions"]]
    for session in found:
        check_unchanged(session)
    return tuple(found)


def check_name(name: str) -> str:
    """Return a relative path of plain parts; raises `SessionError` for anything else."""
    parts = name.split("/")
    if len(name) > _LONGEST or any(
            not _PART.fullmatch(part) or part.strip(". ") == "" or part.endswith((".", " "))
            for part in parts):
        raise SessionError(f"{name[:80]!r}: is not a name of a bundle's file")
    return name


def _pack(manifest: JsonObject, files: Mapping[str, Path]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        text = json.dumps(manifest, indent=1, sort_keys=True).encode()
        for name, content in ((MANIFEST, text), *(
                (name, read_regular(file, MOST_BYTES)) for name, file in sorted(files.items()))):
            entry = zipfile.ZipInfo(check_name(name), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            packed.writestr(entry, content)
    return stream.getvalue()


def _check_entries(packed: zipfile.ZipFile, path: str | Path) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    total, seen = 0, set()
    most = min(MOST_BYTES, MOST_RATIO * Path(path).stat().st_size + SMALLEST_ALLOWED_BYTES)
    for entry in packed.infolist():
        name = check_name(entry.filename)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or entry.flag_bits & 1:
            raise SessionError(f"{path}: {name}: is a link, a device or locked; accepted: plain "
                               "files")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise SessionError(f"{path}: {name}: packed in another way than deflate")
        if entry.file_size > MOST_RATIO * max(entry.compress_size, 1) + (1 << 20):
            raise SessionError(f"{path}: {name}: unpacks to {entry.file_size:,} bytes from "
                               f"{entry.compress_size:,}: refused")
        total += entry.file_size
        if name.casefold() in seen:
            raise SessionError(f"{path}: {name}: is there twice")
        seen.add(name.casefold())
        if len(seen) > MOST_FILES + 1 or total > most:
            raise SessionError(f"{path}: is too large unpacked; accepted: {MOST_FILES:,} files of "
                               f"{most:,} bytes together")
        entries[name] = entry
    return entries


def _read_manifest(packed: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo],
                   path: str | Path) -> JsonObject:
    if MANIFEST not in entries or entries[MANIFEST].file_size > 1 << 24:
        raise SessionError(f"{path}: is not a bundle: it has no {MANIFEST}")
    with reworded((DocumentError, UnicodeDecodeError), SessionError, f"{path}: {MANIFEST}: "):
        manifest = parse_json(packed.read(entries[MANIFEST]).decode())
    if not isinstance(manifest, dict) or manifest.get("kind") != "bundle":
        raise SessionError(f"{path}: {MANIFEST}: is not of a bundle")
    if manifest.get("schema") != SCHEMA:
        raise SessionError(f"{path}: {MANIFEST}: schema {str(manifest.get('schema'))[:20]}; "
                           f"accepted: {SCHEMA}")
    files, sessions = manifest.get("files"), manifest.get("sessions")
    if not isinstance(files, dict) or not isinstance(sessions, list) or not sessions:
        raise SessionError(f"{path}: {MANIFEST}: files and sessions are expected")
    if len({str(name).casefold() for name in sessions}) < len(sessions):
        raise SessionError(f"{path}: {MANIFEST}: sessions: one is named twice")
    if odd := {*files} ^ ({*entries} - {MANIFEST}):
        raise SessionError(f"{path}: {min(odd)[:80]!r}: is not both listed and there")
    return manifest


def _unpack(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, digest: object) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    found, size = hashlib.sha256(), 0
    with packed.open(entry) as stream, target.open("xb") as written:
        while chunk := stream.read(1 << 20):
            size += len(chunk)
            if size > entry.file_size:
                raise SessionError(f"{entry.filename}: is larger than it says")
            found.update(chunk)
            written.write(chunk)
    if found.hexdigest() != digest:
        raise SessionError(f"{entry.filename}: is damaged: its hash is another than listed")
